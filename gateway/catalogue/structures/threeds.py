"""3-D Secure: data for the authentication, proof of one, and exemptions.

Source: Part B, 3D Secure, Custom parameters and scheme data; rulings D25, D32, D35.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from gateway.catalogue.formats import (
    AN,
    AN_UP_TO,
    BOOLEAN,
    COUNTRY_3,
    CURRENCY,
    N,
    chars,
    literal,
    number_between,
    one_of,
    publish_values,
    value_list,
    with_words,
)
from gateway.catalogue.rules import RuleBreach, RuleInput, build_rule, requires
from gateway.catalogue.structure import NEVER, C, Echo, O, Param, Structure, structure

_DEFAULT_KEYS = "visa,mastercard,amex,diners,jcb,cb"
NETWORK_KEYS = tuple(os.environ.get("GATEWAY_THREE_D_SECURE_NETWORKS", _DEFAULT_KEYS).split(","))
"""The six keys of ``threeDSecure.v2.<net>`` unless a setting names others (D35)."""

MAX_DEVICE_INFO_CHARS = 65_536
"""Characters of the SDK's encrypted device data."""

_AMOUNT = literal(
    "up to 9 integer digits, dot, 2 decimals", r"[0-9]{1,9}\.[0-9]{2}",
    expects="must be up to 9 digits, a dot and two decimals", example="92.00", bad="92",
)  # fmt: skip
_INDICATORS = (
    "PAYMENT", "RECURRING", "INSTALLMENT", "ADD_CARD", "MAINTAIN_CARD", "EMV_ID", "BILLING_AGREEMENT",
    "SPLIT_SHIPMENT", "_DELAYED_SHIPMENT", "SPLIT_PAYMENT",
)  # fmt: skip
_AUTHENTICATION_IND = publish_values(
    value_list(*_INDICATORS, also=("DELAYED_SHIPMENT",)), *_INDICATORS, taken_too="DELAYED_SHIPMENT is taken, too."
)
_TRANSACTION_ID = AN(36, 36, words="36 chars").eg("c5b808e7-1de1-4069-a17b-f70d3b3b1645")
_STATUS = publish_values(
    one_of("Y", "A", "U", "N", also=("I",), words="one of Y, A, U, N"), "Y", "A", "U", "N", "I",
    taken_too="I is taken, too: the issuer accepted an exemption, or data were only shared.",
)  # fmt: skip
_VERSION = literal(
    "form 1.x.y or 2.x.y, for example 2.1.0 or 2.2.0", r"[12]\.[0-9]{1,3}\.[0-9]{1,3}",
    expects="must have the form 1.x.y or 2.x.y", example="2.2.0", bad="2.2",
)  # fmt: skip


def _network_rows(networks: Sequence[str]) -> list[Param]:
    form = AN_UP_TO(100).eg("requestor-1")
    return [
        Param(name=f"v2.{network}.{name}", format=form, need=O, note="Assigned by the card network.")
        for network in networks
        for name in ("requestorId", "requestorName")
    ]


def authentication_message(networks: Sequence[str]) -> Structure:
    """Only the fields of the authentication message, with two rows per network key."""
    return structure(
        "3D Secure: authentication message",
        "Part B",
        "threeDSecure",
        ("amount", _AMOUNT, O, "The amount to authenticate; risk.amount goes before it."),
        ("currency", with_words("A3 ISO 4217", CURRENCY), O),
        (
            "deviceInfo",
            AN(
                1,
                MAX_DEVICE_INFO_CHARS,
                words="as returned by the mobile SDK in authRequestParams (encrypted)",
            ),
            C,
            "Required to start the app-based v2 flow.",
            {"forwarded": False},
        ),
        ("merchant.name", AN_UP_TO(100).eg("Example Shop"), O, "As the scheme's directory server knows it."),
        ("merchant.url", AN(0, 2048).eg("https://shop.example"), O),
        ("merchant.country", with_words("3 letters", COUNTRY_3), O),
        *_network_rows(networks),
        (
            "channel",
            number_between(1, 99, words="N2, 01 to 99", width=2),
            O,
            "Only marks a requestor-initiated (3RI) request, 3DS 2.2, one network.",
        ),
        ("npa", BOOLEAN, O, "Non-payment authentication."),
        ("decoupled", BOOLEAN, O, "Decoupled authentication."),
        ("threeRIInd", value_list("RECURRING", "SPLIT_SHIPMENT", "DELAYED_SHIPMENT"), O, "Type of 3RI transaction."),
        ("authenticationInd", _AUTHENTICATION_IND, O, "A hint to the access control server."),
        ("disable", BOOLEAN, O, "true bypasses 3D Secure; false does not turn it on."),
        demand=NEVER,
    )


PROOF = structure(
    "3D Secure: proof of authentication", "Part B", "threeDSecure",
    ("eci", number_between(1, 8, words="N2, 01 to 08", width=2).eg("05"), C),
    ("verificationId", AN(28, 28, words="28 chars (CAVV or AAV)").eg("AAACAgSRBklmQCFgMpEGAAAAAAA="), C,
     {"echo": Echo.PROOF}),
    ("authenticationStatus", _STATUS, C),
    ("dsTransactionId", _TRANSACTION_ID, O, "The directory server's id."),
    ("acsTransactionId", _TRANSACTION_ID, O, "The access control server's id."),
    ("challengeMandatedIndicator", one_of("Y", "N"), O),
    ("version", _VERSION, O),
    ("authType", number_between(1, 4, words="01 to 04", width=2), O),
    ("transactionStatusReason", N(1, 2, words="N2").eg("01", "1a"), O),
    demand=NEVER,
    note="Only with an external 3D Secure server.",
)  # fmt: skip


def _old_version(sent: RuleInput) -> Iterator[RuleBreach]:
    version = sent.get("version")
    if version is None or not sent.any("challengeIndicator", "exemptionFlag"):
        return
    major, minor, _ = version.split(".")
    if (int(major), int(minor)) < (2, 2):
        yield "version", "must be 2.2.0 or higher with challengeIndicator or exemptionFlag"


EXEMPTION = structure(
    "3D Secure: exemptions", "Part B", "threeDSecure",
    ("challengeIndicator", number_between(1, 9, words="01 to 09", width=2).eg("05"), O,
     "3D Secure 2.2 or higher."),
    ("exemptionFlag", number_between(1, 4, words="N2, 01 to 04", width=2), O,
     "3D Secure 2.2 or higher; needs challengeIndicator."),
    rules=[
        requires("exemptionFlag", "challengeIndicator"),
        build_rule(
            "version, when sent with challengeIndicator or exemptionFlag, must be 2.2 or higher",
            ("version", "challengeIndicator", "exemptionFlag"), _old_version,
            keeps={"version": "2.2.0", "challengeIndicator": "05"},
            breaks={"version": "2.1.0", "challengeIndicator": "05"},
        ),
    ],
    demand=NEVER,
    note="In the authentication or in the payment.",
)  # fmt: skip


def three_d_secure(networks: Sequence[str] = NETWORK_KEYS) -> tuple[Structure, ...]:
    """The three groups, with ``<net>`` expanded to the network keys of a setting."""
    return authentication_message(networks), PROOF, EXEMPTION


THREE_D_SECURE = three_d_secure()

SCHEME_DATA = structure(
    "Custom parameters and scheme data", "Part B", "threeDSecure",
    ("schemeData[CB-ITEMSNB]", N(1, 2, words="N2").eg("02", "two"), C,
     "Number of items or services; recommended for one regional card scheme."),
    ("schemeData[CB-SCORE_MERCHANT]", chars(
        "letters, digits, whitespace and . , : ; + - _ / % * ( )", "[A-Za-z0-9 .,:;+_/%*()-]", 1, 20,
        example="SCORE-80", bad="<80>", words="1-20 chars of letters, digits, whitespace and a few symbols",
    ), C, "The merchant's score of the 3DS requestor."),
    ("schemeData[CB-USECASE]", N(1, 2, words="N2").eg("01", "one"), C,
     "Required for a payment authentication, or a non-payment one that is RECURRING or INSTALLMENT."),
    demand=NEVER,
)  # fmt: skip
