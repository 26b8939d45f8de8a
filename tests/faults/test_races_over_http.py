"""Races through real HTTP, against gunicorn with several processes. Source: goals R2; decisions, section 4, D20."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults import races
from tests.faults.stack import Stack

pytestmark = [pytest.mark.xdist_group("whole-stack"), pytest.mark.timeout(900)]
NAMES = (
    "refund / refund", "capture / capture", "capture / reversal", "refund / reversal", "one key, one body",
    "one key, other bodies",
)  # fmt: skip


@pytest.fixture(scope="module")
def results() -> Iterator[dict[str, races.RaceResult]]:
    with Stack() as stack:
        demo = stack.facts("demo.json")
        shop = races.Shop(port=stack.port, entity=demo["entity_id"], token=demo["access_token"])
        yield {result.name: result for result in races.run(shop, rounds=2)}


@pytest.mark.parametrize("name", NAMES)
def test_of_those_that_race_none_passes_a_limit_and_every_loser_gets_a_documented_code(
    results: dict[str, races.RaceResult], name: str
) -> None:
    """R2: the sums of those that won stay within the payment; one key makes one payment."""
    result = results[name]
    assert result.odd == []
    assert result.over == 0
    assert result.won >= result.rounds
    assert result.refused > 0
