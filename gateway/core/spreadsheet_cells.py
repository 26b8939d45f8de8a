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
_AFTER_SEPARATOR: Final = re.compile(rf"(?<=[;\t\r\n])([\s\"]*)(?=[{_SIGNS}])")


def escape_formula(cell: str) -> str:
    """``cell`` with an apostrophe before it if a spreadsheet would take it for a formula, for a cell of its own."""
    return f"'{cell}" if _AT_START.match(cell) else cell


def escape_csv_formula(cell: str) -> str:
    """The same for a cell of a CSV file, which a spreadsheet may split once more."""
    return _AFTER_SEPARATOR.sub(r"\1'", escape_formula(cell))
