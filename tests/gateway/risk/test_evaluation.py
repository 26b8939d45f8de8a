"""What a rule set decides: which rule goes before which, with whose code, score and reasons. Pure.

Source: Part B, Risk, Payment response (risk.score, avsResponse, cvvResponse).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.core.money import Money
from gateway.risk.conditions import RiskSignals
from gateway.risk.evaluation import (
    RiskOutcome,
    RiskReason,
    clamp_score,
    evaluate_acquirer_checks,
    evaluate_rules,
    format_score,
)
from gateway.risk.fields import RiskSubject
from gateway.risk.rule_sets import RuleSet, rule_set_from_document

ACCEPT, REVIEW, DECLINE = RiskOutcome.ACCEPT, RiskOutcome.REVIEW, RiskOutcome.DECLINE
HOLDS = {"kind": "field", "field": "billing.country", "is": ["DE"]}
OTHER_HOLDS = {"kind": "field", "field": "customer.status", "is": ["NEW"]}
FAILS = {"kind": "field", "field": "billing.country", "is": ["AT"]}
SUBJECT = RiskSubject(
    money=Money.parse("10.00", "EUR"),
    at=datetime(2026, 1, 7, tzinfo=UTC),
    values={"billing.country": ("DE",), "customer.status": ("NEW",)},
)
SIGNALS = RiskSignals()
ALLOW = {"verdict": "allow"}
DECLINE_A = {"verdict": "decline", "code": "100.400.001"}
DECLINE_B = {"verdict": "decline", "code": "800.300.101"}
REVIEW_A = {"verdict": "review", "code": "000.400.010"}
REVIEW_B = {"verdict": "review", "code": "000.400.020"}
REFUSED_BY_SCORE, REVIEWED_BY_SCORE = "100.400.319", "000.400.000"


def a_set(*effects: dict[str, Any], **more: Any) -> RuleSet:
    """A rule set with one rule for each of ``effects``; all of them hold but those that have a ``when``."""
    rules = [
        {"name": f"rule {place}", "when": effect.get("when", HOLDS), "then": {
            name: value for name, value in effect.items() if name != "when"}}
        for place, effect in enumerate(effects)
    ]  # fmt: skip
    return rule_set_from_document({"key": "WEB", "rules": rules, **more})


def score(points: int) -> dict[str, Any]:
    return {"score": points}


@pytest.mark.parametrize(
    ("effects", "limits", "outcome", "code"),
    [
        ([], {}, ACCEPT, ""),
        ([DECLINE_A], {}, DECLINE, "100.400.001"),
        ([REVIEW_A], {}, REVIEW, "000.400.010"),
        ([ALLOW], {}, ACCEPT, ""),
        # The first of its kind decides.
        ([DECLINE_B, DECLINE_A], {}, DECLINE, "800.300.101"),
        ([REVIEW_B, REVIEW_A], {}, REVIEW, "000.400.020"),
        # Wherever it stands: allow, decline, score, review, score.
        ([DECLINE_A, ALLOW], {}, ACCEPT, ""),
        ([REVIEW_A, ALLOW], {}, ACCEPT, ""),
        ([score(90), ALLOW], {"declineFrom": 80}, ACCEPT, ""),
        ([score(90), ALLOW], {"reviewFrom": 80}, ACCEPT, ""),
        ([REVIEW_A, DECLINE_A], {}, DECLINE, "100.400.001"),
        ([score(90), DECLINE_A], {"declineFrom": 80}, DECLINE, "100.400.001"),
        ([score(90), REVIEW_A], {"declineFrom": 80}, DECLINE, REFUSED_BY_SCORE),
        ([score(90), REVIEW_A], {"reviewFrom": 80}, REVIEW, "000.400.010"),
        # A rule that does not hold decides nothing.
        ([{**DECLINE_A, "when": FAILS}, REVIEW_A], {}, REVIEW, "000.400.010"),
        ([{**ALLOW, "when": FAILS}, DECLINE_A], {}, DECLINE, "100.400.001"),
        ([{**score(90), "when": FAILS}], {"declineFrom": 80}, ACCEPT, ""),
        ([{**DECLINE_A, "when": [HOLDS, FAILS]}], {}, ACCEPT, ""),
        ([{**DECLINE_A, "when": [FAILS, HOLDS]}], {}, ACCEPT, ""),
        ([{**DECLINE_A, "when": [HOLDS, OTHER_HOLDS]}], {}, DECLINE, "100.400.001"),
    ],
)
def test_rules_go_before_scores_and_the_more_severe_before_the_milder(
    effects: list[dict[str, Any]], limits: dict[str, int], outcome: RiskOutcome, code: str
) -> None:
    verdict = evaluate_rules(a_set(*effects, **limits), SUBJECT, SIGNALS)
    assert (verdict.outcome, verdict.code) == (outcome, code)


@pytest.mark.parametrize(
    ("points", "start", "outcome", "code", "total"),
    [
        (49, 0, ACCEPT, "", 49),
        (50, 0, REVIEW, REVIEWED_BY_SCORE, 50),
        (51, 0, REVIEW, REVIEWED_BY_SCORE, 51),
        (79, 0, REVIEW, REVIEWED_BY_SCORE, 79),
        (80, 0, DECLINE, REFUSED_BY_SCORE, 80),
        (81, 0, DECLINE, REFUSED_BY_SCORE, 81),
        (30, 20, REVIEW, REVIEWED_BY_SCORE, 50),
        (80, -31, ACCEPT, "", 49),
        (-5, 85, DECLINE, REFUSED_BY_SCORE, 80),
    ],
)
def test_a_score_decides_from_its_limit_on(
    points: int, start: int, outcome: RiskOutcome, code: str, total: int
) -> None:
    verdict = evaluate_rules(a_set(score(points), start=start, reviewFrom=50, declineFrom=80), SUBJECT, SIGNALS)
    assert (verdict.outcome, verdict.code, verdict.score) == (outcome, code, total)


@pytest.mark.parametrize(
    ("limits", "outcome"), [({}, ACCEPT), ({"reviewFrom": 0}, REVIEW), ({"declineFrom": 0}, DECLINE)]
)
def test_a_limit_of_nothing_is_a_limit_and_none_is_none(limits: dict[str, int], outcome: RiskOutcome) -> None:
    assert evaluate_rules(a_set(**limits), SUBJECT, SIGNALS).outcome == outcome


def test_the_score_is_the_sum_of_what_holds_and_each_rule_that_held_is_a_reason() -> None:
    """Rules with a verdict are reasons, too, also where another one decided."""
    rules = a_set(
        score(7), {**score(100), "when": FAILS}, REVIEW_A, {**score(-2), "when": [HOLDS, OTHER_HOLDS]}, DECLINE_A
    )
    verdict = evaluate_rules(rules, SUBJECT, SIGNALS)
    assert verdict.score == 5
    assert [(one.rule, one.score, one.verdict) for one in verdict.reasons] == [
        ("rule 0", 7, ""), ("rule 2", 0, "review"), ("rule 3", -2, ""), ("rule 4", 0, "decline"),
    ]  # fmt: skip
    whys = [one.why for one in verdict.reasons]
    assert all(whys)
    assert whys[2].split("; ")[0] == whys[0]
    assert len(whys[2].split("; ")) == 2


@pytest.mark.parametrize(
    ("given", "kept"),
    [(99_998, 99_998), (99_999, 99_999), (100_000, 99_999), (-99_999, -99_999), (-100_000, -99_999), (0, 0)],
)
def test_a_score_has_five_digits_at_most(given: int, kept: int) -> None:
    assert clamp_score(given) == kept
    assert len(format_score(kept)) == 6


@pytest.mark.parametrize("over", [99_999, -99_999])
def test_a_sum_beyond_five_digits_is_cut_off_at_them(over: int) -> None:
    assert evaluate_rules(a_set(score(over), score(over)), SUBJECT, SIGNALS).score == over


@pytest.mark.parametrize(
    ("avs", "cvv", "outcome", "code", "rule", "answer"),
    [
        ("N", "M", DECLINE, "800.400.100", "avs", "address check answered N"),
        ("F", "N", DECLINE, "800.100.153", "cvv", "security code check answered N"),
        ("Z", "M", REVIEW, "000.400.010", "avs", "address check answered Z"),
        ("F", "P", REVIEW, "000.400.020", "cvv", "security code check answered P"),
        ("N", "N", DECLINE, "800.400.100", "avs", "address check answered N"),
        ("Z", "P", REVIEW, "000.400.010", "avs", "address check answered Z"),
        ("Z", "N", DECLINE, "800.100.153", "cvv", "security code check answered N"),
        ("N", "P", DECLINE, "800.400.100", "avs", "address check answered N"),
    ],
)
def test_the_acquirers_checks_name_the_one_that_decided(
    avs: str, cvv: str, outcome: RiskOutcome, code: str, rule: str, answer: str
) -> None:
    policy = a_set(avs={"N": "decline", "Z": "review"}, cvv={"N": "decline", "P": "review", "M": "accept"})
    verdict = evaluate_acquirer_checks(policy, avs, cvv)
    assert (verdict.outcome, verdict.code, verdict.score) == (outcome, code, None)
    assert verdict.reasons == (RiskReason(rule=rule, why=answer, score=0, verdict=str(outcome)),)


@pytest.mark.parametrize(("avs", "cvv"), [("F", "M"), ("", ""), ("A", "U"), ("P", "Z")])
def test_an_answer_without_a_policy_or_of_the_other_check_decides_nothing(avs: str, cvv: str) -> None:
    policy = a_set(avs={"N": "decline", "Z": "review"}, cvv={"N": "decline", "P": "review", "M": "accept"})
    verdict = evaluate_acquirer_checks(policy, avs, cvv)
    assert (verdict.outcome, verdict.code, verdict.score, verdict.reasons) == (ACCEPT, "", None, ())
