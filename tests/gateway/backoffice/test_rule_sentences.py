"""Risk rules are read as sentences, in every language of the back office."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.utils import translation

from gateway.backoffice.risk.rule_sentences import _CONDITIONS, describe_condition, describe_rule
from gateway.risk.conditions import CONDITION_KINDS

RULES: list[tuple[dict[str, Any], str, str]] = [
    (
        {"when": {"kind": "amount", "currency": "EUR", "over": "500.00"}, "then": {"score": 60}},
        "If the amount is over 500.00 EUR, then 60 points are added.",
        "Wenn der Betrag über 500,00 EUR liegt, dann kommen 60 Punkte hinzu.",
    ),
    (
        {
            "when": [
                {"kind": "field", "field": "customer.status", "is": ["NEW"]},
                {"kind": "velocity", "per": "customer.ip", "count": "declines", "over": 3, "within": "10m"},
            ],
            "then": {"verdict": "decline", "code": "800.300.101"},
        },
        "If customer.status is NEW and there were more than 3 declines with the same customer.ip within 10m, "
        "then it is declined (800.300.101).",
        "Wenn customer.status gleich NEW ist und es innerhalb von 10m mehr als 3 Ablehnungen mit demselben Wert von "
        "customer.ip gab, dann wird sie abgelehnt (800.300.101).",
    ),
    (
        {"when": {"kind": "list", "field": "card.bin", "list": "bad", "outside": True}, "then": {"score": -1}},
        "If card.bin is not on the list bad, then 1 point is taken off.",
        "Wenn card.bin nicht auf der Liste bad steht, dann wird 1 Punkt abgezogen.",
    ),
]


@pytest.mark.parametrize(("rule", "english", "german"), RULES)
def test_a_rule_is_a_sentence(rule: dict[str, Any], english: str, german: str) -> None:
    with translation.override("en"):
        assert describe_rule(rule) == english
    with translation.override("de"):
        assert describe_rule(rule) == german


def test_every_kind_of_condition_has_its_words_in_every_language() -> None:
    assert set(_CONDITIONS) == set(CONDITION_KINDS)
    for language, _name in settings.LANGUAGES:
        with translation.override(language):
            said = {name: describe_condition({"kind": name, **kind.example}) for name, kind in CONDITION_KINDS.items()}
        assert all(said.values()), language
        if language != "en":
            with translation.override("en"):
                for name, kind in CONDITION_KINDS.items():
                    assert describe_condition({"kind": name, **kind.example}) != said[name], (language, name)


UNFINISHED: list[dict[str, Any]] = [
    {},
    {"when": None, "then": None},
    {"when": ["x"], "then": {"score": "many"}},
    {"when": {"kind": "new", "a": 1}, "then": {}},
    {"when": {"kind": "field"}},
]


@pytest.mark.parametrize("rule", UNFINISHED)
def test_a_rule_that_is_not_finished_is_read_as_far_as_it_goes(rule: dict[str, Any]) -> None:
    """The form shows what was typed, also while it is wrong."""
    assert describe_rule(rule).startswith("If ")
