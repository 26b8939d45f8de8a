"""Nested objects of an answer, put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NETWORK_REFERENCE_KEY: Final = "networkReference"
"""In a payment's answer, for ourselves: the scheme's reference of one that made a registration, for what is agreed on
later."""


def deep_merge(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two nested objects as one; where both have a value, the second's counts."""
    found = dict(one)
    for name, value in other.items():
        before = found.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            found[name] = deep_merge(before, value)
        else:
            found[name] = value
    return found
