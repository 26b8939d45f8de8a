"""Which payments an institute should have settled by now: days of its zone, kinds, and what is still to come.

Source: docs/settlement.md; decision 0042.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from gateway.core import clock
from gateway.models import Merchant, Payment
from reporting.models import ClearingInstitute, Finding, Match, SettlementFile, SettlementRecord
from reporting.settlement import exception_queue, missing_settlements
from tests.support import settlement
from tests.support.fixtures import Shop
from tests.support.office import signed_in
from tests.support.settlement import BY, csv, line, payment_of, take_in

pytestmark = pytest.mark.django_db
ZONES = ("UTC", "Asia/Tokyo", "America/Los_Angeles", "Europe/Berlin")
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


def institute(zone: str = "UTC", **values: Any) -> ClearingInstitute:
    made = settlement.institute(time_zone=zone, settles_within_days=2, **values)
    ClearingInstitute.objects.filter(pk=made.pk).update(created_at=clock.real_now() - 60 * DAY)
    made.refresh_from_db()
    return made


def pay(shop: Shop, at: datetime, **fields: Any) -> Payment:
    ident = shop.api.pay(**fields).id
    Payment.objects.filter(pk=ident).update(created_at=at)
    return payment_of(ident)


def midnight(of: ClearingInstitute, day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(of.time_zone)).astimezone(UTC)


def unsettled(of: ClearingInstitute, first: date, last: date, merchant: Merchant | None = None) -> list[str]:
    return [one.pk.hex for one in missing_settlements.list_unsettled_payments(of, first, last, merchant)]


@pytest.mark.parametrize("zone", ZONES)
def test_days_are_the_institutes_from_midnight_to_midnight(shop: Shop, zone: str) -> None:
    of, day = institute(zone), date(2026, 3, 29)
    begin, end = midnight(of, day), midnight(of, day + DAY)
    moments = [end - SECOND, begin - SECOND, end, begin]
    made = {at: pay(shop, at).pk.hex for at in moments}
    assert unsettled(of, day, day) == [made[begin], made[end - SECOND]]
    assert unsettled(of, day - DAY, day) == [made[begin - SECOND], made[begin], made[end - SECOND]]
    assert unsettled(of, day, day + DAY) == [made[begin], made[end - SECOND], made[end]]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=3, hours=7), -timedelta(days=3, hours=7)])
def test_what_is_overdue_is_listed_and_counted_alike(shop: Shop, stranger: Shop, zone: str, ahead: timedelta) -> None:
    """By each merchant's clock: after the institute's days, and of the last two weeks before."""
    of = institute(zone)
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    shop.merchant.clock_offset = ahead
    now = clock.real_now()
    today = (now + ahead).astimezone(of.zone).date()
    last = midnight(of, today - 2 * DAY)
    first = midnight(of, today - 17 * DAY)
    late = [pay(shop, at, amount="10.00").pk for at in (first, last - SECOND)]
    for at in (first - SECOND, last):
        pay(shop, at)
    theirs_at = midnight(of, now.astimezone(of.zone).date() - 5 * DAY)
    theirs = pay(stranger, theirs_at, currency="USD")
    assert [one.pk for one in missing_settlements.list_overdue_payments(of, shop.merchant)] == late
    assert [one.pk for one in missing_settlements.list_overdue_payments(of, stranger.merchant)] == [theirs.pk]
    both = [shop.merchant.pk, stranger.merchant.pk]
    oldest = missing_settlements.list_oldest_overdue_payments(of, both, now, 10)
    assert {one.pk for one in oldest} == {*late, theirs.pk}
    assert [one.created_at for one in oldest] == sorted(one.created_at for one in oldest)
    assert missing_settlements.list_oldest_overdue_payments(of, both, now, 2) == oldest[:2]
    assert [one.pk for one in missing_settlements.list_oldest_overdue_payments(of, both[:1], now, 10)] == late
    assert set(missing_settlements.count_overdue_payments(of, now)) == {
        (shop.merchant.pk, today, "EUR", 2, Decimal("20.00")),
        (stranger.merchant.pk, now.astimezone(of.zone).date(), "USD", 1, Decimal("92.00")),
    }


@pytest.mark.parametrize("zone", ZONES)
def test_what_was_paid_before_the_institute_was_set_up_is_not_missed(shop: Shop, zone: str) -> None:
    of, now = institute(zone), clock.real_now()
    begun = midnight(of, now.astimezone(of.zone).date() - 6 * DAY)
    ClearingInstitute.objects.filter(pk=of.pk).update(created_at=begun + timedelta(hours=23))
    of.refresh_from_db()
    pay(shop, begun - SECOND)
    since = pay(shop, begun)
    assert [one.pk for one in missing_settlements.list_overdue_payments(of, shop.merchant)] == [since.pk]
    assert [row[3] for row in missing_settlements.count_overdue_payments(of, now)] == [1]


def test_what_was_reversed_in_part_is_missed_with_the_rest(shop: Shop) -> None:
    of, now = institute(), clock.real_now()
    part, whole = (shop.api.pay().id for _ in range(2))
    assert shop.api.follow(part, "RV", "30.00").status == 200
    assert shop.api.follow(whole, "RV").status == 200
    Payment.objects.filter(pk__in=[part, whole]).update(created_at=now - 5 * DAY)
    assert [row[3:] for row in missing_settlements.count_overdue_payments(of, now)] == [(1, Decimal("62.00"))]
    assert [one.pk.hex for one in missing_settlements.list_overdue_payments(of, shop.merchant)] == [part]


def test_refunds_and_credits_take_away_from_what_is_missed(shop: Shop) -> None:
    """Debits of 92.00 and 92.00, a refund of 5.00, a credit of 100.00: 79.00, on the page as in the mail."""
    of, now = institute(), clock.real_now()
    debits = [shop.api.pay().id for _ in range(2)]
    refund = shop.api.follow(debits[0], "RF", "5.00").id
    credit = shop.api.pay(paymentType="CD", amount="100.00").id
    Payment.objects.filter(pk__in=[*debits, refund, credit]).update(created_at=now - 5 * DAY)
    assert [row[3:] for row in missing_settlements.count_overdue_payments(of, now)] == [(4, Decimal("79.00"))]
    day = (now - 5 * DAY).date()
    amounts = {one.payment.hex: one.amount for one in missing_settlements.list_unsettled_amounts(of, day, day)}
    assert amounts == dict.fromkeys(debits, Decimal("92.00")) | {refund: Decimal("-5.00"), credit: Decimal("-100.00")}
    office = signed_in(User.objects.create_superuser("root"))
    page = office.get(reverse("admin:reporting_settlementfile_missing", args=[of.pk])).content.decode()
    assert "79.00" in page
    assert "-100.00" in page.replace("\N{MINUS SIGN}", "-")


def test_the_page_loads_only_the_payments_that_it_shows(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goals, P18: ten thousand whole payments took 69 MB; their number and sum are of all."""
    of, now = institute(), clock.real_now()
    paid = [
        pay(shop, now - 5 * DAY + number * SECOND, merchantTransactionId=f"order-471{number}") for number in range(3)
    ]
    monkeypatch.setattr("reporting.admin.missing_settlements.MAX_SHOWN_PAYMENTS", 2)
    loaded: list[Any] = []
    monkeypatch.setattr(
        missing_settlements, "load_payments", lambda ids: loaded.extend(ids) or [payment_of(one.hex) for one in ids]
    )
    office = signed_in(User.objects.create_superuser("root"))
    page = office.get(reverse("admin:reporting_settlementfile_missing", args=[of.pk])).content.decode()
    assert loaded == [one.pk for one in paid[:2]]
    assert ["order-4710" in page, "order-4711" in page, "order-4712" in page] == [True, True, False]
    assert "276.00" in page


def test_a_payment_that_is_gone_by_the_time_it_is_shown_is_left_out(shop: Shop) -> None:
    """The archive may take it between the two statements."""
    kept = payment_of(shop.api.pay().id)
    assert missing_settlements.load_payments([uuid4(), kept.pk]) == [kept]


def test_a_refund_that_failed_or_came_back_is_not_missed(shop: Shop) -> None:
    """A refund at a processor that failed or was cancelled after its approval, and its reversal of a debit, which is
    one there; a transfer that the bank returned. Their debit is missed as it was."""
    of, now = institute(connectors=["stripe", "simulator"]), clock.real_now()
    debits = [shop.api.pay().id for _ in range(3)]
    refund, voided = shop.api.follow(debits[0], "RF", "5.00").id, shop.api.follow(debits[1], "RV").id
    reversed_ = shop.api.follow(debits[2], "RV", "30.00").id
    credit = shop.api.pay(paymentType="CD", amount="100.00").id
    out = [refund, voided, reversed_, credit]
    Payment.objects.filter(pk__in=[*debits, *out]).update(created_at=now - 5 * DAY)
    Payment.objects.filter(pk__in=[debits[1], voided]).update(connector="stripe")
    assert [row[3:] for row in missing_settlements.count_overdue_payments(of, now)] == [(6, Decimal("49.00"))]
    Payment.objects.filter(pk__in=out).update(returned_at=now)
    assert [row[3:] for row in missing_settlements.count_overdue_payments(of, now)] == [(3, Decimal("276.00"))]
    assert {one.pk.hex for one in missing_settlements.list_overdue_payments(of, shop.merchant)} == set(debits)


@pytest.mark.parametrize("with_id", [True, False])
def test_the_lines_of_a_refund_that_failed_and_of_its_debit_are_matched_as_ever(shop: Shop, with_id: bool) -> None:
    """A processor may settle the refund all the same; a debit whose reversal came back is settled whole."""
    of, now = institute(), clock.real_now()
    paid = shop.api.pay().id
    refund, reversed_ = shop.api.follow(paid, "RF", "5.00").id, shop.api.follow(paid, "RV", "30.00").id
    Payment.objects.filter(pk__in=[refund, reversed_]).update(returned_at=now)
    changes = {} if with_id else {"ConnectorTxId1": ""}
    take_in(csv([line(payment_of(paid), **changes), line(payment_of(refund), PaymentType="REFUND", **changes)]), of)
    assert set(Match.objects.values_list("payment", flat=True)) == {payment_of(paid).pk, payment_of(refund).pk}
    assert not Finding.objects.exists()


def test_only_approved_payments_that_move_money_at_its_connectors_are_missed(shop: Shop, stranger: Shop) -> None:
    of, today = institute(), clock.real_now().date()
    debit = shop.api.pay().id
    held = shop.api.pay(paymentType="PA").id
    capture = shop.api.follow(held, "CP", "10.00").id
    refund = shop.api.follow(debit, "RF", "5.00").id
    theirs = stranger.api.pay().id
    shop.api.pay(card__number="4000015500000005")
    elsewhere = shop.api.pay().id
    Payment.objects.filter(pk=elsewhere).update(connector="stub")
    span = (today - DAY, today + DAY)
    assert set(unsettled(of, *span)) == {debit, capture, refund, theirs}
    assert set(unsettled(of, *span, shop.merchant)) == {debit, capture, refund}
    assert set(unsettled(of, *span, stranger.merchant)) == {theirs}


def test_a_payment_is_missed_until_a_line_settles_it_and_again_when_that_is_undone(shop: Shop) -> None:
    of, today = institute(), clock.real_now().date()
    payment = payment_of(shop.api.pay().id)
    span = (today - DAY, today + DAY)
    charged = line(payment, ReconciliationType="CHARGEBACK", Cashflow="NEG", ReasonCode="000.100.220")
    take_in(csv([charged]), of)
    assert unsettled(of, *span) == [payment.pk.hex], "a chargeback settles nothing"
    take_in(csv([line(payment, SettlementTxId="2")]), of, "second.csv")
    assert unsettled(of, *span) == []
    exception_queue.undo_resolution(SettlementRecord.objects.get(file__name="second.csv"), BY)
    assert unsettled(of, *span) == [payment.pk.hex]
    Match.objects.filter(record_type="SETTLED").update(undone_at=None, undone_by="", chosen=False)
    assert unsettled(of, *span) == [payment.pk.hex], "one of several that a line might mean"


@pytest.mark.parametrize("zone", ZONES)
def test_a_file_counts_for_the_day_it_came_there_unless_it_failed(shop: Shop, zone: str) -> None:
    of, day = institute(zone, expects_files_on=[1, 2, 3, 4, 5, 6, 7]), date(2026, 3, 27)
    take_in(csv([line(payment_of(shop.api.pay().id))]), of)

    def missing(at: datetime, **values: Any) -> list[date]:
        SettlementFile.objects.update(
            **{"received_at": at, "state": SettlementFile.State.DONE, "source": SettlementFile.Source.COMMAND} | values
        )
        return missing_settlements.list_days_without_file(of, day, day + 2 * DAY)

    days = [day, day + DAY, day + 2 * DAY]
    assert missing(midnight(of, days[0])) == days[1:]
    assert missing(midnight(of, days[2] + DAY) - SECOND) == days[:2]
    assert missing(midnight(of, days[0]) - SECOND) == missing(midnight(of, days[2] + DAY)) == days
    assert missing(midnight(of, days[1]), state=SettlementFile.State.FAILED) == days
    assert missing(midnight(of, days[1]), source=SettlementFile.Source.LEDGER) == days


def test_the_page_of_missing_payments_asks_as_much_for_fifty_merchants_as_for_one(shop: Shop, stranger: Shop) -> None:
    """And leaves none out: the oldest payments of all merchants are shown, whatever their names begin with."""
    of = institute()
    today = midnight(of, clock.real_now().date())
    office = signed_in(User.objects.create_superuser("root"))
    address = f"{reverse('admin:reporting_settlementrecord_changelist')}?list=missing"

    def count_statements() -> int:
        office.get(address)  # caches
        with CaptureQueriesContext(connection) as sent:
            assert office.get(address).status_code == 200
        return len(sent)

    pay(shop, today - 6 * DAY, merchantTransactionId="order-of-one")
    before = count_statements()
    Merchant.objects.bulk_create(
        Merchant(name=f"A {number:02d}", division=shop.merchant.division) for number in range(60)
    )
    pay(stranger, today - 5 * DAY, merchantTransactionId="order-behind-sixty")
    pay(shop, today - 4 * DAY, merchantTransactionId="order-of-two")
    assert count_statements() == before
    page = office.get(address).content.decode()
    places = [page.index(order) for order in ("order-of-one", "order-behind-sixty", "order-of-two")]
    assert places == sorted(places)
