"""Section ``threeDSecure``: whether and how a channel authenticates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.catalogue.structures import NETWORK_KEYS
from gateway.configuration.section import ConfigurationSection, ConfigurationTarget
from gateway.core import document as d
from gateway.models import ThreeDSecureConfiguration
from gateway.models.threeds import MAX_REQUESTOR_CHARS
from gateway.threeds.server import load_threeds_configuration

_COLUMNS: Final[Mapping[str, str]] = {
    "networks": "networks", "requestors": "requestors", "onUnavailable": "on_unavailable", "onAttempt": "on_attempt",
    "challengeIndicator": "challenge_indicator", "challengeMinutes": "challenge_minutes", "method": "method",
}  # fmt: skip
"""Document → column of ThreeDSecureConfiguration."""

_POLICY: Final = d.choice_shape(*ThreeDSecureConfiguration.Policy.values)
_NAME: Final = d.text_shape(1, MAX_REQUESTOR_CHARS)
_REQUESTOR: Final = d.object_shape(id=d.optional_member(_NAME), name=d.optional_member(_NAME))


def _requestors(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """Network → id and name, as the network assigned them."""
    if not isinstance(value, Mapping):
        faults.add(path, f"must be an object: one of {', '.join(NETWORK_KEYS)} → id and name")
        return {}
    d.refuse_unknown_members(value, NETWORK_KEYS, path, faults)
    read = {
        name: _REQUESTOR(one, d.member_path(path, name), faults) for name, one in value.items() if name in NETWORK_KEYS
    }
    return {name: {key: text for key, text in one.items() if text} for name, one in read.items()}


_SHAPE: Final = d.object_shape(
    enabled=d.optional_member(d.boolean_shape),
    networks=d.optional_member(d.list_shape(d.choice_shape(*NETWORK_KEYS), most=len(NETWORK_KEYS), distinct=True)),
    requestors=d.optional_member(_requestors),
    onUnavailable=d.optional_member(_POLICY),
    onAttempt=d.optional_member(_POLICY),
    challengeIndicator=d.optional_member(d.text_shape(0, 2, "(0[1-9])?", says="01 to 09, or empty")),
    challengeMinutes=d.optional_member(d.integer_shape(5, 60)),
    method=d.optional_member(d.boolean_shape),
)


def _apply(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    channel = target.channel_there
    if value["enabled"] is not None:
        channel.three_d_secure = value["enabled"]
        channel.save(update_fields=["three_d_secure"])
    changes = {column: value[name] for name, column in _COLUMNS.items() if value[name] is not None}
    if changes:
        row = load_threeds_configuration(channel)
        for column, found in changes.items():
            setattr(row, column, list(found) if isinstance(found, tuple) else found)
        row.save()


def _show(target: ConfigurationTarget) -> dict[str, Any]:
    row = load_threeds_configuration(target.channel_there)
    own = {name: getattr(row, column) for name, column in _COLUMNS.items()}
    return {"enabled": target.channel_there.three_d_secure, **own}


THREE_D_SECURE_SECTION: Final = ConfigurationSection(
    name="threeDSecure",
    shape=_SHAPE,
    apply=_apply,
    show=_show,
    about="Whether shoppers authenticate (enabled), with which networks (empty: all), and what follows when "
    "that is not possible. What is not named stays.",
)
