"""Syntax highlighting on the server, by Pygments: classes only, coloured by static/tollhouse.css."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import BashLexer, HttpLexer, JavascriptLexer, JsonLexer, PhpLexer, PythonLexer

from gateway.portal.sample_code import IDIOMS

BLOCK_TITLES: Final = {
    "sh": "Shell", "bash": "Shell", "python": "Python", "json": "JSON", "html": "HTML", "js": "JavaScript",
    "php": "PHP", "diff": "Changes", "http": "HTTP", "java": "Java", "css": "CSS",
}  # fmt: skip
"""Languages of code blocks and what stands over them. A block without one has no title."""
_LEXERS: Final[Mapping[str, type[Lexer]]] = {
    "curl": BashLexer, "python": PythonLexer, "javascript": JavascriptLexer, "php": PhpLexer, "http": HttpLexer,
}  # fmt: skip
_STAND_IN: Final = "READERS_OWN_"
"""Stands for a variable while its text is highlighted, so that it stays in one piece."""
_PLAIN: Final = HtmlFormatter[str](nowrap=True)


def highlight_json(value: Any) -> SafeString:
    """``value`` as indented, highlighted JSON."""
    return _mark(highlight(json.dumps(value, indent=2, ensure_ascii=False), JsonLexer(), _PLAIN))


def highlight_sample(text: str, language: str) -> SafeString:
    """A highlighted sample. Each variable becomes an element that the page's script can fill in; ``data-quote`` has the
    quotes for a text in ``language``."""
    idiom = IDIOMS[language]
    variable = re.escape(idiom.before) + "([A-Z_]+)" + re.escape(idiom.after)
    html = highlight(re.sub(variable, rf"{_STAND_IN}\1", text), _LEXERS[language](), _PLAIN)
    quoted = f' data-quote="{escape(idiom.quote)}"' if idiom.quote else ""

    def mark_variable(found: re.Match[str]) -> str:
        shown = escape(idiom.before + found[1] + idiom.after)
        return f'<span class="nv" data-variable="{found[1]}"{quoted}>{shown}</span>'

    return _mark(re.sub(rf"{_STAND_IN}([A-Z_]+)", mark_variable, html))


def _mark(html: str) -> SafeString:
    return mark_safe(html.rstrip("\n"))  # noqa: S308 - Pygments escapes what it colours


class NightFormatter(HtmlFormatter[str]):
    """A code block of a document, in the frame that samples have."""

    def __init__(self, *, lang_str: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._language = lang_str.removeprefix("language-")

    def wrap(self, source: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Pygments' hook that wraps the lines within the block's own element."""
        title = BLOCK_TITLES.get(self._language, "")
        head = f'<div class="night-head"><span class="name">{title}</span></div>' if title else ""
        copy = " data-copy" if title else ""
        yield 0, f'{head}<pre tabindex="0"{copy} aria-label="{title or "Text"}"><code>'
        yield from source
        yield 0, "</code></pre>"
