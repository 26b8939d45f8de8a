"""Money given that is in doubt, decided by a person: a host cannot be asked about a request.

Payouts to cards, of which networks reverse none, refunds and credits that their acquirer does not take back, and
captures and reversals whose repeats decide nothing. Source: docs/decisions/0138, 0152, 0166.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from django.db import transaction

from gateway.access import audit_log
from gateway.connectors.accounts import holds_reversed_captures
from gateway.connectors.port import AcquirerReply
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock
from gateway.core.result_codes import TIMEOUT_REVERSED_CODE
from gateway.models import Payment, Status
from gateway.payments import store
from gateway.payments.outcomes import outcome_from_reply
from gateway.payments.record_only_payments import resolve_success_code
from gateway.payments.refused_reversals import is_for_person
from gateway.payments.states import PaymentTransitionError

NOT_PAID_OUT_TEXT: Final = "The acquirer says that it was not paid out."
_NOT_MADE_TEXTS: Final[Mapping[str, str]] = {
    "CP": "The acquirer says that it was not captured.",
    "RV": "The acquirer says that it was not reversed.",
}


class PayoutNotDecidableError(Exception):
    """The payment is none in doubt that waits for a person; the text says why."""


def is_entered_as_not_paid(payment: Payment) -> bool:
    """Whether a person has entered that the acquirer never made it."""
    details = payment.answer.get("resultDetails", {})
    entered = details.get("ExtendedDescription") in (NOT_PAID_OUT_TEXT, *_NOT_MADE_TEXTS.values())
    return payment.status == Status.DECLINED and entered


def decide_payout(ident: UUID, *, paid: bool, by: audit_log.Actor, note: str = "") -> Payment:
    """Record the outcome of a payment in doubt, as the acquirer told a person: approved, or declined.
    ``note``: of that person, for the audit trail. Raises PayoutNotDecidableError."""
    payment = Payment.objects.select_related("merchant", "channel").filter(pk=ident).first()
    if payment is None:
        raise PayoutNotDecidableError("no payment has this id")
    if not is_for_person(payment):
        why = (
            "it is no payout to a card, nor a refund or credit that its acquirer has often refused to take back, nor a "
            "capture or reversal whose repeats have often decided nothing"
        )
        raise PayoutNotDecidableError(why)
    if payment.status != Status.IN_DOUBT:
        raise PayoutNotDecidableError(f"it is {Status(payment.status).label}, not in doubt")
    not_made = _NOT_MADE_TEXTS.get(payment.payment_type, NOT_PAID_OUT_TEXT)
    reopens = paid and _reopens_authorization(payment)
    reply = AcquirerReply(
        code=resolve_success_code(payment.test_mode) if paid else TIMEOUT_REVERSED_CODE,
        approved=payment.money if paid else None,
        connector_tx_id=payment.connector_tx_id,
        details=({"AuthorizationReopened": "true"} if reopens else {}) if paid else {"ExtendedDescription": not_made},
        sent={"question": payment.id.hex},
        received={"outcome": "paid" if paid else "not paid", "by": by.name},
        reopens_authorization=reopens,
    )
    outcome = outcome_from_reply(reply, at=clock.merchant_now(payment.merchant))
    try:
        with transaction.atomic():
            store.complete_payment(payment, outcome, kind="person")
            audit_log.record_audit_entry(
                by, "payout decided", payment, after={"paid": paid} | ({"note": note} if note else {})
            )
    except PaymentTransitionError:
        raise PayoutNotDecidableError("it has its outcome by now") from None
    return payment


def _reopens_authorization(payment: Payment) -> bool:
    """Whether the acquirer goes on holding what the capture took that ``payment`` reverses (docs/decisions/0096)."""
    if payment.payment_type != "RV" or payment.referenced is None:
        return False
    if not Payment.objects.filter(pk=payment.referenced, payment_type="CP").exists():
        return False
    return holds_reversed_captures(CONNECTORS.get(payment.connector), payment.channel_id, payment.acquirer_merchant_id)
