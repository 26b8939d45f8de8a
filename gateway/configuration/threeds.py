"""Section ``threeDSecure``: whether and how a channel authenticates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from gateway.catalogue.structures import NETWORK_KEYS
from gateway.configuration.section import ConfigurationSection, ConfigurationTarget
from gateway.core import document as d
from gateway.models import ThreeDSecureConfiguration
from gateway.models.threeds import MAX_REQUESTOR_CHARS, MAX_SERVER_URL_CHARS, REQUESTOR_MEMBERS
from gateway.threeds.server import load_threeds_configuration
from gateway.threeds.server_setup import (
    SERVER_MISSING_MESSAGE,
    find_server_secret_fault,
    find_server_url_fault,
    set_server_secret,
)

_COLUMNS: Final[Mapping[str, str]] = {
    "networks": "networks", "requestors": "requestors", "onUnavailable": "on_unavailable", "onAttempt": "on_attempt",
    "challengeIndicator": "challenge_indicator", "challengeMinutes": "challenge_minutes", "method": "method",
    "website": "requestor_url", "merchantCategoryCode": "merchant_category_code",
    "merchantCountry": "merchant_country", "onSoftDecline": "on_soft_decline",
}  # fmt: skip
"""Document → column of ThreeDSecureConfiguration."""

_POLICY: Final = d.choice_shape(*ThreeDSecureConfiguration.Policy.values)
_NAME: Final = d.text_shape(1, MAX_REQUESTOR_CHARS)
_REQUESTOR: Final = d.object_shape(**{name: d.optional_member(_NAME) for name in REQUESTOR_MEMBERS})


def _requestors(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """Network → REQUESTOR_MEMBERS, as the network and the acquirer assigned them."""
    if not isinstance(value, Mapping):
        faults.add(
            path, f"must be an object: one of {', '.join(NETWORK_KEYS)} → an object of {', '.join(REQUESTOR_MEMBERS)}"
        )
        return {}
    d.refuse_unknown_members(value, NETWORK_KEYS, path, faults)
    read = {
        name: _REQUESTOR(one, d.member_path(path, name), faults) for name, one in value.items() if name in NETWORK_KEYS
    }
    return {name: {key: text for key, text in one.items() if text} for name, one in read.items()}


def _server_url(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    found = d.text_shape(0, MAX_SERVER_URL_CHARS)(value, path, faults)
    if isinstance(found, str) and found and (why := find_server_url_fault(found)):
        faults.add(path, why)
    return found


_SERVER: Final = d.object_shape(url=d.optional_member(_server_url), secretFile=d.optional_member(d.text_shape(1, 1024)))
_SHAPE: Final = d.object_shape(
    enabled=d.optional_member(d.boolean_shape),
    networks=d.optional_member(d.list_shape(d.choice_shape(*NETWORK_KEYS), most=len(NETWORK_KEYS), distinct=True)),
    requestors=d.optional_member(_requestors),
    onUnavailable=d.optional_member(_POLICY),
    onAttempt=d.optional_member(_POLICY),
    onSoftDecline=d.optional_member(d.choice_shape(*ThreeDSecureConfiguration.SoftDeclinePolicy.values)),
    challengeIndicator=d.optional_member(d.text_shape(0, 2, "(0[1-9])?", says="01 to 09, or empty")),
    challengeMinutes=d.optional_member(d.integer_shape(5, 60)),
    method=d.optional_member(d.boolean_shape),
    website=d.optional_member(d.text_shape(0, 2048, "(https?://.*)?", says="an address, https://…, or empty")),
    merchantCategoryCode=d.optional_member(d.text_shape(0, 4, "([0-9]{4})?", says="four digits, or empty")),
    merchantCountry=d.optional_member(d.text_shape(0, 2, "([A-Z]{2})?", says="two capital letters, or empty")),
    server=d.optional_member(_SERVER),
)


def _read_secret(target: ConfigurationTarget, server: Mapping[str, Any], path: str, faults: d.DocumentFaults) -> str:
    """The secret in the file that the document names, without a newline at its end; '' if it names none."""
    if not server.get("secretFile"):
        return ""
    try:
        text = Path(target.folder, server["secretFile"]).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        where, folder = d.abbreviate_value(server["secretFile"]), d.abbreviate_value(str(target.folder))
        faults.add(path, f"{where} cannot be read as text; it is looked for in {folder}")
        return ""
    if why := find_server_secret_fault(text):
        faults.add(path, why)
    return text


def _check(target: ConfigurationTarget, value: Mapping[str, Any], path: str, faults: d.DocumentFaults) -> None:
    """In live, a channel that authenticates needs a 3DS server, in the document or stored before."""
    if target.channel is None:
        return
    row, server = load_threeds_configuration(target.channel), value["server"] or {}
    before = len(faults)
    secret = _read_secret(target, server, d.member_path(path, "server.secretFile"), faults)
    url = row.server_url if server.get("url") is None else server["url"]
    enabled = target.channel.three_d_secure if value["enabled"] is None else value["enabled"]
    complete = bool(url) and bool(secret or row.server_secret_sealed is not None)
    if settings.IS_LIVE and enabled and not complete and len(faults) == before:
        faults.add(d.member_path(path, "enabled"), SERVER_MISSING_MESSAGE)


def _apply(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    channel = target.channel_there
    if value["enabled"] is not None:
        channel.three_d_secure = value["enabled"]
        channel.save(update_fields=["three_d_secure"])
    changes = {column: value[name] for name, column in _COLUMNS.items() if value[name] is not None}
    server = value["server"] or {}
    if server.get("url") is not None:
        changes["server_url"] = server["url"].rstrip("/")
    secret = _read_secret(target, server, "", d.DocumentFaults())
    if changes or secret:
        row = load_threeds_configuration(channel)
        if secret:
            set_server_secret(row, secret)
        for column, found in changes.items():
            setattr(row, column, list(found) if isinstance(found, tuple) else found)
        row.save()


def _show(target: ConfigurationTarget) -> dict[str, Any]:
    row = load_threeds_configuration(target.channel_there)
    own = {name: getattr(row, column) for name, column in _COLUMNS.items()}
    return {"enabled": target.channel_there.three_d_secure, **own, "server": {"url": row.server_url}}


def _show_for_audit(target: ConfigurationTarget) -> dict[str, Any]:
    """Includes when the secret was set, so that a new one shows as a change."""
    shown, at = _show(target), load_threeds_configuration(target.channel_there).server_secret_set_at
    return shown | ({"serverSecretSet": at.isoformat(timespec="seconds")} if at is not None else {})


THREE_D_SECURE_SECTION: Final = ConfigurationSection(
    name="threeDSecure",
    shape=_SHAPE,
    check=_check,
    apply=_apply,
    show=_show,
    brief=_show_for_audit,
    about="Whether shoppers authenticate (enabled), with which networks (empty: all), and what follows when "
    "that is not possible. server: the external 3DS server, its secret from a file beside the document; the live "
    "environment needs one. What is not named stays.",
)
