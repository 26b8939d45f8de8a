"""JSON documents: every fault at once, with its path and what is allowed. Source: goals (errors that help)."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from gateway.core import document as d

SHAPE = d.object_shape(
    name=d.required_member(d.text_shape(1, 5)),
    kind=d.optional_member(d.choice_shape("red", "green"), "red"),
    sizes=d.optional_member(d.list_shape(d.integer_shape(1, 9), most=3), ()),
    within=d.optional_member(d.duration_shape(timedelta(days=1))),
    in_=d.optional_member(d.boolean_shape),
)


def faults(document: Any) -> dict[str, str]:
    return {fault.path: fault.message for fault in d.parse_document(SHAPE, document)[1]}


def test_a_document_that_is_right_is_read_with_what_it_leaves_out() -> None:
    """Defaults stand for what is missing."""
    value, found = d.parse_document(SHAPE, {"name": "a", "sizes": [1, 9], "within": "90s", "in": True})
    assert not found
    assert value == {
        "name": "a",
        "kind": "red",
        "sizes": (1, 9),
        "within": timedelta(seconds=90),
        "in": True,
    }


def test_every_fault_is_told_at_once_with_its_path() -> None:
    """One round trip for the person who writes it."""
    found = faults({"nam": "x", "kind": "gren", "sizes": [0, True, 5, 7], "within": "2d", "in": 1})
    assert set(found) == {"nam", "name", "kind", "sizes", "sizes[0]", "sizes[1]", "within", "in"}
    assert "did you mean name?" in found["nam"]
    assert "did you mean green?" in found["kind"]
    assert found["name"] == "is required"


@pytest.mark.parametrize("document", [None, [], "text", 1, True])
def test_what_is_no_object_is_said_to_be_none(document: Any) -> None:
    """Never an exception."""
    assert "must be an object" in faults(document)[""]


@pytest.mark.parametrize("span", ["", "5", "0m", "m", "-5m", "5w", "25h", 5, None, "1.5h", "٣m"])
def test_a_span_is_a_number_and_a_unit_within_its_limit(span: Any) -> None:
    """s, m, h and d."""
    assert "within" in faults({"name": "a", "within": span})


@pytest.mark.parametrize(
    ("text", "amount"),
    [("500", Decimal(500)), ("0.50", Decimal("0.5")), ("1e3", None), (5, None), ("5.5", None), ("NaN", None)],
)
def test_an_amount_is_text_as_the_wire_writes_it(text: Any, amount: Decimal | None) -> None:
    """Money is never a float."""
    value, found = d.parse_document(d.amount_shape, text, "over")
    assert bool(found) == (amount is None)
    assert amount is None or value == amount


def test_faults_end_somewhere() -> None:
    """A limit on everything."""
    _, found = d.parse_document(d.list_shape(d.boolean_shape, most=1000), ["x"] * 1000, "flags")
    assert len(found) == d.MAX_DOCUMENT_FAULTS


def test_odd_names_are_shown_in_brackets_and_long_values_cut() -> None:
    """A path stays readable."""
    found = faults({"name": "x" * 100, "a b": 1})
    assert '["a b"]' in found
    assert len(found["name"]) < 120
