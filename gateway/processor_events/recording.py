"""Finds the payment chain of an event and records follow-ups in it, once for each object of the processor."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError
from django.db.models import Q
from django.db.models.functions import Now

from gateway.connectors.acquirer_message import external_success_code
from gateway.connectors.card_api import mapping
from gateway.connectors.card_api.client import fetch_object
from gateway.connectors.card_api.operation import INTENTS_PATH
from gateway.connectors.port import AcquirerReply
from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE
from gateway.db.statement import WriteStatement
from gateway.models import OpenPayment, Payment, ProcessorReportedPayment, Status
from gateway.payments.acquirer_reported import record_acquirer_reported_follow_up
from gateway.payments.chain_amounts import OPEN_STATUSES, Chain, compute_refundable_amount, resolve_payment_amount
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.stored_answer import ReportedDispute, get_attempt_number
from gateway.processor_events.event_outcomes import (
    ChainStillOpenError,
    EventContext,
    EventOutcome,
    build_done_outcome,
    build_flagged_outcome,
)
from gateway.timers import wakeup

PROCESSOR_ORIGIN: Final = "/connectors/stripe"
RECOVERY_TIMER: Final = "recovery"


def find_event_chain(event: EventContext, intent: Mapping[str, Any]) -> Chain | None:
    """The chain of an intent; None if no payment that was sent to this account made the intent."""
    first = identifiers.parse_id(mapping.read_mark(intent, mapping.PAYMENT_MARK))
    if first is None:
        return None
    account = event.row.account
    tried = {"connector": account.connector, "account": account.acquirer_merchant_id}
    sent_there = Q(route__contains={"tried": [tried]}) | Q(
        connector=account.connector, acquirer_merchant_id=account.acquirer_merchant_id
    )
    rows = Payment.objects.filter(
        chain=Payment.objects.filter(sent_there, pk=first, channel=account.channel_id).values("chain")[:1]
    )
    members = list(rows.select_related("merchant").order_by("id"))
    return Chain(members) if members else None


def is_of_earlier_attempt(event: EventContext, chain: Chain, intent: Mapping[str, Any]) -> bool:
    """Whether another attempt of its payment made the intent than the one that the payment goes on with after a
    step-up, cascade or failover, at this account or the next one (docs/decisions/0104, 0108): what happens to it moves
    none of the payment's money."""
    made_by = identifiers.parse_id(mapping.read_mark(intent, mapping.PAYMENT_MARK))
    payment = chain.find(made_by) if made_by is not None else None
    if payment is None:
        return False
    account = event.row.account
    if (payment.connector, payment.acquirer_merchant_id) != (account.connector, account.acquirer_merchant_id):
        return True
    return mapping.read_attempt(intent) != get_attempt_number(payment)


def fetch_intent(event: EventContext, ident: object) -> Mapping[str, Any]:
    """Fetch an intent with its latest charge. Raises OutcomeUnknownError and ObjectNotFoundError."""
    return fetch_object(
        event.account, f"{INTENTS_PATH}/{mapping.parse_object_id(ident)}", [("expand[]", "latest_charge")]
    )


def wake_open_inquiries(chain: Chain) -> bool:
    """Make the chain's payments IN_DOUBT due for recovery now; False without any."""
    in_doubt = [member.pk for member in chain.members if member.status == Status.IN_DOUBT]
    if in_doubt:
        OpenPayment.objects.filter(pk__in=in_doubt).update(recover_at=Now())
        wakeup.notify_timer(RECOVERY_TIMER)
    return bool(in_doubt)


def flag_unless_open(chain: Chain, why: str, payment: UUID) -> EventOutcome:
    """Flag what fits nowhere in the chain. Raises ChainStillOpenError while one of its payments has no final result:
    it may be what the event is about, or take up what the event wants."""
    if any(member.status in OPEN_STATUSES for member in chain.members):
        wake_open_inquiries(chain)
        raise ChainStillOpenError("a payment of the chain has no final result")
    return build_flagged_outcome(why, payment=payment)


def find_debited_payment(chain: Chain, charge: str, amount: Decimal) -> Payment | None:
    """The payment whose money an event is about: the debit, or the one capture of ``charge`` that can still return
    ``amount``, else the one of just this amount: it may have been refunded before. None when there is none, or several
    are possible."""
    debits = [
        member
        for member in chain.members
        if member.payment_type in ("DB", "RB", "CP") and member.status == Status.APPROVED
    ]
    matching = [member for member in debits if member.connector_tx_id == charge or len(debits) == 1] or debits
    refundable = [member for member in matching if compute_refundable_amount(chain, member) >= amount]
    same = [member for member in matching if resolve_payment_amount(member) == amount]
    return next((found[0] for found in (refundable, matching, same) if len(found) == 1), None)


def find_recorded_payment(event: EventContext, reference: str) -> UUID | None:
    """The payment that was recorded before for an object of the processor (``reference``), or None."""
    rows = ProcessorReportedPayment.objects.filter(account=event.row.account_id, reference=reference)
    payment: UUID | None = rows.values_list("payment", flat=True).first()
    return payment


def record_processor_follow_up(
    event: EventContext,
    kind: str,
    target: Payment,
    money: Money,
    *,
    chain: Chain,
    reference: str,
    code: str = "",
    ident: str,
    dispute: ReportedDispute | None = None,
) -> EventOutcome:
    """Record a follow-up of type ``kind`` on ``target``, once for ``reference``. ``code``: a chargeback's reason;
    ``ident``: the processor's id of it; ``dispute``: what else it says of a chargeback.

    One that the operation table refuses is flagged: the processor moved money that does not fit ``chain``. Raises
    ChainStillOpenError where it may fit once the chain's payments have their results."""
    if (before := find_recorded_payment(event, reference)) is not None:
        return build_done_outcome("recorded before", payment=target.pk, recorded=before)
    reply = AcquirerReply(
        code=code or external_success_code(),
        approved=money,
        connector_tx_id=ident[:64],
        details={"AcquirerResponse": reference[:64]},
    )

    def extra_writes(write: WriteStatement, row: Payment) -> None:
        write.insert(
            ProcessorReportedPayment,
            account_id=event.row.account_id,
            reference=reference,
            payment=row.pk,
            at=clock.real_now(),
        )

    try:
        made = record_acquirer_reported_follow_up(
            kind,
            target.pk,
            event.merchant,
            money.amount,
            money.currency,
            reply,
            origin=PROCESSOR_ORIGIN,
            reason=code,
            dispute=dispute,
            extra_writes=extra_writes,
        )
    except IntegrityError:
        if (before := find_recorded_payment(event, reference)) is None:
            raise  # another error: nothing was recorded, so the event is due again
        return build_done_outcome("recorded before", payment=target.pk, recorded=before)
    except RequestRefusedError as fault:
        if fault.code == CONCURRENT_UPDATE_CODE:
            raise ChainStillOpenError("the chain changed meanwhile") from None
        return flag_unless_open(chain, f"{kind} of {money} does not fit into our books: {fault.code}", target.pk)
    return build_done_outcome(f"{kind} of {money} recorded", payment=target.pk, recorded=made.pk)
