"""Ids follow real time, so a bound on ids is a bound on times."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from uuid_utils import compat

from gateway.core import identifiers

NOON = datetime(2026, 5, 14, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(("milliseconds", "after"), [(0, True), (1, True), (-1, False), (-86_400_000, False)])
def test_rows_made_from_a_moment_on_have_its_first_id_or_a_later_one(milliseconds: int, after: bool) -> None:
    made = compat.uuid7(nanoseconds=(int(NOON.timestamp() * 1000) + milliseconds) * 1_000_000)
    assert (made >= identifiers.first_id_at(NOON)) == after


def test_before_ids_began_every_row_is_later() -> None:
    assert identifiers.first_id_at(datetime(1960, 1, 1, tzinfo=UTC)) == UUID(int=0)
