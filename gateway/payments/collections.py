"""Payments told what banks said of their orders: booked, rejected, taken back, returned, won back.

An order's events are written with its move (gateway.connectors.sepa); here each moves its payment, once, in the order
in which they came. A booked collection approves its payment, a rejected or withdrawn one declines it, a return of one
that was approved is a chargeback with the bank's reason, and a return that is reversed its CR. An event whose payment
is not as far (its own answer is being written) stays for the next round. Source: Part A, States; decisions, sections 4
and 8.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

import structlog
from django.db import IntegrityError, transaction

from gateway import clock
from gateway.connectors.message import success_code
from gateway.connectors.port import AcquirerReply
from gateway.connectors.sepa import books
from gateway.connectors.sepa.connector import answer_of
from gateway.connectors.sepa.reasons import reason_of
from gateway.due import Timer
from gateway.models import BankMessage, BankOrder, BankOrderEvent, BankOrderFollowUp, Merchant, Payment, Status
from gateway.money import Money
from gateway.payments import store, told
from gateway.payments.chain import representable, standing
from gateway.payments.follow_up import BUSY, read_chain
from gateway.payments.process import event_of
from gateway.payments.refusal import Refused
from gateway.payments.states import ImpossibleMove
from gateway.rows import Write, execute

AT_ONCE: Final = 200
ROUNDS: Final = 10
"""Events of one order that one run tells at most."""
ORIGIN: Final = "bank"
MOST_FINDINGS: Final = 200
"""Of one message, those of its reading among them; of more, the newest."""

State = BankOrder.State
log = structlog.get_logger(__name__)

# Of each order the oldest event that is untold: later ones build on it.
_UNTOLD: Final = """
SELECT min(e.id) FROM gateway_bankorderevent e JOIN gateway_bankorder o ON o.payment = e.order_id
WHERE NOT e.told AND (%(merchant)s::uuid IS NULL OR o.merchant_id = %(merchant)s::uuid)
GROUP BY e.order_id ORDER BY 1 LIMIT %(limit)s
"""


def tell_due(merchant: Merchant | None = None) -> int:
    """Tell payments what is untold; how many events are told now."""
    done = 0
    for _ in range(ROUNDS):
        told_now = _round(merchant)
        done += told_now
        if not told_now:
            break
    return done


def _round(merchant: Merchant | None) -> int:
    """The oldest untold event of each order."""
    values = {"merchant": merchant.pk if merchant is not None else None, "limit": AT_ONCE}
    ids: list[int] = [row[0] for row in execute(_UNTOLD, values)]
    rows = BankOrderEvent.objects.select_related("order__file", "order__mandate").in_bulk(ids)
    done = 0
    for ident in ids:
        try:
            done += _tell(rows[ident])
        except Exception:  # one payment must not keep the others waiting; its event is due again
            log.exception("bank_order_not_told", event=ident, payment=rows[ident].order_id.hex)
    return done


def next_untold(merchant: Merchant) -> datetime | None:
    """Now, while something is untold."""
    waiting = BankOrderEvent.objects.filter(told=False, order__merchant=merchant).exists()
    return clock.now(merchant) if waiting else None


TIMER: Final = Timer(
    name=books.TOLD, run=tell_due, next_at=next_untold, about="Tell payments what their banks have said.",
)  # fmt: skip


def _tell(event: BankOrderEvent) -> bool:
    """Move the payment of one event; whether that is done."""
    payment = Payment.objects.select_related("merchant").get(pk=event.order_id)
    if payment.status in (Status.STARTED, Status.IN_DOUBT):
        return False  # its first answer is on its way, or recovery asks the books
    if payment.status == Status.PENDING:
        return _decided(event, payment)
    if event.state == State.RETURNED and payment.status == Status.APPROVED and event.order.kind == books.Kind.COLLECT:
        return _followed(event, "CB", payment, reason_of(event.reason).returned)
    if event.state == State.WON_BACK:
        return _won_back(event, payment)
    return _is_told(event)


def _decided(event: BankOrderEvent, payment: Payment) -> bool:
    """A payment that waits for the bank: by what this event says, not by how the order stands by now."""
    order = event.order
    order.state, order.reason = event.state, event.reason
    reply = answer_of(order, {"booked": event.on.isoformat() if event.on else "by the books"})
    try:
        store.complete(
            payment, event_of(reply), reply, at=clock.now(payment.merchant), duration_ms=0, kind="bank"
        )  # fmt: skip
    except ImpossibleMove:
        return False  # somebody else moved it: look again
    return _is_told(event)


def _won_back(event: BankOrderEvent, payment: Payment) -> bool:
    """The return before it was a chargeback; its reversal follows that one."""
    earlier = BankOrderFollowUp.objects.filter(
        event__order=event.order_id, event__state=State.RETURNED, event_id__lt=event.pk
    )
    disputed = earlier.order_by("-event_id").values_list("payment", flat=True).first()
    if disputed is None:
        disputed = _entered_elsewhere(payment)
    if disputed is None:
        return _is_told(event)
    return _followed(event, "CR", Payment.objects.select_related("merchant").get(pk=disputed), "")


def _entered_elsewhere(payment: Payment) -> UUID | None:
    """The chargeback of a collection that another door entered, and that stands."""
    chain = read_chain(payment.id, payment.merchant, None)
    disputes = chain.followers(payment, "CB") if chain is not None else ()
    return next((one.id for one in disputes if chain is not None and standing(chain, one) > 0), None)


def _followed(event: BankOrderEvent, kind: str, target: Payment, reason: str) -> bool:
    """Enter the chargeback or its reversal, once: the row beside it says for which event."""
    ident = event.pk
    if kind == "CB" and (won := _last_won(event)) is not None:
        target = won

    def alongside(write: Write, made: Payment) -> None:
        write.insert(BankOrderFollowUp, event_id=ident, payment=made.id)
        write.follow(BankOrderEvent, {"told": True}, {"id": ident})

    order = event.order
    reply = AcquirerReply(
        code=reason or success_code(), approved=Money(order.amount, order.currency),
        connector_tx_id=order.payment.hex,
    )  # fmt: skip
    try:
        told.enter(
            kind, target.id, target.merchant, order.amount, order.currency, reply, origin=ORIGIN, reason=reason,
            alongside=alongside,
        )  # fmt: skip
    except Refused as refusal:
        if refusal.code == BUSY:
            return False
        if not _stands(kind, target, order.amount):
            _find(event, kind, target, refusal.code)
        return _is_told(event)
    except IntegrityError:
        if not BankOrderFollowUp.objects.filter(event=ident).exists():
            raise
    return True


def _stands(kind: str, target: Payment, amount: Decimal) -> bool:
    """Whether another door (a settlement file, a clerk) entered it before."""
    chain = read_chain(target.id, target.merchant, None)
    if chain is None:
        return False
    if kind == "CR":
        return representable(chain, target) <= 0
    return sum((standing(chain, one) for one in chain.followers(target, "CB")), Decimal(0)) >= amount


def _find(event: BankOrderEvent, kind: str, target: Payment, code: str) -> None:
    """The bank moved money that our books have no room for, such as a collection that was refunded and then returned
    as well: it was given back twice, and somebody has to ask for it."""
    order = event.order
    log.error("bank_return_not_entered", payment=target.id.hex, kind=kind, code=code)
    words = f"order {order.payment.hex}: {order.get_state_display()}, but a {kind} of {order.amount} {order.currency}"
    words += f" does not fit into our books ({code}): the money may have been given back twice"
    if event.message_id is None:
        return
    with transaction.atomic():
        message = BankMessage.objects.select_for_update().filter(pk=event.message_id).first()
        if message is not None and words not in message.findings:
            message.findings = [*message.findings, words][-MOST_FINDINGS:]
            message.save(update_fields=["findings"])


def _last_won(event: BankOrderEvent) -> Payment | None:
    """The reversal that a second return takes back."""
    won = BankOrderFollowUp.objects.filter(
        event__order=event.order_id, event__state=State.WON_BACK, event_id__lt=event.pk
    )
    ident: UUID | None = won.order_by("-event_id").values_list("payment", flat=True).first()
    return Payment.objects.select_related("merchant").get(pk=ident) if ident is not None else None


def _is_told(event: BankOrderEvent) -> bool:
    return bool(BankOrderEvent.objects.filter(pk=event.pk, told=False).update(told=True))
