"""Matches settlement records with payments, a batch of lines at a time, as set operations in SQL.

Ids go first: ours, then the institute's. They are looked up in a temporary copy of the last weeks' payments
(``known``), made once per run for its connection: the payments table has no index by the acquirer's id, since every
payment would have to pay for it. Records without an id are matched once the file is read: by the merchant's
reference, then by amount, currency, day and account; and ids are looked up among older payments.

A record with an unknown id is not matched by its amount: it could be the wrong payment. Such payments are its
candidates (reporting.settlement.exception_queue), and a clerk decides. docs/decisions/0027.
"""

# ruff: noqa: S608 - statements are built from this module's own tables only; values are always bound
from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg
from django.db import DatabaseError, connection, transaction

from gateway.core.identifiers import first_id_at
from gateway.payments.operation_table import REVERSED_BY_REFUND
from reporting.settlement.layout import STAGED_COLUMNS
from reporting.settlement.models import SettlementFile

RECENT_PAYMENTS_WINDOW: Final = timedelta(days=60)
"""Age, in real time, of the payments that the first pass covers. The second one covers all."""
MAX_STORED_CANDIDATES: Final = 20
MAX_LINE_NUMBER: Final = 2**31 - 1
TEMP_BUFFERS: Final = "128MB"
"""PostgreSQL's memory for the copies, at most: with the default of 8 MB nearly every lookup of an id would read a
page."""
MAX_PRESENTMENT_DAYS_APART: Final = 1
"""Between a payment's day and its presentment, both in the institute's time zone."""

_COLUMN_NAMED: Final = re.compile(r", column ([a-z0-9_]+)")
INBOUND_TYPES: Final = ("DB", "CP", "RB", "RC")
OUTBOUND_TYPES: Final = ("CD", "RF")
DISPUTABLE_TYPES: Final = ("DB", "CP", "RB")


def _list(kinds: Sequence[str]) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds)


REVERSED_BY_REFUND_SQL: Final = f"IN ({_list(sorted(REVERSED_BY_REFUND))})"
"""SQL: a connector whose reversals of debits are settled as refunds, so that the debit is settled as it was."""


def build_earlier_reversal_sql(row: str) -> str:
    """SQL: whether a payment is a reversal that leaves less of another one to be settled: none that its processor
    settles as a refund, and none that came back."""
    return (
        f"{row}.payment_type = 'RV' AND {row}.status = 'APPROVED' AND {row}.returned_at IS NULL"
        f" AND NOT {row}.connector {REVERSED_BY_REFUND_SQL}"
    )


def build_refund_reversal_sql(row: str) -> str:
    """SQL: whether a payment is a reversal that its processor settles as a refund."""
    return (
        f"{row}.payment_type = 'RV' AND {row}.connector {REVERSED_BY_REFUND_SQL} AND EXISTS ("
        f"SELECT 1 FROM gateway_payment b WHERE b.id = {row}.referenced AND b.payment_type <> 'PA')"
    )


def _known(name: str, chosen: str) -> str:
    """SQL: copy payments into a temporary table. ``net``: amount to be settled: approved, less what was reversed
    before, unless the reversal is settled as a refund, a payment of its own. ``day``: in the institute's time zone.
    ``held_at``: the merchant's id at the institute; for the simulator the channel's."""
    return f"""
CREATE TEMP TABLE {name} AS
SELECT p.id AS payment, p.connector_tx_id AS tx, p.merchant_id AS merchant,
    CASE WHEN p.acquirer_merchant_id = '' THEN replace(p.channel_id::text, '-', '')
         ELSE p.acquirer_merchant_id END AS held_at,
    p.payment_type AS kind, p.payment_type IN ({_list(INBOUND_TYPES)}) AS inward, p.status, p.currency,
    coalesce(p.approved_amount, p.amount) - coalesce(r.taken, 0) AS net,
    p.merchant_transaction_id AS reference, (p.created_at AT TIME ZONE %(zone)s)::date AS day
FROM gateway_payment p
LEFT JOIN (
    SELECT v.referenced, sum(v.approved_amount) AS taken FROM gateway_payment v
    WHERE {build_earlier_reversal_sql("v")} AND v.id >= %(floor)s GROUP BY v.referenced
) r ON r.referenced = p.id
WHERE p.id >= %(floor)s AND p.connector = ANY(%(connectors)s)
    AND (p.payment_type IN ({_list(INBOUND_TYPES + OUTBOUND_TYPES)}) OR {build_refund_reversal_sql("p")}) {chosen}"""


_ACCOUNTS: Final = """
CREATE TEMP TABLE held AS
SELECT held_at, CASE WHEN count(DISTINCT account) = 1 THEN min(account::text)::uuid END AS account,
    CASE WHEN count(DISTINCT merchant) = 1 THEN min(merchant::text)::uuid END AS merchant
FROM (
    SELECT a.acquirer_merchant_id AS held_at, a.id AS account, c.merchant_id AS merchant
    FROM gateway_acquireraccount a JOIN gateway_channel c ON c.id = a.channel_id
    WHERE a.connector = ANY(%(connectors)s)
    UNION ALL
    SELECT replace(c.id::text, '-', ''), c.id, c.merchant_id FROM gateway_channel c
    WHERE 'simulator' = ANY(%(connectors)s)
) every GROUP BY held_at"""

_STAGED: Final = f"CREATE TEMP TABLE staged ({', '.join(f'{name} {kind}' for name, kind in STAGED_COLUMNS)})"

# For each line of ``asked`` the payments named by the first of its ids that names any, and of these the ones whose
# account and direction fit best, then those of the very sum: captures of one authorization may share its id. A
# chargeback is about a payment that brought money, of which it may be a part. No line ever matches another
# merchant's payment. Each id is one lookup in an index of ``known``: a join would read the whole copy again for
# every batch (OFFSET 0 keeps the planner from turning it into one).
_IDS: Final = (
    ("our_id", "payment", "our id", "a.our_id IS NOT NULL"), ("tx_id1", "tx", "id 1", "a.tx_id1 <> ''"),
    ("tx_id2", "tx", "id 2", "a.tx_id2 <> ''"), ("tx_id3", "tx", "id 3", "a.tx_id3 <> ''"),
)  # fmt: skip
_OF_PAYMENT: Final = ("payment", "merchant", "held_at", "kind", "inward", "status", "net", "currency", "day")
_HITS: Final = " UNION ALL ".join(
    f"""
    SELECT a.id AS record, '{rule}' AS rule, {rank} AS rank, a.institute_merchant_id AS named, a.transaction_type,
        a.record_type, a.record_type = 'SETTLED' AND (k.net <> a.amount OR k.currency <> a.currency) AS other_sum,
        {", ".join(f"k.{name}" for name in _OF_PAYMENT)}
    FROM {{asked}} a CROSS JOIN LATERAL (SELECT * FROM {{known}} k WHERE k.{theirs} = a.{ours} OFFSET 0) k
    WHERE {present} AND (a.record_type = 'SETTLED' OR k.kind IN ({_list(DISPUTABLE_TYPES)}))
        AND (a.merchant_id IS NULL OR a.merchant_id = k.merchant)"""
    for rank, (ours, theirs, rule, present) in enumerate(_IDS, 1)
)
_BY_IDS: Final = f"""
hits AS ({_HITS}),
weighed AS (
    SELECT *, rank() OVER (
        PARTITION BY record ORDER BY rank, (held_at <> named), (inward <> (transaction_type = 'DEBIT')), other_sum
    ) AS place
    FROM hits
),
found AS (
    SELECT record, record_type, rule, {", ".join(_OF_PAYMENT)}, count(*) OVER (PARTITION BY record) AS many,
        count(*) OVER (PARTITION BY record, merchant) AS of_merchant,
        row_number() OVER (PARTITION BY record ORDER BY payment) AS number
    FROM weighed WHERE place = 1
)"""

_FOUND: Final = f"""
WITH asked AS (
    SELECT s.id, s.our_id, s.tx_id1, s.tx_id2, s.tx_id3, s.institute_merchant_id, s.transaction_type, s.record_type,
        s.amount, s.currency, h.merchant AS merchant_id
    FROM staged s LEFT JOIN held h ON h.held_at = s.institute_merchant_id
),
{_BY_IDS.format(asked="asked", known="known")}
SELECT record, record_type, rule, {", ".join(_OF_PAYMENT)}, many, of_merchant, number
FROM found WHERE number <= {MAX_STORED_CANDIDATES}"""

_TAKEN_OVER: Final = tuple(
    name for name, _ in STAGED_COLUMNS if name not in ("line", "id", "reference", "presented_at")
)

_SETTLEMENTS: Final = """
INSERT INTO reporting_settlement (id, institute_id, institute_merchant_id, reference, date, currency, merchant_id,
    account, created_at)
SELECT gen_random_uuid(), %(institute)s, s.institute_merchant_id, s.reference, s.settlement_date,
    s.settlement_currency, h.merchant, h.account, %(now)s
FROM (SELECT DISTINCT institute_merchant_id, reference, settlement_date, settlement_currency FROM staged) s
LEFT JOIN held h ON h.held_at = s.institute_merchant_id
ON CONFLICT (institute_id, institute_merchant_id, reference, date, currency) DO NOTHING"""

# A line that may be about payments of two merchants is neither's until a clerk has decided.
# Outer joins, so that the planner knows that no line is dropped, and hashes the small tables.
_RECORDS: Final = f"""
WITH written AS (
INSERT INTO reporting_settlementrecord (id, file_id, line, settlement_id, institute_id, merchant_id, account,
    {", ".join(_TAKEN_OVER)}, presented_at, presented_at_known, state, without_payment, version, recorded_at)
SELECT s.id, %(file)s, s.line, t.id, %(institute)s,
    coalesce(h.merchant, CASE WHEN f.of_merchant = f.many THEN f.merchant END), h.account,
    {", ".join(f"s.{name}" for name in _TAKEN_OVER)}, coalesce(s.presented_at, %(received)s),
    s.presented_at IS NOT NULL,
    CASE WHEN s.record_type = 'FEE' THEN '' WHEN f.many = 1 THEN 'MATCHED' WHEN f.many > 1 THEN 'MULTIPLE_MATCHES'
        ELSE 'NOT_MATCHED' END, false, 1, %(now)s
FROM staged s
LEFT JOIN reporting_settlement t ON t.institute_id = %(institute)s AND t.institute_merchant_id = s.institute_merchant_id
    AND t.reference = s.reference AND t.date = s.settlement_date AND t.currency = s.settlement_currency
LEFT JOIN held h ON h.held_at = s.institute_merchant_id
LEFT JOIN found f ON f.record = s.id AND f.number = 1
RETURNING state, settlement_date
)
SELECT count(*), count(*) FILTER (WHERE state = 'MATCHED'), count(*) FILTER (WHERE state = 'MULTIPLE_MATCHES'),
    count(*) FILTER (WHERE state = 'NOT_MATCHED'), min(settlement_date), max(settlement_date)
FROM written"""

_MATCHES: Final = """
INSERT INTO reporting_match (record_id, payment, record_type, chosen, rule, by, note, made_at, undone_by)
SELECT f.record, f.payment, f.record_type, f.many = 1, f.rule, '', '', %(now)s, ''
FROM found f"""


class MatchingRun:
    """Matches one file on one connection: temporary copies of payments and accounts, and the current batch.

    ``with MatchingRun(file) as run``: the copies are dropped at the end.
    """

    def __init__(self, file: SettlementFile) -> None:
        self.file = file
        self.values: dict[str, Any] = {
            "zone": file.time_zone,
            "connectors": list(file.institute.connectors),
            "institute": file.institute_id,
            "file": file.id,
            "received": file.received_at,
            "floor": first_id_at(file.received_at - RECENT_PAYMENTS_WINDOW),
        }

    def __enter__(self) -> MatchingRun:
        with connection.cursor() as cursor:
            self._drop(cursor)
            self._make_room(cursor)
            self._copy(cursor, "known", "", self.values)
            cursor.execute(_ACCOUNTS, self.values)
            cursor.execute("CREATE UNIQUE INDEX ON held (held_at)")
            cursor.execute("ANALYZE held")
            cursor.execute(_STAGED)
            cursor.execute(f"CREATE TEMP TABLE found AS {_FOUND} WITH NO DATA")
        return self

    def __exit__(self, *_: object) -> None:
        if connection.is_usable():
            with connection.cursor() as cursor:
                self._drop(cursor)

    @staticmethod
    def _copy(cursor: Any, name: str, chosen: str, values: dict[str, Any]) -> None:
        cursor.execute(_known(name, chosen), values)
        cursor.execute(f"CREATE INDEX ON {name} (payment)")
        cursor.execute(f"CREATE INDEX ON {name} USING hash (tx)")
        cursor.execute(f"ANALYZE {name}")

    @staticmethod
    def _make_room(cursor: Any) -> None:
        """Raise the connection's temp_buffers. Only possible before its first temporary table; memory is used as
        needed."""
        with contextlib.suppress(DatabaseError), transaction.atomic():
            cursor.execute("SELECT set_config('temp_buffers', %s, false)", [TEMP_BUFFERS])

    @staticmethod
    def _drop(cursor: Any) -> None:
        cursor.execute("DROP TABLE IF EXISTS known, older, held, staged, found")

    def stage_batch(self, text: bytes) -> None:
        """Send the lines of one batch, in the caller's transaction. ``text``: lines of COPY."""
        with connection.cursor() as cursor:
            # No ANALYZE: statistics of one batch say nothing about the next, and cost as much as a step.
            cursor.execute("TRUNCATE staged, found")
            with cursor.copy("COPY staged FROM STDIN") as copy:
                copy.write(text)

    def match_batch(self, now: datetime) -> tuple[Any, ...]:
        """Match and write the lines that were staged, in the same transaction.

        Returns the number of records, matched, multiple and unmatched, and the first and last settlement date.
        """
        values = {**self.values, "now": now}
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO found {_FOUND}")
            cursor.execute(_SETTLEMENTS, values)
            cursor.execute(_RECORDS, values)
            counted: tuple[Any, ...] = cursor.fetchone()
            cursor.execute(_MATCHES, values)
            return counted

    def find_rejected_rows(self, rows: Sequence[str]) -> list[tuple[int, str]]:
        """Which of ``rows`` (lines of COPY) the database refuses, each with the staged column it names. In the caller's
        transaction."""
        try:
            # What stays in staged is no match: each batch begins by emptying it.
            with (
                transaction.atomic(),
                connection.cursor() as cursor,
                cursor.copy("COPY staged FROM STDIN") as copy,
            ):
                copy.write("\n".join(rows) + "\n")
        except psycopg.DataError as fault:  # Django does not translate errors of a COPY
            if len(rows) == 1:
                named = _COLUMN_NAMED.search(fault.diag.context or "")
                return [(0, named[1] if named else "")]
            half = len(rows) // 2
            return self.find_rejected_rows(rows[:half]) + [
                (half + at, column) for at, column in self.find_rejected_rows(rows[half:])
            ]
        return []

    def find_slice_end(self, after: int, most: int) -> int | None:
        """The last line of the next ``most`` records without a match after line ``after``; None if there are none."""
        with connection.cursor() as cursor:
            cursor.execute(_SLICE_END, {**self.values, "after": after, "last": MAX_LINE_NUMBER, "most": most})
            found: int | None = cursor.fetchone()[0]
        return found

    def match_remaining(self, now: datetime, *, after: int, last: int) -> int:
        """The second pass, over records without a match of the lines after ``after`` to ``last``. Returns how many it
        matched, wholly or in part. In the caller's transaction; repeating it finds the same and changes nothing."""
        values = {**self.values, "now": now, "floor": UUID(int=0), "after": after, "last": last}
        changed = 0
        with connection.cursor() as cursor:
            cursor.execute(_ANY_ID_LEFT, values)
            if cursor.fetchone()[0]:
                cursor.execute("DROP TABLE IF EXISTS older")
                self._copy(cursor, "older", _NAMED, values)
                cursor.execute(_LATER_BY_IDS, values)
                changed += cursor.fetchone()[0]
            for statement in (_BY_REFERENCE, _BY_AMOUNT):
                cursor.execute(statement, values)
                changed += cursor.fetchone()[0]
        return changed


_LEFT: Final = (
    "r.file_id = %(file)s AND r.state = 'NOT_MATCHED' AND NOT r.without_payment"
    " AND r.line > %(after)s AND r.line <= %(last)s"
)
_SLICE_END: Final = f"""
SELECT max(n.line) FROM (
    SELECT r.line FROM reporting_settlementrecord r WHERE {_LEFT} ORDER BY r.line LIMIT %(most)s
) n"""
_NO_ID: Final = "r.our_id IS NULL AND r.tx_id1 = '' AND r.tx_id2 = '' AND r.tx_id3 = ''"
_ANY_ID_LEFT: Final = f"SELECT EXISTS (SELECT 1 FROM reporting_settlementrecord r WHERE {_LEFT} AND NOT ({_NO_ID}))"
_NAMED: Final = f"""AND (
    p.id IN (SELECT r.our_id FROM reporting_settlementrecord r WHERE {_LEFT} AND r.our_id IS NOT NULL)
    OR p.connector_tx_id IN (
        SELECT unnest(ARRAY[r.tx_id1, r.tx_id2, r.tx_id3]) FROM reporting_settlementrecord r
        WHERE {_LEFT} EXCEPT SELECT ''
    ))"""

# Every rule of the second pass ends here: candidates become matches, and records change their state.
_END: Final = f"""
moved AS (
    UPDATE reporting_settlementrecord r
    SET state = CASE WHEN f.many = 1 THEN 'MATCHED' ELSE 'MULTIPLE_MATCHES' END, version = r.version + 1,
        merchant_id = coalesce(r.merchant_id, f.merchant)
    FROM (SELECT n.record, n.many,
            CASE WHEN count(DISTINCT k.merchant_id) = 1 THEN min(k.merchant_id::text)::uuid END AS merchant
        FROM found n JOIN gateway_payment k ON k.id = n.payment GROUP BY n.record, n.many) f
    WHERE r.id = f.record AND r.state = 'NOT_MATCHED' RETURNING r.id, r.record_type
),
written AS (
    INSERT INTO reporting_match (record_id, payment, record_type, chosen, rule, by, note, made_at, undone_by)
    SELECT f.record, f.payment, m.record_type, f.many = 1, f.rule, '', '', %(now)s, ''
    FROM found f JOIN moved m ON m.id = f.record WHERE f.number <= {MAX_STORED_CANDIDATES}
)
SELECT count(*) FROM moved"""

_LATER_BY_IDS: Final = f"""
WITH left_over AS (SELECT * FROM reporting_settlementrecord r WHERE {_LEFT} AND NOT ({_NO_ID})),
{_BY_IDS.format(asked="left_over", known="older")}, {_END}"""

_FITTING: Final = f"""
    k.status = 'APPROVED' AND k.currency = r.currency AND k.held_at = r.institute_merchant_id
    AND CASE WHEN r.record_type = 'SETTLED' THEN k.net = r.amount AND k.inward = (r.transaction_type = 'DEBIT')
        ELSE k.kind IN ({_list(DISPUTABLE_TYPES)}) AND k.net >= r.amount END
    AND (r.record_type <> 'SETTLED' OR NOT EXISTS (
        SELECT 1 FROM reporting_match m
        WHERE m.payment = k.payment AND m.chosen AND m.undone_at IS NULL AND m.record_type = 'SETTLED'
    ))"""

_BY_REFERENCE: Final = f"""
WITH found AS (
    SELECT r.id AS record, k.payment, 'reference' AS rule, count(*) OVER (PARTITION BY r.id) AS many,
        row_number() OVER (PARTITION BY r.id ORDER BY k.payment) AS number
    FROM reporting_settlementrecord r JOIN known k ON k.reference = r.merchant_transaction_id
    WHERE {_LEFT} AND {_NO_ID} AND r.merchant_transaction_id <> '' AND {_FITTING}
), {_END}"""

# Two identical lines cannot both have the only payment: the first one gets it.
_BY_AMOUNT: Final = f"""
WITH pairs AS (
    SELECT r.id AS record, r.line, k.payment, count(*) OVER (PARTITION BY r.id) AS many,
        row_number() OVER (PARTITION BY r.id ORDER BY k.payment) AS number
    FROM reporting_settlementrecord r JOIN known k ON k.net = r.amount
    WHERE {_LEFT} AND {_NO_ID} AND r.record_type = 'SETTLED' AND {_FITTING}
        AND CASE WHEN r.presented_at_known
            THEN abs(k.day - (r.presented_at AT TIME ZONE %(zone)s)::date) <= {MAX_PRESENTMENT_DAYS_APART}
            ELSE k.day BETWEEN r.settlement_date - {RECENT_PAYMENTS_WINDOW.days} AND r.settlement_date END
), found AS (
    SELECT record, payment, 'amount' AS rule, many, number FROM (
        SELECT *, row_number() OVER (PARTITION BY payment, many = 1 ORDER BY line) AS claim FROM pairs
    ) claimed WHERE many > 1 OR claim = 1
), {_END}"""
