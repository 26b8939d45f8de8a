"""Merging of nested JSON objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def deep_merge(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two nested objects; where both have a value, the one of ``other`` wins."""
    merged = dict(base)
    for name, value in other.items():
        before = merged.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            merged[name] = deep_merge(before, value)
        else:
            merged[name] = value
    return merged
