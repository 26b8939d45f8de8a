"""Chargebacks that are in no settlement file are booked by hand. Source: A7.15, B19.8; decision 0032."""

from __future__ import annotations

import csv as csv_module
import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from chargebacks import cases, ledger
from chargebacks.models import AcquirerNotice, CaseEvent, Chargeback
from gateway.core import clock
from gateway.core.identifiers import first_id_at
from gateway.db.statement import execute_sql
from gateway.models import AcquirerAccount, Merchant, Notification, Payment
from reporting.models import ClearingInstitute, Finding, SettlementFile, SettlementRecord
from reporting.reconciliation import daily_files
from reporting.reconciliation.file_columns import RECONCILIATION_COLUMNS
from reporting.settlement import exception_queue, manual_chargebacks, missing_settlements
from tests.support import books
from tests.support.fixtures import Shop
from tests.support.settlement import BY, csv, institute, line, payment_of, take_in
from tests.support.threads import at_once

NO_FLOOR = UUID(int=0)
V1 = "/reports/v1/reconciliations/aggregations"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def outbox(settings: Any, tmp_path: Path) -> None:
    settings.GATEWAY_OUTBOX = str(tmp_path / "outbox")


def dispute(shop: Shop, amount: str = "40.00") -> Chargeback:
    paid = payment_of(shop.api.pay(merchantTransactionId="order-4711").id)
    return ledger.record_chargeback(paid, Decimal(amount), reason="000.100.221", by=BY, reference="letter 7")


def todays_file(shop: Shop) -> list[dict[str, str]]:
    merchant = books.overnight(shop)
    assert daily_files.write_due_daily_files(merchant) == 1
    file = merchant.reconciliation_files.latest("day")
    text = daily_files.build_outbox_path(file).read_bytes().decode()
    return list(csv_module.DictReader(io.StringIO(text, newline=""), delimiter=";"))


def test_a_chargeback_by_hand_and_its_reversal_stand_in_the_file_the_report_the_query_and_the_webhooks(
    shop: Shop,
) -> None:
    """A7.15: recorded in the back office, it appears in API, query and CSV."""
    of = institute()
    case = dispute(shop)
    back = ledger.record_chargeback_reversal(case, Decimal("15.00"), by=BY)
    assert (
        manual_chargebacks.record_recent_chargebacks(None),
        manual_chargebacks.record_recent_chargebacks(None),
        manual_chargebacks.record_all_chargebacks(),
    ) == (2, 0, 0)
    day = f"{SettlementRecord.objects.earliest('line').settlement_date}"
    settlements = shop.api.get(V1, {"date.from": day, "date.to": day})
    [told] = settlements.body["aggregations"]
    report = shop.api.get(f"{V1}/{told['id']}").body["reconciliations"]
    rows = todays_file(shop)
    names = ("ReconciliationType", "Amount", "Cashflow", "ReasonCode", "ChargebackId")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("CHARGEBACK", "40.00", "NEG", "000.100.221", case.pk.hex),
        ("CHARGEBACK REVERSAL", "15.00", "POS", "000.100.221", back.pk.hex),
    ]
    for row, record in zip(rows, report, strict=True):
        assert all(row[name] for name in (one.csv for one in RECONCILIATION_COLUMNS if one.need == "R"))
        assert (row["MatchingStatus"], row["MatchedTransactions"]) == ("MATCHED", case.disputed.hex)
        assert (row["ClearingInsitituteName"], row["SettlementFileFormat"]) == (of.name, "LEDGER")
        assert (row["SettlementAmount"], row["TransactionId"]) == ("0.00", "order-4711")
        assert record["chargebackTransaction"]["id"] == row["ChargebackId"]
        assert (record["recordType"], record["amount"]) == (row["ReconciliationType"], row["Amount"])
        asked = shop.api.get(f"/v1/query/{row['ChargebackId']}").body
        assert asked["amount"] == row["Amount"]
        assert Notification.objects.filter(payment=row["ChargebackId"], action="CREATED").exists()
    # The day's file from an institute is missed all the same.
    of.expects_files_on = [1, 2, 3, 4, 5, 6, 7]
    day = SettlementFile.objects.get().received_at.date()
    assert missing_settlements.list_days_without_file(of, day, day) == [day]


def test_the_institutes_line_comes_later_joins_it_and_sums_are_the_institutes(shop: Shop) -> None:
    of, case = institute(), dispute(shop)
    assert manual_chargebacks.record_recent_chargebacks(None) == 1
    row = line(payment_of(case.disputed.hex), ReconciliationType="CHARGEBACK", Amount="40.00", ReasonCode="000.100.221")
    take_in(csv([row]), of)
    assert Chargeback.objects.count() == 1
    assert not Finding.objects.exists()
    assert manual_chargebacks.record_all_chargebacks() == 0
    told = SettlementRecord.objects.order_by("recorded_at").values_list("chargeback", "settlement_amount")
    assert list(told) == [(case.pk, Decimal("0.00")), (case.pk, Decimal("40.00"))]
    with pytest.raises(exception_queue.ExceptionActionError, match="ledger"):
        exception_queue.undo_resolution(SettlementRecord.objects.select_related("file").get(pk=case.pk), BY)


def test_what_a_line_has_told_of_stands_there_once(shop: Shop) -> None:
    paid = payment_of(shop.api.pay().id)
    take_in(csv([line(paid, ReconciliationType="CHARGEBACK", ReasonCode="000.100.221")]), institute())
    assert manual_chargebacks.record_all_chargebacks() == 0
    assert SettlementRecord.objects.count() == 1


def test_a_chargeback_by_api_waits_for_an_institute(shop: Shop) -> None:
    paid = shop.api.pay()
    assert shop.api.follow(paid.id, "CB", "92.00", chargebackResultCode="000.100.203").status == 200
    assert cases.adopt_recent_payments() == 1
    assert (manual_chargebacks.record_recent_chargebacks(None), SettlementRecord.objects.count()) == (0, 0)
    institute()
    assert manual_chargebacks.record_recent_chargebacks(None) == 1
    assert SettlementRecord.objects.get().reason_code == "000.100.203"


def test_moving_a_merchants_clock_enters_their_chargebacks_and_its_day_is_theirs(shop: Shop, stranger: Shop) -> None:
    """Part A, What the service does, 5: time can be moved on in tests; whatever is due on the way is done."""
    institute()
    first, other = dispute(shop), dispute(stranger)
    assert shop.api.post("/v1/test/clock", {"advance": str(3 * 86_400)}).status == 200
    assert list(SettlementRecord.objects.values_list("id", flat=True)) == [first.pk]
    second = dispute(shop)
    assert manual_chargebacks.record_recent_chargebacks(books.merchant_of(shop)) == 1
    merchant = books.merchant_of(shop)
    day = SettlementRecord.objects.select_related("settlement").get(pk=second.pk).settlement.date
    assert 0 <= (clock.merchant_now(merchant).date() - day).days <= 1  # midnight may pass in between
    assert not SettlementRecord.objects.filter(pk=other.pk).exists()
    found = shop.api.get(V1, {"date.from": f"{day}", "date.to": f"{day}"}).body["aggregations"]
    assert [one["date"] for one in found] == [f"{day}"]


def test_a_chargeback_waits_for_an_active_institute_of_its_own_connector(shop: Shop, stranger: Shop) -> None:
    """And until a line or a record of it is there; others' chargebacks and older ones are beside it."""
    case, other = dispute(shop), dispute(stranger)
    merchant = books.merchant_of(shop)

    def list_waiting(floor: UUID = NO_FLOOR, of: Merchant | None = merchant) -> list[UUID]:
        return [payment for payment, _, _ in manual_chargebacks._list_unrecorded_payments(floor, of)]

    def is_earliest() -> bool:
        return bool(execute_sql(manual_chargebacks.EARLIEST_UNRECORDED_CHARGEBACK, {}))

    assert (list_waiting(), is_earliest()) == ([], False)
    books.institute(connectors=["another"])
    sleeping = books.institute(active=False)
    assert (list_waiting(), is_earliest()) == ([], False)
    ClearingInstitute.objects.filter(pk=sleeping.pk).update(active=True)
    assert (list_waiting(), list_waiting(of=None), is_earliest()) == ([case.pk], [case.pk, other.pk], True)
    assert list_waiting(first_id_at(clock.real_now() + timedelta(hours=1))) == []
    AcquirerNotice.objects.create(reference=uuid4(), payment=other.pk)
    assert list_waiting(of=None) == [case.pk]
    assert manual_chargebacks.record_recent_chargebacks(None) == 1
    assert (list_waiting(of=None), is_earliest()) == ([], False)


def test_a_record_names_the_disputed_payment_its_account_and_the_day_of_its_institute(
    shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside an account of another channel and of another connector, an older institute that is off, and another
    merchant with a clock of its own."""
    books.institute(connectors=["acme"], active=False)
    of = books.institute(connectors=["acme"], time_zone="Pacific/Kiritimati")
    case, other = dispute(shop), dispute(stranger)
    Payment.objects.filter(pk=case.disputed).update(
        acquirer_merchant_id="M-1", connector="acme", connector_tx_id="TX-1", merchant_invoice_id="invoice-7"
    )
    Payment.objects.filter(pk__in=(case.pk, other.pk)).update(
        connector="acme", connector_tx_id="TX-2", merchant_invoice_id="of the chargeback"
    )
    own = None
    for channel, connector in (
        (shop.open_channel(id=UUID(int=1)), "acme"),
        (shop.channel, "another"),
        (shop.channel, "acme"),
    ):
        own = AcquirerAccount.objects.create(channel=channel, connector=connector, acquirer_merchant_id="M-1")
    assert own is not None
    at = {
        shop.merchant.pk: datetime(2030, 1, 2, 12, tzinfo=UTC),
        stranger.merchant.pk: datetime(2030, 1, 1, 9, tzinfo=UTC),
    }
    with monkeypatch.context() as patch:
        patch.setattr(clock, "merchant_now", lambda merchant: at[merchant.pk])
        assert manual_chargebacks.record_recent_chargebacks(None) == 2
    record = SettlementRecord.objects.select_related("file").get(pk=case.pk)
    assert (record.institute_id, record.account, record.our_id) == (of.pk, own.pk, case.disputed)
    assert (record.tx_id1, record.merchant_transaction_id, record.merchant_invoice_id) == (
        "TX-1", "order-4711", "invoice-7",
    )  # fmt: skip
    assert (record.amount, record.settlement_date) == (Decimal("40.00"), date(2030, 1, 3))
    assert (record.file.first_settled, record.file.last_settled) == (date(2030, 1, 1), date(2030, 1, 3))


def test_the_next_time_of_a_merchant_is_its_own_first_chargeback(shop: Shop, stranger: Shop) -> None:
    first, _ = dispute(shop), dispute(shop)
    institute()
    merchant = books.merchant_of(shop)
    entered = CaseEvent.objects.get(payment=first.pk).at
    assert manual_chargebacks.next_unrecorded_chargeback_at(merchant) == entered
    assert manual_chargebacks.next_unrecorded_chargeback_at(books.merchant_of(stranger)) is None


@pytest.mark.django_db(transaction=True)
def test_two_ticks_at_once_enter_it_once(committed: Shop) -> None:
    institute()
    dispute(committed)
    assert sorted(at_once(*[lambda: _tried()] * 3)) == [0, 0, 1]
    assert SettlementRecord.objects.count() == 1


def _tried() -> int:
    return manual_chargebacks.record_recent_chargebacks(None)
