"""`tollhouse trigger`: makes the payment or change that causes a webhook, in the test environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tollhouse._model import Answer
from tollhouse._sync.client import Tollhouse
from tollhouse.models import Payment, Registration, Schedule
from tollhouse.parameters import CardParameters

APPROVED_CARD: Final[CardParameters] = {
    "number": "4200000000000000",
    "holder": "Jane Jones",
    "expiryMonth": "05",
    "expiryYear": "2034",
    "cvv": "123",
}
DECLINED_CARD: Final[CardParameters] = {**APPROVED_CARD, "number": "4000015500000005"}


def pay(gateway: Tollhouse, payment_type: str = "DB", card: CardParameters = APPROVED_CARD) -> Payment:
    """A payment of 92.00 EUR by card."""
    return gateway.payments.create(
        amount="92.00", currency="EUR", paymentBrand="VISA", paymentType=payment_type, card=card
    )


def _capture(gateway: Tollhouse) -> Payment:
    return gateway.payments.capture(pay(gateway, "PA").id, amount="50.00", currency="EUR")


def _refund(gateway: Tollhouse) -> Payment:
    return gateway.payments.refund(pay(gateway).id, amount="10.00", currency="EUR")


def _await_transfer(gateway: Tollhouse) -> Payment:
    return gateway.payments.create(amount="92.00", currency="EUR", paymentBrand="PREPAYMENT", paymentType="DB")


def _register(gateway: Tollhouse) -> Registration:
    return gateway.registrations.create(paymentBrand="VISA", card=APPROVED_CARD)


def _schedule(gateway: Tollhouse) -> Schedule:
    return gateway.schedules.create(
        registrationId=_register(gateway).id,
        amount="9.90",
        currency="EUR",
        paymentType="DB",
        job={"month": "*", "dayOfMonth": "1", "hour": "6"},
    )


EVENTS: Final[Mapping[str, tuple[str, Callable[[Tollhouse], Answer]]]] = {
    "payment.created": ("an approved payment", pay),
    "payment.authorised": ("a reservation", lambda gateway: pay(gateway, "PA")),
    "payment.declined": ("a declined payment", lambda gateway: pay(gateway, card=DECLINED_CARD)),
    "payment.captured": ("a reservation, and a capture of a part", _capture),
    "payment.refunded": ("a payment, and a refund of a part", _refund),
    "payment.reversed": ("a reservation, reversed", lambda gateway: gateway.payments.reverse(pay(gateway, "PA").id)),
    "payment.pending": ("a prepayment that waits for its money", _await_transfer),
    "payment.arrived": (
        "a prepayment whose money arrives",
        lambda gateway: gateway.test.decide_transfer(_await_transfer(gateway).id, "arrived"),
    ),
    "registration.created": ("a stored card", _register),
    "registration.deleted": (
        "a stored card that is deleted",
        lambda gateway: gateway.registrations.delete(_register(gateway).id),
    ),
    "schedule.created": ("a monthly subscription", _schedule),
    "schedule.ended": (
        "a subscription, and notice",
        lambda gateway: gateway.schedules.deschedule(_schedule(gateway).id),
    ),
}
"""Event → what it makes, and how."""
