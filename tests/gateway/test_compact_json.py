"""Compact JSON: a long list is written piece by piece as it would be at once."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.core.compact_json import TextTooLongError, encode_json, encode_object


@pytest.mark.parametrize("number", [0, 1, 2, 3, 100])
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


def test_a_list_is_as_long_as_it_may_be_and_one_item_is_always_written() -> None:
    """Goals, P18."""
    items = [{"a": "b" * 100}, {"a": "é"}]
    text = encode_json({"list": items})
    fits = len(text) - len(b"]}")
    assert encode_object({"list": iter(items)}, max_bytes=fits) == text
    with pytest.raises(TextTooLongError):
        encode_object({"list": iter(items)}, max_bytes=fits - 1)
    assert encode_object({"list": iter(items[:1])}, max_bytes=1) == encode_json({"list": items[:1]})
