"""The table of how long authorizations are valid, and its copy in docs/follow-ups.md. Source: docs/decisions/0069."""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from gateway.core.authorization_validity import (
    AUTHORIZATION_VALIDITIES,
    ESTIMATED_AUTHORIZATION,
    EVERY_OTHER_BRAND,
    FINAL_AUTHORIZATION,
    AuthorizationValidity,
    compute_authorization_end,
    resolve_authorization_validity,
)
from gateway.core.brands import PAYMENT_BRANDS

GUIDE = Path(__file__).parents[2] / "docs" / "follow-ups.md"
BLOCK = re.compile(r"(<!-- authorization validity: .*?-->\n).*?(<!-- end of the validity -->)", re.DOTALL)


def write_row(row: AuthorizationValidity) -> str:
    categories = ", ".join(f"{low}" if low == high else f"{low} to {high}" for low, high in row.mccs)
    which = [
        row.kind,
        f"initiator {row.initiator}" if row.initiator else "",
        f"merchant.country {row.country}" if row.country else "",
        f"merchant.mcc {categories}" if categories else "",
    ]
    brands = " ".join(f"`{brand}`" for brand in row.brands) or "every other card"
    return f"| {brands} | {', '.join(filter(None, which)) or 'any'} | {row.days} |"


def test_the_guide_has_the_table() -> None:
    made = "\n".join(
        ["| brand | which | days |", "|---|---|---|", *(write_row(row) for row in AUTHORIZATION_VALIDITIES)]
    )
    text = GUIDE.read_text()
    wanted = BLOCK.sub(lambda found: f"{found[1]}{made}\n{found[2]}", text)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        GUIDE.write_text(wanted)
        return
    assert text == wanted


def test_each_row_says_where_it_is_from_and_can_be_reached() -> None:
    assert all(row.source and row.days > 0 for row in AUTHORIZATION_VALIDITIES)
    assert {brand for row in AUTHORIZATION_VALIDITIES for brand in row.brands} <= set(PAYMENT_BRANDS)
    assert not AUTHORIZATION_VALIDITIES[-1].brands


@pytest.mark.parametrize(
    "brand, method, kind, country, days",
    [
        ("TROY", "CC", ESTIMATED_AUTHORIZATION, "", 7),
        ("VISADEBIT", "DC", FINAL_AUTHORIZATION, "", 10),
        ("MASTER", "CC", FINAL_AUTHORIZATION, "IN", 4),
        ("MASTER", "CC", ESTIMATED_AUTHORIZATION, "IN", 30),
        ("MAESTRO", "DC", ESTIMATED_AUTHORIZATION, "", 7),
        ("WALLET1", "WA", ESTIMATED_AUTHORIZATION, "", 7),
        ("WEBWALLET", "VA", ESTIMATED_AUTHORIZATION, "", None),
    ],
)
def test_the_first_row_that_fits_holds(brand: str, method: str, kind: str, country: str, days: int | None) -> None:
    found = resolve_authorization_validity(brand, method, {}, kind=kind, country=country)
    assert found == (timedelta(days=days) if days is not None else None)


@pytest.mark.parametrize(
    ("mcc", "days"),
    [
        *[(code, 30) for code in ("3351", "3500", "3501", "3999", "4411", "7011", "7512", "7513")],
        *[(code, 10) for code in ("3350", "4000", "4410", "4412", "7010", "7012", "7511", "7514", "", "x", "²")],
    ],
)
def test_the_ranges_of_travel_end_with_their_last_code(mcc: str, days: int) -> None:
    found = resolve_authorization_validity("VISA", "CC", {}, kind=ESTIMATED_AUTHORIZATION, mcc=mcc)
    assert found == timedelta(days=days)


@pytest.mark.parametrize(("country", "days"), [("IN", 4), ("DE", 7), ("", 7)])
def test_a_row_of_a_country_is_for_that_country_alone(country: str, days: int) -> None:
    found = resolve_authorization_validity("MASTER", "CC", {}, kind=FINAL_AUTHORIZATION, country=country)
    assert found == timedelta(days=days)


def test_what_a_channel_sets_for_a_brand_goes_before_what_it_sets_for_every_other() -> None:
    own: dict[str, int | None] = {EVERY_OTHER_BRAND: 3, "VISA": 9, "AMEX": None}
    found = [
        resolve_authorization_validity(brand, "CC", own, kind=FINAL_AUTHORIZATION) for brand in ("VISA", "AMEX", "JCB")
    ]
    assert found == [timedelta(days=9), None, timedelta(days=3)]


@pytest.mark.parametrize(
    ("zone", "at", "end"),
    [
        ("", "2026-03-27T23:30:00+00:00", "2026-03-30T23:30:00+00:00"),
        ("UTC", "2026-03-27T23:30:00+00:00", "2026-03-31T00:00:00+00:00"),
        ("UTC", "2026-03-27T00:00:00+00:00", "2026-03-31T00:00:00+00:00"),
        ("Europe/Berlin", "2026-03-27T22:59:59+00:00", "2026-03-30T22:00:00+00:00"),  # summer time began meanwhile
        ("Europe/Berlin", "2026-03-27T23:00:00+00:00", "2026-03-31T22:00:00+00:00"),  # there it is the 28th
        ("America/Los_Angeles", "2026-03-27T03:00:00+00:00", "2026-03-30T07:00:00+00:00"),
    ],
)
def test_an_acquirer_that_counts_calendar_days_ends_with_the_last_of_them_in_its_zone(
    zone: str, at: str, end: str
) -> None:
    """docs/decisions/0155."""
    found = compute_authorization_end(datetime.fromisoformat(at), timedelta(days=3), zone)
    assert found == datetime.fromisoformat(end)
