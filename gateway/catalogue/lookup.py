"""Compiles the parameter names of an endpoint into one flat lookup.

``cart.items[3].name`` → ``cart.items[].name`` → one dict hit → the table row of the parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.catalogue.free_text_masking import find_min_masked_digits
from gateway.catalogue.structure import Param, Structure

INDEX_PATTERN: Final = re.compile(r"\[(0|[1-9][0-9]{0,8})\]")
BRACKETS_PATTERN: Final = re.compile(r"\[[^\[\]]{0,40}\]")
"""An index in a name, whatever stands between the brackets."""


@dataclass(frozen=True, slots=True)
class CompiledParam:
    """A Param compiled: its path in the echo (None = an index; a map's key comes last), and the fewest digits of a card
    number that is masked in it (0: never)."""

    param: Param
    structure: Structure
    path: tuple[str | None, ...]
    altered_from: int = 0


CompiledParams = tuple[dict[str, CompiledParam], dict[str, CompiledParam]]


def compile_structures(structures: Sequence[Structure]) -> CompiledParams:
    """Compile all rows: exact names, and maps by their name without a key."""
    exact: dict[str, CompiledParam] = {}
    maps: dict[str, CompiledParam] = {}
    for structure in structures:
        exact_rows, map_rows = _compile_structure(structure)
        exact |= exact_rows
        maps |= map_rows
    return exact, maps


# A hundred structures make up the endpoints' three thousand: each is compiled once. By identity, since the hash of a
# structure is that of all its rows; its compiled rows keep it, so that no other one ever has its id.
_compiled: Final[dict[int, CompiledParams]] = {}


def _compile_structure(structure: Structure) -> CompiledParams:
    if (known := _compiled.get(id(structure))) is not None:
        return known
    exact: dict[str, CompiledParam] = {}
    maps: dict[str, CompiledParam] = {}
    for param in structure.rows:
        full = structure.full(param.base).replace("[n]", "[]")
        row = CompiledParam(param, structure, _echo_path(full), find_min_masked_digits(full, param))
        (maps if param.key else exact)[full] = row
    if structure.rows:
        _compiled[id(structure)] = exact, maps
    return exact, maps


def find_root(name: str) -> str:
    """The outermost structure of a parameter: ``cart.items[3].name`` → ``cart``."""
    return name.partition(".")[0].partition("[")[0]


def _echo_path(full: str) -> tuple[str | None, ...]:
    steps: list[str | None] = []
    for part in re.findall(r"\[\]|\[[^\]]+\]|[^.\[\]]+", full):
        steps.append(None if part == "[]" else part.strip("[]"))
    return tuple(steps)


def find_parameter(
    name: str, exact: Mapping[str, CompiledParam], maps: Mapping[str, CompiledParam]
) -> tuple[CompiledParam, tuple[int, ...], str | None] | None:
    """The row that a sent name means, its list indexes and its map key; None for an unknown name."""
    if row := exact.get(name):
        return (row, (), None) if "[]" not in name else None
    if "[" not in name:
        return None
    if row := exact.get(INDEX_PATTERN.sub("[]", name)):
        indexes = tuple(int(digits) for digits in INDEX_PATTERN.findall(name))
        return (row, indexes, None) if len(indexes) == row.path.count(None) else None
    base, _, key = name.partition("[")
    if (row := maps.get(base)) and key.endswith("]"):
        return row, (), key[:-1]
    return None
