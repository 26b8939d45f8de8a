"""Rule sets: parses and validates a merchant's JSON document into a frozen RuleSet, with all errors at once.

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
"""The shape of a rule set's key, which risk.channelId selects."""

# What an AVS or CVV answer of an approved payment may lead to.
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
    """The effect of a rule that holds: a score to add, or a verdict with a result code."""

    score: int = 0
    verdict: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskRule:
    """A rule. ``when``: its conditions, which must all hold; ``then``: its effect."""

    name: str
    when: tuple[RuleCondition, ...]
    then: RuleEffect


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """A merchant's rule set. ``start``: the score before any rule. ``review_from``, ``decline_from``: scores from which
    the verdict is review or decline, None for never. ``avs``, ``cvv``: the acquirer's answer → accept, review or
    decline."""

    key: str = ""
    version: int = 0
    start: int = 0
    review_from: int | None = None
    decline_from: int | None = None
    rules: tuple[RiskRule, ...] = ()
    avs: Mapping[str, str] = field(default_factory=dict)
    cvv: Mapping[str, str] = field(default_factory=dict)

    def numbered(self, key: str, version: int) -> RuleSet:
        """The same rule set with its stored key and version."""
        return replace(self, key=key, version=version)

    @property
    def countings(self) -> frozenset[Velocity]:
        """The velocities that the rules count."""
        return frozenset(
            velocity_from_options(condition.options)
            for rule in self.rules
            for condition in rule.when
            if condition.kind.name == "velocity"
        )


EMPTY_RULE_SET: Final = RuleSet()
"""The rule set of a standalone risk check without a configured one."""


def _parse_code(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    if not isinstance(value, str) or value not in result_codes.RESULT_CODES:
        hint = d.suggest_name(value, result_codes.RESULT_CODES) if isinstance(value, str) else ""
        faults.add(path, f"must be a result code of GET /v1/resultcodes, not {d.abbreviate_value(value)}{hint}")
        return ""
    return value


_EFFECT: Final = d.object_shape(
    score=d.optional_member(d.integer_shape(-MAX_SCORE, MAX_SCORE)),
    verdict=d.optional_member(d.choice_shape(*RULE_VERDICTS)),
    code=d.optional_member(_parse_code, ""),
)


def _parse_effect(value: Any, path: str, faults: d.DocumentFaults) -> Any:
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


def _parse_conditions(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """Parse one condition, or a list of conditions that must all hold."""
    if isinstance(value, list):
        return d.list_shape(parse_condition, least=1, most=8)(value, path, faults)
    return (parse_condition(value, path, faults),)


_RULE: Final = d.object_shape(
    name=d.required_member(d.text_shape(1, 100)),
    when=d.required_member(_parse_conditions),
    then=d.required_member(_parse_effect),
)


def _parse_rule(value: Any, path: str, faults: d.DocumentFaults) -> Any:
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


def _policy_shape(*answers: str) -> d.DocumentShape:
    """The shape of an object: the acquirer's answer, one capital letter → accept, review or decline."""

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
    rules=d.optional_member(d.list_shape(_parse_rule, most=MAX_RISK_RULES), ()),
    avs=d.optional_member(_policy_shape(*AVS_ANSWERS), MappingProxyType({})),
    cvv=d.optional_member(_policy_shape(), MappingProxyType({})),
)


def parse_rule_set(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """Parse a rule set's document; errors are added to ``faults``, and the result is usable only without any."""
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
    """The rule set of a stored document. Raises InvalidDocumentError if another version of the program wrote it."""
    found, faults = d.parse_document(parse_rule_set, document)
    if faults:
        raise d.InvalidDocumentError(faults)
    read: RuleSet = found
    return read


@lru_cache(maxsize=256)
def compile_rule_set(text: str) -> RuleSet:
    """As :func:`rule_set_from_document`, from the document's text, cached."""
    return rule_set_from_document(json.loads(text))
