"""Reports of settlements. Source: Part B, Reporting parameters, Reconciliation file; ruling D7; decision 0026."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from gateway.core import identifiers
from gateway.core.compact_json import encode_json
from gateway.models import AcquirerAccount, Payment
from reporting.models import Match, Settlement, SettlementRecord
from reporting.reconciliation.file_columns import RECONCILIATION_COLUMNS
from reporting.reports import settlement_reports
from tests.fuzz import meter
from tests.support import books
from tests.support.client import Answer, Api
from tests.support.database import statements
from tests.support.fixtures import Shop

SUMS = "/v1/reports/reconciliations"
V1, V2 = "/reports/v1/reconciliations/aggregations", "/reports/v2/reconciliations/aggregations"
MAY = {"date.from": "2026-05-01", "date.to": "2026-05-31"}
pytestmark = pytest.mark.django_db


def listed(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200, answer
    assert answer.code == "000.000.100"
    found: list[dict[str, Any]] = answer.body["aggregations"]
    return found


def rows(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200, answer
    found: list[dict[str, Any]] = answer.body["reconciliations"]
    return found


def paid_out(records: list[dict[str, Any]]) -> Decimal:
    """What the records say was paid out."""
    sign = {"POS": 1, "NEG": -1}
    return sum(
        (
            sign[row["settlement"]["cashflow"]] * Decimal(row["settlement"]["amount"])
            for row in records
            if row["settlement"]["status"] == "SUCCESS"
        ),
        Decimal(0),
    )


@pytest.fixture
def settled(shop: Shop) -> Settlement:
    """A payout of a payment, a refund, a fee, a chargeback, a line that failed, and one that nobody knows."""
    institute = books.institute(name="Acme Clearing", time_zone="Asia/Tokyo")
    where, file = books.settlement(shop, institute), books.file_of(institute)
    paid = books.payment_of(shop.api.pay(merchantTransactionId="order-4711", merchantMemo="for the books").id)
    back = books.payment_of(shop.api.follow(paid.id.hex, "RF", "10.00").id)
    books.record(where, file, paid, settlement_tx_id="TX-1", tx_id1="SIM1")
    ten = {"amount": "10.00", "settlement_amount": "10.00"}
    books.record(where, file, back, transaction_type="REFUND", cashflow="NEG", **ten)
    books.record(where, file, record_type="FEE", transaction_type="MONTHLY", cashflow="NEG", settlement_amount="5.00")
    books.record(
        where, file, candidates=[paid, back], record_type="CHARGEBACK", cashflow="NEG", reason_code="000.100.204"
    )
    books.record(where, file, settlement_status="FAILED", currency="USD", fx_rate="1.0842")
    books.record(where, file, amount="1.00", settlement_amount="1.00", settlement_fee=None)
    return where


# --- sums -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [SUMS, V1, V2])
def test_a_settlement_is_summed_up_by_its_own_records(api: Api, settled: Settlement, path: str) -> None:
    """Ruling D7; issue: sums equal to the rows, always."""
    [one] = listed(api.get(path, MAY))
    assert (one["id"], one["reference"], one["date"]) == (settled.id.hex, settled.reference, "2026-05-14")
    assert one["clearingInstitute"] == {"name": "Acme Clearing", "merchantId": settled.institute_merchant_id}
    records = rows(api.get(f"{path}/{settled.id.hex}"))
    assert one["count"] == len(records) == 6
    assert Decimal(one["amount"]) == paid_out(records) == Decimal("90.50") - 10 - 5 - Decimal("90.50") + 1
    for kind in one["records"]:
        same = [
            row
            for row in records
            if (row["recordType"], row["transactionType"]) == (kind["recordType"], kind["transactionType"])
            and all(row["settlement"][name] == kind["settlement"][name] for name in ("cashflow", "status"))
        ]
        assert kind["count"] == len(same)
        for name in ("amount", "fee"):
            own = sum((Decimal(row["settlement"].get(name, "0")) for row in same), Decimal(0))
            assert Decimal(kind["settlement"][name]) == own
    assert one["matchedTransactions"] == {"MATCHED": 2, "MULTIPLE_MATCHES": 1, "NOT_MATCHED": 2}


def test_settlements_come_by_date_and_both_ends_count(shop: Shop) -> None:
    """A1.4, A7.16, B14.1."""
    institute = books.institute()
    file = books.file_of(institute)
    days = [date(2026, 4, 30), date(2026, 5, 31), date(2026, 5, 1), date(2026, 6, 1)]
    for day in days:
        books.record(books.settlement(shop, institute, date=day), file)
    assert [one["date"] for one in listed(shop.api.get(SUMS, MAY))] == ["2026-05-01", "2026-05-31"]
    assert len(listed(shop.api.get(SUMS, {"date.from": "2025-06-01", "date.to": "2026-06-01"}))) == 4, "366 days"
    empty = shop.api.get(SUMS, {"date.from": "2026-01-01", "date.to": "2026-01-31"})
    assert listed(empty) == []


def test_a_currency_narrows_the_sums(shop: Shop) -> None:
    institute = books.institute()
    file = books.file_of(institute)
    for currency in ("EUR", "USD"):
        books.record(books.settlement(shop, institute, currency=currency), file)
    assert len(listed(shop.api.get(V1, MAY))) == 2
    assert [one["currency"] for one in listed(shop.api.get(V1, MAY | {"currency": "USD"}))] == ["USD"]


@pytest.mark.parametrize(
    ("path", "fields", "names"),
    [
        (SUMS, {}, {"date.from", "date.to"}),
        (SUMS, {"date.from": "2026-05-01"}, {"date.to"}),
        (V1, {"date.to": "2026-05-01"}, {"date.from"}),
        (SUMS, {"date.from": "2026-05-31", "date.to": "2026-05-01"}, {"date.to"}),
        (SUMS, {"date.from": "2026-05-01 00:00:00", "date.to": "2026-05-31"}, {"date.from"}),
        (SUMS, {"date.from": "2026-02-30", "date.to": "2026-05-31"}, {"date.from"}),
        (SUMS, MAY | {"sortOrder": "ASC"}, {"sortOrder"}),
        (SUMS, MAY | {"pageNo": "1"}, {"pageNo"}),
        (SUMS, MAY | {"reconciliationType": "FEE"}, {"reconciliationType"}),
        (V1, MAY | {"reconciliationType": "FOO"}, {"reconciliationType"}),
        (f"{V1}/{'0' * 32}", {"reconciliationType": "CHARGEBACK"}, {"reconciliationType"}),
        (V2, MAY | {"pageNo": "0"}, {"pageNo"}),
        (V2, MAY | {"reconciliationType": "REVERSAL"}, {"reconciliationType"}),
        (V2, MAY | {"currency": "eur"}, {"currency"}),
        (f"{SUMS}/{'0' * 32}", {"sortOrder": "Asc"}, {"sortOrder"}),
        (f"{SUMS}/{'0' * 32}", {"sortValue": "Amount"}, {"sortValue"}),
    ],
)
def test_what_is_not_allowed_is_named(api: Api, path: str, fields: dict[str, str], names: set[str]) -> None:
    """A27.13, B14.1, B14.2; ruling D10."""
    answer = api.get(path, fields)
    assert (answer.status, answer.code, answer.errors.keys()) == (400, "200.300.404", names)


# --- records --------------------------------------------------------------------------------------------------------


def test_a_record_is_told_under_the_api_names_of_the_columns(api: Api, settled: Settlement) -> None:
    """B19.4; ruling D7: nested at the dots."""
    first, refund, fee, dispute, failed, unknown = rows(api.get(f"{SUMS}/{settled.id.hex}"))
    paid = Payment.objects.get(merchant_transaction_id="order-4711")
    tree = paid.merchant
    assert first == {
        "recordType": "SETTLED",
        "transactionType": "DEBIT",
        "amount": "92.00",
        "currency": "EUR",
        "paymentBrand": "VISA",
        "presentmentDate": "2026-05-14 03:00:00+0900",
        "merchantTransactionId": "order-4711",
        "settlement": {
            "cashflow": "POS",
            "id": "TX-1",
            "amount": "90.50",
            "currency": "EUR",
            "fee": "1.50",
            "fxRate": "1.00",
            "date": "2026-05-14",
            "status": "SUCCESS",
            "format": "CSV",
        },
        "clearingInstitute": {
            "merchantId": settled.institute_merchant_id,
            "txId1": "SIM1",
            "name": "Acme Clearing",
        },
        "merchantAccount": {"id": paid.channel_id.hex, "name": paid.channel.name},
        "pspEntityId": tree.division.psp_id.hex,
        "divisionEntityId": tree.division_id.hex,
        "merchantEntityId": tree.id.hex,
        "payment": {"id": paid.id.hex},
        "descriptor": paid.merchant.name,
        "card": {"last4Digits": "0000", "holder": "Jane Jones"},
        "matchedTransactions": {"status": "MATCHED", "payment": [{"id": paid.id.hex}]},
        "merchantMemo": "for the books",
    }
    assert (refund["transactionType"], refund["settlement"]["cashflow"]) == ("REFUND", "NEG")
    assert "matchedTransactions" not in fee
    both = sorted([paid.id.hex, refund["payment"]["id"]])
    assert dispute["matchedTransactions"] == {"status": "MULTIPLE_MATCHES", "payment": [{"id": one} for one in both]}
    assert dispute["result"]["code"] == "000.100.204"
    assert dispute["result"]["description"]
    assert (failed["settlement"]["status"], failed["settlement"]["fxRate"]) == ("FAILED", "1.0842")
    assert unknown["matchedTransactions"] == {"status": "NOT_MATCHED"}
    assert re.fullmatch("[0-9a-f]{32}", unknown["merchantTransactionId"])


def test_every_record_has_only_names_of_the_columns_and_every_required_one(api: Api, settled: Settlement) -> None:
    """B19.4, B19.5."""
    known = {name for column in RECONCILIATION_COLUMNS for name in column.api if name}
    assert len(RECONCILIATION_COLUMNS) == 38
    for row in rows(api.get(f"{SUMS}/{settled.id.hex}")):
        names = set(_names(row)) - {"merchantMemo"}
        assert names <= known
        assert {column.api[0] for column in RECONCILIATION_COLUMNS if column.need == "R"} <= names


def _names(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _names(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner, f"{path}[n]")
    else:
        yield path


def test_records_are_sorted_by_the_time_of_their_order(shop: Shop) -> None:
    """A27.13, B14.2."""
    institute = books.institute()
    where, file = books.settlement(shop, institute), books.file_of(institute)
    hours = (3, 1, 2)
    for hour in hours:
        books.record(where, file, presented_at=f"2026-05-13 0{hour}:00:00+00:00")

    def told(**fields: str) -> list[int]:
        found = rows(shop.api.get(f"{SUMS}/{where.id.hex}", fields))
        return [int(row["presentmentDate"][12]) for row in found]

    assert told() == [3, 1, 2]
    assert told(sortValue="SettlementTxDate") == told(sortOrder="asc") == told(sortOrder="ASC") == [1, 2, 3]
    assert told(sortValue="SettlementTxDate", sortOrder="desc") == told(sortOrder="DESC") == [3, 2, 1]


def test_pages_hold_a_hundred(shop: Shop) -> None:
    """Ruling D7: paged by 100, reconciliationType, pages."""
    institute = books.institute()
    where, file = books.settlement(shop, institute), books.file_of(institute)
    made = [books.record(where, file, settlement_tx_id=f"TX-{number}") for number in range(205)]
    books.record(where, file, record_type="FEE", transaction_type="BATCH", cashflow="NEG")
    path = f"{V2}/{where.id.hex}"
    first = shop.api.get(path)
    assert (len(rows(first)), first.body["pages"]) == (100, 3)
    seen = [row["settlement"].get("id") for page in "123" for row in rows(shop.api.get(path, {"pageNo": page}))]
    assert seen == [*(record.settlement_tx_id for record in made), None]
    fees = shop.api.get(path, {"reconciliationType": "FEE"})
    assert (len(rows(fees)), fees.body["pages"]) == (1, 1)
    beyond = shop.api.get(path, {"pageNo": "4"})
    assert (rows(beyond), beyond.body["pages"]) == ([], 3)
    assert "pages" not in shop.api.get(f"{V1}/{where.id.hex}").body
    sums = shop.api.get(V2, MAY)
    assert (len(listed(sums)), sums.body["pages"]) == (1, 1)
    for page in ("2", "100001"):
        behind = shop.api.get(V2, MAY | {"pageNo": page})
        assert (listed(behind), behind.body["pages"]) == ([], 1)
    assert listed(shop.api.get(V2, MAY | {"reconciliationType": "CHARGEBACK"})) == []


def test_what_is_too_much_at_once_is_told(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decision 0026."""
    institute = books.institute()
    where, file = books.settlement(shop, institute), books.file_of(institute)
    books.record(where, file)
    books.record(where, file)
    books.record(books.settlement(shop, institute), file)
    monkeypatch.setattr(settlement_reports, "MAX_REPORT_RECORDS", 1)
    monkeypatch.setattr(settlement_reports, "MAX_REPORT_SETTLEMENTS", 1)
    assert shop.api.get(f"{SUMS}/{where.id.hex}").errors.keys() == {"id"}
    assert shop.api.get(SUMS, MAY).errors.keys() == {"date.to"}
    assert len(rows(shop.api.get(f"{V2}/{where.id.hex}"))) == 2


@pytest.mark.parametrize("path", [SUMS, V1, V2])
def test_a_period_may_be_as_long_as_dates_go(shop: Shop, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """B14.1: the specification bounds neither date.from nor date.to. How much is looked through has a limit."""
    institute = books.institute()
    where, file = books.settlement(shop, institute), books.file_of(institute)
    books.record(where, file)
    always = {"date.from": "1900-01-01", "date.to": "2099-12-31"}
    assert [one["id"] for one in listed(shop.api.get(path, always))] == [where.id.hex]
    assert len(rows(shop.api.get(f"{path}/{where.id.hex}", always))) == 1
    monkeypatch.setattr(settlement_reports, "MAX_PERIOD_SETTLEMENTS", 0)
    assert shop.api.get(path, always).errors.keys() == {"date.to"}
    assert len(listed(shop.api.get(path, MAY))) == 1, "a year is not counted beforehand"
    assert len(rows(shop.api.get(f"{path}/{where.id.hex}", always))) == 1, "nor is a settlement that is named"


# --- whose ----------------------------------------------------------------------------------------------------------


def test_what_is_anothers_is_unknown(shop: Shop, stranger: Shop, settled: Settlement) -> None:
    """Ruling D11; goals, R11."""
    other = shop.api_of(shop.open_channel())
    for api in (stranger.api, other):
        for path in (SUMS, V1, V2):
            assert listed(api.get(path, MAY)) == []
            answer = api.get(f"{path}/{settled.id.hex}")
            assert (answer.status, answer.code) == (404, "700.400.580")
    for target in ("0" * 32, "nothing"):
        assert shop.api.get(f"{SUMS}/{target}").status == 404
    books.record(settled, books.file_of(settled.institute), merchant_id=stranger.merchant.pk)
    stranger.merchant.dispatching = True
    stranger.merchant.save()
    for api in (stranger.api, stranger.api.as_entity(stranger.merchant.entity_id)):
        assert api.get(f"{SUMS}/{settled.id.hex}").status == 404, "the account is another merchant's"


def test_a_channel_sees_the_settlements_of_its_accounts_and_the_merchant_sees_all(shop: Shop) -> None:
    """Part A, Authentication, 4."""
    beside = shop.open_channel()
    AcquirerAccount.objects.create(channel=beside, connector="acme", acquirer_merchant_id="ACME-0815")
    institute = books.institute()
    file = books.file_of(institute)
    own = books.settlement(shop, institute)
    others = books.settlement(shop, institute, institute_merchant_id="ACME-0815", account=None)
    for where in (own, others):
        books.record(where, file)
    assert [one["id"] for one in listed(shop.api.get(SUMS, MAY))] == [own.id.hex]
    assert [one["id"] for one in listed(shop.api_of(beside).get(SUMS, MAY))] == [others.id.hex]
    shop.merchant.dispatching = True
    shop.merchant.save()
    whole = shop.api.as_entity(shop.merchant.entity_id)
    assert {one["id"] for one in listed(whole.get(SUMS, MAY))} == {own.id.hex, others.id.hex}


def test_records_of_an_account_that_nobody_knows_are_their_payments_merchants(shop: Shop, stranger: Shop) -> None:
    """Sums on the API and of the file are equal."""
    institute = books.institute()
    file = books.file_of(institute)
    where = books.settlement(shop, institute, merchant=None, account=None, institute_merchant_id="unknown-account")
    mine = books.record(where, file, books.payment_of(shop.api.pay().id), merchant_id=shop.merchant.pk)
    books.record(where, file, merchant_id=stranger.merchant.pk)
    books.record(where, file)
    shop.merchant.dispatching = True
    shop.merchant.save()
    whole = shop.api.as_entity(shop.merchant.entity_id)
    [one] = listed(whole.get(SUMS, MAY))
    assert (one["count"], "merchantAccount" in one) == (1, False)
    [row] = rows(whole.get(f"{SUMS}/{where.id.hex}"))
    assert row["payment"]["id"] == mine.matches.get().payment.hex
    assert row["merchantAccount"]["id"] == shop.channel.pk.hex


# --- to try with ----------------------------------------------------------------------------------------------------


def test_made_up_settlements_are_always_the_same_and_add_up(shop: Shop, stranger: Shop) -> None:
    """Ruling D7: testMode=INTERNAL gives generated records for trying."""
    trying = MAY | {"testMode": "INTERNAL"}
    first = listed(shop.api.get(SUMS, trying))
    assert first == listed(shop.api.get(SUMS, trying))
    assert [one["date"] for one in first] == [f"{date(2026, 5, 1) + timedelta(days=n)}" for n in range(31)]
    assert first[0]["id"] != listed(stranger.api.get(SUMS, trying))[0]["id"]
    for one in first[:5]:
        records = rows(shop.api.get(f"{V1}/{one['id']}", {"testMode": "INTERNAL"}))
        assert (one["count"], Decimal(one["amount"])) == (len(records), paid_out(records))
    paged = shop.api.get(f"{V2}/{first[0]['id']}", {"testMode": "INTERNAL", "pageNo": "2", "sortOrder": "ASC"})
    assert (len(rows(paged)), paged.body["pages"]) == (100, 3)
    assert listed(shop.api.get(SUMS, MAY)) == []
    always = {"date.from": "1900-01-01", "date.to": "2099-12-31", "testMode": "INTERNAL"}
    assert shop.api.get(SUMS, always).errors.keys() == {"date.to"}, "a settlement for each day"
    last = shop.api.get(V2, always | {"pageNo": "731"})
    assert (listed(last)[-1]["date"], last.body["pages"]) == ("2099-12-31", 731)
    never_told = shop.api.get(f"{V1}/8a82944a4cc25ebf014cc2c782423202", {"testMode": "INTERNAL"})
    assert rows(never_told)


def test_live_has_no_made_up_settlements(shop: Shop, live: None) -> None:
    """Ruling D18."""
    answer = shop.api.over_tls().get(SUMS, MAY | {"testMode": "INTERNAL"})
    assert (answer.status, answer.errors.keys()) == (400, {"testMode"})


def test_a_report_is_few_statements(shop: Shop, settled: Settlement) -> None:
    """Goals: cheap."""
    for path, fields in ((SUMS, MAY), (f"{SUMS}/{settled.id.hex}", {})):
        with statements() as seen:
            assert shop.api.get(path, fields).status == 200
        assert len([sql for sql in seen if "reporting_" in sql]) <= 4
        assert len(seen) <= 12, list(seen)


def test_a_long_report_takes_little_more_memory_than_its_text(shop: Shop) -> None:
    """Goals, P18: 10,000 records took 66 MB for 9.5 MB of text; they are read and written piece by piece."""
    institute = books.institute()
    where, file = books.settlement(shop, institute), books.file_of(institute)
    first = books.record(where, file, books.payment_of(shop.api.pay().id))
    match = first.matches.get()
    names = [field.attname for field in SettlementRecord._meta.concrete_fields]
    same = {name: getattr(first, name) for name in names}
    more = [
        SettlementRecord(**{**same, "id": identifiers.row_id(), "line": first.line + number})
        for number in range(1, 2 * settlement_reports.FETCHED_REPORT_RECORDS + 1)
    ]
    SettlementRecord.objects.bulk_create(more)
    at = match.made_at
    Match.objects.bulk_create(
        Match(record=one, payment=match.payment, record_type="SETTLED", chosen=True, rule="id 1", made_at=at)
        for one in more
    )
    path = f"{SUMS}/{where.id.hex}"
    shop.api.get(path)
    with meter.traced(True):
        answer, cost = meter.measured(lambda: shop.api.get(path))
    told = rows(answer)
    assert len(told) == 2 * settlement_reports.FETCHED_REPORT_RECORDS + 1
    assert all(row == told[0] for row in told)
    assert answer.text.encode() == encode_json(answer.body)
    assert cost.memory < 5 * len(answer.text)
