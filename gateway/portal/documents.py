"""The Markdown files of docs/ as pages of the site: which there are, their addresses, and each rendered once.

docs/glossary.md is /docs/glossary, the README.md of a folder is the folder, and docs/quick-start.md is /docs/ itself.
What a file may hold besides Markdown, and how it looks in the repository: decision 0060.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import unescape
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.html import escape, strip_tags
from django.utils.safestring import SafeString, mark_safe

from gateway.catalogue.endpoints import ENDPOINTS
from gateway.core.result_codes import RESULT_CODES
from gateway.portal.markdown_rendering import ANCHOR, PART, render_markdown

DOCS_DIR: Final[Path] = Path(settings.BASE_DIR) / "docs"
CONTENTS_DOCUMENT: Final = "contents"
"""docs/README.md."""
QUICK_START_DOCUMENT: Final = "quick-start"
CHANGELOG_DOCUMENT: Final = "changelog"
CHANGELOG_FILE: Final = DOCS_DIR.parent / "CHANGELOG.md"
"""The one document that stands outside docs/."""
SITE_ADDRESS: Final = "https://gateway.example"
"""Stands in the files for the gateway that shows them."""
TEST_ONLY_DOCUMENTS: Final = frozenset({"test-tools"})
"""Pages that a live gateway does not have."""
MAX_SUMMARY_CHARS: Final = 200

_SECTION: Final = re.compile(r"(?=<h2[ >])")
_HEADING: Final = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>', re.DOTALL)
_TITLE: Final = re.compile(r"<h1[^>]*>(.*?)</h1>\s*", re.DOTALL)
_LEAD: Final = re.compile(r"<p>(.*?)</p>\s*", re.DOTALL)
_SAMPLE: Final = re.compile(PART.pattern.replace("|site", ""))
_ASIDE: Final = re.compile(rf'<div class="night">.*?</pre></div>\n?|{_SAMPLE.pattern}\n?', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSection:
    """A section of a document, under a heading of the second level. ``panel``: its samples, shown next to the text."""

    anchor: str
    aliases: tuple[str, ...]
    title: str
    html: str
    panel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A rendered file. ``lead``: its first paragraph; ``intro``: what else stands before the first heading."""

    name: str
    title: str
    lead: str
    intro: str
    sections: tuple[DocumentSection, ...]

    @property
    def plain_title(self) -> str:
        return to_text(self.title)

    @property
    def summary(self) -> str:
        """The first paragraph as text, for the page's description."""
        text = to_text(self.lead)
        return text if len(text) <= MAX_SUMMARY_CHARS else f"{text[:MAX_SUMMARY_CHARS].rsplit(' ', 1)[0]} …"

    @property
    def menu_sections(self) -> tuple[tuple[str, str], ...]:
        """Anchor and title of each section."""
        return tuple((section.anchor, to_text(section.title)) for section in self.sections)


def to_text(html: str) -> str:
    """``html`` as plain text on one line."""
    return " ".join(unescape(strip_tags(html)).split())


@cache
def list_documents() -> dict[str, Path]:
    """The files by the names of their pages. Raises ImproperlyConfigured where docs/ is not there."""
    found = {_name_document(path): path for path in sorted(DOCS_DIR.rglob("*.md"))}
    if CHANGELOG_FILE.is_file():
        found[CHANGELOG_DOCUMENT] = CHANGELOG_FILE
    if CONTENTS_DOCUMENT not in found:
        raise ImproperlyConfigured(
            f"{DOCS_DIR} has no README.md: the pages under /docs are made of the folder docs/ of the sources, "
            "which has to stand next to gateway/, as templates/ and static/ do."
        )
    return found


def _name_document(path: Path) -> str:
    name = path.relative_to(DOCS_DIR).with_suffix("").as_posix()
    return CONTENTS_DOCUMENT if name == "README" else name.removesuffix("/README")


def build_document_url(name: str) -> str:
    """The address of a document's page on the site."""
    return "/docs/" if name == QUICK_START_DOCUMENT else f"/docs/{name}"


def resolve_link(target: str, source: Path, *, live: bool) -> str | None:
    """The address on the site of what a file links to; None for a file that has no page.

    ``target``: as written in ``source``: ``time.md#the-timers``, ``../SECURITY.md``, ``https://…``.
    """
    if target.startswith(f"{SITE_ADDRESS}/"):
        address = target.removeprefix(SITE_ADDRESS)
        return None if live and (address.startswith("/testdata") or address == "/docs/result") else address
    if target.startswith(("#", "https://", "http://")):
        return target
    path, _, anchor = target.partition("#")
    place = Path(os.path.normpath(source.parent / path))
    wanted = [place, place / "README.md"]
    name = next((one for one, file in list_documents().items() if file in wanted), None)
    if name is None or (live and name in TEST_ONLY_DOCUMENTS):
        return None
    return build_document_url(name) + (f"#{anchor}" if anchor else "")


@cache
def load_document(name: str, *, live: bool) -> Document:
    """A document, rendered for the test or the live environment. Raises KeyError for an unknown name."""
    path = list_documents()[name]
    html = render_markdown(
        path.read_text(encoding="utf-8"),
        live=live,
        resolve_link=lambda target: resolve_link(target, path, live=live),
        find_page=_list_code_pages(live).get,
    )
    head, *parts = _SECTION.split(html)
    title, head = _take(_TITLE, head)
    lead, head = _take(_LEAD, head)
    return Document(
        name=name, title=title, lead=lead, intro=head.strip(), sections=tuple(_build_section(part) for part in parts)
    )


def _take(pattern: re.Pattern[str], html: str) -> tuple[str, str]:
    """Split ``text`` into what ``pattern`` matches at its beginning, and the rest."""
    found = pattern.match(html)
    return (found[1], html[found.end() :]) if found else ("", html)


def _build_section(html: str) -> DocumentSection:
    heading = _HEADING.match(html)
    assert heading, html[:80]
    body = html[heading.end() :]
    aliases = tuple(ANCHOR.findall(heading[2]))
    panel = ""
    if _SAMPLE.search(body):
        # Where a section has samples, its commands stand between them.
        panel = "".join(found[0] for found in _ASIDE.finditer(body))
        body = _ASIDE.sub("", body)
    return DocumentSection(
        anchor=heading[1], aliases=aliases, title=ANCHOR.sub("", heading[2]), html=body.strip(), panel=panel
    )


@cache
def _list_code_pages(live: bool) -> dict[str, str]:
    """What stands in the text as code, a result code or the method and path of an endpoint → the page about it."""
    pages = {code: f"/docs/result-codes#{code}" for code in RESULT_CODES}
    for endpoint in ENDPOINTS:
        if not (live and endpoint.test_only):
            pages.setdefault(f"{endpoint.method} {endpoint.path}", f"/docs/reference/{endpoint.name}")
    return pages


def fill_in(html: str, render_part: Callable[[str, str], str]) -> SafeString:
    """The HTML of a document with its parts, of which ``render_part(kind, name)`` makes the HTML, and with the address
    of this gateway."""
    filled = PART.sub(lambda found: render_part(found["kind"], found["name"]), html)
    return mark_safe(filled.replace(SITE_ADDRESS, escape(settings.GATEWAY_BASE_URL)))  # noqa: S308 - of our own files
