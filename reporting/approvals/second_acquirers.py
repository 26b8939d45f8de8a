"""Second acquirers after a decline: what they saved, what they could save, and what the schemes count of retries.

A payment counts once, however many acquirers were asked; it is saved if it was approved after a cascade. The schemes
count each declined attempt with a card at a merchant; one against their rules costs a fee. Source: docs/approval.md;
docs/decisions/0108.
"""

# ruff: noqa: S608 - statements are put together out of this package's own constants; values are always bound

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from gateway.backoffice.operations.dashboard import SCOPE_CONDITION
from gateway.core.intervals import ShareInterval, compute_share
from gateway.db.statement import read_sql
from gateway.payments.cascade import CASCADABLE_DECLINES, NO_ADVICE
from gateway.risk.retry_rules import MAX_RULE_DAYS, NETWORK_OF_BRAND, RETRY_LIMITS, resolve_network
from reporting.approvals.figures import ApprovalPeriod, get_chosen_sql, get_tried_sql, read_chosen

MAX_COUNTED_DECLINES: Final = 200_000
"""The newest declines of a card that the schemes' counts are computed from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryFee:
    """What a scheme charges, at least, for an attempt against its retry rules. ``source``: who quotes it; the schemes'
    own lists were not at hand, and differ by region."""

    amount: Decimal
    currency: str
    source: str


RETRY_FEES: Final = {
    "Visa": RetryFee(
        amount=Decimal("0.10"),
        currency="USD",
        source="0.05 more across borders; quoted by https://www.payway.com/visa-excessive-reattempts-rule-fees",
    ),
    "Mastercard": RetryFee(
        amount=Decimal("0.10"),
        currency="USD",
        source="in the United States and Canada; quoted by https://support.forte.net/support/solutions/articles/"
        "11000081270-mastercard-excessive-authorization-attempts-fee",
    ),
}
"""Network → fee."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeFigures:
    """Cascades of one currency. ``payments``: that were sent to a further acquirer; ``attempts``: how often, with those
    that were taken back there without an answer; ``saved``: approved there, ``money``: what these brought, whatever was
    given back since."""

    currency: str
    payments: int
    attempts: int
    saved: int
    money: Decimal

    @property
    def rate(self) -> ShareInterval | None:
        return compute_share(self.saved, self.payments)


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeChance:
    """Purchases of one currency lost by a decline after which another acquirer may have approved: of a card that could
    be sent again, by a route with another account that it was not to be sent to after a decline."""

    currency: str
    payments: int
    money: Decimal


@dataclass(slots=True, kw_only=True)
class RetryCounts:
    """What a network counts. ``declines``: declined attempts; ``further``: of them, not the first of their payment;
    ``excessive``: over a limit; ``forbidden``: after the issuer had said never again."""

    network: str
    declines: int = 0
    further: int = 0
    excessive: int = 0
    forbidden: int = 0

    @property
    def charged(self) -> int:
        """Attempts that cost a fee."""
        return self.excessive + self.forbidden

    @property
    def fee(self) -> RetryFee | None:
        return RETRY_FEES.get(self.network)

    @property
    def fees(self) -> Decimal | None:
        """What they cost at least; None where the fee is not known."""
        return self.fee.amount * self.charged if self.fee is not None else None


# A payment whose attempt was voided is the account's again that declined it, and keeps that attempt in its route.
_CASCADED: Final = {
    "cascades": "(p.route ->> 'cascades')::integer"
    " + (SELECT count(*) FROM jsonb_array_elements(p.route -> 'tried') AS way"
    " WHERE way ? 'voided' AND (way ->> 'connector', way ->> 'account') <> (p.connector, p.acquirer_merchant_id))"
}
_DECLINED: Final = {
    "has_unused_account": "p.route ? 'next' AND NOT p.route ? 'maxCascades'",
    "response": "p.answer -> 'resultDetails' ->> 'AcquirerResponse'",
    "advice": "p.answer -> 'resultDetails' ->> 'MerchantAdviceCode'",
    # A wallet's token shows its kind of number in the answer; what a merchant sends of a wallet stands in the request.
    "from_wallet": "p.request -> 'card' ->> 'numberType' IS NOT DISTINCT FROM 'DPAN'"
    " OR p.answer -> 'card' ? 'numberType' IS TRUE"
    """ OR jsonb_path_exists(p.request, '$.keyvalue() ? (@.key starts with "wallet")')""",
}
_CASCADES: Final = f"""
WITH {get_chosen_sql(_CASCADED)}
SELECT currency, count(*), sum(cascades), count(*) FILTER (WHERE approved),
    coalesce(sum(approved_amount) FILTER (WHERE approved), 0)
FROM chosen WHERE cascades > 0 GROUP BY 1 ORDER BY 2 DESC
"""
_CHANCES: Final = f"""
{get_tried_sql(_DECLINED)}
SELECT currency, count(*), sum(amount) FROM tried
WHERE decides AND asked AND NOT approved AND has_unused_account AND NOT from_wallet
    AND coalesce(advice, '') = ANY(%(no_advice)s) AND concat_ws(' ', result_code, response) = ANY(%(cascadable)s)
GROUP BY 1
"""


def _build_excess_sql() -> str:
    """The condition of a decline over one of the schemes' limits, over ``d``, a decline, and ``p``, its payment."""
    conditions = []
    for limit in RETRY_LIMITS:
        brands = ", ".join(f"'{brand}'" for brand, network in NETWORK_OF_BRAND.items() if network == limit.network)
        counted = "d.in_a_day" if limit.window == timedelta(days=1) else "d.in_a_month"
        conditions.append(f"(p.brand IN ({brands}) AND {counted} > {limit.declines})")
    return " OR ".join(conditions)


# Of several declines at one moment (a payment's attempts have one time) the later ones do not count for the earlier.
_RETRIES: Final = f"""
WITH kept AS MATERIALIZED (
    SELECT c.* FROM (
        SELECT m.id FROM gateway_merchant m WHERE %(all)s OR m.id = ANY(%(reached)s::uuid[])
    ) AS reached CROSS JOIN LATERAL (
        SELECT id, merchant_id, key, at, payment, stops, retry_after FROM gateway_carddecline
        WHERE merchant_id = reached.id AND at >= %(since)s::timestamptz - interval '{MAX_RULE_DAYS} days'
            AND at < %(until)s
    ) AS c ORDER BY c.at DESC LIMIT {MAX_COUNTED_DECLINES}
), counted AS (
    SELECT kept.*,
        count(*) OVER month - count(*) OVER moment + row_number() OVER moment_in_order AS in_a_month,
        count(*) OVER day - count(*) OVER moment + row_number() OVER moment_in_order AS in_a_day,
        coalesce(bool_or(stops = 'card' AND retry_after IS NULL) OVER before, false) AS forbidden,
        row_number() OVER (PARTITION BY payment ORDER BY id) AS attempt
    FROM kept WINDOW
        month AS (PARTITION BY merchant_id, key ORDER BY at
            RANGE BETWEEN interval '{MAX_RULE_DAYS} days' PRECEDING AND CURRENT ROW),
        day AS (PARTITION BY merchant_id, key ORDER BY at RANGE BETWEEN interval '1 day' PRECEDING AND CURRENT ROW),
        moment AS (PARTITION BY merchant_id, key, at),
        moment_in_order AS (PARTITION BY merchant_id, key, at ORDER BY id),
        before AS (PARTITION BY merchant_id, key ORDER BY at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT p.brand, count(*), count(*) FILTER (WHERE d.attempt > 1),
    count(*) FILTER (WHERE NOT d.forbidden AND ({_build_excess_sql()})), count(*) FILTER (WHERE d.forbidden)
FROM counted d JOIN gateway_payment p ON p.id = d.payment
WHERE d.at >= %(since)s AND {SCOPE_CONDITION.format(table="p")} GROUP BY 1
"""


def compute_cascades(period: ApprovalPeriod) -> list[CascadeFigures]:
    """What second acquirers did in a period, the most used currency first."""
    return [
        CascadeFigures(currency=currency, payments=payments, attempts=int(attempts), saved=saved, money=money)
        for currency, payments, attempts, saved, money in read_chosen(_CASCADES, period.values())
    ]


def compute_chances(period: ApprovalPeriod) -> list[CascadeChance]:
    """What second acquirers were not asked for."""
    pairs = [f"{row.result} {response}" for row in CASCADABLE_DECLINES for response in sorted(row.responses)]
    values = {**period.values(), "cascadable": pairs, "no_advice": sorted(NO_ADVICE)}
    rows = read_chosen(_CHANCES, values)
    return [CascadeChance(currency=currency, payments=payments, money=money) for currency, payments, money in rows]


def count_retries(period: ApprovalPeriod) -> list[RetryCounts]:
    """What the networks count of the period's declined attempts, as far as declines are retained (MAX_RULE_DAYS)."""
    found: dict[str, RetryCounts] = {}
    row: tuple[Any, ...]
    for row in read_sql(_RETRIES, period.values()):
        network = resolve_network(row[0])
        one = found.setdefault(network, RetryCounts(network=network))
        one.declines += row[1]
        one.further += row[2]
        one.excessive += row[3]
        one.forbidden += row[4]
    return sorted(found.values(), key=lambda one: (-one.declines, one.network))
