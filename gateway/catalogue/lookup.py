"""The names of an endpoint compiled into one flat lookup.

``cart.items[3].name`` → ``cart.items[].name`` → one dict hit → the row of the table that it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.catalogue.free_text import altered_from
from gateway.catalogue.structure import Param, Structure

INDEX: Final = re.compile(r"\[(0|[1-9][0-9]{0,8})\]")
BRACKETS: Final = re.compile(r"\[[^\[\]]{0,40}\]")
"""Where an index stands, whatever it is."""


@dataclass(frozen=True, slots=True)
class Row:
    """A Param compiled: where it stands in the echo (None = an index, the map's key comes last), and from how many
    digits on a card number in it is masked (0: never)."""

    param: Param
    structure: Structure
    path: tuple[str | None, ...]
    altered_from: int = 0


Compiled = tuple[dict[str, Row], dict[str, Row]]


def compiled(structures: Sequence[Structure]) -> Compiled:
    exact: dict[str, Row] = {}
    maps: dict[str, Row] = {}
    for structure in structures:
        for param in structure.rows:
            full = structure.full(param.base).replace("[n]", "[]")
            row = Row(param, structure, _path(full), altered_from(full, param))
            (maps if param.key else exact)[full] = row
    return exact, maps


def _path(full: str) -> tuple[str | None, ...]:
    steps: list[str | None] = []
    for part in re.findall(r"\[\]|\[[^\]]+\]|[^.\[\]]+", full):
        steps.append(None if part == "[]" else part.strip("[]"))
    return tuple(steps)


def find(
    name: str, exact: Mapping[str, Row], maps: Mapping[str, Row]
) -> tuple[Row, tuple[int, ...], str | None] | None:
    if row := exact.get(name):
        return (row, (), None) if "[]" not in name else None
    if "[" not in name:
        return None
    if row := exact.get(INDEX.sub("[]", name)):
        indexes = tuple(int(digits) for digits in INDEX.findall(name))
        return (row, indexes, None) if len(indexes) == row.path.count(None) else None
    base, _, key = name.partition("[")
    if (row := maps.get(base)) and key.endswith("]"):
        return row, (), key[:-1]
    return None
