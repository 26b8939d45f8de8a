"""The search of the docs: pages, parameters, result codes, test cards, by the words a reader types."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final
from urllib.parse import quote

from gateway.pages import codes, navigation, testdata
from gateway.pages.reference import endpoint_doc, endpoints

MOST_RESULTS: Final = 20
MOST_CHARACTERS: Final = 100
"""Of a query; what follows is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing to find. ``kind`` is what the reader sees: page, parameter, result code, test card."""

    title: str
    kind: str
    text: str
    url: str
    words: str
    weight: int = 0


@cache
def entries(live: bool) -> tuple[Entry, ...]:
    found: list[Entry] = []
    for group in navigation.MENU:
        for page in group.pages:
            if live and page.test_only:
                continue
            found.append(_entry(page.title, "page", page.about, page.url, weight=3, more=page.keywords))
    seen: set[str] = set()
    for endpoint in endpoints(live):
        url = f"/docs/reference/{endpoint.name}"
        path = f"{endpoint.method} {endpoint.path}"
        found.append(_entry(endpoint.title, "endpoint", f"{path}: {endpoint.about}", url, weight=3))
        for part in endpoint_doc(endpoint.name).groups:
            for param in part.params:
                if param.anchor in seen:
                    continue
                seen.add(param.anchor)
                text = f"{param.allowed}. {param.note}".strip()
                found.append(_entry(param.anchor, "parameter", text, f"{url}#{quote(param.anchor)}", weight=1))
    for family in codes.families():
        for row in family.codes:
            url = f"/docs/result-codes#{row.code}"
            found.append(_entry(row.code, "result code", row.meaning, url, more=family.title))
    if not live:
        for cards in testdata.card_groups():
            for card in cards.cards:
                words = f"{card.number} {card.code} {card.brand}"
                found.append(_entry(card.spaced, "test card", card.title, f"/testdata#{card.number}", more=words))
        for group in testdata.account_groups():
            for row in group.rows:
                words = f"{row['account']} {row['resultCode']} {row['brand']}"
                found.append(
                    _entry(row["account"], "test account", row["title"], f"/testdata#{group.anchor}", more=words)
                )
    return tuple(found)


def _entry(title: str, kind: str, text: str, url: str, *, weight: int = 0, more: str = "") -> Entry:
    words = f"{title} {text} {more}".lower()
    return Entry(title=title, kind=kind, text=text, url=url, words=words, weight=weight)


def search(query: str, *, live: bool) -> list[Entry]:
    """The best entries that hold every word of ``query``, best first."""
    words = query.strip().lower()[:MOST_CHARACTERS].split()
    if not words:
        return []
    hits = [
        (-_score(entry, words), at, entry)
        for at, entry in enumerate(entries(live))
        if all(word in entry.words for word in words)
    ]
    return [entry for _, _, entry in sorted(hits, key=lambda hit: hit[:2])[:MOST_RESULTS]]


def _score(entry: Entry, words: list[str]) -> int:
    title = entry.title.lower()
    whole = " ".join(words)
    if title == whole:
        return 100
    score = entry.weight
    if title.startswith(whole) or title.endswith(f".{whole}"):
        score += 20
    return score + sum(5 for word in words if word in title)
