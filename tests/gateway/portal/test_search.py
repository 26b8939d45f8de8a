"""The search of the docs finds what readers type, in their words and misspelt."""

from __future__ import annotations

import pytest

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
