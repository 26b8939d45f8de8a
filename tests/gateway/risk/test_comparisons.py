"""How rules compare: fields by their normal form, whichever side wrote it how; numbers strictly; hours half open.

Source: Part B, Risk; docs/risk.md.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.risk.evaluation import evaluate_rules
from tests.gateway.risk.test_conditions import COUNTED, a_set, rule, subject

EMAIL = "customer.email"


def holds(
    sent: dict[str, str] | None = None, *, now: datetime | None = None, amount: str = "92.00", **when: Any
) -> bool:
    more = {} if now is None else {"now": now}
    return bool(evaluate_rules(a_set(rule(**when)), subject(sent, amount, **more), COUNTED).code)


@pytest.mark.parametrize("written", ["jane@mail.example", "JANE@MAIL.EXAMPLE", "Jane@Mail.Example"])
@pytest.mark.parametrize("sent", ["jane@mail.example", "JANE@MAIL.EXAMPLE", "Jane@mail.example"])
def test_an_address_is_the_same_however_it_is_written(written: str, sent: str) -> None:
    given = {EMAIL: sent}
    assert holds(given, kind="field", field=EMAIL, **{"is": [written]})
    assert not holds(given, kind="field", field=EMAIL, **{"not": [written]})
    assert holds(given, kind="list", field=EMAIL, values=[written])
    assert not holds(given, kind="list", field=EMAIL, values=[written], outside=True)
    assert holds({"risk.parameters[at]": "x"} | given, kind="field", field=EMAIL, **{"not": ["other@mail.example"]})


@pytest.mark.parametrize(
    ("name", "written", "sent"),
    [
        ("billing.country", "DE", "DE"),
        ("billing.country", "DE", "AT"),
        ("customer.phone", "+49 (0) 89 123", "0049-89-123"),
        ("customer.ip", "::ffff:192.0.2.7", "192.0.2.7"),
    ],
)
def test_a_field_is_compared_as_lists_compare_it(name: str, written: str, sent: str) -> None:
    """Whatever a list takes for the same, ``is`` does, too, and ``not`` does not hold for it."""
    same = holds({name: sent}, kind="list", field=name, values=[written])
    assert holds({name: sent}, kind="field", field=name, **{"is": [written]}) is same
    assert holds({name: sent}, kind="field", field=name, **{"not": [written]}) is not same


@pytest.mark.parametrize(
    ("test", "of", "held"),
    [
        ("over", "12", False),
        ("over", "11.99", True),
        ("over", "12.01", False),
        ("under", "12", False),
        ("under", "12.01", True),
        ("under", "11.99", False),
        ("over", "-13", True),
        ("under", "-13", False),
    ],
)
@pytest.mark.parametrize("sent", ["12", "12.00", "012"])
def test_over_and_under_are_strict(test: str, of: str, held: bool, sent: str) -> None:
    name = "risk.parameters[items]"
    assert holds({name: sent}, kind="field", field=name, **{test: of}) is held
    assert not holds({name: "twelve"}, kind="field", field=name, **{test: of})
    assert not holds({}, kind="field", field=name, **{test: of})


@pytest.mark.parametrize(
    ("over", "under", "held"),
    [("92.00", None, False), ("91.99", None, True), (None, "92.00", False), (None, "92.01", True)],
)
def test_an_amount_exactly_at_the_limit_is_not_beyond_it(over: str | None, under: str | None, held: bool) -> None:
    limits = {name: value for name, value in (("over", over), ("under", under)) if value}
    assert holds(kind="amount", currency="EUR", **limits) is held


HOURS = [("09:00", "17:00"), ("22:00", "06:00")]


@pytest.mark.parametrize(
    ("zone", "hours", "at", "held"),
    [
        ("UTC", HOURS[0], "2026-01-07T09:00Z", True),
        ("UTC", HOURS[0], "2026-01-07T08:59Z", False),
        ("UTC", HOURS[0], "2026-01-07T16:59Z", True),
        ("UTC", HOURS[0], "2026-01-07T17:00Z", False),
        ("UTC", HOURS[1], "2026-01-07T22:00Z", True),
        ("UTC", HOURS[1], "2026-01-07T21:59Z", False),
        ("UTC", HOURS[1], "2026-01-07T05:59Z", True),
        ("UTC", HOURS[1], "2026-01-07T06:00Z", False),
        ("Asia/Tokyo", HOURS[0], "2026-01-07T00:00Z", True),
        ("Asia/Tokyo", HOURS[0], "2026-01-07T09:00Z", False),
        ("America/Los_Angeles", HOURS[0], "2026-01-07T17:00Z", True),
        ("America/Los_Angeles", HOURS[0], "2026-01-07T09:00Z", False),
        ("America/Los_Angeles", HOURS[0], "2026-01-08T00:59Z", True),
    ],
)
def test_hours_are_the_zones_own_from_the_first_to_before_the_last(
    zone: str, hours: tuple[str, str], at: str, held: bool
) -> None:
    when = {"kind": "time", "from": hours[0], "to": hours[1], "zone": zone}
    assert holds(now=datetime.fromisoformat(at), **when) is held


@pytest.mark.parametrize(
    ("zone", "days", "held"),
    [
        ("UTC", ["WED"], True),
        ("UTC", ["THU"], False),
        ("Asia/Tokyo", ["THU"], True),
        ("Asia/Tokyo", ["WED"], False),
        ("America/Los_Angeles", ["WED"], True),
        ("America/Los_Angeles", ["THU"], False),
    ],
)
def test_days_are_the_zones_own(zone: str, days: list[str], held: bool) -> None:
    """20:00 UTC on a Wednesday is Thursday in Tokyo."""
    at = datetime(2026, 1, 7, 20, tzinfo=UTC)
    assert holds(now=at, kind="time", zone=zone, days=days, **{"from": "00:00", "to": "23:59"}) is held
