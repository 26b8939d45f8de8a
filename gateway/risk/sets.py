"""A rule set: a JSON document that is validated wholly before it is kept, and the frozen value it becomes.

Source: Part B, Risk (risk.channelId selects another rule set).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from gateway import document as d
from gateway import results
from gateway.risk.rules import Condition, Counting, condition, counting

SCORE_LIMIT: Final = 99_999
"""A score has five digits and a sign. Source: Part B, Payment response (risk.score)."""
MAX_RULES: Final = 200
VERDICTS: Final = ("allow", "review", "decline")
REVIEW_CODE: Final = "000.400.000"
KEY: Final = d.text(1, 255)
"""A set's key is what risk.channelId names."""

# What an AVS or CVV answer may lead to, after the acquirer has approved.
POLICIES: Final = ("accept", "review", "decline")
AVS_ANSWERS: Final = ("F", "A", "Z", "N", "U")

_REFUSING: Final = frozenset(
    {
        results.Family.REJECTED_EXTERNAL_RISK, results.Family.REJECTED_ADDRESS_RISK, results.Family.REJECTED_BLACKLIST,
        results.Family.REJECTED_RISK_VALIDATION,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a rule does when it holds: it adds to the score, or gives a verdict with a code."""

    score: int = 0
    verdict: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """``when``: conditions that must all hold."""

    name: str
    when: tuple[Condition, ...]
    then: Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """``start``: the score before any rule. ``review_from``/``decline_from``: scores that give a verdict, None for
    never. ``avs``/``cvv``: the acquirer's answer → accept, review or decline."""

    key: str = ""
    version: int = 0
    start: int = 0
    review_from: int | None = None
    decline_from: int | None = None
    rules: tuple[Rule, ...] = ()
    avs: Mapping[str, str] = field(default_factory=dict)
    cvv: Mapping[str, str] = field(default_factory=dict)

    def numbered(self, key: str, version: int) -> RuleSet:
        """The same set as it is kept: under this key, in this version."""
        return replace(self, key=key, version=version)

    @property
    def countings(self) -> frozenset[Counting]:
        """What its velocities count."""
        return frozenset(
            counting(one.options) for rule in self.rules for one in rule.when if one.kind.name == "velocity"
        )


NO_RULES: Final = RuleSet()
"""What screens a standalone risk check where no set is configured."""


def _code(value: Any, path: str, faults: d.Faults) -> Any:
    if not isinstance(value, str) or value not in results.RESULT_CODES:
        hint = d.meant(value, results.RESULT_CODES) if isinstance(value, str) else ""
        faults.add(path, f"must be a result code of GET /v1/resultcodes, not {d.shown(value)}{hint}")
        return ""
    return value


_EFFECT: Final = d.record(
    score=d.may(d.whole(-SCORE_LIMIT, SCORE_LIMIT)), verdict=d.may(d.one_of(*VERDICTS)), code=d.may(_code, "")
)


def _effect(value: Any, path: str, faults: d.Faults) -> Any:
    before = len(faults)
    found = _EFFECT(value, path, faults)
    if len(faults) > before:
        return Effect()
    score, verdict, code = found["score"], found["verdict"] or "", found["code"]
    if (score is None) == (not verdict):
        faults.add(path, "give either score, points to add, or verdict: allow, review or decline")
    if code and verdict not in ("review", "decline"):
        faults.add(d.within(path, "code"), "is for the verdicts review and decline")
    elif code and verdict == "review" and not results.is_review(code):
        faults.add(d.within(path, "code"), f"must be a review code, 000.400.0xx, not {code}")
    elif code and verdict == "decline" and results.family(code) not in _REFUSING:
        faults.add(
            d.within(path, "code"),
            f"must be a code of risk (100.380., 100.400.), address risk (800.400.1), block lists (800.2, 800.3) or "
            f"limits (800.1), not {code}",
        )
    return Effect(score=score or 0, verdict=verdict, code=code)


def _when(value: Any, path: str, faults: d.Faults) -> Any:
    """One condition, or a list of some that must all hold."""
    if isinstance(value, list):
        return d.list_of(condition, least=1, most=8)(value, path, faults)
    return (condition(value, path, faults),)


_RULE: Final = d.record(name=d.need(d.text(1, 100)), when=d.need(_when), then=d.need(_effect))


def _rule(value: Any, path: str, faults: d.Faults) -> Any:
    before = len(faults)
    found = _RULE(value, path, faults)
    if len(faults) > before:
        return None
    effect: Effect = found["then"]
    if effect.verdict and not effect.code and effect.verdict != "allow":
        first: Condition = found["when"][0]
        code = REVIEW_CODE if effect.verdict == "review" else first.kind.code(first.options)
        effect = Effect(verdict=effect.verdict, code=code)
    return Rule(name=found["name"], when=found["when"], then=effect)


def _policy(*answers: str) -> d.Shape:
    """An object: the acquirer's answer, one capital letter → what follows."""

    def shape(value: Any, path: str, faults: d.Faults) -> Any:
        if not isinstance(value, Mapping):
            faults.add(path, f"must be an object: the acquirer's answer → {', '.join(POLICIES)}")
            return {}
        for name, follows in value.items():
            if answers and name not in answers:
                faults.add(d.within(path, str(name)), f"is no answer; known are {', '.join(answers)}")
            elif not (len(name) == 1 and "A" <= name <= "Z"):
                faults.add(d.within(path, str(name)), "must be one capital letter")
            d.one_of(*POLICIES)(follows, d.within(path, str(name)), faults)
        return MappingProxyType(dict(value))

    return shape


_SCORE: Final = d.whole(-SCORE_LIMIT, SCORE_LIMIT)
_SET: Final = d.record(
    key=d.need(KEY), title=d.may(d.text(0, 100), ""), active=d.may(d.flag, True), start=d.may(_SCORE, 0),
    reviewFrom=d.may(_SCORE), declineFrom=d.may(_SCORE), rules=d.may(d.list_of(_rule, most=MAX_RULES), ()),
    avs=d.may(_policy(*AVS_ANSWERS), MappingProxyType({})), cvv=d.may(_policy(), MappingProxyType({})),
)  # fmt: skip


def rule_set(value: Any, path: str, faults: d.Faults) -> Any:
    """The shape of a rule set's document. Its value is a RuleSet, to be used only when there were no faults."""
    before = len(faults)
    found = _SET(value, path, faults)
    if len(faults) > before:
        return NO_RULES
    names = [rule.name for rule in found["rules"]]
    for place, name in enumerate(names):
        if name in names[:place]:
            faults.add(f"{d.within(path, 'rules')}[{place}].name", f"is there twice: {d.shown(name)}")
    review, decline = found["reviewFrom"], found["declineFrom"]
    if review is not None and decline is not None and review >= decline:
        faults.add(d.within(path, "reviewFrom"), f"must be below declineFrom, which is {decline}")
    return RuleSet(
        key=found["key"], start=found["start"], review_from=review, decline_from=decline, rules=found["rules"],
        avs=found["avs"], cvv=found["cvv"],
    )  # fmt: skip


def read_set(document: Mapping[str, Any]) -> RuleSet:
    """A stored document's rule set. Raises document.Unreadable: it was kept by a version that knew other rules."""
    found, faults = d.read(rule_set, document)
    if faults:
        raise d.Unreadable(faults)
    read: RuleSet = found
    return read


@lru_cache(maxsize=256)
def compiled(text: str) -> RuleSet:
    """As read_set, from the document's text; what was read once is kept."""
    return read_set(json.loads(text))
