"""Risk data that a merchant sends.

Source: Part B, Risk.
"""

from __future__ import annotations

from gateway.catalogue.formats import AMOUNT_WITH_DOT, AN, CUSTOM_PARAMETER_KEY, DATE_TIME, with_words
from gateway.catalogue.structure import NEVER, O, Param, structure

RISK = structure(
    "Risk", "Part B", "risk",
    ("channelId", AN(1, 255).eg("RISKCHANNEL1"), O,
     "Selects another rule set; 12 characters for one provider."),
    ("serviceId", AN(1, 255).eg("I"), O, "Service of the risk system; 1 character for one provider."),
    ("amount", AMOUNT_WITH_DOT, O, "For risk and, when present, the 3D Secure amount."),
    ("orderTimestamp", with_words("yyyy-MM-dd HH:mm:ss, 24-hour", DATE_TIME), O,
     "When the payment ran, if not now."),
    ("brand", AN(1, 255).eg("VISA"), O, "Overrides paymentBrand for risk."),
    Param(
        name="parameters[name]", key=CUSTOM_PARAMETER_KEY, need=O,
        format=AN(
            0, 2048, words="name AN 3-64 of letters, digits, dot, underscore; value AN 0-2048",
        ).eg("gold"),
        note="Custom risk data.",
    ),
    ("merchantWebsite", AN(1, 60).eg("shop.example"), O),
    ("accountToken", AN(1, 64).eg("account-17"), O, "Set by the merchant."),
    demand=NEVER,
)  # fmt: skip
