"""Section ``routing``: which of a channel's accounts takes which payment, rule by rule.

{"routing": {"rules": [{"name": "Cards of the euro", "when": {"currencies": ["EUR"]},
                        "to": [{"connector": "stub", "merchant": "M-1", "weight": 3}]}]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from gateway.configuration.section import ConfigurationSection, ConfigurationTarget
from gateway.connectors.routing_rules import MIN_BIN_DIGITS, ROUTING_BIN_DIGITS
from gateway.core import document as d
from gateway.core.bin_table import CARD_TYPES, MAX_BIN_TEXT_CHARS
from gateway.core.brands import PAYMENT_BRANDS
from gateway.core.money import format_amount
from gateway.models import AcquirerAccount, RoutingRule, RoutingTarget
from gateway.models.routing import MAX_EXPLORED_PERCENT, MAX_RATE_LOSS, MAX_RULE_CASCADES, MIN_RATE_LOSS

MAX_ROUTING_RULES: Final = 200
MAX_ROUTING_TARGETS: Final = 20
MAX_ROUTING_BINS: Final = 500
MAX_ROUTING_LEVELS: Final = 50
MAX_TARGET_WEIGHT: Final = 1_000
CHOICES: Final = ("cheapest", "rate")
FIRST_PAYMENT_TYPES: Final = ("PA", "DB", "CD", "RG")
"""Payment types that are routed; follow-ups go to the acquirer of the first payment."""
_DIGITS: Final = f"[0-9]{{{MIN_BIN_DIGITS},{ROUTING_BIN_DIGITS}}}"
_BIN: Final = d.text_shape(
    MIN_BIN_DIGITS,
    2 * ROUTING_BIN_DIGITS + 1,
    f"{_DIGITS}(-{_DIGITS})?",
    says=f"{MIN_BIN_DIGITS} to {ROUTING_BIN_DIGITS} leading digits, or two such with a hyphen: 420000 or 420000-429999",
)


def _bin_range(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """One BIN range, written as ``from-to``."""
    before = len(faults)
    _BIN(value, path, faults)
    if len(faults) > before:
        return ""
    low, _, high = value.partition("-")
    if low.ljust(ROUTING_BIN_DIGITS, "0") > (high or low).ljust(ROUTING_BIN_DIGITS, "9"):
        faults.add(path, f"ends before it begins: {d.abbreviate_value(value)}")
    return f"{low}-{high or low}"


_COUNTRIES: Final = d.list_shape(
    d.text_shape(2, 2, "[A-Z]{2}", says="a country of two letters, e.g. DE"), most=250, distinct=True
)
_WHEN: Final = d.object_shape(
    brands=d.optional_member(
        d.list_shape(d.choice_shape(*PAYMENT_BRANDS), most=len(PAYMENT_BRANDS), distinct=True), ()
    ),
    bins=d.optional_member(d.list_shape(_bin_range, most=MAX_ROUTING_BINS), ()),
    currencies=d.optional_member(d.list_shape(d.currency_shape, most=200, distinct=True), ()),
    amountFrom=d.optional_member(d.amount_shape),
    amountTo=d.optional_member(d.amount_shape),
    amountCurrency=d.optional_member(d.currency_shape, ""),
    countries=d.optional_member(_COUNTRIES, ()),
    paymentTypes=d.optional_member(
        d.list_shape(d.choice_shape(*FIRST_PAYMENT_TYPES), most=len(FIRST_PAYMENT_TYPES), distinct=True), ()
    ),
    issuerCountries=d.optional_member(_COUNTRIES, ()),
    cardTypes=d.optional_member(d.list_shape(d.choice_shape(*CARD_TYPES), most=len(CARD_TYPES), distinct=True), ()),
    cardLevels=d.optional_member(
        d.list_shape(d.text_shape(1, MAX_BIN_TEXT_CHARS), most=MAX_ROUTING_LEVELS, distinct=True), ()
    ),
)


def _conditions(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    before = len(faults)
    conditions = _WHEN(value, path, faults)
    if len(faults) > before:
        return conditions
    low, high = conditions["amountFrom"], conditions["amountTo"]
    if (low is not None or high is not None) and not conditions["amountCurrency"]:
        faults.add(d.member_path(path, "amountCurrency"), "is required with an amount: which money it is")
    if low is not None and high is not None and low > high:
        faults.add(d.member_path(path, "amountTo"), f"must not be less than amountFrom, {low}")
    return conditions


def _rate_loss(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """Points of an approval rate."""
    before = len(faults)
    points = d.amount_shape(value, path, faults)
    if len(faults) == before and not 0 <= points <= MAX_RATE_LOSS:
        faults.add(path, f"must be 0.00 to {MAX_RATE_LOSS}.00 points, not {d.abbreviate_value(value)}")
    return points


_TO: Final = d.object_shape(
    connector=d.required_member(d.text_shape(1, 32)),
    merchant=d.required_member(d.text_shape(1, 64)),
    weight=d.optional_member(d.integer_shape(0, MAX_TARGET_WEIGHT), 1),
)
_RULE: Final = d.object_shape(
    name=d.required_member(d.text_shape(1, 64)),
    when=d.optional_member(_conditions, {}),
    to=d.required_member(d.list_shape(_TO, least=1, most=MAX_ROUTING_TARGETS)),
    active=d.optional_member(d.boolean_shape, True),
    maxCascades=d.optional_member(d.integer_shape(0, MAX_RULE_CASCADES), 0),
    chooseBy=d.optional_member(d.choice_shape("weight", *CHOICES), "weight"),
    maxRateLoss=d.optional_member(_rate_loss, Decimal(0)),
    exploredPercent=d.optional_member(d.integer_shape(0, MAX_EXPLORED_PERCENT), 0),
)
_RULES: Final = d.object_shape(rules=d.required_member(d.list_shape(_RULE, most=MAX_ROUTING_RULES)))


def _shape(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    rules = _RULES(value, path, faults)
    names: set[str] = set()
    for place, rule in enumerate(rules["rules"] or ()):
        where = f"{path}.rules[{place}]"
        if rule["name"] in names:
            faults.add(d.member_path(where, "name"), f"is there twice: {d.abbreviate_value(rule['name'])}")
        names.add(str(rule["name"]))
        if rule["chooseBy"] == "cheapest" and rule["maxRateLoss"] == 0:
            faults.add(
                d.member_path(where, "maxRateLoss"),
                f"must be {MIN_RATE_LOSS} to {MAX_RATE_LOSS}.00 points where chooseBy is cheapest: with 0.00 the best "
                "rate would always be chosen, as by rate",
            )
        seen: set[tuple[str, str]] = set()
        for number, target in enumerate(rule["to"] or ()):
            key = (str(target["connector"]), str(target["merchant"]))
            if key in seen:
                faults.add(f"{where}.to[{number}]", "is the same account as one before")
            seen.add(key)
    return rules


def _accounts(target: ConfigurationTarget) -> dict[tuple[str, str], AcquirerAccount]:
    rows = AcquirerAccount.objects.filter(channel=target.channel_there).order_by("active", "-id")
    return {(row.connector, row.acquirer_merchant_id): row for row in rows}


def _unknown_accounts(value: Mapping[str, Any], there: Mapping[tuple[str, str], AcquirerAccount]) -> d.DocumentFaults:
    """A fault for every account that the channel does not have."""
    faults = d.DocumentFaults()
    known = ", ".join(f"{connector} {merchant}" for connector, merchant in there) or "none yet"
    for place, rule in enumerate(value["rules"]):
        for number, to in enumerate(rule["to"]):
            if (to["connector"], to["merchant"]) not in there:
                said, where = (
                    d.abbreviate_value(f"{to['connector']} {to['merchant']}"),
                    f"routing.rules[{place}].to[{number}]",
                )
                faults.add(where, f"{said} is no account of this channel; there are: {known}")
    return faults


_COLUMNS: Final = {
    "brands": "brands", "bins": "bins", "currencies": "currencies", "amountFrom": "amount_from",
    "amountTo": "amount_to", "amountCurrency": "amount_currency", "countries": "countries",
    "paymentTypes": "payment_types", "issuerCountries": "issuer_countries", "cardTypes": "card_types",
    "cardLevels": "card_levels",
}  # fmt: skip
"""Condition → column."""


def _apply(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    """Replace the channel's rules by those of the document, in its order. Raises InvalidDocumentError for accounts that
    it does not have; accounts of the same document have been applied before."""
    there = _accounts(target)
    if faults := _unknown_accounts(value, there):
        raise d.InvalidDocumentError(faults)
    RoutingRule.objects.filter(channel=target.channel_there).delete()
    for place, rule in enumerate(value["rules"]):
        when = {
            column: list(condition) if isinstance(condition, tuple) else condition
            for name, column in _COLUMNS.items()
            if (condition := rule["when"].get(name)) is not None
        }
        row = RoutingRule.objects.create(
            channel=target.channel_there,
            position=place,
            name=rule["name"],
            active=rule["active"],
            max_cascades=rule["maxCascades"],
            choose_by="" if rule["chooseBy"] == "weight" else rule["chooseBy"],
            max_rate_loss=rule["maxRateLoss"],
            explored_percent=rule["exploredPercent"],
            **when,
        )
        RoutingTarget.objects.bulk_create(
            RoutingTarget(
                rule=row, account=there[to["connector"], to["merchant"]], weight=to["weight"], position=number
            )
            for number, to in enumerate(rule["to"])
        )


def render_routing_conditions(row: RoutingRule) -> dict[str, Any]:
    """A rule's conditions, as in the document; empty conditions are left out."""
    conditions = {name: getattr(row, column) for name, column in _COLUMNS.items()}
    return {
        name: format_amount(value) if name in ("amountFrom", "amountTo") else value
        for name, value in conditions.items()
        if value not in (None, "", [])
    }


def _show(target: ConfigurationTarget) -> dict[str, Any]:
    rows = RoutingRule.objects.filter(channel=target.channel_there).order_by("position", "id")
    return {
        "rules": [
            {
                "name": row.name,
                "active": row.active,
                "maxCascades": row.max_cascades,
                "chooseBy": row.choose_by or "weight",
                "maxRateLoss": format_amount(row.max_rate_loss),
                "exploredPercent": row.explored_percent,
                "when": render_routing_conditions(row),
                "to": [
                    {
                        "connector": one.account.connector,
                        "merchant": one.account.acquirer_merchant_id,
                        "weight": one.weight,
                    }
                    for one in row.targets.all()
                ],
            }
            for row in rows.prefetch_related("targets__account")
        ]
    }


ROUTING_SECTION: Final = ConfigurationSection(
    name="routing",
    shape=_shape,
    apply=_apply,
    show=_show,
    about="Which account takes which payment: the first rule that fits decides. Replaces the channel's rules.",
)
