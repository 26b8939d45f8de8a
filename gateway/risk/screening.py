"""The verdict about one subject: which rules hold, what they add up to, what is to be done. Pure.

The order of precedence: a rule that allows, the first rule that declines, the score that declines, the first rule that
reviews, the score that reviews. Source: Part B, Risk, Payment response (risk.score, avsResponse, cvvResponse).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from gateway.risk.fields import Subject
from gateway.risk.rules import RISK_REFUSED, Signals
from gateway.risk.sets import REVIEW_CODE, SCORE_LIMIT, Rule, RuleSet

AVS_REVIEW: Final = "000.400.010"
CVV_REVIEW: Final = "000.400.020"
AVS_DECLINED: Final = "800.400.100"
CVV_DECLINED: Final = "800.100.153"


class Outcome(enum.StrEnum):
    ACCEPT = "accept"
    REVIEW = "review"
    DECLINE = "decline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One rule that held: its name, why, and what it did: points, or a verdict."""

    rule: str
    why: str
    score: int = 0
    verdict: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``code``: what a declined payment answers, or what an approved one under review does; '' otherwise.
    ``score`` is None when nothing was checked."""

    outcome: Outcome
    code: str = ""
    score: int | None = None
    reasons: tuple[Reason, ...] = ()


UNCHECKED: Final = Verdict(outcome=Outcome.ACCEPT)


def screen(rules: RuleSet, subject: Subject, signals: Signals) -> Verdict:
    """The verdict of a rule set. The same subject and signals always get the same one."""
    held: list[tuple[Rule, Reason]] = []
    for rule in rules.rules:
        found = [one.holds(subject, signals) for one in rule.when]
        if all(why is not None for why in found):
            why = "; ".join(why for why in found if why)
            held.append((rule, Reason(rule=rule.name, why=why, score=rule.then.score, verdict=rule.then.verdict)))
    score = clipped(rules.start + sum(rule.then.score for rule, _ in held))
    first = {name: _first(held, name) for name in ("allow", "decline", "review")}
    outcome, code = Outcome.ACCEPT, ""
    if first["allow"] is None:
        if first["decline"] is not None:
            outcome, code = Outcome.DECLINE, first["decline"].then.code
        elif rules.decline_from is not None and score >= rules.decline_from:
            outcome, code = Outcome.DECLINE, RISK_REFUSED
        elif first["review"] is not None:
            outcome, code = Outcome.REVIEW, first["review"].then.code
        elif rules.review_from is not None and score >= rules.review_from:
            outcome, code = Outcome.REVIEW, REVIEW_CODE
    return Verdict(outcome=outcome, code=code, score=score, reasons=tuple(reason for _, reason in held))


def _first(held: list[tuple[Rule, Reason]], verdict: str) -> Rule | None:
    return next((rule for rule, _ in held if rule.then.verdict == verdict), None)


def clipped(score: int) -> int:
    return max(-SCORE_LIMIT, min(SCORE_LIMIT, score))


def score_text(score: int) -> str:
    """A score as an answer carries it: sign and five digits, "+00012", "-00300", "+00000"."""
    return f"{score:+06d}"


def after(rules: RuleSet, avs: str, cvv: str) -> Verdict:
    """What the acquirer's AVS and CVV answers of an approved payment lead to: declining goes before review, the
    address check before the security code."""
    follows = (
        (rules.avs.get(avs, "accept"), f"address check answered {avs}", AVS_REVIEW, AVS_DECLINED),
        (rules.cvv.get(cvv, "accept"), f"security code check answered {cvv}", CVV_REVIEW, CVV_DECLINED),
    )
    for outcome, place in ((Outcome.DECLINE, 3), (Outcome.REVIEW, 2)):
        for row in follows:
            if row[0] == outcome:
                reason = Reason(rule="avs" if row is follows[0] else "cvv", why=row[1], verdict=row[0])
                return Verdict(outcome=outcome, code=row[place], reasons=(reason,))
    return UNCHECKED
