"""The chain an event is about, and what is recorded in it: by the one corridor, each thing of the processor's once."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError

from gateway.connectors.acquirer_message import external_success_code
from gateway.connectors.card_api import mapping
from gateway.connectors.card_api.client import fetch_object
from gateway.connectors.card_api.operation import INTENTS_PATH
from gateway.connectors.port import AcquirerReply
from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.db.statement import WriteStatement
from gateway.models import OpenPayment, Payment, Status, ToldByProcessor
from gateway.payments.acquirer_reported import record_acquirer_reported_follow_up
from gateway.payments.chain import Chain, compute_refundable_amount
from gateway.payments.refusal import RequestRefusedError
from gateway.processor_events.event_outcomes import (
    EventContext,
    EventOutcome,
    build_done_outcome,
    build_flagged_outcome,
)
from gateway.timers import wakeup

PROCESSOR_ORIGIN: Final = "/connectors/stripe"
RECOVERY_TIMER: Final = "recovery"


def find_event_chain(event: EventContext, intent: Mapping[str, Any]) -> Chain | None:
    """The chain that an intent belongs to; None for one that was not made by a payment of this account."""
    first = identifiers.parse_id(mapping.read_mark(intent, mapping.PAYMENT_MARK))
    if first is None:
        return None
    rows = Payment.objects.filter(
        chain=Payment.objects.filter(
            pk=first,
            channel=event.row.account.channel_id,
            connector=event.row.account.connector,
            account=event.row.account.acquirer_merchant_id,
        ).values("chain")[:1]
    )
    members = list(rows.select_related("merchant").order_by("id"))
    return Chain(members) if members else None


def fetch_intent(event: EventContext, ident: object) -> Mapping[str, Any]:
    """An intent with its charge. Raises Silence and NotThere."""
    return fetch_object(
        event.account, f"{INTENTS_PATH}/{mapping.parse_object_id(ident)}", [("expand[]", "latest_charge")]
    )


def wake_open_inquiries(chain: Chain) -> bool:
    """Have the chain's payments in doubt asked about now; whether there are any."""
    doubtful = [member.pk for member in chain.members if member.status == Status.IN_DOUBT]
    if doubtful:
        OpenPayment.objects.filter(pk__in=doubtful).update(recover_at=clock.real_now())
        wakeup.notify_timer(RECOVERY_TIMER)
    return bool(doubtful)


def find_debited_payment(chain: Chain, charge: str, amount: Decimal) -> Payment | None:
    """The payment that took the money an event is about: the debit, or the one capture of ``charge`` with ``amount``
    to give. None when there is none, or more than one could be meant."""
    took = [
        member
        for member in chain.members
        if member.payment_type in ("DB", "RB", "CP") and member.status == Status.APPROVED
    ]
    fitting = [member for member in took if member.connector_tx_id == charge or len(took) == 1] or took
    able = [member for member in fitting if compute_refundable_amount(chain, member) >= amount]
    return able[0] if len(able) == 1 else fitting[0] if len(fitting) == 1 else None


def find_recorded_payment(event: EventContext, reference: str) -> UUID | None:
    """The payment that was recorded for a thing of the processor's."""
    found = ToldByProcessor.objects.filter(account=event.row.account_id, reference=reference)
    payment: UUID | None = found.values_list("payment", flat=True).first()
    return payment


def record_processor_follow_up(
    event: EventContext, kind: str, target: Payment, money: Money, *, reference: str, code: str = "", ident: str = ""
) -> EventOutcome:
    """Record a ``kind`` that follows ``target``, once for ``reference``. ``code``: a chargeback's reason.

    What the table of operations refuses is flagged: the processor moved money that we cannot place."""
    if (before := find_recorded_payment(event, reference)) is not None:
        return build_done_outcome("recorded before", payment=target.pk, made=before)
    reply = AcquirerReply(
        code=code or external_success_code(),
        approved=money,
        connector_tx_id=ident[:64],
        details={"AcquirerResponse": reference[:64]},
    )

    def remember(write: WriteStatement, row: Payment) -> None:
        write.insert(
            ToldByProcessor, account_id=event.row.account_id, reference=reference, payment=row.pk, at=clock.real_now()
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
            extra_writes=remember,
        )
    except IntegrityError:
        if (before := find_recorded_payment(event, reference)) is None:
            raise  # a fault of another kind: nothing was recorded, so the event is due again
        return build_done_outcome("recorded before", payment=target.pk, made=before)
    except RequestRefusedError as fault:
        return build_flagged_outcome(f"{kind} of {money} does not fit into our books: {fault.code}", payment=target.pk)
    return build_done_outcome(f"{kind} of {money} recorded", payment=target.pk, made=made.pk)
