"""The external 3DS server of a channel: its address and shared secret, and whether a channel may authenticate at all.

The test environment has the simulated directory. In live a channel with 3-D Secure needs an external server; without
one it cannot be saved, the start-up checks refuse it, and its payments are declined. Source: docs/decisions/0066.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import structlog
from django.conf import settings

from gateway.core import clock
from gateway.core.secret import Secret
from gateway.models import Channel, ThreeDSecureConfiguration
from gateway.outbound import ForbiddenAddressError, parse_target
from gateway.vault.sealing import VaultError, current_vault

MIN_SERVER_SECRET_CHARS, MAX_SERVER_SECRET_CHARS = 32, 256
SERVER_MISSING_MESSAGE: Final = (
    "cannot be on in the live environment: the channel has no 3DS server. Give its address and secret first "
    "(threeDSecure.server in the configuration document, or the page 3-D Secure)"
)
_SECRET: Final = re.compile(rf"[!-~]{{{MIN_SERVER_SECRET_CHARS},{MAX_SERVER_SECRET_CHARS}}}")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeDSServerAccess:
    """Address of an external 3DS server, without a slash at its end, and the secret shared with it."""

    url: str
    secret: Secret


def has_threeds_server(configuration: ThreeDSecureConfiguration) -> bool:
    """True if an external 3DS server is configured: address and secret."""
    return bool(configuration.server_url) and configuration.server_secret_sealed is not None


def is_threeds_server_missing(channel: Channel) -> bool:
    """True for a channel of the live environment that authenticates and has no 3DS server."""
    if not settings.IS_LIVE or not channel.three_d_secure or channel.pk is None:
        return False
    found = ThreeDSecureConfiguration.objects.filter(pk=channel.pk).first()
    return found is None or not has_threeds_server(found)


def find_channels_without_server() -> list[Channel]:
    """Active channels of the live environment that authenticate and have no 3DS server; none in test."""
    if not settings.IS_LIVE:
        return []
    rows = Channel.objects.filter(active=True, three_d_secure=True).select_related("merchant")
    served = ThreeDSecureConfiguration.objects.exclude(server_url="").filter(server_secret_sealed__isnull=False)
    return list(rows.exclude(pk__in=served.values("pk")).order_by("merchant__name", "name"))


def open_threeds_server(configuration: ThreeDSecureConfiguration) -> ThreeDSServerAccess | None:
    """The channel's external server; None if there is none, or its secret does not open (which is logged)."""
    if not configuration.server_url or configuration.server_secret_sealed is None:
        return None
    try:
        secret = current_vault().open(configuration.server_secret_sealed, configuration.channel_id)
    except VaultError as fault:
        log.error("threeds_server_secret_unreadable", channel=configuration.channel_id.hex, why=str(fault))
        return None
    return ThreeDSServerAccess(url=configuration.server_url, secret=secret)


def set_server_secret(configuration: ThreeDSecureConfiguration, secret: str) -> None:
    """Seal a new shared secret into the row; the row is not saved here. Raises VaultError."""
    configuration.server_secret_sealed = current_vault().seal(Secret(secret), configuration.channel_id)
    configuration.server_secret_set_at = clock.real_now()


def find_server_url_fault(url: str) -> str:
    """Why ``url`` cannot be a 3DS server's address; '' if it can. http is for the test environment only."""
    try:
        target = parse_target(url)
    except ForbiddenAddressError as fault:
        return str(fault)
    if target.scheme != "https" and settings.IS_LIVE:
        return "must start with https:// in the live environment"
    parts = urlsplit(url)
    return "must have no query and no fragment" if parts.query or parts.fragment else ""


def find_server_secret_fault(secret: str) -> str:
    """Why ``secret`` cannot be a shared secret; '' if it can. The value is never repeated."""
    if _SECRET.fullmatch(secret):
        return ""
    return f"must have {MIN_SERVER_SECRET_CHARS} to {MAX_SERVER_SECRET_CHARS} printable ASCII characters without spaces"
