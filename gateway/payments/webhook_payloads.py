"""Webhook payloads: the payment or registration as the API would have answered at that moment, plus webhook-only
fields. Source: decisions, section 6; Part A, Events; Part B, Payment response (referencedId).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models import Q

from gateway.core import clock, identifiers
from gateway.models import Notification, Payment, PaymentEvent, Registration, RiskDecision, Status
from gateway.notifications import claims, delivery, payload_format, retention
from gateway.notifications.payload_format import WebhookPayload
from gateway.outbound.address_guard import MAX_URL_CHARS
from gateway.payments.descriptors import prefetch_channels
from gateway.payments.rendering import (
    render_payment,
    render_registration,
    render_registration_change,
    resolve_result_code,
)
from gateway.payments.shopper_return import build_resource_path, build_shopper_return_url
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE, creates_registration
from gateway.payments.states import FINAL_STATUSES
from gateway.risk.evaluation import format_score
from gateway.timers import due_times, wakeup
from gateway.timers.registry import MerchantTimer, Timer

_OF_REGISTRATIONS: Final = frozenset({REGISTRATION_PAYMENT_TYPE, "RR", "TE", "DR"})
_ACQUIRER_ANSWER_FIELDS: Final = ("avs", "cvv", "resultDetails", "facts", "redirect")
"""Fields that an acquirer's answer adds: left out of payloads about a moment before it."""

log = structlog.get_logger(__name__)


PayloadSource = Callable[[Sequence[Notification]], Mapping[int, Mapping[str, Any]]]
"""Renders notifications about something else than a payment: the id of a notification → its payload."""
_PAYLOAD_SOURCES: Final[dict[str, PayloadSource]] = {}


def register_payload_source(kind: str, source: PayloadSource) -> None:
    """Register what renders notifications of ``kind``; the module that writes them calls this when it is loaded."""
    _PAYLOAD_SOURCES[kind] = source


def build_webhook_payloads(
    notifications: Sequence[Notification], payload_ids: Collection[int]
) -> dict[int, WebhookPayload]:
    """Render the payloads of notifications; see gateway.notifications.payload_format.PayloadBuilder."""
    others = [row for row in notifications if row.kind in _PAYLOAD_SOURCES]
    paid = [row for row in notifications if row.kind not in _PAYLOAD_SOURCES]
    return _build_payment_payloads(paid, payload_ids) | _build_other_payloads(others, payload_ids)


def _build_other_payloads(
    notifications: Sequence[Notification], payload_ids: Collection[int]
) -> dict[int, WebhookPayload]:
    payloads: dict[int, WebhookPayload] = {}
    for kind, source in _PAYLOAD_SOURCES.items():
        mine = {row.pk: row for row in notifications if row.kind == kind and row.pk in payload_ids}
        for ident, payload in source(list(mine.values())).items() if mine else ():
            text = payload_format.serialize_payload(
                kind, mine[ident].action, {**payload, "buildNumber": settings.GATEWAY_BUILD_NUMBER}
            )
            payloads[ident] = WebhookPayload(text=text)
    return payloads


def _build_payment_payloads(
    notifications: Sequence[Notification], payload_ids: Collection[int]
) -> dict[int, WebhookPayload]:
    rendered_ids = {row.payment_id for row in notifications if row.pk in payload_ids}
    other_ids = {row.payment_id for row in notifications} - rendered_ids
    rows = Payment.objects.filter(
        Q(pk__in=rendered_ids) | Q(pk__in=other_ids, request__has_key="notificationUrl")
        if other_ids
        else Q(pk__in=rendered_ids)
    )
    payments: dict[UUID | None, Payment] = {payment.pk: payment for payment in rows}
    prefetch_channels(payments[ident] for ident in rendered_ids if ident in payments)
    events = _load_events(notifications, payments)
    registrations = _load_registrations(notifications, payload_ids)
    decisions = _load_decisions(notifications, payload_ids)
    payloads: dict[int, WebhookPayload] = {}
    for notification in notifications:
        ident = notification.payment_id
        if ident not in payments:
            continue
        payment = payment_at_event(payments[ident], events.get((ident, notification.sequence)))
        try:
            text = ""
            if notification.pk in payload_ids:
                payload = render_webhook_payload(
                    notification,
                    payment,
                    registration=registrations.get(notification.registration),
                    decision=decisions.get(ident),
                )
                text = payload_format.serialize_payload(notification.kind, notification.action, payload)
            payloads[notification.pk] = WebhookPayload(text=text, return_url=_build_return_url(notification, payment))
        except Exception:  # one that cannot be rendered must not hold back all that follow
            log.exception("webhook_payload_not_built", notification=notification.pk)
    return payloads


def _load_events(
    notifications: Sequence[Notification], payments: Mapping[UUID | None, Payment]
) -> dict[tuple[UUID | None, int], PaymentEvent]:
    """The events, by (payment, sequence), of payments that have moved since their notification was written."""
    moved = {
        row.payment_id
        for row in notifications
        if (payment := payments.get(row.payment_id)) is not None and payment.sequence != row.sequence
    }
    if not moved:
        return {}
    events = PaymentEvent.objects.filter(payment__in=moved)
    return {(event.payment_id, event.sequence): event for event in events}


def _load_registrations(
    notifications: Sequence[Notification], payload_ids: Collection[int]
) -> dict[UUID | None, Registration]:
    wanted = [row.registration for row in notifications if row.registration is not None and row.pk in payload_ids]
    if not wanted:
        return {}
    return {row.pk: row for row in Registration.objects.filter(pk__in=wanted).select_related("network_token")}


def _load_decisions(
    notifications: Sequence[Notification], payload_ids: Collection[int]
) -> dict[UUID | None, RiskDecision]:
    wanted = [row.payment_id for row in notifications if row.kind == "RISK" and row.pk in payload_ids]
    return {row.payment_id: row for row in RiskDecision.objects.filter(pk__in=wanted)} if wanted else {}


def payment_at_event(payment: Payment, event: PaymentEvent | None) -> Payment:
    """``payment`` as it was at ``event``; unchanged if that is its last event, or None.

    Undone are the status, the result, and the fields that later answers added.
    """
    if event is None or event.sequence == payment.sequence:
        return payment
    then = copy.copy(payment)
    then.status, then.result_code, then.sequence = event.status, event.result_code, event.sequence
    then.expired_at = then.returned_at = None
    if event.status == Status.DECLINED and payment.status == Status.APPROVED:  # a bank booked it afterwards
        then.approved_amount = None
        if payment.request.get("createRegistration") == "true":
            then.registration = None
    if event.status not in FINAL_STATUSES:
        then.approved_amount = None
        then.expires_at = None
        then.completed_at = None
        then.answer = {name: value for name, value in payment.answer.items() if name not in _ACQUIRER_ANSWER_FIELDS}
        if payment.status == Status.APPROVED and payment.request.get("createRegistration") == "true":
            then.registration = None
    return then


def render_webhook_payload(
    notification: Notification,
    payment: Payment,
    *,
    registration: Registration | None = None,
    decision: RiskDecision | None = None,
) -> dict[str, Any]:
    """The API's response about ``payment``, envelope included, plus webhook-only fields."""
    if notification.kind == "REGISTRATION" and registration is not None:
        body = _render_registration_body(payment, registration)
    else:
        body = render_payment(payment)
    if notification.kind == "RISK" and decision is not None:
        body["risk"] = {**body.get("risk", {}), "outcome": decision.outcome}
        if decision.score is not None:
            body["risk"]["score"] = format_score(decision.score)
    if payment.referenced is not None:
        body["referencedId"] = payment.referenced.hex
    return body | {
        "authentication": {"entityId": notification.channel_id.hex},
        "shortId": identifiers.format_short_id(payment.number),
        "source": "CHECKOUT" if payment.resource_path.startswith("/v1/checkouts/") else "API",
        "paymentMethod": payment.method,
        "merchantAccountId": payment.acquirer_merchant_id or notification.channel_id.hex,
        "sequence": notification.sequence,
        "buildNumber": settings.GATEWAY_BUILD_NUMBER,
        "timestamp": clock.format_timestamp(notification.created_at),
        "ndc": identifiers.format_ndc(payment.request_id, payment.channel_id.hex),
    }


def _render_registration_body(payment: Payment, registration: Registration) -> dict[str, Any]:
    """The body of the registration endpoints; for a registration created by a payment, its stored state."""
    if payment.payment_type in _OF_REGISTRATIONS:
        body = render_registration_change(payment)
    else:
        body = render_registration(registration, resolve_result_code(payment))
    return body | {"id": registration.pk.hex}


def _build_return_url(notification: Notification, payment: Payment) -> str:
    """The deprecated notificationUrl with id and resourcePath once the result is final, else ''."""
    url: str = payment.request.get("notificationUrl", "")
    if not url or notification.kind not in ("PAYMENT", "REGISTRATION") or payment.status not in FINAL_STATUSES:
        return ""
    if notification.kind == "REGISTRATION" and not (
        payment.payment_type == REGISTRATION_PAYMENT_TYPE and creates_registration(payment)
    ):
        return ""
    address = build_shopper_return_url(url, build_resource_path(payment))
    if len(address) > MAX_URL_CHARS:  # percent-encoding takes up to twelve characters for one letter
        log.warning("notification_url_too_long", payment=payment.pk.hex, characters=len(address))
        return ""
    return address


TIMER: Final = MerchantTimer(
    name=wakeup.WEBHOOK_TIMER,
    about="Tell merchants' endpoints what happened, and again those that did not answer.",
    run=partial(delivery.deliver_due_webhooks, build_webhook_payloads),
    next_at=delivery.next_webhook_at,
    earliest_due=claims.EARLIEST_DUE_WEBHOOK,
    at_once=2,
)
"""Delivers the outbox of webhooks. A wake-up after each commit keeps the usual delay at milliseconds."""

SWEEP_TIMER: Final = Timer(
    name="webhook sweep",
    about="Forget webhooks that ended long ago.",
    run=lambda: retention.purge_webhook_deliveries(clock.real_now()),
    every_s=60.0,
    earliest_due=f"""
        SELECT least(
            (SELECT statement_timestamp() FROM gateway_webhookdelivery WHERE state = 'waiting' AND give_up_at
                <= statement_timestamp() + (SELECT greatest(max(clock_offset), interval '0') FROM gateway_merchant)
                ORDER BY give_up_at LIMIT 1),
            (SELECT statement_timestamp() FROM gateway_webhookdelivery
                WHERE id < {due_times.lowest_id_since_sql(timedelta(days=settings.GATEWAY_WEBHOOK_DAYS))}
                ORDER BY id LIMIT 1))""",  # noqa: S608 - a constant
)
