"""What is read of the inputs of a page of risk rules, and what a form is told of what is none."""

from __future__ import annotations

import json

import pytest
from django.http import QueryDict

from gateway.backoffice.risk.rule_fields import RiskRulesWidget

NAMED = {"rules.0.name": "first", "rules.1.name": "second"}


def read(**data: str) -> object:
    sent = QueryDict(mutable=True)
    sent.update(data)
    return RiskRulesWidget().value_from_datadict(sent, {}, "rules")


def test_rules_are_read_of_inputs_and_of_the_one_field_that_the_script_sends() -> None:
    packed = json.dumps(list(map(list, NAMED.items())))
    by_inputs, by_field = read(**NAMED), read(rules=packed)
    assert by_inputs == by_field
    assert isinstance(by_field, list)
    assert [rule["name"] for rule in by_field] == ["first", "second"]


def test_half_a_character_in_the_one_field_is_replaced() -> None:
    """The page that shows the form again was answered with 500: no answer can be written with it."""
    found = read(rules='[["rules.0.name", "odd\\ud800"]]')
    assert isinstance(found, list)
    assert [rule["name"] for rule in found] == ["odd\ufffd"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "{}", "1", '["a"]', '[["a"]]', '[["a", 1]]', '[["a", "b", "c"]]', "[" * 60_000, '{"a":' * 20_000],
    ids=lambda text: text[:20],
)
def test_a_field_that_is_no_list_of_inputs_is_left_to_the_form_as_it_was_sent(text: str) -> None:
    """However deep it nests."""
    assert read(rules=text) == text
