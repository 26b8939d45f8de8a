"""Intervals and tests of shares: how far a rate may be from what was counted. Pure; percent are 0 to 100.

Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927); R. G.
Newcombe, "Interval estimation for the difference between independent proportions", Statistics in Medicine 17 (1998),
method 10; P. McCullagh and J. A. Nelder, "Generalized Linear Models", 4.5 (over-dispersion); D. L.
Wallace, "Bounds on normal approximations to Student's and the chi-square distributions", Ann. Math. Statist. 30 (1959).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from typing import Final

INTERVAL_Z: Final = 1.959964
"""Standard deviations of a two-sided interval of 95 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareInterval:
    """A share in percent with its interval of 95 %."""

    rate: float
    low: float
    high: float


def compute_share(part: int, whole: int) -> ShareInterval | None:
    """``part`` of ``whole`` with Wilson's interval; None of nothing."""
    if whole <= 0:
        return None
    share, z2 = part / whole, INTERVAL_Z**2
    middle = (share + z2 / (2 * whole)) / (1 + z2 / whole)
    reach = INTERVAL_Z * sqrt(share * (1 - share) / whole + z2 / (4 * whole**2)) / (1 + z2 / whole)
    low, high = max(0.0, middle - reach), min(1.0, middle + reach)
    # At 0 and 1 the interval ends there; a float would miss it by a hair.
    return ShareInterval(
        rate=100 * share, low=0.0 if part == 0 else 100 * low, high=100.0 if part == whole else 100 * high
    )


def compute_difference(better: tuple[int, int], worse: tuple[int, int]) -> ShareInterval | None:
    """How many points the first (part, whole) is above the second, with Newcombe's interval; None if one is empty."""
    one, two = compute_share(*better), compute_share(*worse)
    if one is None or two is None:
        return None
    difference = one.rate - two.rate
    return ShareInterval(
        rate=difference,
        low=difference - sqrt((one.rate - one.low) ** 2 + (two.high - two.rate) ** 2),
        high=difference + sqrt((one.high - one.rate) ** 2 + (two.rate - two.low) ** 2),
    )


def estimate_dispersion(days: Sequence[tuple[int, int]]) -> float:
    """How much more the daily shares (part, whole) vary than chance alone lets them: 1 for chance, more for a trade in
    which days differ. Never below 1."""
    days = [(part, whole) for part, whole in days if whole]
    parts, wholes = sum(part for part, _ in days), sum(whole for _, whole in days)
    if len(days) < 2 or parts in (0, wholes):
        return 1.0
    share = parts / wholes
    squares = sum((part - whole * share) ** 2 / (whole * share * (1 - share)) for part, whole in days)
    return max(1.0, squares / (len(days) - 1))


def compute_fall_chance(now: tuple[int, int], before: tuple[int, int], *, dispersion: float, days: int) -> float:
    """The probability that a share falls from ``before`` to ``now`` (or lower) by chance: one-sided test of two shares
    with a pooled variance, widened by ``dispersion``, which was estimated from so many ``days`` (0: known): the tail is
    Student's then. 1.0 where it did not fall or nothing was counted."""
    (part, whole), (old_part, old_whole) = now, before
    if not whole or not old_whole or part / whole >= old_part / old_whole:
        return 1.0
    pooled = (part + old_part) / (whole + old_whole)
    variance = pooled * (1 - pooled) * (1 / whole + 1 / old_whole) * dispersion
    score = (old_part / old_whole - part / whole) / sqrt(variance)
    if days > 1:
        # Student's t with days - 1 degrees as a normal score.
        score *= (1 - 1 / (4 * (days - 1))) / sqrt(1 + score**2 / (2 * (days - 1)))
    return 0.5 * erfc(score / sqrt(2))
