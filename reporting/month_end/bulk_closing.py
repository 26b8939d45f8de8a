"""Preparing or signing the months of all merchants as background work, one merchant after another.

Each month is prepared or signed by the code of the single page (reporting.month_end.closing), with the rights and the
figures of that moment. What cannot be stays as it is; the message says how many, and why. Source: decision 0098.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from gateway.access import audit_log, permissions
from gateway.access.permissions import RowOwner
from gateway.background import queue
from gateway.background.files import AttemptFolder
from gateway.models import BackgroundWork, Merchant
from reporting.month_end import closing
from reporting.month_end.closing import Closer, ClosingRefusedError
from reporting.month_end.models import MonthClosing
from reporting.month_end.statement import MonthScope, build_merchant_statements

CLOSING_PERMISSIONS: Final = {"prepare": "reporting.add_monthclosing", "sign": "reporting.change_monthclosing"}
"""Verb → the permission that it needs on the merchant."""
CLOSING_SLICE_MERCHANTS: Final = 10


def list_months_to_close(verb: str, month: date, user: Any) -> list[UUID]:
    """The merchants whose month the user may ``prepare`` (balanced, and not prepared yet) or ``sign`` (prepared by
    others), by name."""
    merchants = permissions.list_permitted_merchants(user, CLOSING_PERMISSIONS[verb])
    active = MonthClosing.objects.filter(month=month, state__in=closing.ACTIVE_CLOSING_STATES, merchant__in=merchants)
    if verb == "sign":
        prepared = active.filter(state=MonthClosing.State.PREPARED).exclude(prepared_by=user.pk)
        return list(prepared.order_by("merchant__name", "merchant").values_list("merchant", flat=True))
    statements = build_merchant_statements(
        MonthScope(month=month, merchants=frozenset(merchants.values_list("pk", flat=True)))
    )
    balanced = [ident for ident, statement in statements.items() if ident is not None and statement.is_balanced]
    left = merchants.filter(pk__in=balanced).exclude(pk__in=active.values("merchant"))
    return list(left.order_by("name", "pk").values_list("pk", flat=True))


def close_months_slice(row: BackgroundWork, _folder: AttemptFolder, alive: Callable[[], None]) -> queue.SliceResult:
    """Prepare or sign the next CLOSING_SLICE_MERCHANTS months. ``parameters``: verb, month, language and the address of
    who asked; the cursor's ``left``: merchants to come; ``made``: how many months were prepared or signed; ``refused``:
    why others were not → how many."""
    verb, month = row.parameters["verb"], date.fromisoformat(row.parameters["month"])
    user = get_user_model().objects.get(pk=row.owner_id)
    by = Closer(user=int(user.pk), actor=audit_log.Actor(name=user.get_username(), ip=row.parameters["ip"]))
    with translation.override(row.parameters["language"]):
        cursor = dict(row.cursor)
        if not cursor:
            left = [ident.hex for ident in list_months_to_close(verb, month, user)]
            cursor = {"left": left, "done": 0, "made": 0, "refused": {}}
        now, later = cursor["left"][:CLOSING_SLICE_MERCHANTS], cursor["left"][CLOSING_SLICE_MERCHANTS:]
        refused, made = Counter[str](cursor["refused"]), cursor["made"]
        for ident in now:
            alive()
            try:
                _close_month(verb, month, UUID(ident), user, by)
                made += 1
            except ClosingRefusedError as fault:
                refused[str(fault)] += 1
        done = cursor["done"] + len(now)
        message = _describe_outcome(verb, made, refused)
    cursor = {"left": later, "done": done, "made": made, "refused": dict(refused)}
    return queue.SliceResult(
        done=done, cursor=cursor, total=done + len(later), finished=not later, message=message[:500]
    )


def _close_month(verb: str, month: date, ident: UUID, user: Any, by: Closer) -> None:
    """Prepare or sign one month, unless a slice that died has done it. Raises ClosingRefusedError."""
    merchant = Merchant.objects.get(pk=ident)
    if not permissions.has_permission(user, CLOSING_PERMISSIONS[verb], RowOwner(merchant=merchant.pk)):
        raise ClosingRefusedError(_("You may no longer close months of this merchant."))
    row = closing.find_active_closing(merchant, month)
    if verb == "prepare":
        if row is None:
            closing.prepare_month(merchant, month, "", by=by)
        elif row.prepared_by_id != by.user:
            raise ClosingRefusedError(_("Somebody else has prepared this month already."))
        return
    if row is None:
        raise ClosingRefusedError(_("Somebody else was faster; look at the month again."))
    if row.state == MonthClosing.State.PREPARED:
        closing.sign_month(row, by=by)
    elif row.signed_by_id != by.user:
        raise ClosingRefusedError(_("Somebody else was faster; look at the month again."))


def _describe_outcome(verb: str, made: int, refused: Counter[str]) -> str:
    if verb == "prepare":
        words = ngettext("%d month is prepared.", "%d months are prepared.", made)
    else:
        words = ngettext("%d month is closed.", "%d months are closed.", made)
    return " ".join([words % made, *(f"{count}: {why}" for why, count in sorted(refused.items()))])


MONTHS_CLOSING: Final = queue.WorkKind(
    name="months closing", about="the months of all merchants, prepared or signed",
    right="reporting.view_monthclosing", step=close_months_slice,
)  # fmt: skip
