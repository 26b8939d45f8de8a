"""Retry trial: what retries timed by outcomes would have brought over the table, on a channel's past charges.

Background work (gateway.background.queue) of one slice. The period's retries are divided in two by time. Rates of the
first half choose the moments; rates of the second half, which had no part in the choice, say what those moments were
worth. The difference to what the second half's retries brought is the uplift; its interval comes from leaving out one
tenth of the retries at a time (a delete-a-group jackknife). Nothing changes.
Source: docs/decisions/0128; P. Kott, "The delete-a-group jackknife", Journal of Official Statistics 17 (2001).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import sqrt
from typing import Any, Final
from uuid import UUID

from gateway.background import queue
from gateway.background.files import AttemptFolder
from gateway.core.intervals import compute_share
from gateway.models import BackgroundWork
from gateway.risk.retry_rules import ADVICE_WAITS
from gateway.scheduling.retry_choice import MIN_LEARNED_WAIT
from gateway.scheduling.retry_rates import MAX_LEARNED_WAIT, RetryRates
from gateway.scheduling.retry_statistics import PastCharges, PastRetry, count_past_charges, read_past_charges

RETRY_TRIAL_PERMISSION: Final = "gateway.view_payment"
MIN_TRIED_RETRIES: Final = 200
"""Retries of the period below which a trial says nothing."""
TRIAL_GROUPS: Final = 10
JACKKNIFE_T: Final = 2.262157
"""Student's t of a two-sided interval of 95 % with TRIAL_GROUPS - 1 degrees of freedom."""
CHANCE_BANDS: Final = (0.0, 0.2, 0.4, 0.6, 0.8)
"""Lower ends of the chances that are compared with what became of the retries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedRetry:
    """A retry of the second half, the moment that the first half's rates choose, and the chance that these rates gave
    to the moment at which it was made."""

    retry: PastRetry
    chosen: datetime
    foretold: float


def try_retry_timing(row: BackgroundWork, _folder: AttemptFolder, alive: Callable[[], None]) -> queue.SliceResult:
    """The whole trial. Parameters: ``channel``, ``merchant``; ``from``, ``to``: the merchant's clock, ISO 8601;
    ``all``: include payments of INTERNAL."""
    asked = row.parameters
    past = read_past_charges(
        UUID(asked["merchant"]),
        UUID(asked["channel"]),
        datetime.fromisoformat(asked["from"]),
        datetime.fromisoformat(asked["to"]),
        with_internal=bool(asked.get("all")),
    )
    alive()
    found = compute_uplift(past, alive)
    return queue.SliceResult(
        done=len(past.retries), cursor=found, total=len(past.retries), finished=True, message=str(len(past.retries))
    )


RETRY_TRIAL: Final = queue.WorkKind(
    name="retries",
    about="Past retries of subscription charges as outcomes would have timed them.",
    right=RETRY_TRIAL_PERMISSION,
    file_right=RETRY_TRIAL_PERMISSION,
    step=try_retry_timing,
)


def compute_uplift(past: PastCharges, alive: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """The figures of a trial: ``retries`` of the period; and unless they are too few ``timed``, ``made`` (percent of
    them approved as they were made), ``by_outcomes`` (percent at the chosen moments), ``uplift`` with ``low`` and
    ``high`` in points, and ``bands``: chance from, retries, approved, rate, low, high."""
    figures: dict[str, Any] = {"retries": len(past.retries), "timed": 0}
    if len(past.retries) < MIN_TRIED_RETRIES:
        return figures
    in_order = sorted(past.retries, key=lambda one: (one.at, one.payment))
    first, second = in_order[: len(in_order) // 2], in_order[len(in_order) // 2 :]
    border = second[0].at
    learned = count_past_charges(first, [one for one in past.attempts if one.day < border.date()])
    timed = _choose_moments(learned, second, alive)
    if not timed:
        return figures
    later = [one for one in past.attempts if one.day >= border.date()]
    hours = later or past.attempts
    made, worth = _measure(timed, count_past_charges(second, hours))
    without = []
    for group in range(TRIAL_GROUPS):
        alive()
        rates = count_past_charges([one for one in second if one.payment.int % TRIAL_GROUPS != group], hours)
        kept = [one for one in timed if one.retry.payment.int % TRIAL_GROUPS != group]
        without.append(_subtract(_measure(kept, rates)) if kept else 0.0)
    middle = sum(without) / TRIAL_GROUPS
    error = sqrt((TRIAL_GROUPS - 1) / TRIAL_GROUPS * sum((one - middle) ** 2 for one in without))
    uplift = worth - made
    return figures | {
        "timed": len(timed),
        "made": made,
        "by_outcomes": worth,
        "uplift": uplift,
        "low": uplift - JACKKNIFE_T * error,
        "high": uplift + JACKKNIFE_T * error,
        "bands": _compare_bands(timed),
    }


def _choose_moments(rates: RetryRates, retries: Sequence[PastRetry], alive: Callable[[], None]) -> list[TimedRetry]:
    found = []
    for place, one in enumerate(retries):
        if place % 500 == 0:
            alive()
        if not rates.knows(one.code):
            continue
        asked = ADVICE_WAITS.get(one.advice)
        wait: timedelta = asked.wait if asked is not None else MIN_LEARNED_WAIT
        chosen = rates.choose_moment(
            one.code, one.advice, one.issuer, one.declined_at + wait, one.declined_at + max(MAX_LEARNED_WAIT, wait)
        )
        if chosen is not None:
            foretold = rates.estimate(one.code, one.advice, one.issuer, one.at).chance
            found.append(TimedRetry(retry=one, chosen=chosen.at, foretold=foretold))
    return found


def _measure(timed: Sequence[TimedRetry], judged: RetryRates) -> tuple[float, float]:
    """Percent approved of the retries as they were made, and at the chosen moments by the rates ``judged``."""
    made = sum(one.retry.approved for one in timed)
    worth = sum(judged.estimate(one.retry.code, one.retry.advice, one.retry.issuer, one.chosen).chance for one in timed)
    return 100 * made / len(timed), 100 * worth / len(timed)


def _subtract(pair: tuple[float, float]) -> float:
    made, worth = pair
    return worth - made


def _compare_bands(timed: Sequence[TimedRetry]) -> list[Mapping[str, Any]]:
    """The chances estimated from the first half against the approvals of the second, by band of chance."""
    bands: list[Mapping[str, Any]] = []
    for low, high in zip(CHANCE_BANDS, (*CHANCE_BANDS[1:], 1.1), strict=True):
        inside = [one for one in timed if low <= one.foretold < high]
        approved = sum(one.retry.approved for one in inside)
        if (share := compute_share(approved, len(inside))) is not None:
            bands.append(
                {
                    "from": round(100 * low),
                    "to": min(100, round(100 * high)),
                    "retries": len(inside),
                    "approved": approved,
                    "rate": share.rate,
                    "low": share.low,
                    "high": share.high,
                }
            )
    return bands
