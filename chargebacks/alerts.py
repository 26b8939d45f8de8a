"""Alerts and inquiries: what comes before a dispute, and the merchant's choice to refund or to let it go.

A refund ends an alert: the issuer does not charge back, so the payment counts in no dispute rate. A chargeback that
comes nevertheless is entered like any other, and its case says what was refunded before. Every move is a
compare-and-set with its webhook; a chargeback closes an open alert in the statement that opens its case
(chargebacks.cases). Source: docs/decisions/0072.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import structlog
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from chargebacks.cases import compute_refunded_before
from chargebacks.evidence_checklist import OTHER_CHARGEBACK_REASON, is_chargeback_reason
from chargebacks.models import Chargeback, DisputeAlert
from chargebacks.notes import (
    ABOVE_LIMIT_NOTE,
    NO_RIGHT_TO_REFUND_NOTE,
    REFUND_DECLINED_NOTE,
    REFUNDED_BEFORE_NOTE,
    REFUNDED_NOTE,
    translate_note,
)
from chargebacks.stages import find_inquiry_days
from gateway.access import audit_log, permissions
from gateway.backoffice.access.independence import MOVE_MONEY_PERMISSION
from gateway.backoffice.follow_ups.clerk_limits import Clerk, ClerkLimitExceededError
from gateway.backoffice.follow_ups.manual_follow_up import FollowUpNotPossibleError, FollowUpOrder, execute_follow_up
from gateway.core import clock, identifiers
from gateway.core.money import format_amount
from gateway.db.database_clock import read_database_time
from gateway.models import Merchant, Notification, Payment, Status
from gateway.payments.chain_amounts import ZERO_AMOUNT, Chain, compute_refundable_amount
from gateway.payments.follow_ups import load_chain
from gateway.payments.network_brands import find_network_brand
from gateway.payments.states import FINAL_STATUSES
from gateway.payments.webhook_payloads import register_payload_source
from gateway.timers import wakeup

ALERT_WEBHOOK_KIND: Final = "ALERT"
ALERT_ANSWER_TIME: Final = timedelta(hours=72)
"""Where the provider names no time. Alert services give 24 to 72 hours; the one that was sent always comes first."""
REFUND_ABANDONED_AFTER: Final = timedelta(seconds=60)
"""An alert whose refund has no payment after this time has lost its worker; the timer sends it, with the same id."""
MAX_ALERTS_PER_RUN: Final = 200
ALERTED_TYPES: Final = frozenset({"DB", "CP", "RB"})
AlertState = DisputeAlert.State
log = structlog.get_logger(__name__)


class AlertNotPossibleError(Exception):
    """The alert cannot be recorded or moved like that; the text may be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFacts:
    """What the provider sent. ``respond_by``: None for the kind's usual time."""

    provider: str
    reference: str
    amount: Decimal
    currency: str
    kind: DisputeAlert.Kind = DisputeAlert.Kind.ALERT
    reason: str = OTHER_CHARGEBACK_REASON
    scheme_reason: str = ""
    respond_by: datetime | None = None


def _find_answer_time(kind: DisputeAlert.Kind, brand: str) -> timedelta:
    return timedelta(days=find_inquiry_days(brand)) if kind == DisputeAlert.Kind.INQUIRY else ALERT_ANSWER_TIME


def record_alert(disputed: Payment, facts: AlertFacts, by: audit_log.Actor) -> tuple[DisputeAlert, bool]:
    """Record an alert about ``disputed``, loaded with its merchant. Returns it, and whether this call made it: the same
    reference again is the same alert. What was refunded before is REFUNDED at once. Raises AlertNotPossibleError."""
    _check_facts(disputed, facts)
    merchant, now = disputed.merchant, clock.merchant_now(disputed.merchant)
    refunded = _is_refunded(disputed, facts.amount)
    row = DisputeAlert(
        merchant_id=disputed.merchant_id,
        channel_id=disputed.channel_id,
        disputed=disputed.id,
        chain=disputed.chain,
        kind=facts.kind,
        state=AlertState.REFUNDED if refunded else AlertState.OPEN,
        provider=facts.provider,
        reference=facts.reference,
        reason_code=facts.reason,
        scheme_reason=facts.scheme_reason,
        amount=facts.amount,
        currency=facts.currency,
        opened_at=now,
        due_at=facts.respond_by or now + _find_answer_time(facts.kind, find_network_brand(disputed)),
        closed_at=now if refunded else None,
        remind_at=None if refunded else now,
        moved_at=read_database_time(),
        note=REFUNDED_BEFORE_NOTE if refunded else "",
    )
    same = DisputeAlert.objects.filter(merchant=merchant, provider=facts.provider, reference=facts.reference)
    if (known := same.first()) is not None:
        return known, False
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            _notify(row, "CREATED", now)
            audit_log.record_audit_entry(by, "alert recorded", row, after=_describe(row))
    except IntegrityError:
        return same.get(), False
    wakeup.notify_timer(wakeup.WEBHOOK_TIMER)
    return row, True


def explain_no_alert(disputed: Payment) -> str:
    """Why no alert about this payment can be recorded; '' if one can."""
    if disputed.status != Status.APPROVED or disputed.payment_type not in ALERTED_TYPES:
        return _("Alerts are about approved debits, captures and rebills.")
    if Chargeback.objects.filter(disputed=disputed.id).exists():
        return _("This payment is charged back already: answer the dispute.")
    return ""


def _check_facts(disputed: Payment, facts: AlertFacts) -> None:
    if why := explain_no_alert(disputed):
        raise AlertNotPossibleError(why)
    if facts.currency != disputed.currency or facts.amount <= 0:
        raise AlertNotPossibleError(_("Amount: above 0, in %s like the payment.") % disputed.currency)
    if not facts.provider or not facts.reference:
        raise AlertNotPossibleError(_("An alert has a provider and its id there."))
    if not is_chargeback_reason(facts.reason):
        raise AlertNotPossibleError(_("Reason: choose one of the list."))


def refund_alert(alert: DisputeAlert, clerk: Clerk) -> DisputeAlert:
    """Refund what the alert is about, as far as it is not refunded yet, within the clerk's limits. However often it is
    asked for there is one refund. Raises AlertNotPossibleError."""
    if alert.state == AlertState.OPEN:
        _require_in_time(alert)
        changes = {"refund": alert.refund or identifiers.row_id(), "refund_by": clerk.name[:150], "note": ""}
        if not _move(alert, AlertState.REFUNDING, **changes):
            alert.refresh_from_db()
    if alert.state != AlertState.REFUNDING:
        raise AlertNotPossibleError(_("The alert is closed, or was changed by somebody else. Look at it again."))
    _send_refund(alert, clerk.actor, clerk)
    if alert.state not in (AlertState.REFUNDING, AlertState.REFUNDED):
        raise AlertNotPossibleError(translate_note(alert.note))
    return alert


def let_alert_go(alert: DisputeAlert, by: audit_log.Actor, note: str) -> None:
    """Let the alert go: the dispute may come. An inquiry is answered. Raises AlertNotPossibleError."""
    state = AlertState.ANSWERED if alert.kind == DisputeAlert.Kind.INQUIRY else AlertState.LET_GO
    before = alert.state
    with transaction.atomic():
        if before != AlertState.OPEN or not _move(alert, state, note=note[:500]):
            raise AlertNotPossibleError(_("The alert is closed, or was changed by somebody else. Look at it again."))
        audit_log.record_audit_entry(by, "alert let go", alert, before={"state": before}, after=_describe(alert))


def close_inquiry(alert: DisputeAlert, state: str, note: str) -> bool:
    """Close an open inquiry by what its provider says. False if it is not open, or was moved meanwhile."""
    return alert.state == AlertState.OPEN and _move(alert, state, note=note[:500])


EARLIEST_OPEN_ALERT: Final = "SELECT min(opened_at) FROM chargebacks_disputealert WHERE state IN ('OPEN', 'REFUNDING')"
"""Past while an alert is open: each run looks whether its payment was refunded meanwhile."""


def work_on_alerts(merchant: Merchant | None = None) -> int:
    """Close alerts that were refunded or not answered in time, and send refunds whose worker stopped. Returns how many
    were moved."""
    rows = DisputeAlert.objects.select_related("merchant").filter(state__in=(AlertState.OPEN, AlertState.REFUNDING))
    rows = rows.filter(merchant=merchant) if merchant is not None else rows
    moved = 0
    # Refunds on their way first: however many alerts wait for a decision, none of them keeps a refund waiting.
    for alert in rows.order_by("-state", "due_at")[:MAX_ALERTS_PER_RUN]:
        try:
            moved += _work_on(alert)
        except Exception:  # one alert must not stop the others; it is looked at again by the next run
            log.exception("dispute_alert_failed", alert=alert.pk.hex)
    return moved


def _work_on(alert: DisputeAlert) -> bool:
    state = alert.state
    if state == AlertState.REFUNDING:
        if _find_refund(alert) is not None or read_database_time() - alert.moved_at > REFUND_ABANDONED_AFTER:
            _send_left_refund(alert)
        return alert.state != state
    if alert.chargeback is not None:  # it came while a refund was tried
        return _move(alert, AlertState.DISPUTED)
    disputed = Payment.objects.select_related("merchant", "channel").get(pk=alert.disputed)
    if _is_refunded(disputed, alert.amount):
        return _move(alert, AlertState.REFUNDED, note=REFUNDED_NOTE)
    if clock.merchant_now(alert.merchant) >= alert.due_at:
        return _move(alert, AlertState.EXPIRED)
    return False


def next_alert_deadline(merchant: Merchant) -> datetime | None:
    """The earliest deadline of this merchant's open alerts, by the merchant's clock."""
    rows = DisputeAlert.objects.filter(merchant=merchant, state=AlertState.OPEN).order_by("due_at")
    found: datetime | None = rows.values_list("due_at", flat=True).first()
    return found


# --- the refund ---------------------------------------------------------------------------------------------------


def _find_refund(alert: DisputeAlert) -> Payment | None:
    return Payment.objects.filter(pk=alert.refund).first() if alert.refund is not None else None


def _send_left_refund(alert: DisputeAlert) -> None:
    """Send a refund whose worker stopped, within the limits of the user who asked for it: nobody knows whether they
    were checked. A user without the right to refund has none sent, and the alert waits for another decision."""
    clerk = _find_asking_clerk(alert)
    if clerk is None and _find_refund(alert) is None:
        state = AlertState.OPEN if alert.chargeback is None else AlertState.DISPUTED
        _move(alert, state, note=NO_RIGHT_TO_REFUND_NOTE)
        return
    _send_refund(alert, audit_log.Actor(name=alert.refund_by), clerk)


def _find_asking_clerk(alert: DisputeAlert) -> Clerk | None:
    """The user who asked for the refund, with the limits of today; None without the right to refund."""
    user = User.objects.filter(username=alert.refund_by, is_active=True).first()
    if user is None:
        return None
    disputed = Payment.objects.select_related("merchant", "channel").get(pk=alert.disputed)
    try:
        limit, day = permissions.find_four_eyes_limits(user, MOVE_MONEY_PERMISSION, disputed)
    except LookupError:
        return None
    return Clerk(user=user.pk, name=user.get_username(), ip=None, limit=limit, day=day)


def _send_refund(alert: DisputeAlert, by: audit_log.Actor, clerk: Clerk | None) -> None:
    """Send the refund under the alert's id for it, unless it was sent before, and move the alert by its result.
    ``clerk``: None only for a refund that was sent before."""
    made, why = _find_refund(alert), ""
    if made is None:
        disputed = Payment.objects.select_related("merchant", "channel").get(pk=alert.disputed)
        amount = min(alert.amount - _compute_refunded(disputed), compute_refundable_amount(_load(disputed), disputed))
        try:
            if amount <= ZERO_AMOUNT:
                raise FollowUpNotPossibleError(_("Nothing is left of this payment to refund."))
            order = FollowUpOrder(target=disputed, code="RF", amount=amount)
            made = execute_follow_up(order, by, follow_up=alert.refund, alone=clerk)
        except ClerkLimitExceededError:
            why = ABOVE_LIMIT_NOTE
        except FollowUpNotPossibleError as fault:
            made, why = _find_refund(alert), str(fault)  # another worker may have sent it meanwhile
    if made is not None and made.status not in FINAL_STATUSES:
        return  # the timer looks again
    if made is not None and made.status == Status.APPROVED:
        _move(alert, AlertState.REFUNDED)
        return
    changes: dict[str, Any] = {"note": why[:500]}
    if made is not None:
        changes = {"refund": None, "note": REFUND_DECLINED_NOTE % {"code": made.result_code}}
    alert.refresh_from_db(fields=["chargeback"])
    _move(alert, AlertState.OPEN if alert.chargeback is None else AlertState.DISPUTED, **changes)


def _load(disputed: Payment) -> Chain:
    chain = load_chain(disputed.id, disputed.merchant, None)
    assert chain is not None
    return chain


def _compute_refunded(disputed: Payment) -> Decimal:
    return compute_refunded_before(_load(disputed), disputed)


def _is_refunded(disputed: Payment, amount: Decimal) -> bool:
    """Whether refunds and reversals that were approved gave the amount back."""
    chain = _load(disputed)
    waiting = any(one.payment_type in ("RF", "RV") and one.status not in FINAL_STATUSES for one in chain.members)
    return not waiting and compute_refunded_before(chain, disputed) >= amount


def _require_in_time(alert: DisputeAlert) -> None:
    if clock.merchant_now(alert.merchant) >= alert.due_at:
        raise AlertNotPossibleError(_("The deadline was %s UTC.") % f"{alert.due_at:%Y-%m-%d %H:%M}")


# --- moves and webhooks -------------------------------------------------------------------------------------------


def _move(alert: DisputeAlert, state: str, **changes: Any) -> bool:
    """Move the alert, with its webhook, if it is still as it was read. False, and nothing is written, otherwise."""
    now = clock.merchant_now(alert.merchant)
    changes |= {"state": state, "version": alert.version + 1, "moved_at": read_database_time()}
    if state not in (AlertState.OPEN, AlertState.REFUNDING):
        changes["closed_at"] = now
    with transaction.atomic():
        if not DisputeAlert.objects.filter(pk=alert.pk, version=alert.version, state=alert.state).update(**changes):
            return False
        for name, value in changes.items():
            setattr(alert, name, value)
        if state != AlertState.REFUNDING:  # the webhook comes with the refund's result
            _notify(alert, "UPDATED", now)
    wakeup.notify_timer(wakeup.WEBHOOK_TIMER)
    return True


def _notify(alert: DisputeAlert, action: str, at: datetime) -> None:
    Notification.objects.create(
        merchant_id=alert.merchant_id,
        channel_id=alert.channel_id,
        kind=ALERT_WEBHOOK_KIND,
        action=action,
        subject=alert.pk,
        sequence=alert.version,
        created_at=at,
    )


def _describe(alert: DisputeAlert) -> dict[str, str]:
    return {
        "kind": str(alert.kind),
        "state": str(alert.state),
        "amount": format_amount(alert.amount),
        "currency": alert.currency,
        "payment": alert.disputed.hex,
        "reference": f"{alert.provider} {alert.reference}",
    }


def _render_alert_payloads(notifications: Sequence[Notification]) -> Mapping[int, Mapping[str, Any]]:
    """The payloads of alert webhooks: the alert in the state it has when the message is made. A receiver keeps the
    highest sequence."""
    rows = DisputeAlert.objects.in_bulk([one.subject for one in notifications])
    return {one.pk: _render(one, rows[one.subject]) for one in notifications if one.subject in rows}


def _render(notification: Notification, alert: DisputeAlert) -> dict[str, Any]:
    return {
        "id": alert.pk.hex,
        "shortId": identifiers.format_short_id(alert.pk.int),
        "kind": alert.kind,
        "state": alert.state,
        "referencedId": alert.disputed.hex,
        "amount": format_amount(alert.amount),
        "currency": alert.currency,
        "reasonCode": alert.reason_code,
        **({"schemeReasonCode": alert.scheme_reason} if alert.scheme_reason else {}),
        "provider": alert.provider,
        "reference": alert.reference,
        "answerBy": clock.format_timestamp(alert.due_at),
        **({"refundId": alert.refund.hex} if alert.refund is not None else {}),
        **({"chargebackId": alert.chargeback.hex} if alert.chargeback is not None else {}),
        "authentication": {"entityId": notification.channel_id.hex},
        "sequence": notification.sequence,
        "timestamp": clock.format_timestamp(notification.created_at),
    }


register_payload_source(ALERT_WEBHOOK_KIND, _render_alert_payloads)
