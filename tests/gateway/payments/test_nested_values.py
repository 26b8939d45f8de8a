"""Merging of nested objects: what responses show of a payment is put together by it."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.payments.nested_values import deep_merge


@pytest.mark.parametrize(
    ("base", "other", "merged"),
    [
        ({}, {}, {}),
        ({"a": 1}, {}, {"a": 1}),
        ({}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"card": {"bin": "4", "holder": "x"}}, {"card": {"holder": "y"}}, {"card": {"bin": "4", "holder": "y"}}),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"d": 3}, "e": 4}}, {"a": {"b": {"c": 1, "d": 3}, "e": 4}}),
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
    ],
)  # fmt: skip
def test_members_of_both_are_kept_and_the_later_value_wins(
    base: dict[str, Any], other: dict[str, Any], merged: dict[str, Any]
) -> None:
    before = repr((base, other))
    assert deep_merge(base, other) == merged
    assert repr((base, other)) == before, "neither of them changes"
