"""A card is good until the end of its month. Source: Part A, Card account (expiryMonth, expiryYear)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.card_number import is_card_expired

STEP = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("month", "year", "ends"),
    [
        ("05", "2026", datetime(2026, 6, 1, tzinfo=UTC)),
        ("12", "2026", datetime(2027, 1, 1, tzinfo=UTC)),
        ("01", "2027", datetime(2027, 2, 1, tzinfo=UTC)),
        ("02", "2028", datetime(2028, 3, 1, tzinfo=UTC)),
    ],
)
def test_it_is_past_from_the_first_moment_of_the_next_month(month: str, year: str, ends: datetime) -> None:
    assert not is_card_expired(month, year, ends - STEP)
    assert is_card_expired(month, year, ends)


@given(st.integers(1, 12), st.integers(2020, 2060), st.integers(1, 12), st.integers(2020, 2060))
def test_months_and_years_are_compared_as_dates_are(month: int, year: int, now_month: int, now_year: int) -> None:
    now = datetime(now_year, now_month, 15, tzinfo=UTC)
    assert is_card_expired(f"{month:02}", str(year), now) == ((year, month) < (now_year, now_month))


@pytest.mark.parametrize(("month", "year"), [(None, "2020"), ("01", None), (None, None)])
def test_what_has_no_expiry_is_not_past(month: str | None, year: str | None) -> None:
    assert not is_card_expired(month, year, datetime(2099, 1, 1, tzinfo=UTC))
