"""Notifications in words: the payment or registration as the API would have answered at that moment, and what only a
notification carries. Source: decisions, section 6; Part A, Events; Part B, Payment response (referencedId).
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models import Q

from gateway import clock, identifiers
from gateway.due import Timer
from gateway.models import Notification, Payment, PaymentEvent, Registration, RiskDecision, Status
from gateway.notifications import delivery, record, sweep
from gateway.notifications.record import Told
from gateway.outbound.guard import MAX_URL
from gateway.payments.answer import code_of, payment_object, registration_object, stored_object
from gateway.payments.descriptors import fetch_channels
from gateway.payments.endings import REGISTER, registers
from gateway.payments.resume import back_to, resource_path
from gateway.risk.screening import score_text

SETTLED: Final = (Status.APPROVED, Status.DECLINED)
_OF_REGISTRATIONS: Final = frozenset({REGISTER, "RR", "TE", "DR"})
_LATER: Final = ("avs", "cvv", "resultDetails", "facts", "redirect")
"""What an acquirer's answer adds: not told of a moment before it."""

log = structlog.get_logger(__name__)


def tell(notifications: Sequence[Notification], told_to: Collection[int]) -> dict[int, Told]:
    """Put notifications into words; see gateway.notifications.record.Tell."""
    mine = {one.payment_id for one in notifications if one.pk in told_to}
    others = {one.payment_id for one in notifications} - mine
    asked = Payment.objects.filter(
        Q(pk__in=mine) | Q(pk__in=others, request__has_key="notificationUrl") if others else Q(pk__in=mine)
    )
    payments: dict[UUID | None, Payment] = {payment.pk: payment for payment in asked}
    fetch_channels(payments[one] for one in mine if one in payments)
    moments = _moments(notifications, payments)
    seen = _registrations(notifications, told_to)
    decided = _decisions(notifications, told_to)
    found: dict[int, Told] = {}
    for one in notifications:
        if one.payment_id not in payments:
            continue
        payment = as_of(payments[one.payment_id], moments.get((one.payment_id, one.sequence)))
        try:
            text = ""
            if one.pk in told_to:
                payload = payload_of(
                    one, payment, registration=seen.get(one.registration), decision=decided.get(one.payment_id)
                )
                text = record.text_of(one.kind, one.action, payload)
            found[one.pk] = Told(text=text, return_url=_return_url(one, payment))
        except Exception:  # one that cannot be told must not hold back all that follow
            log.exception("notification_not_told", notification=one.pk)
    return found


def _moments(
    notifications: Sequence[Notification], payments: Mapping[UUID | None, Payment]
) -> dict[tuple[UUID | None, int], PaymentEvent]:
    """The events of those payments that have moved on since they were to be told of."""
    moved = {
        one.payment_id
        for one in notifications
        if (payment := payments.get(one.payment_id)) is not None and payment.sequence != one.sequence
    }
    if not moved:
        return {}
    events = PaymentEvent.objects.filter(payment__in=moved)
    return {(event.payment_id, event.sequence): event for event in events}


def _registrations(notifications: Sequence[Notification], told_to: Collection[int]) -> dict[UUID | None, Registration]:
    wanted = [one.registration for one in notifications if one.registration is not None and one.pk in told_to]
    return {row.pk: row for row in Registration.objects.filter(pk__in=wanted)} if wanted else {}


def _decisions(notifications: Sequence[Notification], told_to: Collection[int]) -> dict[UUID | None, RiskDecision]:
    wanted = [one.payment_id for one in notifications if one.kind == "RISK" and one.pk in told_to]
    return {row.payment_id: row for row in RiskDecision.objects.filter(pk__in=wanted)} if wanted else {}


def as_of(payment: Payment, event: PaymentEvent | None) -> Payment:
    """``payment`` as it was at ``event``; as it is, where that is its last one (or None).

    Only what moved is taken back: the state, the result, and what the answers since have added.
    """
    if event is None or event.sequence == payment.sequence:
        return payment
    then = copy.copy(payment)
    then.status, then.result_code, then.sequence = event.status, event.result_code, event.sequence
    if event.status not in SETTLED:
        then.approved = None
        then.completed_at = None
        then.answer = {name: value for name, value in payment.answer.items() if name not in _LATER}
        if payment.status == Status.APPROVED and payment.request.get("createRegistration") == "true":
            then.registration = None
    return then


def payload_of(
    notification: Notification,
    payment: Payment,
    *,
    registration: Registration | None = None,
    decision: RiskDecision | None = None,
) -> dict[str, Any]:
    """The API's answer about ``payment``, envelope included, and what only notifications carry."""
    if notification.kind == "REGISTRATION" and registration is not None:
        body = _registration_body(payment, registration)
    else:
        body = payment_object(payment)
    if notification.kind == "RISK" and decision is not None:
        body["risk"] = {**body.get("risk", {}), "outcome": decision.outcome}
        if decision.score is not None:
            body["risk"]["score"] = score_text(decision.score)
    if payment.referenced is not None:
        body["referencedId"] = payment.referenced.hex
    return body | {
        "authentication": {"entityId": notification.channel_id.hex},
        "shortId": identifiers.short_id(payment.number),
        "source": "CHECKOUT" if payment.resource_path.startswith("/v1/checkouts/") else "API",
        "paymentMethod": payment.method,
        "merchantAccountId": payment.account or notification.channel_id.hex,
        "sequence": notification.sequence,
        "buildNumber": settings.GATEWAY_BUILD_NUMBER,
        "timestamp": clock.wire(notification.created_at),
        "ndc": identifiers.ndc(payment.request_id, payment.channel_id.hex),
    }


def _registration_body(payment: Payment, registration: Registration) -> dict[str, Any]:
    """What the registration's own endpoints answer; one that a payment made is told as it is stored."""
    if payment.payment_type in _OF_REGISTRATIONS:
        body = registration_object(payment)
    else:
        body = stored_object(registration, code_of(payment))
    return body | {"id": registration.pk.hex}


def _return_url(notification: Notification, payment: Payment) -> str:
    """The deprecated notificationUrl with id and resourcePath, once the result is final; '' when there is none."""
    url: str = payment.request.get("notificationUrl", "")
    if not url or notification.kind not in ("PAYMENT", "REGISTRATION") or payment.status not in SETTLED:
        return ""
    if notification.kind == "REGISTRATION" and not (payment.payment_type == REGISTER and registers(payment)):
        return ""
    address = back_to(url, resource_path(payment))
    if len(address) > MAX_URL:  # letters of other scripts take up to twelve characters in an address
        log.warning("notification_url_too_long", payment=payment.pk.hex, characters=len(address))
        return ""
    return address


TIMER: Final = Timer(
    name="webhooks",
    about="Tell merchants' endpoints what happened, and again those that did not answer.",
    run=partial(delivery.run, tell),
    next_at=delivery.next_at,
    at_once=2,
)
"""Hands the outbox on and delivers. A wake-up after a commit makes the usual delay milliseconds."""

SWEEP: Final = Timer(
    name="webhook sweep",
    about="Forget webhooks that ended long ago.",
    run=lambda merchant: sweep.sweep(clock.real()) if merchant is None else 0,
    every_s=60.0,
)
