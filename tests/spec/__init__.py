"""The specification's tables as data, read on their own, so that a test can lay the product against them.

`README.md` beside this file documents the columns, the kinds, and how values are written.
Source: Parts A and B, "Resources and their fields".
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast
from urllib.parse import parse_qsl

Need = Literal["R", "C", "O"]
Where = Literal["payments", "checkouts", "registrations", "query", "reports", "follow-up", "one-click", "widget"]

FOLDER = Path(__file__).parent
SEPARATOR = " ¦ "
KINDS = frozenset(
    [
        "text", "digits", "letters", "alnum", "chars", "name", "enum", "range", "decimal", "date",
        "datetime", "bool", "currency", "country2", "country3", "countryN", "url", "phone", "list",
        "cron", "other",
    ]
)  # fmt: skip
PLACES = frozenset(["payments", "checkouts", "registrations", "query", "reports", "follow-up", "one-click", "widget"])


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecParameter:
    """One row of a request table; `min` and `max` are lengths in characters, None where none is stated."""

    structure: str
    name: str
    req: Need
    kind: str
    min: int | None
    max: int | None
    format: str
    ok: tuple[str, ...]
    bad: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecCondition:
    """One stated condition; `keeps` or `breaks` is empty where only the other has an example.

    `names` holds groups: the error names at least one name of every group.
    """

    id: str
    source: str
    statement: str
    keeps: tuple[tuple[str, str], ...]
    breaks: tuple[tuple[str, str], ...]
    names: tuple[tuple[str, ...], ...]
    where: Where
    needs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecResponseField:
    """One field of a response table; `regex` is for `re.fullmatch`, empty where the row is not one value."""

    structure: str
    field: str
    format: str
    req: Need
    regex: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecColumn:
    """One column of the reconciliation file, in the table's order; `api_name` "none" means it has none."""

    column: str
    api_name: str
    format: str
    req: Need


def decode(text: str) -> str:
    """A value as written in the tables: `{A*50}` is "A" fifty times, `\\u0007` that character."""
    repeated = re.sub(r"\{([^{}*]+)\*([0-9]+)\}", lambda found: found[1] * int(found[2]), text)
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), repeated)


def parameters() -> list[SpecParameter]:
    """Every request, query, report and chargeback parameter, in the specification's order."""
    return [
        SpecParameter(
            structure=row["structure"],
            name=row["name"],
            req=_need(row["req"]),
            kind=row["kind"],
            min=_length(row["min"]),
            max=_length(row["max"]),
            format=row["format"],
            ok=_values(row["ok"]),
            bad=_values(row["bad"]),
        )
        for row in _rows("parameters.tsv")
    ]


def conditions() -> list[SpecCondition]:
    """Every stated condition of the request tables and notes, with a keeping and a breaking form body."""
    return [
        SpecCondition(
            id=row["id"],
            source=row["source"],
            statement=row["statement"],
            keeps=_pairs(row["keeps"]),
            breaks=_pairs(row["breaks"]),
            names=tuple(tuple(group.split("|")) for group in row["names"].split(",")),
            where=cast(Where, row["where"]),
            needs=row["needs"],
        )
        for row in _rows("conditions.tsv")
    ]


def response_fields() -> list[SpecResponseField]:
    """The payment response table, then the redirect fields. Source: Part B."""
    return [
        SpecResponseField(
            structure=row["structure"],
            field=row["field"],
            format=row["format"],
            req=_need(row["req"]),
            regex=row["regex"],
        )
        for row in _rows("responses.tsv")
    ]


def reconciliation_columns() -> list[SpecColumn]:
    """The reconciliation table, one row per column. Source: Part B, Reconciliation file."""
    return [
        SpecColumn(column=row["column"], api_name=row["api_name"], format=row["format"], req=_need(row["req"]))
        for row in _rows("reconciliation.tsv")
    ]


def reconciliation_header() -> str:
    """The 36 columns of the header sentence, joined by semicolons, in the file's order."""
    return (FOLDER / "reconciliation_header.txt").read_text(encoding="utf-8").rstrip("\n")


def _rows(file: str) -> list[dict[str, str]]:
    # Not the csv module: cells hold quotes that mean themselves, and str.splitlines breaks at U+0085.
    lines = (FOLDER / file).read_text(encoding="utf-8").rstrip("\n").split("\n")
    head = lines[0].split("\t")
    return [dict(zip(head, line.split("\t"), strict=True)) for line in lines[1:]]


def _values(cell: str) -> tuple[str, ...]:
    return tuple(decode(value) for value in cell.split(SEPARATOR))


def _pairs(cell: str) -> tuple[tuple[str, str], ...]:
    return tuple(parse_qsl(cell, keep_blank_values=True, strict_parsing=True)) if cell else ()


def _length(cell: str) -> int | None:
    return int(cell) if cell else None


def _need(cell: str) -> Need:
    if cell not in ("R", "C", "O"):
        raise ValueError(f"{cell!r} is not R, C or O")
    return cast(Need, cell)
