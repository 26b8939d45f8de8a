"""Texts in the characters that every bank accepts. Source: EPC 217-08."""

from __future__ import annotations

import re
from typing import Final

from text_unidecode import unidecode  # type: ignore[import-untyped]

_UNSUPPORTED_CHARS: Final = re.compile(r"[^A-Za-z0-9/?:().,'+ -]")


def convert_to_bank_chars(text: str) -> str:
    """A text in those characters, letters of other scripts transliterated; empty if nothing is left of it."""
    return _UNSUPPORTED_CHARS.sub(" ", unidecode(text)).strip()


def format_bank_text(text: str, most: int) -> str:
    """A text for an element that must not be empty, ``most`` characters long; NOTPROVIDED if nothing is left of it."""
    return convert_to_bank_chars(text)[:most].strip() or "NOTPROVIDED"
