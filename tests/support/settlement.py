"""Settlement files for tests: a clearing institute of the simulator, and lines of the documented layout."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.access import audit_log
from gateway.models import Payment
from reporting.models import ClearingInstitute, SettlementFile
from reporting.settlement import files, intake

BY = audit_log.Actor(name="tests")
HEADER = (
    "ReconciliationType", "PaymentType", "Cashflow", "ClearingInstituteMerchantId", "SettlementReference",
    "SettlementTxId", "UniqueID", "ConnectorTxId1", "ConnectorTxId2", "ConnectorTxId3", "TransactionId", "InvoiceId",
    "Amount", "Currency", "Brand", "TxRequestTime", "SettlementAmount", "SettlementCurrency", "SettlementFee",
    "SettlementFxRate", "SettlementDate", "SettlementStatus", "Descriptor", "AccountNumberLast4", "BankCode",
    "AccountHolder", "ReasonCode", "ReasonDesc", "RespondBy",
)  # fmt: skip


def institute(**values: Any) -> ClearingInstitute:
    return ClearingInstitute.objects.create(
        **{"key": "simulated", "name": "Simulated Clearing", "connectors": ["simulator"], **values}
    )


def line(payment: Payment | None = None, **changes: str) -> dict[str, str]:
    """A line that settles ``payment`` as it is, with ``changes``."""
    known = {} if payment is None else of_payment(payment)
    usual = {
        "ReconciliationType": "SETTLED",
        "PaymentType": "DEBIT",
        "ClearingInstituteMerchantId": "account-1",
        "SettlementReference": "payout-1",
        "Amount": "92.00",
        "Currency": "EUR",
        "SettlementCurrency": "EUR",
        "SettlementDate": "2030-01-02",
    }
    found = {**usual, **known, **changes}
    return {"SettlementAmount": found["Amount"], **found}


def of_payment(payment: Payment) -> dict[str, str]:
    kinds = {"RF": "REFUND", "CD": "CREDIT"}
    return {
        "PaymentType": kinds.get(payment.payment_type, "DEBIT"),
        "ClearingInstituteMerchantId": payment.acquirer_merchant_id or payment.channel_id.hex,
        "ConnectorTxId1": payment.connector_tx_id,
        "Amount": str(payment.amount),
        "Currency": payment.currency,
        "SettlementCurrency": payment.currency,
        "SettlementDate": f"{payment.created_at:%Y-%m-%d}",
    }


def csv(lines: Iterable[Mapping[str, str]], header: Iterable[str] = HEADER, end: str = "") -> bytes:
    names = tuple(header)
    rows = [";".join(names), *(";".join(row.get(name, "") for name in names) for row in lines)]
    return ("\r\n".join(rows) + "\r\n" + end).encode()


def take_in(content: bytes, of: ClearingInstitute, name: str = "settled.csv") -> SettlementFile:
    """Receive and read a file."""
    source = SettlementFile.Source.COMMAND
    file = files.receive_file(io.BytesIO(content), name=name, institute=of, by=BY, source=source)
    assert intake.process_file(file.pk), SettlementFile.objects.get(pk=file.pk).why
    file.refresh_from_db()
    return file


def payment_of(ident: str) -> Payment:
    return Payment.objects.select_related("merchant", "channel").get(pk=ident)
