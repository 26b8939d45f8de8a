"""Local and universal time in host messages: a terminal east and one west of Greenwich, over midnight.

Source: docs/connectors/iso8583.md (DE7, DE12, DE13, DE15).
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway.connectors.iso8583 import batch_totals
from gateway.connectors.iso8583.terminal import Terminal, parse_terminal
from gateway.connectors.port import ConnectorAccount
from gateway.core.money import Money

AT = datetime(2026, 5, 14, 20, 2, 3, tzinfo=UTC)


def terminal(zone: str) -> Terminal:
    return parse_terminal(ConnectorAccount(settings={"host": "h", "port": "1", "terminal": "T1", "time_zone": zone}))


@pytest.mark.parametrize(
    ("zone", "day", "hour"),
    [
        ("UTC", "0514", "200203"),
        ("Asia/Tokyo", "0515", "050203"),
        ("America/Los_Angeles", "0514", "130203"),
        ("Pacific/Pago_Pago", "0514", "090203"),
        ("Pacific/Kiritimati", "0515", "100203"),
    ],
)
def test_sums_are_stamped_with_both_times(zone: str, day: str, hour: str) -> None:
    sums = batch_totals.BatchSums(
        trace_number=4711, number=17, opened_at=AT, round=0, count=3, total=Money.parse("75.50", "EUR")
    )
    message = batch_totals.build_reconciliation_request(sums, terminal(zone), repeat=False)
    assert (message["7"], message["12"], message["13"], message["15"]) == ("0514200203", hour, day, day)
    assert (message["76"], message["60"]) == ("0000000003", "000017")
