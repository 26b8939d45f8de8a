"""Finds missing settlements: approved payments that no record settles, and days without a file."""

# ruff: noqa: S608 - statements are built from this module's own conditions only; values are always bound

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Q

from gateway.core import clock
from gateway.models import Merchant, Payment
from reporting.settlement.matching import OUTBOUND_TYPES, build_earlier_reversal_sql, build_refund_reversal_sql
from reporting.settlement.models import ClearingInstitute, SettlementFile

MAX_MISSING_PAYMENTS: Final = 10_000
"""Payments of one answer; callers with more ask for shorter periods."""
MISSING_LOOKBACK: Final = timedelta(days=14)
SETTLED_PAYMENT_TYPES: Final = ("DB", "CP", "RB", *OUTBOUND_TYPES)
"""Payment types that an institute settles. A receipt (RC) records money that came in by itself."""
_TYPES_PAID_AWAY: Final = (*OUTBOUND_TYPES, "RV")


def _build_net_amount_sql(chain: str = "v.chain = p.chain") -> str:
    """SQL: what of the payment ``p`` is to be settled: less what was reversed before. ``chain``: that ``v`` is of its
    chain."""
    return f"""p.approved_amount - coalesce((SELECT sum(v.approved_amount) FROM gateway_payment v
        WHERE {chain} AND v.referenced = p.id AND {build_earlier_reversal_sql("v")}), 0)"""


_SIGNED_AMOUNT: Final = f"""CASE WHEN p.payment_type = ANY(%(away)s) THEN -1 ELSE 1 END * ({_build_net_amount_sql()})"""
"""SQL: what settling the payment ``p`` adds to the payout: refunds, credits and reversals take away."""


def build_unsettled_payment_sql(matches: str = "true", chain: str = "v.chain = p.chain") -> str:
    """SQL: whether the payment ``p`` is one that an institute settles, and no record says so. ``matches``: SQL on the
    matches ``m`` that count; ``chain``: that ``v`` is of its chain; ``kinds``: SETTLED_PAYMENT_TYPES. A transfer to a
    shopper that failed or came back is not waited for: a processor may settle neither it nor its way back."""
    return f"""p.status = 'APPROVED' AND p.returned_at IS NULL
    AND (p.payment_type = ANY(%(kinds)s) OR {build_refund_reversal_sql("p")})
    AND {_build_net_amount_sql(chain)} > 0
    AND NOT EXISTS (SELECT 1 FROM reporting_match m WHERE m.payment = p.id AND m.chosen AND m.undone_at IS NULL
        AND m.record_type = 'SETTLED' AND {matches})"""


_UNSETTLED: Final = f"p.connector = ANY(%(connectors)s) AND {build_unsettled_payment_sql()}"
_MISSING: Final = f"""
SELECT p.id, p.currency, {_SIGNED_AMOUNT} FROM gateway_payment p
WHERE p.created_at >= %(first)s AND p.created_at < %(last)s
    AND (%(merchant)s::uuid IS NULL OR p.merchant_id = %(merchant)s::uuid) AND {_UNSETTLED}
ORDER BY p.created_at, p.id LIMIT %(most)s"""
# Days are in the institute's time zone; today is by each merchant's clock.
_DAYS_OF_MERCHANTS: Final = """
SELECT id, ((%(now)s + clock_offset) AT TIME ZONE %(zone)s)::date AS today FROM gateway_merchant"""
_OVERDUE: Final = f"""p.merchant_id = m.id
        AND p.created_at >= greatest(m.today - %(days)s - %(back)s - 1, %(since)s)::timestamp AT TIME ZONE %(zone)s
        AND p.created_at < (m.today - %(days)s)::timestamp AT TIME ZONE %(zone)s AND {_UNSETTLED}"""
_OLDEST: Final = f"""
SELECT p.id FROM ({_DAYS_OF_MERCHANTS} WHERE id = ANY(%(merchants)s::uuid[])) m
CROSS JOIN LATERAL (
    SELECT p.id, p.created_at FROM gateway_payment p WHERE {_OVERDUE} ORDER BY p.created_at, p.id LIMIT %(most)s
) p
ORDER BY p.created_at, p.id LIMIT %(most)s"""
_COUNTED: Final = f"""
SELECT m.id, m.today, p.currency, p.many, p.amount
FROM ({_DAYS_OF_MERCHANTS}) m
CROSS JOIN LATERAL (
    SELECT p.currency, count(*) AS many, sum({_SIGNED_AMOUNT}) AS amount FROM gateway_payment p
    WHERE {_OVERDUE}
    GROUP BY p.currency
) p"""


class UnsettledAmount(NamedTuple):
    """An unsettled payment, by its id. ``amount``: what settling it adds to the payout, below zero for a refund."""

    payment: UUID
    currency: str
    amount: Decimal


def list_unsettled_payments(
    institute: ClearingInstitute, first: date, last: date, merchant: Merchant | None = None
) -> list[Payment]:
    """Approved payments of the days ``first`` to ``last``, in the institute's time zone, that no record has settled.

    Payments younger than the institute's settlement time are not missing yet: the caller passes a ``last`` that leaves
    them out.
    """
    return load_payments([one.payment for one in list_unsettled_amounts(institute, first, last, merchant)])


def load_payments(ids: Sequence[UUID]) -> list[Payment]:
    """The payments with these ids, in their order; one that was archived or deleted meanwhile is left out."""
    by_id = Payment.objects.in_bulk(ids)
    return [by_id[ident] for ident in ids if ident in by_id]


def list_unsettled_amounts(
    institute: ClearingInstitute, first: date, last: date, merchant: Merchant | None = None
) -> list[UnsettledAmount]:
    """The amounts of :func:`list_unsettled_payments`, oldest first: MAX_MISSING_PAYMENTS whole payments would take more
    memory than a page may."""
    begins, ends = clock.bound_days(first, last, institute.zone)
    values: dict[str, Any] = {
        "first": begins,
        "last": ends,
        "connectors": list(institute.connectors),
        "kinds": list(SETTLED_PAYMENT_TYPES),
        "away": list(_TYPES_PAID_AWAY),
        "most": MAX_MISSING_PAYMENTS,
        "merchant": merchant.pk if merchant is not None else None,
    }
    with connection.cursor() as cursor:
        cursor.execute(_MISSING, values)
        return [UnsettledAmount._make(row) for row in cursor.fetchall()]


def list_overdue_payments(institute: ClearingInstitute, merchant: Merchant) -> list[Payment]:
    """The merchant's overdue payments of the last two weeks: older than the institute's settlement time by the
    merchant's clock, and made since the institute was set up."""
    zone = institute.zone
    last = clock.merchant_now(merchant).astimezone(zone).date() - timedelta(days=institute.settles_within_days + 1)
    first = max(last - MISSING_LOOKBACK, institute.created_at.astimezone(zone).date())
    return list_unsettled_payments(institute, first, last, merchant) if first <= last else []


def list_oldest_overdue_payments(
    institute: ClearingInstitute, merchants: Sequence[UUID], now: datetime, most: int
) -> list[Payment]:
    """The ``most`` oldest of what :func:`list_overdue_payments` lists for each of the merchants at ``now`` (real time),
    by two queries however many merchants there are; each payment with its merchant."""
    values = {**_bind_overdue(institute, now), "merchants": list(merchants), "most": most}
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST, values)
        found: list[UUID] = [ident for (ident,) in cursor.fetchall()]
    by_id = Payment.objects.select_related("merchant").in_bulk(found)
    return [by_id[ident] for ident in found]


def _bind_overdue(institute: ClearingInstitute, now: datetime) -> dict[str, Any]:
    return {
        "now": now,
        "zone": institute.time_zone,
        "days": institute.settles_within_days,
        "back": MISSING_LOOKBACK.days,
        "since": institute.created_at.astimezone(institute.zone).date(),
        "connectors": list(institute.connectors),
        "kinds": list(SETTLED_PAYMENT_TYPES),
    }


def count_overdue_payments(institute: ClearingInstitute, now: datetime) -> list[tuple[UUID, date, str, int, Decimal]]:
    """Count the payments of :func:`list_overdue_payments` for every merchant with any at ``now`` (real time):
    (merchant, their day, currency, count, and what settling them adds to the payout)."""
    values = {**_bind_overdue(institute, now), "away": list(_TYPES_PAID_AWAY)}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, values)
        found: list[tuple[UUID, date, str, int, Decimal]] = cursor.fetchall()
    return found


def list_recent_days_without_file(institute: ClearingInstitute) -> list[date]:
    """Days of the last two weeks without their file, oldest first; none before the institute was set up."""
    today = clock.real_now().astimezone(institute.zone).date()
    first = max(today - MISSING_LOOKBACK, institute.created_at.astimezone(institute.zone).date())
    return list_days_without_file(institute, first, today - timedelta(days=1)) if first < today else []


def list_days_without_file(institute: ClearingInstitute, first: date, last: date) -> list[date]:
    """The days on which a file was expected and none came, in the institute's time zone."""
    begins, ends = clock.bound_days(first, last, institute.zone)
    came = {
        at.astimezone(institute.zone).date()
        for at in SettlementFile.objects.filter(institute=institute, received_at__gte=begins, received_at__lt=ends)
        .exclude(Q(state=SettlementFile.State.FAILED) | Q(source=SettlementFile.Source.LEDGER))
        .values_list("received_at", flat=True)
    }
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    return [day for day in days if day.isoweekday() in institute.expects_files_on and day not in came]
