"""JSON of acquirers, 3-D Secure servers and other systems, as the database can keep it.

PostgreSQL keeps no NUL, no half of a surrogate pair and no infinite number, all of which JSON can write. An acquirer's
answer counts all the same: such characters are replaced.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

REPLACEMENT: Final = "\ufffd"
MAX_NESTING: Final = 32
"""Objects and lists within each other. What reads, masks or writes them again goes as deep."""
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
_SUSPECT: Final = re.compile("\\\\u(?:0000|[dD][89a-fA-F])|[\ud800-\udfff]")
"""What a text has that may hold an unstorable character, escaped or not; hardly any has."""


def parse_peer_json(text: str | bytes) -> Any:
    """The value. Raises ValueError for what is no JSON in UTF-8, is nested too deeply, or has a number that is none."""
    plain = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    try:
        found = json.loads(plain, parse_constant=_refuse_constant, parse_float=_parse_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if plain.count("[") + plain.count("{") > MAX_NESTING and _is_nested_deeper(found, MAX_NESTING):
        raise ValueError("nested too deeply")
    return _replace(found) if _SUSPECT.search(plain) else found


def make_storable(text: str) -> str:
    """``text`` with what the database cannot keep replaced."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def _is_nested_deeper(value: Any, most: int) -> bool:
    if not isinstance(value, list | dict):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return not most or any(_is_nested_deeper(one, most - 1) for one in inner)


def _replace(value: Any) -> Any:
    if isinstance(value, str):
        return make_storable(value)
    if isinstance(value, list):
        return [_replace(one) for one in value]
    if isinstance(value, dict):
        return {make_storable(name): _replace(one) for name, one in value.items()}
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _parse_number(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError("a number is too large")
    return found
