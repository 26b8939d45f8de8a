"""The page of an archived payment: what is kept of it, and a button that brings its chain back; rows of archived
payments for it, for searches and for the list.

Source: docs/decisions/0130.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.db.models import prefetch_related_objects

from gateway.access.permissions import AccessScope, RowOwner
from gateway.backoffice.kit.formatting import build_state_pill, format_money
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.payments.payment_columns import render_means
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.core import identifiers
from gateway.models import Payment
from gateway.payments.payment_archive import list_archived_chain

MAX_SHOWN_ARCHIVED: Final = 50
"""Archived payments that a search shows."""


def build_archived_page(payment: Payment, scope: AccessScope) -> dict[str, Any]:
    """What the template shows. ``scope``: of the user; payments of the chain beyond it are left out."""
    amount = f" {format_money(payment.amount, payment.currency)}" if payment.amount else ""
    return {
        "title": f"{format_payment_title(payment)}{amount}",
        "title_of": format_payment_title(payment),
        "payment": payment,
        "pill": build_state_pill(payment.status),
        "ids": _list_archived_facts(payment),
        "archived": render_archived_rows(
            one
            for one in reversed(list_archived_chain(payment))
            if scope.covers(RowOwner(merchant=one.merchant_id, channel=one.channel_id))
        ),
    }


def render_archived_rows(payments: Iterable[Payment]) -> list[dict[str, Any]]:
    """What the table of archived payments shows."""
    rows = list(payments)
    prefetch_related_objects(rows, "merchant")
    return [
        {
            "row": one,
            "means": render_means(one),
            "title": format_payment_title(one),
            "pill": build_state_pill(one.status),
            "address": build_payment_page_url(one.pk),
        }
        for one in rows
    ]


def _list_archived_facts(payment: Payment) -> list[tuple[str, str]]:
    """(name of the API, value)."""
    return [
        ("id", payment.pk.hex),
        ("shortId", identifiers.format_short_id(payment.number)),
        ("ndc", identifiers.format_ndc(payment.request_id, payment.channel_id.hex)),
        ("entityId", payment.channel_id.hex),
        ("referencedId", payment.referenced.hex if payment.referenced else ""),
        ("registrationId", payment.registration.hex if payment.registration else ""),
        ("merchantTransactionId", payment.merchant_transaction_id),
        ("merchantInvoiceId", payment.merchant_invoice_id),
        ("result.code", payment.result_code),
        ("ConnectorTxID1", payment.connector_tx_id),
    ]
