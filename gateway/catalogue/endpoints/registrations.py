"""Registrations (stored means of payment), and paying with one. Source: Part A, Endpoints; rulings D5, D29."""

from __future__ import annotations

from dataclasses import replace

from gateway.catalogue import conditions as c
from gateway.catalogue import structures as s
from gateway.catalogue.endpoints.endpoint import NO_TEST_MODE_IN_LIVE, REQUIRED_ENTITY, Endpoint
from gateway.catalogue.endpoints.payments import REFUSE_FOLLOW_UP_TYPES
from gateway.catalogue.structure import ALWAYS, NEVER, C, structure

_REGISTERED = (s.CARD, s.BANK_ACCOUNT, s.VIRTUAL_ACCOUNT)
_NOT_REGISTERED = (*s.WALLETS, s.TOKEN_ACCOUNT, s.GIFT_CARD, s.JOB, s.CHARGEBACK)
_HOLDERS = (
    s.CARD.without("number", "expiryMonth", "expiryYear", "numberType").demanding(NEVER),
    s.BANK_ACCOUNT.without(*(row.name for row in s.BANK_ACCOUNT.rows if row.name != "holder")).demanding(NEVER),
)
"""Parameters allowed in addition to a registration that is the means itself (D29)."""

CREATE_REGISTRATION_ENDPOINT = Endpoint(
    name="registration",
    method="POST",
    path="/v1/registrations",
    title="Store a means of payment",
    about="Store a card, a bank account or a virtual account; payments name it by the id of the answer.",
    operation="registration",
    scope="payments",
    structures=(
        REQUIRED_ENTITY,
        s.BASIC_PAYMENT.without("overridePaymentType[brand]", "referenceUuid")
        .needing(amount=C, currency=C, paymentType=C)
        .demanding(ALWAYS),
        s.TEST_MODE,
        s.TOKENIZATION.without("overrideHolder"),
        s.ACCOUNT_UPDATER,
        *(one for one in s.REQUEST_STRUCTURES_OF_PAYMENTS if one not in _NOT_REGISTERED and one is not s.TOKENIZATION),
    ),
    rules=(NO_TEST_MODE_IN_LIVE, *c.FOR_REGISTRATIONS),
)
READ_REGISTRATION_ENDPOINT = Endpoint(
    name="read-registration",
    method="GET",
    path="/v1/registrations/{id}",
    title="Read a registration",
    about="What is stored, without numbers. A deleted one answers 100.150.202.",
    operation="status",
    scope="read",
    structures=(REQUIRED_ENTITY,),
)
UPDATE_REGISTRATION_ENDPOINT = Endpoint(
    name="update-registration",
    method="POST",
    path="/v1/registrations/{id}",
    title="Update a registration",
    about="Change what is stored, e.g. a card's expiry. What is not sent stays.",
    operation="registration",
    scope="payments",
    structures=(
        REQUIRED_ENTITY,
        structure("Basic payment", "Part A", "", s.BASIC_PAYMENT.names["paymentBrand"], demand=NEVER),
        # Stored data need not be sent again, so no row is required by another.
        *(replace(one.demanding(NEVER), rules=()) for one in _REGISTERED),
        s.ACCOUNT_UPDATER,
        s.CUSTOMER,
        s.BILLING,
        s.CUSTOM_PARAMETERS,
    ),
    rules=(*c.CARD_CHECKS, *c.NUMBER_ONLY_ONCE),
)
DELETE_REGISTRATION_ENDPOINT = Endpoint(
    name="delete-registration",
    method="DELETE",
    path="/v1/registrations/{id}",
    title="Delete a registration",
    about="Erase the stored number for good; payments made with it stay.",
    operation="registration",
    scope="payments",
    structures=(REQUIRED_ENTITY,),
)
EXTEND_REGISTRATION_ENDPOINT = Endpoint(
    name="extend-registration",
    method="POST",
    path="/v1/registrations/{id}/extend",
    title="Extend a registration",
    about="Begin the channel's retention period anew. Without one there is nothing to extend, and it succeeds.",
    operation="registration",
    scope="payments",
    structures=(REQUIRED_ENTITY,),
)
ONE_CLICK_ENDPOINT = Endpoint(
    name="one-click",
    method="POST",
    path="/v1/registrations/{id}/payments",
    title="Pay with a registration",
    about="A payment (DB, PA, CD) by what is stored; no number is sent, and a CVV only if you have one.",
    operation="payment",
    scope="payments",
    structures=(
        REQUIRED_ENTITY,
        s.BASIC_PAYMENT.without("overridePaymentType[brand]", "referenceUuid").demanding(ALWAYS),
        s.TEST_MODE,
        s.TOKENIZATION.without("createRegistration"),
        *_HOLDERS,
        s.GIFT_CARD,
        *s.THREE_D_SECURE,
        s.SCHEME_DATA,
        s.JOB,
        *s.REQUEST_STRUCTURES_OF_FOLLOW_UPS,
    ),
    rules=(NO_TEST_MODE_IN_LIVE, REFUSE_FOLLOW_UP_TYPES, *c.FOR_ONE_CLICK),
)
