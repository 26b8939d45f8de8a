"""The sections risk and cardTesting: rule sets, lists, which set screens a channel, the guard's limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway import document as d
from gateway import identifiers
from gateway.configuration.section import Section, Target
from gateway.models import Payment, RiskList, RiskListEntry, RiskSet
from gateway.risk import fields, guard
from gateway.risk.rules import LIST_NAME
from gateway.risk.sets import rule_set
from gateway.vault import vault

MAX_ENTRIES: Final = 10_000
MAX_SETS: Final = 50
MAX_LISTS: Final = 100


def _kept_set(value: Any, path: str, faults: d.Faults) -> Any:
    """A rule set, kept as it was written; it is read only to be validated."""
    rule_set(value, path, faults)
    return value


def _field(value: Any, path: str, faults: d.Faults) -> Any:
    if value in fields.LEFT_OUT:
        faults.add(path, f"{value} is left out of risk checks: no list may hold it")
    elif not isinstance(value, str) or not fields.is_field(value):
        hint = d.meant(value, fields.FIELDS) if isinstance(value, str) else ""
        faults.add(
            path, f"must be one of {', '.join(fields.FIELDS)}, risk.parameters[name], not {d.shown(value)}{hint}"
        )
    return value


_LIST: Final = d.record(
    name=d.need(LIST_NAME), field=d.need(_field),
    entries=d.need(d.list_of(d.text(1, fields.MAX_VALUE_CHARS), most=MAX_ENTRIES)),
)  # fmt: skip


def _list(value: Any, path: str, faults: d.Faults) -> Any:
    before = len(faults)
    found = _LIST(value, path, faults)
    if len(faults) > before:
        return found
    for place, entry in enumerate(found["entries"]):
        if fault := fields.entry_fault(found["field"], entry):
            faults.add(f"{path}.entries[{place}]", f"{fault}, not {d.shown(entry)}")
    return found


_RISK: Final = d.record(
    set=d.may(d.text(0, 255)), sets=d.may(d.list_of(_kept_set, most=MAX_SETS), ()),
    lists=d.may(d.list_of(_list, most=MAX_LISTS), ()),
)  # fmt: skip


def _named(rows: Any, name: str) -> list[str]:
    return [str(row[name]) for row in rows if isinstance(row, Mapping) and row.get(name)]


def _risk(value: Any, path: str, faults: d.Faults) -> Any:
    found = _RISK(value, path, faults)
    for name, key in (("sets", "key"), ("lists", "name")):
        seen: set[str] = set()
        for place, one in enumerate(_named(found[name] or (), key)):
            if one in seen:
                faults.add(f"{d.within(path, name)}[{place}].{key}", f"is there twice: {d.shown(one)}")
            seen.add(one)
    return found


def _check(target: Target, value: Mapping[str, Any], path: str, faults: d.Faults) -> None:
    """What only the database knows: whether the named set, lists and payments exist."""
    kept = {row.name: row.field for row in RiskList.objects.filter(merchant=target.merchant)}
    lists = kept | {one["name"]: one["field"] for one in value["lists"]}
    for at, one in enumerate(value["sets"]):
        for place, rule in enumerate(one.get("rules", ())):
            where, when = f"{path}.sets[{at}].rules[{place}].when", rule["when"]
            conditions = [(f"{where}[{n}]", one) for n, one in enumerate(when)] if isinstance(when, list) else []
            for spot, one_when in conditions or [(where, when)]:
                if one_when["kind"] == "list" and one_when.get("list") is not None:
                    _check_list(one_when, lists, d.within(spot, "list"), faults)
    for place, named in enumerate(value["lists"]):
        if named["field"] == "account":
            for entry_at, entry in enumerate(named["entries"]):
                if _payment(target, entry) is None:
                    words = f"{entry} names no payment of this merchant with a card or an account"
                    faults.add(f"{path}.lists[{place}].entries[{entry_at}]", words)
    if value["set"] and target.channel is None:
        faults.add(d.within(path, "set"), "belongs to a channel: name the channel's entityId")
    elif value["set"]:
        active = set(RiskSet.objects.filter(merchant=target.merchant, active=True).values_list("key", flat=True))
        for one in value["sets"]:
            (active.add if one.get("active", True) else active.discard)(one["key"])
        if value["set"] not in active:
            there = f"there are {', '.join(sorted(active))}" if active else "there is none"
            hint = d.meant(value["set"], active)
            faults.add(d.within(path, "set"), f"{d.shown(value['set'])} is no active rule set{hint}; {there}")


def _check_list(when: Mapping[str, Any], lists: Mapping[str, str], path: str, faults: d.Faults) -> None:
    name, field = when["list"], when["field"]
    if name not in lists:
        there = f"lists are {', '.join(sorted(lists))}" if lists else "there are no lists"
        faults.add(path, f"{d.shown(name)} is no list{d.meant(name, lists)}; {there}")
    elif lists[name] != field:
        faults.add(path, f"{d.shown(name)} is a list of {lists[name]}, and the rule looks at {field}")


def _payment(target: Target, entry: str) -> Payment | None:
    ident = identifiers.parse_id(entry)
    if ident is None:
        return None
    return Payment.objects.filter(pk=ident, merchant=target.merchant, means_sealed__isnull=False).first()


def _apply(target: Target, value: Mapping[str, Any]) -> None:
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


def _apply_list(target: Target, named: Mapping[str, Any]) -> None:
    """A list becomes exactly what the document says."""
    row, _ = RiskList.objects.select_for_update().get_or_create(
        merchant=target.merchant, name=named["name"], defaults={"field": named["field"]}
    )
    if row.field != named["field"]:
        row.field = named["field"]
        row.save(update_fields=["field"])
        row.entries.all().delete()
    wanted = dict.fromkeys(fields.entry(row.field, entry) for entry in named["entries"])
    kept = set(row.entries.values_list("value", flat=True))
    row.entries.exclude(value__in=wanted).delete()
    new = [RiskListEntry(list=row, value=value) for value in wanted if value not in kept]
    if row.field == "account":
        for entry in new:
            _seal(target, entry)
    RiskListEntry.objects.bulk_create(new, batch_size=1000)


def _seal(target: Target, entry: RiskListEntry) -> None:
    """Take the account out of the payment that names it, sealed for the entry."""
    payment = _payment(target, entry.value)
    assert payment is not None
    assert payment.means_sealed is not None
    keys = vault()
    account = keys.open(payment.means_sealed, payment.id)
    entry.account_sealed = keys.seal(account, entry.id)
    entry.fingerprint = keys.fingerprint(account)


def _show(target: Target) -> dict[str, Any]:
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


def _brief(target: Target) -> dict[str, Any]:
    shown = _show(target)
    return shown | {"lists": [one | {"entries": len(one["entries"])} for one in shown["lists"]]}


def _apply_guard(target: Target, value: Mapping[str, Any]) -> None:
    target.channel_there.card_testing = {name: found for name, found in value.items() if found is not None}
    target.channel_there.save(update_fields=["card_testing"])


RISK: Final = Section(
    name="risk", shape=_risk, check=_check, apply=_apply, show=_show, brief=_brief, of_channel=False,
    about="Rule sets and lists of the merchant, and set: the key of the set that screens this channel. Sets and lists "
    "that are not named stay; a list that is named becomes exactly what is written.",
)  # fmt: skip
CARD_TESTING: Final = Section(
    name="cardTesting", shape=guard.SHAPE, apply=_apply_guard, show=lambda target: target.channel_there.card_testing,
    about="Where this channel's guard against card testing differs from the settings.",
)  # fmt: skip
