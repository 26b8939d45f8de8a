"""Transaction queries: translates a query's parameters into one SQL statement and renders its rows. Read only.

Every access path is an index in time order, walked until the page is full. Filters without an index scan at most
MAX_SCANNED_ROWS transactions; a query that needs more is refused, never answered in part. Only the first payments of a
long list are read whole by that statement, the others as they are written. Source: Part B, Query; ruling D6;
decision 0026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connections
from django.db.models import prefetch_related_objects

from gateway.catalogue.parse import InvalidParametersError, ParameterError, Parameters
from gateway.core import clock, identifiers
from gateway.db.standby import choose_read_alias
from gateway.db.statement import model_from_row
from gateway.models import Channel, Merchant, Payment, Registration
from gateway.payments.descriptors import lacks_descriptor
from gateway.payments.payment_archive import (
    compute_hot_since,
    find_archived_number,
    has_archive,
    include_archive,
    list_archived_chains,
    list_archived_orders,
)
from gateway.payments.record_only_payments import resolve_success_code
from gateway.payments.registrations import REGISTRATION_DELETED_CODE
from gateway.payments.rendering import render_payment, render_registration

MAX_SCANNED_ROWS: Final = 50_000
"""Rows of one channel that a query scans at most, and the most that it counts for its pages."""
FIRST_SCAN_ROWS: Final = 5_000
"""Rows scanned at first, which usually fill the page; only if they do not, MAX_SCANNED_ROWS are scanned."""
MAX_LINKED_TRANSACTIONS: Final = 5_000
"""Transactions in one answer when linked ones are asked for."""
COMMON_PAYMENT_TYPES: Final = frozenset({"DB", "PA", "CP"})
"""Types found by a scan in time order; the rare ones have an index of their own. See the Payment model."""
COMMON_PAYMENT_METHODS: Final = frozenset({"CC"})
_SECOND: Final = timedelta(seconds=1)
READ_JSON_BYTES: Final = 128 * 1024
"""JSON of payments that is read at once, as the database stores it; as text it is often ten times as long."""
READ_PAYMENTS: Final = 200
"""Payments of a long list that are read whole at once, if their JSON is no longer than that."""
_NAMES: Final = (
    "id", "created_at", "chain", "merchant_id", "channel_id", "payment_type", "method", "number", "referenced", "brand",
    "status", "amount", "currency", "approved_amount", "result_code", "test_mode", "registration", "request_id",
    "expires_at", "expired_at", "returned_at", "archived_at", "request", "answer",
)  # fmt: skip
"""What :func:`render_transaction` needs: a page of hundreds does not load the other columns."""
_LISTED: Final = _NAMES[:7]
"""What a list needs of a payment until that is written."""
_COLUMNS: Final = ", ".join(f'p."{name}"' for name in _NAMES[:-3])
# What is stored is counted without being decompressed, and the first is always read.
_IS_READ: Final = (
    "(row_number() OVER listed = 1"
    f" OR sum(pg_column_size(p.request) + pg_column_size(p.answer)) OVER listed <= {READ_JSON_BYTES})"
)
_READ_COLUMNS: Final = f"CASE WHEN {_IS_READ} THEN p.request END, CASE WHEN {_IS_READ} THEN p.answer END"
_HOT_COLUMNS: Final = f"{_COLUMNS}, NULL::timestamptz, {_READ_COLUMNS}"
_ALL_COLUMNS: Final = f"{_COLUMNS}, p.archived_at, {_READ_COLUMNS}"
"""The columns of _NAMES, archived payments' too; request and answer are NULL beyond READ_JSON_BYTES. They need the
window ``listed``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionQuery:
    """A parsed query. ``channel``: None for all of the merchant's. ``number``: from the short id, 0 for an impossible
    one. ``start``, ``end``: from and before, the merchant's clock. ``types``, ``methods``: empty for no filter.
    ``page``: from 1, oldest first; None for the newest ``limit`` rows. ``hot_since``: the merchant's time since which
    nothing is archived; None where no archive is kept."""

    merchant: UUID
    channel: UUID | None
    transaction_id: str | None
    number: int | None
    start: datetime | None
    end: datetime | None
    types: tuple[str, ...]
    methods: tuple[str, ...]
    linked: bool
    limit: int
    page: int | None
    hot_since: datetime | None = None

    @property
    def may_find_archived(self) -> bool:
        """Whether it lists payments of times of which some may be archived."""
        since = self.hot_since
        return since is not None and not self.finds_one and (self.start is None or self.start < since)

    @property
    def finds_one(self) -> bool:
        """Whether it asks what became of a payment, by its order or short id. The answer may decide whether the shopper
        pays again, so the primary gives it."""
        return self.transaction_id is not None or self.number is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPage:
    """The payments found, of which a list's needs are read. ``pages``: their number, if a page was requested.
    ``read``: whole rows of some, by their ids, until they are rendered; their JSON is text, which decoded takes eight
    times as much."""

    payments: list[Payment]
    pages: int | None
    read: dict[UUID, tuple[Any, ...]] = field(default_factory=dict)


def query_from_parameters(parameters: Parameters, merchant: Merchant, channel: Channel | None) -> TransactionQuery:
    """The query of parsed parameters."""
    short_id = parameters.get("shortId")
    limit = int(parameters["limit"])
    page = parameters.get("pageNo")
    # Behind the last page that a query can have, pages are all alike, empty: what is skipped has a bound.
    empty = -(-MAX_SCANNED_ROWS // limit) + 1
    start, end = clock.parse_time(parameters.get("date.from")), clock.parse_time(parameters.get("date.to"))
    return TransactionQuery(
        merchant=merchant.pk,
        channel=channel.pk if channel is not None else None,
        transaction_id=parameters.get("merchantTransactionId"),
        number=None if short_id is None else identifiers.parse_short_id(short_id) or 0,
        start=start,
        end=end + _SECOND if end is not None else None,
        types=parse_code_list(parameters.get("paymentTypes")),
        methods=parse_code_list(parameters.get("paymentMethods")),
        linked=parameters.get("includeLinkedTransactions") == "true",
        limit=limit,
        page=min(int(page), empty) if page is not None else None,
        hot_since=compute_hot_since(merchant),
    )


def find_transactions(query: TransactionQuery) -> TransactionPage:
    """Run the query. Raises InvalidParametersError when it would scan or list more rows than the limits allow."""
    archived = query.may_find_archived and query.page is not None
    total, rows = _find_payments(query, archived=archived)
    # The newest are mostly found without it.
    if query.may_find_archived and query.page is None and not _is_full_of_hot_ones(query, total, rows):
        total, rows = _find_payments(query, archived=True)
    # A short id is of one payment.
    if query.finds_one and has_archive() and not (rows and query.number is not None):
        kept = _find_archived(query)
        if kept:
            return _merge_archived(query, kept, total)
    return _build_page(rows, -(-total // query.limit) if query.page is not None else None)


def _build_page(rows: Sequence[tuple[Any, ...]], pages: int | None = None) -> TransactionPage:
    """A page of rows with the columns of _NAMES."""
    return TransactionPage(payments=[_build_listed(row) for row in rows], pages=pages, read=_choose_read(rows))


def _build_listed(row: tuple[Any, ...]) -> Payment:
    listed: Payment = model_from_row(Payment, _LISTED, row[: len(_LISTED)])
    return listed


def _choose_read(rows: Sequence[tuple[Any, ...]]) -> dict[UUID, tuple[Any, ...]]:
    return {row[0]: row for row in rows if row[-1] is not None}


def _is_full_of_hot_ones(query: TransactionQuery, total: int, rows: Sequence[tuple[Any, ...]]) -> bool:
    """Whether the page is full of payments that are newer than any archived one."""
    assert query.hot_since is not None
    return total == query.limit and all(row[1] >= query.hot_since for row in rows)


def _find_payments(query: TransactionQuery, *, archived: bool) -> tuple[int, list[tuple[Any, ...]]]:
    """How many match, and the rows to be shown. Raises InvalidParametersError."""
    scanned = MAX_SCANNED_ROWS if query.page is not None else min(FIRST_SCAN_ROWS, MAX_SCANNED_ROWS)
    rows = _fetch_rows(query, scanned, archived=archived)
    if rows[0][1] and query.page is None:
        rows = _fetch_rows(query, MAX_SCANNED_ROWS, archived=archived)
    total, stopped = rows[0][:2]
    if stopped or (query.page is not None and total > MAX_SCANNED_ROWS):
        raise _build_scan_limit_error(query)
    if query.linked and len(rows) > MAX_LINKED_TRANSACTIONS:
        message = f"would list more than {MAX_LINKED_TRANSACTIONS:,} transactions: narrow the query"
        raise InvalidParametersError([ParameterError(name="includeLinkedTransactions", value="true", message=message)])
    return total, [row[2:] for row in rows if row[2] is not None]


def _find_archived(query: TransactionQuery) -> list[Payment]:
    """What the archive has of the order or short id that is asked for, as the query's filters choose it."""
    if query.number is not None:
        one = find_archived_number(query.merchant, query.channel, query.number)
        found = [one] if one is not None and query.transaction_id in (None, one.merchant_transaction_id) else []
    else:
        found = list_archived_orders(query.merchant, query.channel, query.transaction_id or "")
    _check_linked_count(len(found))
    return [
        one
        for one in found
        if (not query.types or one.payment_type in query.types)
        and (not query.methods or one.method in query.methods)
        and (query.start is None or one.created_at >= query.start)
        and (query.end is None or one.created_at < query.end)
    ]


def _merge_archived(query: TransactionQuery, archived: Sequence[Payment], total: int) -> TransactionPage:
    """The page of an order of which some payments are archived, and ``total`` are not."""
    begin = 0 if query.page is None else (query.page - 1) * query.limit
    upto = min(begin + query.limit, MAX_SCANNED_ROWS)
    first = replace(query, linked=False, page=query.page and 1, limit=upto)
    rows = [row[2:] for row in _fetch_rows(first, MAX_SCANNED_ROWS) if row[2] is not None]
    hot = [_build_listed(row) for row in rows]
    newest_first = query.page is None
    # A chain that was brought back since the archive was read is in both.
    found_once = {one.pk: one for one in (*archived, *hot)}
    chosen = _sort_by_time(list(found_once.values()), newest_first=newest_first)[begin:upto]
    if query.linked:
        chains = list({one.chain for one in chosen})
        own = {"channel": query.channel} if query.channel is not None else {}
        members = Payment.objects.filter(chain__in=chains, merchant=query.merchant, **own).only(*_LISTED)
        kept = list_archived_chains(query.merchant, query.channel, chains)
        newest = members.order_by("-created_at", "-id")[: MAX_LINKED_TRANSACTIONS + 1]
        linked = {one.pk: one for one in (*kept, *newest)}
        _check_linked_count(len(linked))
        chosen = _sort_by_time(list(linked.values()), newest_first=newest_first)
    pages = None if query.page is None else -(-(total + len(archived)) // query.limit)
    return TransactionPage(payments=chosen, pages=pages, read=_choose_read(rows))


def _sort_by_time(payments: Sequence[Payment], *, newest_first: bool) -> list[Payment]:
    return sorted(payments, key=lambda one: (one.created_at, one.pk), reverse=newest_first)


def _check_linked_count(number: int) -> None:
    if number > MAX_LINKED_TRANSACTIONS:
        message = f"would list more than {MAX_LINKED_TRANSACTIONS:,} transactions: query them by their dates"
        raise InvalidParametersError([ParameterError(name="includeLinkedTransactions", value="true", message=message)])


def _fetch_rows(query: TransactionQuery, scanned: int, *, archived: bool = False) -> list[tuple[Any, ...]]:
    return _run(_build_query_statement(query, archived=archived), _build_query_values(query, scanned))


def _run(statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connections[choose_read_alias()].cursor() as cursor:
        cursor.execute(statement, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def list_linked_transactions(
    payment: Payment, channel: Channel | None, *, types: tuple[str, ...] = (), methods: tuple[str, ...] = ()
) -> TransactionPage:
    """The payment and the others of its chain, newest first; of the others only those of ``types`` and ``methods``, if
    given. Raises InvalidParametersError for more than MAX_LINKED_TRANSACTIONS."""
    if payment.archived_at is not None:
        found = [
            one
            for one in list_archived_chains(
                payment.merchant_id, channel.pk if channel is not None else None, [payment.chain]
            )
            if one.pk == payment.pk
            or ((not types or one.payment_type in types) and (not methods or one.method in methods))
        ]
        _check_linked_count(len(found))
        return TransactionPage(payments=found, pages=None)
    conditions = [
        *(["p.channel_id = %(channel)s"] if channel is not None else []),
        *(["(p.id = %(id)s OR p.payment_type = ANY(%(types)s))"] if types else []),
        *(["(p.id = %(id)s OR p.method = ANY(%(methods)s))"] if methods else []),
    ]
    values = {
        "id": payment.pk,
        "chain": payment.chain,
        "merchant": payment.merchant_id,
        "channel": channel.pk if channel is not None else None,
        "types": list(types),
        "methods": list(methods),
        "most": MAX_LINKED_TRANSACTIONS + 1,
    }
    rows = _run(_CHAIN.format(conditions="".join(f" AND {one}" for one in conditions)), values)
    _check_linked_count(len(rows))
    return _build_page(rows)


def find_queried_registration(target: UUID | None, merchant: Merchant, channel: Channel | None) -> Registration | None:
    """A registration without a payment of the same id: one that a payment with createRegistration created."""
    own = {"channel": channel.pk} if channel is not None else {}
    if not target:
        return None
    return Registration.objects.filter(pk=target, merchant=merchant.pk, **own).select_related("network_token").first()


def render_page(page: TransactionPage) -> Iterator[dict[str, Any]]:
    """The payments of a page as lists have them. Those that are not read yet are read some at a time, as they are now;
    one that was deleted meanwhile is left out."""
    read, has_channels = page.read, False
    for number, listed in enumerate(page.payments):
        if listed.pk not in read:
            ids = [one.pk for one in page.payments[number : number + READ_PAYMENTS]]
            read = _choose_read(_run(include_archive(_BY_IDS), {"ids": ids}))
        row = read.pop(listed.pk, None)
        if row is None:
            continue
        payment: Payment = model_from_row(Payment, _NAMES, row)
        if lacks_descriptor(payment):
            if not has_channels:
                prefetch_related_objects(page.payments, "channel", "merchant")
                has_channels = True
            payment.channel, payment.merchant = listed.channel, listed.merchant
        yield render_transaction(payment)


def render_transaction(payment: Payment) -> dict[str, Any]:
    """The payment object with shortId, paymentMethod, time and ndc, as lists of transactions need it."""
    made = clock.format_timestamp(payment.created_at)
    return render_payment(payment) | {
        "shortId": identifiers.format_short_id(payment.number),
        "paymentMethod": payment.method,
        "requestTimestamp": made,
        "timestamp": made,
        "ndc": identifiers.format_ndc(payment.request_id, payment.channel_id.hex),
    }


def render_queried_registration(registration: Registration) -> dict[str, Any]:
    """The present state of a registration; a deleted one is rendered too, with its own result code."""
    deleted = registration.status == Registration.Status.DELETED
    made = clock.format_timestamp(registration.created_at)
    body = render_registration(
        registration, REGISTRATION_DELETED_CODE if deleted else resolve_success_code(registration.test_mode)
    )
    return body | {"paymentMethod": registration.method, "requestTimestamp": made, "timestamp": made}


def parse_code_list(text: str | None) -> tuple[str, ...]:
    """The codes of a comma-separated list without duplicates; empty (no filter) if nothing was sent."""
    return tuple(dict.fromkeys(text.split(","))) if text else ()


def _build_scan_limit_error(query: TransactionQuery) -> InvalidParametersError:
    start, end = query.start, query.end
    if start is None or end is None:
        message = f"is needed: more than {MAX_SCANNED_ROWS:,} transactions would have to be looked through"
        return InvalidParametersError([ParameterError(name=name, message=message) for name in ("date.from", "date.to")])
    message = f"ends a period with more than {MAX_SCANNED_ROWS:,} transactions to look through: choose a shorter one"
    return InvalidParametersError(
        [ParameterError(name="date.to", value=f"{end - _SECOND:%Y-%m-%d %H:%M:%S}", message=message)]
    )


# --- the statement ------------------------------------------------------------------------------------------------

_OF_CHANNEL: Final = "p.channel_id = d.channel_id"
_EVERY_CODE: Final = (
    "SELECT c.id AS channel_id, code FROM gateway_channel c, unnest(%({codes})s::text[]) AS code WHERE {{channels}}"
)
_WALKS: Final[Mapping[str, tuple[str, str]]] = {
    # access path: the values it is walked for (one walk of an index each), and the conditions that select the index
    "number": ("SELECT 1", "p.number = %(number)s"),
    "transaction": (
        "SELECT 1",
        "p.merchant_id = %(merchant)s AND p.merchant_transaction_id = %(transaction_id)s"
        " AND p.merchant_transaction_id <> ''",
    ),
    "types": (
        _EVERY_CODE.format(codes="types"),
        f"{_OF_CHANNEL} AND p.payment_type = d.code AND p.payment_type NOT IN ('DB', 'PA', 'CP')",
    ),
    "methods": (_EVERY_CODE.format(codes="methods"), f"{_OF_CHANNEL} AND p.method = d.code AND p.method <> 'CC'"),
    "time": ("SELECT c.id AS channel_id FROM gateway_channel c WHERE {channels}", _OF_CHANNEL),
}
_STATEMENT: Final = """
WITH dimensions AS (SELECT d.*, {horizon} AS horizon FROM ({dimensions}) d),
matching AS ({matching}),
chosen AS (SELECT * FROM matching ORDER BY created_at {order}, id {order} OFFSET {offset} LIMIT %(limit)s),
wanted AS ({wanted}),
facts AS (SELECT ({total}) AS total, {stopped} AS stopped)
SELECT facts.total, facts.stopped, {columns}
FROM facts LEFT JOIN (wanted JOIN gateway_payment p ON p.id = wanted.id) ON true
WINDOW listed AS (ORDER BY p.created_at {order}, p.id {order} ROWS UNBOUNDED PRECEDING)
ORDER BY p.created_at {order}, p.id {order}
"""
_CHAIN: Final = f"""
SELECT {_HOT_COLUMNS} FROM gateway_payment p
WHERE p.chain = %(chain)s AND p.merchant_id = %(merchant)s{{conditions}}
WINDOW listed AS (ORDER BY p.created_at DESC, p.id DESC ROWS UNBOUNDED PRECEDING)
ORDER BY p.created_at DESC, p.id DESC LIMIT %(most)s
"""  # noqa: S608 - its own columns
_BY_IDS: Final = f"""
SELECT {_ALL_COLUMNS}
FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS wanted (id, place) JOIN gateway_payment p ON p.id = wanted.id
WINDOW listed AS (ORDER BY wanted.place ROWS UNBOUNDED PRECEDING)
"""  # noqa: S608 - its own columns
_MATCHING: Final = """
    SELECT walked.* FROM dimensions d CROSS JOIN LATERAL (
        SELECT p.id, p.chain, p.created_at FROM {source} p
        WHERE {conditions} ORDER BY p.created_at {order}, p.id {order} LIMIT %(most)s
    ) walked
"""
# A later page of a walk without filters: the rows before it are counted in the index alone, up to the time at which the
# page begins; of the rows with exactly this time some may belong to the page before.
_MATCHING_PAGE: Final = """
    SELECT walked.* FROM dimensions d CROSS JOIN LATERAL (
        SELECT p.created_at, rank() OVER (ORDER BY p.created_at) - 1 AS before FROM {source} p
        WHERE {conditions} ORDER BY p.created_at OFFSET %(offset)s LIMIT 1
    ) first CROSS JOIN LATERAL (
        SELECT p.id, p.chain, p.created_at FROM {source} p
        WHERE {conditions} AND p.created_at >= first.created_at
        ORDER BY p.created_at, p.id OFFSET %(offset)s - first.before LIMIT %(limit)s
    ) walked
"""
_LINKED: Final = """
    SELECT p.id FROM (SELECT DISTINCT chain FROM chosen) one JOIN gateway_payment p ON p.chain = one.chain
    WHERE {scope} LIMIT %(most_linked)s
"""
# The time at which a walk with filters has scanned so many rows that it stops.
_HORIZON: Final = """(
    SELECT p.created_at FROM gateway_payment p WHERE {walk} ORDER BY p.created_at {order} OFFSET %(looked)s LIMIT 1
)"""
_WITHIN: Final = {
    "DESC": "p.created_at > coalesce(d.horizon, '-infinity')",
    "ASC": "p.created_at < coalesce(d.horizon, 'infinity')",
}
# Rows beyond the horizon of one walk may be newer than the rows that another walk found.
_STOPPED: Final = """EXISTS (SELECT 1 FROM dimensions WHERE horizon IS NOT NULL) AND (
    (SELECT count(*) FROM chosen) < %(limit)s
    OR (SELECT min(created_at) FROM chosen) <= (SELECT max(horizon) FROM dimensions)
)"""
_TOTAL: Final = """SELECT count(*) FROM dimensions d CROSS JOIN LATERAL (
    SELECT 1 FROM {source} p WHERE {conditions} LIMIT %(beyond)s
) counted"""
# Many payments may share one number or transaction id, so only some are scanned; the subquery forces the index.
_BEYOND: Final = "EXISTS (SELECT 1 FROM gateway_payment p WHERE {walk} OFFSET %(looked)s LIMIT 1)"
_OF_ONE_NUMBER: Final = "(SELECT * FROM gateway_payment p WHERE {walk} LIMIT %(looked)s)"


def _choose_walk(query: TransactionQuery) -> str:
    """The most selective access path of a query: a key of _WALKS."""
    if query.number is not None:
        return "number"
    if query.transaction_id is not None:
        return "transaction"
    if query.types and not COMMON_PAYMENT_TYPES & set(query.types):
        return "types"
    if query.methods and not COMMON_PAYMENT_METHODS & set(query.methods):
        return "methods"
    return "time"


def _build_query_statement(query: TransactionQuery, *, archived: bool = False) -> str:
    """``archived``: archived payments are read, too."""
    path = _choose_walk(query)
    dimensions, index = _WALKS[path]
    walks = path in ("types", "methods", "time")
    order = "DESC" if query.page is None else "ASC"
    channels = "c.merchant_id = %(merchant)s" + (" AND c.id = %(channel)s" if query.channel else "")
    scope = "p.merchant_id = %(merchant)s" + (" AND p.channel_id = %(channel)s" if query.channel else "")
    period = [
        text
        for text, value in (("p.created_at >= %(start)s", query.start), ("p.created_at < %(end)s", query.end))
        if value is not None
    ]
    filters = [
        *(["p.payment_type = ANY(%(types)s)"] if query.types and path != "types" else []),
        *(["p.method = ANY(%(methods)s)"] if query.methods and path != "methods" else []),
    ]
    walk = " AND ".join([index, *period] if walks else [index])
    horizon = _HORIZON.format(walk=walk, order=order) if filters and walks else "NULL::timestamptz"
    source, stopped = "gateway_payment", _STOPPED if filters else "false"
    if walks:
        conditions = [walk, *filters, *([_WITHIN[order]] if filters else [])]
    else:
        again = ["p.merchant_transaction_id = %(transaction_id)s"] if query.transaction_id is not None else []
        conditions = [scope, *again, *period, *filters]
        source = _OF_ONE_NUMBER.format(walk=walk)
        stopped = _BEYOND.format(walk=walk)
    if query.page is not None and filters and walks:
        stopped = "EXISTS (SELECT 1 FROM dimensions WHERE horizon IS NOT NULL)"
    parts = {"source": source, "conditions": " AND ".join(conditions)}
    skips_in_index = path == "time" and query.channel is not None and not filters and (query.page or 0) > 1
    statement = _STATEMENT.format(
        matching=(_MATCHING_PAGE if skips_in_index else _MATCHING).format(order=order, **parts),
        offset="0" if skips_in_index else "%(offset)s",
        dimensions=dimensions.format(channels=channels),
        horizon=horizon,
        order=order,
        wanted=_LINKED.format(scope=scope) if query.linked else "SELECT id FROM chosen",
        total="SELECT count(*) FROM chosen" if query.page is None else _TOTAL.format(**parts),
        stopped=stopped,
        columns=_ALL_COLUMNS if archived else _HOT_COLUMNS,
    )
    return include_archive(statement) if archived else statement


def _build_query_values(query: TransactionQuery, scanned: int = MAX_SCANNED_ROWS) -> dict[str, Any]:
    offset = 0 if query.page is None else (query.page - 1) * query.limit
    return {
        "merchant": query.merchant,
        "channel": query.channel,
        "number": query.number,
        "start": query.start,
        "end": query.end,
        "transaction_id": query.transaction_id,
        "types": list(query.types),
        "methods": list(query.methods),
        "limit": query.limit,
        "offset": offset,
        "most": offset + query.limit,
        "looked": scanned,
        "beyond": MAX_SCANNED_ROWS + 1,
        "most_linked": MAX_LINKED_TRANSACTIONS + 1,
    }
