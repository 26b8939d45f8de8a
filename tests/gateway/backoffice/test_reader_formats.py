"""Money and times as their reader writes them. Source: docs/decisions/0077."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone, translation

from gateway.backoffice.kit.formatting import (
    format_moment,
    format_money,
    format_typed_amount,
    read_typed_amount,
    render_moment,
)
from gateway.backoffice.kit.periods import PERIODS, find_period
from gateway.backoffice.payments.chain_words import CHAIN_WORDS
from gateway.backoffice.payments.payment_filters import fix_filter_times, parse_payment_filters
from gateway.payments.chain_states import ChainStatus

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(("language", "shown"), [("en", "2,880,833.37 EUR"), ("de", "2.880.833,37 EUR")])
def test_an_amount_has_the_readers_signs_and_groups(language: str, shown: str) -> None:
    with translation.override(language):
        assert format_money(Decimal("2880833.37"), "EUR") == shown
        assert read_typed_amount(shown.removesuffix(" EUR")) == "2880833.37"
        assert read_typed_amount(format_typed_amount(Decimal("1234.5"))) == "1234.50"


def test_groups_are_read_by_the_readers_own_sign_alone() -> None:
    with translation.override("de"):
        assert read_typed_amount("1.000") == "1000"
        assert read_typed_amount("15,00") == "15.00"
    with translation.override("en"):
        assert read_typed_amount("1.000") == "1.000"
        assert read_typed_amount("1,000") == "1000"
        assert read_typed_amount("15,00") == "15.00"


def test_parts_of_a_cent_are_shown() -> None:
    with translation.override("en"):
        assert format_money(Decimal("0.0125"), "EUR") == "0.0125 EUR"


def test_a_time_is_in_the_readers_zone_and_tells_utc() -> None:
    at = datetime(2026, 7, 1, 12, tzinfo=UTC)
    with timezone.override(BERLIN):
        assert format_moment(at) == "2026-07-01 14:00:00 CEST"
        assert 'title="2026-07-01 12:00:00 UTC"' in render_moment(at)
    assert format_moment(at) == "2026-07-01 12:00:00 UTC"


def test_days_are_the_readers_and_are_fixed_for_later_work() -> None:
    with timezone.override(BERLIN):
        found, wrong = parse_payment_filters({"from": "2026-07-01", "to": "2026-07-01"})
        fixed = fix_filter_times({"from": "2026-07-01", "to": "2026-07-01", "state": "refunded"})
    assert not wrong
    assert (found.since, found.until) == (datetime(2026, 6, 30, 22, tzinfo=UTC), datetime(2026, 7, 1, 22, tzinfo=UTC))
    assert fixed == {"state": "refunded", "from": "2026-06-30T22:00Z", "to": "2026-07-01T22:00Z"}
    assert parse_payment_filters(fixed)[0].since == found.since
    with timezone.override(BERLIN):
        fixed = fix_filter_times({"real_from": "2026-07-01T10:00", "real_to": "2026-07-01"})
    assert fixed == {"real_from": "2026-07-01T08:00Z", "real_to": "2026-07-01T22:00Z"}


@pytest.mark.parametrize("name", PERIODS)
def test_every_period_begins_before_it_ends(name: str) -> None:
    since, until = find_period(name)
    assert since < (until or datetime.now(UTC))


def test_every_state_of_a_chain_has_words() -> None:
    assert set(CHAIN_WORDS) == set(ChainStatus)
