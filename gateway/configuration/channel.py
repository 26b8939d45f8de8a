"""Sections ``channel`` and ``limits``: what a channel accepts, how strictly requests are read, request limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.configuration.section import ConfigurationSection, ConfigurationTarget
from gateway.connectors.account_updaters import load_account_updater
from gateway.connectors.token_services import load_token_service
from gateway.core import document as d
from gateway.core.authorization_validity import EVERY_OTHER_BRAND, MAX_AUTHORIZATION_DAYS
from gateway.core.brands import CARD_BRANDS, PAYMENT_BRANDS
from gateway.core.time_zones import list_time_zones
from gateway.models import MAX_DESCRIPTOR_CHARS, MAX_REVERSAL_HOURS, THROTTLED_OPERATIONS, Channel

_NAMES: Final[Mapping[str, str]] = {
    "name": "name", "active": "active", "position": "position", "brands": "brands",
    "brandOrder": "brand_order", "currencies": "currencies",
    "parameters": "parameters", "cvvRequired": "cvv_required", "refuseDuplicates": "refuse_duplicates",
    "maskCardData": "mask_card_data",
    "timeZone": "time_zone", "descriptor": "descriptor", "authorizationKind": "authorization_kind",
    "authorizationDays": "authorization_days", "expiredCaptures": "expired_captures",
    "partialApprovals": "partial_approvals", "retryTiming": "retry_timing", "reversalHours": "reversal_hours",
    "networkTokens": "network_tokens", "accountUpdater": "account_updater",
}  # fmt: skip
"""Document → column."""


def _zone(value: Any, path: str, faults: d.DocumentFaults) -> str:
    """The time zone of subscription jobs; empty: the merchant's."""
    if not isinstance(value, str) or (value and value not in list_time_zones()):
        faults.add(path, "must be a time zone such as Europe/Berlin, or empty for the merchant's")
        return ""
    return value


def _descriptor(value: Any, path: str, faults: d.DocumentFaults) -> str:
    """The statement descriptor of payments that are sent without one; empty: the merchant's name."""
    says = f"a text of up to {MAX_DESCRIPTOR_CHARS} characters that can be printed, or empty for the merchant's name"
    return "" if value == "" else d.text_shape(1, MAX_DESCRIPTOR_CHARS, r".*\S.*", says=says)(value, path, faults)


def _network_tokens(value: Any, path: str, faults: d.DocumentFaults) -> bool:
    """Whether stored cards get network tokens; true needs a token service."""
    wanted = d.boolean_shape(value, path, faults)
    if wanted is True and load_token_service() is None:
        faults.add(path, "needs a token service: GATEWAY_TOKEN_SERVICE names none")
    return wanted is True


def _account_updater(value: Any, path: str, faults: d.DocumentFaults) -> bool:
    """Whether the account updater is asked about stored cards; true needs one."""
    wanted = d.boolean_shape(value, path, faults)
    if wanted is True and load_account_updater() is None:
        faults.add(path, "needs an account updater: GATEWAY_ACCOUNT_UPDATER names none")
    return wanted is True


_DAYS: Final = d.integer_shape(1, MAX_AUTHORIZATION_DAYS)


def _authorization_days(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """Brand → days that an authorization is valid, null without an end; * for every brand that is not named."""
    known = (EVERY_OTHER_BRAND, *PAYMENT_BRANDS)
    if not isinstance(value, Mapping):
        faults.add(path, f"must be an object: a brand, or {EVERY_OTHER_BRAND} for every other one → days, or null")
        return {}
    d.refuse_unknown_members(value, known, path, faults)
    return {
        name: None if days is None else _DAYS(days, d.member_path(path, name), faults)
        for name, days in value.items()
        if name in known
    }


_CHANNEL: Final = d.object_shape(
    name=d.optional_member(d.text_shape(1, 128)),
    active=d.optional_member(d.boolean_shape),
    position=d.optional_member(d.integer_shape(0, 32_767)),
    brands=d.optional_member(d.list_shape(d.choice_shape(*PAYMENT_BRANDS), most=len(PAYMENT_BRANDS), distinct=True)),
    brandOrder=d.optional_member(d.list_shape(d.choice_shape(*CARD_BRANDS), most=len(CARD_BRANDS), distinct=True)),
    currencies=d.optional_member(d.list_shape(d.currency_shape, most=200, distinct=True)),
    parameters=d.optional_member(d.choice_shape(*Channel.Parameters.values)),
    cvvRequired=d.optional_member(d.boolean_shape),
    refuseDuplicates=d.optional_member(d.boolean_shape),
    maskCardData=d.optional_member(d.boolean_shape),
    timeZone=d.optional_member(_zone),
    descriptor=d.optional_member(_descriptor),
    authorizationKind=d.optional_member(d.choice_shape(*Channel.AuthorizationKind.values)),
    authorizationDays=d.optional_member(_authorization_days),
    expiredCaptures=d.optional_member(d.choice_shape(*Channel.ExpiredCaptures.values)),
    partialApprovals=d.optional_member(d.choice_shape(*Channel.PartialApprovals.values)),
    retryTiming=d.optional_member(d.choice_shape(*Channel.RetryTiming.values)),
    reversalHours=d.optional_member(d.integer_shape(0, MAX_REVERSAL_HOURS)),
    networkTokens=d.optional_member(_network_tokens),
    accountUpdater=d.optional_member(_account_updater),
)


def _apply_channel(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    changes = {column: value[name] for name, column in _NAMES.items() if value[name] is not None}
    for column, found in changes.items():
        setattr(target.channel_there, column, list(found) if isinstance(found, tuple) else found)
    target.channel_there.save(update_fields=list(changes))


def _show_channel(target: ConfigurationTarget) -> dict[str, Any]:
    return {name: getattr(target.channel_there, column) for name, column in _NAMES.items()}


_LIMIT: Final = d.object_shape(
    limit=d.required_member(d.integer_shape(1, 1_000_000)), window_s=d.required_member(d.integer_shape(1, 1_000_000))
)


def _limits(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """Operation → {limit, window_s}, or null for no limit."""
    if not isinstance(value, Mapping):
        faults.add(path, f"must be an object: one of {', '.join(THROTTLED_OPERATIONS)} → limit and window_s, or null")
        return {}
    d.refuse_unknown_members(value, THROTTLED_OPERATIONS, path, faults)
    return {
        name: None if limit is None else _LIMIT(limit, d.member_path(path, name), faults)
        for name, limit in value.items()
        if name in THROTTLED_OPERATIONS
    }


def _apply_limits(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    target.channel_there.limits = dict(value)
    target.channel_there.save(update_fields=["limits"])


CHANNEL_SECTION: Final = ConfigurationSection(
    name="channel",
    shape=_CHANNEL,
    apply=_apply_channel,
    show=_show_channel,
    about="What the channel takes and how strictly it is read. Empty brands or currencies: all. "
    "What is not named stays.",
)
LIMITS_SECTION: Final = ConfigurationSection(
    name="limits",
    shape=_limits,
    apply=_apply_limits,
    show=lambda target: target.channel_there.limits,
    about="Requests per window, by operation; * for every other one, null for no limit. Replaces what was there.",
)
