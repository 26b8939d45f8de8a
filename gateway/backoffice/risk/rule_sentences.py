"""Risk rules as sentences in the reader's language: If the amount is over 500.00 EUR, then 60 points are added.

Names of fields and lists, and values, stay as they are written in the rule set. Conditions: gateway.risk.conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext

from gateway.backoffice.kit.formatting import format_money

_MEASURES: Final[Mapping[str, Any]] = MappingProxyType(
    {"payments": lazy("payments"), "declines": lazy("declines"), "volume": lazy("volume")}
)


def describe_rule(rule: Mapping[str, Any]) -> str:
    """A rule as one sentence."""
    when, then = rule.get("when"), rule.get("then")
    conditions = [one for one in (when if isinstance(when, list) else [when]) if isinstance(one, Mapping)]
    words = f" {_('and')} ".join(describe_condition(one) for one in conditions) or "…"
    return _("If %(conditions)s, then %(effect)s.") % {
        "conditions": words,
        "effect": describe_effect(then if isinstance(then, Mapping) else {}),
    }


def describe_condition(condition: Mapping[str, Any]) -> str:
    """One condition as part of a sentence; of a kind that is not known, its members."""
    describe = _CONDITIONS.get(str(condition.get("kind")))
    if describe is None:
        return ", ".join(f"{name} {value}" for name, value in condition.items())
    return describe(condition)


def describe_effect(then: Mapping[str, Any]) -> str:
    """What a rule does, as the end of a sentence."""
    code = f" ({then['code']})" if then.get("code") else ""
    match then.get("verdict"):
        case "allow":
            return _("it is allowed, whatever else holds")
        case "review":
            return f"{_('it is approved, but under review')}{code}"
        case "decline":
            return f"{_('it is declined')}{code}"
    points = then.get("score", 0)
    try:
        number = int(points)
    except (TypeError, ValueError):
        return _("%s points are added") % str(points)
    if number < 0:
        return ngettext("%d point is taken off", "%d points are taken off", -number) % -number
    return ngettext("%d point is added", "%d points are added", number) % number


def _format_limit(value: Any) -> str:
    """An amount as the reader writes it; what is none as it was typed."""
    try:
        return format_money(Decimal(str(value)))
    except InvalidOperation:
        return str(value)


def _join(values: Any) -> str:
    several = values if isinstance(values, (list, tuple)) else [values]
    return ", ".join(str(one) for one in several)


def _describe_list(one: Mapping[str, Any]) -> str:
    where = _("the list %s") % one["list"] if one.get("list") else _("one of: %s") % _join(one.get("values") or ["…"])
    outside = one.get("outside") is True
    words = _("%(field)s is not on %(where)s") if outside else _("%(field)s is on %(where)s")
    if not one.get("list"):
        words = _("%(field)s is not %(where)s") if outside else _("%(field)s is %(where)s")
    return words % {"field": one.get("field", "…"), "where": where}


def _describe_velocity(one: Mapping[str, Any]) -> str:
    measure = str(one.get("count", "…"))
    limit = one.get("over", "…")
    over = f"{_format_limit(limit)} {one['currency']}" if one.get("currency") else str(limit)
    return _("there were more than %(over)s %(measure)s with the same %(field)s within %(window)s") % {
        "over": over,
        "measure": _MEASURES.get(measure, measure),
        "field": one.get("per", "…"),
        "window": one.get("within", "…"),
    }


def _describe_amount(one: Mapping[str, Any]) -> str:
    currency, over, under = one.get("currency", "…"), one.get("over"), one.get("under")
    if over is not None and under is not None:
        words = _("the amount is over %(over)s and under %(under)s %(currency)s")
    elif over is not None:
        words = _("the amount is over %(over)s %(currency)s")
    else:
        words = _("the amount is under %(under)s %(currency)s")
    limits = {"over": _format_limit(over), "under": _format_limit(under) if under is not None else "…"}
    return words % {**limits, "currency": currency}


def _describe_countries(one: Mapping[str, Any]) -> str:
    return _("two of these countries differ: %s") % _join(one.get("differ") or ["…"])


def _describe_disposable(one: Mapping[str, Any]) -> str:
    also = one.get("also")
    words = _("the e-mail is of a throw-away service")
    return f"{words} ({_('and of')} {_join(also)})" if also else words


def _describe_time(one: Mapping[str, Any]) -> str:
    words: str = _("it is between %(from)s and %(to)s (%(zone)s)") % {
        "from": one.get("from", "…"),
        "to": one.get("to", "…"),
        "zone": one.get("zone") or "UTC",
    }
    return f"{words} {_('on')} {_join(one['days'])}" if one.get("days") else words


def _describe_field(one: Mapping[str, Any]) -> str:
    field = one.get("field", "…")
    if one.get("missing") is True:
        return _("%s was not sent") % str(field)
    tests: tuple[tuple[str, Any], ...] = (
        ("is", lazy("%(field)s is %(value)s")),
        ("not", lazy("%(field)s is not %(value)s")),
        ("over", lazy("%(field)s is over %(value)s")),
        ("under", lazy("%(field)s is under %(value)s")),
    )
    for name, words in tests:
        if (value := one.get(name)) not in (None, [], ""):
            several = isinstance(value, (list, tuple)) and len(value) > 1
            return str(words) % {"field": field, "value": _("one of: %s") % _join(value) if several else _join(value)}
    return f"{field} …"


_CONDITIONS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = MappingProxyType(
    {
        "list": _describe_list,
        "velocity": _describe_velocity,
        "amount": _describe_amount,
        "countries": _describe_countries,
        "disposable-email": _describe_disposable,
        "time": _describe_time,
        "field": _describe_field,
    }
)
"""Kind of condition → its words; a test compares the kinds with those of gateway.risk.conditions."""
