"""Payments in doubt, decided by clerks: what the acquirer says of one is entered like money moved.

It counts towards the clerk's limits, and above them it is a request for approval that a second person decides: an
Approval of the payment type PAYOUT_TYPE, with the outcome in the place of a reason.
The outcome itself is recorded by gateway.payments.payout_decisions. Source: docs/decisions/0156.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop as noop

from gateway.access import audit_log
from gateway.backoffice.follow_ups import clerk_limits
from gateway.backoffice.follow_ups.clerk_limits import Clerk, ClerkLimitExceededError
from gateway.backoffice.follow_ups.manual_follow_up import FollowUpNotPossibleError
from gateway.backoffice.follow_ups.open_approvals import build_open_condition
from gateway.backoffice.follow_ups.reasons import NOT_PAID_OUT, PAID_OUT, PAYOUT_TYPE, list_doubt_outcomes, name_reason
from gateway.core import identifiers
from gateway.models import Approval, ClerkLimitCounter, Payment, Status
from gateway.payments.chain_amounts import Chain
from gateway.payments.follow_ups import load_chain_members
from gateway.payments.payout_decisions import PayoutNotDecidableError, decide_payout
from gateway.payments.refused_reversals import is_for_person

NOT_DECIDABLE: Final = noop("This does not wait for an outcome that a person enters.")
ASKED_BEFORE: Final = noop("Approval of an outcome was asked for before. It has to be decided first.")


def is_decidable(payment: Payment) -> bool:
    """Whether it waits for a person."""
    return payment.status == Status.IN_DOUBT and is_for_person(payment)


def find_outcome(payment: Payment) -> str:
    """The outcome of a payment that waited for a person, or would have; '' for none."""
    outcome = {Status.APPROVED.value: PAID_OUT, Status.DECLINED.value: NOT_PAID_OUT}.get(payment.status, "")
    return outcome if outcome and is_for_person(payment) else ""


def explain_not_decidable(payment: Payment) -> str:
    """Why no outcome can be entered, in the reader's language."""
    if outcome := find_outcome(payment):
        return _("It has its outcome by now: %s.") % name_reason(outcome, payment.payment_type)
    return _(NOT_DECIDABLE)


def find_open_request(payment: Payment) -> Approval | None:
    """The open approval request about the outcome of ``payment``, if there is one."""
    return Approval.objects.filter(build_open_condition(), payment=payment, payment_type=PAYOUT_TYPE).first()


def check_decidable(payment: Payment, outcome: str) -> None:
    """Raise FollowUpNotPossibleError unless ``outcome`` can be entered, and no approval of one waits
    for a decision."""
    if not is_decidable(payment):
        raise FollowUpNotPossibleError(explain_not_decidable(payment))
    if outcome not in list_doubt_outcomes():
        raise FollowUpNotPossibleError(_("Choose what the acquirer says."))
    if find_open_request(payment) is not None:
        raise FollowUpNotPossibleError(_(ASKED_BEFORE))


def decide_alone(payment: Payment, outcome: str, note: str, by: Clerk) -> Payment:
    """Record the outcome within the clerk's limits. Raises FollowUpNotPossibleError, and ClerkLimitExceededError."""
    with transaction.atomic():
        count = clerk_limits.load_manual_counter(by.user, payment.merchant_id)
        # Locked, so that of two decisions at once the second counts the first.
        ClerkLimitCounter.objects.select_for_update().get(pk=count.pk)
        if (
            met := clerk_limits.find_exceeded_limit(by, payment.amount, Chain(load_chain_members(payment.chain)))
        ) is not None:
            raise ClerkLimitExceededError(met)
        clerk_limits.record_approved_move(count, by.user, identifiers.row_id(), payment.amount, payment.currency)
        try:
            return decide_payout(payment.pk, paid=outcome == PAID_OUT, by=by.actor, note=note)
        except PayoutNotDecidableError:
            payment.refresh_from_db(fields=["status"])
            raise FollowUpNotPossibleError(explain_not_decidable(payment)) from None


def carry_out_decision(payment: UUID, outcome: str, by: audit_log.Actor) -> Payment:
    """Record the outcome that a second person approved; one that was recorded before is as good. Raises
    FollowUpNotPossibleError."""
    try:
        return decide_payout(payment, paid=outcome == PAID_OUT, by=by)
    except PayoutNotDecidableError as fault:
        row = Payment.objects.get(pk=payment)
        if outcome == find_outcome(row):
            return row
        raise FollowUpNotPossibleError(str(fault)) from None
