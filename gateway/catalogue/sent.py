"""What a request sent, as it is held from the moment it is decoded: secrets typed, the rest never printed.

A traceback that shows local variables, and a log that prints one, see how many parameters there were, and no value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gateway.catalogue import structures
from gateway.catalogue.errors import is_secretive
from gateway.catalogue.lookup import compiled, find
from gateway.secret import Secret

Value = str | Secret
_EXACT, _MAPS = compiled(structures.KNOWN_STRUCTURES)
SECRETS: Final = frozenset(name for name, row in _EXACT.items() if row.param.secret)
"""Names of parameters that are secrets."""


class Pairs(list[tuple[str, Value]]):
    """(name, value) in the order sent."""

    def __repr__(self) -> str:
        return f"<{len(self)} parameters>"

    __str__ = __repr__


def typed(pairs: Iterable[tuple[str, str]]) -> Pairs:
    """The pairs with every secret as one: by its parameter, or by a name that is not known and sounds like one."""
    return Pairs((name, Secret(value) if _is_secret(name) else value) for name, value in pairs)


def _is_secret(name: str) -> bool:
    if (row := _EXACT.get(name)) is not None:
        return row.param.secret
    return is_secretive(name) and find(name, _EXACT, _MAPS) is None


def text_of(value: Value) -> str:
    """The text of a value that may be a secret."""
    return value.reveal() if isinstance(value, Secret) else value
