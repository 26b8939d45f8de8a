"""Rates of retries: how often a further try of a declined charge is approved, by decline, issuer, day and hour. Pure.

A chance is a rate times three ratios, each counted from earlier outcomes and drawn towards that of the wider cell until
there are enough of them: (approved + PRIOR × parent) / (expected + PRIOR). The rate goes all retries → result code →
merchant advice code → issuer. The ratios say how much better a day of the month, a day of the week (both by result
code, then issuer) and an hour (by issuer) are than that rate alone lets expect. Every figure of a cell can be counted
again by hand. Source: docs/decisions/0128; docs/schedules.md.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final

from gateway.core.brands import find_issuer

RATE_PRIOR: Final = 8.0
"""Expected approvals that a wider cell's rate counts for in a narrower one."""
MIN_LEARNED_RETRIES: Final = 50
"""Retries after a result code below which its rates choose nothing."""
MAX_LEARNED_WAIT: Final = timedelta(days=10)
"""How long after the decline a retry is made at the latest: from before one payday to behind it, for most cards."""
NEAR_CHANCE: Final = 0.01
"""Of moments whose chances differ by no more than this, the earliest is taken: sooner money is worth more."""
MAX_CHANCE: Final = 0.99
_ALL: Final = ""


class RateCell(StrEnum):
    """The feature that a cell's retries share, besides result code and issuer."""

    RATE = "rate"
    DAY = "day"
    WEEKDAY = "weekday"
    HOUR = "hour"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOutcome:
    """Retries of one kind, counted. ``code``, ``advice``: of the decline before; ``day`` (of the month),
    ``weekday`` (ISO), ``hour``: when they were made, in UTC."""

    code: str
    advice: str
    issuer: str
    day: int
    weekday: int
    hour: int
    tries: int
    approved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HourOutcome:
    """Attempts of any kind at an issuer in an hour of the day, counted, without declines that speak of the card."""

    issuer: str
    hour: int
    tries: int
    approved: int


CellKey = tuple[RateCell, str, str, str, int]
"""Kind, result code, advice code, issuer ('' each: all), and the day, day of the week or hour (0 of a rate)."""


@dataclass(slots=True, kw_only=True)
class RateCount:
    """``expected``: how many of ``tries`` the wider cells let expect; of a rate, if every try were approved but for
    its hour."""

    tries: int = 0
    approved: int = 0
    expected: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryFactor:
    """A figure of an estimate: the rate (0 to 1), or a ratio, with what was counted in its narrowest cell."""

    cell: RateCell
    value: int
    tries: int
    approved: int
    figure: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryEstimate:
    """The chance (0 to 1) that a retry at a moment is approved, and the figures that make it."""

    at: datetime
    chance: float
    factors: tuple[RetryFactor, ...]


class RetryRates:
    """Cells with their counts, and the estimates that follow from them."""

    def __init__(self, counts: Mapping[CellKey, RateCount]) -> None:
        self.counts = counts
        self._ratios: dict[CellKey, float] = {}

    def knows(self, code: str) -> bool:
        """Whether enough retries after this result code were counted."""
        return self._count(RateCell.RATE, code).tries >= MIN_LEARNED_RETRIES

    def estimate(self, code: str, advice: str, issuer: str, at: datetime) -> RetryEstimate:
        """The chance of a retry at ``at`` of a charge that was declined so."""
        factors = []
        for key in _list_cells(code, advice, issuer, at):
            count = self.counts.get(key, RateCount())
            factors.append(
                RetryFactor(
                    cell=key[0],
                    value=key[4],
                    tries=count.tries,
                    approved=count.approved,
                    figure=self.resolve_figure(key),
                )
            )
        return RetryEstimate(at=at, chance=self._chance(code, advice, issuer, at), factors=tuple(factors))

    def _chance(self, code: str, advice: str, issuer: str, at: datetime) -> float:
        """The chance of `estimate`, without its figures."""
        chance = 1.0
        for key in _list_cells(code, advice, issuer, at):
            chance *= self.resolve_figure(key)
        return min(MAX_CHANCE, chance)

    def resolve_figure(self, key: CellKey) -> float:
        """The rate or ratio of a cell, drawn towards its wider cell; without any count the wider cell's."""
        if key not in self._ratios:
            parent = find_wider_cell(key)
            above = self.resolve_figure(parent) if parent is not None else _start(key[0])
            count = self.counts.get(key, RateCount())
            self._ratios[key] = (count.approved + RATE_PRIOR * above) / (count.expected + RATE_PRIOR)
        return self._ratios[key]

    def choose_moment(
        self, code: str, advice: str, issuer: str, earliest: datetime, latest: datetime
    ) -> RetryEstimate | None:
        """The moment with the best chance, hour by hour from ``earliest`` until before ``latest``; of those that are
        as good as the best, the first. None if there is none."""
        hours = max(0, -((earliest - latest) // timedelta(hours=1)))
        moments = [earliest + timedelta(hours=place) for place in range(hours)]
        chances = [(self._chance(code, advice, issuer, at), at) for at in moments if at < latest]
        if not chances:
            return None
        best, _ = max(chances)
        chosen = next(at for chance, at in chances if chance >= best - NEAR_CHANCE)
        return self.estimate(code, advice, issuer, chosen)

    def _count(self, cell: RateCell, code: str) -> RateCount:
        return self.counts.get((cell, code, _ALL, _ALL, 0), RateCount())


def _list_cells(code: str, advice: str, issuer: str, at: datetime) -> tuple[CellKey, ...]:
    """The narrowest cells of a retry at ``at``: those whose figures make its chance."""
    when = at.astimezone(UTC)
    return (
        (RateCell.RATE, code, advice, issuer, 0),
        (RateCell.DAY, code, _ALL, issuer, when.day),
        (RateCell.WEEKDAY, code, _ALL, issuer, when.isoweekday()),
        (RateCell.HOUR, _ALL, _ALL, issuer, when.hour),
    )


def find_wider_cell(key: CellKey) -> CellKey | None:
    """The cell that a cell is drawn towards; None of the widest of its kind."""
    cell, code, advice, issuer, value = key
    if issuer:
        return (cell, code, advice, _ALL, value)
    if cell is RateCell.RATE and advice:
        return (cell, code, _ALL, _ALL, value)
    return (cell, _ALL, _ALL, _ALL, value) if cell is RateCell.RATE and code else None


def count_rates(retries: Iterable[RetryOutcome], hours: Iterable[HourOutcome]) -> RetryRates:
    """Count the cells: hours first, then rates, days of the month and days of the week, each with what the ones before
    let expect. So a month whose retries fell into bad hours is no bad month."""
    retries = tuple(retries)
    counts: defaultdict[CellKey, RateCount] = defaultdict(RateCount)
    rates = RetryRates(counts)
    _count_hours(counts, hours)
    for one in retries:
        expected = one.tries * rates.resolve_figure((RateCell.HOUR, _ALL, _ALL, one.issuer, one.hour))
        for key in {
            (RateCell.RATE, _ALL, _ALL, _ALL, 0),
            (RateCell.RATE, one.code, _ALL, _ALL, 0),
            (RateCell.RATE, one.code, one.advice, _ALL, 0),
            (RateCell.RATE, one.code, one.advice, one.issuer, 0),
        }:
            _add(counts[key], one, expected)
    for cell, before in ((RateCell.DAY, ()), (RateCell.WEEKDAY, (RateCell.DAY,))):
        for one in retries:
            value = {RateCell.DAY: one.day, RateCell.WEEKDAY: one.weekday}
            keys = [
                (RateCell.HOUR, _ALL, _ALL, one.issuer, one.hour),
                (RateCell.RATE, one.code, one.advice, one.issuer, 0),
                *((earlier, one.code, _ALL, one.issuer, value[earlier]) for earlier in before),
            ]
            expected = float(one.tries)
            for key in keys:
                expected *= rates.resolve_figure(key)
            for issuer in {_ALL, one.issuer}:
                _add(counts[cell, one.code, _ALL, issuer, value[cell]], one, expected)
    return RetryRates(dict(counts))


def _count_hours(counts: dict[CellKey, RateCount], hours: Iterable[HourOutcome]) -> None:
    hours = tuple(hours)
    tries: Counter[str] = Counter()
    approved: Counter[str] = Counter()
    for one in hours:
        tries[one.issuer] += one.tries
        approved[one.issuer] += one.approved
    for one in hours:
        expected = one.tries * approved[one.issuer] / tries[one.issuer] if tries[one.issuer] else 0.0
        for issuer in {_ALL, one.issuer}:
            _add(counts[RateCell.HOUR, _ALL, _ALL, issuer, one.hour], one, expected)


def _add(count: RateCount, one: RetryOutcome | HourOutcome, expected: float) -> None:
    count.tries += one.tries
    count.approved += one.approved
    count.expected += expected


def _start(cell: RateCell) -> float:
    """What the widest cell of a kind is drawn towards: a rate of a half, a ratio of one."""
    return 0.5 if cell is RateCell.RATE else 1.0


@lru_cache(maxsize=4096)
def name_retry_issuer(card_bin: str) -> str:
    """The issuer that a card's retries are counted for: its bank by the table of BINs, else its first six digits."""
    issuer = find_issuer(card_bin) if card_bin else None
    return (issuer.bank if issuer is not None else "") or card_bin[:6]
