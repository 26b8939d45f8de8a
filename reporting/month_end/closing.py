"""Closing a month: one person prepares it, a second one signs the same figures; reopened only with a reason.

The second person is another one, not just another user: neither may be acting as the other (decision 0053). Each step
is a compare-and-set with its audit entry. Source: decision 0091.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from gateway.access import audit_log
from gateway.access.permissions import RowOwner
from gateway.backoffice.access.independence import list_common_actors, load_handling_ties
from gateway.core import clock
from gateway.core.masking import mask_note
from gateway.models import Merchant
from reporting.models import SettlementFile
from reporting.month_end.closed_months import hold_month_alone
from reporting.month_end.models import MAX_CLOSING_NOTE_CHARS, MonthClosing
from reporting.month_end.statement import (
    MonthScope,
    MonthStatement,
    build_statement,
    digest_figures,
    is_month_over,
)
from reporting.settlement.intake import UNFINISHED_STATES

ACTIVE_CLOSING_STATES = (MonthClosing.State.PREPARED, MonthClosing.State.SIGNED)


class ClosingRefusedError(Exception):
    """The step is not possible; the text says why and may be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closer:
    """The person who takes a step. ``user``: the user's key."""

    user: int
    actor: audit_log.Actor


def find_active_closing(merchant: Merchant, month: date) -> MonthClosing | None:
    """The closing that waits for its second person, or is signed."""
    return MonthClosing.objects.filter(merchant=merchant, month=month, state__in=ACTIVE_CLOSING_STATES).first()


def scope_of_merchant(merchant: Merchant, month: date) -> MonthScope:
    """The month of one merchant."""
    return MonthScope(month=month, merchants=frozenset({merchant.pk}))


def explain_not_closable(merchant: Merchant, month: date, statement: MonthStatement) -> str:
    """Why the month cannot be closed now; "" if it can."""
    if not is_month_over(merchant, month):
        return _("The month is not over.")
    if not statement.is_balanced:
        return _("The balance is not 0.00, or something is still open.")
    if SettlementFile.objects.filter(state__in=UNFINISHED_STATES).exists():
        return _("A settlement file is being read. Wait until it is done.")
    return ""


def prepare_month(merchant: Merchant, month: date, note: str, *, by: Closer) -> MonthClosing:
    """Ask a second person to sign the month's figures as they are. Raises ClosingRefusedError."""
    statement = build_statement(scope_of_merchant(merchant, month))
    if why := explain_not_closable(merchant, month, statement):
        raise ClosingRefusedError(why)
    figures = statement.as_json()
    row = MonthClosing(
        merchant=merchant,
        month=month,
        figures=figures,
        digest=digest_figures(figures),
        note=mask_note(note, MAX_CLOSING_NOTE_CHARS),
        prepared_by_id=by.user,
        prepared_by_name=by.actor.name[:150],
        prepared_at=clock.real_now(),
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            _record(by, "month prepared", row, {"digest": row.digest, "note": row.note})
    except IntegrityError:
        raise ClosingRefusedError(_("Somebody else has prepared this month already.")) from None
    return row


def explain_signature_refusal(row: MonthClosing, user: int) -> str:
    """Why the user cannot sign what was prepared; "" if they can."""
    if row.prepared_by_id == user:
        return _("You prepared this month yourself: somebody else signs it.")
    place = RowOwner(merchant=row.merchant_id)
    ties = load_handling_ties(place)
    one, other = row.prepared_by_id, user
    if one in ties.handlers(other) or other in ties.handlers(one) or list_common_actors(one, other, place):
        words = _("You and %s may be the same person: one of you, or somebody behind both, made or changed the other.")
        return words % row.prepared_by_name
    return ""


def sign_month(row: MonthClosing, *, by: Closer) -> MonthClosing:
    """Close the month with the figures that were prepared. Raises ClosingRefusedError, also when they have changed."""
    if why := explain_signature_refusal(row, by.user):
        raise ClosingRefusedError(why)
    with transaction.atomic():
        hold_month_alone(row.merchant_id, row.month)
        statement = build_statement(scope_of_merchant(row.merchant, row.month))
        if why := explain_not_closable(row.merchant, row.month, statement):
            raise ClosingRefusedError(why)
        if digest_figures(statement.as_json()) != row.digest:
            raise ClosingRefusedError(_("The figures have changed since the month was prepared. Return it."))
        now = {"signed_by_id": by.user, "signed_by_name": by.actor.name[:150], "signed_at": clock.real_now()}
        prepared, signed = MonthClosing.State.PREPARED, MonthClosing.State.SIGNED
        return _move(row, prepared, signed, "month signed", now, by, digest=row.digest)


def return_month(row: MonthClosing, answer: str, *, by: Closer) -> MonthClosing:
    """Send what was prepared back to the first person. Raises ClosingRefusedError."""
    answer = mask_note(answer, MAX_CLOSING_NOTE_CHARS)
    if not answer:
        raise ClosingRefusedError(_("Say why you return it."))
    states = MonthClosing.State
    return _move(row, states.PREPARED, states.RETURNED, "month returned", {"answer": answer}, by, note=answer)


def withdraw_month(row: MonthClosing, answer: str, *, by: Closer) -> MonthClosing:
    """Take back what the same person prepared. Raises ClosingRefusedError."""
    if row.prepared_by_id != by.user:
        raise ClosingRefusedError(_("Who prepared it withdraws it."))
    answer, states = mask_note(answer, MAX_CLOSING_NOTE_CHARS), MonthClosing.State
    return _move(row, states.PREPARED, states.WITHDRAWN, "month withdrawn", {"answer": answer}, by, note=answer)


def reopen_month(row: MonthClosing, reason: str, *, by: Closer) -> MonthClosing:
    """Open a signed month again; ``reason`` is kept for good. Raises ClosingRefusedError."""
    reason = mask_note(reason, MAX_CLOSING_NOTE_CHARS)
    if not reason:
        raise ClosingRefusedError(_("A closed month is reopened only with a reason."))
    now = {
        "reason": reason,
        "reopened_by_id": by.user,
        "reopened_by_name": by.actor.name[:150],
        "reopened_at": clock.real_now(),
    }
    return _move(row, MonthClosing.State.SIGNED, MonthClosing.State.REOPENED, "month reopened", now, by, reason=reason)


def _move(
    row: MonthClosing,
    before: MonthClosing.State,
    after: MonthClosing.State,
    action: str,
    changes: Mapping[str, Any],
    by: Closer,
    **values: str,
) -> MonthClosing:
    with transaction.atomic():
        if not MonthClosing.objects.filter(pk=row.pk, state=before).update(state=after, **changes):
            raise ClosingRefusedError(_("Somebody else was faster; look at the month again."))
        _record(by, action, row, values)
    row.refresh_from_db()
    return row


def _record(by: Closer, action: str, row: MonthClosing, values: Mapping[str, str]) -> None:
    about = {"month": f"{row.month:%Y-%m}", "merchant": row.merchant.name}
    audit_log.record_audit_entry(by.actor, action, row, after={**about, **values})
