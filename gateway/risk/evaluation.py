"""Evaluates a rule set on a subject: the rules that hold, their score, and the verdict. Pure, no database.

Order of precedence: a rule that allows, the first rule that declines, a declining score, the first rule that reviews, a
reviewing score. Source: Part B, Risk, Payment response (risk.score, avsResponse, cvvResponse).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from gateway.risk.conditions import RISK_REFUSED_CODE, RiskSignals
from gateway.risk.fields import RiskSubject
from gateway.risk.rule_sets import MAX_SCORE, RISK_REVIEW_CODE, RiskRule, RuleSet

AVS_REVIEW_CODE: Final = "000.400.010"
CVV_REVIEW_CODE: Final = "000.400.020"
AVS_DECLINED_CODE: Final = "800.400.100"
CVV_DECLINED_CODE: Final = "800.100.153"


class RiskOutcome(enum.StrEnum):
    """What a verdict does: let the payment go on, approve it under review, or decline it."""

    ACCEPT = "accept"
    REVIEW = "review"
    DECLINE = "decline"


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskReason:
    """One rule that held: its name, why it held, and its effect: a score or a verdict."""

    rule: str
    why: str
    score: int = 0
    verdict: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskVerdict:
    """The result of risk rules. ``code``: the result code of a declined payment, or of an approved one under review;
    '' otherwise. ``score``: None when no rule set was evaluated."""

    outcome: RiskOutcome
    code: str = ""
    score: int | None = None
    reasons: tuple[RiskReason, ...] = ()


UNCHECKED_VERDICT: Final = RiskVerdict(outcome=RiskOutcome.ACCEPT)


def evaluate_rules(rules: RuleSet, subject: RiskSubject, signals: RiskSignals) -> RiskVerdict:
    """The verdict of a rule set. Deterministic: the same subject and signals always give the same verdict."""
    held: list[tuple[RiskRule, RiskReason]] = []
    for rule in rules.rules:
        explanations = [condition.holds(subject, signals) for condition in rule.when]
        if all(why is not None for why in explanations):
            why = "; ".join(why for why in explanations if why)
            held.append((rule, RiskReason(rule=rule.name, why=why, score=rule.then.score, verdict=rule.then.verdict)))
    score = clamp_score(rules.start + sum(rule.then.score for rule, _ in held))
    first = {name: _find_first_rule(held, name) for name in ("allow", "decline", "review")}
    outcome, code = RiskOutcome.ACCEPT, ""
    if first["allow"] is None:
        if first["decline"] is not None:
            outcome, code = RiskOutcome.DECLINE, first["decline"].then.code
        elif rules.decline_from is not None and score >= rules.decline_from:
            outcome, code = RiskOutcome.DECLINE, RISK_REFUSED_CODE
        elif first["review"] is not None:
            outcome, code = RiskOutcome.REVIEW, first["review"].then.code
        elif rules.review_from is not None and score >= rules.review_from:
            outcome, code = RiskOutcome.REVIEW, RISK_REVIEW_CODE
    return RiskVerdict(outcome=outcome, code=code, score=score, reasons=tuple(reason for _, reason in held))


def _find_first_rule(held: list[tuple[RiskRule, RiskReason]], verdict: str) -> RiskRule | None:
    return next((rule for rule, _ in held if rule.then.verdict == verdict), None)


def clamp_score(score: int) -> int:
    """The score within -MAX_SCORE and MAX_SCORE."""
    return max(-MAX_SCORE, min(MAX_SCORE, score))


def format_score(score: int) -> str:
    """A score as in responses: sign and five digits, "+00012", "-00300", "+00000"."""
    return f"{score:+06d}"


def evaluate_acquirer_checks(rules: RuleSet, avs: str, cvv: str) -> RiskVerdict:
    """The verdict on the acquirer's AVS and CVV answers of an approved payment: a decline takes precedence over a
    review, the address check over the security code."""
    policies = (
        (rules.avs.get(avs, "accept"), f"address check answered {avs}", AVS_REVIEW_CODE, AVS_DECLINED_CODE),
        (rules.cvv.get(cvv, "accept"), f"security code check answered {cvv}", CVV_REVIEW_CODE, CVV_DECLINED_CODE),
    )
    for outcome, place in ((RiskOutcome.DECLINE, 3), (RiskOutcome.REVIEW, 2)):
        for row in policies:
            if row[0] == outcome:
                reason = RiskReason(rule="avs" if row is policies[0] else "cvv", why=row[1], verdict=row[0])
                return RiskVerdict(outcome=outcome, code=row[place], reasons=(reason,))
    return UNCHECKED_VERDICT
