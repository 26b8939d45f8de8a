"""Cells of exported CSV and XLSX files that no spreadsheet runs as a formula.

Excel splits a CSV file at the list separator of its language: at semicolons in German, whatever the quotes around the
cell. So a formula is escaped after a semicolon, a tab and a line break, too. Source: OWASP, CSV Injection.
"""

from __future__ import annotations

import re
from typing import Final

_SIGNS: Final = "=+\\-@\uff1d\uff0b\uff0d\uff20"
"""Characters that begin a formula, including the full-width ones of East Asian keyboards."""
_AT_START: Final = re.compile(rf"[{_SIGNS}\t\r\n]")
_BEFORE_SIGN: Final = re.compile(rf"(?<![;\s\"])[;\s\"]++(?=[{_SIGNS}])")
"""Separators, blanks and quotes before a sign, from their first one on: a cell of tabs alone is read once."""
_SEPARATOR: Final = re.compile(r"[;\t\r\n]")
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def escape_formula(cell: str) -> str:
    """``cell`` with an apostrophe before it if a spreadsheet would take it for a formula, for a cell of its own."""
    return f"'{cell}" if _AT_START.match(cell) else cell


def escape_csv_formula(cell: str) -> str:
    """Escape a formula in a cell of a CSV file, which a spreadsheet may split once more. Numbers stay numbers."""
    if _NUMBER.fullmatch(cell):
        return cell
    return _BEFORE_SIGN.sub(
        lambda found: f"{found[0]}'" if _SEPARATOR.search(found[0]) else found[0], escape_formula(cell)
    )
