"""Month end: the statement and the lists behind it, closing by two people, and the month's files."""

from __future__ import annotations

import csv as readers
import hashlib
import io
import random
import re
import zipfile
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import openpyxl
import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pypdf import PdfReader

from chargebacks import cases
from gateway.access import permissions
from gateway.background import queue
from gateway.background.files import AttemptFolder
from gateway.core import clock
from gateway.core.spreadsheet_cells import escape_csv_formula
from gateway.models import AuditEntry, BackgroundWork, Grant, Merchant, Payment, UserHandling
from reporting.models import ClearingInstitute, Finding, MonthClosing, SettlementFile, SettlementRecord
from reporting.month_end import bulk_closing, closing, package
from reporting.month_end.closing import Closer, ClosingRefusedError
from reporting.month_end.statement import (
    LINE_PARTS,
    MISSING_PART,
    MonthScope,
    MonthStatement,
    build_merchant_statements,
    build_statement,
    is_month_over,
    last_of_month,
    list_part,
)
from reporting.reconciliation import daily_files
from reporting.settlement import exception_queue
from tests.support import books
from tests.support.clock import jump
from tests.support.database import until_somebody_waits_for_a_lock
from tests.support.fixtures import BY, Shop, open_shop
from tests.support.office import person, signed_in
from tests.support.settlement import csv, institute, line, payment_of, take_in
from tests.support.threads import InThread

pytestmark = pytest.mark.django_db
MONTHS = "/admin/reporting/monthclosing/"
TILL_IT_IS_OVER_S = 40 * 86_400


def today() -> date:
    """Read when it is needed: a run may go past a midnight."""
    return clock.real_now().date()


def month() -> date:
    return today().replace(day=1)


@pytest.fixture(autouse=True)
def places(settings: Any, tmp_path: Path) -> None:
    settings.GATEWAY_WORK_DIR, settings.GATEWAY_OUTBOX = str(tmp_path / "work"), str(tmp_path / "outbox")


@pytest.fixture
def of(db: None) -> ClearingInstitute:
    return institute()


def settled(shop: Shop, of: ClearingInstitute, *amounts: str, **changes: str) -> list[SettlementRecord]:
    """Payments of these amounts, and a file that settles each as it is."""
    payments = [payment_of(shop.api.pay(amount=amount).id) for amount in amounts]
    file = take_in(csv([line(one, SettlementDate=f"{today()}", **changes) for one in payments]), of, "month.csv")
    return list(SettlementRecord.objects.filter(file=file).order_by("line"))


def stray(shop: Shop, of: ClearingInstitute, **changes: str) -> SettlementRecord:
    """A line of the month that names an id nobody has."""
    row = {"ClearingInstituteMerchantId": shop.channel.pk.hex, "ConnectorTxId1": "unknown-1", "Amount": "7.77"}
    take_in(csv([line(**{**row, "SettlementDate": f"{today()}", **changes})]), of, "stray.csv")
    return SettlementRecord.objects.get(tx_id1=changes.get("ConnectorTxId1", "unknown-1"))


def over(shop: Shop) -> None:
    """The month is over by the merchant's clock."""
    jump(TILL_IT_IS_OVER_S)
    shop.merchant.refresh_from_db()


def scope(shop: Shop) -> MonthScope:
    return MonthScope(month=month(), merchants=frozenset({shop.merchant.pk}))


def statement(shop: Shop) -> MonthStatement:
    return build_statement(scope(shop))


def parts(found: MonthStatement) -> dict[str, Decimal]:
    return {part.name: part.amount for one in (*found.payouts, *found.balances) for part in (*one.parts, *one.open)}


def by(user: User) -> Closer:
    return Closer(user=user.pk, actor=BY)


def month_page(shop: Shop, name: str = "") -> str:
    return f"{MONTHS}month/{shop.merchant.pk.hex}/{month():%Y-%m}/{name}"


# --- the statement ------------------------------------------------------------------------------------------------


def test_a_month_in_which_every_line_has_its_payment_balances(shop: Shop, of: ClearingInstitute) -> None:
    settled(shop, of, "92.00", "10.50")
    found = statement(shop)
    (payout,), (balance,) = found.payouts, found.balances
    assert (payout.currency, payout.total) == ("EUR", Decimal("102.50"))
    assert (balance.total, balance.open, found.is_balanced) == (Decimal("0.00"), [], True)
    assert parts(found) == {"taken": Decimal("102.50"), "settled": Decimal("102.50"), "booked": Decimal("-102.50")}


def test_what_the_institute_keeps_is_fees_or_held_back(shop: Shop, of: ClearingInstitute) -> None:
    settled(shop, of, "100.00", SettlementFee="1.50", SettlementAmount="88.50")
    found = statement(shop)
    assert found.payouts[0].total == Decimal("88.50")
    assert parts(found)["line_fees"] == Decimal("-1.50")
    assert parts(found)["held"] == Decimal("-10.00")
    assert found.balances[0].total == 0


def test_a_line_without_payment_keeps_the_balance_from_zero_until_it_is_accepted(
    shop: Shop, of: ClearingInstitute
) -> None:
    settled(shop, of, "92.00")
    record = stray(shop, of)
    found = statement(shop)
    assert [(one.total, [part.name for part in one.open]) for one in found.balances] == [
        (Decimal("7.77"), ["unmatched"])
    ]
    exception_queue.mark_without_payment(record, BY, "an old terminal")
    found = statement(shop)
    assert (found.is_balanced, parts(found)["marked"]) == (True, Decimal("-7.77"))


def test_another_amount_is_open_until_its_finding_is_closed(shop: Shop, of: ClearingInstitute) -> None:
    (record,) = settled(shop, of, "92.00", Amount="91.00")
    found = statement(shop)
    assert parts(found)["differing"] == found.balances[0].total == Decimal("-1.00")
    exception_queue.close_finding(Finding.objects.get(record=record, kind="AMOUNT"), BY, "a cent fee")
    found = statement(shop)
    assert (found.is_balanced, parts(found)["accepted"]) == (True, Decimal("1.00"))


def test_the_second_line_of_a_payment_is_a_difference(shop: Shop, of: ClearingInstitute) -> None:
    payment = payment_of(shop.api.pay().id)
    for name in ("once.csv", "again.csv"):
        take_in(csv([line(payment, SettlementDate=f"{today()}", Descriptor=name)]), of, name)
    assert statement(shop).balances[0].total == Decimal("92.00")
    assert parts(statement(shop))["differing"] == Decimal("92.00")


def test_what_cancels_out_is_open_all_the_same(shop: Shop, of: ClearingInstitute) -> None:
    stray(shop, of)
    stray(shop, of, ConnectorTxId1="unknown-2", PaymentType="REFUND")
    found = statement(shop)
    assert (found.balances[0].total, found.is_balanced) == (0, False)


def test_a_payment_that_was_due_and_is_on_no_line_is_missing(shop: Shop, of: ClearingInstitute) -> None:
    """By the merchant's clock: due so many days after it was made."""
    payment = payment_of(shop.api.pay().id)
    due = payment.created_at.date() + timedelta(days=of.settles_within_days)
    asked = MonthScope(month=due.replace(day=1), merchants=frozenset({shop.merchant.pk}))
    assert build_statement(asked).balances == []
    jump((of.settles_within_days + 2) * 86_400)
    found = build_statement(asked)
    assert [(one.currency, one.total) for one in found.balances] == [("EUR", Decimal("-92.00"))]
    listed = list_part(asked, MISSING_PART, "EUR", None, 10)
    assert listed.ids == [(payment.pk, Decimal("-92.00"))]
    take_in(csv([line(payment, SettlementStatus="FAILED", SettlementDate=f"{due}")]), of, "failed.csv")
    assert [(one.currency, one.total) for one in build_statement(asked).balances] == [("EUR", Decimal("-92.00"))]
    # In the month it was due in: made at the end of a month, it is due in the next.
    take_in(csv([line(payment, SettlementDate=f"{due}")]), of)
    (balance,) = build_statement(asked).balances
    assert (balance.total, [part.name for part in balance.open]) == (Decimal("0.00"), ["findings"])


def test_a_month_has_its_first_and_its_last_day(shop: Shop, of: ClearingInstitute) -> None:
    first = month()
    days = (first - timedelta(days=1), first, last_of_month(first), last_of_month(first) + timedelta(days=1))
    payments = [payment_of(shop.api.pay(amount=f"{2**at}.00").id) for at, _ in enumerate(days)]
    take_in(csv([line(one, SettlementDate=f"{day}") for one, day in zip(payments, days, strict=True)]), of)
    found = statement(shop)
    assert (parts(found)["taken"], parts(found)["settled"]) == (Decimal("6.00"), Decimal("6.00"))


def test_what_was_settled_in_another_currency_is_booked_for_no_line(shop: Shop, of: ClearingInstitute) -> None:
    settled(shop, of, "92.00", Currency="USD", SettlementCurrency="USD")
    (balance,) = statement(shop).balances
    assert (balance.currency, balance.total) == ("USD", Decimal("92.00"))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
@pytest.mark.parametrize("end", [False, True])
def test_a_payment_is_missing_in_the_month_of_its_due_day_at_the_institute(shop: Shop, zone: str, end: bool) -> None:
    """From the first moment of the first day to the last moment of the last one."""
    of = institute(time_zone=zone)
    ClearingInstitute.objects.update(created_at=clock.real_now() - timedelta(days=400))
    earlier = (month() - timedelta(days=45)).replace(day=1)
    day = (last_of_month(earlier) + timedelta(days=1)) if end else earlier
    border = datetime.combine(day - timedelta(days=of.settles_within_days), time(), ZoneInfo(zone))
    for at, amount in ((border - timedelta(microseconds=1), "1.00"), (border, "2.00")):
        Payment.objects.filter(pk=shop.api.pay(amount=amount).id).update(created_at=at)
    (balance,) = build_statement(MonthScope(month=earlier, merchants=frozenset({shop.merchant.pk}))).balances
    assert balance.total == (Decimal("-1.00") if end else Decimal("-2.00"))


def test_what_is_missing_of_money_in_and_of_money_out_has_its_sign(shop: Shop, of: ClearingInstitute) -> None:
    paid = shop.api.pay(amount="92.00")
    shop.api.follow(paid.id, "RF", "20.00")
    shop.api.pay(amount="5.00", paymentType="CD")
    shop.api.pay(amount="3.00", card__number="4000015500000005")
    shop.api.pay(amount="7.00", paymentType="PA")
    due = payment_of(paid.id).created_at.date() + timedelta(days=of.settles_within_days)
    jump((of.settles_within_days + 2) * 86_400)
    asked = MonthScope(month=due.replace(day=1), merchants=frozenset({shop.merchant.pk}))
    listed = list_part(asked, MISSING_PART, "EUR", None, 10)
    assert [adds for _, adds in listed.ids] == [Decimal("-92.00"), Decimal("20.00"), Decimal("5.00")]
    assert (listed.total, listed.count) == (Decimal("-67.00"), 3)
    assert [one.total for one in build_statement(asked).balances] == [Decimal("-67.00")]


def test_a_refund_that_failed_is_waited_for_in_no_month(shop: Shop, of: ClearingInstitute) -> None:
    """Its debit is on its line whole; a reversal that came back leaves it whole, too."""
    paid = shop.api.pay(amount="92.00").id
    back = [shop.api.follow(paid, "RF", "20.00").id, shop.api.follow(paid, "RV", "30.00").id]
    Payment.objects.filter(pk__in=back).update(returned_at=clock.real_now())
    due = payment_of(paid).created_at.date() + timedelta(days=of.settles_within_days)
    take_in(csv([line(payment_of(paid), SettlementDate=f"{due}")]), of)
    jump((of.settles_within_days + 2) * 86_400)
    asked = MonthScope(month=due.replace(day=1), merchants=frozenset({shop.merchant.pk}))
    found = build_statement(asked)
    assert (parts(found)["booked"], found.is_balanced) == (Decimal("-92.00"), True)


def test_a_file_that_was_not_read_to_its_end_settles_nothing(shop: Shop, of: ClearingInstitute) -> None:
    payment = payment_of(shop.api.pay().id)
    due = payment.created_at.date() + timedelta(days=of.settles_within_days)
    asked = MonthScope(month=due.replace(day=1), merchants=frozenset({shop.merchant.pk}))
    jump((of.settles_within_days + 2) * 86_400)
    file = take_in(csv([line(payment)]), of)
    assert build_statement(asked).is_balanced
    SettlementFile.objects.filter(pk=file.pk).update(state=SettlementFile.State.FAILED)
    assert [one.total for one in build_statement(asked).balances] == [Decimal("-92.00")]


def test_a_chargeback_is_balanced_by_its_booking(shop: Shop, of: ClearingInstitute) -> None:
    payment = payment_of(shop.api.pay().id)
    rows = [line(payment, SettlementDate=f"{today()}")]
    rows.append({**rows[0], "ReconciliationType": "CHARGEBACK", "Cashflow": "NEG", "ReasonCode": "000.100.221"})
    take_in(csv(rows), of)
    found = statement(shop)
    assert parts(found)["chargebacks"] == Decimal("-92.00")
    assert (found.payouts[0].total, found.is_balanced) == (Decimal("0.00"), True)


def test_each_list_sums_to_its_figure_whatever_the_lines(shop: Shop) -> None:
    """Random lines: every part's list has the figure's sum and count, page by page; the parts make the payouts."""
    rng = random.Random(27)
    of = books.institute()
    file = books.file_of(of)
    payments = [payment_of(shop.api.pay(amount=f"{number}.00").id) for number in (5, 6, 7, 8)]
    for number in range(40):
        currency = rng.choice(("EUR", "GBP"))
        where = books.settlement(shop, of, currency=currency, date=month() + timedelta(days=rng.randrange(28)))
        kind = rng.choice(("SETTLED", "SETTLED", "CHARGEBACK", "FEE"))
        amount = Decimal(rng.randrange(100, 9999)) / 100
        record = books.record(
            where,
            file,
            payments[number] if number < len(payments) else None,
            record_type=kind if number >= len(payments) else "SETTLED",
            transaction_type="MONTHLY" if kind == "FEE" and number >= len(payments) else "DEBIT",
            cashflow=rng.choice(("POS", "NEG")),
            amount=amount,
            currency=rng.choice(("EUR", currency)),
            settlement_amount=amount - Decimal(rng.randrange(0, 300)) / 100,
            settlement_fee=rng.choice((None, Decimal("0.2575"), Decimal("1.5000"))),
            settlement_status=rng.choice(("SUCCESS", "SUCCESS", "SUCCESS", "FAILED")),
            without_payment=number >= len(payments) and kind != "FEE" and rng.random() < 0.2,
        )
        if rng.random() < 0.3:
            now = clock.real_now()
            Finding.objects.create(
                record=record, kind="AMOUNT", made_at=now, closed_at=rng.choice((None, now)), merchant=shop.merchant
            )
    found = statement(shop)
    assert {one.currency for one in found.payouts} == {"EUR", "GBP"}
    for one in found.payouts:
        assert one.total == sum(part.amount for part in one.parts)
    for one in found.balances:
        # The books and their path: what is open is what keeps the balance from zero.
        assert one.total == sum(part.amount for part in one.open), one.currency
    listed = 0
    for table in (found.payouts, found.balances):
        for one in table:
            for part in (*one.parts, *one.open):
                summed, seen, after = Decimal(0), 0, None
                while (page := list_part(scope(shop), part.name, one.currency, after, 3)).ids:
                    assert (page.total, page.count) == (part.amount, part.count), part.name
                    summed += sum((adds for _ident, adds in page.ids), Decimal(0))
                    seen, after = seen + len(page.ids), page.ids[-1][0]
                assert (summed, seen) == (part.amount, part.count), part.name
                listed += 1
    assert listed > len(LINE_PARTS)
    assert build_merchant_statements(scope(shop))[shop.merchant.pk].as_json() == found.as_json()


# --- closing ------------------------------------------------------------------------------------------------------


@pytest.fixture
def people(shop: Shop) -> tuple[User, User]:
    return person("fina", "clerk", shop.merchant), person("max", "manager", shop.merchant)


def test_a_month_is_prepared_by_one_person_and_signed_by_another(
    shop: Shop, of: ClearingInstitute, people: tuple[User, User]
) -> None:
    (record,) = settled(shop, of, "92.00")
    over(shop)
    fina, max_ = (signed_in(one) for one in people)
    fina.post(month_page(shop, "do/"), {"verb": "prepare", "note": "all there"})
    row = MonthClosing.objects.get()
    assert (row.state, row.prepared_by_name, row.note) == ("PREPARED", "fina", "all there")
    for looker in ("auditor", "clerk"):
        signed_in(person(f"a {looker}", looker, shop.merchant)).post(
            month_page(shop, "do/"), {"verb": "withdraw", "note": "x"}
        )
        row.refresh_from_db()
        assert row.state == "PREPARED", looker
    assert fina.post(month_page(shop, "do/"), {"verb": "sign"}).status_code == 403
    assert b"Sign and close the month" in max_.get(month_page(shop)).content
    max_.post(month_page(shop, "do/"), {"verb": "sign"})
    row.refresh_from_db()
    assert (row.state, row.signed_by_name) == ("SIGNED", "max")
    # What is signed is not worked on any more.
    with pytest.raises(exception_queue.ExceptionActionError, match="is closed; reopen it first"):
        exception_queue.undo_resolution(record, BY)
    max_.post(month_page(shop, "do/"), {"verb": "reopen", "note": ""})
    row.refresh_from_db()
    assert row.state == "SIGNED"
    max_.post(month_page(shop, "do/"), {"verb": "reopen", "note": "a late refund"})
    row.refresh_from_db()
    assert (row.state, row.reason, row.reopened_by_name) == ("REOPENED", "a late refund", "max")
    exception_queue.undo_resolution(record, BY)
    told = list(AuditEntry.objects.filter(subject="monthclosing").order_by("id").values_list("actor", "action"))
    assert told == [("fina", "month prepared"), ("max", "month signed"), ("max", "month reopened")]
    assert AuditEntry.objects.get(action="month reopened").after["reason"] == "a late refund"


def test_who_prepared_a_month_does_not_sign_it_nor_does_their_second_user(
    shop: Shop, of: ClearingInstitute, people: tuple[User, User]
) -> None:
    """Decision 0053: people, not users."""
    settled(shop, of, "92.00")
    over(shop)
    _fina, max_ = people
    other = person("mia", "manager", shop.merchant)
    row = closing.prepare_month(shop.merchant, month(), "", by=by(max_))
    with pytest.raises(ClosingRefusedError, match="somebody else signs it"):
        closing.sign_month(row, by=by(max_))
    UserHandling.objects.create(by=max_, user=other, action="create", at=clock.real_now())
    with pytest.raises(ClosingRefusedError, match="may be the same person"):
        closing.sign_month(row, by=by(other))
    with pytest.raises(IntegrityError), transaction.atomic():
        MonthClosing.objects.filter(pk=row.pk).update(signed_by=max_)
    UserHandling.objects.all().delete()
    assert closing.sign_month(row, by=by(other)).state == "SIGNED"


def test_a_month_is_not_closed_while_anything_is_open_or_it_is_not_over(
    shop: Shop, of: ClearingInstitute, people: tuple[User, User]
) -> None:
    settled(shop, of, "92.00")
    record = stray(shop, of)
    with pytest.raises(ClosingRefusedError, match="not over"):
        closing.prepare_month(shop.merchant, month(), "", by=by(people[0]))
    over(shop)
    with pytest.raises(ClosingRefusedError, match=r"not 0\.00"):
        closing.prepare_month(shop.merchant, month(), "", by=by(people[0]))
    exception_queue.mark_without_payment(record, BY, "not ours")
    row = closing.prepare_month(shop.merchant, month(), "", by=by(people[0]))
    with pytest.raises(ClosingRefusedError, match="prepared this month already"):
        closing.prepare_month(shop.merchant, month(), "", by=by(people[1]))
    exception_queue.undo_resolution(record, BY)
    with pytest.raises(ClosingRefusedError, match=r"not 0\.00"):
        closing.sign_month(row, by=by(people[1]))


def test_figures_that_changed_after_they_were_prepared_are_not_signed_and_named(
    shop: Shop, of: ClearingInstitute, people: tuple[User, User]
) -> None:
    settled(shop, of, "92.00")
    over(shop)
    row = closing.prepare_month(shop.merchant, month(), "", by=by(people[0]))
    fee = {"ReconciliationType": "FEE", "PaymentType": "MONTHLY", "Cashflow": "NEG", "Amount": "3.00"}
    take_in(
        csv([line(ClearingInstituteMerchantId=shop.channel.pk.hex, SettlementDate=f"{today()}", **fee)]), of, "late.csv"
    )
    with pytest.raises(ClosingRefusedError, match="have changed"):
        closing.sign_month(row, by=by(people[1]))
    page = signed_in(people[1]).get(month_page(shop)).content.decode()
    assert "Fees charged apart: 0.00 EUR → -3.00 EUR" in page
    with pytest.raises(ClosingRefusedError, match="Say why"):
        closing.return_month(row, "", by=by(people[1]))
    assert closing.return_month(row, "a late file", by=by(people[1])).state == "RETURNED"
    again = closing.prepare_month(shop.merchant, month(), "", by=by(people[0]))
    with pytest.raises(closing.ClosingRefusedError):
        closing.withdraw_month(again, "it is mine to stop", by=by(people[1]))
    assert closing.withdraw_month(again, "", by=by(people[0])).state == "WITHDRAWN"


# --- pages --------------------------------------------------------------------------------------------------------


def test_every_figure_of_a_months_page_leads_to_a_list_that_says_the_same(
    shop: Shop, of: ClearingInstitute, people: tuple[User, User]
) -> None:
    settled(shop, of, "92.00", "10.00", SettlementFee="0.50", SettlementAmount="9.50")
    stray(shop, of)
    client = signed_in(people[0])
    page = client.get(month_page(shop)).content.decode()
    assert "What is open:" in page
    found = statement(shop)
    for one in (*found.payouts, *found.balances):
        for part in (*one.parts, *one.open):
            address = f"{month_page(shop, 'lines/')}?part={part.name}&amp;currency={one.currency}"
            assert address in page, part.name
            listed = client.get(address.replace("&amp;", "&")).content.decode()
            assert f"<strong>{part.amount:,.2f} {one.currency}</strong>" in listed, part.name
    assert client.get(f"{month_page(shop, 'lines/')}?part=nothing&currency=EUR").status_code == 404
    listed = client.get(MONTHS, {"month": f"{month():%Y-%m}"}).content.decode()
    assert month_page(shop) in listed
    assert "7.77 EUR" in listed


def test_a_months_pages_cost_the_same_for_many_lines(shop: Shop, of: ClearingInstitute, people: Any) -> None:
    client = signed_in(people[1])

    def statements(address: str) -> int:
        with CaptureQueriesContext(connection) as asked:
            assert client.get(address).status_code == 200
        return len(asked)

    settled(shop, of, "92.00")
    addresses = (
        month_page(shop),
        f"{month_page(shop, 'lines/')}?part=settled&currency=EUR",
        f"{MONTHS}?month={month():%Y-%m}",
    )
    client.get(addresses[0])  # the first page of a session writes its beginning
    before = [statements(address) for address in addresses]
    settled(shop, of, *(f"{number}.00" for number in range(1, 9)))
    assert [statements(address) for address in addresses] == before


def test_a_merchants_months_are_nobody_elses(shop: Shop, stranger: Shop, of: ClearingInstitute) -> None:
    settled(shop, of, "92.00")
    other = signed_in(person("otto", "manager", stranger.merchant))
    for name in ("", "lines/?part=settled&currency=EUR"):
        assert other.get(month_page(shop, name)).status_code == 404
        assert "92.00" not in other.get(f"{MONTHS}month/all/{month():%Y-%m}/{name}").content.decode()
    for name in ("do/", "package/"):
        assert other.post(month_page(shop, name), {"verb": "prepare"}).status_code == 404
    listed = other.get(MONTHS, {"month": f"{month():%Y-%m}"}).content.decode()
    assert not re.search(rf"\b{shop.merchant.name}\b", listed)
    developer = signed_in(person("dora", "developer", shop.merchant))
    assert developer.get(month_page(shop)).status_code == 403


@pytest.mark.parametrize("odd", ["2026-13", "x", "0000-01", "9999-12", "2026-1-1", "20261"])
def test_an_address_that_names_no_month_is_not_found(shop: Shop, people: tuple[User, User], odd: str) -> None:
    client = signed_in(people[1])
    assert client.get(f"{MONTHS}month/all/{odd}/").status_code == 404
    assert client.get(f"{MONTHS}month/{odd}/2026-11/").status_code == 404
    assert client.get(MONTHS, {"month": odd}).status_code == 200


# --- files --------------------------------------------------------------------------------------------------------


def run_work(client: Client, answer: Any) -> bytes:
    """Do the work that ``answer`` leads to, and fetch its file."""
    assert answer.status_code == 302
    while queue.run_background_work():
        pass
    row = BackgroundWork.objects.latest("asked_at")
    assert row.state == BackgroundWork.State.DONE, row.message
    fetched = client.get(f"/admin/gateway/backgroundwork/{row.pk}/file/")
    assert fetched.status_code == 200
    return b"".join(fetched.streaming_content)


def test_a_months_files_have_its_lines_by_currency_real_dates_and_checksums(
    shop: Shop, of: ClearingInstitute, people: tuple[User, User]
) -> None:
    settled(shop, of, "92.00", "10.00")
    settled(shop, of, "5.00", SettlementCurrency="GBP", SettlementFxRate="1")
    client = signed_in(people[0])
    packed = zipfile.ZipFile(io.BytesIO(run_work(client, client.post(month_page(shop, "package/")))))
    stem = f"month-{month():%Y-%m}"
    tables = {f"lines-{month():%Y-%m}-EUR.csv": 2, f"lines-{month():%Y-%m}-GBP.csv": 1}
    assert set(packed.namelist()) == {*tables, f"{stem}.xlsx", f"{stem}.pdf", "SHA256SUMS"}
    for digest, name in (row.split("  ") for row in packed.read("SHA256SUMS").decode().splitlines()):
        assert hashlib.sha256(packed.read(name)).hexdigest() == digest
    for name, count in tables.items():
        rows = packed.read(name).decode().splitlines()
        assert (len(rows), len(rows[0].split(";"))) == (count + 1, 38)
    book = openpyxl.load_workbook(io.BytesIO(packed.read(f"{stem}.xlsx")))
    assert book.sheetnames == ["Payouts", "Balance", "Lines 1"]
    head, *rows = [[cell.value for cell in row] for row in book["Lines 1"].iter_rows()]
    assert {row[head.index("settled")] for row in rows} == {datetime.combine(today(), datetime.min.time())}
    assert all(isinstance(row[head.index("recorded (UTC)")], datetime) for row in rows)
    assert sum(row[head.index("amount")] for row in rows) == 107
    text = PdfReader(io.BytesIO(packed.read(f"{stem}.pdf"))).pages[0].extract_text()
    assert "102.00 EUR" in text
    assert "not closed" in text


def test_a_months_lines_run_no_formula(shop: Shop, of: ClearingInstitute, people: tuple[User, User]) -> None:
    """docs/decisions/0119: people open the ZIP; the daily file keeps every value."""
    order = '=HYPERLINK("https://evil.example";"Open")'
    paid = payment_of(shop.api.pay(amount="92.00", merchantTransactionId=order).id)
    take_in(csv([line(paid, SettlementDate=f"{today()}")]), of, "month.csv")
    client = signed_in(people[0])
    packed = zipfile.ZipFile(io.BytesIO(run_work(client, client.post(month_page(shop, "package/")))))
    cells = packed.read(f"lines-{month():%Y-%m}-EUR.csv").decode()
    [found] = readers.DictReader(io.StringIO(cells, newline=""), delimiter=";")
    assert found["TransactionId"] == f"'{order}"
    assert found["Amount"] == "92.00"
    assert escape_csv_formula("-0.35") == "-0.35"
    assert not [cell for cell in found.values() if cell.startswith(("=", "+", "-", "@"))]
    file = daily_files.create_due_daily_files(books.overnight(shop), 31)[-1]
    assert order.replace('"', '""').encode() in b"".join(daily_files.render_daily_file(file))


def test_a_months_files_are_made_in_slices_and_for_nobody_without_the_right(
    shop: Shop, stranger: Shop, of: ClearingInstitute, people: tuple[User, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "FETCH_SIZE", 2)
    settled(shop, of, *(f"{number}.00" for number in range(1, 6)))
    client = signed_in(people[0])
    packed = zipfile.ZipFile(io.BytesIO(run_work(client, client.post(month_page(shop, "package/")))))
    assert len(packed.read(f"lines-{month():%Y-%m}-EUR.csv").decode().splitlines()) == 6
    row = BackgroundWork.objects.latest("asked_at")
    boss = signed_in(User.objects.create_superuser("boss"))
    run_work(boss, boss.post(f"{MONTHS}month/all/{month():%Y-%m}/package/"))
    people[0].grants.all().delete()
    assert client.get(f"/admin/gateway/backgroundwork/{row.pk}/file/").status_code == 403


def test_the_file_of_a_period_has_the_lines_of_its_daily_files(
    shop: Shop, stranger: Shop, of: ClearingInstitute, people: tuple[User, User]
) -> None:
    settled(shop, of, "92.00", "10.00")
    first = daily_files.create_due_daily_files(books.overnight(shop), 31)
    settled(shop, of, "5.00", SettlementCurrency="GBP", SettlementFxRate="1")
    days = [*first, *daily_files.create_due_daily_files(books.overnight(shop), 31)]
    client = signed_in(people[0])
    asked = {"from": f"{days[0].day}", "to": f"{days[-1].day}", "currency": "", "merchant": ""}
    outgoing = "/admin/reporting/reconciliationfile/"
    rows = run_work(client, client.post(f"{outgoing}period/", asked)).decode().splitlines()
    daily = [b"".join(daily_files.render_daily_file(day)).decode().splitlines() for day in days]
    assert rows == [daily[0][0], *(row for file in daily for row in file[1:])]
    assert len(rows) == 4
    rows = run_work(client, client.post(f"{outgoing}period/", {**asked, "currency": "GBP"})).decode().splitlines()
    assert len(rows) == 2
    for wrong in (
        {"from": "x"},
        {"to": "1999-01-01"},
        {"from": "2001-01-01", "to": "2003-01-01"},
        {"currency": "EURO"},
    ):
        answer = client.post(f"{outgoing}period/", {**asked, **wrong}, follow=True)
        assert "ck-note" in answer.content.decode() or "error" in answer.content.decode()
        assert answer.redirect_chain[-1][0].partition("?")[0] == outgoing


def test_whether_a_month_is_over_goes_by_the_merchants_day(shop: Shop) -> None:
    merchant = Merchant.objects.get(pk=shop.merchant.pk)
    merchant.time_zone = "Pacific/Kiritimati"
    assert is_month_over(merchant, date(2020, 2, 1))
    assert not is_month_over(merchant, date(2099, 1, 1))


def close_all(user: User, verb: str) -> BackgroundWork:
    """Ask for all merchants' month to be prepared or signed, and do it; the work as it ended."""
    answer = signed_in(user).post(f"{MONTHS}month/all/{month():%Y-%m}/do/", {"verb": verb})
    row = BackgroundWork.objects.filter(owner=user).latest("asked_at")
    assert answer.url.endswith(f"/{row.pk}/change/")
    assert row.state == "WAITING", "nothing is prepared or signed in the request"
    queue.run_background_work()
    row.refresh_from_db()
    assert row.state == "DONE", row.message
    return row


def test_all_months_at_zero_are_prepared_and_signed_together(shop: Shop, stranger: Shop, of: ClearingInstitute) -> None:
    """Each merchant by itself: what is not balanced stays open, and nobody signs what they prepared."""
    third = open_shop(shop.merchant.division, "Third")
    for each in (shop, stranger):
        settled(each, of, "92.00")
    stray(third, of)
    over(shop)
    fina, max_ = (person(name, "psp", shop.merchant.division.psp) for name in ("fina", "max"))
    made = close_all(fina, "prepare")
    assert (made.done, made.total, made.message) == (2, 2, "2 months are prepared.")
    rows = MonthClosing.objects.filter(state="PREPARED")
    assert {row.merchant_id for row in rows} == {shop.merchant.pk, stranger.merchant.pk}
    assert close_all(fina, "sign").message == "0 months are closed."
    assert MonthClosing.objects.filter(state="PREPARED").count() == 2
    stray(stranger, of, ConnectorTxId1="late")  # since it was prepared
    made = close_all(max_, "sign")
    assert made.message == "1 month is closed. 1: The balance is not 0.00, or something is still open."
    assert MonthClosing.objects.get(state="SIGNED").merchant_id == shop.merchant.pk
    told = AuditEntry.objects.filter(action="month signed").get()
    assert (told.actor, told.ip) == ("max", "127.0.0.1")
    clerk = signed_in(person("carl", "clerk", stranger.merchant))
    assert clerk.post(f"{MONTHS}month/all/{month():%Y-%m}/do/", {"verb": "sign"}).status_code == 403


def test_months_are_closed_slice_by_slice_with_the_rights_of_the_moment(
    shop: Shop, stranger: Shop, of: ClearingInstitute, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice that is done twice prepares nothing twice; rights that are taken away in between count."""
    monkeypatch.setattr(bulk_closing, "CLOSING_SLICE_MERCHANTS", 1)
    for each in (shop, stranger):
        settled(each, of, "92.00")
    over(shop)
    fina = person("fina", "psp", shop.merchant.division.psp)
    signed_in(fina).post(f"{MONTHS}month/all/{month():%Y-%m}/do/", {"verb": "prepare"})
    row = BackgroundWork.objects.get(owner=fina)
    folder = AttemptFolder(path=Path(queue.work_folder(row.pk)), attempt=1)
    first = bulk_closing.close_months_slice(row, folder, lambda: None)
    assert (first.done, first.total, first.finished) == (1, 2, False)
    row.cursor = {**first.cursor, "left": [shop.merchant.pk.hex, stranger.merchant.pk.hex], "made": 0}
    again = bulk_closing.close_months_slice(row, folder, lambda: None)
    assert MonthClosing.objects.count() <= 2
    Grant.objects.filter(user=fina).delete()
    permissions.clear_grant_cache(fina)
    row.cursor = again.cursor
    last = bulk_closing.close_months_slice(row, folder, lambda: None)
    assert last.finished
    assert last.message.endswith("1: You may no longer close months of this merchant.")


# --- a signature and a change of a line at the same moment, on two connections, stepped -----------------------------


def prepared(shop: Shop, of: ClearingInstitute) -> tuple[SettlementRecord, MonthClosing, User]:
    """A month at zero that waits for its second person, with one of its lines."""
    (record,) = settled(shop, of, "92.00")
    over(shop)
    one, two = (person(name, permissions.Role.MANAGER, shop.merchant) for name in ("one", "two"))
    return record, closing.prepare_month(shop.merchant, month(), "", by=by(one)), two


@pytest.mark.django_db(transaction=True)
def test_a_month_is_not_signed_over_a_change_of_its_lines_that_is_on_its_way(
    committed: Shop, of: ClearingInstitute
) -> None:
    record, row, second = prepared(committed, of)
    signing = InThread(lambda: closing.sign_month(row, by=by(second)))
    with transaction.atomic():
        exception_queue.undo_resolution(record, BY)
        signing.start()
        until_somebody_waits_for_a_lock()
    assert isinstance(signing.end(), ClosingRefusedError)
    row.refresh_from_db()
    assert row.state == MonthClosing.State.PREPARED


@pytest.mark.django_db(transaction=True)
def test_a_line_is_not_changed_while_its_month_is_signed(committed: Shop, of: ClearingInstitute) -> None:
    record, row, second = prepared(committed, of)
    changing = InThread(lambda: exception_queue.undo_resolution(record, BY))
    with transaction.atomic():
        closing.sign_month(row, by=by(second))
        changing.start()
        until_somebody_waits_for_a_lock()
    refused = changing.end()
    assert isinstance(refused, exception_queue.ExceptionActionError)
    assert "is closed" in str(refused)
    record.refresh_from_db()
    assert record.state == "MATCHED"
    assert build_statement(scope(committed)).as_json() == row.figures


@pytest.mark.django_db(transaction=True)
def test_a_month_that_was_prepared_after_a_change_of_its_lines_began_is_not_signed_over_it(
    committed: Shop, of: ClearingInstitute
) -> None:
    """When the change began there was nothing to be signed; the two others took both steps while it was on its way."""
    (record,) = settled(committed, of, "92.00")
    over(committed)
    one, two = (person(name, permissions.Role.MANAGER, committed.merchant) for name in ("one", "two"))

    def close() -> MonthClosing:
        row = closing.prepare_month(committed.merchant, month(), "", by=by(one))
        return closing.sign_month(row, by=by(two))

    signing = InThread(close)
    with transaction.atomic():
        exception_queue.undo_resolution(record, BY)
        signing.start()
        until_somebody_waits_for_a_lock()
    assert isinstance(signing.end(), ClosingRefusedError)
    assert MonthClosing.objects.get().state == MonthClosing.State.PREPARED


def charged_back_twice(shop: Shop, of: ClearingInstitute) -> SettlementRecord:
    """The second of two equal chargeback lines, which waits for a clerk, who has accepted that nothing is booked for
    it."""
    payment = payment_of(shop.api.pay(amount="92.00").id)
    about = {"SettlementDate": f"{today()}", "SettlementTxId": ""}
    taken = line(payment, ReconciliationType="CHARGEBACK", Cashflow="NEG", Amount="10.00", ReasonCode="000.100.201")
    taken |= about | {"SettlementAmount": "10.00"}
    take_in(csv([line(payment, **about), taken, taken]), of, "twice.csv")
    record = SettlementRecord.objects.get(record_type="CHARGEBACK", chargeback=None)
    for finding in Finding.objects.filter(closed_at=None):
        exception_queue.close_finding(finding, BY, "told by the bank: one of them is theirs")
    over(shop)
    return record


@pytest.mark.django_db(transaction=True)
def test_a_month_is_not_signed_while_a_chargeback_of_it_is_entered(
    committed: Shop, of: ClearingInstitute, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entering takes several transactions. Between any two of them the signature waits."""
    record = charged_back_twice(committed, of)
    one, two = (person(name, permissions.Role.MANAGER, committed.merchant) for name in ("one", "two"))
    row = closing.prepare_month(committed.merchant, month(), "", by=by(one))
    signing = InThread(lambda: closing.sign_month(row, by=by(two)))
    adopt = cases.adopt_chain_payments

    def adopt_while_somebody_signs(chain: Any) -> None:
        adopt(chain)
        signing.start()
        until_somebody_waits_for_a_lock()

    monkeypatch.setattr(cases, "adopt_chain_payments", adopt_while_somebody_signs)
    exception_queue.book_linked_record(record, BY)
    assert isinstance(signing.end(), ClosingRefusedError)
    row.refresh_from_db()
    assert row.state == MonthClosing.State.PREPARED


@pytest.mark.django_db(transaction=True)
def test_a_chargeback_of_a_signed_month_is_not_entered_and_the_month_is_held_no_longer(
    committed: Shop, of: ClearingInstitute
) -> None:
    record = charged_back_twice(committed, of)
    one, two = (person(name, permissions.Role.MANAGER, committed.merchant) for name in ("one", "two"))
    row = closing.prepare_month(committed.merchant, month(), "", by=by(one))
    closing.sign_month(row, by=by(two))
    with pytest.raises(exception_queue.ExceptionActionError, match="is closed; reopen it first"):
        exception_queue.book_linked_record(record, BY)
    record.refresh_from_db()
    assert record.chargeback is None
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'")
        assert cursor.fetchone() == (0,)
