"""Each filter, limit and page of a query of transactions by itself, beside rows that are not meant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.catalogue.parse import InvalidParametersError
from gateway.core import clock, identifiers
from gateway.models import Channel, Merchant, Payment, Registration
from gateway.payments import transaction_query as queries
from gateway.payments.registrations import REGISTRATION_DELETED_CODE
from gateway.payments.rendering import render_payment
from gateway.payments.transaction_query import (
    TransactionPage,
    find_queried_registration,
    find_transactions,
    list_linked_transactions,
    query_from_parameters,
)
from tests.gateway.payments.test_transaction_query import START, add, asked
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)
CHANNEL = Channel(id=UUID(int=2), merchant_id=UUID(int=1))
HOT = START - timedelta(days=9)

# The parameters.

NOTHING: dict[str, Any] = {
    "merchant": UUID(int=1), "channel": UUID(int=2), "transaction_id": None, "number": None, "start": None,
    "end": None, "types": (), "methods": (), "linked": False, "limit": 7, "page": None, "hot_since": HOT,
}  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "values"),
    [
        ({}, {}),
        ({"merchantTransactionId": "order"}, {"transaction_id": "order"}),
        ({"shortId": identifiers.format_short_id(4711)}, {"number": 4711}),
        ({"shortId": "none"}, {"number": 0}),
        ({"pageNo": "3"}, {"page": 3}),
        ({"pageNo": "7143"}, {"page": 7143}),  # the last that a query can have, of six rows
        ({"pageNo": "7144"}, {"page": 7144}),
        ({"pageNo": "999999999"}, {"page": 7144}),
        ({"date.from": "2026-05-14 12:00:00"}, {"start": START}),
        ({"date.to": "2026-05-14 12:00:00"}, {"end": START + SECOND}),
        ({"paymentTypes": "DB,PA,DB"}, {"types": ("DB", "PA")}),
        ({"paymentMethods": "CC"}, {"methods": ("CC",)}),
        ({"includeLinkedTransactions": "true"}, {"linked": True}),
        ({"includeLinkedTransactions": "false"}, {"linked": False}),
    ],
)
def test_a_query_is_what_was_sent(
    monkeypatch: pytest.MonkeyPatch, parameters: dict[str, str], values: dict[str, Any]
) -> None:
    merchant = Merchant(id=UUID(int=1))
    monkeypatch.setattr(queries, "compute_hot_since", lambda one: HOT if one is merchant else None)
    sent: Any = {"limit": "7", **parameters}
    assert query_from_parameters(sent, merchant, CHANNEL) == queries.TransactionQuery(**{**NOTHING, **values})
    whole = {**NOTHING, **values, "channel": None}
    assert query_from_parameters(sent, merchant, None) == queries.TransactionQuery(**whole)


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({}, "time"),
        ({"number": 0, "transaction_id": "order", "types": ("RF",)}, "number"),
        ({"transaction_id": "", "types": ("RF",)}, "transaction"),
        ({"types": ("RF", "CB"), "methods": ("DD",)}, "types"),
        ({"types": ("RF", "DB"), "methods": ("DD",)}, "methods"),
        ({"methods": ("DD", "CC")}, "time"),
        ({"types": ("PA",)}, "time"),
    ],
)
def test_the_most_selective_way_is_gone(values: dict[str, Any], path: str) -> None:
    assert queries._choose_walk(asked(CHANNEL, **values)) == path


@pytest.mark.parametrize(("page", "offset", "most"), [(None, 0, 20), (1, 0, 20), (2, 20, 40), (5, 80, 100)])
def test_a_page_begins_after_those_before_it(page: int | None, offset: int, most: int) -> None:
    values: dict[str, Any] = {
        "number": 3, "start": START, "end": START + SECOND, "transaction_id": "order", "types": ("DB", "PA"),
        "methods": ("CC",), "limit": 20,
    }  # fmt: skip
    assert queries._build_query_values(asked(CHANNEL, page=page, **values), 77) == {
        **values, "merchant": UUID(int=1), "channel": UUID(int=2), "types": ["DB", "PA"], "methods": ["CC"],
        "offset": offset, "most": most, "looked": 77, "beyond": 50_001, "most_linked": 5_001,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "errors"),
    [
        ({}, [("date.from", None), ("date.to", None)]),
        ({"start": START}, [("date.from", None), ("date.to", None)]),
        ({"end": START}, [("date.from", None), ("date.to", None)]),
        ({"start": START, "end": START + SECOND}, [("date.to", "2026-05-14 12:00:00")]),
    ],
)
def test_who_asks_for_too_much_is_told_to_name_a_shorter_time(values: dict[str, Any], errors: list[Any]) -> None:
    fault = queries._build_scan_limit_error(asked(CHANNEL, **values))
    assert [(one.name, one.value) for one in fault.errors] == errors
    assert all("50,000 transactions" in one.message for one in fault.errors)


@pytest.mark.parametrize("archived_too", [True, False])
def test_only_a_query_of_the_archive_reads_it(monkeypatch: pytest.MonkeyPatch, archived_too: bool) -> None:
    monkeypatch.setattr(queries, "include_archive", lambda statement: f"with archive: {statement}")
    statement = queries._build_query_statement(asked(CHANNEL), archived=archived_too)
    assert statement.startswith("with archive") is archived_too
    assert ("p.archived_at" in statement) is archived_too


# Which rows.


class Rows:
    """Of a merchant's two channels, and of another merchant; by a letter each, older ones first."""

    def __init__(self, shop: Shop, stranger: Shop) -> None:
        self.channel, self.beside = shop.channel, shop.open_channel()
        made = {
            "a": add(shop.channel, 0, order="o"),
            "b": add(shop.channel, 1, kind="PA", method="DD", order="o"),
            "c": add(shop.channel, 2, kind="RF", order="p"),
            "d": add(shop.channel, 3, kind="CB", method="PP"),
            "e": add(self.beside, 1, order="o"),
            "f": add(self.beside, 2, kind="RF", order="p"),
            "x": add(stranger.channel, 1, order="o"),
        }
        self.keys = {letter: keys[0] for letter, keys in made.items()}
        self.letters = {key: letter for letter, key in self.keys.items()}

    def number(self, letter: str) -> int:
        return Payment.objects.get(pk=self.keys[letter]).number

    def name(self, payments: Sequence[Payment]) -> str:
        return "".join(self.letters[one.pk] for one in payments)

    def find(self, *, whole: bool = False, **values: Any) -> TransactionPage:
        if "number" in values:
            values["number"] = self.number(values["number"])
        return find_transactions(asked(self.channel, whole=whole, **values))

    def join(self, letters: str) -> None:
        keys = [self.keys[letter] for letter in letters]
        Payment.objects.filter(pk__in=keys).update(chain=keys[0])


@pytest.fixture
def rows(shop: Shop, stranger: Shop) -> Rows:
    return Rows(shop, stranger)


T = [START + number * SECOND for number in range(5)]


@pytest.mark.parametrize(
    ("values", "own", "whole"),
    [
        ({}, "dcba", "dfceba"),
        ({"limit": 2}, "dc", "df"),
        ({"start": T[1]}, "dcb", "dfceb"),
        ({"end": T[1]}, "a", "a"),
        ({"start": T[1], "end": T[2]}, "b", "eb"),
        ({"transaction_id": "o"}, "ba", "eba"),
        ({"transaction_id": "o", "limit": 1}, "b", "e"),
        ({"transaction_id": "none"}, "", ""),
        ({"transaction_id": "o", "types": ("PA",)}, "b", "b"),
        ({"transaction_id": "o", "methods": ("CC",)}, "a", "ea"),
        ({"transaction_id": "o", "start": T[1]}, "b", "eb"),
        ({"transaction_id": "o", "end": T[1]}, "a", "a"),
        ({"transaction_id": ""}, "", ""),
        ({"number": "a"}, "a", "a"),
        ({"number": "e"}, "", "e"),
        ({"number": "x"}, "", ""),
        ({"number": "a", "transaction_id": "o"}, "a", "a"),
        ({"number": "a", "transaction_id": "p"}, "", ""),
        ({"number": "a", "types": ("PA",)}, "", ""),
        ({"number": "a", "methods": ("DD",)}, "", ""),
        ({"number": "a", "start": T[1]}, "", ""),
        ({"types": ("RF", "CB")}, "dc", "dfc"),
        ({"types": ("RF",)}, "c", "fc"),
        ({"types": ("RF", "CB"), "methods": ("PP",)}, "d", "d"),
        ({"types": ("RF", "CB"), "end": T[3]}, "c", "fc"),
        ({"methods": ("DD", "PP")}, "db", "db"),
        ({"methods": ("DD", "PP"), "types": ("PA", "DB")}, "b", "b"),
        ({"types": ("DB", "RF")}, "ca", "fcea"),
        ({"methods": ("CC",), "types": ("DB", "RF")}, "ca", "fcea"),
    ],
    ids=str,
)
def test_a_query_finds_what_it_asks_for(rows: Rows, values: dict[str, Any], own: str, whole: str) -> None:
    assert rows.name(rows.find(**values).payments) == own
    assert rows.name(rows.find(whole=True, **values).payments) == whole
    assert rows.find(**values).pages is None


@pytest.mark.parametrize(
    ("values", "pages"),
    [
        ({"limit": 3}, ["abc", "d", ""]),
        ({"limit": 2}, ["ab", "cd", ""]),
        ({"limit": 3, "whole": True}, ["abe", "cfd", ""]),
        ({"limit": 1, "transaction_id": "o"}, ["a", "b", ""]),
        ({"limit": 1, "types": ("RF", "CB")}, ["c", "d", ""]),
        ({"limit": 1, "types": ("DB", "RF")}, ["a", "c", ""]),
        ({"limit": 1, "number": "a"}, ["a", ""]),
        ({"limit": 2, "start": T[1]}, ["bc", "d", ""]),
        ({"limit": 2, "start": T[1], "end": T[3]}, ["bc", ""]),
    ],
    ids=str,
)
def test_pages_begin_with_the_oldest_and_are_counted(rows: Rows, values: dict[str, Any], pages: list[str]) -> None:
    for number, expected in enumerate(pages, start=1):
        found = rows.find(page=number, **values)
        assert (rows.name(found.payments), found.pages) == (expected, len(pages) - 1), number


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"number": "a"}, "cba"),
        ({"number": "c", "page": 1}, "abc"),
        ({"transaction_id": "p"}, "cba"),
        ({"types": ("RF",)}, "cba"),
        ({"number": "a", "whole": True}, "ceba"),
        ({"number": "d"}, "d"),
    ],
)
def test_linked_ones_are_those_of_the_chain_that_the_query_may_see(
    rows: Rows, values: dict[str, Any], found: str
) -> None:
    rows.join("abcex")
    assert rows.name(rows.find(linked=True, **values).payments) == found


@pytest.mark.parametrize("values", [{"transaction_id": "o"}, {"number": "a"}])
def test_of_one_order_or_number_so_many_are_looked_through(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any]
) -> None:
    monkeypatch.setattr(queries, "MAX_SCANNED_ROWS", 3)
    for page in (None, 1):
        assert rows.find(page=page, **values).payments
    if "number" in values:
        return
    add(rows.beside, 3, order="o")  # the way to the rows goes by the merchant
    for page in (None, 1):
        with pytest.raises(InvalidParametersError):
            rows.find(page=page, **values)


# How far it looks.


def row(number: int, total: int = 1, stopped: bool = False) -> tuple[Any, ...]:
    return total, stopped, *columns(number)


def columns(number: int, at: datetime | None = None) -> tuple[Any, ...]:
    """A row that was not read whole."""
    values = dict.fromkeys(queries._NAMES) | {"id": UUID(int=number) if number else None, "created_at": at}
    return tuple(values[name] for name in queries._NAMES)


@pytest.mark.parametrize(
    ("page", "answers", "scans"),
    [
        (None, [row(1)], [5]),
        (None, [row(1, stopped=True), row(2)], [5, 9]),
        (1, [row(1)], [9]),
    ],
)
def test_few_rows_are_looked_through_at_first_where_no_page_is_counted(
    monkeypatch: pytest.MonkeyPatch, page: int | None, answers: list[Any], scans: list[int]
) -> None:
    monkeypatch.setattr(queries, "FIRST_SCAN_ROWS", 5)
    monkeypatch.setattr(queries, "MAX_SCANNED_ROWS", 9)
    asked_for: list[tuple[int, bool]] = []

    def fetch(query: Any, scanned: int, *, archived: bool) -> list[Any]:
        asked_for.append((scanned, archived))
        return [answers[len(asked_for) - 1]]

    monkeypatch.setattr(queries, "_fetch_rows", fetch)
    for archived in (False, True):
        asked_for.clear()
        total, found = queries._find_payments(asked(CHANNEL, page=page), archived=archived)
        assert (total, [one[0] for one in found]) == (1, [UUID(int=len(scans))])
        assert asked_for == [(scanned, archived) for scanned in scans]


@pytest.mark.parametrize(
    ("values", "answer", "refused"),
    [
        ({}, [row(1)], ""),
        ({}, [row(1, stopped=True)], "date.from"),
        ({"page": 1}, [row(1, total=10)], ""),
        ({"page": 1}, [row(1, total=11)], "date.from"),
        ({"page": 1}, [row(1, stopped=True)], "date.from"),
        ({}, [row(1, total=11)], ""),
        ({"linked": True}, [row(number) for number in (1, 2, 3)], ""),
        ({"linked": True}, [row(number) for number in (1, 2, 3, 4)], "includeLinkedTransactions"),
        ({}, [row(number) for number in (1, 2, 3, 4)], ""),
    ],
)
def test_what_would_be_answered_in_part_is_refused(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], answer: list[Any], refused: str
) -> None:
    monkeypatch.setattr(queries, "MAX_SCANNED_ROWS", 10)
    monkeypatch.setattr(queries, "MAX_LINKED_TRANSACTIONS", 3)
    monkeypatch.setattr(queries, "_fetch_rows", lambda *call, **names: answer)
    if not refused:
        assert len(queries._find_payments(asked(CHANNEL, **values), archived=False)[1]) == len(answer)
        return
    with pytest.raises(InvalidParametersError) as told:
        queries._find_payments(asked(CHANNEL, **values), archived=False)
    error = told.value.errors[0]
    assert error.name == refused
    if refused == "includeLinkedTransactions":
        assert (error.value, error.message) == ("true", "would list more than 3 transactions: narrow the query")


def test_a_query_without_rows_has_no_payments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "_fetch_rows", lambda *call, **names: [row(0, total=0)])
    assert queries._find_payments(asked(CHANNEL), archived=False) == (0, [])


# The archive.

OLD, NEW = HOT - SECOND, HOT + SECOND


@pytest.mark.parametrize(
    ("values", "newest", "looks"),
    [
        ({"hot_since": None}, [NEW], [False]),
        ({"hot_since": HOT, "limit": 1}, [NEW], [False]),
        ({"hot_since": HOT, "limit": 1}, [HOT], [False]),
        ({"hot_since": HOT, "limit": 1}, [OLD], [False, True]),
        ({"hot_since": HOT, "limit": 2}, [NEW], [False, True]),
        ({"hot_since": HOT, "limit": 2}, [NEW, OLD], [False, True]),
        ({"hot_since": HOT, "limit": 2}, [NEW, NEW], [False]),
        ({"hot_since": HOT, "page": 1, "limit": 1}, [OLD], [True]),
        ({"hot_since": None, "page": 1, "limit": 1}, [NEW], [False]),
        ({"hot_since": HOT, "start": HOT}, [NEW], [False]),
    ],
)
def test_the_archive_is_read_where_its_payments_may_be_listed(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], newest: list[datetime], looks: list[bool]
) -> None:
    found = [columns(number, at) for number, at in enumerate(newest, 1)]
    looked: list[bool] = []

    def find(query: Any, *, archived: bool) -> tuple[int, list[tuple[Any, ...]]]:
        looked.append(archived)
        return len(found), found

    monkeypatch.setattr(queries, "_find_payments", find)
    monkeypatch.setattr(queries, "has_archive", lambda: True)
    page = find_transactions(asked(CHANNEL, **values))
    assert looked == looks
    assert [(one.pk, one.created_at) for one in page.payments] == [one[:2] for one in found]
    assert (page.pages, page.read) == (1 if "page" in values else None, {})


@pytest.mark.parametrize(
    ("values", "hot", "has_archive", "kept", "merges"),
    [
        ({"transaction_id": "o"}, True, True, True, True),
        ({"transaction_id": "o"}, False, True, True, True),
        ({"transaction_id": "o"}, True, True, False, False),
        ({"transaction_id": "o"}, True, False, True, False),
        ({"number": 1}, True, True, True, False),
        ({"number": 1}, False, True, True, True),
        ({}, False, True, True, False),
    ],
)
def test_an_order_is_looked_for_in_the_archive_and_a_number_where_it_was_not_found(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], hot: bool, has_archive: bool, kept: bool, merges: bool
) -> None:
    found = [columns(1)] * hot
    archived, merged = [Payment()] * kept, TransactionPage(payments=[], pages=77)
    monkeypatch.setattr(queries, "_find_payments", lambda query, *, archived: (len(found), found))
    monkeypatch.setattr(queries, "has_archive", lambda: has_archive)
    monkeypatch.setattr(queries, "_find_archived", lambda query: archived)
    monkeypatch.setattr(
        queries,
        "_merge_archived",
        lambda query, more, total: merged if (more, total) == (archived, len(found)) else None,
    )
    page = find_transactions(asked(CHANNEL, **values))
    assert page is merged if merges else (len(page.payments), page.pages) == (len(found), None)


@pytest.mark.parametrize(("total", "pages"), [(0, 0), (1, 1), (7, 1), (8, 2), (14, 2), (15, 3)])
def test_a_page_that_is_begun_counts(monkeypatch: pytest.MonkeyPatch, total: int, pages: int) -> None:
    monkeypatch.setattr(queries, "_find_payments", lambda query, *, archived: (total, []))
    assert find_transactions(asked(CHANNEL, limit=7, page=1)).pages == pages


def archived(number: int = 1, **values: Any) -> Payment:
    one = Payment(**{
        "id": UUID(int=number), "chain": UUID(int=number), "payment_type": "DB", "method": "CC", "created_at": T[2],
        "merchant_transaction_id": "o", "request": {"descriptor": "d"}, "answer": {}, **values,
    })  # fmt: skip
    one.archived_at = T[4]
    return one


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"transaction_id": "o"}, True),
        ({"transaction_id": "o", "types": ("PA", "DB")}, True),
        ({"transaction_id": "o", "types": ("PA",)}, False),
        ({"transaction_id": "o", "methods": ("DD", "CC")}, True),
        ({"transaction_id": "o", "methods": ("DD",)}, False),
        ({"transaction_id": "o", "start": T[2]}, True),
        ({"transaction_id": "o", "start": T[3]}, False),
        ({"transaction_id": "o", "end": T[3]}, True),
        ({"transaction_id": "o", "end": T[2]}, False),
        ({"number": 5}, True),
        ({"number": 6}, False),
        ({"number": 5, "transaction_id": "o"}, True),
        ({"number": 5, "transaction_id": "p"}, False),
        ({"number": 5, "types": ("PA",)}, False),
    ],
    ids=str,
)
def test_the_archive_answers_by_the_same_filters(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], found: bool
) -> None:
    one = archived()
    asked_for = (CHANNEL.merchant_id, CHANNEL.id)
    monkeypatch.setattr(queries, "find_archived_number", lambda *call: one if call == (*asked_for, 5) else None)
    monkeypatch.setattr(queries, "list_archived_orders", lambda *call: [one] if call == (*asked_for, "o") else [])
    assert queries._find_archived(asked(CHANNEL, **values)) == [one] * found


def test_more_of_one_order_than_an_answer_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MAX_LINKED_TRANSACTIONS", 2)
    for number in (2, 3):
        monkeypatch.setattr(queries, "list_archived_orders", lambda *call, number=number: [archived()] * number)
        if number == 2:
            assert len(queries._find_archived(asked(CHANNEL, transaction_id="o"))) == 2
            continue
        with pytest.raises(InvalidParametersError) as told:
            queries._find_archived(asked(CHANNEL, transaction_id="o"))
        [error] = told.value.errors
        assert (error.name, error.value) == ("includeLinkedTransactions", "true")
        assert error.message == "would list more than 2 transactions: query them by their dates"


@pytest.mark.parametrize(
    ("values", "found", "pages"),
    [
        ({}, ["b", 2, "a", 1], None),
        ({"limit": 2}, ["b", 2], None),
        ({"page": 1, "limit": 3}, [1, "a", 2], 2),
        ({"page": 2, "limit": 3}, ["b"], 2),
        ({"page": 1, "limit": 5}, [1, "a", 2, "b"], 1),
        ({"page": 3, "limit": 3}, [], 2),
        ({"page": 2, "limit": 1}, ["a"], 5),
    ],
    ids=str,
)
def test_archived_and_other_payments_of_an_order_are_one_list(
    rows: Rows, values: dict[str, Any], found: list[Any], pages: int | None
) -> None:
    """Two are archived, one of them older than the others; "e" is another channel's. A third came since they were
    counted and is gone again."""
    kept = [archived(1, created_at=START - SECOND), archived(2, created_at=START + SECOND / 2)]
    page = queries._merge_archived(asked(rows.channel, transaction_id="o", **values), kept, 3)
    assert [rows.letters.get(one.pk, one.pk.int) for one in page.payments] == found
    assert page.pages == pages


def test_a_payment_that_was_brought_back_meanwhile_is_listed_once(rows: Rows) -> None:
    kept = [archived(rows.keys["a"].int, created_at=START)]
    page = queries._merge_archived(asked(rows.channel, transaction_id="o"), kept, 2)
    assert rows.name(page.payments) == "ba"
    assert page.payments[1].archived_at is None


@pytest.mark.parametrize(("whole", "found"), [(False, [*"cba", 8, 9]), (True, [*"fceba", 8, 9])])
def test_linked_ones_of_an_order_are_read_from_both(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, whole: bool, found: list[Any]
) -> None:
    """The chain of "a" is archived but for "c" and "f", which is of another channel, and "x" of a stranger."""
    rows.join("acfx")
    chain = rows.keys["a"]
    kept_ones = [archived(number, chain=chain, created_at=START - number * SECOND) for number in (8, 9)]
    calls: list[Any] = []

    def list_archived(*call: Any) -> list[Payment]:
        calls.append(call)
        return kept_ones

    monkeypatch.setattr(queries, "list_archived_chains", list_archived)
    query = asked(rows.channel, whole=whole, transaction_id="o", linked=True, types=("DB", "PA"), limit=5)
    page = queries._merge_archived(query, [kept_ones[0]], 2)
    assert [rows.letters.get(one.pk, one.pk.int) for one in page.payments] == found
    [(merchant, channel, chains)] = calls
    assert (merchant, channel) == (rows.channel.merchant_id, None if whole else rows.channel.pk)
    assert set(chains) == {chain, rows.keys["b"], *([rows.keys["e"]] if whole else [])}
    monkeypatch.setattr(queries, "MAX_LINKED_TRANSACTIONS", len(found) - 1)
    with pytest.raises(InvalidParametersError):
        queries._merge_archived(query, [kept_ones[0]], 2)


# Around one payment.


@pytest.mark.parametrize(
    ("whole", "values", "found"),
    [
        (False, {}, "dcba"),
        (True, {}, "dceba"),
        (False, {"types": ("RF",)}, "ca"),
        (False, {"methods": ("CC",)}, "ca"),
        (False, {"types": ("RF", "PA"), "methods": ("DD",)}, "ba"),
        (False, {"types": ("RF",), "methods": ("PP",)}, "a"),
    ],
    ids=str,
)
def test_a_payment_is_listed_with_what_is_linked_to_it(
    rows: Rows, whole: bool, values: dict[str, Any], found: str
) -> None:
    rows.join("abcdex")
    one = Payment.objects.get(pk=rows.keys["a"])
    assert rows.name(list_linked_transactions(one, None if whole else rows.channel, **values).payments) == found


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, [1, 2, 3]),
        ({"types": ("RF",)}, [1, 2]),
        ({"methods": ("DD",)}, [1, 3]),
        ({"types": ("RF",), "methods": ("DD",)}, [1]),
        ({"types": ("RF", "PA"), "methods": ("CC", "DD")}, [1, 2, 3]),
    ],
    ids=str,
)
@pytest.mark.parametrize("channel", [CHANNEL, None])
def test_an_archived_payment_is_listed_with_what_is_linked_to_it(
    monkeypatch: pytest.MonkeyPatch, channel: Channel | None, values: dict[str, Any], found: list[int]
) -> None:
    one = archived(1)
    members = [one, archived(2, payment_type="RF"), archived(3, payment_type="PA", method="DD")]
    asked_for = (one.merchant_id, channel.pk if channel is not None else None, [one.chain])
    monkeypatch.setattr(queries, "list_archived_chains", lambda *call: members if call == asked_for else [])
    assert [each.pk.int for each in list_linked_transactions(one, channel, **values).payments] == found
    monkeypatch.setattr(queries, "MAX_LINKED_TRANSACTIONS", 2)
    if len(found) > 2:
        with pytest.raises(InvalidParametersError):
            list_linked_transactions(one, channel, **values)


def test_a_registration_is_its_merchants_and_channels_own(shop: Shop, stranger: Shop) -> None:
    card = {
        "paymentBrand": "VISA", "card.number": "4200000000000000", "card.holder": "Jane Jones",
        "card.expiryMonth": "05", "card.expiryYear": "2034",
    }  # fmt: skip
    ident, other = (UUID(shop.api.post("/v1/registrations", card).id) for _ in range(2))
    beside = shop.open_channel()
    for target, merchant, channel, found in (
        (ident, shop.merchant, None, ident),
        (ident, shop.merchant, shop.channel, ident),
        (other, shop.merchant, shop.channel, other),
        (ident, shop.merchant, beside, None),
        (ident, stranger.merchant, None, None),
        (UUID(int=9), shop.merchant, None, None),
        (None, shop.merchant, None, None),
    ):
        registration = find_queried_registration(target, merchant, channel)
        assert (registration.pk if registration is not None else None) == found


def test_a_transaction_is_its_payment_with_what_lists_need(shop: Shop) -> None:
    row = Payment.objects.get(pk=shop.api.pay().id)
    made = clock.format_timestamp(row.created_at)
    assert queries.render_transaction(row) == render_payment(row) | {
        "shortId": identifiers.format_short_id(row.number), "paymentMethod": "CC", "requestTimestamp": made,
        "timestamp": made, "ndc": f"{shop.channel.pk.hex}-{row.request_id.hex}",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "mode", "code"),
    [
        ("ACTIVE", "INTERNAL", "000.100.110"),
        ("ACTIVE", "EXTERNAL", "000.100.112"),
        ("DELETED", "INTERNAL", "100.150.101"),
    ],
)
def test_a_registration_is_told_as_it_is_now(status: str, mode: str, code: str) -> None:
    at = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    registration = Registration(status=status, test_mode=mode, created_at=at, method="DD", brand="VISA")
    body = queries.render_queried_registration(registration)
    made = clock.format_timestamp(at)
    assert (body["paymentMethod"], body["requestTimestamp"], body["timestamp"]) == ("DD", made, made)
    assert body["result"]["code"] == (REGISTRATION_DELETED_CODE if status == "DELETED" else code)
