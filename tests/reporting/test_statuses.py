"""The words a record has for how its settlement went and what kind it is: those of the specification, and no others.

Source: Part A, States and transitions; checks A26.6, A26.8.
"""

from __future__ import annotations

import pytest

from reporting.models import LineError, SettlementRecord
from tests.support.fixtures import Shop
from tests.support.settlement import csv, institute, line, payment_of, take_in

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "column, allowed, strange",
    [
        ("SettlementStatus", ["SUCCESS", "FAILED"], ["PENDING", "success", "FAILED "]),
        (
            "ReconciliationType",
            ["SETTLED", "CHARGEBACK", "CHARGEBACK REVERSAL", "FEE"],
            ["REFUND", "settled", "CHARGEBACK_REVERSAL"],
        ),
    ],
)
def test_a_line_has_one_of_the_words_or_is_told_as_an_error(
    shop: Shop, column: str, allowed: list[str], strange: list[str]
) -> None:
    """A26.6, A26.8."""
    payment = payment_of(shop.api.pay().id)
    rows = [
        {
            **line(payment),
            "SettlementTxId": f"TX-{at}",
            column: word,
            **({"PaymentType": "AUTH_FEE"} if word == "FEE" else {}),
        }
        for at, word in enumerate(allowed + strange)
    ]
    file = take_in(csv(rows), institute())
    assert (file.lines, file.records, file.faults) == (len(rows), len(allowed), len(strange))
    name = {"SettlementStatus": "settlement_status", "ReconciliationType": "record_type"}[column]
    assert sorted(SettlementRecord.objects.values_list(name, flat=True)) == sorted(allowed)
    assert set(LineError.objects.values_list("column", flat=True)) == {column}
