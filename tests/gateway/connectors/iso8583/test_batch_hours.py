"""When a terminal's next batch is sent: its own hour, in every zone. Source: docs/decisions/0040."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.connectors.iso8583.terminal import parse_terminal
from gateway.connectors.port import ConnectorAccount

ZONES = ("UTC", "America/Los_Angeles", "Asia/Tokyo", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Pago_Pago")


def next_batch(zone: str, at: str, now: datetime) -> datetime:
    settings = {"host": "h", "port": "1", "terminal": "T1", "time_zone": zone, "batch_at": at}
    return parse_terminal(ConnectorAccount(settings=settings)).next_batch(now)


@pytest.mark.parametrize(
    ("zone", "now", "at"),
    [
        # west of Greenwich it is still yesterday there when a day begins here
        ("America/Los_Angeles", "2026-01-06T03:00:00Z", "2026-01-06T06:30:00Z"),
        ("America/Los_Angeles", "2026-01-06T06:29:59Z", "2026-01-06T06:30:00Z"),
        ("America/Los_Angeles", "2026-01-06T06:30:00Z", "2026-01-07T06:30:00Z"),
        ("Asia/Tokyo", "2026-01-05T13:29:59Z", "2026-01-05T13:30:00Z"),
        ("Asia/Tokyo", "2026-01-05T16:00:00Z", "2026-01-06T13:30:00Z"),
        ("Pacific/Pago_Pago", "2026-01-06T09:00:00Z", "2026-01-06T09:30:00Z"),
    ],
)
def test_the_next_batch_is_the_next_time_the_hour_comes_there(zone: str, now: str, at: str) -> None:
    assert next_batch(zone, "22:30", datetime.fromisoformat(now)) == datetime.fromisoformat(at)


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(2025, 1, 1), datetime(2028, 1, 1)),
    st.times(time(5), time(23, 59)).map(lambda one: one.replace(second=0, microsecond=0)),
)
def test_it_comes_within_a_day_and_never_now(zone: str, now: datetime, hour: time) -> None:
    """25 hours where clocks are put back; no change of the clocks is as late as five o'clock."""
    at = now.replace(tzinfo=UTC)
    found = next_batch(zone, f"{hour:%H:%M}", at)
    assert at < found <= at + timedelta(hours=25)
    assert found.astimezone(ZoneInfo(zone)).time() == hour
