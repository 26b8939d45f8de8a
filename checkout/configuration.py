"""The section brands of a configuration document: when which brands are offered in a checkout.

{"brands": {"rules": [{"name": "No wallets at night prices", "hide": ["WALLET1"], "when": {"amountAtLeast": "500"}}]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from checkout import offers
from checkout.models import OfferRule
from gateway import document as d
from gateway.brands import BRANDS
from gateway.configuration.section import Section, Target

MOST_RULES: Final = 200


def _brand(value: Any, path: str, faults: d.Faults) -> Any:
    if value not in BRANDS:
        faults.add(path, f"{d.shown(value)} is not a brand of this gateway")
    return value


def _when(value: Any, path: str, faults: d.Faults) -> Any:
    for fault in offers.faults_of(value):
        faults.add(path, fault)
    return value


_CODES: Final = d.list_of(_brand, most=len(BRANDS))
_RULE: Final = d.record(
    name=d.need(d.text(1, 64)), hide=d.may(_CODES), show=d.may(_CODES), when=d.may(_when, {}),
    reason=d.may(d.text(0, 200), ""), active=d.may(d.flag, True),
)  # fmt: skip


def _rule(value: Any, path: str, faults: d.Faults) -> Any:
    found = _RULE(value, path, faults)
    if isinstance(found, Mapping) and (found["hide"] is None) == (found["show"] is None):
        faults.add(path, "give either hide or show: a list of brands, an empty one for every brand")
    return found


_SHAPE: Final = d.record(rules=d.need(d.list_of(_rule, most=MOST_RULES)))


def _check(target: Target, value: Mapping[str, Any], path: str, faults: d.Faults) -> None:
    elsewhere = OfferRule.objects.filter(merchant=target.merchant).exclude(channel=target.channel)
    names = set(elsewhere.values_list("name", flat=True))
    for place, rule in enumerate(value["rules"]):
        if rule["name"] in names:
            faults.add(f"{path}.rules[{place}].name", "is the name of another rule of this merchant")
        names.add(rule["name"])


def _apply(target: Target, value: Mapping[str, Any]) -> None:
    """The rules of this channel, or of the merchant as a whole, are those of the document, in its order."""
    OfferRule.objects.filter(merchant=target.merchant, channel=target.channel).delete()
    OfferRule.objects.bulk_create(
        OfferRule(
            merchant=target.merchant, channel=target.channel, position=place, name=rule["name"],
            action=OfferRule.Action.HIDE if rule["hide"] is not None else OfferRule.Action.SHOW,
            brands=list(rule["hide"] if rule["hide"] is not None else rule["show"]), conditions=dict(rule["when"]),
            reason=rule["reason"], active=rule["active"],
        )
        for place, rule in enumerate(value["rules"])
    )  # fmt: skip


def _show(target: Target) -> Any:
    rows = OfferRule.objects.filter(merchant=target.merchant, channel=target.channel).order_by("position", "id")
    return {
        "rules": [
            {"name": row.name, row.action: row.brands, "when": row.conditions, "reason": row.reason,
             "active": row.active}
            for row in rows
        ]
    }  # fmt: skip


BRANDS_SECTION: Final = Section(
    name="brands", about="When which brands are offered in a checkout.", shape=_SHAPE, check=_check, apply=_apply,
    show=_show, of_channel=False,
)  # fmt: skip
