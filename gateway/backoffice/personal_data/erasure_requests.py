"""Four eyes for erasing a shopper's data: one person asks, an independent second one approves, and then it is erased.

Each step is a compare-and-set with its audit entry. The person's e-mail or telephone number is stored until the request
ends, and masked afterwards. An approval that nobody carries out lapses: the request waits for a second person again.
Source: docs/decisions/0102, 0053, 0110 and 0117.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from gateway.access import audit_log
from gateway.access.permissions import RowOwner
from gateway.backoffice.access.independence import list_common_actors, load_handling_ties
from gateway.backoffice.kit.time_limit import PageTooSlowError, limit_page_time
from gateway.backoffice.personal_data.erasure_previews import preview_erasure_in_part
from gateway.core import clock
from gateway.core.masking import mask_note
from gateway.models import ErasureRequest
from gateway.personal_data.erasure import ErasureConflictError, PersonStillActiveError, erase_person
from gateway.personal_data.export import export_person
from gateway.personal_data.people import PersonNotFoundError, PersonSelector, mask_person_value, parse_person
from gateway.timers.registry import Timer

MAX_ERASURE_REASON_CHARS: Final = 500
MAX_ERASURE_PAGE_S: Final = 25
"""No statement starts later or takes longer, so that the answer comes before a proxy gives up at 75 s."""
MAX_ERASURE_WAIT: Final = timedelta(days=7)
"""A request that waits for longer is late: a shopper has to be answered within a month (GDPR, article 12.3)."""
ERASURE_APPROVAL_LIFETIME: Final = timedelta(days=14)
"""An approval that was not carried out until then has to be given again."""
BY_TIME: Final = audit_log.Actor(name="erasure approvals")
ErasureState = ErasureRequest.State


OPEN_ERASURE_STATES: Final = (ErasureState.ASKED, ErasureState.APPROVED)


class ErasureRefusedError(Exception):
    """The step is not possible; the text says why and may be shown."""


class ErasureTooSlowError(Exception):
    """It takes longer than a page may; nothing was erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureClerk:
    """The person who takes a step. ``user``: the user's key."""

    user: int
    actor: audit_log.Actor


def preview_erasure(selector: PersonSelector, *, by: ErasureClerk) -> dict[str, Any]:
    """The report as it would be, or the part of it that is found in a page's time. Raises ErasureRefusedError."""
    try:
        return _forget(selector, by, dry_run=True)
    except ErasureTooSlowError:
        pass
    try:
        return preview_erasure_in_part(selector)
    except PersonStillActiveError as fault:
        raise ErasureRefusedError(describe_open_matters(fault)) from None
    except PersonNotFoundError as fault:
        raise ErasureRefusedError(str(fault)) from None


def request_erasure(selector: PersonSelector, reason: str, *, by: ErasureClerk) -> ErasureRequest:
    """Ask a second person to erase. Raises ErasureRefusedError, also when nothing can be erased now."""
    reason = mask_note(reason, MAX_ERASURE_REASON_CHARS)
    if not reason:
        raise ErasureRefusedError(_("Say why: who asked for it, and when."))
    report = preview_erasure(selector, by=by)
    row = ErasureRequest(
        merchant=selector.merchant,
        kind=selector.kind,
        value=selector.value,
        shown=mask_person_value(selector.value),
        reason=reason,
        asked_by_id=by.user,
        asked_by_name=by.actor.name[:150],
        asked_at=clock.real_now(),
        report=report,
    )
    with transaction.atomic():
        row.save(force_insert=True)
        _record(by.actor, "erasure asked", row)
    return row


def explain_decision_refusal(row: ErasureRequest, user: int) -> str:
    """Why the user cannot approve the request; "" if they can."""
    if row.state != ErasureState.ASKED:
        return _("It was decided already.")
    if row.asked_by_id == user:
        return _("You asked for this, so somebody else decides it.")
    asker = row.asked_by_id
    if asker is None:
        return ""
    place = RowOwner(merchant=row.merchant_id)
    ties = load_handling_ties(place)
    tied = asker in ties.handlers(user) or user in ties.handlers(asker)
    if tied or list_common_actors(asker, user, place):
        words = _("You and %s may be the same person: one of you, or somebody behind both, made or changed the other.")
        return words % row.asked_by_name
    return ""


def approve_erasure(row: ErasureRequest, *, by: ErasureClerk) -> ErasureRequest:
    """Erase what was asked for; what takes longer than a page may is left approved, for the command. A request without
    a preview is given one first, so that nothing unseen is approved. Raises ErasureRefusedError; the request stays
    then."""
    if why := explain_decision_refusal(row, by.user):
        raise ErasureRefusedError(why)
    try:
        selector = parse_person(row.merchant, row.kind, row.value)
    except PersonNotFoundError as fault:
        raise ErasureRefusedError(str(fault)) from None
    if not row.report:
        waiting = ErasureRequest.objects.filter(pk=row.pk, state=ErasureState.ASKED)
        waiting.update(report=preview_erasure(selector, by=by))
        raise ErasureRefusedError(_("The page did not show what would be erased; now it does. Look, then approve."))
    try:
        with transaction.atomic():
            report = _forget(selector, by, dry_run=False)
            return _end(row, (ErasureState.ASKED,), ErasureState.DONE, "erasure carried out", {"report": report}, by)
    except ErasureTooSlowError:
        changes = {"value": row.value}  # the command finds the person by it
        return _end(row, (ErasureState.ASKED,), ErasureState.APPROVED, "erasure approved", changes, by)


def carry_out_erasure(row: ErasureRequest) -> dict[str, Any]:
    """Erase, at the command line, what two people asked for and approved; returns the report. Raises
    ErasureRefusedError for a request that is not approved, and what erase_person raises."""
    if row.state != ErasureState.APPROVED:
        raise ErasureRefusedError(f"the request is not approved: {row.get_state_display()}")
    if is_erasure_lapsed(row, clock.real_now()):
        days = ERASURE_APPROVAL_LIFETIME.days
        raise ErasureRefusedError(f"the approval is older than {days} days: it has to be approved again")
    selector = parse_person(row.merchant, row.kind, row.value)
    by = audit_log.COMMAND_LINE_ACTOR
    with transaction.atomic():
        report = erase_person(selector, by=by)
        approved = ErasureRequest.objects.filter(pk=row.pk, state=ErasureState.APPROVED)
        if not approved.update(state=ErasureState.DONE, value="", report=report):
            raise ErasureRefusedError("the request was rejected or withdrawn meanwhile")
        row.refresh_from_db()
        _record(by, "erasure carried out", row)
    return report


def find_late_erasures() -> tuple[ErasureRequest, ...]:
    """Requests that have waited too long for a second person or the command, the oldest first."""
    since = clock.real_now() - MAX_ERASURE_WAIT
    rows = ErasureRequest.objects.filter(state__in=OPEN_ERASURE_STATES, asked_at__lt=since)
    return tuple(rows.defer("report").order_by("asked_at", "pk"))


def is_erasure_late(row: ErasureRequest, now: datetime) -> bool:
    """Whether an open request has waited too long."""
    return row.state in OPEN_ERASURE_STATES and row.asked_at < now - MAX_ERASURE_WAIT


def is_erasure_lapsed(row: ErasureRequest, now: datetime) -> bool:
    """Whether an approval is too old to be carried out."""
    decided = row.decided_at
    return row.state == ErasureState.APPROVED and decided is not None and decided <= now - ERASURE_APPROVAL_LIFETIME


def lapse_old_approvals() -> int:
    """Have requests whose approval was not carried out in time wait for a second person again; returns how many. The
    shopper's request does not end by that."""
    old = clock.real_now() - ERASURE_APPROVAL_LIFETIME
    approved = ErasureRequest.objects.filter(state=ErasureState.APPROVED, decided_at__lte=old)
    lapsed = 0
    for row in approved.order_by("pk"):
        with transaction.atomic():
            same = approved.filter(pk=row.pk, decided_at=row.decided_at)
            undecided = {"decided_by": None, "decided_by_name": "", "decided_at": None}
            if not same.update(state=ErasureState.ASKED, **undecided):
                continue  # carried out or ended meanwhile
            row.refresh_from_db()
            _record(BY_TIME, "erasure approval lapsed", row)
        lapsed += 1
    return lapsed


def reject_erasure(row: ErasureRequest, *, by: ErasureClerk) -> ErasureRequest:
    """End the request without erasing. Raises ErasureRefusedError."""
    if row.asked_by_id == by.user:
        raise ErasureRefusedError(_("You asked for this, so somebody else decides it."))
    return _end(row, OPEN_ERASURE_STATES, ErasureState.REJECTED, "erasure rejected", {"report": {}}, by)


def withdraw_erasure(row: ErasureRequest, *, by: ErasureClerk) -> ErasureRequest:
    """Take one's own request back. Raises ErasureRefusedError."""
    if row.asked_by_id != by.user:
        raise ErasureRefusedError(_("Who asked for it withdraws it."))
    return _end(row, OPEN_ERASURE_STATES, ErasureState.WITHDRAWN, "erasure withdrawn", {"report": {}}, by)


def describe_open_matters(fault: PersonStillActiveError) -> str:
    """What has to end first, in the user's language."""
    matters = "; ".join(f"{one.title}: {', '.join(one.ids)}" for one in fault.matters)
    return _("Nothing was erased, because something is open.") + f" {matters}"


def export_within_page(selector: PersonSelector) -> dict[str, Any]:
    """The person's data, as export_person. Raises ErasureRefusedError where that takes longer than a page may."""
    try:
        with limit_page_time(MAX_ERASURE_PAGE_S):
            return export_person(selector)
    except PersonNotFoundError as fault:
        raise ErasureRefusedError(str(fault)) from None
    except PageTooSlowError:
        raise ErasureRefusedError(_("That takes too long for a page. Use manage.py forget_shopper --export.")) from None


def _forget(selector: PersonSelector, by: ErasureClerk, *, dry_run: bool) -> dict[str, Any]:
    try:
        with limit_page_time(MAX_ERASURE_PAGE_S):
            return erase_person(selector, by=by.actor, dry_run=dry_run)
    except PageTooSlowError:
        raise ErasureTooSlowError from None
    except PersonStillActiveError as fault:
        raise ErasureRefusedError(describe_open_matters(fault)) from None
    except PersonNotFoundError as fault:
        raise ErasureRefusedError(str(fault)) from None
    except ErasureConflictError:
        raise ErasureRefusedError(_("Something of this person changed meanwhile. Try again.")) from None


def _end(
    row: ErasureRequest,
    before: Iterable[ErasureRequest.State],
    state: ErasureRequest.State,
    action: str,
    changes: Mapping[str, Any],
    by: ErasureClerk,
) -> ErasureRequest:
    """Take the request from one of the states ``before`` to ``state``."""
    now = {"decided_by_id": by.user, "decided_by_name": by.actor.name[:150], "decided_at": clock.real_now()}
    with transaction.atomic():
        waiting = ErasureRequest.objects.filter(pk=row.pk, state__in=before)
        if not waiting.update(**({"value": "", "state": state} | now | dict(changes))):
            raise ErasureRefusedError(_("It was decided already."))
        row.refresh_from_db()
        _record(by.actor, action, row)
    return row


def _record(by: audit_log.Actor, action: str, row: ErasureRequest) -> None:
    facts = {"kind": row.kind, "shown": row.shown, "reason": row.reason, "state": row.state}
    audit_log.record_audit_entry(by, action, row, after=facts)


TIMER: Final = Timer(
    name="erasure approvals",
    run=lapse_old_approvals,
    every_s=3600.0,
    about="Ask again for approvals to erase a shopper's data that were not carried out within 14 days.",
)
