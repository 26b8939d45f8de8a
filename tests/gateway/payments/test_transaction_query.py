"""Pages that lose nothing while payments arrive, limits that are reported, and plans that read no table whole.

Source: Part B, Query; rulings D6; goals P6; decision 0026.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from gateway.catalogue.parse import InvalidParametersError
from gateway.core import identifiers
from gateway.models import Channel, Division, Merchant, Payment, Psp
from gateway.payments import transaction_query as queries
from gateway.payments.transaction_query import TransactionPage, TransactionQuery, find_transactions
from tests.benchmarks.load_payments import load_payments

START = datetime(2026, 5, 14, 12, tzinfo=UTC)
TYPES, METHODS = ("DB", "PA", "RF", "CB"), ("CC", "DD", "PP")


def asked(channel: Channel, *, whole: bool = False, **values: Any) -> TransactionQuery:
    """A query of ``channel``; ``whole``: of all its merchant's."""
    nothing: dict[str, Any] = {
        "transaction_id": None,
        "number": None,
        "start": None,
        "end": None,
        "types": (),
        "methods": (),
        "linked": False,
        "limit": 100,
        "page": None,
    }
    entity = {"merchant": channel.merchant_id, "channel": None if whole else channel.pk}
    return TransactionQuery(**{**nothing, **entity, **values})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"hot_since": None}, False),
        ({}, True),
        ({"start": START - timedelta(seconds=1)}, True),
        ({"start": START}, False),
        ({"start": START + timedelta(seconds=1)}, False),
        ({"transaction_id": "order"}, False),
        ({"number": 1}, False),
    ],
)
def test_the_archive_is_asked_for_times_before_it_ends(values: dict[str, Any], expected: bool) -> None:
    query = asked(Channel(merchant_id=UUID(int=1)), **{"hot_since": START, **values})
    assert query.may_find_archived is expected


def channel_of(division: Division) -> Channel:
    return Channel.objects.create(name="main", merchant=Merchant.objects.create(name="Shop", division=division))


def add(channel: Channel, *seconds: int, kind: str = "DB", method: str = "CC", order: str = "") -> list[UUID]:
    """Payments made so many seconds after START."""
    made = []
    for second in seconds:
        key = identifiers.row_id()
        made.append(
            Payment(
                id=key,
                merchant_id=channel.merchant_id,
                channel=channel,
                chain=key,
                payment_type=kind,
                brand="VISA",
                method=method,
                status="STARTED",
                amount="1.00",
                currency="EUR",
                merchant_transaction_id=order,
                request_id=key,
                created_at=START + timedelta(seconds=second),
            )
        )
    return [payment.pk for payment in Payment.objects.bulk_create(made)]


def keys(found: TransactionPage) -> list[UUID]:
    return [payment.pk for payment in found.payments]


class TestPages(TestCase):
    """Property tests: each example begins with an empty database."""

    def setUp(self) -> None:
        division = Division.objects.create(name="Division", psp=Psp.objects.create(name="PSP"))
        self.channel, self.other = channel_of(division), channel_of(division)
        self.beside = Channel.objects.create(name="beside", merchant=self.channel.merchant)

    @settings(max_examples=40)
    @given(
        before=st.lists(st.integers(0, 30), min_size=1, max_size=25),
        arriving=st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=12),
        limit=st.integers(1, 7),
    )
    def test_what_was_there_is_listed_once_while_more_arrives(
        self, before: list[int], arriving: list[list[int]], limit: int
    ) -> None:
        """Issue: paging stable while payments arrive."""
        there = add(self.channel, *before)
        add(self.other, *before)
        seen: list[UUID] = []
        page, pages, now, more = 1, 1, 30, iter(arriving)
        while page <= pages:
            found = find_transactions(asked(self.channel, limit=limit, page=page))
            assert found.pages is not None
            assert len(found.payments) == limit or page == found.pages
            seen += keys(found)
            for later in next(more, ()):
                now += later
                add(self.channel, now)
            page, pages = page + 1, found.pages
        assert len(seen) == len(set(seen))
        assert set(there) <= set(seen)

    @settings(max_examples=60)
    @given(
        rows=st.lists(
            st.tuples(st.integers(0, 9), st.sampled_from(TYPES), st.sampled_from(METHODS), st.booleans()), max_size=25
        ),
        types=st.sets(st.sampled_from(TYPES)),
        methods=st.sets(st.sampled_from(METHODS)),
        period=st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
        whole=st.booleans(),
        limit=st.integers(1, 30),
        page=st.none() | st.integers(1, 3),
    )
    def test_a_query_finds_what_a_plain_filter_finds(
        self,
        rows: list[tuple[int, str, str, bool]],
        types: set[str],
        methods: set[str],
        period: tuple[int, int] | None,
        whole: bool,
        limit: int,
        page: int | None,
    ) -> None:
        """B22.2–B22.5: every way to the rows, one meaning."""
        for second, kind, method, elsewhere in rows:
            add(self.beside if elsewhere else self.channel, second, kind=kind, method=method)
            add(self.other, second, kind=kind, method=method)
        start, end = (START + timedelta(seconds=second) for second in period) if period else (None, None)
        found = find_transactions(
            asked(
                self.channel,
                whole=whole,
                types=tuple(types),
                methods=tuple(methods),
                start=start,
                end=end,
                limit=limit,
                page=page,
            )
        )
        plain = Payment.objects.filter(merchant=self.channel.merchant_id)
        for name, value in (
            ("channel", None if whole else self.channel),
            ("payment_type__in", types),
            ("method__in", methods),
            ("created_at__gte", start),
            ("created_at__lt", end),
        ):
            plain = plain.filter(**{name: value}) if value else plain
        if page is None:
            assert keys(found) == list(plain.order_by("-created_at", "-id").values_list("pk", flat=True)[:limit])
        else:
            at = (page - 1) * limit
            assert keys(found) == list(plain.order_by("created_at", "id").values_list("pk", flat=True)[at : at + limit])
            assert found.pages == -(-plain.count() // limit)


@pytest.fixture
def channel(division: Division) -> Channel:
    return channel_of(division)


def test_a_query_that_would_look_too_far_is_told_so(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decision 0026: never answered in part."""
    monkeypatch.setattr(queries, "MAX_SCANNED_ROWS", 10)
    add(channel, *range(10))
    wanted = {"start": START, "end": START + timedelta(minutes=1)}
    full = find_transactions(asked(channel, page=1, **wanted))
    assert (len(full.payments), full.pages) == (10, 1)
    assert find_transactions(asked(channel, types=("PA",), **wanted)).payments == []
    add(channel, 11)
    assert len(find_transactions(asked(channel, limit=10, **wanted)).payments) == 10
    assert len(find_transactions(asked(channel, types=("DB",), limit=10, **wanted)).payments) == 10
    for values in ({"types": ("PA",)}, {"types": ("DB",)}, {"methods": ("CC", "DD")}, {"page": 1}):
        with pytest.raises(InvalidParametersError) as told:
            find_transactions(asked(channel, **values, **wanted))
        assert [(error.name, error.value) for error in told.value.errors] == [("date.to", "2026-05-14 12:00:59")]
        assert "choose a shorter one" in told.value.errors[0].message
        with pytest.raises(InvalidParametersError) as told:
            find_transactions(asked(channel, **values))
        assert [error.name for error in told.value.errors] == ["date.from", "date.to"]
    # What is seldom has an index of its own: it is found however much lies between.
    rare = add(channel, 0, kind="CB")
    assert keys(find_transactions(asked(channel, types=("CB", "RF"), **wanted))) == rare


@pytest.mark.parametrize("looked", [1, 3, 7, 100])
def test_how_many_are_looked_through_at_first_changes_no_answer(
    channel: Channel, looked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 0026: whatever LOOKED allows is found, however far behind those that are looked through first."""
    monkeypatch.setattr(queries, "FIRST_SCAN_ROWS", looked)
    older = add(channel, 1, 2, kind="PA")
    add(channel, *range(3, 9))
    newer = add(channel, 9, kind="PA")
    for wanted in ({"types": ("PA", "CP")}, {"types": ("PA",), "methods": ("CC",)}):
        assert keys(find_transactions(asked(channel, **wanted))) == [*newer, *reversed(older)]
        assert keys(find_transactions(asked(channel, limit=1, **wanted))) == newer
        assert keys(find_transactions(asked(channel, limit=2, **wanted))) == [*newer, older[1]]


def test_more_linked_transactions_than_an_answer_takes_are_told(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 0026."""
    monkeypatch.setattr(queries, "MAX_LINKED_TRANSACTIONS", 3)
    first, *rest = add(channel, 1, 2, 3, 4)
    assert len(find_transactions(asked(channel, linked=True, limit=3)).payments) == 3
    Payment.objects.filter(pk__in=rest[:2]).update(chain=first)
    assert len(queries.list_linked_transactions(Payment.objects.get(pk=first), channel).payments) == 3
    Payment.objects.filter(pk__in=rest).update(chain=first)
    for attempt in (
        lambda: find_transactions(asked(channel, linked=True, limit=3)),
        lambda: queries.list_linked_transactions(Payment.objects.get(pk=first), channel),
    ):
        with pytest.raises(InvalidParametersError) as told:
            attempt()
        assert [error.name for error in told.value.errors] == ["includeLinkedTransactions"]


# --- plans --------------------------------------------------------------------------------------------------------

ASKED: dict[str, tuple[dict[str, Any], str]] = {
    # what is asked → the index that must be walked
    "the newest": ({}, "payment_channel_time"),
    "a period": ({"start": START, "end": START + timedelta(days=900)}, "payment_channel_time"),
    "pages": ({"start": START, "end": START + timedelta(days=900), "page": 1}, "payment_channel_time"),
    "later pages": ({"start": START, "end": START + timedelta(days=900), "page": 9}, "payment_channel_time"),
    "often used types": ({"types": ("DB", "RF")}, "payment_channel_time"),
    "seldom used types": ({"types": ("RF", "CB")}, "payment_channel_type"),
    "seldom used methods": ({"methods": ("DD", "PP")}, "payment_channel_method"),
    "often used methods": ({"methods": ("DD", "CC")}, "payment_channel_time"),
    "an order": ({"transaction_id": "order-4711"}, "payment_merchant_tx"),
    "a short id": ({"number": 4711}, "payment_number"),
    "linked": ({"types": ("RF",), "linked": True}, "payment_chain"),
    "the whole merchant": ({"whole": True}, "payment_channel_time"),
}


@pytest.fixture
def loaded(db: None) -> Channel:
    """A channel with 3,000 of 10,000 payments: in a smaller table the way from end to end may be the cheaper one."""
    load_payments(10_000)
    return Channel.objects.get(merchant__name="Loaded: large")


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


@pytest.mark.django_db(transaction=True)
def test_no_query_reads_the_payments_from_end_to_end(loaded: Channel) -> None:
    """Goals, P6."""
    for name, (values, index) in ASKED.items():
        query = asked(loaded, **values)
        with connection.cursor() as cursor:
            text = queries._build_query_statement(query)
            cursor.execute(f"EXPLAIN (FORMAT JSON) {text}", queries._build_query_values(query))
            found = cursor.fetchone()[0]
        plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
        nodes = list(_nodes(plan))
        scans = [node["Node Type"] for node in nodes if node.get("Relation Name") == "gateway_payment"]
        assert "Seq Scan" not in scans, (name, scans)
        assert index in {node.get("Index Name") for node in nodes}, name
