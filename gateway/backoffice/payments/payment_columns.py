"""Columns of the list of payments: what each shows, and which of them a user has chosen.

Keeping a choice: gateway.backoffice.kit.list_columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from gateway.backoffice.kit import list_columns
from gateway.backoffice.kit.formatting import build_state_pill, format_money, render_moment
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.list_columns import ORDER_PARAMETER, Cell, ListColumn, PickedRow, render_link, render_pill
from gateway.backoffice.kit.result_words import describe_result
from gateway.backoffice.payments.chain_words import build_payment_pill
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.core import identifiers
from gateway.core.masking import mask_text
from gateway.models import Payment, Status

PAYMENT_LIST: Final = Payment._meta.label_lower
"""The list's name among a user's columns and saved views."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentColumn(ListColumn):
    """``render_sent``: the cell, in place of ``render``, for what only the sent parameters tell. ``field``: the column
    of the table that the list may be ordered by; '' for none."""

    render_sent: Callable[[Payment, Mapping[str, Any]], Cell] | None = None
    field: str = ""

    def render_cell(self, row: Payment, sent: Mapping[str, Any]) -> Cell:
        return self.render_sent(row, sent) if self.render_sent is not None else self.render(row)


def _read_sent(structure: str, name: str) -> Callable[[Payment, Mapping[str, Any]], str]:
    def read(_row: Payment, sent: Mapping[str, Any]) -> str:
        part = sent.get(structure)
        return mask_text(str(part.get(name) or "")) if isinstance(part, Mapping) else ""

    return read


def _render_when(row: Payment) -> SafeString:
    return render_link(build_payment_page_url(row.pk), render_moment(row.created_at, named=False))


def _render_state(row: Payment) -> SafeString:
    pill, why = build_payment_pill(row), describe_decline(row)
    shown = render_pill(pill)
    if not why:
        return shown
    code = row.result_code
    return format_html('{} <small class="ck-why-not">{} <span class="ck-code">{}</span></small>', shown, why, code)


def render_means(row: Payment) -> Cell:
    """Brand and last digits of the means."""
    last = row.answer.get("card", {}).get("last4Digits", "")
    return format_html('{} <span class="ck-mono">•••• {}</span>', row.brand, last) if last else row.brand


def _render_holder(row: Payment, sent: Mapping[str, Any]) -> str:
    found = (_read_sent(structure, "holder")(row, sent) for structure in ("card", "bankAccount"))
    return next((text for text in found if text), mask_text(str(row.answer.get("card", {}).get("holder") or "")))


def _render_shopper(row: Payment, sent: Mapping[str, Any]) -> str:
    names = (_read_sent("customer", name)(row, sent) for name in ("givenName", "surname"))
    return " ".join(name for name in names if name)


def describe_decline(row: Payment) -> str:
    """Why a payment was declined, in words, for the row of a list, whose pill says that it was; '' for any other."""
    if row.status != Status.DECLINED:
        return ""
    words = describe_result(row.result_code)
    head, _colon, reason = words.partition(":")
    return reason.strip() if head.strip() == str(build_state_pill(row.status)["text"]) else words


PAYMENT_COLUMNS: Final[Mapping[str, PaymentColumn]] = MappingProxyType({
    "when": PaymentColumn(title=_("When"), render=_render_when, field="created_at", timed=True),
    "what": PaymentColumn(title=_("What"), render=lambda row: format_payment_title(row), field="payment_type"),
    "amount": PaymentColumn(
        title=_("Amount"), render=lambda row: format_money(row.amount, row.currency), style="num",
        field="amount",
    ),
    "state": PaymentColumn(title=_("State"), render=_render_state, field="standing__state"),
    "means": PaymentColumn(title=_("Means"), render=render_means, field="brand", style="ck-whole"),
    "order": PaymentColumn(
        title=_("Order"), render=lambda row: mask_text(row.merchant_transaction_id), style="ck-cut",
        field="merchant_transaction_id",
    ),
    "merchant": PaymentColumn(
        title=_("Merchant"), render=lambda row: row.merchant.name, style="ck-cut", field="merchant__name",
    ),
    "channel": PaymentColumn(
        title=_("Channel"), render=lambda row: f"{row.merchant.name}: {row.channel.name}", style="ck-cut",
        field="channel__name",
    ),
    "approved": PaymentColumn(
        title=_("Approved amount"), render=lambda row: format_money(row.approved_amount, row.currency),
        style="num", field="approved_amount",
    ),
    "invoice": PaymentColumn(
        title=_("Invoice"), render=lambda row: mask_text(row.merchant_invoice_id), style="ck-cut",
        field="merchant_invoice_id",
    ),
    "memo": PaymentColumn(
        title=_("Memo"), render_sent=lambda _row, sent: mask_text(str(sent.get("merchantMemo") or "")), style="ck-cut",
    ),
    "shopper": PaymentColumn(title=_("Shopper"), render_sent=_render_shopper, style="ck-cut"),
    "email": PaymentColumn(title=_("E-mail"), render_sent=_read_sent("customer", "email"), style="ck-cut"),
    "holder": PaymentColumn(title=_("Holder"), render_sent=_render_holder, style="ck-cut"),
    "result": PaymentColumn(
        title=_("Result"), field="result_code",
        render=lambda row: describe_result(row.result_code),
    ),
    "shortId": PaymentColumn(title="shortId", render=lambda row: identifiers.format_short_id(row.number)),
    "id": PaymentColumn(title="id", render=lambda row: row.pk.hex),
    "acquirer": PaymentColumn(title=_("Connector"), render=lambda row: row.connector, field="connector"),
    "reference": PaymentColumn(
        title=_("Acquirer's reference"), render=lambda row: row.connector_tx_id, style="ck-cut",
    ),
    "completed": PaymentColumn(
        title=_("Completed"), render=lambda row: render_moment(row.completed_at, named=False),
        field="completed_at", timed=True,
    ),
})  # fmt: skip
USUAL_COLUMNS: Final = ("when", "what", "amount", "state", "means", "order", "merchant")
"""Columns of a user who chose none."""


def choose_payment_columns(user: Any, asked: str) -> list[str]:
    """The columns of the list: those of its address, else the user's own, else the usual ones."""
    return list_columns.choose_columns(user, PAYMENT_LIST, asked, list(PAYMENT_COLUMNS), USUAL_COLUMNS)


def parse_order(text: str) -> str:
    """The column of the table that the list is ordered by, with ``-`` before it for descending; '' for newest first,
    which is the order of every other list."""
    name, down = text.removeprefix("-"), text.startswith("-")
    field = PAYMENT_COLUMNS[name].field if name in PAYMENT_COLUMNS else ""
    if not field or (name == "when" and down):
        return ""
    return f"-{field}" if down else field


def render_head(names: Iterable[str], order: str, query: str) -> list[dict[str, Any]]:
    """Title and style of each column, how the list is ordered by it (``sorted``: as of aria-sort), and the address that
    orders by it, or the other way round."""
    found = []
    for name in names:
        column = PAYMENT_COLUMNS[name]
        up = order == column.field if column.field else False
        down = (order == f"-{column.field}" if order else name == "when") if column.field else False
        turned = f"-{name}" if up or (not down and column.style == "num") else name
        found.append(
            {
                "title": column.head,
                "style": column.style,
                "sorted": "ascending" if up else "descending" if down else "",
                "address": _replace_order(query, turned) if column.field else "",
            }
        )
    return found


def _replace_order(query: str, order: str) -> str:
    kept = [(key, text) for key, text in parse_qsl(query.removeprefix("?")) if key != ORDER_PARAMETER]
    return f"?{urlencode([*kept, (ORDER_PARAMETER, order)])}"


def render_rows(rows: Sequence[Payment], names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of the list with their cells. What was sent is read by one more statement, and only where a column
    shows it."""
    sent: dict[UUID, Mapping[str, Any]] = {}
    if any(PAYMENT_COLUMNS[name].render_sent for name in names):
        found = Payment.objects.filter(pk__in=[row.pk for row in rows]).values_list("pk", "request", "merchant_memo")
        sent = {pk: {**request, "merchantMemo": memo} for pk, request, memo in found}
    shown = [(PAYMENT_COLUMNS[name], name in USUAL_COLUMNS) for name in names]
    return [
        {
            "pick": PickedRow(
                value=row.pk.hex, name=f"{format_payment_title(row)} {format_money(row.amount, row.currency)}"
            ),
            "cells": [
                {
                    "shown": each.render_cell(row, sent.get(row.pk, {})),
                    "style": each.style,
                    "label": "" if usual else each.head,
                }
                for each, usual in shown
            ],
        }
        for row in rows
    ]
