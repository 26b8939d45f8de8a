"""The code blocks of docs/, as their readers copy them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
SITE: Final = "https://gateway.example"
"""Stands in docs/ for the address of the reader's gateway."""
_ONLY: Final = re.compile(r"^<!-- (?:only: \w+|end only) -->$", re.MULTILINE)
_MADE: Final = re.compile(r"^<!-- [^\n]*? -->\n.*?^<!-- end(?: \w+)? -->$", re.MULTILINE | re.DOTALL)
_FENCE: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocBlock:
    """A block of code. ``page``: the file below docs/. ``heading``: the section it stands in, empty above
    the first."""

    page: str
    heading: str
    language: str
    text: str


def list_blocks(page: str) -> list[DocBlock]:
    """The blocks of a page that are typed there: those that the code writes and compares stand between markers."""
    text = (DOCS / page).read_text(encoding="utf-8")
    typed = _MADE.sub("", _ONLY.sub("", text))
    return [
        DocBlock(
            page=page,
            heading=["", *re.findall(r"^##+ (.+)$", typed[: found.start()], re.MULTILINE)][-1],
            language=found[1],
            text=found[2],
        )
        for found in _FENCE.finditer(typed)
    ]


def read_block(page: str, heading: str, language: str) -> str:
    """The only block of a language in a section."""
    (found,) = [one for one in list_blocks(page) if (one.heading, one.language) == (heading, language)]
    return found.text
