"""Columns of the list of disputes. A row is what chargebacks.admin.formatting renders of a case, with its order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from chargebacks.stages import DisputeStage, describe_scheme_reason
from gateway.backoffice.kit.formatting import format_money, render_moment
from gateway.backoffice.kit.list_columns import ListColumn, render_link, render_pill
from gateway.core.masking import mask_text


def _render_reason(each: Mapping[str, Any]) -> SafeString:
    return format_html("<code>{}</code> {}", each["row"].reason_code, each["words"])


def _render_text(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda each: mask_text(getattr(each["row"], name)) or "–"


DISPUTE_COLUMNS: Final[Mapping[str, ListColumn]] = MappingProxyType({
    "opened": ListColumn(
        title=lazy("Opened"), timed=True, order=("opened_at", datetime),
        render=lambda each: render_link(
            each["address"], render_moment(each["row"].opened_at, "minutes", named=False)
        ),
    ),
    "left": ListColumn(
        title=lazy("Time left"), render=lambda each: render_pill(each["left"]) if each["left"] else "–",
    ),
    "amount": ListColumn(
        title=lazy("Amount"), render=lambda each: format_money(each["row"].amount, each["row"].currency), style="num",
        order=("amount", Decimal),
    ),
    "state": ListColumn(title=lazy("State"), render=lambda each: render_pill(each["pill"])),
    "order": ListColumn(
        title=lazy("Order"), style="ck-cut",
        render=lambda each: render_link(each["payment"], each["order"]) if each["order"] else "–",
    ),
    "reason": ListColumn(title=lazy("Reason"), render=_render_reason),
    "due": ListColumn(
        title=lazy("Answer by"), render=lambda each: each["due"] or "–", style="ck-whole", order=("due_at", datetime),
    ),
    "merchant": ListColumn(
        title=lazy("Merchant"), render=lambda each: each["row"].merchant.name, style="ck-cut",
    ),
    "channel": ListColumn(
        title=lazy("Channel"), render=lambda each: f"{each['row'].merchant.name}: {each['row'].channel.name}",
        style="ck-cut",
    ),
    "brand": ListColumn(title=lazy("Brand"), render=lambda each: each["row"].brand),
    "stage": ListColumn(title=lazy("Stage"), render=lambda each: _(DisputeStage(each["row"].stage).label)),
    "scheme": ListColumn(
        title=lazy("Scheme's reason"), render=lambda each: describe_scheme_reason(each["row"].scheme_reason) or "–",
    ),
    "case": ListColumn(title=lazy("Scheme's case id"), render=_render_text("scheme_case"), style="ck-break"),
    "arn": ListColumn(title="ARN", render=_render_text("arn"), style="ck-break"),
    "reference": ListColumn(
        title=lazy("Acquirer's reference"), render=_render_text("reference"), style="ck-break",
    ),
    "recovered": ListColumn(
        title=lazy("Came back"), style="num",
        render=lambda each: format_money(each["row"].recovered, each["row"].currency), order=("recovered", Decimal),
    ),
    "submitted": ListColumn(
        title=lazy("Submitted"), render=lambda each: render_moment(each["row"].submitted_at, "minutes", named=False),
        timed=True,
    ),
    "closed": ListColumn(
        title=lazy("Closed"), render=lambda each: render_moment(each["row"].closed_at, "minutes", named=False),
        timed=True,
    ),
    "note": ListColumn(title=lazy("Note"), render=lambda each: mask_text(each["note"]) or "–", style="ck-cut"),
    "id": ListColumn(title="id", render=lambda each: each["row"].pk.hex),
})  # fmt: skip
USUAL_DISPUTE_COLUMNS: Final = ("opened", "left", "amount", "state", "order", "reason", "due", "merchant")
"""Columns of a user who chose none."""
