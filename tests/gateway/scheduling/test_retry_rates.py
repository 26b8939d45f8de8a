"""Rates of retries: cells are drawn towards wider ones, and the best moment is chosen. Source: docs/decisions/0128."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.scheduling import retry_rates
from gateway.scheduling.retry_rates import (
    RATE_PRIOR,
    CellKey,
    HourOutcome,
    RateCell,
    RetryOutcome,
    RetryRates,
    count_rates,
    find_wider_cell,
    name_retry_issuer,
)
from tests.support.bin_files import write_bin_file

NO_MONEY, NO_REASON = "800.100.155", "800.100.152"
BANK, SMALL = "Alpine Test Savings", "Bank of three payments"
MONDAY = datetime(2035, 1, 15, 3, 20, tzinfo=UTC)


def retried(tries: int, approved: int, *, code: str = NO_MONEY, issuer: str = BANK, day: int = 15, hour: int = 3,
            weekday: int = 1, advice: str = "02") -> RetryOutcome:  # fmt: skip
    return RetryOutcome(
        code=code, advice=advice, issuer=issuer, day=day, weekday=weekday, hour=hour, tries=tries, approved=approved
    )


def chance(rates: RetryRates, at: datetime, *, code: str = NO_MONEY, issuer: str = BANK) -> float:
    return rates.estimate(code, "02", issuer, at).chance


def test_a_cell_with_few_outcomes_stays_near_the_wider_one() -> None:
    rates = count_rates([retried(200, 100), retried(2, 2, issuer=SMALL)], [])
    key = (RateCell.RATE, NO_MONEY, "02", SMALL, 0)
    above = rates.resolve_figure((RateCell.RATE, NO_MONEY, "02", "", 0))
    assert rates.resolve_figure(key) == pytest.approx((2 + RATE_PRIOR * above) / (2 + RATE_PRIOR))
    assert above < rates.resolve_figure(key) < 0.7
    assert rates.resolve_figure((RateCell.RATE, NO_MONEY, "02", "never seen", 0)) == above


def test_every_cell_has_a_way_up_to_the_widest() -> None:
    steps = [(RateCell.RATE, NO_MONEY, "02", BANK, 0)]
    while (wider := find_wider_cell(steps[-1])) is not None:
        steps.append(wider)
    assert [step[1:4] for step in steps] == [
        (NO_MONEY, "02", BANK),
        (NO_MONEY, "02", ""),
        (NO_MONEY, "", ""),
        ("",) * 3,
    ]
    assert find_wider_cell((RateCell.DAY, NO_MONEY, "", BANK, 4)) == (RateCell.DAY, NO_MONEY, "", "", 4)
    assert find_wider_cell((RateCell.DAY, NO_MONEY, "", "", 4)) is None
    assert find_wider_cell((RateCell.HOUR, "", "", BANK, 4)) == (RateCell.HOUR, "", "", "", 4)


def test_a_retry_for_a_lack_of_money_waits_for_the_payday() -> None:
    days = [retried(30, 2, day=day) for day in (12, 13, 14, 16, 17, 18, 19)]
    rates = count_rates([*days, retried(30, 28, day=20), retried(30, 28, day=21)], [])
    found = rates.choose_moment(NO_MONEY, "02", BANK, MONDAY, MONDAY + timedelta(days=10))
    assert found is not None
    assert found.at == datetime(2035, 1, 20, 0, 20, tzinfo=UTC)
    assert found.chance > 0.6 > 0.3 > chance(rates, MONDAY + timedelta(days=1))


def test_a_retry_avoids_the_hours_in_which_its_bank_is_away() -> None:
    """Attempts of any kind know the hours at which no retry was made yet."""
    hours = [HourOutcome(issuer=BANK, hour=hour, tries=100, approved=20 if hour == 3 else 95) for hour in range(24)]
    rates = count_rates([retried(100, 20, code=NO_REASON)], hours)
    found = rates.choose_moment(NO_REASON, "02", BANK, MONDAY, MONDAY + timedelta(days=3))
    assert found is not None
    assert found.at == MONDAY + timedelta(hours=1)
    assert found.chance > 0.8
    assert chance(rates, MONDAY, code=NO_REASON) < 0.25


def test_days_are_not_blamed_for_the_hours_of_their_retries() -> None:
    hours = [HourOutcome(issuer=BANK, hour=hour, tries=1000, approved=200 if hour == 3 else 900) for hour in range(24)]
    rates = count_rates(
        [retried(200, 44, code=NO_REASON, day=5), retried(200, 198, code=NO_REASON, day=6, hour=9)], hours
    )
    of_day = [rates.resolve_figure((RateCell.DAY, NO_REASON, "", BANK, day)) for day in (5, 6)]
    assert of_day == pytest.approx([1, 1], abs=0.1)


def test_of_moments_that_are_as_good_the_first_is_taken() -> None:
    rates = count_rates([retried(100, 60)], [])
    found = rates.choose_moment(NO_MONEY, "02", SMALL, MONDAY + timedelta(hours=1), MONDAY + timedelta(days=10))
    assert found is not None
    assert found.at in (MONDAY + timedelta(hours=1), MONDAY + timedelta(days=1) - timedelta(hours=3, minutes=20))
    assert rates.choose_moment(NO_MONEY, "02", BANK, MONDAY, MONDAY) is None


@pytest.mark.parametrize(("chances", "chosen"), [((0.25, 0.5, 0.75), 1), ((0.125, 0.375, 0.75), 2), ((0.5, 0.5), 0)])
def test_what_differs_by_the_margin_and_no_more_is_as_good(
    monkeypatch: pytest.MonkeyPatch, chances: tuple[float, ...], chosen: int
) -> None:
    rates = count_rates([retried(100, 60)], [])
    monkeypatch.setattr(retry_rates, "NEAR_CHANCE", 0.25)
    monkeypatch.setattr(
        RetryRates, "_chance", lambda self, code, advice, issuer, at: chances[(at - MONDAY) // timedelta(hours=1)]
    )
    found = rates.choose_moment(NO_MONEY, "02", BANK, MONDAY, MONDAY + timedelta(hours=len(chances)))
    assert found is not None
    assert found.at == MONDAY + timedelta(hours=chosen)


def test_too_few_retries_after_a_decline_choose_nothing() -> None:
    rates = count_rates([retried(retry_rates.MIN_LEARNED_RETRIES - 1, 20), retried(500, 9, code=NO_REASON)], [])
    assert (rates.knows(NO_MONEY), rates.knows(NO_REASON), rates.knows("800.100.176")) == (False, True, False)


def test_a_chance_is_never_certain_and_its_figures_make_it() -> None:
    rates = count_rates([retried(400, 400)], [HourOutcome(issuer=BANK, hour=3, tries=10, approved=10)])
    found = rates.estimate(NO_MONEY, "02", BANK, MONDAY)
    assert found.chance == retry_rates.MAX_CHANCE
    assert [(one.cell, one.value, one.tries) for one in found.factors] == [
        (RateCell.RATE, 0, 400), (RateCell.DAY, 15, 400), (RateCell.WEEKDAY, 1, 400), (RateCell.HOUR, 3, 10),
    ]  # fmt: skip


def test_an_issuer_is_its_bank_or_six_digits() -> None:
    assert [name_retry_issuer(text) for text in ("400012", "999999", "")] == [BANK, "999999", ""]


def test_an_issuer_whose_bank_the_table_does_not_name_is_its_six_digits(tmp_path: Path) -> None:
    """Else all such cards, of whichever bank, would be counted as one."""
    with write_bin_file(tmp_path, "499997\t\t\tDE\t\t\t\t", "499998\t\t\tFR\t\t\t\t"):
        assert [name_retry_issuer(text) for text in ("499997", "499998")] == ["499997", "499998"]


R, D, W, H = RateCell.RATE, RateCell.DAY, RateCell.WEEKDAY, RateCell.HOUR


@pytest.mark.parametrize(
    ("key", "wider"),
    [
        ((R, NO_MONEY, "02", BANK, 0), (R, NO_MONEY, "02", "", 0)),
        ((R, NO_MONEY, "02", "", 0), (R, NO_MONEY, "", "", 0)),
        ((R, NO_MONEY, "", BANK, 0), (R, NO_MONEY, "", "", 0)),
        ((R, NO_MONEY, "", "", 0), (R, "", "", "", 0)),
        ((R, "", "", "", 0), None),
        *(((cell, NO_MONEY, "", BANK, 3), (cell, NO_MONEY, "", "", 3)) for cell in (D, W, H)),
        *(((cell, NO_MONEY, "", "", 3), None) for cell in (D, W, H)),
        *(((cell, NO_MONEY, "02", "", 3), None) for cell in (D, W, H)),
    ],
)
def test_the_wider_cell_leaves_the_issuer_out_then_the_advice_then_the_code(
    key: CellKey, wider: CellKey | None
) -> None:
    assert find_wider_cell(key) == wider


def test_an_hours_expectation_is_its_issuers_rate_of_all_hours() -> None:
    """In its own cell and in that of all issuers."""
    given = [
        HourOutcome(issuer=BANK, hour=3, tries=10, approved=8),
        HourOutcome(issuer=BANK, hour=4, tries=30, approved=12),
        HourOutcome(issuer=SMALL, hour=3, tries=5, approved=0),
        HourOutcome(issuer=SMALL, hour=3, tries=0, approved=0),
        HourOutcome(issuer="never tried", hour=7, tries=0, approved=0),
    ]
    counts = count_rates([], given).counts
    assert {(key[3], key[4]): (one.tries, one.approved, one.expected) for key, one in counts.items()} == {
        (BANK, 3): (10, 8, 5.0), (BANK, 4): (30, 12, 15.0), (SMALL, 3): (5, 0, 0.0), ("", 3): (15, 8, 5.0),
        ("", 4): (30, 12, 15.0), ("never tried", 7): (0, 0, 0.0), ("", 7): (0, 0, 0.0),
    }  # fmt: skip


def test_a_retrys_expectation_is_what_the_cells_before_it_let_expect() -> None:
    """Without hours their ratio is one: a rate expects every try, a day the rate, a day of the week both."""
    given = [retried(40, 30, day=15, weekday=1), retried(60, 10, day=16, weekday=2)]
    rates = count_rates(given, [])
    rate = rates.resolve_figure((R, NO_MONEY, "02", BANK, 0))
    day = rates.resolve_figure((D, NO_MONEY, "", BANK, 15))
    assert rates.counts[R, NO_MONEY, "02", BANK, 0].expected == 100.0
    for issuer in ("", BANK):
        assert rates.counts[D, NO_MONEY, "", issuer, 15].expected == pytest.approx(40 * rate)
        assert rates.counts[W, NO_MONEY, "", issuer, 1].expected == pytest.approx(40 * rate * day)
        assert rates.counts[W, NO_MONEY, "", issuer, 2].tries == 60
