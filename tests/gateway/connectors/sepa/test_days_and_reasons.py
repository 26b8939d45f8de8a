"""TARGET's calendar, the table of reasons, and what an account's settings come to."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from django.test import override_settings

from gateway.connectors.account_settings import AccountSettingError
from gateway.connectors.port import ConnectorAccount
from gateway.connectors.sepa import target_calendar
from gateway.connectors.sepa.bank_reasons import BANK_REASONS, UNLISTED_REASON, find_bank_reason
from gateway.connectors.sepa.connector import SEPA
from gateway.connectors.sepa.creditor import (
    SEPA_SETTINGS,
    is_creditor_identifier,
    parse_creditor,
)
from gateway.core import result_codes
from tests.support.sepa import SETTINGS as SHOP

CLOSED_2026 = ["2026-01-01", "2026-04-03", "2026-04-06", "2026-05-01", "2026-12-25"]
"""Days of the week on which T2 is closed (European Central Bank)."""


def test_target_is_closed_on_weekends_and_on_its_own_holidays_only() -> None:
    days = [date(2026, 1, 1) + timedelta(days=number) for number in range(365)]
    closed = [day.isoformat() for day in days if not target_calendar.is_target_day(day) and day.weekday() < 5]
    assert closed == CLOSED_2026
    assert not any(target_calendar.is_target_day(day) for day in days if day.weekday() >= 5)


@pytest.mark.parametrize(
    ("year", "sunday"),
    [
        (2000, "04-23"),
        (2008, "03-23"),
        (2019, "04-21"),
        (2024, "03-31"),
        (2025, "04-20"),
        (2026, "04-05"),
        (2038, "04-25"),
        (2049, "04-18"),
        (2076, "04-19"),
        (2099, "04-12"),
    ],
)
def test_easter_is_where_the_church_has_it(year: int, sunday: str) -> None:
    assert target_calendar.easter_sunday(year).isoformat() == f"{year}-{sunday}"


def test_days_are_counted_over_easter() -> None:
    thursday, tuesday = date(2026, 4, 2), date(2026, 4, 7)
    assert target_calendar.target_day_after(thursday, 1) == tuesday
    assert target_calendar.target_day_before(tuesday, 1) == thursday
    assert target_calendar.roll_to_target_day(date(2026, 4, 3)) == tuesday
    assert target_calendar.target_day_before(date(2026, 4, 5), 1) == thursday


def test_every_reason_has_codes_that_there_are() -> None:
    """A decline is no approval, and a return is a chargeback."""
    for row in (*BANK_REASONS.values(), UNLISTED_REASON):
        assert row.declined in result_codes.RESULT_CODES, row
        assert row.returned in result_codes.RESULT_CODES, row
        assert not result_codes.is_approved(row.declined), row
        assert not result_codes.is_pending(row.declined), row
        assert result_codes.is_chargeback(row.returned), row


@pytest.mark.parametrize("code", ["", "ZZ99", "AC4", "ac04", "<x>"])
def test_a_reason_that_is_not_listed_declines_without_one(code: str) -> None:
    assert (find_bank_reason(code).declined, find_bank_reason(code).returned) == ("800.100.100", "000.100.200")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "wanted", "due", "run"),
    [
        # Berlin is an hour ahead in winter, two in summer; the run is at 10:00 there.
        ("2026-01-05T08:59:00", None, "2026-01-06", "2026-01-05T09:00:00"),
        ("2026-01-05T09:00:00", None, "2026-01-07", "2026-01-06T09:00:00"),
        ("2026-01-09T12:00:00", None, "2026-01-13", "2026-01-12T09:00:00"),
        ("2026-04-02T09:00:00", None, "2026-04-08", "2026-04-07T08:00:00"),
        ("2026-01-05T08:00:00", "2025-12-01", "2026-01-06", "2026-01-05T09:00:00"),
        ("2026-01-05T08:00:00", "2026-01-31", "2026-02-02", "2026-01-30T09:00:00"),
        ("2026-01-05T08:00:00", "2026-04-03", "2026-04-07", "2026-04-02T08:00:00"),
    ],
)
def test_the_day_of_collection_and_its_run(now: str, wanted: str | None, due: str, run: str) -> None:
    creditor = parse_creditor(ConnectorAccount(settings=SHOP))
    day, file_at = creditor.plan(at(now), date.fromisoformat(wanted) if wanted else None)
    assert (day.isoformat(), file_at) == (due, at(run))


def test_lead_days_are_counted_in_open_days() -> None:
    creditor = parse_creditor(ConnectorAccount(settings=SHOP | {"leadDays": "5"}))
    assert creditor.plan(at("2026-01-05T08:00:00"), None)[0] == date(2026, 1, 12)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"creditorName": ""}, "creditorName"),
        ({"creditorId": "DE97ZZZ09999999999"}, "creditorId"),
        ({"formerCreditorId": "NL98ZZZ09999999999"}, "formerCreditorId"),
        ({"creditorIban": "DE00100000001234567890"}, "creditorIban"),
        ({"creditorBic": "NOBANK"}, "creditorBic"),
        ({"schema": "pain.008.001.02", "creditorBic": ""}, "creditorBic"),
        ({"delivery": "http"}, "uploadUrl"),
        ({"timeZone": "Mars/Olympus"}, "timeZone"),
    ],
)
def test_an_account_that_is_not_set_up_says_which_setting(changes: dict[str, str], named: str) -> None:
    with pytest.raises(AccountSettingError, match=named):
        parse_creditor(ConnectorAccount(settings=SHOP | changes))
    [(setting, why)] = SEPA.faults_of(SHOP | changes)
    assert setting == named
    assert why


def test_files_are_uploaded_in_clear_in_no_live_environment() -> None:
    """They hold accounts, and the upload its password."""
    upload = SHOP | {"delivery": "http", "uploadUrl": "http://bank.example/payments"}
    assert SEPA.faults_of(upload) == ()
    with override_settings(IS_LIVE=True):
        [(setting, why)] = SEPA.faults_of(upload)
        assert (setting, "https" in why) == ("uploadUrl", True)
        assert SEPA.faults_of(upload | {"uploadUrl": "https://bank.example/payments"}) == ()


@pytest.mark.parametrize(
    "ident",
    [
        "DE98ZZZ09999999999",
        "AT61ZZZ01234567890",
        "FR72ZZZ123456",
        "NL79ZZZ999999990000",
        "ES50ZZZM23456789",
        "DE98A0109999999999",
    ],
)
def test_published_creditor_identifiers_are_valid_whatever_their_business_code(ident: str) -> None:
    """EPC 262-08."""
    assert is_creditor_identifier(ident)


def test_defaults_of_settings_keep_their_own_patterns() -> None:
    for one in SEPA_SETTINGS:
        assert not one.default or re.fullmatch(one.pattern, one.default), one.name
    assert [one.name for one in SEPA_SETTINGS if one.secret] == ["uploadPassword"]


@pytest.mark.parametrize(
    ("after", "due", "final"),
    [
        ("", date(2026, 6, 8), None),
        ("1", date(2026, 6, 8), datetime(2026, 6, 9, 22, 0, tzinfo=UTC)),
        ("5", date(2026, 6, 8), datetime(2026, 6, 15, 22, 0, tzinfo=UTC)),
        ("1", date(2026, 12, 24), datetime(2026, 12, 28, 23, 0, tzinfo=UTC)),
    ],
)
def test_a_collection_is_final_when_the_last_of_its_open_days_is_over(
    after: str, due: date, final: datetime | None
) -> None:
    """By the bank's clock, in Berlin: not in the midst of the day on which it may still come back."""
    creditor = parse_creditor(ConnectorAccount(settings=SHOP | {"finalAfter": after}))
    assert creditor.final_at(due) == final
