"""Syntax highlighting of samples on the server: JSON and curl as safe HTML with a class per kind of token."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

_JSON = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*")(?=\s*:)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>\b(?:true|false|null)\b|-?[0-9][0-9.]*)'
)
_CURL = re.compile(
    r"(?P<variable>\$[A-Z_]+)|(?P<command>\bcurl\b|\bexport\b|\bjq\b)|(?P<option>(?<=\s)--?[A-Za-z-]+)"
    r"|(?P<name>(?<=[\s\"'])[A-Za-z][\w.\[\]-]*(?==))|(?P<mark>\\$)",
    re.MULTILINE,
)


def highlight_json(value: Any) -> SafeString:
    """``value`` as indented, highlighted JSON."""
    return _color_parts(json.dumps(value, indent=2, ensure_ascii=False), _JSON)


def highlight_curl(text: str) -> SafeString:
    """A highlighted shell command; ``$ENTITY_ID`` becomes an element that the page's script fills in."""
    return _color_parts(text, _CURL)


def _color_parts(text: str, words: re.Pattern[str]) -> SafeString:
    return format_html_join("", "{}", ((part,) for part in _parts(text, words)))


def _parts(text: str, words: re.Pattern[str]) -> Iterator[str | SafeString]:
    at = 0
    for found in words.finditer(text):
        yield text[at : found.start()]
        if found.lastgroup == "variable":
            yield format_html('<span class="h-variable" data-variable="{}">{}</span>', found[0][1:], found[0])
        else:
            yield format_html('<span class="h-{}">{}</span>', found.lastgroup, found[0])
        at = found.end()
    yield text[at:]
