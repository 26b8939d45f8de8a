"""Search of archived payments: by an id or order number, and pages of a list by its days.

Source: docs/decisions/0151.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import models
from django.db.models import QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from gateway.access.permissions import AccessScope, RowOwner
from gateway.backoffice.kit.periods import CLOCK_TOLERANCE
from gateway.backoffice.kit.time_limit import limit_search_time
from gateway.backoffice.payments import payment_search
from gateway.backoffice.payments.payment_filters import PaymentFilters
from gateway.backoffice.payments.payment_search import (
    PageCursor,
    SearchPage,
    find_largest_clock_offset,
    list_searched_merchants,
)
from gateway.backoffice.payments.search_terms import SearchTerm
from gateway.core import clock, identifiers
from gateway.core.identifiers import first_id_at
from gateway.db.standby import choose_read_alias
from gateway.models import ArchivedPayment, Channel, Payment
from gateway.payments.payment_archive import (
    MIN_PAYMENT_HOT_DAYS,
    find_archived_number,
    find_archived_payment,
    has_archive,
    list_archived_payments,
    list_archived_references,
)

ARCHIVED_SHAPES: Final = ("id", "shortId", "order")
"""Shapes of texts that find archived payments, too."""


def find_archived_payments(scope: AccessScope, asked: SearchTerm, filters: PaymentFilters) -> list[Payment]:
    """The archived payments in ``scope`` with the id, short id, order or invoice number that is asked for, newest
    first."""
    found: list[Payment | None] = []
    if asked.shape == "id":
        found = [find_archived_payment(identifiers.parse_id(asked.value), None)]
    elif asked.shape == "shortId":
        found = [find_archived_number(None, None, identifiers.parse_short_id(asked.value) or 0)]
    elif asked.shape == "order" and has_archive():
        found = [*list_archived_references(list_searched_merchants(scope, filters), asked.value)]
    return [
        one
        for one in found
        if one is not None and scope.covers(RowOwner(merchant=one.merchant_id, channel=one.channel_id))
    ]


def find_archived_since(filters: PaymentFilters) -> datetime | None:
    """Before when payments of a list may be archived; None if none of its days can be, or no archive is kept."""
    if not has_archive():
        return None
    hot_since = clock.real_now() - timedelta(days=MIN_PAYMENT_HOT_DAYS)
    since = filters.since or filters.real_since
    return hot_since if since is None or since < hot_since + find_largest_clock_offset() else None


def find_archived_page(
    scope: AccessScope, filters: PaymentFilters, *, after: str = "", size: int = payment_search.SEARCH_PAGE_ROWS
) -> SearchPage:
    """One page of the archived payments in ``scope``, newest first, as :func:`find_payments_page`. The filters are
    without a chain's state, which the archive does not have. Raises SearchTooBroadError."""
    place = PageCursor.read(after)
    with limit_search_time():
        rows = _select_archived(scope, filters)
        if place is not None:
            rows = rows.filter(place.time_condition())
        channels = _list_few_channels(scope, filters)
        # An index has each channel's in this order; of many channels the newest of all are read.
        each = [rows] if channels is None else [rows.filter(channel=channel) for channel in channels]
        keys = [
            key
            for query in each
            for key in query.order_by("-created_at", "-id").values_list("created_at", "pk")[: size + 1]
        ]
        chosen = sorted(keys, reverse=True)[: size + 1]
        by_key = {row.pk: row for row in list_archived_payments([pk for _at, pk in chosen])}
    # A payment that was brought back meanwhile is missing from the page; those after it are not.
    last = PageCursor(at=chosen[size - 1][0], id=chosen[size - 1][1]) if len(chosen) > size else None
    rows_shown = [by_key[pk] for _at, pk in chosen[:size] if pk in by_key]
    return SearchPage(rows=rows_shown, after=str(last) if last is not None else "")


_ARCHIVED_VALUES: Final = (
    "status", "brand", "currency", "test_mode", "connector", "acquirer_merchant_id", "result_code",
)  # fmt: skip
"""What filters ask for that the archive has in ``row`` alone."""


def _select_archived(scope: AccessScope, filters: PaymentFilters) -> QuerySet[ArchivedPayment]:
    """The archived payments of the filters, with what they ask for under the names that it has among payments."""
    rows = ArchivedPayment.objects.using(choose_read_alias()).annotate(
        **{name: KT(f"row__{name}") for name in _ARCHIVED_VALUES},
        amount=Cast(KT("row__amount"), models.DecimalField(max_digits=14, decimal_places=2)),
    )
    # Partitions are by ids, which follow real time.
    if filters.since is not None:
        rows = rows.filter(pk__gte=first_id_at(filters.since - find_largest_clock_offset()))
    if filters.until is not None:
        rows = rows.filter(pk__lt=first_id_at(filters.until + CLOCK_TOLERANCE))
    return rows.filter(scope.where()).filter(filters.where())


def _list_few_channels(scope: AccessScope, filters: PaymentFilters) -> list[UUID] | None:
    """The channels of the list, if they are at most payment_search.MAX_MERGED_MERCHANTS."""
    rows = Channel.objects.filter(scope.where("merchant", "pk"))
    if filters.merchant is not None:
        rows = rows.filter(merchant=filters.merchant)
    if filters.channel is not None:
        rows = rows.filter(pk=filters.channel)
    found = list(rows.values_list("pk", flat=True)[: payment_search.MAX_MERGED_MERCHANTS + 1])
    return found if len(found) <= payment_search.MAX_MERGED_MERCHANTS else None
