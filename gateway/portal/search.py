"""Search of the docs: pages and their sections, endpoints, parameters, result codes, test cards and test accounts.

Every word of a query has to be in an entry. What stands in its title ranks above what stands in its summary, and that
above its text. ``_SYNONYMS`` adds what readers call a thing; where nothing is found, words that are spelt nearly alike
are tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from gateway.core import identifiers
from gateway.portal import navigation, result_code_docs, testdata
from gateway.portal.documents import CHANGELOG_DOCUMENT, DocumentSection, list_documents, load_document, to_text
from gateway.portal.markdown_rendering import PART
from gateway.portal.reference import build_endpoint_doc, list_endpoints

MAX_SEARCH_RESULTS: Final = 20
MAX_QUERY_CHARS: Final = 100
"""Characters used of a query."""
MAX_QUERY_WORDS: Final = 8
"""Different words used of a query: each is looked for in every entry."""
MAX_CORRECTED_WORDS: Final = 4
MAX_EXCERPT_CHARS: Final = 160
"""Characters of a section's text that are shown."""

_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "apple pay": ("wallet1", "wallets"),
        "google pay": ("wallet2", "wallets"),
        "samsung pay": ("wallet3", "wallets"),
        "recurring": ("subscriptions",),
        "hmac": ("webhooks",),
        "save": ("registrations",),
        "save card": ("registrations",),
        "card on file": ("registrations",),
        "csp": ("content security policy",),
        "css": ("how the form looks",),
        "theme": ("how the form looks",),
        "go live": ("from nothing to live",),
        "production": ("from nothing to live", "before going live"),
        "migration": ("moving from another gateway",),
        "migrate": ("moving from another gateway",),
        "example shop": ("a whole shop",),
        "sample": ("a whole shop",),
        "colours": ("how the form looks",),
        "colors": ("how the form looks",),
        "uptime": ("status",),
        "mcp": ("an assistant that reads",),
        "postman": ("a collection for bruno or postman",),
        "bruno": ("a collection for bruno or postman",),
        "sdk": ("clients",),
        "3ds": ("3-d secure",),
        "void": ("reverse",),
    }
)
"""What readers type, and what the docs call it."""
_NDC: Final = re.compile("[0-9a-f]{32}-[0-9a-f]{32}")
"""The ndc of an answer (gateway.core.identifiers.format_ndc)."""
_NEAR_MISS: Final = 0.75
"""How alike a misspelt word is to one that exists, of 1."""
_CAMEL: Final = re.compile("(?<=[a-z0-9])(?=[A-Z])")
_BLOCK_END: Final = re.compile("</(?:p|li|td|th|pre|div|h[1-6])>")
_NO_WORD: Final = re.compile("[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEntry:
    """One search result. ``kind``: as shown to the reader: page, section, parameter, result code, test card. ``words``:
    title, summary and keywords; ``body``: a section's whole text; each of the last three as :func:`_index` has it."""

    title: str
    kind: str
    text: str
    url: str
    words: str
    title_index: str
    words_index: str
    body_index: str
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
            found += _list_sections(page, live, weight=2 if group.for_merchants else 0)
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


def _list_sections(page: navigation.DocsPage, live: bool, weight: int) -> Iterator[SearchEntry]:
    """The sections of a page that is a document, with their whole text."""
    if page.name not in list_documents() or page.name == CHANGELOG_DOCUMENT:
        return
    for section in load_document(page.name, live=live).sections:
        title, text = to_text(section.title), _read_section(section)
        shown = text if len(text) <= MAX_EXCERPT_CHARS else f"{text[:MAX_EXCERPT_CHARS].rsplit(' ', 1)[0]} …"
        url = f"{page.url}#{section.anchor}"
        yield _build_entry(title, page.title, shown, url, weight=weight, more=page.title, body=text)


def _read_section(section: DocumentSection) -> str:
    return to_text(PART.sub(" ", _BLOCK_END.sub(" ", section.html)))


def _build_entry(
    title: str, kind: str, text: str, url: str, *, weight: int = 0, more: str = "", body: str = ""
) -> SearchEntry:
    words = f"{title} {text} {more}"
    return SearchEntry(
        title=title,
        kind=kind,
        text=text,
        url=url,
        words=words.lower(),
        title_index=_index(title),
        words_index=_index(words),
        body_index=_index(body),
        weight=weight,
    )


def _index(text: str) -> str:
    """``text`` as lower-case words with a space before each: " card expiry month" for card.expiryMonth."""
    return " " + _NO_WORD.sub(" ", _CAMEL.sub(" ", text).lower()).strip()


def find_request_page(query: str) -> str:
    """The back office's page of the request whose ndc ``query`` is; "" for any other text. That page asks for the right
    to see the request, and nothing is looked up before: strangers learn nothing."""
    asked = query.strip().lower()
    ident = identifiers.parse_ndc(asked) if _NDC.fullmatch(asked) else None
    return f"/admin/gateway/requestlog/{ident}/change/" if ident is not None else ""


def search_docs(query: str, *, live: bool) -> list[SearchEntry]:
    """The best entries that contain every word of ``query``, best first."""
    asked = " ".join(query.strip().lower()[:MAX_QUERY_CHARS].split())
    if not asked:
        return []
    queries = (asked, *_SYNONYMS.get(asked, ()))
    return _find_entries(queries, live) or _find_entries((_correct_query(asked, live),), live)


def _find_entries(queries: tuple[str, ...], live: bool) -> list[SearchEntry]:
    asked = [(query, _split_query(query)) for query in queries]
    hits = [
        (-score, at, entry)
        for at, entry in enumerate(list_search_entries(live))
        if (score := max(_score_entry(entry, query, words) for query, words in asked)) > 0
    ]
    return [entry for _, _, entry in sorted(hits, key=lambda hit: hit[:2])[:MAX_SEARCH_RESULTS]]


def _split_query(query: str) -> list[tuple[str, str]]:
    """The different words of a query, each with its form in an index."""
    return [(word, _index(word)) for word in list(dict.fromkeys(query.split()))[:MAX_QUERY_WORDS]]


def _score_entry(entry: SearchEntry, query: str, words: list[tuple[str, str]]) -> int:
    """0 if a word of ``query`` does not occur."""
    title = entry.title.lower()
    if title == query:
        return 100
    score = entry.weight
    for word, begins in words:
        if not (found := _score_word(entry, title, word, begins)):
            return 0
        score += found
    if title.startswith(query) or title.endswith(f".{query}"):
        score += 20
    return score


def _score_word(entry: SearchEntry, title: str, word: str, begins: str) -> int:
    if begins != " " and begins in entry.title_index:
        return 10
    if word in title:
        return 5
    if begins != " " and begins in entry.words_index:
        return 4
    if word in entry.words:
        return 2
    return int(begins != " " and begins in entry.body_index)


def _correct_query(query: str, live: bool) -> str:
    """``query`` with the nearest word of the docs in place of each that does not exist."""
    words = query.split()
    if len(set(words)) > MAX_CORRECTED_WORDS:  # looking for near ones costs milliseconds for each
        return query
    known = _list_title_words(live)
    nearest = {word: get_close_matches(word, known, n=1, cutoff=_NEAR_MISS) for word in set(words)}
    return " ".join(nearest[word][0] if nearest[word] else word for word in words)


@cache
def _list_title_words(live: bool) -> tuple[str, ...]:
    words = {word for entry in list_search_entries(live) for word in entry.title_index.split()}
    return tuple(sorted(word for word in words if word.isalpha()))
