"""Outcomes of retries: which cells a counted row is in, and which issuers have cells of their own. Mostly pure.

Source: docs/decisions/0128.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.core import clock
from gateway.scheduling import retry_statistics
from gateway.scheduling.models import RetryRate
from gateway.scheduling.retry_rates import HourOutcome, RateCell, RateCount, RetryOutcome, RetryRates, name_retry_issuer
from gateway.scheduling.retry_statistics import PastAttempts, PastRetry, speaks_of_hour

NO_MONEY, NEVER = "800.100.155", "800.100.159"
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
