"""The verdict about one subject: which rules hold, what they add up to, what is to be done. Pure.

The order of precedence: a rule that allows, the first rule that declines, the score that declines, the first rule that
reviews, the score that reviews. Source: Part B, Risk, Payment response (risk.score, avsResponse, cvvResponse).
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
    ACCEPT = "accept"
    REVIEW = "review"
    DECLINE = "decline"


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskReason:
    """One rule that held: its name, why, and what it did: points, or a verdict."""

    rule: str
    why: str
    score: int = 0
    verdict: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskVerdict:
    """``code``: what a declined payment answers, or what an approved one under review does; '' otherwise.
    ``score`` is None when nothing was checked."""

    outcome: RiskOutcome
    code: str = ""
    score: int | None = None
    reasons: tuple[RiskReason, ...] = ()


UNCHECKED_VERDICT: Final = RiskVerdict(outcome=RiskOutcome.ACCEPT)


def evaluate_rules(rules: RuleSet, subject: RiskSubject, signals: RiskSignals) -> RiskVerdict:
    """The verdict of a rule set. The same subject and signals always get the same one."""
    held: list[tuple[RiskRule, RiskReason]] = []
    for rule in rules.rules:
        found = [one.holds(subject, signals) for one in rule.when]
        if all(why is not None for why in found):
            why = "; ".join(why for why in found if why)
            held.append((rule, RiskReason(rule=rule.name, why=why, score=rule.then.score, verdict=rule.then.verdict)))
    score = clamp_score(rules.start + sum(rule.then.score for rule, _ in held))
    first = {name: _first(held, name) for name in ("allow", "decline", "review")}
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


def _first(held: list[tuple[RiskRule, RiskReason]], verdict: str) -> RiskRule | None:
    return next((rule for rule, _ in held if rule.then.verdict == verdict), None)


def clamp_score(score: int) -> int:
    return max(-MAX_SCORE, min(MAX_SCORE, score))


def format_score(score: int) -> str:
    """A score as an answer carries it: sign and five digits, "+00012", "-00300", "+00000"."""
    return f"{score:+06d}"


def evaluate_acquirer_checks(rules: RuleSet, avs: str, cvv: str) -> RiskVerdict:
    """What the acquirer's AVS and CVV answers of an approved payment lead to: declining goes before review, the
    address check before the security code."""
    follows = (
        (rules.avs.get(avs, "accept"), f"address check answered {avs}", AVS_REVIEW_CODE, AVS_DECLINED_CODE),
        (rules.cvv.get(cvv, "accept"), f"security code check answered {cvv}", CVV_REVIEW_CODE, CVV_DECLINED_CODE),
    )
    for outcome, place in ((RiskOutcome.DECLINE, 3), (RiskOutcome.REVIEW, 2)):
        for row in follows:
            if row[0] == outcome:
                reason = RiskReason(rule="avs" if row is follows[0] else "cvv", why=row[1], verdict=row[0])
                return RiskVerdict(outcome=outcome, code=row[place], reasons=(reason,))
    return UNCHECKED_VERDICT
