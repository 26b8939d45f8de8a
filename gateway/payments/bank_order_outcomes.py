"""Applies bank order events to payments: orders that a bank booked, rejected, withdrew, returned, or won back.

Events are written when an order changes (gateway.connectors.sepa); here each moves its payment, once and in order. A
booked collection approves its payment, also one that was rejected before (docs/connectors/sepa.md, which message wins),
a rejected or withdrawn one declines it, the return of an approved one is a
chargeback (CB) with the bank's reason, and a reversed return its reversal (CR). A refund or payout that comes back is
noted on its payment, which counts no more. An event whose payment is still STARTED
or IN_DOUBT stays for the next round; one whose payment is archived brings its chain back. Source: Part A, States;
decisions, sections 4 and 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

import structlog
from django.db import IntegrityError, transaction

from gateway.connectors.acquirer_message import external_success_code
from gateway.connectors.port import AcquirerReply
from gateway.connectors.sepa import order_records
from gateway.connectors.sepa.bank_reasons import find_bank_reason
from gateway.connectors.sepa.connector import reply_from_bank_order
from gateway.core import clock
from gateway.core.money import Money
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE
from gateway.db.availability import is_database_away
from gateway.db.statement import WriteStatement, execute_sql
from gateway.models import BankMessage, BankOrder, BankOrderEvent, BankOrderFollowUp, Merchant, Payment, Status
from gateway.payments import acquirer_reported, store
from gateway.payments.chain_amounts import (
    Chain,
    can_be_charged_back,
    compute_disputed_amount,
    compute_representable_amount,
    find_charged_back_payment,
    resolve_payment_amount,
)
from gateway.payments.follow_ups import load_chain
from gateway.payments.job_hooks import JOB_HOOKS
from gateway.payments.outcomes import Booked, outcome_from_reply
from gateway.payments.payment_archive import bring_chain_back
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.states import PaymentTransitionError
from gateway.timers.registry import MerchantTimer

BANK_ORDER_EVENT_BATCH_SIZE: Final = 200
"""Events read at once; those that cannot be applied do not count towards a run's end."""
MAX_BANK_ORDER_EVENT_ROUNDS: Final = 10
"""At most so many events of one order are applied in one run of the timer."""
MAX_BANK_ORDER_EVENTS_PER_RUN: Final = 2_000
"""Events that one run applies; the next one goes on."""
BANK_ORIGIN: Final = "bank"
MAX_MESSAGE_FINDINGS: Final = 200
"""Findings stored with one bank message, including those of its parsing; beyond that the oldest are dropped."""

_BankOrderState = BankOrder.State
log = structlog.get_logger(__name__)

# Of each order the oldest event that is not applied yet (`applied`): later ones build on it. Of all orders, or of some.
_UNAPPLIED_EVENTS: Final = """
SELECT min(e.id) FROM gateway_bankorderevent e JOIN gateway_bankorder o ON o.payment = e.order_id
WHERE NOT e.applied AND (%(merchant)s::uuid IS NULL OR o.merchant_id = %(merchant)s::uuid)
    AND (%(orders)s::uuid[] IS NULL OR e.order_id = ANY(%(orders)s::uuid[]))
GROUP BY e.order_id HAVING min(e.id) > %(after)s ORDER BY 1 LIMIT %(limit)s
"""


def apply_bank_order_events(merchant: Merchant | None = None) -> int:
    """Apply unprocessed bank order events to their payments, of one merchant or all. Returns how many were applied.

    An event that fails or waits is looked at once in a run: later rounds go on with the orders of the one before.
    """
    applied = 0
    moved: list[UUID] | None = None
    for _ in range(MAX_BANK_ORDER_EVENT_ROUNDS):
        moved = _apply_oldest_of_each_order(merchant, moved, MAX_BANK_ORDER_EVENTS_PER_RUN - applied)
        applied += len(moved)
        if not moved:
            break
    return applied


def _apply_oldest_of_each_order(merchant: Merchant | None, orders: list[UUID] | None, most: int) -> list[UUID]:
    """Apply the oldest unprocessed event of each of ``orders`` (None: of all), ``most`` in all; the orders of which one
    was applied. Those that fail or wait are passed over: any number of them keeps no other order waiting."""
    moved: list[UUID] = []
    after = 0
    while len(moved) < most:
        values = {
            "merchant": merchant.pk if merchant is not None else None,
            "orders": orders,
            "after": after,
            "limit": min(BANK_ORDER_EVENT_BATCH_SIZE, most - len(moved)),
        }
        ids: list[int] = [row[0] for row in execute_sql(_UNAPPLIED_EVENTS, values)]
        if not ids:
            break
        moved += _apply_events(ids)
        after = ids[-1]
    return moved


def _apply_events(ids: Sequence[int]) -> list[UUID]:
    """Apply these events; the orders of those that were applied."""
    rows = BankOrderEvent.objects.select_related("order__file", "order__mandate").in_bulk(ids)
    moved: list[UUID] = []
    for ident in ids:
        try:
            if _apply_event(rows[ident]):
                moved.append(rows[ident].order_id)
        except Exception as fault:  # one payment must not keep the others waiting; its event is due again
            log.exception("bank_order_event_not_applied", event_id=ident, payment=rows[ident].order_id.hex)
            if not is_database_away(fault):
                _add_failure_finding(ident, fault)
    return moved


def _add_failure_finding(ident: int, fault: Exception) -> None:
    """Add a finding, once, about an event that may fail for good: later events of its order wait for it."""
    event = BankOrderEvent.objects.select_related("order").get(pk=ident)
    what = f"{_BankOrderState(event.state).label} could not be applied to its payment ({type(fault).__name__})"
    _add_finding(event, f"{what}: it is tried again")


def find_next_bank_order_event(merchant: Merchant) -> datetime | None:
    """When this merchant's next event is due: now while any is unprocessed, else None."""
    waiting = BankOrderEvent.objects.filter(applied=False, order__merchant=merchant).exists()
    return clock.merchant_now(merchant) if waiting else None


TIMER: Final = MerchantTimer(
    name=order_records.BANK_ANSWER_TIMER,
    run=apply_bank_order_events,
    next_at=find_next_bank_order_event,
    about="Tell payments what their banks have said.",
    earliest_due="SELECT statement_timestamp() FROM gateway_bankorderevent WHERE NOT applied LIMIT 1",
)


def _apply_event(event: BankOrderEvent) -> bool:
    """Move the payment of one event. True when the event is processed, False when it has to wait."""
    if event.order.kind == order_records.BankFileKind.RECALL:
        return _mark_applied(event)  # it has no payment: what it brings back is the transfer's own event
    payments = Payment.objects.select_related("merchant").filter(pk=event.order_id)
    payment = payments.first()
    if payment is None:
        bring_chain_back(event.order_id, event.order.merchant_id)
        payment = payments.get()
    if payment.status in (Status.STARTED, Status.IN_DOUBT):
        return False  # its first answer is being written, or recovery inquires about it
    if payment.status == Status.PENDING:
        return _complete_pending(event, payment)
    if event.state == _BankOrderState.RETURNED and payment.status == Status.APPROVED:
        if event.order.kind == order_records.BankFileKind.COLLECT:
            return _record_follow_up(event, "CB", payment, find_bank_reason(event.reason).returned)
        return _record_returned_transfer(event, payment)
    if event.state == _BankOrderState.WON_BACK:
        return _record_representment(event, payment)
    if payment.status == Status.DECLINED and event.state == _BankOrderState.BOOKED:
        return _record_late_booking(event, payment)
    return _mark_applied(event)


def _record_late_booking(event: BankOrderEvent, payment: Payment) -> bool:
    """Approve a declined payment whose order the bank booked nevertheless, with the schedule's run that it is for, and
    tell the clerk who reads the message: it may have been paid or sent again meanwhile."""
    _add_finding(event, f"the bank booked it after it was declined ({payment.result_code}): it is approved now")
    reply = _reply_at_event(event)
    now = clock.merchant_now(payment.merchant)
    try:
        with transaction.atomic():
            store.complete_payment(payment, Booked(reply=reply, at=now), kind="bank")
            JOB_HOOKS.get().record_late_booking(payment, now)
    except PaymentTransitionError:
        return False  # the payment changed meanwhile: the next round reads it again
    return _mark_applied(event)


def _record_returned_transfer(event: BankOrderEvent, payment: Payment) -> bool:
    """Note on a refund or payout that it came back, and tell the clerk who reads the message: the shopper waits."""
    # Before the event is applied: after a crash it is due again, and a finding is added once.
    _add_finding(
        event,
        f"{payment.payment_type} {payment.amount} {payment.currency} to the shopper came back "
        f"({event.reason or 'no reason told'})",
    )
    try:
        store.record_returned_transfer(
            payment, event.reason, at=clock.merchant_now(payment.merchant), bank_event=event.pk
        )
    except PaymentTransitionError:
        return False  # the payment changed meanwhile: the next round reads it again
    return True


def _complete_pending(event: BankOrderEvent, payment: Payment) -> bool:
    """Complete a payment that waits for the bank by this event's state, not by the order's present one."""
    try:
        outcome = outcome_from_reply(_reply_at_event(event), at=clock.merchant_now(payment.merchant))
        store.complete_payment(payment, outcome, kind="bank")
    except PaymentTransitionError:
        return False  # the payment changed meanwhile: the next round reads it again
    return _mark_applied(event)


def _reply_at_event(event: BankOrderEvent) -> AcquirerReply:
    """The bank's answer as of this event."""
    order = event.order
    order.state, order.reason = event.state, event.reason
    return reply_from_bank_order(order, {"booked": event.on.isoformat() if event.on else "by the books"})


def _record_representment(event: BankOrderEvent, payment: Payment) -> bool:
    """Record a reversed return as the reversal (CR) of the chargeback that stands."""
    chain = load_chain(payment.id, payment.merchant, None)
    disputed = _find_unanswered(chain, payment, "CB", "CR") if chain is not None else None
    return _record_follow_up(event, "CR", disputed, "") if disputed is not None else _mark_applied(event)


def _find_representment_to_dispute(payment: Payment) -> Payment | None:
    """The reversal (CR) that a further return of a collection charges back; None for a first return, and for one that
    a settlement file or a clerk has entered already."""
    chain = load_chain(payment.id, payment.merchant, None)
    if chain is None or not can_be_charged_back(chain, payment):
        return None
    return _find_unanswered(chain, payment, "CR", "CB")


def _find_unanswered(chain: Chain, payment: Payment, kind: str, answer: str) -> Payment | None:
    """The newest chargeback (``kind`` CB) of ``payment`` that no reversal (``answer`` CR) takes back in full, or the
    newest reversal that no chargeback does, whoever entered it."""
    for one in sorted(chain.members, key=lambda member: member.number, reverse=True):
        if one.payment_type != kind or one.status != Status.APPROVED:
            continue
        is_about_it = find_charged_back_payment(chain, one).id == payment.id
        if is_about_it and chain.sum_of(one, answer) < resolve_payment_amount(one):
            one.merchant = payment.merchant
            return one
    return None


def _record_follow_up(event: BankOrderEvent, kind: str, target: Payment, reason: str) -> bool:
    """Record the chargeback or its reversal, once per event: a BankOrderFollowUp row in the same statement says so."""
    ident = event.pk
    if kind == "CB":
        target = _find_representment_to_dispute(target) or target

    def extra_writes(write: WriteStatement, made: Payment) -> None:
        write.insert(BankOrderFollowUp, event_id=ident, payment=made.id)
        write.update_related(BankOrderEvent, {"applied": True}, {"id": ident})

    order = event.order
    reply = AcquirerReply(
        code=reason or external_success_code(),
        approved=Money(order.amount, order.currency),
        connector_tx_id=order.payment.hex,
    )
    try:
        acquirer_reported.record_acquirer_reported_follow_up(
            kind,
            target.id,
            target.merchant,
            order.amount,
            order.currency,
            reply,
            origin=BANK_ORIGIN,
            reason=reason,
            extra_writes=extra_writes,
        )
    except RequestRefusedError as refusal:
        if refusal.code == CONCURRENT_UPDATE_CODE:
            return False
        if not _is_recorded(kind, target, order.amount):
            words = f"a {kind} of {order.amount} {order.currency} does not fit into our books ({refusal.code})"
            state = _BankOrderState(event.state).label  # the order may have moved on
            _add_finding(event, f"{state}, but {words}: the money may have been given back twice")
        return _mark_applied(event)
    except IntegrityError:
        if not BankOrderFollowUp.objects.filter(event=ident).exists():
            raise
    return True


def _is_recorded(kind: str, target: Payment, amount: Decimal) -> bool:
    """Whether a settlement file or a clerk recorded the chargeback or its reversal before."""
    chain = load_chain(target.id, target.merchant, None)
    if chain is None:
        return False
    if kind == "CR":
        return compute_representable_amount(chain, target) <= 0
    disputed = (compute_disputed_amount(chain, dispute) for dispute in chain.followers(target, "CB"))
    return sum(disputed, Decimal(0)) >= amount


def _add_finding(event: BankOrderEvent, why: str) -> None:
    """Add a finding to the bank message when the bank moved money and a person has to act: a collection that was
    refunded and then returned too was paid back twice; a refund that came back has not reached the shopper."""
    log.error("bank_order_finding", payment=event.order_id.hex, state=event.state, why=why)
    words = f"order {event.order_id.hex}: {why}"
    if event.message_id is None:
        return
    with transaction.atomic():
        message = BankMessage.objects.select_for_update().filter(pk=event.message_id).first()
        if message is not None and words not in message.findings:
            message.findings = [*message.findings, words][-MAX_MESSAGE_FINDINGS:]
            message.save(update_fields=["findings"])


def _mark_applied(event: BankOrderEvent) -> bool:
    """Mark the event as processed; False when another worker did."""
    return bool(BankOrderEvent.objects.filter(pk=event.pk, applied=False).update(applied=True))
