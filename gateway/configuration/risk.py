"""Sections ``risk`` and ``cardTesting``: rule sets, lists, the set that screens a channel, the guard's limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.configuration.section import ConfigurationSection, ConfigurationTarget
from gateway.core import document as d
from gateway.core import identifiers
from gateway.models import Payment, RiskList, RiskListEntry, RiskSet
from gateway.risk import card_testing, fields
from gateway.risk.conditions import LIST_NAME_SHAPE
from gateway.risk.rule_sets import parse_rule_set
from gateway.vault.sealing import current_vault

MAX_RISK_LIST_ENTRIES: Final = 10_000
MAX_RISK_SETS: Final = 50
MAX_RISK_LISTS: Final = 100


def _rule_set(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """A rule set, stored as it was written; it is parsed only for validation."""
    parse_rule_set(value, path, faults)
    return value


def _field(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    if value in fields.EXCLUDED_FIELDS:
        faults.add(path, f"{value} is left out of risk checks: no list may hold it")
    elif not isinstance(value, str) or not fields.is_risk_field(value):
        hint = d.suggest_name(value, fields.RISK_FIELDS) if isinstance(value, str) else ""
        faults.add(
            path,
            f"must be one of {', '.join(fields.RISK_FIELDS)}, risk.parameters[name], "
            f"not {d.abbreviate_value(value)}{hint}",
        )
    return value


_LIST: Final = d.object_shape(
    name=d.required_member(LIST_NAME_SHAPE),
    field=d.required_member(_field),
    entries=d.required_member(d.list_shape(d.text_shape(1, fields.MAX_VALUE_CHARS), most=MAX_RISK_LIST_ENTRIES)),
)


def _list(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    before = len(faults)
    section = _LIST(value, path, faults)
    if len(faults) > before:
        return section
    for place, entry in enumerate(section["entries"]):
        if fault := fields.find_entry_fault(section["field"], entry):
            faults.add(f"{path}.entries[{place}]", f"{fault}, not {d.abbreviate_value(entry)}")
    return section


_RISK: Final = d.object_shape(
    set=d.optional_member(d.text_shape(0, 255)),
    sets=d.optional_member(d.list_shape(_rule_set, most=MAX_RISK_SETS), ()),
    lists=d.optional_member(d.list_shape(_list, most=MAX_RISK_LISTS), ()),
)


def _names(rows: Any, name: str) -> list[str]:
    return [str(row[name]) for row in rows if isinstance(row, Mapping) and row.get(name)]


def _risk(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    section = _RISK(value, path, faults)
    for name, key in (("sets", "key"), ("lists", "name")):
        seen: set[str] = set()
        for place, one in enumerate(_names(section[name] or (), key)):
            if one in seen:
                faults.add(f"{d.member_path(path, name)}[{place}].{key}", f"is there twice: {d.abbreviate_value(one)}")
            seen.add(one)
    return section


def _check(target: ConfigurationTarget, value: Mapping[str, Any], path: str, faults: d.DocumentFaults) -> None:
    """Check against the database: the named set, lists and payments exist."""
    kept = {row.name: row.field for row in RiskList.objects.filter(merchant=target.merchant)}
    lists = kept | {one["name"]: one["field"] for one in value["lists"]}
    for at, one in enumerate(value["sets"]):
        for place, rule in enumerate(one.get("rules", ())):
            where, when = f"{path}.sets[{at}].rules[{place}].when", rule["when"]
            conditions = [(f"{where}[{n}]", one) for n, one in enumerate(when)] if isinstance(when, list) else []
            for spot, one_when in conditions or [(where, when)]:
                if one_when["kind"] == "list" and one_when.get("list") is not None:
                    _check_list(one_when, lists, d.member_path(spot, "list"), faults)
    _check_accounts(target, value, path, faults)
    _check_named_set(target, value, path, faults)


def _check_accounts(target: ConfigurationTarget, value: Mapping[str, Any], path: str, faults: d.DocumentFaults) -> None:
    """Each entry of a list of accounts names a payment, whose card or account is meant."""
    for place, named in enumerate(value["lists"]):
        if named["field"] == "account":
            for entry_at, entry in enumerate(named["entries"]):
                if _find_payment(target, entry) is None:
                    words = f"{entry} names no payment of this merchant with a card or an account"
                    faults.add(f"{path}.lists[{place}].entries[{entry_at}]", words)


def _check_named_set(
    target: ConfigurationTarget, value: Mapping[str, Any], path: str, faults: d.DocumentFaults
) -> None:
    """The set that a channel takes is active, before or by this document."""
    if value["set"] and target.channel is None:
        faults.add(d.member_path(path, "set"), "belongs to a channel: name the channel's entityId")
    elif value["set"]:
        active = set(RiskSet.objects.filter(merchant=target.merchant, active=True).values_list("key", flat=True))
        for one in value["sets"]:
            (active.add if one.get("active", True) else active.discard)(one["key"])
        if value["set"] not in active:
            there = f"there are {', '.join(sorted(active))}" if active else "there is none"
            hint = d.suggest_name(value["set"], active)
            faults.add(
                d.member_path(path, "set"), f"{d.abbreviate_value(value['set'])} is no active rule set{hint}; {there}"
            )


def _check_list(when: Mapping[str, Any], lists: Mapping[str, str], path: str, faults: d.DocumentFaults) -> None:
    name, field = when["list"], when["field"]
    if name not in lists:
        there = f"lists are {', '.join(sorted(lists))}" if lists else "there are no lists"
        faults.add(path, f"{d.abbreviate_value(name)} is no list{d.suggest_name(name, lists)}; {there}")
    elif lists[name] != field:
        faults.add(path, f"{d.abbreviate_value(name)} is a list of {lists[name]}, and the rule looks at {field}")


def _find_payment(target: ConfigurationTarget, entry: str) -> Payment | None:
    ident = identifiers.parse_id(entry)
    if ident is None:
        return None
    return Payment.objects.filter(pk=ident, merchant=target.merchant, means_sealed__isnull=False).first()


def _apply(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    for named in value["lists"]:
        _apply_list(target, named)
    for document in value["sets"]:
        active = document.get("active", True)
        row = RiskSet.objects.select_for_update().filter(merchant=target.merchant, key=document["key"]).first()
        if row is None:
            RiskSet.objects.create(merchant=target.merchant, key=document["key"], document=document, active=active)
        elif (row.document, row.active) != (document, active):
            row.document, row.active, row.version = document, active, row.version + 1
            row.save()
    if value["set"] is not None and target.channel is not None:
        target.channel.risk_set = value["set"]
        target.channel.save(update_fields=["risk_set"])


def _apply_list(target: ConfigurationTarget, named: Mapping[str, Any]) -> None:
    """Make a list exactly what the document says."""
    row, _ = RiskList.objects.select_for_update().get_or_create(
        merchant=target.merchant, name=named["name"], defaults={"field": named["field"]}
    )
    if row.field != named["field"]:
        row.field = named["field"]
        row.save(update_fields=["field"])
        row.entries.all().delete()
    wanted = dict.fromkeys(fields.normalize_entry(row.field, entry) for entry in named["entries"])
    kept = set(row.entries.values_list("value", flat=True))
    row.entries.exclude(value__in=wanted).delete()
    new = [RiskListEntry(list=row, value=value) for value in wanted if value not in kept]
    if row.field == "account":
        for entry in new:
            _seal_account(target, entry)
    RiskListEntry.objects.bulk_create(new, batch_size=1000)


def _seal_account(target: ConfigurationTarget, entry: RiskListEntry) -> None:
    """Copy the account of the payment that the entry names, sealed for the entry."""
    payment = _find_payment(target, entry.value)
    assert payment is not None
    assert payment.means_sealed is not None
    keys = current_vault()
    account = keys.open(payment.means_sealed, payment.id)
    entry.account_sealed = keys.seal(account, entry.id)
    entry.fingerprint = keys.fingerprint(account)


def _show(target: ConfigurationTarget) -> dict[str, Any]:
    shown: dict[str, Any] = {} if target.channel is None else {"set": target.channel.risk_set}
    sets = RiskSet.objects.filter(merchant=target.merchant)
    lists = RiskList.objects.filter(merchant=target.merchant).prefetch_related("entries")
    return shown | {
        "sets": [row.document for row in sets],
        "lists": [
            {"name": row.name, "field": row.field, "entries": [entry.value for entry in row.entries.all()]}
            for row in lists
        ],
    }


def _show_for_audit(target: ConfigurationTarget) -> dict[str, Any]:
    shown = _show(target)
    return shown | {"lists": [one | {"entries": len(one["entries"])} for one in shown["lists"]]}


def _apply_guard(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    target.channel_there.card_testing = {name: found for name, found in value.items() if found is not None}
    target.channel_there.save(update_fields=["card_testing"])


RISK_SECTION: Final = ConfigurationSection(
    name="risk",
    shape=_risk,
    check=_check,
    apply=_apply,
    show=_show,
    brief=_show_for_audit,
    of_channel=False,
    about="Rule sets and lists of the merchant, and set: the key of the set that screens this channel. Sets and lists "
    "that are not named stay; a list that is named becomes exactly what is written.",
)
CARD_TESTING_SECTION: Final = ConfigurationSection(
    name="cardTesting",
    shape=card_testing.CARD_TESTING_SHAPE,
    apply=_apply_guard,
    show=lambda target: target.channel_there.card_testing,
    about="Where this channel's guard against card testing differs from the settings.",
)
