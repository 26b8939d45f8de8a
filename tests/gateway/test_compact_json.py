"""Compact JSON: a long list is written piece by piece as it would be at once."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.core.compact_json import ENCODED_BLOCK_ITEMS, encode_json, encode_object


@pytest.mark.parametrize(
    "number", [0, 1, ENCODED_BLOCK_ITEMS - 1, ENCODED_BLOCK_ITEMS, ENCODED_BLOCK_ITEMS + 1, 3 * ENCODED_BLOCK_ITEMS]
)
def test_a_list_written_piece_by_piece_is_the_same_text(number: int) -> None:
    """Goals, P18: the answer's bytes do not change with the way in which they are made."""
    items = [{"id": f"é\N{PILE OF POO}{one}", "in": [one, [], {}]} for one in range(number)]
    every: list[dict[str, Any]] = [{"list": items}, {"a": None, "list": items, "é": "b"}]
    for fields in every:
        assert encode_object({**fields, "list": iter(items)}) == encode_json(fields)


def test_an_object_without_a_long_list_is_the_same_text() -> None:
    every: list[dict[str, Any]] = [{}, {"a": 1}, {"a": [1, "b"], "c": {"d": False}}]
    for fields in every:
        assert encode_object(fields) == encode_json(fields)
