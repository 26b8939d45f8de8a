"""Checkouts: prepared by the merchant's server, paid in the shopper's browser.

Source: Part A, What the service does, 8; Endpoints; rulings D3, D4, D29; rulings, section 7.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue import conditions as c
from gateway.catalogue import structures as s
from gateway.catalogue.endpoints.endpoint import NO_TEST_MODE_IN_LIVE, REQUIRED_ENTITY, Endpoint
from gateway.catalogue.endpoints.payments import FOLLOW_UP_TYPES, REFUSE_FOLLOW_UP_TYPES
from gateway.catalogue.rules import RuleBreach, RuleInput, build_rule
from gateway.catalogue.structure import C, O


def _money_or_registration(sent: RuleInput) -> Iterator[RuleBreach]:
    if "paymentType" in sent or sent.get("createRegistration") != "true":
        for name in sent.missing("amount", "currency", "paymentType"):
            yield name, "is required, unless createRegistration=true alone makes a checkout that only stores a card"


CHECKOUT_MONEY = build_rule(
    "amount, currency and paymentType are required, unless createRegistration=true comes without a paymentType",
    ("amount", "currency", "paymentType", "createRegistration"),
    _money_or_registration,
    keeps={"createRegistration": "true"},
    breaks={"amount": "92.00", "currency": "EUR"},
)


def _overrides_are_first_types(sent: RuleInput) -> Iterator[RuleBreach]:
    for name in sent.under("overridePaymentType["):
        if sent[name] in FOLLOW_UP_TYPES:
            yield name, f"{sent[name]} follows an earlier payment; a checkout makes a first one, e.g. PA or DB"


CHECKOUT_OVERRIDES = build_rule(
    "overridePaymentType[brand] names a type of first payments",
    ("overridePaymentType[brand]",),
    _overrides_are_first_types,
    keeps={"overridePaymentType[VISA]": "PA"},
    breaks={"overridePaymentType[VISA]": "CP"},
)

_BASIC = s.BASIC_PAYMENT.without("referenceUuid").needing(amount=C, currency=C, paymentType=C, paymentBrand=O)
_OTHERS = (s.PAYMENT_PAGE, s.TEST_MODE, *s.REQUEST_STRUCTURES_OF_CHECKOUTS, s.ACCOUNT_UPDATER)

CREATE_CHECKOUT_ENDPOINT = Endpoint(
    name="checkout",
    method="POST",
    path="/v1/checkouts",
    title="Create a checkout",
    about="Prepare a payment that the shopper makes in the widget. The id works for 30 minutes.",
    operation="checkout",
    scope="payments",
    structures=(REQUIRED_ENTITY, _BASIC, *_OTHERS),
    rules=(NO_TEST_MODE_IN_LIVE, REFUSE_FOLLOW_UP_TYPES, CHECKOUT_MONEY, CHECKOUT_OVERRIDES, *c.FOR_CHECKOUTS),
)

UPDATE_CHECKOUT_ENDPOINT = Endpoint(
    name="update-checkout",
    method="POST",
    path="/v1/checkouts/{id}",
    title="Update a checkout",
    about="Change what a checkout was created with, until it is paid: a name that is sent replaces the earlier value.",
    operation="checkout",
    scope="payments",
    structures=(REQUIRED_ENTITY, _BASIC.without("overridePaymentType[brand]"), *_OTHERS),
)

_FORM_ABOUT = (
    "The widget sends this from the shopper's browser, without a token: the checkout's id is the capability, and the "
    "answer tells the state only. With a token it answers like a payment, and customParameters need no SHOPPER_."
)
_SUBMITTED = (REQUIRED_ENTITY, *s.BROWSER_STRUCTURES)

PAY_CHECKOUT_ENDPOINT = Endpoint(
    name="pay-checkout",
    method="POST",
    path="/v1/checkouts/{id}/payment",
    title="Pay a checkout",
    about=_FORM_ABOUT,
    operation="payment",
    scope="payments",
    structures=_SUBMITTED,
)

CHECKOUT_STATUS_ENDPOINT = Endpoint(
    name="checkout-status",
    method="GET",
    path="/v1/checkouts/{id}/payment",
    title="Read a checkout's payment",
    about="000.200.000 without an id until the shopper pays, then the payment object, until the checkout ends.",
    operation="status",
    scope="read",
    structures=(REQUIRED_ENTITY,),
)

STORE_CHECKOUT_ENDPOINT = Endpoint(
    name="store-checkout",
    method="POST",
    path="/v1/checkouts/{id}/registration",
    title="Store a card by a checkout",
    about=_FORM_ABOUT,
    operation="payment",
    scope="payments",
    structures=_SUBMITTED,
)

CHECKOUT_REGISTRATION_ENDPOINT = Endpoint(
    name="checkout-registration",
    method="GET",
    path="/v1/checkouts/{id}/registration",
    title="Read a checkout's registration",
    about="000.200.000 without an id until the shopper has stored a card, then the registration.",
    operation="status",
    scope="read",
    structures=(REQUIRED_ENTITY,),
)
