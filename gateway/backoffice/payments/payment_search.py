"""Payment search: what was typed and the filters of a list, in keyset pages without counting, sorted pages and sums.

Every page costs the same; a query over SEARCH_TIMEOUT_MS is cancelled with a hint. Source: docs/decisions/0025.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import connections, models
from django.db.models import Q, QuerySet

from gateway.access.permissions import AccessScope
from gateway.backoffice.kit.time_limit import limit_search_time
from gateway.backoffice.payments.payment_filters import PaymentFilters
from gateway.backoffice.payments.search_terms import SHAPE_BY_NAME, SearchTerm
from gateway.core import clock, identifiers
from gateway.core.identifiers import first_id_at
from gateway.db.standby import choose_read_alias
from gateway.models import Merchant, Payment
from gateway.payments.chain_amounts import ZERO_AMOUNT
from gateway.payments.chain_states import has_stored_state

SEARCH_PAGE_ROWS: Final = 50
"""Rows of one page."""
MAX_MERGED_MERCHANTS: Final = 20
"""Up to so many merchants are read by one index each and merged; with more, the newest rows of all are read."""
MAX_SEARCHED_MERCHANTS: Final = 10_000
"""Merchants that one search by a search key covers."""
MAX_SHARED_VALUE_ROWS: Final = 5_000
"""A value that many payments share is first searched among so many of the newest."""
SHARED_VALUE_WINDOW: Final = timedelta(days=31)
"""Where those do not fill a page, in the last so many days: the index payment_amount (BRIN) has the times, so that only
these days are read of all that share it."""
AMOUNT_SEARCH_WINDOW: Final = timedelta(days=366)
"""How far back an amount is searched if no dates are chosen."""
MAX_RECENT_ROWS: Final = 20_000
"""Among so many of the newest payments a value without an index is looked for."""
MAX_SORTED_PAYMENTS: Final = 10_000
"""Payments of a list that may be ordered by any column."""
MAX_SUMMED_PAYMENTS: Final = 100_000
"""Payments of a list that are summed on its page."""
MAX_AMOUNT_ROWS: Final = 20_000
"""Among so many of the newest rows an amount is compared one by one, with requested and approved amounts; among older
ones by the index payment_amount (BRIN), which has requested amounts only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """Payments, newest first. ``after``: cursor of the next page, '' on the last one. ``sure``: the search names
    exactly one payment."""

    rows: Sequence[Payment]
    after: str = ""
    sure: bool = False


# --- the whole list -----------------------------------------------------------------------------------------------


class TooManyToSortError(Exception):
    """The list has more than MAX_SORTED_PAYMENTS payments: it has to be narrowed before it can be ordered."""


TO_SHOPPER_TYPES: Final = frozenset({"RF", "CD", "CB"})
"""Payments whose money goes to the shopper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrencySum:
    """What a list has in one currency: number of payments, what was asked for, and what was approved; ``to_shoppers``:
    what of it went to shoppers, which a reader would take for income."""

    currency: str
    number: int
    amount: Decimal
    approved: Decimal
    to_shoppers: Decimal


def sum_payments(scope: AccessScope, asked: SearchTerm, filters: PaymentFilters) -> tuple[list[CurrencySum], bool]:
    """What the list sums to by currency, and whether that is all of it: of more than MAX_SUMMED_PAYMENTS, the newest
    are summed. Raises SearchTooBroadError."""
    found: dict[str, tuple[Any, ...]] = {}
    with limit_search_time():
        for rows in _select_whole_list(scope, asked, filters):
            listed = rows.values("currency", "amount", "approved_amount", "payment_type")[:MAX_SUMMED_PAYMENTS]
            sql, bound = listed.query.sql_with_params()
            with connections[choose_read_alias()].cursor() as cursor:
                cursor.execute(
                    "SELECT currency, count(*), sum(amount), coalesce(sum(approved_amount), 0), "  # noqa: S608 - Django's own SQL
                    "coalesce(sum(approved_amount) FILTER (WHERE payment_type = ANY(%s)), 0) "
                    f"FROM ({sql}) AS listed GROUP BY currency",
                    [sorted(TO_SHOPPER_TYPES), *bound],
                )
                for currency, *values in cursor.fetchall():
                    before = found.get(currency, (0, ZERO_AMOUNT, ZERO_AMOUNT, ZERO_AMOUNT))
                    found[currency] = tuple(old + new for old, new in zip(before, values, strict=True))
    sums = [
        CurrencySum(currency=currency, number=number, amount=amount, approved=approved, to_shoppers=back)
        for currency, (number, amount, approved, back) in sorted(found.items())
    ]
    return sums, sum(one.number for one in sums) < MAX_SUMMED_PAYMENTS


def sum_rows(rows: Sequence[Payment]) -> list[CurrencySum]:
    """What some payments sum to by currency."""
    found: dict[str, list[Payment]] = {}
    for row in rows:
        found.setdefault(row.currency, []).append(row)
    return [
        CurrencySum(
            currency=currency,
            number=len(own),
            amount=sum((row.amount for row in own), ZERO_AMOUNT),
            approved=sum((row.approved_amount or ZERO_AMOUNT for row in own), ZERO_AMOUNT),
            to_shoppers=sum(
                (row.approved_amount or ZERO_AMOUNT for row in own if row.payment_type in TO_SHOPPER_TYPES), ZERO_AMOUNT
            ),
        )
        for currency, own in sorted(found.items())
    ]


def find_sorted_page(
    scope: AccessScope, asked: SearchTerm, filters: PaymentFilters, order: str, *, place: int, size: int
) -> SearchPage:
    """The page of ``size`` payments from number ``place`` on, in the order of a column (``-`` before it: descending).
    ``after`` is the number of the next page's first. Raises SearchTooBroadError and TooManyToSortError."""
    column = order.removeprefix("-")
    with limit_search_time():
        keys: list[tuple[UUID, Any]] = []
        for rows in _select_whole_list(scope, asked, filters):
            keys += rows.values_list("pk", column)[: MAX_SORTED_PAYMENTS + 1]
            if len(keys) > MAX_SORTED_PAYMENTS:
                raise TooManyToSortError
        chosen = sorted((key for key in keys if key[1] is not None), key=_sort_key, reverse=order.startswith("-"))
        chosen += [key for key in keys if key[1] is None]
        page = _load_in_order([pk for pk, _value in chosen[place : place + size]])
    return SearchPage(rows=page, after=str(place + size) if len(chosen) > place + size else "")


def _sort_key(key: tuple[UUID, Any]) -> tuple[Any, UUID]:
    pk, value = key
    return (value.casefold() if isinstance(value, str) else value, pk)


def _select_whole_list(scope: AccessScope, asked: SearchTerm, filters: PaymentFilters) -> list[QuerySet[Payment]]:
    """All rows of a list, newest first, as queries that an index answers in that order."""
    if asked.shape:
        found = Payment.objects.filter(build_search_condition(scope, asked, filters))
        return [found.order_by("-created_at", "-id")]
    merchants = _list_few_merchants(scope, filters)
    if merchants is not None:
        return [_select_of_merchant(scope, filters.where(), filters, merchant) for merchant in merchants]
    rows = Payment.objects.filter(scope.where()).filter(filters.where())
    if filters.since is not None:
        rows = rows.filter(pk__gte=first_id_at(filters.since - find_largest_clock_offset()))
    if filters.until is not None:
        rows = rows.filter(pk__lt=first_id_at(filters.until))
    return [rows.order_by("-standing__chain" if has_stored_state(filters.state) else "-id")]


# --- a page -------------------------------------------------------------------------------------------------------


def find_payments_page(
    scope: AccessScope, asked: SearchTerm, filters: PaymentFilters, *, after: str = "", size: int = SEARCH_PAGE_ROWS
) -> SearchPage:
    """One page of the payments in ``scope``. ``after``: the cursor; an invalid one gives the first page. Raises
    SearchTooBroadError."""
    place = PageCursor.read(after)
    with limit_search_time():
        if asked.shape:
            return _find_by_shape(scope, asked, filters, place, size)
        return _list_newest(scope, filters, place, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCursor:
    """Cursor of a page: time and id of the last row before it."""

    at: datetime
    id: UUID

    @classmethod
    def read(cls, text: str) -> PageCursor | None:
        at, _, ident = text.partition("_")
        found = identifiers.parse_id(ident)
        try:
            return cls(at=datetime.fromisoformat(at).astimezone(UTC), id=found) if found is not None else None
        except (ValueError, OverflowError):
            return None

    @classmethod
    def of(cls, row: Payment) -> PageCursor:
        return cls(at=row.created_at, id=row.id)

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.id.hex}"

    def time_condition(self) -> Q:
        """The condition on rows after the cursor."""
        return Q(created_at__lte=self.at) & (Q(created_at__lt=self.at) | Q(pk__lt=self.id))


def build_search_condition(scope: AccessScope, asked: SearchTerm, filters: PaymentFilters) -> Q:
    """The condition on all rows of a list, in any order: for exports."""
    found = scope.where() & filters.where()
    if asked.shape:
        found &= SHAPE_BY_NAME[asked.shape].where(asked.value, list_searched_merchants(scope, filters))
        if SHAPE_BY_NAME[asked.shape].has_time_window and filters.since is None:
            found &= Q(created_at__gte=clock.real_now() - AMOUNT_SEARCH_WINDOW)
        if SHAPE_BY_NAME[asked.shape].recent_only and (since := _find_searched_start(scope, filters)) is not None:
            found &= Q(created_at__gte=since)
    return found


def _find_by_shape(
    scope: AccessScope, asked: SearchTerm, filters: PaymentFilters, place: PageCursor | None, size: int
) -> SearchPage:
    shape = SHAPE_BY_NAME[asked.shape]
    if shape.older is not None:
        return _find_over_time(scope, shape.where(asked.value, ()), shape.older(asked.value), filters, place, size)
    where = shape.where(asked.value, list_searched_merchants(scope, filters))
    if shape.recent_only:
        return _list_newest(scope, filters, place, size, since=_find_searched_start(scope, filters), also=where)
    rows = _select_shown().filter(scope.where()).filter(where).filter(filters.where())
    if place is not None:
        rows = rows.filter(place.time_condition())
    rows = rows.order_by("-created_at", "-id")
    found: list[Payment] = []
    merchants = _list_few_merchants(scope, filters) if shape.shared else None
    if shape.shared and (since := _find_recent_start(merchants, place, MAX_SHARED_VALUE_ROWS)) is not None:
        newest = _list_newest(scope, filters, place, size, since=since, also=where)
        if newest.after:
            return newest
        last = place.at if place is not None else clock.real_now()
        found = list(rows.filter(created_at__gte=last - SHARED_VALUE_WINDOW)[: size + 1])
    if len(found) <= size:
        found = list(rows[: size + 1])
    cut = _build_page(found, size)
    return SearchPage(rows=cut.rows, after=cut.after, sure=shape.one and len(found) == 1)


def _find_searched_start(scope: AccessScope, filters: PaymentFilters) -> datetime | None:
    """Since when a value without an index is looked for; None: among all payments, which are few, or the chosen
    days."""
    if filters.since is not None or filters.real_since is not None:
        return None
    merchants = _list_few_merchants(scope, filters)
    return _find_recent_start(merchants, None, MAX_RECENT_ROWS // max(1, len(merchants or ())))


def _find_over_time(
    scope: AccessScope, where: Q, older: Q, filters: PaymentFilters, place: PageCursor | None, size: int
) -> SearchPage:
    """Rows with an amount: the newest compared one by one along the index of times, older ones by ``older`` and the
    index payment_amount. That index has no order, so its rows are sorted; an amount that many payments share fills its
    page from the newest and does not get there."""
    within = filters.since or clock.real_now() - AMOUNT_SEARCH_WINDOW
    merchants = _list_few_merchants(scope, filters)
    recently = _find_recent_start(merchants, place, MAX_AMOUNT_ROWS // max(1, len(merchants or ())))
    newest = _list_newest(scope, filters, place, size, since=max(within, recently or within), also=where)
    if newest.after or recently is None or recently <= within:
        return newest
    rows = Payment.objects.filter(scope.where()).filter(filters.where()).filter(older)
    rows = rows.filter(created_at__gte=within, created_at__lt=recently)
    if place is not None:
        rows = rows.filter(place.time_condition())
    # An order that no index has; otherwise the planner walks one of them over all payments of a merchant.
    at = models.ExpressionWrapper(models.F("created_at") + timedelta(0), models.DateTimeField())
    keys = list(rows.order_by(at.desc(), "-id").values_list("pk", flat=True)[: size + 1 - len(newest.rows)])
    return _build_page([*newest.rows, *_load_in_order(keys)], size)


def _list_newest(
    scope: AccessScope,
    filters: PaymentFilters,
    place: PageCursor | None,
    size: int,
    *,
    since: datetime | None = None,
    also: Q | None = None,
) -> SearchPage:
    """The newest rows, by an index in that order."""
    where = filters.where()
    if since is not None:
        where &= Q(created_at__gte=since)
    if also is not None:
        where &= also
    merchants = _list_few_merchants(scope, filters)
    if merchants is None:
        return _list_newest_of_all(scope, where, filters, since, place, size)
    if place is not None:
        where &= place.time_condition()
    each = [
        _select_of_merchant(scope, where, filters, merchant).values_list("pk", "created_at")[: size + 1]
        for merchant in merchants
    ]
    if not each:
        return SearchPage(rows=[])
    keys = [key for query in each for key in query]
    chosen = [pk for pk, _ in sorted(keys, key=lambda key: (key[1], key[0]), reverse=True)[: size + 1]]
    return _build_page(_load_in_order(chosen), size)


def _select_of_merchant(scope: AccessScope, where: Q, filters: PaymentFilters, merchant: UUID) -> QuerySet[Payment]:
    """The payments of one merchant, newest first, by an index in that order."""
    by_row = has_stored_state(filters.state)
    rows = Payment.objects.filter(merchant=merchant, **({"standing__merchant": merchant} if by_row else {}))
    order = ("-standing__created_at", "-standing__chain") if by_row else ("-created_at", "-id")
    return rows.filter(scope.where()).filter(where).order_by(*order)


def _list_newest_of_all(
    scope: AccessScope, where: Q, filters: PaymentFilters, since: datetime | None, place: PageCursor | None, size: int
) -> SearchPage:
    """The newest rows of more merchants than MAX_MERGED_MERCHANTS: by id, which follows real time."""
    rows = _select_shown().filter(scope.where()).filter(where)
    since = filters.since or since
    if since is not None:
        rows = rows.filter(pk__gte=first_id_at(since - find_largest_clock_offset()))
    if filters.until is not None:
        rows = rows.filter(pk__lt=first_id_at(filters.until))
    if place is not None:
        rows = rows.filter(pk__lt=place.id)
    by_row = has_stored_state(filters.state)
    return _build_page(list(rows.order_by("-standing__chain" if by_row else "-id")[: size + 1]), size)


def _find_recent_start(merchants: Sequence[UUID] | None, place: PageCursor | None, count: int) -> datetime | None:
    """The time since which one of ``merchants`` (None: all together) has ``count`` payments before ``place``; None if
    they have fewer."""
    rows = Payment.objects.filter(created_at__lte=place.at) if place is not None else Payment.objects.all()
    if merchants is None:
        if place is not None:
            rows = Payment.objects.filter(pk__lt=place.id)
        # The index on ids alone is walked, and one row read.
        last = rows.order_by("-id").values("pk")[count : count + 1]
        return Payment.objects.filter(pk=models.Subquery(last)).values_list("created_at", flat=True).first()
    found = [
        rows.filter(merchant=merchant)
        .order_by("-created_at")
        .values_list("created_at", flat=True)[count : count + 1]
        .first()
        for merchant in merchants
    ]
    return max((at for at in found if at is not None), default=None)


def find_largest_clock_offset() -> timedelta:
    """The largest clock offset of a merchant in the test environment; ids follow real time."""
    found = Merchant.objects.aggregate(most=models.Max("clock_offset"))["most"]
    return max(found or timedelta(0), timedelta(0))


def _list_few_merchants(scope: AccessScope, filters: PaymentFilters) -> list[UUID] | None:
    """The merchants of the list, if they are at most MAX_MERGED_MERCHANTS."""
    if filters.merchant is not None:
        return [filters.merchant]
    if filters.channel is not None:
        return list(Merchant.objects.filter(channels=filters.channel).values_list("pk", flat=True))
    found = list(_select_reached_merchants(scope)[: MAX_MERGED_MERCHANTS + 1])
    return found if len(found) <= MAX_MERGED_MERCHANTS else None


def list_searched_merchants(scope: AccessScope, filters: PaymentFilters) -> list[UUID]:
    """The merchants of a list, MAX_SEARCHED_MERCHANTS at most: each has search keys of its own."""
    few = _list_few_merchants(scope, filters)
    return few if few is not None else list(_select_reached_merchants(scope)[:MAX_SEARCHED_MERCHANTS])


def _select_reached_merchants(scope: AccessScope) -> QuerySet[Merchant, UUID]:
    return Merchant.objects.filter(scope.where("pk", "channels")).order_by("pk").distinct().values_list("pk", flat=True)


def _select_shown() -> QuerySet[Payment]:
    rows = Payment.objects.select_related("merchant", "channel", "standing")
    return rows.defer("request", "merchant_memo", "means_sealed", "means_fingerprint")


def _load_in_order(keys: Sequence[UUID]) -> list[Payment]:
    by_key = {row.pk: row for row in _select_shown().filter(pk__in=keys)}
    return [by_key[key] for key in keys if key in by_key]


def _build_page(found: list[Payment], size: int) -> SearchPage:
    return SearchPage(rows=found[:size], after=str(PageCursor.of(found[size - 1])) if len(found) > size else "")
