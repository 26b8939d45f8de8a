"""Which payment a line is about. Source: Part B, Reconciliation file; Part A, States (matching status); B19.9."""

from __future__ import annotations

import pytest

from reporting.models import Finding, Match, Matching, SettlementRecord
from tests.support.fixtures import Shop
from tests.support.settlement import csv, institute, line, payment_of, take_in

pytestmark = pytest.mark.django_db


def states() -> list[str]:
    return list(SettlementRecord.objects.order_by("line").values_list("state", flat=True))


def kinds() -> list[str]:
    return sorted(Finding.objects.values_list("kind", flat=True))


@pytest.mark.parametrize("name", ["ConnectorTxId1", "ConnectorTxId2", "ConnectorTxId3"])
def test_a_line_that_names_an_id_of_the_institute_is_matched_to_its_payment(shop: Shop, name: str) -> None:
    payment = payment_of(shop.api.pay().id)
    ids = {"ConnectorTxId1": "", name: payment.connector_tx_id}
    file = take_in(csv([line(payment, **ids)]), institute())
    record = SettlementRecord.objects.get()
    match = Match.objects.get(record=record)
    assert (record.state, match.payment, match.chosen) == (Matching.MATCHED, payment.id, True)
    assert (record.merchant_id, record.account) == (shop.merchant.id, shop.channel.id)
    assert (file.state, file.records, file.matched, file.faults) == ("DONE", 1, 1, 0)
    assert kinds() == []
