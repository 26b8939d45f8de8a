"""Columns of lists of settlement lines. A row is what reporting.admin.exception_queue renders of a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as lazy

from gateway.backoffice.kit.formatting import format_money, render_moment
from gateway.backoffice.kit.list_columns import Cell, ListColumn, render_link, render_pill
from gateway.core.masking import mask_text
from reporting.templatetags.books import describe_line_kind


def _render_state(each: Mapping[str, Any]) -> SafeString:
    """The state of the matching; of a finding also what was found."""
    pill, finding = render_pill(each["pill"]), each.get("finding")
    if finding is None:
        return pill
    differs = f" {finding.expected} → {finding.found}" if finding.expected or finding.found else ""
    return format_html("{} <code>{}</code>{}", pill, finding.kind, differs)


def _render_order(each: Mapping[str, Any]) -> str:
    row = each["row"]
    return mask_text(row.merchant_transaction_id or row.tx_id1) or "–"


def _render_fee(each: Mapping[str, Any]) -> str:
    return format_money(each["row"].settlement_fee, each["row"].settlement_currency)


def _render_made(each: Mapping[str, Any]) -> Cell:
    row = each["row"]
    return render_moment(row.presented_at if row.presented_at_known else None, "minutes", named=False)


def _render_reason(each: Mapping[str, Any]) -> str:
    return mask_text(f"{each['row'].reason_code} {each['row'].reason_text}".strip()) or "–"


def _render_card(each: Mapping[str, Any]) -> str:
    row = each["row"]
    return f"{row.brand} {'•••• ' + row.last4 if row.last4 else ''}".strip() or "–"


def _render_text(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda each: mask_text(getattr(each["row"], name)) or "–"


LINE_COLUMNS: Final[Mapping[str, ListColumn]] = MappingProxyType({
    "settled": ListColumn(
        title=lazy("Settled"), render=lambda each: render_link(each["address"], f"{each['row'].settlement_date}"),
        order=("settlement_date", date),
    ),
    "what": ListColumn(title=lazy("What"), render=lambda each: describe_line_kind(each["row"])),
    "amount": ListColumn(
        title=lazy("Amount"), render=lambda each: format_money(each["row"].amount, each["row"].currency), style="num",
        order=("amount", Decimal),
    ),
    "state": ListColumn(title=lazy("State"), render=_render_state),
    "order": ListColumn(title=lazy("Order or id"), render=_render_order, style="ck-break"),
    "institute": ListColumn(title=lazy("Institute"), render=lambda each: each["row"].institute.name),
    "merchant": ListColumn(
        title=lazy("Merchant"), style="ck-cut",
        render=lambda each: each["row"].merchant.name if each["row"].merchant is not None else "–",
    ),
    "paid": ListColumn(
        title=lazy("Paid out"), style="num",
        render=lambda each: format_money(each["row"].settlement_amount, each["row"].settlement_currency),
    ),
    "fee": ListColumn(title=lazy("Fee"), render=_render_fee, style="num"),
    "made": ListColumn(title=lazy("Made"), render=_render_made, timed=True),
    "invoice": ListColumn(title=lazy("Invoice"), render=_render_text("merchant_invoice_id"), style="ck-break"),
    "reference": ListColumn(title=lazy("Their id"), render=_render_text("tx_id1"), style="ck-break"),
    "card": ListColumn(title=lazy("Card"), render=_render_card),
    "reason": ListColumn(title=lazy("Reason"), render=_render_reason),
    "arn": ListColumn(title="ARN", render=_render_text("arn"), style="ck-break"),
    "account": ListColumn(title=lazy("Account"), render=_render_text("institute_merchant_id"), style="ck-break"),
    "line": ListColumn(title=lazy("Line"), render=lambda each: str(each["row"].line), style="num"),
})  # fmt: skip
USUAL_LINE_COLUMNS: Final = ("settled", "what", "amount", "state", "order", "institute", "merchant")
"""Columns of a user who chose none."""
