"""A payment as it was at an earlier move of it, for notifications that are sent late."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from gateway.core import clock, identifiers
from gateway.models import Notification, Payment, PaymentEvent, Status
from gateway.payments import webhook_payloads
from gateway.payments.webhook_payloads import payment_at_event, render_webhook_payload
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
LATER = {"resultDetails": {"AcquirerResponse": "00"}, "avs": "F", "cvv": "M", "facts": {"risk": {"score": "1"}}}
KEPT = {"card": {"bin": "420000", "last4Digits": "0000"}}


def moved_on(shop: Shop, status: Status = Status.APPROVED, **request: str) -> Payment:
    """A payment at its fifth move, with everything that moves add."""
    payment = Payment.objects.get(pk=shop.api.pay(paymentType="PA", **request).id)
    now = payment.created_at
    payment.status, payment.sequence, payment.result_code = status, 5, "000.100.110"
    payment.approved_amount = Decimal("60.00")
    payment.completed_at, payment.expires_at = now + SECOND, now + timedelta(days=7)
    payment.expired_at, payment.returned_at = now + timedelta(days=8), now + timedelta(days=9)
    payment.answer = KEPT | LATER
    payment.registration = identifiers.row_id()
    return payment


def event(status: Status, code: str, sequence: int) -> PaymentEvent:
    return PaymentEvent(sequence=sequence, event="x", status=status, result_code=code, at=clock.real_now())


def shown(payment: Payment) -> dict[str, Any]:
    names = ("status", "result_code", "sequence", "approved_amount", "completed_at", "expires_at", "expired_at")
    return {name: getattr(payment, name) for name in (*names, "returned_at", "registration", "answer")}


def test_at_its_last_move_or_without_one_it_is_as_it_is(shop: Shop) -> None:
    now = moved_on(shop)
    assert payment_at_event(now, None) is now
    assert payment_at_event(now, event(Status.APPROVED, "000.100.110", 5)) is now


@pytest.mark.parametrize("status", [Status.STARTED, Status.PENDING, Status.IN_DOUBT])
@pytest.mark.parametrize("creates", ["true", None])
def test_before_its_result_it_shows_nothing_that_came_with_the_result(
    shop: Shop, status: Status, creates: str | None
) -> None:
    now = moved_on(shop, **({"createRegistration": creates} if creates else {}))
    before = shown(now)
    assert shown(payment_at_event(now, event(status, "000.200.000", 2))) == {
        "status": status,
        "result_code": "000.200.000",
        "sequence": 2,
        "approved_amount": None,
        "completed_at": None,
        "expires_at": None,
        "expired_at": None,
        "returned_at": None,
        "registration": None if creates else now.registration,
        "answer": KEPT,
    }
    assert shown(now) == before, "the row itself stays"


def test_at_its_result_it_shows_what_came_with_it_and_not_what_came_later(shop: Shop) -> None:
    now = moved_on(shop)
    then = shown(payment_at_event(now, event(Status.APPROVED, "000.100.112", 3)))
    changed = {"result_code": "000.100.112", "sequence": 3, "expired_at": None, "returned_at": None}
    assert then == shown(now) | changed


@pytest.mark.parametrize("creates", ["true", None])
def test_a_decline_before_a_late_booking_granted_and_stored_nothing(shop: Shop, creates: str | None) -> None:
    now = moved_on(shop, **({"createRegistration": creates} if creates else {}))
    then = payment_at_event(now, event(Status.DECLINED, "800.100.151", 3))
    assert (then.status, then.approved_amount) == (Status.DECLINED, None)
    assert then.registration == (None if creates else now.registration)
    declined = moved_on(shop, Status.DECLINED)
    assert payment_at_event(declined, event(Status.DECLINED, "800.100.151", 3)).approved_amount == Decimal("60.00")


@pytest.mark.parametrize(
    ("path", "account", "source", "shown_account"),
    [
        ("", "", "API", "channel"),
        ("/v1/checkouts/ABC/payment", "ACCT", "CHECKOUT", "ACCT"),
        ("/v1/payments/ABC", "ACCT", "API", "ACCT"),
    ],
)
def test_a_notification_says_when_it_was_written_where_the_payment_came_from_and_whose_it_is(
    shop: Shop, path: str, account: str, source: str, shown_account: str
) -> None:
    payment = moved_on(shop)
    payment.resource_path, payment.acquirer_merchant_id = path, account
    written = payment.created_at + timedelta(hours=3)
    notification = Notification(
        merchant=shop.merchant, channel=shop.channel, kind="PAYMENT", action="UPDATED", payment_id=payment.pk,
        sequence=4, created_at=written,
    )  # fmt: skip
    body = render_webhook_payload(notification, payment)
    assert body["timestamp"] == clock.format_timestamp(written)
    assert (body["source"], body["sequence"]) == (source, 4)
    assert body["merchantAccountId"] == (shop.channel.entity_id if shown_account == "channel" else shown_account)


def test_only_what_has_moved_on_since_it_was_told_is_looked_up(shop: Shop) -> None:
    still, moved = (Payment.objects.get(pk=shop.api.pay().id) for _ in range(2))
    told = [
        Notification(payment_id=still.pk, sequence=still.sequence),
        Notification(payment_id=moved.pk, sequence=moved.sequence - 1),
        Notification(payment_id=identifiers.row_id(), sequence=1),
        Notification(payment_id=None, sequence=1),
    ]
    events = webhook_payloads._load_events(told, {one.pk: one for one in (still, moved)})
    assert {ident for ident, _ in events} == {moved.pk}
    assert sorted(number for _, number in events) == list(range(1, moved.sequence + 1))
    assert webhook_payloads._load_events(told[:1], {still.pk: still}) == {}
