"""When a declined charge of a stored card is tried again: by the table, or by the outcomes of earlier retries.

The table (gateway.scheduling.dunning) says whether it is tried again, how often, and how long the issuer wants to be
left alone; outcomes choose among the moments behind that. A choice is kept with its figures on the run. Direct debits
go by the table alone. Source: docs/decisions/0128; docs/schedules.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from gateway.core import clock
from gateway.core.brands import DIRECT_DEBIT_METHOD
from gateway.models import Channel, Payment
from gateway.payments.network_brands import find_network_brand
from gateway.risk.retry_rules import resolve_network
from gateway.risk.risk_store import find_earliest_retry
from gateway.scheduling import dunning
from gateway.scheduling.retry_rates import MAX_LEARNED_WAIT, RetryEstimate, RetryRates, name_retry_issuer
from gateway.scheduling.retry_statistics import load_rates

MIN_LEARNED_WAIT: Final = timedelta(days=1)
"""A retry that no advice has a time for is made after a day at the earliest: the same day would ask the same bank with
the same money."""


class RetryChooser(StrEnum):
    """What chose the time of a retry. Other than OUTCOMES: the table, since the outcomes did not."""

    OUTCOMES = "outcomes"
    TABLE = "table"
    TOO_FEW = "too few outcomes"
    NO_TIME = "no time before the next run"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryChoice:
    """``at``: when a declined charge is tried again; ``figures``: why then, as JobRun.retry_choices keeps it; empty
    where the channel goes by the table."""

    at: datetime
    figures: Mapping[str, Any]


def choose_retry(
    channel: Channel, payment: Payment, decision: dunning.DunningRetry, attempt: int, now: datetime, until: datetime
) -> RetryChoice | None:
    """The next try of the charge that ``payment`` was declined for; None where there is none. ``attempt``: the number
    of the declined try; ``until``: the next run, which no retry comes after."""
    after = dunning.get_retry_delay(decision, attempt)
    if after is None:
        return None
    by_table = RetryChoice(at=now + after, figures={}) if now + after < until else None
    if channel.retry_timing != Channel.RetryTiming.OUTCOMES or not _is_timed_by_outcomes(payment):
        return by_table
    if decision.after == dunning.SOON_RETRY_DELAY:  # a fault of a system, or the issuer says so
        return by_table
    advice, issuer = _read_advice(payment), name_retry_issuer(payment.answer.get("card", {}).get("bin", ""))
    stored = load_rates([issuer])
    earliest = now + (decision.after or MIN_LEARNED_WAIT)
    if payment.means_fingerprint is not None:
        network = resolve_network(find_network_brand(payment))
        earliest = max(
            earliest, find_earliest_retry(payment.merchant_id, bytes(payment.means_fingerprint), network, now)
        )
    latest = min(until, now + MAX_LEARNED_WAIT)
    code, by = payment.result_code, RetryChooser.OUTCOMES
    chosen = None
    if not stored.rates.knows(code):
        by = RetryChooser.TOO_FEW
    elif (chosen := stored.rates.choose_moment(code, advice, issuer, earliest, latest)) is None:
        by = RetryChooser.NO_TIME
    if chosen is None:
        return RetryChoice(at=by_table.at, figures={"by": by}) if by_table is not None else None
    return RetryChoice(
        at=chosen.at,
        figures=_render_choice(chosen, stored.rates, code, advice, issuer, now + after)
        | {"from": clock.format_timestamp(earliest), "until": clock.format_timestamp(latest)}
        | ({"countedAt": clock.format_timestamp(stored.counted_at)} if stored.counted_at is not None else {}),
    )


def _is_timed_by_outcomes(payment: Payment) -> bool:
    return payment.means == "card" and payment.method != DIRECT_DEBIT_METHOD


def _read_advice(payment: Payment) -> str:
    details: Mapping[str, str] = payment.answer.get("resultDetails", {})
    return details.get("MerchantAdviceCode", "")


def _render_choice(
    chosen: RetryEstimate, rates: RetryRates, code: str, advice: str, issuer: str, by_table: datetime
) -> dict[str, Any]:
    return {
        "by": RetryChooser.OUTCOMES,
        "at": clock.format_timestamp(chosen.at),
        "chance": round(chosen.chance, 4),
        "code": code,
        "advice": advice,
        "issuer": issuer,
        "factors": [
            {
                "cell": one.cell,
                "value": one.value,
                "tries": one.tries,
                "approved": one.approved,
                "figure": round(one.figure, 4),
            }
            for one in chosen.factors
        ],
        "table": {
            "at": clock.format_timestamp(by_table),
            "chance": round(rates.estimate(code, advice, issuer, by_table).chance, 4),
        },
    }
