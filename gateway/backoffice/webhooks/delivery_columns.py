"""Columns of lists of webhook deliveries. A row is what gateway.backoffice.webhooks.delivery_pages renders of one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from gateway.backoffice.kit.formatting import format_number, render_moment
from gateway.backoffice.kit.list_columns import Cell, ListColumn, render_link, render_pill


def _render_last_attempt(each: Mapping[str, Any]) -> Cell:
    row, last = each["row"], each["last"]
    if last is None:
        return "–"
    pill = render_pill({"tone": "good" if each["good"] else "bad", "text": last.status or last.failure})
    due = render_moment(row.due_at, "short", named=False)
    waits = format_html(" · {} {}", _("next"), due) if each["waits"] else SafeString()
    return format_html("{} <small>{}× · {} ms{}</small>", pill, row.attempts, last.duration_ms, waits)


def _render_last_try(each: Mapping[str, Any]) -> Cell:
    return render_moment(each["row"].give_up_at if each["waits"] else None, named=False)


def _render_payment(each: Mapping[str, Any]) -> Cell:
    if not each["payment"]:
        return ""
    ident = each["row"].payment.hex
    return format_html('<a href="{}" class="ck-mono">{}…{}</a>', each["payment"], ident[:8], ident[-4:])


def _render_merchant(each: Mapping[str, Any]) -> str:
    return each["endpoint"].merchant.name if each["endpoint"] is not None else "–"


DELIVERY_COLUMNS: Final[Mapping[str, ListColumn]] = MappingProxyType({
    "event": ListColumn(
        title=lazy("Event (merchant's clock)"),
        render=lambda each: render_link(each["address"], render_moment(each["row"].created_at, named=False)),
    ),
    "what": ListColumn(
        title=lazy("What"), render=lambda each: f"{each['row'].kind} {each['row'].action.lower()}",
    ),
    "state": ListColumn(title=lazy("State"), render=lambda each: render_pill(each["pill"])),
    "last": ListColumn(title=lazy("Last attempt"), render=_render_last_attempt),
    "endpoint": ListColumn(title=lazy("Endpoint"), render=lambda each: each["target"], style="ck-cut"),
    "payment": ListColumn(title=lazy("Payment"), render=_render_payment),
    "merchant": ListColumn(title=lazy("Merchant"), render=_render_merchant, style="ck-cut"),
    "attempts": ListColumn(
        title=lazy("Attempts"), render=lambda each: format_number(each["row"].attempts), style="num",
    ),
    "ended": ListColumn(
        title=lazy("Ended"), render=lambda each: render_moment(each["row"].ended_at, named=False), timed=True,
    ),
    "tried_until": ListColumn(title=lazy("Tried until"), render=_render_last_try, timed=True),
    "id": ListColumn(title="id", render=lambda each: each["row"].pk.hex),
})  # fmt: skip
USUAL_DELIVERY_COLUMNS: Final = ("event", "what", "state", "last", "endpoint", "payment")
"""Columns of a user who chose none."""
ENDPOINT_DELIVERY_COLUMNS: Final = ("event", "what", "state", "last")
"""Columns on the page of one endpoint."""
