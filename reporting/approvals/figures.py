"""Approval rates by segment over a period: one bounded statement for each breakdown.

An attempt is a first debit or authorization of an amount above zero that an acquirer answered. A purchase is what a
shopper wanted: attempts of one checkout, else those of one run of a schedule (all its runs send the same
merchantTransactionId), else those with one merchantTransactionId, else the attempt alone. It is approved if one of its
attempts was, and counts in the segment of that attempt, else of its last; where its amount was paid in parts, with the
money of all of them. Times are the merchants' clocks.
Source: docs/approval.md; docs/decisions/0107.
"""

# ruff: noqa: S608 - statements are put together out of this module's own constants; values are always bound

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from gateway.access.permissions import AccessScope
from gateway.backoffice.operations.dashboard import SCOPE_CONDITION
from gateway.core.brands import find_issuer
from gateway.core.intervals import ShareInterval, compute_share
from gateway.db.statement import read_sql
from gateway.models import Channel
from gateway.payments.payment_archive import include_archive

MAX_APPROVAL_PAYMENTS: Final = 200_000
"""The newest first payments of a period that figures are computed from."""
UNKNOWN_SEGMENT: Final = "unknown"

ASKED_SQL: Final = """(p.connector NOT IN ('', 'nobody') AND (p.status = 'APPROVED' OR (p.status = 'DECLINED'
    AND p.result_code NOT LIKE '100.380%%' AND p.result_code NOT LIKE '100.390%%' AND p.result_code NOT LIKE '100.396%%'
    AND NOT coalesce(p.answer -> 'resultDetails' ? 'RiskReason', false)
    AND (p.connector_tx_id <> '' OR coalesce(p.answer -> 'resultDetails' ? 'AcquirerResponse', false)
        OR p.result_code LIKE '900.%%'))))"""
"""Whether ``p``, a payment, is an attempt: an acquirer answered, or was not reached. A payment that our own rules
refuse, or whose authentication fails, has its route, too, but no id and no answer of an acquirer."""

# Of each merchant the newest, by the index of merchant and time; of all these the newest again.
_CHOSEN_SQL: Final = f"""
chosen AS MATERIALIZED (
    SELECT p.* FROM (
        SELECT m.id FROM gateway_merchant m WHERE %(all)s OR m.id = ANY(%(reached)s::uuid[])
    ) AS reached CROSS JOIN LATERAL (
        SELECT p.id, p.merchant_id, p.created_at, p.status, p.brand, p.currency, p.amount, p.approved_amount, p.means,
            p.method, p.payment_type, p.connector, p.acquirer_merchant_id, p.result_code, p.email_key, p.follow_ups,
            p.answer -> 'card' ->> 'bin' AS bin, p.answer ? 'exemption' AS exempted, p.request,
            p.status = 'APPROVED' AS approved, p.answer ? 'earlierParts' AS pays_rest, /* more columns */
            {ASKED_SQL} AS asked,
            coalesce(CASE WHEN p.resource_path LIKE '/v1/checkouts/%%' THEN p.resource_path END,
                (p.answer -> 'facts' -> 'schedule' ->> 'id') || ' ' || (p.answer -> 'facts' -> 'schedule' ->> 'dueAt'),
                nullif(p.merchant_transaction_id, ''), p.id::text) AS purchase
        FROM gateway_payment p
        WHERE p.merchant_id = reached.id AND p.created_at >= %(since)s AND p.created_at < %(until)s
            AND p.chain = p.id AND p.payment_type IN ('DB', 'PA') AND p.amount > 0
            AND (%(currency)s = '' OR p.currency = %(currency)s) AND {SCOPE_CONDITION.format(table="p")}
        ORDER BY p.created_at DESC LIMIT {MAX_APPROVAL_PAYMENTS}
    ) AS p ORDER BY p.created_at DESC LIMIT {MAX_APPROVAL_PAYMENTS}
)"""
DECIDING_ORDER_SQL: Final = "approved DESC, status <> 'DECLINED' DESC, asked DESC, created_at DESC, id DESC"
"""Attempts of a purchase, the one first that says what became of it: an approved one, else an undecided one, else the
last that an acquirer answered."""
_FIGURES: Final = f"""
WITH {_CHOSEN_SQL}, summed AS (
    SELECT c.*, CASE WHEN pays_rest THEN max(amount) OVER whole ELSE amount END AS purchase_amount,
        CASE WHEN pays_rest THEN sum(approved_amount) OVER whole ELSE approved_amount END AS purchase_approved
    FROM chosen c WINDOW whole AS (PARTITION BY merchant_id, purchase)
), decided AS (
    SELECT s.*, row_number() OVER (
        PARTITION BY merchant_id, purchase ORDER BY approved DESC, created_at DESC, id DESC
    ) = 1 AS decides
    FROM summed s WHERE asked
)
SELECT {{segment}} AS segment, d.currency, count(*), count(*) FILTER (WHERE approved),
    count(*) FILTER (WHERE decides), count(*) FILTER (WHERE decides AND approved),
    coalesce(sum(d.purchase_amount) FILTER (WHERE decides), 0),
    coalesce(sum(purchase_approved) FILTER (WHERE decides AND approved), 0)
FROM decided d {{joins}} GROUP BY 1, 2
"""
_COUNT: Final = f"WITH {_CHOSEN_SQL} SELECT count(*) FROM chosen"
_PATH: Final = """
CASE WHEN a.flow = 'frictionless' THEN 'frictionless'
    WHEN a.flow IN ('challenge', 'decoupled') THEN 'challenge'
    WHEN a.flow = '3ri' OR coalesce(d.request -> 'standingInstruction' ->> 'source',
        CASE d.request -> 'standingInstruction' ->> 'mode' WHEN 'REPEATED' THEN 'MIT' END) = 'MIT' THEN 'merchant'
    WHEN d.request -> 'threeDSecure' ? 'verificationId' OR d.request -> 'threeDSecure' ? 'eci' THEN 'own proof'
    WHEN d.exempted OR d.request -> 'threeDSecure' ? 'exemptionFlag' THEN 'exemption'
    ELSE 'none' END"""
_SHOPPER: Final = """
CASE WHEN d.email_key IS NULL THEN 'unknown' WHEN EXISTS (
    SELECT 1 FROM gateway_payment e WHERE e.email_key = d.email_key AND e.merchant_id = d.merchant_id
        AND e.status = 'APPROVED' AND e.created_at < d.created_at
) THEN 'returning' ELSE 'new' END"""
# A payment may have a second authentication after a soft decline. The last one that passed is the proof that the
# acquirer had; one that did not pass gave it none.
_AUTHENTICATION_JOIN: Final = """
LEFT JOIN LATERAL (
    SELECT flow FROM gateway_authentication
    WHERE payment = d.id AND (flow = '3ri' OR trans_status IN ('Y', 'A')) ORDER BY attempt DESC LIMIT 1
) AS a ON true"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """A way to divide payments. ``segment``: SQL over ``d``, an attempt; ``rename``: what a segment is shown as."""

    segment: str
    joins: str = ""
    rename: Callable[[str], str] = str


def _name_issuer(card_bin: str) -> str:
    issuer = find_issuer(card_bin) if card_bin else None
    return (issuer.bank if issuer is not None else "") or UNKNOWN_SEGMENT


def _name_country(card_bin: str) -> str:
    issuer = find_issuer(card_bin) if card_bin else None
    return (issuer.country if issuer is not None else "") or UNKNOWN_SEGMENT


def _name_card_type(card_bin: str) -> str:
    issuer = find_issuer(card_bin) if card_bin else None
    return (issuer.type if issuer is not None else "") or UNKNOWN_SEGMENT


def _name_card_level(card_bin: str) -> str:
    issuer = find_issuer(card_bin) if card_bin else None
    return (issuer.level if issuer is not None else "") or UNKNOWN_SEGMENT


BREAKDOWNS: Final[Mapping[str, Breakdown]] = MappingProxyType(
    {
        "all": Breakdown(segment="'all'"),
        "brand": Breakdown(segment="d.brand"),
        "country": Breakdown(segment="coalesce(d.bin, '')", rename=_name_country),
        "issuer": Breakdown(segment="coalesce(d.bin, '')", rename=_name_issuer),
        "cardType": Breakdown(segment="coalesce(d.bin, '')", rename=_name_card_type),
        "cardLevel": Breakdown(segment="coalesce(d.bin, '')", rename=_name_card_level),
        "bin": Breakdown(segment=f"coalesce(d.bin, '{UNKNOWN_SEGMENT}')"),
        "acquirer": Breakdown(segment="concat_ws(' ', d.connector, nullif(d.acquirer_merchant_id, ''))"),
        "hour": Breakdown(segment="to_char(d.created_at AT TIME ZONE %(zone)s, 'HH24')"),
        "day": Breakdown(segment="to_char(d.created_at AT TIME ZONE %(zone)s, 'YYYY-MM-DD')"),
        "means": Breakdown(segment="coalesce(nullif(d.means, ''), d.method)"),
        "threeDSecure": Breakdown(segment=_PATH, joins=_AUTHENTICATION_JOIN),
        "shopper": Breakdown(segment=_SHOPPER),
    }
)
"""Name → breakdown. Country, issuer, type and level are those of the table of BINs."""


@dataclass(slots=True, kw_only=True)
class SegmentMoney:
    """Money of a segment's purchases in one currency."""

    asked: Decimal = Decimal("0.00")
    approved: Decimal = Decimal("0.00")

    @property
    def rate(self) -> float | None:
        """Approved of asked in percent."""
        return float(100 * self.approved / self.asked) if self.asked else None


@dataclass(slots=True, kw_only=True)
class SegmentFigures:
    """Figures of one segment. ``money``: by currency."""

    name: str
    attempts: int = 0
    approved: int = 0
    purchases: int = 0
    approved_purchases: int = 0
    money: dict[str, SegmentMoney] = field(default_factory=dict)

    @property
    def attempt_rate(self) -> ShareInterval | None:
        return compute_share(self.approved, self.attempts)

    @property
    def purchase_rate(self) -> ShareInterval | None:
        return compute_share(self.approved_purchases, self.purchases)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPeriod:
    """What figures cover: payments of ``scope`` from ``since`` until before ``until`` on the merchants' clocks.
    ``zone``: the time zone in which hours and days are counted; ``currency``: only payments in it, '' for all."""

    scope: AccessScope
    since: datetime
    until: datetime
    zone: str = "UTC"
    currency: str = ""

    def values(self) -> dict[str, Any]:
        """The values of the statements of this package."""
        return {
            "all": self.scope.everything,
            "merchants": sorted(self.scope.merchants),
            "channels": sorted(self.scope.channels),
            "reached": _list_reached(self.scope),
            "since": self.since,
            "until": self.until,
            "zone": self.zone,
            "currency": self.currency,
        }


def _list_reached(scope: AccessScope) -> list[UUID]:
    """The merchants of a scope, those of its single channels included."""
    of_channels = Channel.objects.filter(pk__in=scope.channels).values_list("merchant_id", flat=True)
    return sorted(scope.merchants | set(of_channels if scope.channels else ()))


def get_chosen_sql(more: Mapping[str, str] = MappingProxyType({})) -> str:
    """The WITH query ``chosen``: first payments of a period, for statements of this package. ``more``: columns that
    only one of them needs, name → SQL over ``p``, a payment."""
    return _CHOSEN_SQL.replace("/* more columns */", "".join(f"{sql} AS {name}, " for name, sql in more.items()))


def get_tried_sql(more: Mapping[str, str] = MappingProxyType({})) -> str:
    """The WITH queries of ``get_chosen_sql(more)`` and ``tried``: attempts, and whether each decides its purchase."""
    return f"""WITH {get_chosen_sql(more)}, tried AS (
    SELECT c.*, row_number() OVER (PARTITION BY merchant_id, purchase ORDER BY {DECIDING_ORDER_SQL}) = 1 AS decides
    FROM chosen c
)"""


def read_chosen(sql: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Rows of a statement over ``chosen``; payments that were archived are among them."""
    return read_sql(include_archive(sql), values)


def count_chosen(period: ApprovalPeriod) -> int:
    """First payments that figures are computed from; MAX_APPROVAL_PAYMENTS if there are as many or more."""
    return int(read_chosen(_COUNT, period.values())[0][0])


def compute_figures(period: ApprovalPeriod, by: str) -> list[SegmentFigures]:
    """The segments of a breakdown: hours and days in order, else the largest first. Raises KeyError for an unknown
    breakdown."""
    breakdown = BREAKDOWNS[by]
    sql = _FIGURES.format(segment=breakdown.segment, joins=breakdown.joins)
    found = fold_rows(read_chosen(sql, period.values()), breakdown.rename)
    return sorted(found, key=(lambda one: one.name) if by in ("hour", "day") else _by_size)


def _by_size(one: SegmentFigures) -> tuple[int, str]:
    return -one.attempts, one.name


def fold_rows(rows: Iterable[tuple[Any, ...]], rename: Callable[[str], str]) -> list[SegmentFigures]:
    """Rows of a statement of figures as segments, those with the same name as one."""
    found: dict[str, SegmentFigures] = {}
    for segment, currency, attempts, approved, purchases, approved_purchases, asked, granted in rows:
        name = rename(segment)
        one = found.setdefault(name, SegmentFigures(name=name))
        one.attempts += attempts
        one.approved += approved
        one.purchases += purchases
        one.approved_purchases += approved_purchases
        money = one.money.setdefault(currency, SegmentMoney())
        money.asked += asked
        money.approved += granted
    return list(found.values())
