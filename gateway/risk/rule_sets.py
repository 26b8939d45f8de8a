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

from gateway.core import document as d
from gateway.core import result_codes
from gateway.risk.conditions import RuleCondition, Velocity, parse_condition, velocity_from_options

MAX_SCORE: Final = 99_999
"""A score has five digits and a sign. Source: Part B, Payment response (risk.score)."""
MAX_RISK_RULES: Final = 200
RULE_VERDICTS: Final = ("allow", "review", "decline")
RISK_REVIEW_CODE: Final = "000.400.000"
RULE_SET_KEY_SHAPE: Final = d.text_shape(1, 255)
"""A set's key is what risk.channelId names."""

# What an AVS or CVV answer may lead to, after the acquirer has approved.
APPROVAL_POLICIES: Final = ("accept", "review", "decline")
AVS_ANSWERS: Final = ("F", "A", "Z", "N", "U")

_REFUSING: Final = frozenset(
    {
        result_codes.ResultFamily.REJECTED_EXTERNAL_RISK,
        result_codes.ResultFamily.REJECTED_ADDRESS_RISK,
        result_codes.ResultFamily.REJECTED_BLACKLIST,
        result_codes.ResultFamily.REJECTED_RISK_VALIDATION,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEffect:
    """What a rule does when it holds: it adds to the score, or gives a verdict with a code."""

    score: int = 0
    verdict: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskRule:
    """``when``: conditions that must all hold."""

    name: str
    when: tuple[RuleCondition, ...]
    then: RuleEffect


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """``start``: the score before any rule. ``review_from``/``decline_from``: scores that give a verdict, None for
    never. ``avs``/``cvv``: the acquirer's answer → accept, review or decline."""

    key: str = ""
    version: int = 0
    start: int = 0
    review_from: int | None = None
    decline_from: int | None = None
    rules: tuple[RiskRule, ...] = ()
    avs: Mapping[str, str] = field(default_factory=dict)
    cvv: Mapping[str, str] = field(default_factory=dict)

    def numbered(self, key: str, version: int) -> RuleSet:
        """The same set as it is kept: under this key, in this version."""
        return replace(self, key=key, version=version)

    @property
    def countings(self) -> frozenset[Velocity]:
        """What its velocities count."""
        return frozenset(
            velocity_from_options(one.options)
            for rule in self.rules
            for one in rule.when
            if one.kind.name == "velocity"
        )


EMPTY_RULE_SET: Final = RuleSet()
"""What screens a standalone risk check where no set is configured."""


def _code(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    if not isinstance(value, str) or value not in result_codes.RESULT_CODES:
        hint = d.suggest_name(value, result_codes.RESULT_CODES) if isinstance(value, str) else ""
        faults.add(path, f"must be a result code of GET /v1/resultcodes, not {d.abbreviate_value(value)}{hint}")
        return ""
    return value


_EFFECT: Final = d.object_shape(
    score=d.optional_member(d.integer_shape(-MAX_SCORE, MAX_SCORE)),
    verdict=d.optional_member(d.choice_shape(*RULE_VERDICTS)),
    code=d.optional_member(_code, ""),
)


def _effect(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    before = len(faults)
    found = _EFFECT(value, path, faults)
    if len(faults) > before:
        return RuleEffect()
    score, verdict, code = found["score"], found["verdict"] or "", found["code"]
    if (score is None) == (not verdict):
        faults.add(path, "give either score, points to add, or verdict: allow, review or decline")
    if code and verdict not in ("review", "decline"):
        faults.add(d.member_path(path, "code"), "is for the verdicts review and decline")
    elif code and verdict == "review" and not result_codes.is_review(code):
        faults.add(d.member_path(path, "code"), f"must be a review code, 000.400.0xx, not {code}")
    elif code and verdict == "decline" and result_codes.find_result_family(code) not in _REFUSING:
        faults.add(
            d.member_path(path, "code"),
            f"must be a code of risk (100.380., 100.400.), address risk (800.400.1), block lists (800.2, 800.3) or "
            f"limits (800.1), not {code}",
        )
    return RuleEffect(score=score or 0, verdict=verdict, code=code)


def _when(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """One condition, or a list of some that must all hold."""
    if isinstance(value, list):
        return d.list_shape(parse_condition, least=1, most=8)(value, path, faults)
    return (parse_condition(value, path, faults),)


_RULE: Final = d.object_shape(
    name=d.required_member(d.text_shape(1, 100)), when=d.required_member(_when), then=d.required_member(_effect)
)


def _rule(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    before = len(faults)
    found = _RULE(value, path, faults)
    if len(faults) > before:
        return None
    effect: RuleEffect = found["then"]
    if effect.verdict and not effect.code and effect.verdict != "allow":
        first: RuleCondition = found["when"][0]
        code = RISK_REVIEW_CODE if effect.verdict == "review" else first.kind.code(first.options)
        effect = RuleEffect(verdict=effect.verdict, code=code)
    return RiskRule(name=found["name"], when=found["when"], then=effect)


def _policy(*answers: str) -> d.DocumentShape:
    """An object: the acquirer's answer, one capital letter → what follows."""

    def shape(value: Any, path: str, faults: d.DocumentFaults) -> Any:
        if not isinstance(value, Mapping):
            faults.add(path, f"must be an object: the acquirer's answer → {', '.join(APPROVAL_POLICIES)}")
            return {}
        for name, follows in value.items():
            if answers and name not in answers:
                faults.add(d.member_path(path, str(name)), f"is no answer; known are {', '.join(answers)}")
            elif not (len(name) == 1 and "A" <= name <= "Z"):
                faults.add(d.member_path(path, str(name)), "must be one capital letter")
            d.choice_shape(*APPROVAL_POLICIES)(follows, d.member_path(path, str(name)), faults)
        return MappingProxyType(dict(value))

    return shape


_SCORE: Final = d.integer_shape(-MAX_SCORE, MAX_SCORE)
_SET: Final = d.object_shape(
    key=d.required_member(RULE_SET_KEY_SHAPE),
    title=d.optional_member(d.text_shape(0, 100), ""),
    active=d.optional_member(d.boolean_shape, True),
    start=d.optional_member(_SCORE, 0),
    reviewFrom=d.optional_member(_SCORE),
    declineFrom=d.optional_member(_SCORE),
    rules=d.optional_member(d.list_shape(_rule, most=MAX_RISK_RULES), ()),
    avs=d.optional_member(_policy(*AVS_ANSWERS), MappingProxyType({})),
    cvv=d.optional_member(_policy(), MappingProxyType({})),
)


def parse_rule_set(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """The shape of a rule set's document. Its value is a RuleSet, to be used only when there were no faults."""
    before = len(faults)
    found = _SET(value, path, faults)
    if len(faults) > before:
        return EMPTY_RULE_SET
    names = [rule.name for rule in found["rules"]]
    for place, name in enumerate(names):
        if name in names[:place]:
            faults.add(f"{d.member_path(path, 'rules')}[{place}].name", f"is there twice: {d.abbreviate_value(name)}")
    review, decline = found["reviewFrom"], found["declineFrom"]
    if review is not None and decline is not None and review >= decline:
        faults.add(d.member_path(path, "reviewFrom"), f"must be below declineFrom, which is {decline}")
    return RuleSet(
        key=found["key"],
        start=found["start"],
        review_from=review,
        decline_from=decline,
        rules=found["rules"],
        avs=found["avs"],
        cvv=found["cvv"],
    )


def rule_set_from_document(document: Mapping[str, Any]) -> RuleSet:
    """A stored document's rule set. Raises document.Unreadable: it was kept by a version that knew other rules."""
    found, faults = d.parse_document(parse_rule_set, document)
    if faults:
        raise d.InvalidDocumentError(faults)
    read: RuleSet = found
    return read


@lru_cache(maxsize=256)
def compile_rule_set(text: str) -> RuleSet:
    """As rule_set_from_document, from the document's text; what was read once is kept."""
    return rule_set_from_document(json.loads(text))
