"""Documents of rule sets: what is wrong with one is told at its path; its stored key and version. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.core import document as d
from gateway.risk.rule_sets import MAX_RISK_RULES, RuleEffect, RuleSet, parse_rule_set, rule_set_from_document

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


# --- borders, defaults and codes --------------------------------------------------------------------------------------


def fault_paths(**changes: Any) -> list[str]:
    return [fault.path for fault in d.parse_document(parse_rule_set, document(**changes))[1]]


def conditions(number: int) -> dict[str, Any]:
    return {**rule(), "when": [WHEN] * number}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"start": 99_999}, None),
        ({"start": 100_000}, "start"),
        ({"start": -99_999}, None),
        ({"start": -100_000}, "start"),
        ({"declineFrom": 99_999}, None),
        ({"declineFrom": 100_000}, "declineFrom"),
        ({"reviewFrom": -99_999}, None),
        ({"reviewFrom": -100_000}, "reviewFrom"),
        ({"rules": [rule(score=99_999)]}, None),
        ({"rules": [rule(score=100_000)]}, "rules[0].then.score"),
        ({"rules": [rule(score=-99_999)]}, None),
        ({"rules": [rule(score=-100_000)]}, "rules[0].then.score"),
        ({"rules": [rule(score=0)]}, None),
        ({"rules": [rule("n" * 100)]}, None),
        ({"rules": [rule("n" * 101)]}, "rules[0].name"),
        ({"rules": [rule("")]}, "rules[0].name"),
        ({"rules": [rule("n")]}, None),
        ({"rules": [conditions(0)]}, "rules[0].when"),
        ({"rules": [conditions(1)]}, None),
        ({"rules": [conditions(8)]}, None),
        ({"rules": [conditions(9)]}, "rules[0].when"),
        ({"key": "k" * 255}, None),
        ({"key": "k" * 256}, "key"),
        ({"key": "k"}, None),
        ({"key": ""}, "key"),
        ({"title": ""}, None),
        ({"title": "t" * 100}, None),
        ({"active": "yes"}, "active"),
        ({"cvv": {"A": "accept", "Z": "review"}}, None),
        ({"cvv": {"@": "accept"}}, 'cvv["@"]'),
        ({"cvv": {"[": "accept"}}, 'cvv["["]'),
        ({"cvv": {"m": "accept"}}, "cvv.m"),
        ({"cvv": {"": "accept"}}, 'cvv[""]'),
        ({"avs": {"N": "decline", "A": "review"}}, None),
        ({"avs": {"Q": "decline"}}, "avs.Q"),
        ({"avs": {"N": "maybe"}}, "avs.N"),
        ({"avs": "N"}, "avs"),
        ({"reviewFrom": 79}, None),
        ({"reviewFrom": 80}, "reviewFrom"),
        ({"reviewFrom": 81}, "reviewFrom"),
        ({"rules": [rule(score=1, code="100.400.001")]}, "rules[0].then.code"),
        ({"rules": [rule(verdict="review", code="000.400.000")]}, None),
        ({"rules": [rule(verdict="decline", code="100.400.001")]}, None),
        ({"rules": [rule(verdict="decline", code=7)]}, "rules[0].then.code"),
        ({"rules": [rule(verdict="perhaps")]}, "rules[0].then.verdict"),
        ({"rules": [{**rule(), "then": {}}]}, "rules[0].then"),
    ],
    ids=repr,
)
def test_each_value_of_a_set_ends_at_its_border(changes: dict[str, Any], path: str | None) -> None:
    assert fault_paths(**changes) == ([] if path is None else [path])


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        ({"score": 7}, RuleEffect(score=7)),
        ({"score": 0}, RuleEffect()),
        ({"verdict": "allow"}, RuleEffect(verdict="allow")),
        ({"verdict": "review"}, RuleEffect(verdict="review", code="000.400.000")),
        ({"verdict": "review", "code": "000.400.010"}, RuleEffect(verdict="review", code="000.400.010")),
        ({"verdict": "decline", "code": "800.300.101"}, RuleEffect(verdict="decline", code="800.300.101")),
    ],
)
def test_a_rule_has_the_effect_that_it_names(effect: dict[str, Any], expected: RuleEffect) -> None:
    (found,) = rule_set_from_document(document(rules=[{**rule("R"), "then": effect}])).rules
    assert (found.name, found.then, len(found.when)) == ("R", expected, 1)


def test_a_rule_that_declines_without_a_code_has_that_of_its_first_condition() -> None:
    country = {"kind": "field", "field": "billing.country", "is": ["DE"]}
    listed = {"kind": "list", "field": "customer.email", "list": "blocked"}
    codes = []
    for when in (country, listed, [country, listed], [listed, country]):
        (found,) = rule_set_from_document(
            document(rules=[{**rule(), "when": when, "then": {"verdict": "decline"}}])
        ).rules
        codes.append(found.then.code)
    assert codes[0] == codes[2] != codes[1] == codes[3]


def test_a_set_counts_by_its_velocities_alone() -> None:
    """Whatever else it looks at."""
    mails = {"kind": "velocity", "per": "customer.email", "count": "payments", "over": 1, "within": "1h"}
    phones = mails | {"per": "customer.phone"}
    found = rule_set_from_document(
        document(
            rules=[
                {**rule("a"), "when": [WHEN, mails]},
                {**rule("b"), "when": mails},
                {**rule("c"), "when": phones},
                {**rule("d"), "when": {"kind": "list", "field": "customer.email", "list": "blocked"}},
            ]
        )
    )
    assert {counting.per for counting in found.countings} == {"customer.email", "customer.phone"}
    assert len(found.countings) == 2


def test_the_answers_policies_are_kept_by_their_letter() -> None:
    found = rule_set_from_document(document(avs={"N": "decline"}, cvv={"P": "review"}))
    assert (dict(found.avs), dict(found.cvv)) == ({"N": "decline"}, {"P": "review"})
    with pytest.raises(d.InvalidDocumentError):
        rule_set_from_document(document(start="x"))
