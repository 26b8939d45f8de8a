"""Conditions on parties (customer, sender, recipient), on references to earlier payments, and on return addresses.

Source: Part A, Customer, Basic payment (transactionPurposeCode, referenceUuid), Events; rulings D28, D37.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue.rules import ParameterRule, RuleBreach, RuleInput, build_rule, required_when
from gateway.catalogue.structures import CUSTOMER
from gateway.core import brands

_NAMES = ("customer.givenName", "customer.surname")
# Data that only a browser or a device supplies does not make a customer (D28).
_SUPPLIED = ("ip", "browser.", "browserFingerprint.", "app.deviceId")
_PERSONAL = tuple(f"customer.{row.name}" for row in CUSTOMER.rows if not row.name.startswith(_SUPPLIED))

CUSTOMER_NAMES: tuple[ParameterRule, ...] = (
    required_when(
        "when any other customer parameter is sent, except what the browser supplies",
        lambda sent: sent.any(*_PERSONAL), *_NAMES,
        when=("customer",),
        keeps={"customer.ip": "192.0.2.1"}, breaks={"customer.email": "jane@mail.example"},
    ),
)  # fmt: skip

PURPOSE_COUNTRIES = frozenset({"ARG", "BGD", "CHL", "COL", "EGY", "IND"})


def _money_transfer(sent: RuleInput) -> bool:
    return (
        sent.get("transactionProcessingCode") in ("FUNDING", "PAYMENT")
        and sent.get("recipient.country") in PURPOSE_COUNTRIES
    )


PURPOSE_CODE: tuple[ParameterRule, ...] = (
    required_when(
        "for money transfers to recipients in Argentina, Bangladesh, Chile, Colombia, Egypt and India",
        _money_transfer,
        "transactionPurposeCode",
        when=("transactionProcessingCode",),
        keeps={"transactionProcessingCode": "PAYMENT", "recipient.country": "DEU"},
        breaks={"transactionProcessingCode": "PAYMENT", "recipient.country": "IND"},
    ),
)


_REFERENCE = {"referenceUuid": "8a829449515d198b01517d5601df5584"}
_PRACTICE = "standingInstruction.industryPractice"


def _other_practice(sent: RuleInput) -> Iterator[RuleBreach]:
    if "referenceUuid" in sent and sent.get(_PRACTICE) not in ("REAUTHORIZATION", "INCREMENTAL_AUTH"):
        # Without a practice it is looked up nowhere, so the fault may be either's.
        yield "referenceUuid", "is used with industryPractice REAUTHORIZATION or INCREMENTAL_AUTH only"
        yield _PRACTICE, "must be REAUTHORIZATION or INCREMENTAL_AUTH when referenceUuid is sent"


REFERENCE_UUID: tuple[ParameterRule, ...] = (
    build_rule(
        "referenceUuid is used with industryPractice REAUTHORIZATION or INCREMENTAL_AUTH",
        ("referenceUuid", _PRACTICE), _other_practice,
        when=("referenceUuid",),
        keeps=_REFERENCE | {_PRACTICE: "INCREMENTAL_AUTH"}, breaks=_REFERENCE,
    ),
)  # fmt: skip


def _sends_the_shopper_away(sent: RuleInput) -> bool:
    brand = brands.find_brand(sent.get("paymentBrand") or "")
    return brand is not None and brand.redirect


SHOPPER_RESULT_URL: tuple[ParameterRule, ...] = (
    required_when(
        "with a brand that sends the shopper away to pay",
        _sends_the_shopper_away,
        "shopperResultUrl",
        when=("paymentBrand",),
        keeps={"paymentBrand": "WEBWALLET", "shopperResultUrl": "https://shop.example/result"},
        breaks={"paymentBrand": "WEBWALLET"},
    ),
)
