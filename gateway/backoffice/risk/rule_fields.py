"""Inputs of a rule set: rules in order, each with its conditions and its action.

The conditions and their options are the table of gateway.risk.conditions; this module has the input of each option. A
test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from django.conf import settings
from django.http import QueryDict
from django.utils.translation import gettext_lazy

from gateway.backoffice.kit.composite_field import CompositeInput, CompositeWidget, read_inputs
from gateway.backoffice.risk.rule_sentences import describe_rule
from gateway.core.money import CURRENCY_CODES
from gateway.core.peer_json import parse_peer_json
from gateway.core.time_zones import list_time_zones
from gateway.risk import fields
from gateway.risk.conditions import CONDITION_KINDS, VELOCITY_MEASURES, WEEKDAYS
from gateway.risk.rule_sets import APPROVAL_POLICIES, AVS_ANSWERS, MAX_RISK_RULES

_EMPTY: Final = [("", "–")]
RULE_FIELD_NAMES: Final = (*fields.RISK_FIELDS, "risk.parameters[name]")
_AMOUNT: Final = gettext_lazy("An amount such as 500.00, in the currency beside it.")
_FIELD: Final = CompositeInput(
    "field",
    gettext_lazy("field"),
    known=RULE_FIELD_NAMES,
    help=gettext_lazy("Such as customer.email, billing.country or risk.parameters[loyalty]."),
)
_CURRENCY: Final = CompositeInput("currency", gettext_lazy("currency"), known=sorted(CURRENCY_CODES))
CONDITION_INPUTS: Final[Mapping[str, Sequence[CompositeInput]]] = MappingProxyType(
    {
        "list": (
            _FIELD,
            CompositeInput("list", gettext_lazy("name of a list"), help=gettext_lazy("Or values, not both.")),
            CompositeInput("values", gettext_lazy("values"), kind="lines", help=gettext_lazy("One a line.")),
            CompositeInput("outside", gettext_lazy("holds when it is on none of them"), kind="flag"),
        ),
        "velocity": (
            CompositeInput(
                "per",
                gettext_lazy("with the same"),
                kind="select",
                choices=[*_EMPTY, *((one, one) for one in fields.VELOCITY_FIELDS)],
            ),
            CompositeInput(
                "count",
                gettext_lazy("counted are"),
                kind="select",
                choices=[
                    (VELOCITY_MEASURES[0], gettext_lazy("payments")),
                    (VELOCITY_MEASURES[1], gettext_lazy("declines")),
                    (VELOCITY_MEASURES[2], gettext_lazy("volume")),
                ],
            ),
            CompositeInput(
                "over",
                gettext_lazy("more than"),
                kind="number",
                help=gettext_lazy("A count; for a volume an amount such as 500.00."),
            ),
            CompositeInput(
                "within", gettext_lazy("within"), help=gettext_lazy("Such as 30s, 10m, 24h or 7d; at most 30d.")
            ),
            CompositeInput(
                "currency",
                gettext_lazy("currency"),
                known=sorted(CURRENCY_CODES),
                help=gettext_lazy("For a volume only."),
            ),
        ),
        "amount": (
            _CURRENCY,
            CompositeInput("over", gettext_lazy("over"), help=_AMOUNT),
            CompositeInput("under", gettext_lazy("under"), help=_AMOUNT),
        ),
        "countries": (
            CompositeInput(
                "differ",
                gettext_lazy("two of these differ"),
                kind="flags",
                wide=True,
                choices=[(one, one) for one in fields.COUNTRY_FIELDS],
            ),
        ),
        "disposable-email": (
            CompositeInput(
                "also",
                gettext_lazy("further domains"),
                kind="lines",
                wide=True,
                help=gettext_lazy("One a line; those that are known anyway need not be named."),
            ),
        ),
        "time": (
            CompositeInput("from", gettext_lazy("from"), kind="time"),
            CompositeInput("to", gettext_lazy("to"), kind="time", help=gettext_lazy("May be past midnight.")),
            CompositeInput(
                "zone",
                gettext_lazy("time zone"),
                known=list_time_zones(),
                help=gettext_lazy("Such as Europe/Berlin; empty: UTC."),
            ),
            CompositeInput(
                "days",
                gettext_lazy("days"),
                kind="flags",
                choices=[(day, day) for day in WEEKDAYS],
                wide=True,
                help=gettext_lazy("None chosen: every day."),
            ),
        ),
        "field": (
            _FIELD,
            CompositeInput("is", gettext_lazy("is one of"), kind="lines", help=gettext_lazy("One a line.")),
            CompositeInput("not", gettext_lazy("is none of"), kind="lines", help=gettext_lazy("One a line.")),
            CompositeInput("missing", gettext_lazy("is missing"), kind="flag"),
            CompositeInput("over", gettext_lazy("is a number over"), kind="number"),
            CompositeInput(
                "under",
                gettext_lazy("is a number under"),
                kind="number",
                help=gettext_lazy("Exactly one of these tests."),
            ),
        ),
    }
)
"""Kind of condition → the inputs of its options."""
CONDITION_TITLES: Final = {
    "list": gettext_lazy("is on a list"), "velocity": gettext_lazy("too often or too much"),
    "amount": gettext_lazy("amount"), "countries": gettext_lazy("countries differ"),
    "disposable-email": gettext_lazy("throw-away e-mail"), "time": gettext_lazy("time of day"),
    "field": gettext_lazy("value of a field"),
}  # fmt: skip
_KIND: Final = CompositeInput(
    "kind",
    gettext_lazy("condition"),
    kind="select",
    choices=[(kind, CONDITION_TITLES[kind]) for kind in CONDITION_KINDS],
)
_NAME: Final = CompositeInput("name", gettext_lazy("name"), help=gettext_lazy("What a clerk reads beside a payment."))
SCORE_EFFECT: Final = "score"
_EFFECT: Final = CompositeInput(
    "effect",
    gettext_lazy("then"),
    kind="select",
    choices=[
        (SCORE_EFFECT, gettext_lazy("add points to the score")),
        ("allow", gettext_lazy("allow, whatever else holds")),
        ("review", gettext_lazy("approve, but under review")),
        ("decline", gettext_lazy("decline")),
    ],
)
_POINTS: Final = CompositeInput(
    "score",
    gettext_lazy("points"),
    kind="number",
    unit=gettext_lazy("points"),
    help=gettext_lazy("Below zero in favour of the payment."),
)
_CODE: Final = CompositeInput(
    "code",
    gettext_lazy("result code"),
    help=gettext_lazy("Of a review or decline; empty: the usual one of the condition."),
)


class RiskRulesWidget(CompositeWidget):
    template = "admin/composed/rules.html"

    def shown(self, name: str, value: Any) -> dict[str, Any]:
        rules = [rule for rule in value if isinstance(rule, Mapping)] if isinstance(value, list) else []
        blank: Mapping[str, Any] = {"when": {"kind": "list"}, "then": {"score": 10}}
        return {
            "rules": [self._render_rule(f"{name}.{at}", f"[{at}]", rule) for at, rule in enumerate(rules)],
            "name": name,
            "most_bytes": settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
            "most_rules": MAX_RISK_RULES,
            "blank": self._render_rule(f"{name}.__rule__", "[]", blank),
            "kinds": [
                {"kind": kind, "inputs": [one.put(f"{name}.__rule__.when.__when__", None) for one in inputs]}
                for kind, inputs in CONDITION_INPUTS.items()
            ],
        }

    def _render_rule(self, prefix: str, path: str, rule: Mapping[str, Any]) -> dict[str, Any]:
        then = rule.get("then")
        then = then if isinstance(then, Mapping) else {}
        when = rule.get("when")
        several = when if isinstance(when, list) else [when]
        blank = "__rule__" in prefix
        return {
            "name": _NAME.put(prefix, rule.get("name"), self._list_faults(f"{path}.name")),
            "effect": _EFFECT.put(
                prefix, then.get("verdict") or SCORE_EFFECT, self._list_faults(f"{path}.then.verdict")
            ),
            "points": _POINTS.put(prefix, then.get("score"), self._list_faults(f"{path}.then.score", f"{path}.then")),
            "code": _CODE.put(prefix, then.get("code"), self._list_faults(f"{path}.then.code")),
            "faults": self._list_faults(path),
            "conditions": [
                self._render_condition(
                    f"{prefix}.when.{'__when__' if blank else at}",
                    f"{path}.when[{at}]" if isinstance(when, list) else f"{path}.when",
                    one,
                )
                for at, one in enumerate(several)
                if isinstance(one, Mapping)
            ],
            "open": any(each.startswith(path) for each in self.faults) or blank,
            "words": describe_rule(rule),
        }

    def _render_condition(self, prefix: str, path: str, one: Mapping[str, Any]) -> dict[str, Any]:
        kind = str(one.get("kind"))
        # Errors of a list's single entries are shown at the list.
        inputs = [
            each.put(
                prefix,
                one.get(each.name),
                [
                    f"{where.removeprefix(f'{path}.')}: {words}" if where != f"{path}.{each.name}" else words
                    for where, several in self.faults.items()
                    if where == f"{path}.{each.name}" or where.startswith(f"{path}.{each.name}[")
                    for words in several
                ],
            )
            for each in CONDITION_INPUTS.get(kind, ())
        ]
        return {
            "kind": _KIND.put(prefix, kind, self._list_faults(f"{path}.kind")),
            "inputs": inputs,
            "faults": self._list_faults(path),
        }

    def _list_faults(self, *paths: str) -> list[str]:
        return [words for path in paths for words in self.faults.get(path, ())]

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        """Rules and conditions in the order of the page. The page's script sends all inputs as one field, [name, value]
        pairs as JSON: a large set has more inputs than a form may have fields."""
        if name in data:
            try:
                data = _unpack_inputs(data[name])
            except ValueError:
                return data[name]
        return [_read_rule(data, f"{name}.{at}") for at in _list_places(data, f"{name}.") if at != "__rule__"]


def _unpack_inputs(text: str) -> QueryDict:
    """The inputs that were sent as one field. Raises ValueError."""
    found, pairs = QueryDict(mutable=True), parse_peer_json(text)
    if not isinstance(pairs, list):
        raise ValueError(pairs)
    for pair in pairs:
        match pair:
            case [str(name), str(value)]:
                found.appendlist(name, value)
            case _:
                raise ValueError(pair)
    return found


def _list_places(data: Any, prefix: str) -> list[str]:
    return list(dict.fromkeys(key[len(prefix) :].split(".")[0] for key in data if key.startswith(prefix)))


def _read_rule(data: Any, prefix: str) -> dict[str, Any]:
    rule = read_inputs([_NAME], data, prefix)
    conditions = []
    for at in _list_places(data, f"{prefix}.when."):
        spot = f"{prefix}.when.{at}"
        kind = data.get(f"{spot}.kind", "")
        conditions.append({"kind": kind, **read_inputs(CONDITION_INPUTS.get(kind, ()), data, spot)})
    if conditions:
        rule["when"] = conditions[0] if len(conditions) == 1 else conditions
    effect = data.get(f"{prefix}.effect", SCORE_EFFECT)
    if effect == SCORE_EFFECT:
        rule["then"] = read_inputs([_POINTS], data, prefix)
    else:
        rule["then"] = {"verdict": effect, **read_inputs([_CODE], data, prefix)}
    return rule


# --- the set around its rules ---------------------------------------------------------------------------------------

_POLICY_WORDS: Final = {
    "accept": gettext_lazy("accept"), "review": gettext_lazy("review"), "decline": gettext_lazy("decline, take back"),
}  # fmt: skip
_POLICIES: Final = [
    ("", gettext_lazy("accept")),
    *((one, _POLICY_WORDS[one]) for one in APPROVAL_POLICIES if one != "accept"),
]
_AVS_WORDS: Final = {
    "F": gettext_lazy("F: both agree"), "A": gettext_lazy("A: address agrees"), "Z": gettext_lazy("Z: postcode agrees"),
    "N": gettext_lazy("N: neither agrees"), "U": gettext_lazy("U: not known"),
}  # fmt: skip
_CVV_WORDS: Final = {
    "M": gettext_lazy("M: agrees"), "N": gettext_lazy("N: differs"), "P": gettext_lazy("P: not checked"),
    "S": gettext_lazy("S: should be there"), "U": gettext_lazy("U: issuer cannot check"),
}  # fmt: skip
SCORE_INPUTS: Final = (
    CompositeInput("start", gettext_lazy("score at the start"), kind="number", unit=gettext_lazy("points"),
          help=gettext_lazy("Empty: 0.")),
    CompositeInput("reviewFrom", gettext_lazy("review from"), kind="number", unit=gettext_lazy("points"),
          help=gettext_lazy("Empty: no score leads to a review.")),
    CompositeInput("declineFrom", gettext_lazy("decline from"), kind="number", unit=gettext_lazy("points"),
          help=gettext_lazy("Empty: no score declines.")),
)  # fmt: skip
AVS_INPUTS: Final = tuple(CompositeInput(one, _AVS_WORDS[one], kind="select", choices=_POLICIES) for one in AVS_ANSWERS)
CVV_INPUTS: Final = tuple(
    CompositeInput(one, words, kind="select", choices=_POLICIES) for one, words in _CVV_WORDS.items()
)
