"""Columns of the list of payments: what each shows, and which of them a user has chosen.

Keeping a choice: gateway.backoffice.kit.list_columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from gateway.backoffice.kit import list_columns
from gateway.backoffice.kit.formatting import build_state_pill, format_money, render_moment
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.list_columns import (
    ORDER_PARAMETER,
    Cell,
    ListColumn,
    PickedRow,
    render_link,
    render_list_table,
    render_pill,
)
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
    """``field``: the column of the table that the list may be ordered by; '' for none. ``shows_request``: whether the
    cell is made of what was sent, which the list does not read otherwise."""

    field: str = ""
    shows_request: bool = False

    @property
    def is_orderable(self) -> bool:
        return bool(self.field)


def _read_sent(structure: str, name: str) -> Callable[[Payment], str]:
    def read(row: Payment) -> str:
        part = row.request.get(structure)
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


def _render_holder(row: Payment) -> str:
    found = (_read_sent(structure, "holder")(row) for structure in ("card", "bankAccount"))
    return next((text for text in found if text), mask_text(str(row.answer.get("card", {}).get("holder") or "")))


def _render_shopper(row: Payment) -> str:
    names = (_read_sent("customer", name)(row) for name in ("givenName", "surname"))
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
        title=_("Memo"), render=lambda row: mask_text(row.merchant_memo), style="ck-cut", shows_request=True,
    ),
    "shopper": PaymentColumn(title=_("Shopper"), render=_render_shopper, style="ck-cut", shows_request=True),
    "email": PaymentColumn(
        title=_("E-mail"), render=_read_sent("customer", "email"), style="ck-cut", shows_request=True,
    ),
    "holder": PaymentColumn(title=_("Holder"), render=_render_holder, style="ck-cut", shows_request=True),
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


def build_payment_table(rows: Sequence[Payment], names: Sequence[str], asked: Mapping[str, str]) -> dict[str, Any]:
    """Head and rows of the list, whose address has the parameters ``asked``. What was sent is read by one more
    statement, and only where a column shows it."""
    if any(PAYMENT_COLUMNS[name].shows_request for name in names):
        found = Payment.objects.only("request", "merchant_memo").in_bulk([row.pk for row in rows])
        for row in rows:
            sent = found.get(row.pk, Payment())
            row.request, row.merchant_memo = sent.request, sent.merchant_memo
    if not parse_order(asked.get(ORDER_PARAMETER, "")):
        asked = {**asked, ORDER_PARAMETER: "-when"}
    return render_list_table(rows, PAYMENT_COLUMNS, names, USUAL_COLUMNS, pick=_name_picked, asked=asked)


def _name_picked(row: Payment) -> PickedRow:
    return PickedRow(value=row.pk.hex, name=f"{format_payment_title(row)} {format_money(row.amount, row.currency)}")
