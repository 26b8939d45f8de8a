"""Table of BINs: who issued the cards of a range of leading digits, of which kind they are, which brands they carry.

A table is a file of lines with tab-separated columns under a line of their names. ``bin``: the first 6 to 8 digits;
``binTo``: the last ones of the range, of as many digits, empty for one BIN. Everything else may be left out: an empty
column says that the fact is not known. Ranges do not overlap.

Only the first eight digits of a number are ever looked at. Source: docs/card-facts.md; docs/decisions/0127.
"""

from __future__ import annotations

import csv
import re
import sys
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

MIN_TABLE_DIGITS: Final = 6
TABLE_DIGITS: Final = 8
CARD_TYPES: Final = ("CREDIT", "DEBIT", "PREPAID")
BIN_COLUMNS: Final = (
    "bin", "binTo", "bank", "phone", "website", "type", "level", "regulated", "country", "brands",
)  # fmt: skip
MAX_BIN_ROWS: Final = 1_000_000
MAX_BIN_TEXT_CHARS: Final = 128
_BIN: Final = re.compile(f"[0-9]{{{MIN_TABLE_DIGITS},{TABLE_DIGITS}}}")
_COUNTRY: Final = re.compile("[A-Z]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """What is known of the cards of a range. '' and None: not known. ``bin``: its first digits; ``type``: CREDIT, DEBIT
    or PREPAID; ``country``: ISO 3166-1 alpha-2; ``brands``: those that one card carries, the table's order."""

    bin: str
    bank: str = ""
    phone: str = ""
    website: str = ""
    type: str = ""
    level: str = ""
    regulated: bool | None = None
    country: str = ""
    brands: tuple[str, ...] = ()


class BinTableError(Exception):
    """A table that cannot be read; the text names the line and what is wrong with it."""


class BinTable:
    """The rows of a table, found by leading digits."""

    def __init__(self, rows: Iterable[tuple[int, int, Issuer]]) -> None:
        """``rows``: first and last number of eight digits, and facts; none overlaps another."""
        found = sorted(rows, key=lambda row: row[0])
        self._lows = [low for low, _, _ in found]
        self._highs = [high for _, high, _ in found]
        self._issuers = [issuer for _, _, issuer in found]
        self._has_brands = any(issuer.brands for issuer in self._issuers)

    @property
    def has_brands(self) -> bool:
        """Whether some row says which brands its cards carry."""
        return self._has_brands

    def __len__(self) -> int:
        return len(self._lows)

    def find_issuer(self, digits: str) -> Issuer | None:
        """The facts of a number's first digits, six or more; None where the table does not know all numbers that begin
        so. Where several ranges do, the facts in which they agree."""
        if len(digits) < MIN_TABLE_DIGITS or not (digits.isascii() and digits.isdecimal()):
            return None
        low, high = _widen(digits[:TABLE_DIGITS], digits[:TABLE_DIGITS])
        at = bisect_right(self._lows, low) - 1
        if at < 0 or self._highs[at] < low:
            return None
        first, reach = at, self._highs[at]
        while reach < high:
            at += 1
            if at == len(self._lows) or self._lows[at] != reach + 1:
                return None
            reach = self._highs[at]
        return self._issuers[at] if at == first else _merge_facts(digits[:TABLE_DIGITS], self._issuers[first : at + 1])


def _widen(low: str, high: str) -> tuple[int, int]:
    """The first and last number of eight digits of a range."""
    return int(low.ljust(TABLE_DIGITS, "0")), int(high.ljust(TABLE_DIGITS, "9"))


def _merge_facts(digits: str, issuers: Sequence[Issuer]) -> Issuer:
    shared: dict[str, Any] = {}
    for name in Issuer.__slots__:
        values = {getattr(one, name) for one in issuers}
        if name != "bin" and len(values) == 1:
            shared[name] = values.pop()
    return replace(Issuer(bin=digits), **shared)


def read_bin_table(path: Path, brands: Collection[str]) -> BinTable:
    """The table of a file. ``brands``: codes that its brands may be. Raises BinTableError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            return parse_bin_table(lines, brands)
    except OSError as fault:
        raise BinTableError(f"cannot be read: {fault.strerror}") from None
    except UnicodeDecodeError:
        raise BinTableError("is not UTF-8") from None


def parse_bin_table(lines: Iterable[str], brands: Collection[str]) -> BinTable:
    """The table in lines of text. Raises BinTableError for the first line that is wrong."""
    reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    try:
        columns = next(reader, [])
        unknown = [name for name in columns if name not in BIN_COLUMNS]
        if unknown or "bin" not in columns or len(set(columns)) < len(columns):
            raise BinTableError(
                f"line 1: must name the columns, bin and any of {', '.join(BIN_COLUMNS[1:])}, each once, between tabs"
            )
        rows: list[tuple[int, int, Issuer]] = []
        for cells in reader:
            if not cells:
                continue
            if len(rows) == MAX_BIN_ROWS:
                raise BinTableError(f"has more than {MAX_BIN_ROWS:,} ranges")
            if len(cells) != len(columns):
                raise BinTableError(f"line {reader.line_num}: has {len(cells)} columns instead of {len(columns)}")
            try:
                rows.append(_parse_row(dict(zip(columns, cells, strict=True)), brands))
            except BinTableError as fault:
                raise BinTableError(f"line {reader.line_num}: {fault}") from None
    except csv.Error as fault:
        raise BinTableError(f"line {reader.line_num}: {fault}") from None
    _check_overlaps(rows)
    return BinTable(rows)


def _parse_row(cells: dict[str, str], brands: Collection[str]) -> tuple[int, int, Issuer]:
    first = cells["bin"]
    last = cells.get("binTo", "") or first
    for name, digits in (("bin", first), ("binTo", last)):
        if not _BIN.fullmatch(digits):
            raise BinTableError(f"{name} must be {MIN_TABLE_DIGITS} to {TABLE_DIGITS} digits, never more")
    low, high = _widen(first, last)
    if len(first) != len(last) or high < low:
        raise BinTableError("binTo must have as many digits as bin, and not be less")
    kind, country, regulated = (cells.get(name, "") for name in ("type", "country", "regulated"))
    if kind not in ("", *CARD_TYPES):
        raise BinTableError(f"type must be one of {', '.join(CARD_TYPES)}, or empty")
    if country and not _COUNTRY.fullmatch(country):
        raise BinTableError("country must be two letters, e.g. DE, or empty")
    if regulated not in ("", "true", "false"):
        raise BinTableError("regulated must be true or false, or empty")
    carried = tuple(dict.fromkeys(cells.get("brands", "").split()))
    for code in carried:
        if code not in brands:
            raise BinTableError("brands must be codes of card brands with spaces between, e.g. VISA CARTEBANCAIRE")
    texts = {name: cells.get(name, "").strip() for name in ("bank", "phone", "website", "level")}
    for name, text in texts.items():
        if len(text) > MAX_BIN_TEXT_CHARS:
            raise BinTableError(f"{name} has more than {MAX_BIN_TEXT_CHARS} characters")
    # The same words stand in many rows: each is kept once.
    shared = {name: sys.intern(text) for name, text in {**texts, "type": kind, "country": country}.items()}
    issuer = Issuer(bin=first, regulated=None if not regulated else regulated == "true", brands=carried, **shared)
    return low, high, issuer


def _check_overlaps(rows: Sequence[tuple[int, int, Issuer]]) -> None:
    before: tuple[int, int, Issuer] | None = None
    for row in sorted(rows, key=lambda one: one[0]):
        if before is not None and row[0] <= before[1]:
            raise BinTableError(f"the ranges that begin with {before[2].bin} and {row[2].bin} overlap")
        before = row
