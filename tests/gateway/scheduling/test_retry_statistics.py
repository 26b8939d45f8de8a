"""Outcomes of retries: which cells a counted row is in, and which issuers have cells of their own. Mostly pure.

Source: docs/decisions/0128.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError

from gateway.core import clock
from gateway.models import Channel, Payment
from gateway.scheduling import retry_statistics
from gateway.scheduling.models import RetryRate
from gateway.scheduling.retry_rates import HourOutcome, RateCell, RateCount, RetryOutcome, RetryRates, name_retry_issuer
from gateway.scheduling.retry_statistics import COUNT_INTERVAL, TIMER, PastAttempts, PastRetry, speaks_of_hour
from tests.support.fixtures import Shop

NO_MONEY, NEVER, APPROVED = "800.100.155", "800.100.159", "000.100.110"
FIRST, SECOND = "510001", "510002"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[RetryOutcome], list[HourOutcome]]]:
    """What was given to be counted."""
    given: list[tuple[list[RetryOutcome], list[HourOutcome]]] = []

    def count(retries: list[RetryOutcome], hours: list[HourOutcome]) -> RetryRates:
        given.append((retries, hours))
        return RetryRates({})

    monkeypatch.setattr(retry_statistics, "count_rates", count)
    return given


@pytest.mark.parametrize(
    ("code", "approved", "speaks"),
    [
        ("000.100.110", True, True),
        (NO_MONEY, True, True),
        (NO_MONEY, False, False),
        (NEVER, False, False),
    ],
)
def test_a_lack_of_money_and_a_final_no_say_nothing_of_the_hour(code: str, approved: bool, speaks: bool) -> None:
    assert speaks_of_hour(code, approved=approved) is speaks


def test_each_counted_row_is_a_retry_or_an_attempt_with_all_that_was_counted(
    counted: list[tuple[list[RetryOutcome], list[HourOutcome]]],
) -> None:
    retry_statistics.rates_from_rows(
        [
            ("retry", FIRST, NO_MONEY, "02", 17, 3, 9, 40, 11),
            ("attempt", FIRST, "000.100.110", "", 0, 0, 14, 60, 60),
            ("attempt", FIRST, NO_MONEY, "", 0, 0, 15, 50, 0),
            ("attempt", FIRST, NEVER, "", 0, 0, 16, 30, 0),
        ]
    )
    ((retries, hours),) = counted
    issuer = name_retry_issuer(FIRST)
    assert issuer
    assert retries == [
        RetryOutcome(code=NO_MONEY, advice="02", issuer=issuer, day=17, weekday=3, hour=9, tries=40, approved=11)
    ]
    assert hours == [HourOutcome(issuer=issuer, hour=14, tries=60, approved=60)]


def test_the_issuers_with_the_most_payments_have_cells_of_their_own(
    counted: list[tuple[list[RetryOutcome], list[HourOutcome]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry_statistics, "MAX_COUNTED_ISSUERS", 1)
    rows: list[tuple[Any, ...]] = [
        ("retry", FIRST, NO_MONEY, "", 1, 1, 1, 30, 1),
        ("attempt", FIRST, "000.100.110", "", 0, 0, 2, 30, 30),
        ("retry", SECOND, NO_MONEY, "", 1, 1, 3, 58, 1),
        ("attempt", SECOND, "000.100.110", "", 0, 0, 4, 1, 1),
    ]
    retry_statistics.rates_from_rows(rows)
    rows[3] = (*rows[3][:7], 3, 3)
    retry_statistics.rates_from_rows(rows)
    own = [[one.issuer for one in (*retries, *hours)] for retries, hours in counted]
    first, second = name_retry_issuer(FIRST), name_retry_issuer(SECOND)
    assert own == [[first, "", first, ""], ["", second, "", second]]


def test_the_past_of_a_channel_is_counted_one_by_one(
    counted: list[tuple[list[RetryOutcome], list[HourOutcome]]],
) -> None:
    at = datetime(2030, 3, 17, 9, 30, tzinfo=UTC)
    retries = [
        PastRetry(
            payment=UUID(int=number), issuer="bank", code=NO_MONEY, advice="02", declined_at=at - timedelta(days=3),
            at=at, approved=approved,
        )
        for number, approved in enumerate((True, False))
    ]  # fmt: skip
    attempts = [PastAttempts(day=date(2030, 3, 1), issuer="other", hour=22, tries=8, approved=5)]
    retry_statistics.count_past_charges(retries, attempts)
    ((made, hours),) = counted
    expected = {"code": NO_MONEY, "advice": "02", "issuer": "bank", "day": 17, "weekday": 7, "hour": 9, "tries": 1}
    assert made == [RetryOutcome(**expected, approved=1), RetryOutcome(**expected, approved=0)]
    assert hours == [HourOutcome(issuer="other", hour=22, tries=8, approved=5)]


# --- stored cells -------------------------------------------------------------------------------------------------


def a_cell(**more: Any) -> RetryRate:
    values = {
        "cell": RateCell.RATE, "code": NO_MONEY, "advice": "02", "issuer": "", "value": 3, "tries": 9, "approved": 4,
        "expected": 2.5, "counted_at": datetime(2030, 1, 1, tzinfo=UTC),
    }  # fmt: skip
    return RetryRate.objects.create(**values | more)


@pytest.mark.django_db
def test_the_rates_of_some_issuers_are_read_with_those_of_all_and_of_no_other() -> None:
    a_cell()
    a_cell(issuer="bank", tries=7, approved=6, expected=5.5)
    a_cell(issuer="another", tries=1)
    found = retry_statistics.load_rates(["bank"])
    assert found.rates.counts == {
        (RateCell.RATE, NO_MONEY, "02", "", 3): RateCount(tries=9, approved=4, expected=2.5),
        (RateCell.RATE, NO_MONEY, "02", "bank", 3): RateCount(tries=7, approved=6, expected=5.5),
    }
    assert found.counted_at == datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.django_db
def test_rates_are_as_old_as_the_oldest_of_them_and_without_any_were_never_counted() -> None:
    assert retry_statistics.load_rates([]).counted_at is None
    a_cell(value=1, counted_at=datetime(2030, 1, 2, tzinfo=UTC))
    a_cell(value=2, counted_at=datetime(2030, 1, 1, tzinfo=UTC))
    a_cell(value=4, counted_at=datetime(2030, 1, 3, tzinfo=UTC))
    assert retry_statistics.load_rates([]).counted_at == datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.django_db
def test_a_count_replaces_all_cells_and_one_of_nothing_is_kept_as_such() -> None:
    a_cell()
    now = clock.real_now()
    assert retry_statistics.count_outcomes(now) == 1
    row = RetryRate.objects.get()
    assert (row.cell, row.code, row.advice, row.issuer, row.value, row.tries, row.approved, row.expected) == (
        RateCell.RATE, "", "", "", 0, 0, 0, 0,
    )  # fmt: skip
    assert row.counted_at == now


@pytest.mark.django_db
def test_a_count_is_stored_cell_by_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {
        (RateCell.HOUR, NO_MONEY, "02", "bank", 9): RateCount(tries=8, approved=3, expected=1.5),
        (RateCell.DAY, NEVER, "03", "", 17): RateCount(tries=6, approved=2, expected=0.5),
    }
    monkeypatch.setattr(retry_statistics, "rates_from_rows", lambda rows: RetryRates(counts))
    assert retry_statistics.count_outcomes(clock.real_now()) == 2
    assert retry_statistics.load_rates(["bank"]).rates.counts == counts


# --- when it is counted --------------------------------------------------------------------------------------------

NOW = datetime(2030, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch, shop: Shop) -> list[datetime]:
    """When outcomes were counted, of a channel whose retries they time."""
    monkeypatch.setattr(clock, "real_now", lambda: NOW)
    Channel.objects.filter(pk=shop.channel.pk).update(retry_timing=Channel.RetryTiming.OUTCOMES)
    found: list[datetime] = []

    def count(now: datetime) -> int:
        found.append(now)
        return 7

    monkeypatch.setattr(retry_statistics, "count_outcomes", count)
    return found


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ago", "due"),
    [
        (None, True),
        (COUNT_INTERVAL + timedelta(microseconds=1), True),
        (COUNT_INTERVAL, True),
        (COUNT_INTERVAL - timedelta(microseconds=1), False),
        (timedelta(0), False),
    ],
)
def test_outcomes_are_counted_once_a_day(counts: list[datetime], ago: timedelta | None, due: bool) -> None:
    if ago is not None:
        a_cell(counted_at=NOW - ago)
        a_cell(value=5, counted_at=NOW - 9 * COUNT_INTERVAL)
    assert TIMER.run() == (7 if due else 0)
    assert counts == ([NOW] if due else [])


@pytest.mark.django_db
@pytest.mark.parametrize("timing", [one for one in Channel.RetryTiming.values if one != Channel.RetryTiming.OUTCOMES])
def test_nothing_is_counted_where_no_channel_asks_for_it(counts: list[datetime], timing: str) -> None:
    Channel.objects.update(retry_timing=timing)
    assert TIMER.run() == 0
    assert counts == []


WIDEST = {"cell": RateCell.RATE, "code": "", "advice": "", "issuer": "", "value": 0}


@pytest.fixture
def too_long(counts: list[datetime], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: datetime) -> int:
        raise OperationalError("canceling statement due to statement timeout")

    monkeypatch.setattr(retry_statistics, "count_outcomes", fail)


@pytest.mark.django_db
def test_a_count_that_took_too_long_leaves_the_cells_before_for_another_day(too_long: None) -> None:
    before = NOW - 2 * COUNT_INTERVAL
    widest = a_cell(**WIDEST, counted_at=before, tries=90, approved=40, expected=50.5)
    others = [
        a_cell(**{**WIDEST, **changed}, counted_at=before)
        for changed in ({"cell": RateCell.HOUR}, {"code": NO_MONEY}, {"advice": "02"}, {"issuer": "bank"}, {"value": 1})
    ]
    assert TIMER.run() == 0
    found = RetryRate.objects.in_bulk()
    assert found.keys() == {widest.pk, *(one.pk for one in others)}
    assert {one.counted_at for one in found.values() if one.pk != widest.pk} == {before}
    kept = found[widest.pk]
    assert (kept.counted_at, kept.tries, kept.approved, kept.expected) == (NOW, 90, 40, 50.5)
    assert retry_statistics._count_when_due() == 0


@pytest.mark.django_db
def test_a_first_count_that_took_too_long_is_not_tried_again_at_once(too_long: None) -> None:
    assert TIMER.run() == 0
    assert RetryRate.objects.values(*WIDEST, "counted_at", "tries", "approved", "expected").get() == {
        **WIDEST, "counted_at": NOW, "tries": 0, "approved": 0, "expected": 0.0,
    }  # fmt: skip


# --- what a statement counts ---------------------------------------------------------------------------------------

DECLINED_AT, RETRIED_AT = datetime(2030, 3, 5, 9, 30, tzinfo=UTC), datetime(2030, 3, 7, 22, 45, tzinfo=UTC)


def charge(shop: Shop, at: datetime, code: str, *, advice: str = "", order: str = "o-1", **values: Any) -> UUID:
    """A merchant's charge of an order with the card of FIRST."""
    row = Payment.objects.get(pk=shop.api.pay().id)
    answer = {**row.answer, "card": {"bin": FIRST}, "resultDetails": {"MerchantAdviceCode": advice} if advice else {}}
    fields = {
        "created_at": at, "status": "APPROVED" if code == APPROVED else "DECLINED", "merchant_transaction_id": order,
        "result_code": code, "request": {"standingInstruction": {"source": "MIT"}}, "connector": "stub",
        "answer": answer,
    }  # fmt: skip
    Payment.objects.filter(pk=row.pk).update(**fields | values)
    return row.pk


def read_march(shop: Shop) -> retry_statistics.PastCharges:
    since, until = datetime(2030, 3, 1, tzinfo=UTC), datetime(2030, 4, 1, tzinfo=UTC)
    return retry_statistics.read_past_charges(shop.merchant.pk, shop.channel.pk, since, until, with_internal=True)


@pytest.mark.django_db
def test_a_retry_of_the_past_is_read_with_its_decline_and_its_answer(shop: Shop) -> None:
    charge(shop, DECLINED_AT, NO_MONEY, advice="02")
    retry = charge(shop, RETRIED_AT, APPROVED)
    never = charge(shop, RETRIED_AT + timedelta(hours=1), NEVER, order="o-2")
    again = charge(shop, RETRIED_AT + timedelta(days=1), "800.100.152", order="o-2")
    issuer = name_retry_issuer(FIRST)
    found = read_march(shop)
    assert found.retries == [
        PastRetry(
            payment=again, issuer=issuer, code=NEVER, advice="", declined_at=RETRIED_AT + timedelta(hours=1),
            at=RETRIED_AT + timedelta(days=1), approved=False,
        ),
        PastRetry(
            payment=retry, issuer=issuer, code=NO_MONEY, advice="02", declined_at=DECLINED_AT, at=RETRIED_AT,
            approved=True,
        ),
    ], never  # fmt: skip
    assert sorted(found.attempts, key=lambda one: one.day) == [
        PastAttempts(day=date(2030, 3, 7), issuer=issuer, hour=22, tries=1, approved=1),
        PastAttempts(day=date(2030, 3, 8), issuer=issuer, hour=22, tries=1, approved=0),
    ]


@pytest.mark.django_db
def test_the_newest_of_the_past_are_read_and_no_more_than_a_trial_looks_at(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge(shop, DECLINED_AT, NO_MONEY)
    made = [charge(shop, DECLINED_AT + timedelta(days=number), NO_MONEY) for number in (1, 3, 2)]
    assert [one.payment for one in read_march(shop).retries] == [made[1], made[2], made[0]]
    monkeypatch.setattr(retry_statistics, "MAX_PAST_RETRIES", 2)
    assert [one.payment for one in read_march(shop).retries] == [made[1], made[2]]
    monkeypatch.setattr(retry_statistics, "MAX_RATED_PAYMENTS", 2)
    assert [one.payment for one in read_march(shop).retries] == [made[1]]


@pytest.mark.django_db
def test_outcomes_are_counted_by_decline_issuer_day_and_hour(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    charge(shop, DECLINED_AT, NO_MONEY, advice="02")
    charge(shop, RETRIED_AT, APPROVED)
    rows: list[tuple[Any, ...]] = []
    monkeypatch.setattr(retry_statistics, "rates_from_rows", lambda found: rows.extend(found) or RetryRates({}))
    retry_statistics.count_outcomes(RETRIED_AT + timedelta(days=1))
    assert sorted(rows, key=str) == [
        ("attempt", FIRST, APPROVED, "", 0, 0, 22, 1, 1),
        ("attempt", FIRST, NO_MONEY, "", 0, 0, 9, 1, 0),
        ("retry", FIRST, NO_MONEY, "02", 7, 4, 22, 1, 1),
    ]
    rows.clear()
    monkeypatch.setattr(retry_statistics, "MAX_RATED_PAYMENTS", 1)
    retry_statistics.count_outcomes(RETRIED_AT + timedelta(days=1))
    assert rows == [("attempt", FIRST, APPROVED, "", 0, 0, 22, 1, 1)], "the newest"


@pytest.mark.django_db
@pytest.mark.parametrize("work", ["a count", "a trial"])
def test_each_statement_may_take_a_minute(monkeypatch: pytest.MonkeyPatch, shop: Shop, work: str) -> None:
    seen: list[str] = []
    run = retry_statistics.execute_sql

    def execute(sql: str, values: Any) -> Any:
        seen.append(run("SELECT current_setting('statement_timeout')", {})[0][0])
        return run(sql, values)

    monkeypatch.setattr(retry_statistics, "execute_sql", execute)
    if work == "a count":
        retry_statistics.count_outcomes(NOW)
    else:
        read_march(shop)
    assert set(seen) == {"1min"}
    assert (TIMER.name, TIMER.every_s) == ("retry outcomes", 300.0)
