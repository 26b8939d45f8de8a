"""An account at the processor: its settings, parsed and checked.

Source: docs/connectors/card-api.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

from gateway.connectors.account_settings import AccountSettingError, SettingFaults, collect_setting_faults
from gateway.connectors.port import ConnectorAccount, ConnectorSetting
from gateway.core.secret import Secret

CARD_API_URL: Final = "https://api.stripe.com"
CARD_API_VERSION: Final = "2025-02-24.acacia"
NO_REFUNDS_OF_RELEASES_SINCE: Final = "2025-03-31"
"""From this version of the API on, what is let go of an authorization (the rest after a capture, or all of it) is no
refund there. Source: the processor's changelog,
https://docs.stripe.com/changelog/basil/2025-03-31/remove-refund-from-partial-capture-and-payment-cancellation-flow."""
DEFAULT_3DS_VERSION: Final = "2.2.0"
EARLIEST_3DS_VERSION: Final = "1.0.2"
_3DS_VERSIONS: Final = frozenset({EARLIEST_3DS_VERSION, "2.1.0", DEFAULT_3DS_VERSION})
_LATER_3DS_VERSIONS: Final = frozenset({"2.3.0", "2.3.1"})
LATER_3DS_VERSIONS_SINCE: Final = "2026-01-28"
"""The version of the API that knows _LATER_3DS_VERSIONS. Source: the processor's changelog,
https://docs.stripe.com/changelog/clover/2026-01-28/3d-secure-version-support.md."""
FULL_PROFILE: Final = "full"
CORE_PROFILE: Final = "core"
MULTICAPTURE_IF_AVAILABLE: Final = "if_available"
MIT_REFERENCE_OFF: Final = "off"
API_KEY_SETTING: Final = "api_key"
WEBHOOK_SECRETS_SETTING: Final = "webhook_secrets"
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})

CARD_API_SETTINGS: Final = (
    ConnectorSetting("url",
        "Where the processor's API is, without /v1. Plain http only on this machine itself, in test.",
        r"https?://[A-Za-z0-9.\[\]:_-]{1,250}(/[A-Za-z0-9._~/-]{0,200})?", "an https address",
        default=CARD_API_URL, place=True),
    ConnectorSetting("profile",
        "full: the whole API, with idempotency keys. core: servers that know a few parameters only, in test.",
        f"{FULL_PROFILE}|{CORE_PROFILE}", f"{FULL_PROFILE} or {CORE_PROFILE}", default=FULL_PROFILE),
    ConnectorSetting("multicapture",
        "Whether an authorization may be captured in several parts, where the card allows.",
        f"off|{MULTICAPTURE_IF_AVAILABLE}", f"off or {MULTICAPTURE_IF_AVAILABLE}", default="off"),
    ConnectorSetting("mit_reference",
        "Whether a payment that the merchant initiates names the scheme's reference of the agreement's first. "
        "The processor allows that to accounts on request, and refuses these payments of others.",
        f"on|{MIT_REFERENCE_OFF}", f"on or {MIT_REFERENCE_OFF}", default="on"),
    ConnectorSetting("api_version", "The version of the API that is asked for.",
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}(\.[a-z]{1,32})?", "yyyy-MM-dd, perhaps with a name", default=CARD_API_VERSION),
    ConnectorSetting(API_KEY_SETTING,
        "The secret key, or one restricted to payment intents, setup intents, refunds, disputes.",
        r"(sk|rk)_[A-Za-z0-9_]{5,250}", "sk_… or rk_…", required=True, secret=True, place=True),
    ConnectorSetting(WEBHOOK_SECRETS_SETTING,
        "What the processor's webhooks are signed with; two while one is being replaced.",
        r"whsec_[A-Za-z0-9_+/=-]{1,250}( whsec_[A-Za-z0-9_+/=-]{1,250}){0,2}",
        "one to three, whsec_…, with a space between", secret=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CardApiSetup:
    """A parsed account. ``url`` has no trailing slash. ``full``: the whole API; see CARD_API_SETTINGS."""

    url: str
    full: bool
    multicapture: bool
    mit_reference: bool
    version: str
    key: Secret


def parse_card_api_setup(account: ConnectorAccount) -> CardApiSetup:
    """Parse an account's settings and key.

    Raises AccountSettingError for a missing key, an invalid value, plain http where it is not allowed, and the core
    profile in live.
    """
    given = account.settings
    for one in CARD_API_SETTINGS:
        value = account.secrets[one.name].reveal() if one.name in account.secrets else given.get(one.name, "")
        if value and not re.fullmatch(one.pattern, value):
            raise AccountSettingError(one.name, f"is not {one.allowed}")
    _check_environment(given)
    key = account.secrets.get(API_KEY_SETTING)
    if not key:
        raise AccountSettingError(API_KEY_SETTING, "is missing")
    full = given.get("profile", FULL_PROFILE) == FULL_PROFILE
    return CardApiSetup(
        url=given.get("url", CARD_API_URL).rstrip("/"),
        full=full,
        multicapture=full and given.get("multicapture") == MULTICAPTURE_IF_AVAILABLE,
        mit_reference=given.get("mit_reference") != MIT_REFERENCE_OFF,
        version=given.get("api_version", CARD_API_VERSION),
        key=key,
    )


def makes_refunds_of_releases(account: ConnectorAccount) -> bool:
    """Whether the processor makes a refund of what the account lets go of an authorization, by the API's version."""
    return _read_version_day(account) < NO_REFUNDS_OF_RELEASES_SINCE


def choose_3ds_version(account: ConnectorAccount, version: str) -> str:
    """The version of 3-D Secure that is named for a proof of ``version``: itself, or the nearest usual one where the
    API's version has no such value and would refuse the payment."""
    known = _3DS_VERSIONS
    if _read_version_day(account) >= LATER_3DS_VERSIONS_SINCE:
        known |= _LATER_3DS_VERSIONS
    if version in known:
        return version
    return EARLIEST_3DS_VERSION if version.startswith("1.") else DEFAULT_3DS_VERSION


def _read_version_day(account: ConnectorAccount) -> str:
    """The day of the API's version, as yyyy-MM-dd."""
    return (account.settings.get("api_version") or CARD_API_VERSION)[: len("yyyy-MM-dd")]


def check_card_api_settings(given: Mapping[str, str]) -> SettingFaults:
    """Errors in an account's settings beyond each one's own pattern: (setting, reason)."""
    return collect_setting_faults(lambda: _check_environment(given))


def _check_environment(given: Mapping[str, str]) -> None:
    """Raise AccountSettingError for settings that this environment does not allow."""
    if settings.IS_LIVE and given.get("profile", FULL_PROFILE) != FULL_PROFILE:
        raise AccountSettingError(
            "profile", f"must be {FULL_PROFILE} in the live environment, which needs idempotency keys"
        )
    url = given.get("url", CARD_API_URL)
    if not url.startswith("https://") and (settings.IS_LIVE or not is_loopback_url(url)):
        raise AccountSettingError(
            "url", "must begin with https://: card numbers and the key would cross the network in clear"
        )


def is_loopback_url(url: str) -> bool:
    """True if the URL's host is this machine."""
    try:
        return urlsplit(url).hostname in _LOOPBACK
    except ValueError:
        return False
