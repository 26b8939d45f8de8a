"""``{{ record|line_kind }}``: what a settlement line is about, in words instead of the file's codes."""

from __future__ import annotations

from typing import Final

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from reporting.models import RecordType, SettlementRecord, TransactionType

register = template.Library()

_SETTLED: Final = {
    TransactionType.DEBIT: lazy("Payment settled"),
    TransactionType.CREDIT: lazy("Credit settled"),
    TransactionType.REFUND: lazy("Refund settled"),
}
_FEES: Final = {
    TransactionType.BATCH: lazy("Fee of a batch"),
    TransactionType.MONTHLY: lazy("Monthly fee"),
    TransactionType.SUBMERCHANT: lazy("Fee of a submerchant"),
    TransactionType.PAYMENT_FACILITATOR: lazy("Fee of the payment facilitator"),
    TransactionType.AUTH_FEE: lazy("Fee of authorizations"),
    TransactionType.CAPTURE_FEE: lazy("Fee of captures"),
    TransactionType.CANCEL_FEE: lazy("Fee of reversals"),
    TransactionType.REFUND_FEE: lazy("Fee of refunds"),
}


@register.filter("line_kind")
def describe_line_kind(record: SettlementRecord) -> str:
    """The kind of a record in words: "Refund settled", "Chargeback", "Monthly fee"."""
    if record.record_type == RecordType.CHARGEBACK:
        return _("Chargeback")
    if record.record_type == RecordType.CHARGEBACK_REVERSAL:
        return _("Chargeback reversal")
    known = _FEES if record.record_type == RecordType.FEE else _SETTLED
    return str(known.get(TransactionType(record.transaction_type), f"{record.record_type} {record.transaction_type}"))
