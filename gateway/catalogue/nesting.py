"""Converts flat names into nested JSON: ``cart.items[3].name`` becomes an object with a list in it (D17)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gateway.catalogue.errors import HIDDEN_VALUE


def mask_account_number(value: str) -> str:
    """An account number for its owner: the last four characters."""
    return "*" * max(len(value) - 4, 0) + value[-4:] if len(value) > 4 else HIDDEN_VALUE


FlatEntry = tuple[tuple[str | None, ...], tuple[int, ...], str | None, str]


def nest_entries(entries: Iterable[FlatEntry]) -> dict[str, Any]:
    """Build JSON from flat entries; list positions follow the order of their indexes."""
    top: dict[str, Any] = {}
    lists = False
    for path, indexes, key, value in entries:
        node: Any = top
        position = 0
        steps: tuple[Any, ...] = path if key is None else (*path, key)
        last = len(steps) - 1
        for at, step in enumerate(steps):
            if step is None:
                step = indexes[position]
                position += 1
                lists = True
            if at == last:
                node[step] = value
            else:
                node = node.setdefault(step, {})
    return _compact(top) if lists else top


def _compact(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if node and all(isinstance(key, int) for key in node):
        return [_compact(node[key]) for key in sorted(node)]
    return {key: _compact(child) for key, child in node.items()}
