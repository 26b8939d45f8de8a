"""Real times of rows, which a merchant's moved clock does not change: their ids have them.

Figures by hour and the lists behind them go by these, so that they agree before and after the test clock is moved.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

ROW_TIME_SQL: Final = "to_timestamp(('x' || left(replace({id}::text, '-', ''), 12))::bit(48)::bigint / 1000.0)"
"""SQL of the real time at which a row was made, from its id (UUID version 7: milliseconds since 1970)."""


def first_id_at(at: datetime) -> UUID:
    """The smallest id that a row made at ``at``, real time, can have."""
    return UUID(int=max(0, int(at.timestamp() * 1000)) << 80)
