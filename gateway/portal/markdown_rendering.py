"""Markdown to HTML, as the docs pages have it: safe, with stable anchors and highlighted code.

Of HTML in the text only ``<a id="…"></a>`` counts; other comments are left out, and everything else is shown as text.
Three markers stand alone on their lines (``site`` also within one), each with what the repository shows between:

- ``<!-- request: NAME -->`` … ``<!-- end request -->``: a sample request; ``answer`` its answer, ``sample`` both;
- ``<!-- only: test -->`` … ``<!-- end only -->``: for the test environment (or ``live``) alone;
- ``<!-- site: NAME -->`` … ``<!-- end site -->``: the site puts a part of its own there.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from typing import Final

import markdown
from markdown.extensions import Extension
from markdown.extensions.codehilite import CodeHiliteExtension
from markdown.inlinepatterns import InlineProcessor
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

from gateway.portal.highlight import NightFormatter

PART: Final = re.compile("\ue000(?P<kind>sample|request|answer|site):(?P<name>[a-z0-9-]+)\ue001")
"""Where a part of the site belongs, in rendered HTML. The characters around it are of private use."""
ANCHOR: Final = re.compile(r'<span class="alias" id="([^"]+)"></span>')
"""An anchor of a text's own, in rendered HTML."""

_ONLY: Final = re.compile(r"^<!-- only: (test|live) -->\n(.*?)^<!-- end only -->\n?", re.MULTILINE | re.DOTALL)
_BLOCK: Final = re.compile(
    r"^<!-- (sample|request|answer|site): ([a-z0-9-]+) -->\n.*?^<!-- end \1 -->$", re.MULTILINE | re.DOTALL
)
_FENCE: Final = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_COMMENT_LINE: Final = re.compile(r"^<!--.*-->$", re.MULTILINE)
_LIST_AFTER_TEXT: Final = re.compile(r"^((?!- |1\. |[ |#]).+)\n(?=- |1\. )", re.MULTILINE)
"""A list right after its sentence: the library wants the empty line that hosts do without."""
_SITE_INLINE: Final = r"<!-- site: ([a-z0-9-]+) -->(.*?)<!-- end site -->"
_ANCHOR_INLINE: Final = r'<a id="([\w.-]+)"></a>'
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


def render_markdown(
    text: str,
    *,
    live: bool,
    resolve_link: Callable[[str], str | None],
    find_page: Callable[[str], str | None],
) -> str:
    """``text`` as HTML. ``resolve_link``: the address for a link's target, None for none: its words stay.
    ``find_page``: the page that an inline code links to by itself."""
    text = _ONLY.sub(lambda found: found[2] if (found[1] == "live") == live else "", text)
    text = _BLOCK.sub("\n\ue000\\1:\\2\ue001\n", text)
    parts = _FENCE.split(text)
    parts[::2] = [_LIST_AFTER_TEXT.sub(r"\1\n\n", _COMMENT_LINE.sub("", part)) for part in parts[::2]]
    renderer = markdown.Markdown(
        extensions=[
            "tables",
            "fenced_code",
            "sane_lists",
            CodeHiliteExtension(guess_lang=False, css_class="night", pygments_formatter=NightFormatter),
            _DocsExtension(resolve_link, find_page),
        ],
    )
    return re.sub(f"<p>({PART.pattern})</p>", r"\1", str(renderer.convert("".join(parts))))


class _DocsExtension(Extension):
    def __init__(self, resolve_link: Callable[[str], str | None], find_page: Callable[[str], str | None]) -> None:
        super().__init__()
        self._resolve_link, self._find_page = resolve_link, find_page

    def extendMarkdown(self, md: markdown.Markdown) -> None:
        md.preprocessors.deregister("html_block")
        for name in ("html", "image_link", "image_reference", "short_image_ref"):
            md.inlinePatterns.deregister(name)
        md.inlinePatterns.register(_SiteInline(_SITE_INLINE, md), "site", 90)
        md.inlinePatterns.register(_AnchorInline(_ANCHOR_INLINE, md), "anchor", 90)
        md.treeprocessors.register(_DocsTree(md, self._resolve_link, self._find_page), "docs", 5)


class _SiteInline(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # type: ignore[override]
        return f"\ue000site:{m[1]}\ue001", m.start(0), m.end(0)


class _AnchorInline(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[ET.Element, int, int]:  # type: ignore[override]
        element = ET.Element("span", {"class": "alias", "id": m[1]})
        element.text = AtomicString("")
        return element, m.start(0), m.end(0)


class _DocsTree(Treeprocessor):
    """Anchors of headings, links, tables that scroll."""

    def __init__(
        self,
        md: markdown.Markdown,
        resolve_link: Callable[[str], str | None],
        find_page: Callable[[str], str | None],
    ) -> None:
        super().__init__(md)
        self._resolve_link, self._find_page = resolve_link, find_page

    def run(self, root: ET.Element) -> None:
        self._join_anchors(root)
        self._name_headings(root)
        for parent in list(root.iter()):
            for at, child in enumerate(list(parent)):
                if child.tag == "a" and "href" in child.attrib:
                    self._lead_link(child)
                elif child.tag == "code" and parent.tag not in {"a", "pre", *_HEADINGS}:
                    self._link_code(parent, at, child)
        self._wrap_tables(root)

    @staticmethod
    def _join_anchors(root: ET.Element) -> None:
        """An anchor in a paragraph of its own belongs to the heading after it."""
        waiting: list[ET.Element] = []
        for child in list(root):
            inner = list(child)
            alone = child.tag == "p" and inner and not (child.text or "").strip()
            if alone and all(one.get("class") == "alias" and not (one.tail or "").strip() for one in inner):
                waiting += inner
                root.remove(child)
            elif child.tag in _HEADINGS and waiting:
                for one in waiting:
                    one.tail = ""
                    child.append(one)
                waiting = []

    @staticmethod
    def _name_headings(root: ET.Element) -> None:
        used: dict[str, int] = {}
        for heading in root.iter():
            if heading.tag in _HEADINGS:
                slug = slugify_heading("".join(heading.itertext()))
                used[slug] = used.get(slug, -1) + 1
                heading.set("id", f"{slug}-{used[slug]}" if used[slug] else slug)

    def _lead_link(self, link: ET.Element) -> None:
        address = self._resolve_link(link.attrib["href"])
        if address is None:
            link.tag = "span"
            link.attrib.clear()
        else:
            link.set("href", address)

    def _link_code(self, parent: ET.Element, at: int, code: ET.Element) -> None:
        address = self._find_page(code.text or "")
        if address is None:
            return
        link = ET.Element("a", {"href": address})
        link.tail, code.tail = code.tail, None
        parent.remove(code)
        link.append(code)
        parent.insert(at, link)

    @staticmethod
    def _wrap_tables(root: ET.Element) -> None:
        heading, named = "", Counter[str]()
        for at, child in enumerate(list(root)):
            if child.tag in _HEADINGS:
                heading = "".join(child.itertext())
            elif child.tag == "table":
                named[heading] += 1
                name = heading if named[heading] == 1 else f"{heading} ({named[heading]})"
                for cell in [*child.iter("th"), *child.iter("td")]:
                    if cell.attrib.pop("style", "") == "text-align: right;":
                        cell.set("class", "right")
                _mark_heads(child)
                for code in child.iter("code"):
                    code.text = AtomicString((code.text or "").replace("\\|", "|"))
                frame = ET.Element("div", {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": name})
                root.remove(child)
                frame.append(child)
                frame.tail = "\n"
                root.insert(at, frame)


def _mark_heads(table: ET.Element) -> None:
    """Heads name their columns, for readers and for the rows of a phone. The corner above the rows' names is none."""
    heads = list(table.iter("th"))
    titles = ["".join(cell.itertext()) for cell in heads]
    for cell, title in zip(heads, titles, strict=True):
        if title:
            cell.set("scope", "col")
        else:
            cell.tag = "td"
    for row in table.iter("tr"):
        for title, cell in list(zip(titles, row, strict=False))[1:]:
            if cell.tag == "td" and title and len(titles) > 2:
                cell.set("data-label", title)


def slugify_heading(title: str) -> str:
    """The anchor of a heading, as repository hosts make it: lower case, hyphens for spaces, no other marks."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
