"""Outcomes that come after recovery has begun to ask: of a slow worker, and of answers that nobody waited for.

What the acquirer says is never dropped: a payment in doubt gets its outcome, unless a void of it may be under way; an
approval beside a void, or of a declined payment, is voided by what it said. Source: docs/decisions/0148.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction

from gateway.connectors.port import AcquirerReply
from gateway.core import clock
from gateway.core.result_codes import OUTCOME_UNKNOWN_CODE
from gateway.models import OpenPayment, Payment, Status
from gateway.payments import risk_screening, store
from gateway.payments.network_tokens import restore_token_use
from gateway.payments.outcomes import Approved, Booked, Declined, OutcomeUnknown, PaymentOutcome, outcome_from_reply
from gateway.payments.payment_request import RequestTrace
from gateway.payments.refused_reversals import is_for_person
from gateway.payments.reversal_border import is_never_taken_back
from gateway.payments.shopper_authentication import restore_authentication_facts
from gateway.payments.states import PaymentTransitionError
from gateway.payments.stored_answer import PrivateFacts
from gateway.risk.evaluation import RiskOutcome, RiskVerdict

NO_FACTS: Final = PrivateFacts()
LATE_EXCHANGE: Final = "late"
"""Kind of the exchange of an answer that came after its question was given up, which has an exchange of its own."""
DENIED_EXCHANGE: Final = "denied"
"""Kind of the exchange of a decline that came when its payment had been entered as paid: it changes nothing, and
somebody has to ask the acquirer."""

log = structlog.get_logger(__name__)


def mark_outcome_unknown(payment: Payment) -> bool:
    """Move a payment that is still STARTED to IN_DOUBT, with what its authentication showed: its worker died, or has
    not written yet that there was no answer. False when it was completed just now."""
    if payment.status != Status.STARTED:
        return True
    restore_authentication_facts(payment)
    restore_token_use(payment)
    try:
        reply = AcquirerReply(code=OUTCOME_UNKNOWN_CODE)
        outcome = OutcomeUnknown(reply=reply, at=clock.merchant_now(payment.merchant))
        store.complete_payment(payment, outcome, recover_at=payment.open.recover_at)
    except PaymentTransitionError:
        return False
    return True


def take_late_answer(ident: UUID, asked: Mapping[str, Any], reply: AcquirerReply) -> None:
    """Record an acquirer's answer that came after its payment's worker had given up. ``asked``: the columns of the
    attempt that it answers (:func:`gateway.payments.store.get_attempt_columns`)."""
    payment = Payment.objects.select_related("merchant", "channel", "open").get(pk=ident)
    if reply.code == OUTCOME_UNKNOWN_CODE:
        # The payment stays in doubt; the answer's numbers are kept for the person who asks the acquirer.
        store.record_exchange(
            payment,
            LATE_EXCHANGE,
            reply.sent,
            reply.received,
            at=clock.merchant_now(payment.merchant),
            duration_ms=0,
            connector=asked["connector"],
        )
        return
    outcome = outcome_from_reply(reply, at=clock.merchant_now(payment.merchant))
    log.warning("late_answer", payment=ident.hex, outcome=str(outcome.event), status=payment.status)
    if not mark_outcome_unknown(payment):
        payment.refresh_from_db()  # its worker has just done so
    verdict = risk_screening.evaluate_approval(payment, reply)
    if isinstance(outcome, Approved) and verdict.outcome is RiskOutcome.DECLINE:
        _begin_giving_back(payment, outcome, verdict, asked)
        return
    complete = partial(store.complete_payment, payment, outcome, kind=LATE_EXCHANGE)
    record_late_outcome(payment, outcome, complete, asked=asked, trace=None, kind=LATE_EXCHANGE)


def record_late_outcome(
    payment: Payment,
    outcome: PaymentOutcome,
    complete: Callable[[], None],
    *,
    asked: Mapping[str, Any],
    trace: RequestTrace | None,
    kind: str = "submit",
) -> None:
    """Record the outcome of a payment that recovery may have completed, or may be asking about. ``complete``: completes
    it by the outcome; ``kind``: of the exchange that is kept."""
    if _complete_during_recovery(payment, outcome, complete):
        return
    _log_contradiction(payment, outcome, asked)
    if isinstance(outcome, Approved):
        if not is_never_taken_back(payment):
            if _have_voided(payment, outcome, asked=asked, trace=trace, kind=kind):
                return
        elif payment.status == Status.DECLINED:
            # A person said that it was not paid, or the repeat of a reversal was declined. It was made, and nothing
            # takes it back.
            try:
                booked = Booked(reply=outcome.reply, at=outcome.at, duration_ms=outcome.duration_ms)
                store.complete_payment(payment, booked, trace=trace, kind=kind)
                return
            except PaymentTransitionError:
                payment.refresh_from_db()
    is_denied = isinstance(outcome, Declined) and payment.status == Status.APPROVED and is_for_person(payment)
    store.record_exchange(
        payment,
        DENIED_EXCHANGE if is_denied else kind,
        outcome.reply.sent,
        outcome.reply.received,
        at=outcome.at,
        duration_ms=outcome.duration_ms,
        trace=trace,
        connector=asked["connector"],
    )


def _log_contradiction(payment: Payment, outcome: PaymentOutcome, asked: Mapping[str, Any]) -> None:
    """Log an outcome that contradicts the one which the merchant has been told."""
    about = {"payment": payment.id.hex, "connector": asked["connector"]}
    if isinstance(outcome, Approved) and payment.status == Status.DECLINED:
        # The acquirer has moved money for a payment that the merchant knows as declined.
        log.error("approved_after_decline", **about)
    elif isinstance(outcome, Declined) and payment.status == Status.APPROVED:
        # A person has entered that the payout was paid, or an inquiry found an approval: somebody has to find out.
        log.error("declined_after_approval", **about)


def _begin_giving_back(payment: Payment, outcome: Approved, verdict: RiskVerdict, asked: Mapping[str, Any]) -> None:
    """Have a late approval voided that the rule set or the channel refuses: the payment becomes that decline."""
    _log_contradiction(payment, outcome, asked)
    refused = PrivateFacts(
        refused_code=verdict.code, refused_details=risk_screening.describe_refusal(outcome.reply, verdict)
    )
    if not _have_voided(payment, outcome, asked=asked, trace=None, kind=LATE_EXCHANGE, refused=refused):
        log.error("late_approval_not_kept", payment=payment.id.hex, status=payment.status)


def _have_voided(
    payment: Payment,
    outcome: Approved,
    *,
    asked: Mapping[str, Any],
    trace: RequestTrace | None,
    kind: str,
    refused: PrivateFacts = NO_FACTS,
) -> bool:
    """Keep a late approval of a payment in doubt, or declined, for its void. False for any other payment."""
    while payment.status in (Status.IN_DOUBT, Status.DECLINED):
        if store.record_late_approval(payment, outcome, asked=asked, trace=trace, refused=refused, kind=kind):
            return True
        payment.refresh_from_db()
    return False


def _complete_during_recovery(payment: Payment, outcome: PaymentOutcome, complete: Callable[[], None]) -> bool:
    """Complete a payment that recovery inquires about, unless recovery has begun to void it: a void under way would
    undo an approval written now. The lock on the OpenPayment row, which recovery marks before a void, decides which of
    the two is first. False when recovery was."""
    with transaction.atomic():
        # The same lock order as in store.complete_payment: the payment, then its OpenPayment row.
        Payment.objects.select_for_update().only("id").get(pk=payment.pk)
        payment.refresh_from_db()  # it may have moved since it was read; from here on nobody moves it
        open_payment = OpenPayment.objects.select_for_update().filter(pk=payment.pk).first()
        # Nothing is sent to void a payout to a card (docs/decisions/0152) or a reversal, so nothing is under way there.
        is_voided = open_payment is not None and open_payment.void_attempted and not is_never_taken_back(payment)
        if is_voided and not isinstance(outcome, Declined):
            return False
        try:
            complete()
        except PaymentTransitionError:
            payment.refresh_from_db()
            return False
    return True
