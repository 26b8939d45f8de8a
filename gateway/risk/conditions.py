"""The kinds of conditions in risk rules, as a table: their options, when they hold, and the decline code of each.

A condition that holds returns a sentence, which is stored and shown: it contains limits and counts, never values that
the shopper sent. Source: Part A, Customer; Part B, Risk; decisions, section 3 (families).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import time, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from zoneinfo import ZoneInfo

from gateway.core import document as d
from gateway.core.money import format_amount
from gateway.core.time_zones import list_time_zones
from gateway.risk import fields
from gateway.risk.fields import RiskSubject

MAX_VELOCITY_WINDOW: Final = timedelta(days=30)
LIST_NAME_SHAPE: Final = d.text_shape(
    1, 64, "[A-Za-z0-9._-]{1,64}", says="a list's name: letters, digits, dot, underscore, hyphen"
)
WEEKDAYS: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
VELOCITY_MEASURES: Final = ("payments", "declines", "volume")
_DISPOSABLE: Final = frozenset(
    (Path(__file__).parents[1] / "data" / "disposable-domains.txt").read_text(encoding="utf-8").split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Velocity:
    """What a velocity counts: payments with one value of field ``per`` within a window; volumes in one currency."""

    per: str
    within: timedelta
    currency: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VelocityCounts:
    """The counts of a velocity, including this payment. ``volume``: without declined payments."""

    payments: int = 0
    declines: int = 0
    volume: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskSignals:
    """What the database knows of a subject: the names of the lists it is on, and the counts of its velocities."""

    lists: frozenset[str] = frozenset()
    counts: Mapping[Velocity, VelocityCounts] = field(default_factory=dict)


ConditionOptions = Mapping[str, Any]
ConditionTest = Callable[[ConditionOptions, RiskSubject, RiskSignals], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionKind:
    """One kind of condition. ``members``: the shape of its options; ``check``: adds errors between options. ``code``:
    the decline code of a rule without one. ``example``: valid options. ``looks_at``: the fields it depends on, apart
    from amount and time."""

    name: str
    about: str
    members: Mapping[str, d.ObjectMember]
    holds: ConditionTest
    code: Callable[[ConditionOptions], str]
    example: Mapping[str, Any]
    looks_at: Callable[[ConditionOptions], tuple[str, ...]]
    check: Callable[[ConditionOptions, str, d.DocumentFaults], None] = lambda _options, _path, _faults: None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCondition:
    """One condition of a rule: its kind and parsed options."""

    kind: ConditionKind
    options: ConditionOptions

    def holds(self, subject: RiskSubject, signals: RiskSignals) -> str | None:
        """The sentence that says why the condition holds; None if it does not."""
        return self.kind.holds(self.options, subject, signals)


# --- lists ------------------------------------------------------------------------------------------------------

RISK_REFUSED_CODE: Final = "100.400.319"
_LISTED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "customer.email": "800.300.200",
        "customer.emailDomain": "800.300.200",
        "customer.ip": "800.300.301",
        "card.bin": "800.300.401",
        **dict.fromkeys(fields.COUNTRY_FIELDS, "800.300.102"),
    }
)
"""Field → the decline code of a list of its values; other fields have 800.300.101."""


def _parse_field_name(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    if value in fields.EXCLUDED_FIELDS:
        faults.add(path, f"{value} is left out of risk checks: no rule may look at it")
    elif not isinstance(value, str) or not fields.is_risk_field(value):
        hint = d.suggest_name(value, fields.RISK_FIELDS) if isinstance(value, str) else ""
        allowed = f"{', '.join(fields.RISK_FIELDS)}, risk.parameters[name]"
        faults.add(path, f"must be one of {allowed}, not {d.abbreviate_value(value)}{hint}")
    return value


def _check_list_options(options: ConditionOptions, path: str, faults: d.DocumentFaults) -> None:
    name, values = options["field"], options["values"]
    if (options["list"] is None) == (values is None):
        faults.add(path, "give either list, the name of a list, or values")
    if name == "account" and values is not None:
        faults.add(d.member_path(path, "values"), "cards and accounts are named by a list of risk.lists only")
        return
    for place, value in enumerate(values or ()):
        if isinstance(value, str) and isinstance(name, str) and (fault := fields.find_entry_fault(name, value)):
            faults.add(f"{path}.values[{place}]", f"{fault}, not {d.abbreviate_value(value)}")


def _match_list(options: ConditionOptions, subject: RiskSubject, signals: RiskSignals) -> str | None:
    name = options["field"]
    sent = subject.of(name)
    if not sent:
        return None
    if options["list"] is not None:
        found, where = options["list"] in signals.lists, f"the list {options['list']}"
    else:
        entries = {fields.normalize_entry(name, value) for value in options["values"]}
        found = any(entries.intersection(fields.list_entry_candidates(name, value)) for value in sent)
        where = "the rule's list"
    if found == options["outside"]:
        return None
    return f"{name} is {'not ' if options['outside'] else ''}on {where}"


# --- velocities -------------------------------------------------------------------------------------------------

_TOO_MANY: Final[Mapping[str, str]] = MappingProxyType({"customer.ip": "02", "customer.email": "03"})


def velocity_from_options(options: ConditionOptions) -> Velocity:
    """The velocity that a condition's options describe."""
    return Velocity(per=options["per"], within=options["within"], currency=options["currency"] or "")


def _check_velocity_options(options: ConditionOptions, path: str, faults: d.DocumentFaults) -> None:
    over, volume = options["over"], options["count"] == "volume"
    if volume:
        d.amount_shape(over, d.member_path(path, "over"), faults)
        if options["currency"] is None:
            faults.add(d.member_path(path, "currency"), "is required with a volume")
    else:
        d.integer_shape(0, 1_000_000)(over, d.member_path(path, "over"), faults)
        if options["currency"] is not None:
            faults.add(d.member_path(path, "currency"), "is for count: volume only")


def _match_velocity(options: ConditionOptions, subject: RiskSubject, signals: RiskSignals) -> str | None:
    figures = signals.counts.get(velocity_from_options(options))
    if figures is None:
        return None
    within = _format_duration(options["within"])
    if options["count"] == "volume":
        if subject.money.currency != options["currency"] or figures.volume <= Decimal(options["over"]):
            return None
        total = f"{format_amount(figures.volume)} {options['currency']}"
        return f"{total} by {options['per']} within {within}, over {options['over']}"
    counted = figures.payments if options["count"] == "payments" else figures.declines
    if counted <= options["over"]:
        return None
    return f"{counted} {options['count']} by {options['per']} within {within}, over {options['over']}"


def _resolve_velocity_code(options: ConditionOptions) -> str:
    return f"800.120.{2 if options['count'] == 'volume' else 1}{_TOO_MANY.get(options['per'], '01')}"


# --- amount, countries, e-mail, time, any field -----------------------------------------------------------------


def _check_amount_options(options: ConditionOptions, path: str, faults: d.DocumentFaults) -> None:
    if options["over"] is None and options["under"] is None:
        faults.add(path, "give over, under or both")


def _match_amount(options: ConditionOptions, subject: RiskSubject, _signals: RiskSignals) -> str | None:
    money = subject.money
    if money.currency != options["currency"]:
        return None
    if options["over"] is not None and money.amount > options["over"]:
        return f"the amount is over {format_amount(options['over'])} {money.currency}"
    if options["under"] is not None and money.amount < options["under"]:
        return f"the amount is under {format_amount(options['under'])} {money.currency}"
    return None


def _match_countries(options: ConditionOptions, subject: RiskSubject, _signals: RiskSignals) -> str | None:
    known = {name: subject.of(name)[0] for name in options["differ"] if subject.of(name)}
    return f"{' and '.join(known)} differ" if len(set(known.values())) > 1 else None


def _match_disposable_email(options: ConditionOptions, subject: RiskSubject, _signals: RiskSignals) -> str | None:
    for domain in subject.of("customer.emailDomain"):
        # A subdomain counts too: mail.throwaway.example is throwaway.example.
        parts = domain.split(".")
        domains = {".".join(parts[at:]) for at in range(len(parts))}
        if not domains.isdisjoint(_DISPOSABLE) or not domains.isdisjoint(options["also"]):
            return "customer.email is a disposable address"
    return None


def _parse_time_of_day(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    try:
        return time.fromisoformat(value if isinstance(value, str) and len(value) == 5 else "")
    except ValueError:
        faults.add(path, f"must be a time of day HH:MM, not {d.abbreviate_value(value)}")
        return time(0)


def _parse_time_zone(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    if not isinstance(value, str) or value not in list_time_zones():
        faults.add(path, f"must be a time zone such as Europe/Berlin, not {d.abbreviate_value(value)}")
    return value


def _match_time(options: ConditionOptions, subject: RiskSubject, _signals: RiskSignals) -> str | None:
    local = subject.at.astimezone(ZoneInfo(options["zone"]))
    start, end, now = options["from"], options["to"], local.time()
    inside = start <= now < end if start < end else now >= start or now < end
    if not inside or (options["days"] and WEEKDAYS[local.weekday()] not in options["days"]):
        return None
    return f"it is between {start:%H:%M} and {end:%H:%M} in {options['zone']}"


_FIELD_TESTS: Final = ("is", "not", "missing", "over", "under")


def _parse_number(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    try:
        number = Decimal(str(value)) if isinstance(value, int | str) and not isinstance(value, bool) else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite():
        faults.add(path, f'must be a number, e.g. 10 or "10.50", not {d.abbreviate_value(value)}')
        return Decimal(0)
    return number


def _check_field_options(options: ConditionOptions, path: str, faults: d.DocumentFaults) -> None:
    given = [name for name in _FIELD_TESTS if options[name] is not None]
    if len(given) != 1:
        faults.add(path, f"give exactly one of {', '.join(_FIELD_TESTS)}")


def _match_field(options: ConditionOptions, subject: RiskSubject, _signals: RiskSignals) -> str | None:
    name = options["field"]
    sent = subject.of(name)
    if options["missing"] is not None:
        return f"{name} is missing" if options["missing"] and not sent else None
    if not sent:
        return None
    if options["is"] is not None:
        wanted = {fields.normalize_value(name, value) for value in options["is"]}
        return f"{name} is one of the rule's values" if wanted.intersection(sent) else None
    if options["not"] is not None:
        wanted = {fields.normalize_value(name, value) for value in options["not"]}
        return f"{name} is none of the rule's values" if wanted.isdisjoint(sent) else None
    numbers = [number for value in sent if (number := _read_number(value)) is not None]
    if options["over"] is not None:
        return f"{name} is over {options['over']}" if any(n > options["over"] for n in numbers) else None
    return f"{name} is under {options['under']}" if any(n < options["under"] for n in numbers) else None


def _read_number(value: str) -> Decimal | None:
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


_VALUES: Final = d.list_shape(d.text_shape(0, fields.MAX_VALUE_CHARS), least=1, most=1000)

CONDITION_KINDS: Final[Mapping[str, ConditionKind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            ConditionKind(
                name="list",
                about="a value of the field is on a list (outside: on none), by name or written here",
                members={
                    "field": d.required_member(_parse_field_name),
                    "list": d.optional_member(LIST_NAME_SHAPE),
                    "values": d.optional_member(_VALUES),
                    "outside": d.optional_member(d.boolean_shape, False),
                },
                holds=_match_list,
                check=_check_list_options,
                code=lambda options: _LISTED.get(options["field"], "800.300.101"),
                example={"field": "customer.email", "list": "bad-emails"},
                looks_at=lambda options: (options["field"],),
            ),
            ConditionKind(
                name="velocity",
                about="more payments, declines or volume with the same value within a window than over allows",
                members={
                    "per": d.required_member(d.choice_shape(*fields.VELOCITY_FIELDS)),
                    "count": d.required_member(d.choice_shape(*VELOCITY_MEASURES)),
                    "over": d.required_member(lambda value, _path, _faults: value),
                    "within": d.required_member(d.duration_shape(MAX_VELOCITY_WINDOW)),
                    "currency": d.optional_member(d.currency_shape),
                },
                holds=_match_velocity,
                check=_check_velocity_options,
                code=_resolve_velocity_code,
                example={"per": "customer.ip", "count": "payments", "over": 5, "within": "10m"},
                looks_at=lambda options: (options["per"],),
            ),
            ConditionKind(
                name="amount",
                about="the amount (risk.amount goes first) is over or under a limit of its currency",
                members={
                    "currency": d.required_member(d.currency_shape),
                    "over": d.optional_member(d.amount_shape),
                    "under": d.optional_member(d.amount_shape),
                },
                holds=_match_amount,
                check=_check_amount_options,
                code=lambda _options: "800.120.200",
                example={"currency": "EUR", "over": "500.00"},
                looks_at=lambda _options: (),
            ),
            ConditionKind(
                name="countries",
                about="two of the countries that are known differ",
                members={
                    "differ": d.required_member(
                        d.list_shape(d.choice_shape(*fields.COUNTRY_FIELDS), least=2, most=4, distinct=True)
                    )
                },
                holds=_match_countries,
                code=lambda _options: "100.400.021",
                example={"differ": ["billing.country", "card.issuerCountry"]},
                looks_at=lambda options: tuple(options["differ"]),
            ),
            ConditionKind(
                name="disposable-email",
                about="the e-mail's domain, or one it is under, is known for throw-away addresses, or named in also",
                members={"also": d.optional_member(d.list_shape(d.text_shape(3, 253), most=1000), ())},
                holds=_match_disposable_email,
                code=lambda _options: "800.300.200",
                example={"also": ["throwaway.example"]},
                looks_at=lambda _options: ("customer.emailDomain",),
            ),
            ConditionKind(
                name="time",
                about="the time of day (risk.orderTimestamp goes first) is between two times, past midnight too",
                members={
                    "from": d.required_member(_parse_time_of_day),
                    "to": d.required_member(_parse_time_of_day),
                    "zone": d.optional_member(_parse_time_zone, "UTC"),
                    "days": d.optional_member(d.list_shape(d.choice_shape(*WEEKDAYS), most=7, distinct=True), ()),
                },
                holds=_match_time,
                code=lambda _options: RISK_REFUSED_CODE,
                example={"from": "23:00", "to": "05:00", "zone": "Europe/Berlin"},
                looks_at=lambda _options: (),
            ),
            ConditionKind(
                name="field",
                about="a field or a risk.parameters[name] is one of some values, none of them, missing, or a number "
                "over or under a limit",
                members={
                    "field": d.required_member(_parse_field_name),
                    "is": d.optional_member(_VALUES),
                    "not": d.optional_member(_VALUES),
                    "missing": d.optional_member(d.boolean_shape),
                    "over": d.optional_member(_parse_number),
                    "under": d.optional_member(_parse_number),
                },
                holds=_match_field,
                check=_check_field_options,
                code=lambda _options: RISK_REFUSED_CODE,
                example={"field": "risk.parameters[loyalty]", "is": ["gold"]},
                looks_at=lambda options: (options["field"],),
            ),
        )
    }
)


def parse_condition(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """Parse one condition, ``kind`` and that kind's options; errors are added to ``faults``."""
    if not isinstance(value, Mapping):
        faults.add(path, f"must be an object with kind, one of {', '.join(CONDITION_KINDS)}")
        return None
    kind = CONDITION_KINDS.get(str(value.get("kind")))
    if kind is None:
        d.choice_shape(*CONDITION_KINDS)(value.get("kind"), d.member_path(path, "kind"), faults)
        return None
    d.refuse_unknown_members(value, ["kind", *kind.members], path, faults)
    before = len(faults)
    options = d.read_members(value, kind.members, path, faults)
    if len(faults) == before:
        kind.check(options, path, faults)
    return RuleCondition(kind=kind, options=MappingProxyType(options))


def _format_duration(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
