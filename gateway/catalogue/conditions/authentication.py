"""3-D Secure across structures: what proves an authentication, and what is required before one starts.

Source: Part B, 3D Secure, Custom parameters and scheme data, Card on file; Part A, Customer, Billing address;
rulings D32, D34.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gateway.catalogue.conditions.request_facts import (
    AUTHENTICATING_FACTS,
    MAIL_OR_TELEPHONE,
    has_authentication_proof,
    is_merchant_initiated,
    is_wallet_payment,
    will_authenticate,
)
from gateway.catalogue.rules import ParameterRule, RuleBreach, RuleInput, build_rule, required_when

CARTEBANCAIRE = "CARTEBANCAIRE"
"""The regional card scheme that scheme data are for."""

_ECI, _PROOF, _DIRECTORY = "threeDSecure.eci", "threeDSecure.verificationId", "threeDSecure.dsTransactionId"
_PROVED = {_ECI: "05", _PROOF: "AAACAgSRBklmQCFgMpEGAAAAAAA="}
_SERVER = {_DIRECTORY: "c5b808e7-1de1-4069-a17b-f70d3b3b1645"}
_CARD_PAYMENT = {"paymentType": "DB", "card.number": "4200000000000000"}
_USE_CASE = "threeDSecure.schemeData[CB-USECASE]"


def _half_a_proof(sent: RuleInput) -> Iterator[RuleBreach]:
    if _DIRECTORY in sent:
        for name in sent.missing(_ECI, _PROOF):
            yield name, "is required with threeDSecure.dsTransactionId"


def _proof_without_server(sent: RuleInput) -> Iterator[RuleBreach]:
    if not has_authentication_proof(sent) or _DIRECTORY in sent:
        return
    of_a_device = sent.get("card.numberType") == "DPAN" or sent.get("tokenAccount.type") == "NETWORK"
    if not of_a_device and not is_wallet_payment(sent):
        yield _DIRECTORY, "is required with threeDSecure.eci and verificationId, except for wallets and DPAN"


THREEDS_PROOF: tuple[ParameterRule, ...] = (
    build_rule(
        "threeDSecure.dsTransactionId requires eci and verificationId", (_DIRECTORY, _ECI, _PROOF),
        _half_a_proof, when=(_DIRECTORY,),
        keeps=_SERVER | _PROVED, breaks=_SERVER,
    ),
    build_rule(
        "threeDSecure.eci and verificationId without dsTransactionId are for wallets and DPAN only",
        (_DIRECTORY, _ECI, _PROOF), _proof_without_server,
        when=(_ECI,),
        keeps=_PROVED | {"wallet1.source": "web"}, breaks=_PROVED | {"card.numberType": "PAN"},
    ),
)  # fmt: skip

BROWSER_FIELDS = (
    "customer.browser.acceptHeader",
    "customer.browser.language",
    "customer.browser.screenHeight",
    "customer.browser.screenWidth",
    "customer.browser.timezone",
    "customer.browser.userAgent",
    "customer.browser.javaEnabled",
)
ADDRESS_FIELDS = ("billing.street1", "billing.city", "billing.postcode", "billing.country")


def is_browser_authentication(sent: RuleInput) -> bool:
    """True if the shopper authenticates in a browser: no app device data, no requestor-initiated (3RI) request."""
    return _address_wanted(sent) and _is_in_browser(sent)


def _is_in_browser(sent: RuleInput) -> bool:
    return not sent.any("threeDSecure.deviceInfo", "threeDSecure.channel")


def _address_wanted(sent: RuleInput) -> bool:
    return will_authenticate(sent) and (sent.get("paymentType") in ("PA", "DB", "RG") or "alone" in sent.facts)


def _registers_in_browser(sent: RuleInput) -> bool:
    """As is_browser_authentication, of a direct registration, whose paymentType may be left out."""
    return will_authenticate(sent) and _is_in_browser(sent)


_Question = Callable[[RuleInput], bool]
_WHEN = "for 3D Secure v2: the channel authenticates cards"
_RETURN = {"shopperResultUrl": "https://shop.example/result"}


def _build_browser_rules(in_browser: _Question, anywhere: _Question, card: dict[str, str]) -> tuple[ParameterRule, ...]:
    return (
        required_when(
            _WHEN, in_browser, *BROWSER_FIELDS,
            keeps=card | dict.fromkeys(BROWSER_FIELDS, "x"), breaks=card, facts=AUTHENTICATING_FACTS,
        ),
        required_when(
            _WHEN, anywhere, *ADDRESS_FIELDS,
            keeps=card | dict.fromkeys(ADDRESS_FIELDS, "x"), breaks=card, facts=AUTHENTICATING_FACTS,
        ),
    )  # fmt: skip


def _build_return_rules(in_browser: _Question, card: dict[str, str]) -> tuple[ParameterRule, ...]:
    return (
        required_when(
            "for 3D Secure v2: the shopper may be sent to the bank and comes back to it", in_browser,
            "shopperResultUrl", keeps=card | _RETURN, breaks=card, facts=AUTHENTICATING_FACTS,
        ),
    )  # fmt: skip


_CARD_TO_STORE = {"card.number": "4200000000000000"}
THREEDS_BROWSER = _build_browser_rules(is_browser_authentication, _address_wanted, _CARD_PAYMENT)
THREEDS_RETURN_URL = _build_return_rules(is_browser_authentication, _CARD_PAYMENT)
THREEDS_REGISTRATION: tuple[ParameterRule, ...] = (
    *_build_browser_rules(_registers_in_browser, will_authenticate, _CARD_TO_STORE),
    *_build_return_rules(_registers_in_browser, _CARD_TO_STORE),
)
"""Storing a card authenticates like a payment: docs/decisions/0066."""


def _order_without_browser(sent: RuleInput) -> Iterator[RuleBreach]:
    if sent.get("transactionCategory") in MAIL_OR_TELEPHONE:
        yield (
            "transactionCategory",
            "is no mail or telephone order here (MO, TO): the shopper pays in a browser and authenticates",
        )


def _order_on_own_page(sent: RuleInput) -> Iterator[RuleBreach]:
    return _order_without_browser(sent) if sent.get("paymentPage") == "true" else iter(())


NO_MAIL_OR_TELEPHONE: tuple[ParameterRule, ...] = (
    build_rule(
        "transactionCategory is not MO or TO: who pays in a browser authenticates", ("transactionCategory",),
        _order_without_browser, keeps={"transactionCategory": "EC"}, breaks={"transactionCategory": "MO"},
    ),
)  # fmt: skip
"""The rule of payment links: docs/decisions/0067."""
NO_MAIL_OR_TELEPHONE_ON_PAGES: tuple[ParameterRule, ...] = (
    build_rule(
        "transactionCategory is not MO or TO with paymentPage: who pays in a browser authenticates",
        ("transactionCategory", "paymentPage"), _order_on_own_page,
        keeps={"transactionCategory": "MO"}, breaks={"transactionCategory": "MO", "paymentPage": "true"},
    ),
)  # fmt: skip
"""The rule of checkouts. In a page of the merchant's own a form may be a call centre's."""

_INSTALLMENT = {"standingInstruction.type": "INSTALLMENT"}

INSTALMENTS: tuple[ParameterRule, ...] = (
    required_when(
        "for 3D Secure with standingInstruction.type INSTALLMENT",
        lambda sent: sent.get("standingInstruction.type") == "INSTALLMENT"
        and "threeds" in sent.facts
        and sent.get("threeDSecure.disable") != "true"
        and not is_merchant_initiated(sent),
        "standingInstruction.numberOfInstallments",
        when=("standingInstruction.type",),
        keeps=_INSTALLMENT | {"standingInstruction.numberOfInstallments": "12"}, breaks=_INSTALLMENT,
        facts=AUTHENTICATING_FACTS,
    ),
)  # fmt: skip


def is_regional_scheme_payment(sent: RuleInput) -> bool:
    """True if paid by the scheme's brand, or by a stored card of it."""
    return sent.get("paymentBrand") == CARTEBANCAIRE or f"registration: {CARTEBANCAIRE}" in sent.facts


def _use_case_wanted(sent: RuleInput) -> bool:
    """True for a payment authentication, or a non-payment one with indicator 02 (RECURRING) or 03 (INSTALLMENT)."""
    if not is_regional_scheme_payment(sent) or not will_authenticate(sent):
        return False
    return sent.get("threeDSecure.npa") != "true" or sent.get("threeDSecure.authenticationInd") in (
        "RECURRING",
        "INSTALLMENT",
    )


CB_USECASE: tuple[ParameterRule, ...] = (
    required_when(
        f"for 3D Secure with paymentBrand {CARTEBANCAIRE}, npa=true only with authenticationInd RECURRING or "
        "INSTALLMENT",
        _use_case_wanted, _USE_CASE,
        keeps=_CARD_PAYMENT | {"paymentBrand": CARTEBANCAIRE, "threeDSecure.npa": "true"},
        breaks=_CARD_PAYMENT | {"paymentBrand": CARTEBANCAIRE}, facts=AUTHENTICATING_FACTS,
    ),
)  # fmt: skip
