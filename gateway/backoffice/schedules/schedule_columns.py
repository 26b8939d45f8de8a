"""Columns of the list of schedules. A row is what gateway.backoffice.schedules.schedule_details renders of a job."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from gateway.backoffice.kit.formatting import format_money, render_moment
from gateway.backoffice.kit.list_columns import Cell, ListColumn, render_link, render_pill
from gateway.core.masking import mask_text
from gateway.scheduling.job_plans import PLAN_HORIZON


def _render_schedule(each: Mapping[str, Any]) -> SafeString:
    name = render_link(each["address"], each["name"])
    return format_html("{}<br><small>{}</small>", name, each["times"]) if each["times"] else name


def _render_last_run(each: Mapping[str, Any]) -> SafeString:
    if each["last"] is None:
        return format_html('<span class="ck-quiet">{}</span>', _("no run yet"))
    at, words = render_moment(each["last"].due_at, "minutes", named=False), each["words"]
    return format_html("{} <small>{}{}</small>", render_pill(each["run"]), at, f" · {words}" if words else "")


def _render_end(each: Mapping[str, Any]) -> Cell:
    """The end of a schedule; one beyond the horizon of plans is none."""
    ends_at = each["row"].ends_at
    return render_moment(ends_at if ends_at is not None and ends_at < PLAN_HORIZON else None, "minutes", named=False)


SCHEDULE_COLUMNS: Final[Mapping[str, ListColumn]] = MappingProxyType({
    "schedule": ListColumn(title=lazy("Schedule"), render=_render_schedule),
    "amount": ListColumn(
        title=lazy("Amount"), render=lambda each: format_money(each["row"].amount, each["row"].currency), style="num",
    ),
    "state": ListColumn(title=lazy("State"), render=lambda each: render_pill(each["pill"])),
    "next": ListColumn(
        title=lazy("Next run"), render=lambda each: render_moment(each["row"].next_at, named=False), timed=True,
    ),
    "last": ListColumn(title=lazy("Last result"), render=_render_last_run),
    "merchant": ListColumn(
        title=lazy("Merchant"), render=lambda each: each["row"].merchant.name, style="ck-cut",
    ),
    "means": ListColumn(title=lazy("Card or account"), render=lambda each: each["means"] or "–"),
    "channel": ListColumn(
        title=lazy("Channel"), render=lambda each: f"{each['row'].merchant.name}: {each['row'].channel.name}",
        style="ck-cut",
    ),
    "expression": ListColumn(
        title=lazy("Plan"), render=lambda each: f"{each['row'].expression} · {each['row'].zone}", style="ck-cut",
    ),
    "memo": ListColumn(
        title=lazy("Memo"), render=lambda each: mask_text(each["row"].merchant_memo) or "–", style="ck-cut",
    ),
    "declined": ListColumn(
        title=lazy("Failed in a row"), render=lambda each: str(each["row"].declined), style="num",
    ),
    "created": ListColumn(
        title=lazy("Made"), render=lambda each: render_moment(each["row"].created_at, "minutes", named=False),
        timed=True,
    ),
    "ends": ListColumn(title=lazy("Ends"), render=_render_end, timed=True),
    "id": ListColumn(title="id", render=lambda each: each["row"].pk.hex),
})  # fmt: skip
USUAL_SCHEDULE_COLUMNS: Final = ("schedule", "amount", "state", "next", "last", "merchant", "means")
"""Columns of a user who chose none."""
