"""The section threeDSecure: whether a channel authenticates, and how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway import document as d
from gateway.catalogue.structures import NETWORK_KEYS
from gateway.configuration.section import Section, Target
from gateway.models import ThreeDSecureConfiguration
from gateway.models.threeds import MAX_REQUESTOR_CHARS
from gateway.threeds.server import configuration_of

_COLUMNS: Final[Mapping[str, str]] = {
    "networks": "networks", "requestors": "requestors", "onUnavailable": "on_unavailable", "onAttempt": "on_attempt",
    "challengeIndicator": "challenge_indicator", "challengeMinutes": "challenge_minutes", "method": "method",
}  # fmt: skip
"""Document → column of ThreeDSecureConfiguration."""

_POLICY: Final = d.one_of(*ThreeDSecureConfiguration.Policy.values)
_NAME: Final = d.text(1, MAX_REQUESTOR_CHARS)
_REQUESTOR: Final = d.record(id=d.may(_NAME), name=d.may(_NAME))


def _requestors(value: Any, path: str, faults: d.Faults) -> Any:
    """Network → id and name, as the network assigned them."""
    if not isinstance(value, Mapping):
        faults.add(path, f"must be an object: one of {', '.join(NETWORK_KEYS)} → id and name")
        return {}
    d.unknown(value, NETWORK_KEYS, path, faults)
    read = {name: _REQUESTOR(one, d.within(path, name), faults) for name, one in value.items() if name in NETWORK_KEYS}
    return {name: {key: text for key, text in one.items() if text} for name, one in read.items()}


_SHAPE: Final = d.record(
    enabled=d.may(d.flag), networks=d.may(d.list_of(d.one_of(*NETWORK_KEYS), most=len(NETWORK_KEYS), distinct=True)),
    requestors=d.may(_requestors), onUnavailable=d.may(_POLICY), onAttempt=d.may(_POLICY),
    challengeIndicator=d.may(d.text(0, 2, "(0[1-9])?", says="01 to 09, or empty")),
    challengeMinutes=d.may(d.whole(5, 60)), method=d.may(d.flag),
)  # fmt: skip


def _apply(target: Target, value: Mapping[str, Any]) -> None:
    channel = target.channel_there
    if value["enabled"] is not None:
        channel.three_d_secure = value["enabled"]
        channel.save(update_fields=["three_d_secure"])
    changes = {column: value[name] for name, column in _COLUMNS.items() if value[name] is not None}
    if changes:
        row = configuration_of(channel)
        for column, found in changes.items():
            setattr(row, column, list(found) if isinstance(found, tuple) else found)
        row.save()


def _show(target: Target) -> dict[str, Any]:
    row = configuration_of(target.channel_there)
    own = {name: getattr(row, column) for name, column in _COLUMNS.items()}
    return {"enabled": target.channel_there.three_d_secure, **own}


THREE_D_SECURE: Final = Section(
    name="threeDSecure", shape=_SHAPE, apply=_apply, show=_show,
    about="Whether shoppers authenticate (enabled), with which networks (empty: all), and what follows when "
    "that is not possible. What is not named stays.",
)  # fmt: skip
