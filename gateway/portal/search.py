"""Search of the docs: pages, endpoints, parameters, result codes, test cards and test accounts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final
from urllib.parse import quote

from gateway.portal import navigation, result_code_docs, testdata
from gateway.portal.reference import build_endpoint_doc, list_endpoints

MAX_SEARCH_RESULTS: Final = 20
MAX_QUERY_CHARS: Final = 100
"""Characters used of a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEntry:
    """One search result. ``kind``: as shown to the reader: page, parameter, result code, test card."""

    title: str
    kind: str
    text: str
    url: str
    words: str
    weight: int = 0


@cache
def list_search_entries(live: bool) -> tuple[SearchEntry, ...]:
    """Everything that can be found in this environment."""
    found: list[SearchEntry] = []
    for group in navigation.list_menu_groups():
        for page in group.pages:
            if live and page.test_only:
                continue
            found.append(_build_entry(page.title, "page", page.about, page.url, weight=3, more=page.keywords))
    seen: set[str] = set()
    for endpoint in list_endpoints(live):
        url = f"/docs/reference/{endpoint.name}"
        path = f"{endpoint.method} {endpoint.path}"
        found.append(_build_entry(endpoint.title, "endpoint", f"{path}: {endpoint.about}", url, weight=3))
        for part in build_endpoint_doc(endpoint.name).groups:
            for param in part.params:
                if param.anchor in seen:
                    continue
                seen.add(param.anchor)
                text = f"{param.allowed}. {param.note}".strip()
                found.append(_build_entry(param.anchor, "parameter", text, f"{url}#{quote(param.anchor)}", weight=1))
    for family in result_code_docs.list_families():
        for row in family.codes:
            url = f"/docs/result-codes#{row.code}"
            found.append(_build_entry(row.code, "result code", row.meaning, url, more=family.title))
    if not live:
        for cards in testdata.list_card_groups():
            for card in cards.cards:
                words = f"{card.number} {card.code} {card.brand}"
                found.append(_build_entry(card.spaced, "test card", card.title, f"/testdata#{card.number}", more=words))
        for accounts in testdata.list_account_groups():
            for account in accounts.rows:
                words = f"{account['account']} {account['resultCode']} {account['brand']}"
                found.append(
                    _build_entry(
                        account["account"],
                        "test account",
                        account["title"],
                        f"/testdata#{accounts.anchor}",
                        more=words,
                    )
                )
    return tuple(found)


def _build_entry(title: str, kind: str, text: str, url: str, *, weight: int = 0, more: str = "") -> SearchEntry:
    words = f"{title} {text} {more}".lower()
    return SearchEntry(title=title, kind=kind, text=text, url=url, words=words, weight=weight)


def search_docs(query: str, *, live: bool) -> list[SearchEntry]:
    """The best entries that contain every word of ``query``, best first."""
    words = query.strip().lower()[:MAX_QUERY_CHARS].split()
    if not words:
        return []
    hits = [
        (-_score_entry(entry, words), at, entry)
        for at, entry in enumerate(list_search_entries(live))
        if all(word in entry.words for word in words)
    ]
    return [entry for _, _, entry in sorted(hits, key=lambda hit: hit[:2])[:MAX_SEARCH_RESULTS]]


def _score_entry(entry: SearchEntry, words: list[str]) -> int:
    title = entry.title.lower()
    whole = " ".join(words)
    if title == whole:
        return 100
    score = entry.weight
    if title.startswith(whole) or title.endswith(f".{whole}"):
        score += 20
    return score + sum(5 for word in words if word in title)
