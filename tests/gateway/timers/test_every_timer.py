"""Every timer runs as beat runs it: outside of a transaction, where statements go straight through libpq (0059)."""

from __future__ import annotations

import pytest

from config.timers import TIMERS
from gateway.timers.registry import Timer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("timer", TIMERS, ids=[timer.name for timer in TIMERS])
def test_a_timer_with_nothing_to_do_does_nothing(timer: Timer) -> None:
    """The server plans each of its statements, whether or not there are rows: one that it does not understand fails."""
    if not timer.is_off():
        timer.run()
