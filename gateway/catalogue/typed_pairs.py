"""The pairs of a request as held in memory: secrets typed as Secret, values never printed.

A traceback that shows local variables, and a log that prints one, show the number of parameters, and no value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gateway.catalogue import structures
from gateway.catalogue.errors import is_secret_name
from gateway.catalogue.lookup import compile_structures, find_parameter
from gateway.core.secret import Secret

ParameterValue = str | Secret
_EXACT, _MAPS = compile_structures(structures.KNOWN_STRUCTURES)
_SECRET_PARAMETERS: Final = frozenset(name for name, row in _EXACT.items() if row.param.secret)


class ParameterPairs(list[tuple[str, ParameterValue]]):
    """(name, value) in the order sent."""

    def __repr__(self) -> str:
        return f"<{len(self)} parameters>"

    __str__ = __repr__


def type_secrets(pairs: Iterable[tuple[str, str]]) -> ParameterPairs:
    """The pairs with every secret typed as one: by its parameter, or by an unknown name that sounds like one."""
    return ParameterPairs(
        [
            (
                name,
                Secret(value) if name in _SECRET_PARAMETERS or (name not in _EXACT and _sounds_secret(name)) else value,
            )
            for name, value in pairs
        ]
    )


def _sounds_secret(name: str) -> bool:
    return is_secret_name(name) and find_parameter(name, _EXACT, _MAPS) is None
