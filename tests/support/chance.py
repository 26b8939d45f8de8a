"""Texts without what holds any four digits by chance: identifiers, moments, fractions."""

from __future__ import annotations

import re

_BY_CHANCE = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # UUIDs
    r"|datetime\.datetime\([^)]*\)"
    r"|(?<![0-9A-Za-z])[0-9]+\.[0-9]+"  # clock readings
)


def strip_values_by_chance(text: str) -> str:
    """``text`` without them: a short secret searched in it is then there, or it is not."""
    return _BY_CHANCE.sub("", text)
