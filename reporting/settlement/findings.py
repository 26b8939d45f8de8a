"""Detects what is wrong with settlement records: a table of kinds, each an SQL condition on a record and its payment.

All kinds are evaluated for a whole batch in one statement. An unmatched record needs no finding: its state puts it into
the exception queue (reporting.settlement.exception_queue). Payments without a record are in
reporting.settlement.missing_settlements.
"""

# ruff: noqa: S608 - statements are built from this module's own tables only; values are always bound
from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.db import connection

from gateway.core.money import CURRENCY_CODES, currency_exponent
from reporting.settlement.layout import THREE_DECIMALS, infer_cashflow
from reporting.settlement.matching import (
    INBOUND_TYPES,
    MAX_PRESENTMENT_DAYS_APART,
    MatchingRun,
    build_earlier_reversal_sql,
)
from reporting.settlement.models import RecordType, TransactionType


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingKind:
    """A kind of finding. ``about``: an explanation for the clerk. ``when``, ``expected``, ``found``: SQL on ``j``, a
    record with its payment (columns p_…, null without one). ``alone``: it needs no payment, and never changes."""

    name: str
    about: str
    when: str = "false"
    expected: str = "''"
    found: str = "''"
    alone: bool = False


def _expected_cashflow_sql() -> str:
    """SQL: POS or NEG, the usual direction of such a record."""
    away = []
    for record_type in RecordType.values:
        for transaction_type in TransactionType.values:
            with contextlib.suppress(KeyError):
                if infer_cashflow(record_type, transaction_type) == "NEG":
                    away.append(f"'{record_type}/{transaction_type}'")
    return f"CASE WHEN j.record_type || '/' || j.transaction_type IN ({', '.join(away)}) THEN 'NEG' ELSE 'POS' END"


_SETTLED: Final = "j.record_type = 'SETTLED' AND j.payment IS NOT NULL"
_AWAY: Final = "CASE WHEN j.cashflow = 'POS' THEN -1 ELSE 1 END"
_DECIMALS: Final = (
    "CASE WHEN j.settlement_currency IN ("
    + ", ".join(f"'{code}'" for code in sorted(CURRENCY_CODES) if currency_exponent(code) >= THREE_DECIMALS)
    + ") THEN 3 ELSE 2 END"
)
"""SQL: decimals of what is paid out."""
_PAID: Final = (
    f"CASE WHEN j.record_type = 'FEE' THEN round(j.amount * j.fx_rate, {_DECIMALS})"
    f" ELSE round(j.amount * j.fx_rate + {_AWAY} * coalesce(j.settlement_fee, 0), {_DECIMALS}) END"
)
# The rate itself is rounded: tolerate half of its last digit times the amount.
_TOLERANCE: Final = (
    "0.01 + CASE WHEN j.currency = j.settlement_currency THEN 0"
    " ELSE j.amount * power(10::numeric, -scale(j.fx_rate)) END"
)
# The institute's first such fee, by its own id of the line; without one, of the same payout in another file.
_FEE_BEFORE: Final = """CASE WHEN j.record_type <> 'FEE' THEN false WHEN j.settlement_tx_id <> '' THEN (
    SELECT e.id FROM reporting_settlementrecord e
    WHERE e.record_type = 'FEE' AND e.settlement_tx_id <> '' AND e.institute_id = %(institute)s
        AND e.settlement_tx_id = j.settlement_tx_id AND e.transaction_type = j.transaction_type AND e.amount = j.amount
        AND e.institute_merchant_id = j.held_at AND e.currency = j.currency
    ORDER BY e.recorded_at, e.line LIMIT 1) <> j.record
ELSE (
    SELECT e.file_id FROM reporting_settlementrecord e
    WHERE e.record_type = 'FEE' AND e.settlement_tx_id = '' AND e.settlement_id = j.settlement
        AND e.transaction_type = j.transaction_type AND e.amount = j.amount
    ORDER BY e.recorded_at, e.line LIMIT 1) <> j.file END"""
_FEE: Final = "round(j.amount * j.fx_rate * coalesce(i.fee_percent, 0) / 100 + coalesce(i.fee_fixed, 0), 4)"

FINDING_KINDS: Final = (
    FindingKind(name="UNKNOWN_ACCOUNT", about="No merchant account has this ClearingInstituteMerchantId.", alone=True,
         when="NOT j.account_known", found="j.held_at"),
    FindingKind(name="DIRECTION", about="Such a line usually flows the other way.", alone=True,
         when=f"j.cashflow <> {_expected_cashflow_sql()}", expected=_expected_cashflow_sql(), found="j.cashflow"),
    FindingKind(name="ARITHMETIC", about="Amount, rate and fee do not make the settlement amount.", alone=True,
         when=f"abs(j.settlement_amount - {_PAID}) >= {_TOLERANCE}", expected=f"({_PAID})::text",
         found=f"round(j.settlement_amount, {_DECIMALS})::text"),
    FindingKind(name="FEE", about="The fee is not the agreed one.", alone=True,
         when="j.record_type = 'SETTLED' AND j.transaction_type = 'DEBIT'"
              " AND (i.fee_percent IS NOT NULL OR i.fee_fixed IS NOT NULL)"
              f" AND abs(coalesce(j.settlement_fee, 0) - {_FEE}) >= 0.01",
         expected=f"({_FEE})::text", found="coalesce(j.settlement_fee, 0)::text"),
    FindingKind(name="FAILED", about="The institute says that it could not settle this.", alone=True,
         when="j.settlement_status = 'FAILED'", expected="'SUCCESS'", found="'FAILED'"),
    FindingKind(name="OTHER_ACCOUNT", about="The payment was made with another merchant account.",
         when="j.payment IS NOT NULL AND j.account_known AND j.p_held_at <> j.held_at", expected="j.p_held_at",
         found="j.held_at"),
    FindingKind(name="STATUS", about="The payment was not approved.",
         when="j.payment IS NOT NULL AND j.p_status <> 'APPROVED'", expected="'APPROVED'", found="j.p_status"),
    FindingKind(name="TYPE", about="The line is of another type than the payment.",
         when=f"{_SETTLED} AND j.p_inward <> (j.transaction_type = 'DEBIT')",
         expected="CASE WHEN j.p_kind IN ('RF', 'RV') THEN 'REFUND'"
                  " WHEN j.p_kind = 'CD' THEN 'CREDIT' ELSE 'DEBIT' END",
         found="j.transaction_type"),
    FindingKind(name="CURRENCY", about="The payment was made in another currency.",
         when="j.payment IS NOT NULL AND j.p_currency <> j.currency", expected="j.p_currency", found="j.currency"),
    FindingKind(name="AMOUNT", about="The payment has another amount; of a chargeback: less than it takes.",
         when="j.payment IS NOT NULL AND j.p_currency = j.currency AND CASE WHEN j.record_type = 'SETTLED'"
              " THEN j.p_net <> j.amount ELSE j.p_net < j.amount END",
         expected="j.p_net::text", found="round(j.amount, 2)::text"),
    FindingKind(name="DATE", about="The dates do not fit the payment's.",
         when=f"{_SETTLED} AND (j.settlement_date < j.p_day OR j.presented_at_known AND"
              f" abs(j.presented_on - j.p_day) > {MAX_PRESENTMENT_DAYS_APART})",
         expected="j.p_day::text",
         found="CASE WHEN j.settlement_date < j.p_day THEN j.settlement_date ELSE j.presented_on END::text"),
    FindingKind(name="TWICE", about="Another line told of the same already.",
         when=f"{_FEE_BEFORE} OR {_SETTLED} AND j.others IS NOT NULL"
              " AND EXISTS (SELECT 1 FROM reporting_settlementrecord e WHERE e.id = ANY(j.others)"
              " AND (j.by_hand OR e.file_id <> j.file AND e.recorded_at <= j.recorded_at"
              " OR e.file_id = j.file AND e.line < j.line))",
         expected="'one line'", found="'another line'"),
    FindingKind(name="NOT_BOOKED", about="The chargeback, or its reversal, cannot be entered into the ledger."),
)  # fmt: skip
FINDING_KIND_BY_NAME: Final = MappingProxyType({kind.name: kind for kind in FINDING_KINDS})
"""NOT_BOOKED is written by reporting.settlement.chargeback_booking."""


def _double_settlement_sql(payment: str, record: str) -> str:
    """SQL for other records that settled the same payment. One index lookup, which nearly always finds nothing.

    Only the payment is looked up. With more conditions a partial index would look as good to a planner that does not
    know yet how large the table has become, and would be read whole for every line.
    """
    return (
        "(SELECT array_agg(o.record_id) FILTER (WHERE o.chosen AND o.undone_at IS NULL AND o.record_type = 'SETTLED'"
        f" AND o.record_id <> {record}) FROM reporting_match o WHERE o.payment = {payment}) AS others"
    )


_FROM_BATCH: Final = f"""
SELECT s.id AS record, %(file)s AS file, s.settlement_tx_id,
    CASE WHEN s.record_type = 'FEE' AND s.settlement_tx_id = '' THEN (SELECT t.id FROM reporting_settlement t
        WHERE t.institute_id = %(institute)s AND t.institute_merchant_id = s.institute_merchant_id
        AND t.reference = s.reference AND t.date = s.settlement_date AND t.currency = s.settlement_currency
    ) END AS settlement, s.line, %(now)s AS recorded_at, coalesce(h.merchant, f.merchant) AS merchant,
    f.payment, false AS by_hand, s.record_type, s.transaction_type, s.cashflow, s.institute_merchant_id AS held_at,
    h.held_at IS NOT NULL AS account_known, s.amount, s.currency, s.presented_at IS NOT NULL AS presented_at_known,
    (coalesce(s.presented_at, %(received)s) AT TIME ZONE %(zone)s)::date AS presented_on, s.settlement_amount,
    s.settlement_currency, s.settlement_fee, s.fx_rate, s.settlement_date, s.settlement_status,
    f.status AS p_status, f.kind AS p_kind, f.inward AS p_inward, f.net AS p_net, f.currency AS p_currency,
    f.held_at AS p_held_at, f.day AS p_day, {_double_settlement_sql("f.payment", "s.id")}
FROM staged s LEFT JOIN held h ON h.held_at = s.institute_merchant_id
LEFT JOIN found f ON f.record = s.id AND f.many = 1"""

_FROM_RECORDS: Final = f"""
SELECT r.id AS record, r.file_id AS file, r.settlement_tx_id, r.settlement_id AS settlement,
    r.line, r.recorded_at, r.merchant_id AS merchant, m.payment,
    m.rule = 'clerk' AS by_hand, r.record_type,
    r.transaction_type, r.cashflow, r.institute_merchant_id AS held_at, true AS account_known, r.amount, r.currency,
    r.presented_at_known, (r.presented_at AT TIME ZONE s.time_zone)::date AS presented_on, r.settlement_amount,
    r.settlement_currency, r.settlement_fee, r.fx_rate, r.settlement_date, r.settlement_status, p.status AS p_status,
    p.payment_type AS p_kind, p.payment_type IN ({", ".join(f"'{kind}'" for kind in INBOUND_TYPES)}) AS p_inward,
    coalesce(p.approved_amount, p.amount) - coalesce((SELECT sum(v.approved_amount) FROM gateway_payment v
        WHERE v.chain = p.chain AND v.referenced = p.id AND {build_earlier_reversal_sql("v")}), 0) AS p_net,
    p.currency AS p_currency,
    CASE WHEN p.acquirer_merchant_id = '' THEN replace(p.channel_id::text, '-', '')
         ELSE p.acquirer_merchant_id END AS p_held_at,
    (p.created_at AT TIME ZONE s.time_zone)::date AS p_day, {_double_settlement_sql("m.payment", "r.id")}
FROM reporting_settlementrecord r JOIN reporting_settlementfile s ON s.id = r.file_id
JOIN reporting_match m ON m.record_id = r.id AND m.chosen AND m.undone_at IS NULL
JOIN gateway_payment p ON p.id = m.payment
WHERE r.id = ANY(%(records)s)"""


def _findings_sql(source: str, kinds: Sequence[FindingKind]) -> str:
    """SQL: one pass over the lines for all kinds. Nearly every line ends at the last condition without a finding.
    OFFSET 0 makes the planner evaluate once what several conditions use."""
    wrong = " OR ".join(f"({kind.when})" for kind in kinds)
    kinds_sql = ", ".join(f"CASE WHEN {kind.when} THEN '{kind.name}' END" for kind in kinds)
    expected = " ".join(f"WHEN '{kind.name}' THEN {kind.expected}" for kind in kinds)
    found = " ".join(f"WHEN '{kind.name}' THEN {kind.found}" for kind in kinds)
    return f"""
INSERT INTO reporting_finding (record_id, merchant_id, payment, kind, expected, found, made_at, closed_by, note)
SELECT j.record, j.merchant, j.payment, k.kind, left(CASE k.kind {expected} END, 128),
    left(CASE k.kind {found} END, 128), %(now)s, '', ''
FROM ({source} OFFSET 0) j
CROSS JOIN (SELECT fee_percent, fee_fixed FROM reporting_clearinginstitute WHERE id = %(institute)s) i
CROSS JOIN LATERAL unnest(array_remove(ARRAY[{kinds_sql}], NULL)) AS k(kind)
WHERE {wrong}"""


_ASKED: Final = tuple(kind for kind in FINDING_KINDS if kind.when != "false")
_BATCH: Final = _findings_sql(_FROM_BATCH, _ASKED)
_LATER: Final = _findings_sql(_FROM_RECORDS, [kind for kind in _ASKED if not kind.alone])


def detect_batch_findings(run: MatchingRun, now: datetime) -> None:
    """Record findings for the batch that ``run`` has just written."""
    with connection.cursor() as cursor:
        # Tables that are being filled have no useful statistics: the planner would read all matches for every line.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(_BATCH, {**run.values, "now": now})
        cursor.execute("SET LOCAL enable_seqscan = on")


def detect_record_findings(records: Sequence[UUID], institute: UUID, now: datetime) -> None:
    """Record findings for records that were given a payment later."""
    if records:
        with connection.cursor() as cursor:
            values: dict[str, Any] = {"records": list(records), "institute": institute, "now": now}
            cursor.execute(_LATER, values)
