"""Search of the docs: pages and their sections, endpoints, parameters, result codes, test cards and test accounts.

Every word of a query has to be in an entry. What stands in its title ranks above what stands in its summary, and that
above its text. ``_SYNONYMS`` adds what readers call a thing; where nothing is found, words that are spelt nearly alike
are tried.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from heapq import nsmallest
from itertools import accumulate, chain, islice, zip_longest
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from gateway.core import identifiers
from gateway.db.sessions import pause_work
from gateway.portal import navigation, result_code_docs, testdata
from gateway.portal.documents import CHANGELOG_DOCUMENT, DocumentSection, list_documents, load_document, to_text
from gateway.portal.markdown_rendering import PART
from gateway.portal.reference import build_endpoint_doc, list_endpoints

MAX_SEARCH_RESULTS: Final = 20
MAX_QUERY_CHARS: Final = 100
"""Characters used of a query."""
MAX_QUERY_WORDS: Final = 8
"""Different words used of a query: each is looked for in every entry that is looked at."""
MAX_SCORED_ENTRIES: Final = 300
"""Entries that are looked at for one query: strangers ask, and have 5 ms (goal P17)."""
MAX_SKIPPED_NUMBERS: Final = 4
"""Steps for each of them through the words that begin alike, which have many entries in common."""
MAX_CORRECTED_WORDS: Final = 3
MAX_CORRECTED_CHARS: Final = 24
"""Characters of a word that may be misspelt."""
MAX_COMPARED_WORDS: Final = 12
"""Title words that a misspelt word is compared with, letter by letter."""
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
_LAST_CHARACTER: Final = chr(0x10FFFF)
MAX_INDEX_WAITERS: Final = 2
"""Requests of a process that wait while its index is made: further ones are refused, so that threads stay free."""
MAX_INDEX_WAIT_S: Final = 10.0
_making: Final = threading.Lock()
_waiters: Final = threading.BoundedSemaphore(MAX_INDEX_WAITERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEntry:
    """One search result. ``kind``: as shown to the reader: page, section, parameter, result code, test card. ``words``:
    title, summary and keywords. ``title_index``, ``words_index``, ``body_index``: of the title, of ``words``, and of a
    section's whole text, as :func:`_index` has it."""

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
    sources = [_list_page_entries(live), _list_endpoint_entries(live), _list_result_code_entries()]
    return tuple(chain.from_iterable(sources if live else [*sources, _list_test_data_entries()]))


def _list_page_entries(live: bool) -> Iterator[SearchEntry]:
    for group in navigation.list_menu_groups():
        for page in group.pages:
            if live and page.test_only:
                continue
            yield _build_entry(page.title, "page", page.about, page.url, weight=3, more=page.keywords)
            yield from _list_sections(page, live, weight=2 if group.for_merchants else 0)


def _list_endpoint_entries(live: bool) -> Iterator[SearchEntry]:
    """The endpoints, each followed by its parameters that no endpoint before has."""
    seen: set[str] = set()
    for endpoint in list_endpoints(live):
        url = f"/docs/reference/{endpoint.name}"
        path = f"{endpoint.method} {endpoint.path}"
        yield _build_entry(endpoint.title, "endpoint", f"{path}: {endpoint.about}", url, weight=3)
        for part in build_endpoint_doc(endpoint.name).groups:
            for param in part.params:
                if param.anchor in seen:
                    continue
                seen.add(param.anchor)
                text = f"{param.allowed}. {param.note}".strip()
                yield _build_entry(param.anchor, "parameter", text, f"{url}#{quote(param.anchor)}", weight=1)


def _list_result_code_entries() -> Iterator[SearchEntry]:
    for family in result_code_docs.list_families():
        for row in family.codes:
            url = f"/docs/result-codes#{row.code}"
            yield _build_entry(row.code, "result code", row.meaning, url, more=family.title)


def _list_test_data_entries() -> Iterator[SearchEntry]:
    for cards in testdata.list_card_groups():
        for card in cards.cards:
            words = f"{card.number} {card.code} {card.brand}"
            yield _build_entry(card.spaced, "test card", card.title, f"/testdata#{card.number}", more=words)
    for accounts in testdata.list_account_groups():
        for account in accounts.rows:
            words = f"{account['account']} {account['resultCode']} {account['brand']}"
            url = f"/testdata#{accounts.anchor}"
            yield _build_entry(account["account"], "test account", account["title"], url, more=words)


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
    """The best entries that contain every word of ``query``, best first. What it costs does not grow with the docs:
    MAX_SCORED_ENTRIES entries are looked at for a query, and as many for its correction."""
    asked = " ".join(query.strip().lower()[:MAX_QUERY_CHARS].split())
    if not asked:
        return []
    queries = (asked, *_SYNONYMS.get(asked, ()))
    if found := _find_entries(queries, live):
        return found
    corrected = _correct_query(asked, live)
    return _find_entries((corrected,), live) if corrected != asked else []


def _find_entries(queries: tuple[str, ...], live: bool) -> list[SearchEntry]:
    index = load_search_index(live)
    scores: dict[int, int] = {}
    for query in queries:
        words = _split_query(query)
        for at in index.choose_entries(query, words, MAX_SCORED_ENTRIES // len(queries)):
            scores[at] = max(scores.get(at, 0), _score_entry(index.entries[at], query, words))
    best = nsmallest(MAX_SEARCH_RESULTS, ((-score, at) for at, score in scores.items() if score > 0))
    return [index.entries[at] for _, at in best]


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
    if title.startswith(query):
        score += 21
    elif title.endswith(f".{query}"):
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


# --- which entries are looked at ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchIndex:
    """All entries, and which of them have a word. ``words``: every word of the docs, sorted; ``numbers``: those of the
    entries that have it, the best first; ``before``: how many numbers the words before it have together. ``titles``:
    title in lower case → numbers; ``names``: these titles, sorted. ``pairs``: two letters → the title words that have
    them, for what is misspelt."""

    entries: tuple[SearchEntry, ...]
    words: tuple[str, ...]
    numbers: tuple[tuple[int, ...], ...]
    before: tuple[int, ...]
    titles: Mapping[str, tuple[int, ...]]
    names: tuple[str, ...]
    pairs: Mapping[str, tuple[str, ...]]

    def choose_entries(self, query: str, words: list[tuple[str, str]], most: int) -> list[int]:
        """At most ``most`` entries that may contain every word: those that are called so or whose title begins so, and
        those that have a word which begins as the rarest of the query does. "100.400.3" has three words, of which the
        first says little."""
        chosen = dict.fromkeys(self.titles.get(query, ())[:most])
        first, last = _find_range(self.names, query)
        begun = chain.from_iterable(self.titles[name] for name in self.names[first : min(last, first + most)])
        chosen |= dict.fromkeys(islice(begun, max(0, most // 2 - len(chosen))))
        ranges = [_find_range(self.words, part) for _, begins in words for part in begins.split()]
        if ranges:
            first, last = min(ranges, key=lambda found: self.before[found[1]] - self.before[found[0]])
            # Each word's best before the second best of any, so that none of many words crowds the others out.
            own = self.numbers[first : min(last, first + most)]
            for number in islice(chain.from_iterable(zip_longest(*own)), most * MAX_SKIPPED_NUMBERS):
                if number is not None:
                    chosen[number] = None
                if len(chosen) >= most:
                    break
        return list(chosen)


def _find_range(ordered: tuple[str, ...], begins: str) -> tuple[int, int]:
    """The range of the words that begin with ``begins``: the first, and the one behind the last."""
    return bisect_left(ordered, begins), bisect_left(ordered, f"{begins}{_LAST_CHARACTER}")


def wait_for_search_index(live: bool) -> bool:
    """Whether the index can be searched. The first search of a process has it made by a thread of its own: it takes
    over a second of CPU, which no stranger's request pays for (goal P17). A few wait for it; False for the others."""
    maker = _start_search_index(live)
    if not maker.is_alive():
        return True
    if not _waiters.acquire(blocking=False):
        return False
    try:
        pause_work()
        maker.join(MAX_INDEX_WAIT_S)
    finally:
        _waiters.release()
    return not maker.is_alive()


@cache
def _start_search_index(live: bool) -> threading.Thread:
    maker = threading.Thread(target=load_search_index, args=(live,), name="search-index", daemon=True)
    maker.start()
    return maker


def load_search_index(live: bool) -> SearchIndex:
    """The index of this environment. It is made once in a process, which takes a second or two: by one thread, while
    others that want it wait."""
    with _making:
        return _build_search_index(live)


@cache
def _build_search_index(live: bool) -> SearchIndex:
    entries = list_search_entries(live)
    ranked: dict[str, list[tuple[int, int, int]]] = {}
    titles: dict[str, list[int]] = {}
    for at, entry in enumerate(entries):
        titles.setdefault(entry.title.lower(), []).append(at)
        kinds: dict[str, int] = {}
        for rank, text in enumerate(
            (f"{entry.title_index} {_plain(entry.title)}", _list_texts(entry), entry.body_index)
        ):
            for word in text.split():
                kinds.setdefault(word, rank)
        for word, rank in kinds.items():
            ranked.setdefault(word, []).append((rank, -entry.weight, at))
    words = tuple(sorted(ranked))
    numbers = tuple(tuple(at for _, _, at in sorted(ranked[word])) for word in words)
    pairs: dict[str, list[str]] = {}
    for word in _list_title_words(live):
        for pair in _list_pairs(word):
            pairs.setdefault(pair, []).append(word)
    return SearchIndex(
        entries=entries,
        words=words,
        numbers=numbers,
        before=tuple(accumulate((len(one) for one in numbers), initial=0)),
        titles={title: tuple(found) for title, found in titles.items()},
        names=tuple(sorted(titles)),
        pairs={pair: tuple(found) for pair, found in pairs.items()},
    )


def _plain(text: str) -> str:
    """The words of a text in lower case, names in one piece: "merchanttransactionid"."""
    return _NO_WORD.sub(" ", text.lower())


def _list_texts(entry: SearchEntry) -> str:
    return f"{entry.words_index} {_NO_WORD.sub(' ', entry.words)}"


# --- words that are misspelt ----------------------------------------------------------------------------------------


def _correct_query(query: str, live: bool) -> str:
    """``query`` with the nearest word of the docs in place of each that does not exist."""
    words = query.split()
    different = set(words)
    if len(different) > MAX_CORRECTED_WORDS or max(map(len, different)) > MAX_CORRECTED_CHARS:
        return query  # looking for near ones costs most of all
    nearest = {
        word: get_close_matches(word, _list_near_words(word, live), n=1, cutoff=_NEAR_MISS) for word in different
    }
    return " ".join(nearest[word][0] if nearest[word] else word for word in words)


def _list_near_words(word: str, live: bool) -> list[str]:
    """The title words that have most letters in common with ``word``, two by two; at most MAX_COMPARED_WORDS."""
    pairs = load_search_index(live).pairs
    shared = Counter(near for pair in _list_pairs(word) for near in pairs.get(pair, ()))
    return [near for near, _ in nsmallest(MAX_COMPARED_WORDS, shared.items(), key=lambda one: (-one[1], one[0]))]


def _list_pairs(word: str) -> set[str]:
    """Each two letters of a word that stand beside each other, and its first one."""
    return {f" {word[:1]}", *(word[at : at + 2] for at in range(len(word) - 1))}


@cache
def _list_title_words(live: bool) -> tuple[str, ...]:
    words = {word for entry in list_search_entries(live) for word in entry.title_index.split()}
    return tuple(sorted(word for word in words if word.isalpha()))
