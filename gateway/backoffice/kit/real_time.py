"""Real times of rows, which a merchant's moved clock does not change: their ids have them.

Figures by hour and the lists behind them go by these, so that they agree before and after the test clock is moved.
"""

from __future__ import annotations

from typing import Final

ROW_TIME_SQL: Final = "to_timestamp(('x' || left(replace({id}::text, '-', ''), 12))::bit(48)::bigint / 1000.0)"
"""SQL of the real time at which a row was made, from its id (UUID version 7: milliseconds since 1970)."""
