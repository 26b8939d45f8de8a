"""The search of the docs finds what readers type, in their words and misspelt."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import FrameType
from typing import Any

import pytest
from django.test import Client

from gateway.portal import search, search_budget, views
from gateway.portal.search import list_search_entries, search_docs

FOUND = {
    "content security policy": "/docs/widget#content-security-policy",
    "csp": "/docs/widget#content-security-policy",
    "css": "/docs/theming",
    "save card": "/docs/registrations",
    "save": "/docs/registrations",
    "hmac": "/docs/webhooks",
    "go live": "/docs/go-live",
    "changelog": "/docs/changelog",
    "recurring": "/docs/schedules",
    "amonut": "/docs/reference/payment#amount",
    "refnud": "/docs/follow-ups#refund",
}

CODE = re.compile(r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}")


def test_what_readers_type_is_found_first() -> None:
    found = {query: (search_docs(query, live=False) or [None])[0] for query in FOUND}
    assert {query: entry.url if entry else "" for query, entry in found.items()} == FOUND


@pytest.mark.parametrize(
    ("query", "name"), [("apple pay", "wallet1."), ("google pay", "wallet2."), ("samsung pay", "wallet3.")]
)
def test_a_wallet_is_found_by_its_trade_name(query: str, name: str) -> None:
    assert any(entry.title.startswith(name) for entry in search_docs(query, live=False))


def test_the_text_of_a_section_is_found_below_titles_and_summaries() -> None:
    """Standard Webhooks: a page's keyword; pgBackRest: only in a text."""
    assert search_docs("pgbackrest", live=False)[0].url.startswith("/docs/running#")
    ranks = [entry.title.lower().count("refund") > 0 for entry in search_docs("refund", live=False)]
    assert ranks == sorted(ranks, reverse=True)


def test_every_section_of_the_guides_is_found_by_its_heading() -> None:
    sections = [one for one in list_search_entries(live=False) if "#" in one.url and one.body_index != " "]
    assert len(sections) > 100
    for section in sections:
        assert section.url in {one.url for one in search_docs(section.title, live=False)}, section.title


def test_a_result_code_is_found_while_it_is_typed() -> None:
    """Its first number is that of hundreds of others."""
    codes = [one for one in list_search_entries(live=False) if CODE.fullmatch(one.title)]
    assert len(codes) > 300
    for code in codes:
        for typed in (code.title[:5], code.title[:7], code.title[:-1]):
            found = search_docs(typed, live=False)
            assert found, typed
            assert found[0].title.startswith(typed), typed


def test_nothing_is_found_of_what_is_like_no_word() -> None:
    assert search_docs("qqqxzzqq", live=False) == []
    assert search_docs("¤", live=False) == []


def test_a_query_of_many_words_costs_what_few_cost() -> None:
    """Strangers ask: a word counts once, and words beyond the eighth are not looked for."""
    few = [one.url for one in search_docs("card number", live=False)]
    assert few
    assert [one.url for one in search_docs("card number " * 8, live=False)] == few
    letters = "a e i o n r s t"
    found = [one.url for one in search_docs(letters, live=False)]
    assert found
    assert [one.url for one in search_docs(f"{letters} nosuchword", live=False)] == found


# --- what a stranger's search costs ---------------------------------------------------------------------------------

HOSTILE = (
    "e", "a e i o n r s t", "the a of to in and is that", "payment payments card cards id type", "refnud amonut paymnt",
    "c.a.r.d", "% & ¤", "0 1 2 3 4 5 6 7", "q" * 100, "paymentpaymentpaymentpa", "a" * 24 + " " + "b" * 24, "000.100",
    "-" * 100, "e" * 5_000, "ee ea er es en et", "merchanttransactionid",
)  # fmt: skip
"""Letters that every entry has, the docs' most frequent words, words that are nearly spelt as others, long ones."""
MAX_STEPS = 24_000
"""Lines of Python that one search may run: of 300 entries, each looked at for eight words. Looking at each of the docs'
entries took from 28,000 to 160,000 for these queries."""


def count_steps(query: str) -> int:
    """Lines that the search and the comparison of words run, which do not depend on the machine."""
    steps, before = 0, sys.gettrace()

    def trace(frame: FrameType, event: str, _value: Any) -> Any:
        nonlocal steps
        if not frame.f_code.co_filename.endswith(("portal/search.py", "difflib.py")):
            return None
        steps += event == "line"
        return trace

    sys.settrace(trace)
    try:
        search_docs(query, live=False)
    finally:
        sys.settrace(before)
    return steps


@pytest.mark.parametrize("query", HOSTILE)
def test_a_search_costs_no_more_than_its_bound_whatever_is_asked(query: str) -> None:
    search.load_search_index(live=False)
    steps = count_steps(query)
    assert 0 < steps <= MAX_STEPS


@pytest.mark.parametrize("query", HOSTILE)
def test_few_entries_and_few_words_are_compared(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scored, compared = 0, 0
    score, compare = search._score_entry, search.get_close_matches

    def count_score(*arguments: Any) -> int:
        nonlocal scored
        scored += 1
        return score(*arguments)

    def count_compared(word: str, words: list[str], **options: Any) -> list[str]:
        nonlocal compared
        compared += len(words)
        return compare(word, words, **options)

    monkeypatch.setattr(search, "_score_entry", count_score)
    monkeypatch.setattr(search, "get_close_matches", count_compared)
    search_docs(query, live=False)
    assert scored <= 2 * search.MAX_SCORED_ENTRIES
    assert compared <= search.MAX_CORRECTED_WORDS * search.MAX_COMPARED_WORDS


def test_the_index_is_made_once() -> None:
    first = search.load_search_index(live=False)
    search_docs("refund", live=False)
    assert search.load_search_index(live=False) is first
    assert search.load_search_index(live=True) is not first


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No time passes, and all searches of this process are used up."""
    monkeypatch.setattr(search_budget.time, "monotonic", lambda: 1_000.0)
    search_budget.spend_search()
    search_budget.SEARCH_BUDGET.left = 0.0
    yield
    search_budget.SEARCH_BUDGET.left = float(search_budget.MAX_SEARCHES_AT_ONCE)


@pytest.mark.parametrize("path", ["/docs/search", "/docs/search.json"])
def test_too_many_searches_are_refused_before_anything_is_looked_up(
    spent: None, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: Any, **_options: Any) -> Any:
        raise AssertionError("it was looked up")

    monkeypatch.setattr(views, "search_docs", fail)
    answer = Client().get(path, {"q": "refund"})
    assert (answer.status_code, answer["Retry-After"]) == (429, "1")
    assert "Too many searches at a time" in answer.content.decode()
    if path == "/docs/search":
        assert (answer["Refresh"], b'value="refund"' in answer.content) == ("1", True), "a page, which asks again"
    else:
        assert answer.json()["found"] == []


def test_searches_come_at_once_and_are_earned_again() -> None:
    budget = search_budget.DocsSearchBudget(counted_at=50.0)
    assert [budget.spend(50.0) for _ in range(search_budget.MAX_SEARCHES_AT_ONCE + 1)].count(True) == 60
    assert not budget.spend(50.04)
    assert budget.spend(50.11)
    assert [budget.spend(500.0) for _ in range(100)].count(True) == 60


@pytest.fixture
def unmade(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A process that has no index yet; it is made when the event is set."""
    allowed, load = threading.Event(), search.load_search_index
    monkeypatch.setattr(search, "load_search_index", lambda live: allowed.wait(60) and load(live))
    monkeypatch.setattr(search, "_start_search_index", cache(search._start_search_index.__wrapped__))
    yield allowed
    allowed.set()
    search_budget.SEARCH_BUDGET.left = float(search_budget.MAX_SEARCHES_AT_ONCE)


def test_the_first_search_of_a_process_does_not_make_the_index_itself(unmade: threading.Event) -> None:
    """It took 1.3 s of CPU, and all threads could wait for it."""
    with ThreadPoolExecutor(max_workers=search.MAX_INDEX_WAITERS) as others:
        waiting = [others.submit(search.wait_for_search_index, False) for _ in range(search.MAX_INDEX_WAITERS)]
        while search._waiters._value:  # all of them have begun to wait
            time.sleep(0.001)
        answer = Client().get("/docs/search.json", {"q": "refund"})
        assert (answer.status_code, answer["Retry-After"], answer.json()["found"]) == (429, "1", [])
        unmade.set()
        assert [one.result() for one in waiting] == [True, True]
    assert Client().get("/docs/search.json", {"q": "refund"}).json()["found"]


def test_whoever_waits_for_the_index_does_not_wait_for_ever(
    unmade: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MAX_INDEX_WAIT_S", 0.01)
    assert Client().get("/docs/search", {"q": "refund"}).status_code == 429


def test_the_page_without_a_query_is_not_counted(spent: None) -> None:
    assert Client().get("/docs/search").status_code == 200
