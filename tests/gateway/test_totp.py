"""Codes of a second factor: the published values, the drift of clocks to either side, and each code once.

Source: RFC 4226, appendix D; RFC 6238, appendix B.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from gateway import totp
from gateway.secret import Secret

SECRET = Secret(base64.b32encode(b"12345678901234567890").decode())
PUBLISHED = ("755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489")
AT = datetime(2026, 5, 14, 10, 2, 0, tzinfo=UTC)
NOW = totp.step_at(AT)


def test_the_codes_are_those_that_were_published() -> None:
    assert tuple(totp.code(SECRET, step) for step in range(10)) == PUBLISHED
    assert totp.step_at(datetime.fromtimestamp(59, tz=UTC)) == 1
    assert totp.step_at(datetime.fromtimestamp(60, tz=UTC)) == 2
    assert totp.code(SECRET, 1) == "287082", "94287082 of eight digits, at 59 seconds"


@pytest.mark.parametrize("drift", range(-totp.DRIFT_STEPS - 2, totp.DRIFT_STEPS + 3))
@pytest.mark.parametrize("second", [0, 29])
def test_a_clock_may_be_so_far_ahead_or_behind_and_no_further(drift: int, second: int) -> None:
    found = totp.match(SECRET, totp.code(SECRET, NOW + drift), AT + timedelta(seconds=second), after=0)
    assert found == (NOW + drift if abs(drift) <= totp.DRIFT_STEPS else None)


def test_a_code_that_was_taken_is_not_taken_again_nor_is_one_before_it() -> None:
    for step in (NOW - 1, NOW, NOW + 1):
        typed = totp.code(SECRET, step)
        assert totp.match(SECRET, typed, AT, after=step - 1) == step
        assert totp.match(SECRET, typed, AT, after=step) is None
        assert totp.match(SECRET, typed, AT, after=step + 1) is None


def test_blanks_are_let_pass_and_nothing_else_is() -> None:
    typed = totp.code(SECRET, NOW)
    assert totp.match(SECRET, f" {typed[:3]} {typed[3:]} ", AT, after=0) == NOW
    for wrong in ("", typed[:-1], typed + "0", f"{typed[:3]}-{typed[3:]}", "٣" * 6):
        assert totp.match(SECRET, wrong, AT, after=0) is None
