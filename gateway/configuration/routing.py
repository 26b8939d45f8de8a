"""The section routing: which of a channel's accounts takes which payment, rule by rule.

{"routing": {"rules": [{"name": "Cards of the euro", "when": {"currencies": ["EUR"]},
                        "to": [{"connector": "stub", "merchant": "M-1", "weight": 3}]}]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway import document as d
from gateway.brands import BRANDS
from gateway.configuration.section import Section, Target
from gateway.connectors.rules import BIN_DIGITS, LEAST_BIN_DIGITS
from gateway.models import AcquirerAccount, RoutingRule, RoutingTarget
from gateway.money import amount_text

MOST_RULES: Final = 200
MOST_TARGETS: Final = 20
MOST_BINS: Final = 500
MOST_WEIGHT: Final = 1_000
FIRST_TYPES: Final = ("PA", "DB", "CD", "RG")
"""Payment types that are routed: follow-ups go where the money is."""
_DIGITS: Final = f"[0-9]{{{LEAST_BIN_DIGITS},{BIN_DIGITS}}}"
_BIN: Final = d.text(
    LEAST_BIN_DIGITS, 2 * BIN_DIGITS + 1, f"{_DIGITS}(-{_DIGITS})?",
    says=f"{LEAST_BIN_DIGITS} to {BIN_DIGITS} leading digits, or two such with a hyphen: 420000 or 420000-429999",
)  # fmt: skip


def _bins(value: Any, path: str, faults: d.Faults) -> Any:
    """One range; its ends are put in as ``from-to``."""
    before = len(faults)
    _BIN(value, path, faults)
    if len(faults) > before:
        return ""
    low, _, high = value.partition("-")
    if low.ljust(BIN_DIGITS, "0") > (high or low).ljust(BIN_DIGITS, "9"):
        faults.add(path, f"ends before it begins: {d.shown(value)}")
    return f"{low}-{high or low}"


_WHEN: Final = d.record(
    brands=d.may(d.list_of(d.one_of(*BRANDS), most=len(BRANDS), distinct=True), ()),
    bins=d.may(d.list_of(_bins, most=MOST_BINS), ()),
    currencies=d.may(d.list_of(d.currency, most=200, distinct=True), ()),
    amountFrom=d.may(d.amount), amountTo=d.may(d.amount), amountCurrency=d.may(d.currency, ""),
    countries=d.may(d.list_of(d.text(2, 2, "[A-Z]{2}", says="a country of two letters, e.g. DE"), most=250,
                              distinct=True), ()),
    paymentTypes=d.may(d.list_of(d.one_of(*FIRST_TYPES), most=len(FIRST_TYPES), distinct=True), ()),
)  # fmt: skip


def _when(value: Any, path: str, faults: d.Faults) -> Any:
    before = len(faults)
    found = _WHEN(value, path, faults)
    if len(faults) > before:
        return found
    low, high = found["amountFrom"], found["amountTo"]
    if (low is not None or high is not None) and not found["amountCurrency"]:
        faults.add(d.within(path, "amountCurrency"), "is required with an amount: which money it is")
    if low is not None and high is not None and low > high:
        faults.add(d.within(path, "amountTo"), f"must not be less than amountFrom, {low}")
    return found


_TO: Final = d.record(
    connector=d.need(d.text(1, 32)), merchant=d.need(d.text(1, 64)), weight=d.may(d.whole(0, MOST_WEIGHT), 1)
)
_RULE: Final = d.record(
    name=d.need(d.text(1, 64)), when=d.may(_when, {}), to=d.need(d.list_of(_TO, least=1, most=MOST_TARGETS)),
    active=d.may(d.flag, True),
)  # fmt: skip
_RULES: Final = d.record(rules=d.need(d.list_of(_RULE, most=MOST_RULES)))


def _shape(value: Any, path: str, faults: d.Faults) -> Any:
    found = _RULES(value, path, faults)
    names: set[str] = set()
    for place, rule in enumerate(found["rules"] or ()):
        where = f"{path}.rules[{place}]"
        if rule["name"] in names:
            faults.add(d.within(where, "name"), f"is there twice: {d.shown(rule['name'])}")
        names.add(str(rule["name"]))
        seen: set[tuple[str, str]] = set()
        for number, target in enumerate(rule["to"] or ()):
            key = (str(target["connector"]), str(target["merchant"]))
            if key in seen:
                faults.add(f"{where}.to[{number}]", "is the same account as one before")
            seen.add(key)
    return found


def _accounts(target: Target) -> dict[tuple[str, str], AcquirerAccount]:
    rows = AcquirerAccount.objects.filter(channel=target.channel_there).order_by("active", "-id")
    return {(row.connector, row.acquirer_merchant_id): row for row in rows}


def _strangers(value: Mapping[str, Any], there: Mapping[tuple[str, str], AcquirerAccount]) -> d.Faults:
    """Accounts that the channel does not have."""
    faults = d.Faults()
    known = ", ".join(f"{connector} {merchant}" for connector, merchant in there) or "none yet"
    for place, rule in enumerate(value["rules"]):
        for number, to in enumerate(rule["to"]):
            if (to["connector"], to["merchant"]) not in there:
                said, where = d.shown(f"{to['connector']} {to['merchant']}"), f"routing.rules[{place}].to[{number}]"
                faults.add(where, f"{said} is no account of this channel; there are: {known}")
    return faults


_COLUMNS: Final = {
    "brands": "brands", "bins": "bins", "currencies": "currencies", "amountFrom": "amount_from",
    "amountTo": "amount_to", "amountCurrency": "amount_currency", "countries": "countries",
    "paymentTypes": "payment_types",
}  # fmt: skip
"""Condition → column."""


def _apply(target: Target, value: Mapping[str, Any]) -> None:
    """The channel's rules are those of the document, in its order. Raises Unreadable for accounts that it does not
    have: those that the same document brings are there by now."""
    there = _accounts(target)
    if faults := _strangers(value, there):
        raise d.Unreadable(faults)
    RoutingRule.objects.filter(channel=target.channel_there).delete()
    for place, rule in enumerate(value["rules"]):
        when = {
            column: list(found) if isinstance(found, tuple) else found
            for name, column in _COLUMNS.items() if (found := rule["when"].get(name)) is not None
        }  # fmt: skip
        row = RoutingRule.objects.create(
            channel=target.channel_there, position=place, name=rule["name"], active=rule["active"], **when
        )
        RoutingTarget.objects.bulk_create(
            RoutingTarget(
                rule=row, account=there[to["connector"], to["merchant"]], weight=to["weight"], position=number
            )
            for number, to in enumerate(rule["to"])
        )


def conditions_of(row: RoutingRule) -> dict[str, Any]:
    """What a rule asks for, as the document says it; conditions that hold always are left out."""
    found = {name: getattr(row, column) for name, column in _COLUMNS.items()}
    return {
        name: amount_text(value) if name in ("amountFrom", "amountTo") else value
        for name, value in found.items() if value not in (None, "", [])
    }  # fmt: skip


def _show(target: Target) -> dict[str, Any]:
    rows = RoutingRule.objects.filter(channel=target.channel_there).order_by("position", "id")
    return {
        "rules": [
            {"name": row.name, "active": row.active, "when": conditions_of(row),
             "to": [{"connector": one.account.connector, "merchant": one.account.acquirer_merchant_id,
                     "weight": one.weight} for one in row.targets.all()]}
            for row in rows.prefetch_related("targets__account")
        ]
    }  # fmt: skip


ROUTING: Final = Section(
    name="routing", shape=_shape, apply=_apply, show=_show,
    about="Which account takes which payment: the first rule that fits decides. Replaces the channel's rules.",
)  # fmt: skip
