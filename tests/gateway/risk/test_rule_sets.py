"""Documents of rule sets: what is wrong with one is told at its path; its stored key and version. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.core import document as d
from gateway.risk.rule_sets import MAX_RISK_RULES, RuleSet, parse_rule_set, rule_set_from_document

WHEN = {"kind": "field", "field": "card.bin", "is": ["420000"]}


def rule(name: str = "R", **then: Any) -> dict[str, Any]:
    return {"name": name, "when": WHEN, "then": then or {"score": 10}}


def looking_at(field: str) -> dict[str, Any]:
    return {**rule(), "when": {**WHEN, "field": field}}


def document(**changes: Any) -> dict[str, Any]:
    return {"key": "web", "start": 5, "reviewFrom": 50, "declineFrom": 80, "rules": [rule()], **changes}


def test_a_stored_rule_set_has_its_key_and_its_version() -> None:
    found = rule_set_from_document(document())
    assert (found.key, found.version, found.start, found.review_from, found.decline_from) == ("web", 0, 5, 50, 80)
    numbered = found.numbered("app", 7)
    assert (numbered.key, numbered.version, numbered.rules) == ("app", 7, found.rules)


def test_what_a_set_may_leave_out_has_no_effect() -> None:
    found = rule_set_from_document({"key": "web"})
    assert found == RuleSet(key="web")
    assert rule_set_from_document({"key": "web", "title": "Shop", "active": True}) == found


@pytest.mark.parametrize("title", ["x" * 101, 7])
def test_a_title_is_a_text_of_a_hundred_letters_at_most(title: object) -> None:
    _, faults = d.parse_document(parse_rule_set, document(title=title))
    assert [fault.path for fault in faults] == ["title"]


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"rules": [rule("R"), rule("S"), rule("R")]}, "rules[2].name", "is there twice"),
        ({"rules": [rule(str(n)) for n in range(MAX_RISK_RULES + 1)]}, "rules", f"{MAX_RISK_RULES}"),
        ({"reviewFrom": 80}, "reviewFrom", "must be below declineFrom, which is 80"),
        ({"rules": [rule(score=1, verdict="review")]}, "rules[0].then", "give either score"),
        ({"rules": [rule(code="100.380.101")]}, "rules[0].then", "give either score"),
        ({"rules": [rule(verdict="allow", code="100.380.101")]}, "rules[0].then.code", "for the verdicts review"),
        ({"rules": [rule(verdict="review", code="100.380.101")]}, "rules[0].then.code", "must be a review code"),
        ({"rules": [rule(verdict="decline", code="000.400.000")]}, "rules[0].then.code", "must be a code of risk"),
        ({"rules": [rule(verdict="decline", code="999")]}, "rules[0].then.code", "must be a result code"),
        ({"avs": {"a": "accept"}}, "avs.a", "is no answer"),
        ({"cvv": {"NN": "accept"}}, "cvv.NN", "must be one capital letter"),
        ({"cvv": {"N": "perhaps"}}, "cvv.N", "accept"),
        ({"cvv": []}, "cvv", "must be an object"),
        ({"rules": [looking_at("card.pan")]}, "rules[0].when.field", "must be one of"),
        ({"rules": [looking_at("transactionDueDate")]}, "rules[0].when.field", "is left out"),
    ],
)  # fmt: skip
def test_a_fault_is_told_at_its_path(changes: dict[str, Any], path: str, words: str) -> None:
    _, faults = d.parse_document(parse_rule_set, document(**changes))
    assert path in [fault.path for fault in faults]
    (message,) = (fault.message for fault in faults if fault.path == path)
    assert words in message


def test_a_set_at_its_limits_has_no_fault() -> None:
    limits = document(rules=[rule(str(number)) for number in range(MAX_RISK_RULES)], reviewFrom=79)
    assert d.parse_document(parse_rule_set, limits)[1] == []
