"""Approvals (four eyes): a follow-up above a clerk limit becomes a request that a second person decides.

A decision is one compare-and-set that also gives the follow-up its id, so it is made once, by one person. That person
is not the one who asked (the database refuses that, too), has limits that cover the amount, and is independent of the
one who asked: no single person may be acting as both (gateway.backoffice.access.independence). However often an
approval is executed, there is one follow-up. Every step writes an audit entry in the same transaction. Source:
docs/decisions/0025 and 0053.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import translation
from django.utils.translation import gettext as _

from gateway.access import audit_log
from gateway.access.permissions import find_row_owner
from gateway.backoffice.access import independence
from gateway.backoffice.access.independence import ActingPerson
from gateway.backoffice.follow_ups import clerk_limits, payout_decisions
from gateway.backoffice.follow_ups.clerk_limits import Clerk, LimitUse, sum_recent_manual_moves, sum_unapproved_moves
from gateway.backoffice.follow_ups.manual_follow_up import (
    MAX_FOLLOW_UP_NOTE_CHARS,
    FollowUpNotPossibleError,
    FollowUpOrder,
    execute_follow_up,
)
from gateway.backoffice.follow_ups.reasons import PAYOUT_TYPE
from gateway.core import clock, identifiers, money
from gateway.core.masking import mask_note
from gateway.models import Approval, ClerkLimitCounter, ClerkLimitUsage, Payment, Status
from gateway.payments.chain_amounts import Chain
from gateway.timers.registry import Timer, interval_sql

APPROVAL_VALIDITY: Final = timedelta(days=7)
"""How long a request can be decided, in real time."""
APPROVAL_ABANDONED_AFTER: Final = timedelta(seconds=30)
"""An approved request not executed after this time has lost its worker; a timer executes it."""
MAX_APPROVALS_PER_TICK: Final = 100


def request_approval(order: FollowUpOrder, note: str, *, by: Clerk, key: UUID, met: LimitUse) -> tuple[Approval, bool]:
    """Store a request to approve ``order``, which exceeds the limit ``met``. ``key`` is the form key, so that one form
    makes one request. Returns the request, and whether this call made it."""
    now = clock.real_now()
    with transaction.atomic():
        row, made = Approval.objects.get_or_create(
            id=key,
            defaults={
                "merchant_id": order.target.merchant_id,
                "payment": order.target,
                "payment_type": order.code,
                "amount": order.amount,
                "currency": order.target.currency,
                "reason": order.reason,
                "note": mask_note(note, MAX_FOLLOW_UP_NOTE_CHARS),
                "asked_by_id": by.user,
                "asked_by_name": by.name,
                "asked_at": now,
                "expires_at": now + APPROVAL_VALIDITY,
                "over": met.over,
                "over_limit": met.limit,
                "moved": met.moved,
                "notice": Approval.Notice.REQUEST,
                "language": translation.get_language() or "",
            },
        )
        if made:
            audit_log.record_audit_entry(by.actor, "approval asked", row, after=_build_audit_values(row))
    return row, made


def decide_approval(request: UUID, *, approve: bool, note: str, by: Clerk) -> Approval:
    """Approve or reject a request, and execute it if approved. ``by`` carries the limits it is approved with. Raises
    FollowUpNotPossibleError for one's own request, one decided before or expired, one above the approver's limit, and
    one where a single person may be acting as both users."""
    now = clock.real_now()
    with transaction.atomic():
        before = Approval.objects.get(pk=request)
        count = clerk_limits.load_manual_counter(by.user, before.merchant_id)
        if approve:
            # Locked, so that a person decides one request at a time and the sum has what they approved before.
            ClerkLimitCounter.objects.select_for_update().get(pk=count.pk)
            if why := explain_approver_refusal(before, by):
                raise FollowUpNotPossibleError(why)
        changes: dict[str, Any] = {
            "state": Approval.State.APPROVED if approve else Approval.State.REJECTED,
            "decided_by": by.user,
            "decided_by_name": by.name,
            "decided_at": now,
            "decision_note": mask_note(note, MAX_FOLLOW_UP_NOTE_CHARS),
            "follow_up": identifiers.row_id() if approve else None,
            "notice": "" if approve else Approval.Notice.DECISION,
        }
        moved = (
            Approval.objects.filter(pk=request, state=Approval.State.ASKED, expires_at__gt=now)
            .exclude(asked_by=by.user)
            .update(**changes)
        )
        if not moved:
            raise FollowUpNotPossibleError(_explain_missed_decision(before, by))
        row = Approval.objects.get(pk=request)
        if row.follow_up is not None:
            clerk_limits.record_approved_move(count, by.user, row.follow_up, row.amount, row.currency)
        audit_log.record_audit_entry(
            by.actor,
            "approval given" if approve else "approval rejected",
            row,
            before=_build_audit_values(before),
            after=_build_audit_values(row),
        )
    return execute_approval(row, by.actor) if approve else row


def explain_approver_refusal(row: Approval, by: Clerk) -> str:
    """Why ``by`` cannot approve this; "" if they can. The compare-and-set itself refuses the one who asked."""
    if row.asked_by_id == by.user or row.state != Approval.State.ASKED:
        return ""
    members = Payment.objects.filter(chain=row.payment.chain).defer("request", "means_sealed", "means_fingerprint")
    chain = Chain(list(members.order_by("id")))
    place = find_row_owner(row.payment)
    if names := independence.list_common_actors(row.asked_by_id, by.user, place):
        words = _(
            "%s made or changed the user who asked or yours, so this would not be a second person. Somebody else has "
            "to decide, or an independent person confirms these users first."
        )
        return words % ", ".join(names)
    askers = independence.list_acting_names(row.asked_by_id, place)
    for person in clerk_limits.list_clerk_people(by, place):
        if why := _describe_exceeded_limit(row, person, chain, askers):
            return why
    return ""


def _describe_exceeded_limit(row: Approval, person: ActingPerson, chain: Chain, askers: set[str]) -> str:
    """The limit of the approver that the request would exceed, as text; "" for none."""
    if person.limit is not None and row.amount + sum_unapproved_moves(askers.union(person.names), chain) > person.limit:
        most = f"{money.format_amount(person.limit)} {row.currency}"
        words = _("This is above your own limit of %s for this payment. Somebody with a higher one has to decide.")
        return words % most
    if person.day is not None:
        moved = sum_recent_manual_moves(person.users, row.merchant_id, row.currency)
        if moved + row.amount > person.day:
            most, before = (f"{money.format_amount(each)} {row.currency}" for each in (person.day, moved))
            words = _(
                "With %(before)s before, this is above your own limit of %(most)s in 24 hours. Somebody else has to."
            )
            return words % {"before": before, "most": most}
    return ""


def withdraw_approval(request: UUID, *, by: Clerk) -> Approval:
    """Withdraw one's own request. Raises FollowUpNotPossibleError."""
    with transaction.atomic():
        before = Approval.objects.get(pk=request)
        moved = Approval.objects.filter(pk=request, state=Approval.State.ASKED, asked_by=by.user).update(
            state=Approval.State.WITHDRAWN, decided_at=clock.real_now(), notice=""
        )
        if not moved:
            raise FollowUpNotPossibleError(
                _("Only who asked can withdraw a request, and only while nobody has decided it.")
            )
        row = Approval.objects.get(pk=request)
        audit_log.record_audit_entry(
            by.actor, "approval withdrawn", row, before=_build_audit_values(before), after=_build_audit_values(row)
        )
    return row


def _explain_missed_decision(row: Approval, by: Clerk) -> str:
    if row.asked_by_id == by.user:
        return _("You asked for this yourself: somebody else has to decide it.")
    if row.state != Approval.State.ASKED:
        who = row.decided_by_name or row.asked_by_name
        return _("This was decided before, by %(who)s: %(state)s.") % {"who": who, "state": _(row.get_state_display())}
    return _("This request is too old: it could be decided until %s UTC.") % f"{row.expires_at:%Y-%m-%d %H:%M}"


def execute_approval(row: Approval, by: audit_log.Actor) -> Approval:
    """Send the follow-up of an approved request, or record the outcome of its payout, and store what became of it. A
    follow-up sent before is not sent again."""
    assert row.follow_up is not None
    if row.payment_type == PAYOUT_TYPE:
        return _execute_payout_decision(row, by)
    target = Payment.objects.select_related("merchant", "channel").get(pk=row.payment_id)
    order = FollowUpOrder(target=target, code=row.payment_type, amount=row.amount, reason=row.reason, note=row.note)
    try:
        # The refusal is stored, and the audit log has one language whoever decides.
        with translation.override("en"):
            made = Payment.objects.filter(pk=row.follow_up).first() or execute_follow_up(
                order, by, follow_up=row.follow_up
            )
    except FollowUpNotPossibleError as fault:
        return _end_request(row, by, why=str(fault))
    return _end_request(row, by, made)


def _execute_payout_decision(row: Approval, by: audit_log.Actor) -> Approval:
    """Record the outcome of a payout that an approved request names."""
    try:
        with translation.override("en"):
            made = payout_decisions.carry_out_decision(row.payment_id, row.reason, by)
    except FollowUpNotPossibleError as fault:
        return _end_request(row, by, why=str(fault))
    return _end_request(row, by, made)


def _end_request(row: Approval, by: audit_log.Actor, made: Payment | None = None, why: str = "") -> Approval:
    """Store the outcome: of the follow-up ``made``, or that there is none and ``why``.

    Two workers may carry one request out, where the first was stopped for a while. Under the request's lock the
    follow-up is looked for once more, and one that exists decides, also over a refusal that the other worker met."""
    with transaction.atomic():
        held = Approval.objects.select_for_update(no_key=True).get(pk=row.pk)
        assert held.follow_up is not None
        made = made or Payment.objects.filter(pk=held.follow_up).first()
        # A payout that was decided as not made is declined, and that was the request.
        refused = made is None or (made.status == Status.DECLINED and row.payment_type != PAYOUT_TYPE)
        state = Approval.State.FAILED if refused else Approval.State.DONE
        code = made.result_code if made is not None else ""
        if held.state == Approval.State.APPROVED or (made is not None and held.result_code == ""):
            if refused:
                ClerkLimitUsage.objects.filter(payment=held.follow_up).delete()
            elif held.state == Approval.State.FAILED:
                clerk_limits.restore_approved_move(held)
            Approval.objects.filter(pk=row.pk).update(state=state, result_code=code, notice=Approval.Notice.DECISION)
            row.refresh_from_db()
            after = _build_audit_values(row) | ({"why": why} if why and made is None else {})
            audit_log.record_audit_entry(by, "approval carried out", row, after=after)
        else:
            row.refresh_from_db()
    return row


def execute_abandoned_approvals() -> int:
    """Execute approved requests whose worker died before it did; returns how many. Also deletes manual moves older than
    every limit."""
    clerk_limits.delete_expired_moves()
    rows = Approval.objects.filter(
        state=Approval.State.APPROVED, decided_at__lt=clock.real_now() - APPROVAL_ABANDONED_AFTER
    )
    found = list(rows.order_by("decided_at")[:MAX_APPROVALS_PER_TICK])
    for row in found:
        execute_approval(row, audit_log.Actor(name=row.decided_by_name))
    return len(found)


TIMER: Final = Timer(
    name="approvals",
    about="Carry out approved requests whose worker died.",
    run=execute_abandoned_approvals,
    every_s=30.0,
    # It deletes the moves of clerks and tokens, too: due while there are any.
    earliest_due=f"""
        SELECT least((SELECT min(decided_at) + {interval_sql(APPROVAL_ABANDONED_AFTER)} FROM gateway_approval
                WHERE state = 'APPROVED'),
            (SELECT statement_timestamp() FROM gateway_clerklimitusage ORDER BY payment LIMIT 1),
            (SELECT statement_timestamp() FROM gateway_tokenlimitusage ORDER BY id LIMIT 1))""",  # noqa: S608 - a constant
)


def _build_audit_values(row: Approval) -> dict[str, Any]:
    return {
        "payment": row.payment_id.hex,
        "operation": row.payment_type,
        "amount": money.format_amount(row.amount),
        "currency": row.currency,
        "state": str(row.state),
        "asked by": row.asked_by_name,
        "decided by": row.decided_by_name,
        "follow-up": row.follow_up.hex if row.follow_up else "",
        "code": row.result_code,
        "over": str(row.over),
        "reason": row.reason,
        "note": row.note,
    }
