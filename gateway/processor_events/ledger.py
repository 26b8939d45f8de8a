"""The chain an event is about, and what is recorded in it: by the one corridor, each thing of the processor's once."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError

from gateway import clock, identifiers, wake
from gateway.connectors.message import success_code
from gateway.connectors.port import AcquirerReply
from gateway.connectors.stripe import mapping
from gateway.connectors.stripe.asking import look
from gateway.connectors.stripe.question import INTENTS
from gateway.models import OpenPayment, Payment, Status, ToldByProcessor
from gateway.money import Money
from gateway.payments.chain import Chain, refundable
from gateway.payments.refusal import Refused
from gateway.payments.told import enter
from gateway.processor_events.verdict import Event, Verdict, done, flagged
from gateway.rows import Write

ORIGIN: Final = "/connectors/stripe"
RECOVERY: Final = "recovery"


def chain_of(event: Event, intent: Mapping[str, Any]) -> Chain | None:
    """The chain that an intent belongs to; None for one that was not made by a payment of this account."""
    first = identifiers.parse_id(mapping.mark_of(intent, mapping.OURS))
    if first is None:
        return None
    rows = Payment.objects.filter(chain=Payment.objects.filter(
        pk=first, channel=event.row.account.channel_id, connector=event.row.account.connector,
        account=event.row.account.acquirer_merchant_id,
    ).values("chain")[:1])  # fmt: skip
    members = list(rows.select_related("merchant").order_by("id"))
    return Chain(members) if members else None


def intent_of(event: Event, ident: object) -> Mapping[str, Any]:
    """An intent with its charge. Raises Silence and NotThere."""
    return look(event.account, f"{INTENTS}/{mapping.text_of(ident)}", [("expand[]", "latest_charge")])


def wake_open(chain: Chain) -> bool:
    """Have the chain's payments in doubt asked about now; whether there are any."""
    doubtful = [member.pk for member in chain.members if member.status == Status.IN_DOUBT]
    if doubtful:
        OpenPayment.objects.filter(pk__in=doubtful).update(recover_at=clock.real())
        wake.wake(RECOVERY)
    return bool(doubtful)


def taker(chain: Chain, charge: str, amount: Decimal) -> Payment | None:
    """The payment that took the money an event is about: the debit, or the one capture of ``charge`` with ``amount``
    to give. None when there is none, or more than one could be meant."""
    took = [
        member for member in chain.members
        if member.payment_type in ("DB", "RB", "CP") and member.status == Status.APPROVED
    ]  # fmt: skip
    fitting = [member for member in took if member.connector_tx_id == charge or len(took) == 1] or took
    able = [member for member in fitting if refundable(chain, member) >= amount]
    return able[0] if len(able) == 1 else fitting[0] if len(fitting) == 1 else None


def told_before(event: Event, reference: str) -> UUID | None:
    """The payment that was recorded for a thing of the processor's."""
    found = ToldByProcessor.objects.filter(account=event.row.account_id, reference=reference)
    payment: UUID | None = found.values_list("payment", flat=True).first()
    return payment


def record(
    event: Event, kind: str, target: Payment, money: Money, *, reference: str, code: str = "", ident: str = ""
) -> Verdict:
    """Record a ``kind`` that follows ``target``, once for ``reference``. ``code``: a chargeback's reason.

    What the table of operations refuses is flagged: the processor moved money that we cannot place."""
    if (before := told_before(event, reference)) is not None:
        return done("recorded before", payment=target.pk, made=before)
    reply = AcquirerReply(
        code=code or success_code(), approved=money, connector_tx_id=ident[:64],
        details={"AcquirerResponse": reference[:64]},
    )  # fmt: skip

    def remember(write: Write, row: Payment) -> None:
        write.insert(
            ToldByProcessor, account_id=event.row.account_id, reference=reference, payment=row.pk, at=clock.real()
        )

    try:
        made = enter(
            kind, target.pk, event.merchant, money.amount, money.currency, reply, origin=ORIGIN, reason=code,
            alongside=remember,
        )  # fmt: skip
    except IntegrityError:
        if (before := told_before(event, reference)) is None:
            raise  # a fault of another kind: nothing was recorded, so the event is due again
        return done("recorded before", payment=target.pk, made=before)
    except Refused as fault:
        return flagged(f"{kind} of {money} does not fit into our books: {fault.code}", payment=target.pk)
    return done(f"{kind} of {money} recorded", payment=target.pk, made=made.pk)
