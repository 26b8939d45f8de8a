"""Local and universal time in host messages: a terminal east and one west of Greenwich, over midnight.

Source: docs/connectors/iso8583.md (DE7, DE12, DE13, DE15).
"""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from gateway.connectors.iso8583 import batch_totals
from gateway.connectors.iso8583.iso_request import OriginalMessage, build_iso_request
from gateway.connectors.iso8583.mapping import build_iso_message
from gateway.connectors.iso8583.terminal import Terminal, parse_terminal
from gateway.connectors.port import AcquirerRequest, ConnectorAccount
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


@pytest.mark.parametrize(
    ("sent_at", "by", "expected"),
    [
        ("0514200203", AT, AT),
        ("0514200204", AT, datetime(2025, 5, 14, 20, 2, 4, tzinfo=UTC)),
        ("1231235959", datetime(2027, 1, 2, tzinfo=UTC), datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("0229120000", datetime(2028, 3, 5, tzinfo=UTC), datetime(2028, 2, 29, 12, tzinfo=UTC)),
        ("0229120000", datetime(2027, 3, 5, tzinfo=UTC), datetime(2024, 2, 29, 12, tzinfo=UTC)),
        ("0229120000", datetime(2103, 3, 5, tzinfo=UTC), datetime(2096, 2, 29, 12, tzinfo=UTC)),
    ],
)
def test_the_year_of_an_earlier_message_is_the_latest_that_fits(sent_at: str, by: datetime, expected: datetime) -> None:
    earlier = OriginalMessage(operation="PA", stan="000042", sent_at=sent_at, rrn="606012345678")
    assert earlier.find_sent_time(by) == expected


@pytest.mark.parametrize(("zone", "day", "hour"), [("UTC", "0507", "233000"), ("Asia/Tokyo", "0508", "083000")])
@pytest.mark.parametrize("void", [True, False])
def test_a_reversal_has_the_local_time_of_what_it_reverses_and_is_transmitted_now(
    zone: str, day: str, hour: str, void: bool
) -> None:
    """A reversal is no transaction of its own: DE12 and DE13 are of the original, DE7 is when the reversal began."""
    first = OriginalMessage(operation="PA", stan="000042", sent_at="0507233000", rrn="612723000042", amount=4_000)
    request = AcquirerRequest(
        payment=UUID(int=1),
        operation="PA" if void else "RV",
        money=Money.parse("40.00", "EUR"),
        brand="VISA",
        at=AT,
        trace_number=4711,
        reference="" if void else first.text(),
        known_transaction_id=first.text() if void else "",
    )
    message = build_iso_message(build_iso_request(request, terminal(zone), void=void))
    assert (message["7"], message["12"], message["13"]) == ("0514200203", hour, day)
    assert message["90"].startswith("01000000420507233000")
