"""The configuration section brands: the offer rules of a merchant or channel.

{"brands": {"rules": [{"name": "No wallets at night prices", "hide": ["WALLET1"], "when": {"amountAtLeast": "500"}}]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from checkout import offer_rules
from checkout.models import OfferRule
from gateway.configuration.section import ConfigurationSection, ConfigurationTarget
from gateway.core import document as d
from gateway.core.brands import PAYMENT_BRANDS

MAX_OFFER_RULES: Final = 200


def _parse_brand(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    if value not in PAYMENT_BRANDS:
        faults.add(path, f"{d.abbreviate_value(value)} is not a brand of this gateway")
    return value


def _parse_conditions(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    for fault in offer_rules.check_offer_conditions(value):
        faults.add(path, fault)
    return value


_CODES: Final = d.list_shape(_parse_brand, most=len(PAYMENT_BRANDS))
_RULE: Final = d.object_shape(
    name=d.required_member(d.text_shape(1, 64)),
    hide=d.optional_member(_CODES),
    show=d.optional_member(_CODES),
    when=d.optional_member(_parse_conditions, {}),
    reason=d.optional_member(d.text_shape(0, 200), ""),
    active=d.optional_member(d.boolean_shape, True),
)


def _parse_rule(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    found = _RULE(value, path, faults)
    if isinstance(found, Mapping) and (found["hide"] is None) == (found["show"] is None):
        faults.add(path, "give either hide or show: a list of brands, an empty one for every brand")
    return found


_SHAPE: Final = d.object_shape(rules=d.required_member(d.list_shape(_parse_rule, most=MAX_OFFER_RULES)))


def _check_section(target: ConfigurationTarget, value: Mapping[str, Any], path: str, faults: d.DocumentFaults) -> None:
    elsewhere = OfferRule.objects.filter(merchant=target.merchant).exclude(channel=target.channel)
    names = set(elsewhere.values_list("name", flat=True))
    for place, rule in enumerate(value["rules"]):
        if rule["name"] in names:
            faults.add(f"{path}.rules[{place}].name", "is the name of another rule of this merchant")
        names.add(rule["name"])


def _apply_section(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    """Replace the rules of this channel, or of the merchant as a whole, by those of the document, in its order."""
    OfferRule.objects.filter(merchant=target.merchant, channel=target.channel).delete()
    OfferRule.objects.bulk_create(
        OfferRule(
            merchant=target.merchant,
            channel=target.channel,
            position=place,
            name=rule["name"],
            action=OfferRule.Action.HIDE if rule["hide"] is not None else OfferRule.Action.SHOW,
            brands=list(rule["hide"] if rule["hide"] is not None else rule["show"]),
            conditions=dict(rule["when"]),
            reason=rule["reason"],
            active=rule["active"],
        )
        for place, rule in enumerate(value["rules"])
    )


def _render_section(target: ConfigurationTarget) -> Any:
    rows = OfferRule.objects.filter(merchant=target.merchant, channel=target.channel).order_by("position", "id")
    return {
        "rules": [
            {
                "name": row.name,
                row.action: row.brands,
                "when": row.conditions,
                "reason": row.reason,
                "active": row.active,
            }
            for row in rows
        ]
    }


BRANDS_SECTION: Final = ConfigurationSection(
    name="brands",
    about="When which brands are offered in a checkout.",
    shape=_SHAPE,
    check=_check_section,
    apply=_apply_section,
    show=_render_section,
    of_channel=False,
)
