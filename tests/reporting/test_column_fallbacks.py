"""Which of several values a column of reconciliation tells: the institute's, the payment's, or none. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.core import result_codes
from reporting.reconciliation.file_columns import RECONCILIATION_COLUMNS, render_record
from tests.reporting.test_daily_files import line_of

CELLS = {column.csv: column.cell for column in RECONCILIATION_COLUMNS}
REASON = "000.100.204"


@pytest.mark.parametrize(
    ("column", "first_to_last"),
    [
        ("TransactionId", ("paid_transaction_id", "merchant_transaction_id", "payment", "settlement_tx_id", "id")),
        ("InvoiceId", ("paid_invoice_id", "merchant_invoice_id")),
        ("MerchantAccountId", ("account", "channel", "merchant")),
        ("Descriptor", ("descriptor", "paid_descriptor")),
        ("BankCode", ("bank_code", "paid_bank_code")),
        ("AccountNumberLast4", ("last4", "paid_card_last4", "paid_account_end")),
        ("AccountHolder", ("account_holder", "paid_card_holder")),
    ],
)
def test_a_column_tells_the_first_value_that_is_known(column: str, first_to_last: tuple[str, ...]) -> None:
    values: dict[str, Any] = {name: f"{place:04}" for place, name in enumerate(first_to_last)}
    for place, name in enumerate(first_to_last):
        assert CELLS[column](line_of(**values)) == f"{place:04}"
        values[name] = ""


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        ("AccountNumberLast4", {"paid_account_end": "12345"}, ""),
        ("AccountNumberLast4", {"paid_account_end": "1 34"}, ""),
        ("AccountNumberLast4", {"paid_account_end": "AB34"}, "AB34"),
        ("AccountHolder", {"means": "bankAccount", "paid_account_holder": "Jane", "paid_card_holder": "John"}, "Jane"),
        ("AccountHolder", {"means": "card", "paid_account_holder": "Jane", "paid_card_holder": "John"}, "John"),
        ("AccountHolder", {"means": "card", "paid_account_holder": "Jane"}, ""),
        ("AccountHolder", {"means": "card", "paid_card_holder": "x" * 129}, "x" * 128),
        ("SettlementFee", {"settlement_fee": "0"}, "0.00"),
        ("SettlementFee", {"settlement_fee": None}, ""),
        ("SettlementFee", {"settlement_fee": "1.234500"}, "1.2345"),
        ("ReasonCode", {"record_type": "SETTLED", "reason_code": REASON}, ""),
        ("ReasonCode", {"record_type": "CHARGEBACK", "reason_code": REASON}, REASON),
        ("ReasonCode", {"record_type": "CHARGEBACK REVERSAL", "reason_code": REASON}, REASON),
        ("ReasonDesc", {"record_type": "SETTLED", "reason_code": REASON, "reason_text": "said"}, ""),
        ("ReasonDesc", {"record_type": "CHARGEBACK", "reason_code": REASON, "reason_text": "said"}, "said"),
        ("ReasonDesc", {"record_type": "CHARGEBACK"}, ""),
        (
            "ReasonDesc",
            {"record_type": "CHARGEBACK", "reason_code": REASON},
            result_codes.find_result_code(REASON).description,
        ),
    ],
)
def test_a_column_tells_what_belongs_to_its_line(column: str, values: dict[str, Any], told: str) -> None:
    assert CELLS[column](line_of(**values)) == told


@pytest.mark.parametrize(("means", "place"), [("card", "card"), ("bankAccount", "bankAccount"), ("", "card")])
def test_the_end_of_an_account_is_told_where_it_belongs(means: str, place: str) -> None:
    told = render_record(line_of(means=means, last4="1234", account_holder="Jane Jones", currency="EUR"))
    assert told[place] == {"last4Digits": "1234", "holder": "Jane Jones"}
    assert {"card", "bankAccount"} & set(told) == {place}
