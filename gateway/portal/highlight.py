"""Syntax highlighting on the server, by Pygments: classes only, coloured by static/tollhouse.css."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import BashLexer, JsonLexer

BLOCK_TITLES: Final = {
    "sh": "Shell", "python": "Python", "json": "JSON", "html": "HTML", "js": "JavaScript", "php": "PHP",
    "diff": "Changes", "http": "HTTP",
}  # fmt: skip
"""Languages of code blocks and what stands over them. A block without one has no title."""
_VARIABLE: Final = re.compile(r'<span class="nv">\$([A-Z_]+)</span>')
_PLAIN: Final = HtmlFormatter[str](nowrap=True)


def highlight_json(value: Any) -> SafeString:
    """``value`` as indented, highlighted JSON."""
    return _mark(highlight(json.dumps(value, indent=2, ensure_ascii=False), JsonLexer(), _PLAIN))


def highlight_curl(text: str) -> SafeString:
    """A highlighted shell command; ``$ENTITY_ID`` becomes an element that the page's script fills in."""
    html = highlight(text, BashLexer(), _PLAIN)
    return _mark(_VARIABLE.sub(r'<span class="nv" data-variable="\1">$\1</span>', html))


def _mark(html: str) -> SafeString:
    return mark_safe(html.rstrip("\n"))  # noqa: S308 - Pygments escapes what it colours


class NightFormatter(HtmlFormatter[str]):
    """A code block of a document, in the frame that samples have."""

    def __init__(self, *, lang_str: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._language = lang_str.removeprefix("language-")

    def wrap(self, source: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Pygments' hook for what stands around the lines, within the block's own element."""
        title = BLOCK_TITLES.get(self._language, "")
        head = f'<div class="night-head"><span class="name">{title}</span></div>' if title else ""
        copy = " data-copy" if title else ""
        yield 0, f'{head}<pre tabindex="0"{copy} aria-label="{title or "Text"}"><code>'
        yield from source
        yield 0, "</code></pre>"
