"""The simulated clearing institute (test environment): settles its merchants' payments in the documented layout.

Every approved payment of the given days gets a line, and every fee and dispute too. Source: decisions, section 8;
docs/settlement-files.md.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from types import MappingProxyType
from typing import Any, Final

from gateway.core import clock
from gateway.core.money import format_amount
from gateway.models import Channel, Payment, Status
from reporting.models import ClearingInstitute
from reporting.settlement.layout import COLUMN_NAMES
from reporting.settlement.matching import DISPUTABLE_TYPES
from reporting.settlement.missing_settlements import SETTLED_PAYMENT_TYPES

CENT_AMOUNT: Final = Decimal("0.01")
TRANSACTION_TYPE_BY_PAYMENT_TYPE: Final[Mapping[str, str]] = MappingProxyType({"RF": "REFUND", "CD": "CREDIT"})
"""Payment type → PaymentType; every other is a DEBIT."""
SimulatedLine = dict[str, str]


@dataclass(slots=True)
class SimulatedFile:
    """A file under construction: its lines, each with its payment, if any."""

    lines: list[tuple[SimulatedLine, Payment | None]] = field(default_factory=list)

    def text(self) -> bytes:
        out = io.StringIO()
        out.write(";".join(COLUMN_NAMES) + "\r\n")
        for line, _ in self.lines:
            out.write(";".join(_cell(line.get(name, "")) for name in COLUMN_NAMES) + "\r\n")
        out.write(f"#END;{len(self.lines)}\r\n")
        return out.getvalue().encode()


def _cell(text: str) -> str:
    if any(mark in text for mark in ';"'):
        return '"' + text.replace('"', '""') + '"'
    return text


def list_institute_payments(institute: ClearingInstitute, first: date, last: date) -> Iterator[Payment]:
    """Approved payments of the institute's connectors on these days, in its time zone, oldest first, without transfers
    that came back."""
    begins, ends = clock.bound_days(first, last, institute.zone)
    found = Payment.objects.filter(
        created_at__gte=begins,
        created_at__lt=ends,
        status=Status.APPROVED,
        returned_at=None,
        connector__in=institute.connectors,
        payment_type__in=(*SETTLED_PAYMENT_TYPES, "CB", "CR"),
    )
    yield from found.select_related("channel", "merchant").order_by("created_at", "id").iterator(chunk_size=1_000)


def build_settlement_file(institute: ClearingInstitute, payments: Iterable[Payment], paid_on: date) -> SimulatedFile:
    """Build a file that settles ``payments`` on ``paid_on``. Chargebacks among them get their lines, too. Monthly fees
    of each channel come last."""
    book = SimulatedFile()
    channels: dict[Any, Channel] = {}
    for payment in payments:
        line = _build_line(institute, payment, paid_on)
        if line is not None:
            book.lines.append((line, payment))
            channels[payment.channel_id] = payment.channel
    book.lines.extend((_fee_line(channel, paid_on), None) for channel in channels.values())
    return book


def _build_line(institute: ClearingInstitute, payment: Payment, paid_on: date) -> SimulatedLine | None:
    kind = payment.payment_type
    if kind in ("CB", "CR"):
        return _dispute_payment_line(institute, payment, paid_on)
    net = _net_amount(payment)
    return build_payment_line(institute, payment, "SETTLED", net, paid_on) if net > 0 else None


def _net_amount(payment: Payment) -> Decimal:
    """The amount to settle: reversals before settlement are taken off."""
    taken = Payment.objects.filter(
        chain=payment.chain, referenced=payment.id, payment_type="RV", status=Status.APPROVED, returned_at=None
    ).values_list("approved_amount", flat=True)
    return (payment.approved_amount or Decimal(0)) - sum((one or Decimal(0) for one in taken), Decimal(0))


def build_payment_line(
    institute: ClearingInstitute, payment: Payment, record_type: str, amount: Decimal, paid_on: date
) -> SimulatedLine:
    """The line of one payment: settled, or of the record type given."""
    transaction = TRANSACTION_TYPE_BY_PAYMENT_TYPE.get(payment.payment_type, "DEBIT")
    away = (transaction != "DEBIT") if record_type == "SETTLED" else (record_type == "CHARGEBACK")
    fee = _agreed_fee(institute, amount) if record_type == "SETTLED" and transaction == "DEBIT" else Decimal(0)
    local = payment.created_at.astimezone(institute.zone)
    return {
        "ReconciliationType": record_type,
        "PaymentType": transaction,
        "Cashflow": "NEG" if away else "POS",
        "ClearingInstituteMerchantId": payment.acquirer_merchant_id or payment.channel_id.hex,
        "SettlementReference": f"PAYOUT-{paid_on:%Y%m%d}",
        "SettlementTxId": f"STL{payment.id.hex[-16:].upper()}",
        "ConnectorTxId1": payment.connector_tx_id,
        "TransactionId": payment.merchant_transaction_id,
        "InvoiceId": payment.merchant_invoice_id,
        "Amount": format_amount(amount),
        "Currency": payment.currency,
        "Brand": payment.brand if len(payment.brand) <= 16 else "",
        "TxRequestTime": f"{local:%Y-%m-%d %H:%M:%S}",
        "SettlementAmount": format_amount(
            (amount + fee if away else amount - fee).quantize(CENT_AMOUNT, ROUND_HALF_UP)
        ),
        "SettlementCurrency": payment.currency,
        "SettlementFee": f"{fee:.4f}" if record_type == "SETTLED" else "",
        "SettlementFxRate": "1",
        "SettlementDate": f"{paid_on:%Y-%m-%d}",
        "SettlementStatus": "SUCCESS",
        "AccountNumberLast4": payment.answer.get("card", {}).get("last4Digits", ""),
    }


def _agreed_fee(institute: ClearingInstitute, amount: Decimal) -> Decimal:
    percent, fixed = institute.fee_percent or Decimal(0), institute.fee_fixed or Decimal(0)
    return min(amount, (amount * percent / 100 + fixed).quantize(CENT_AMOUNT, ROUND_HALF_UP))


def _dispute_payment_line(institute: ClearingInstitute, payment: Payment, paid_on: date) -> SimulatedLine | None:
    """The line of a chargeback or its reversal, with the disputed payment's ids, as an acquirer sends it."""
    behind: Payment | None = payment
    while behind is not None and behind.payment_type not in DISPUTABLE_TYPES and behind.referenced is not None:
        behind = Payment.objects.select_related("channel").filter(pk=behind.referenced).first()
    if behind is None:
        return None
    record_type = "CHARGEBACK" if payment.payment_type == "CB" else "CHARGEBACK REVERSAL"
    reason = {"ReasonCode": payment.result_code} if record_type == "CHARGEBACK" else {}
    line = build_payment_line(institute, behind, record_type, payment.approved_amount or payment.amount, paid_on)
    return {**line, **reason, "SettlementTxId": f"STL{payment.id.hex[-16:].upper()}"}


def _fee_line(channel: Channel, paid_on: date) -> SimulatedLine:
    currency = next(iter(channel.currencies), "EUR")
    return {
        "ReconciliationType": "FEE",
        "PaymentType": "MONTHLY",
        "Cashflow": "NEG",
        "ClearingInstituteMerchantId": channel.id.hex,
        "SettlementReference": f"PAYOUT-{paid_on:%Y%m%d}",
        "SettlementTxId": f"FEE{paid_on:%Y%m%d}{channel.id.hex[:8].upper()}",
        "Amount": "9.90",
        "Currency": currency,
        "SettlementAmount": "9.90",
        "SettlementCurrency": currency,
        "SettlementDate": f"{paid_on:%Y-%m-%d}",
    }
