"""The merchant's order number of a disputed payment, by which merchants and shoppers name it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from chargebacks.models import Chargeback, DisputeAlert
from gateway.core import identifiers
from gateway.models import Payment

MIN_ORDER_START_CHARS: Final = 4
"""A shorter text finds whole order numbers only."""


def choose_order_number(disputed: Payment, first: Payment) -> str:
    """The disputed payment's own order number, else that of the first payment of its chain; '' if neither has one."""
    return disputed.merchant_transaction_id or first.merchant_transaction_id


def find_order_numbers(rows: Iterable[Chargeback | DisputeAlert]) -> Mapping[UUID, str]:
    """Id of a dispute or alert → order number of its payment, by one query; a row without one is left out."""
    listed = list(rows)
    payments = {ident for row in listed for ident in (row.disputed, row.chain)}
    numbered = Payment.objects.filter(pk__in=payments).exclude(merchant_transaction_id="")
    by_payment = dict(numbered.values_list("pk", "merchant_transaction_id")) if payments else {}
    found = {row.pk: by_payment.get(row.disputed) or by_payment.get(row.chain, "") for row in listed}
    return {ident: order for ident, order in found.items() if order}


def match_disputes(text: str) -> Q:
    """The condition on disputes that ``text`` names: an id of the dispute or its payment, the acquirer's reference, the
    scheme's case, the ARN, or an order or invoice number of the chain, whole or its beginning."""
    ident = identifiers.parse_id(text.replace("-", "").lower())
    if ident is not None:
        return Q(pk=ident) | Q(disputed=ident) | Q(chain=ident)
    lookup = "startswith" if len(text) >= MIN_ORDER_START_CHARS else "exact"
    # The condition on empty columns is that of the indexes.
    order = Q((f"merchant_transaction_id__{lookup}", text)) & ~Q(merchant_transaction_id="")
    invoice = Q((f"merchant_invoice_id__{lookup}", text)) & ~Q(merchant_invoice_id="")
    named = Payment.objects.filter(order | invoice, merchant=OuterRef("merchant"), chain=OuterRef("chain"))
    return Q(reference=text) | Q(scheme_case=text) | Q(arn=text) | Q(Exists(named))
