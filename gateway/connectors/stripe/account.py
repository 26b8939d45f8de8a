"""An account at the processor, as its settings describe it, and what it may not be.

Source: docs/connectors/card-api.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

from gateway.connectors.port import Account, Setting
from gateway.secret import Secret

DEFAULT_URL: Final = "https://api.stripe.com"
DEFAULT_VERSION: Final = "2024-06-20"
FULL: Final = "full"
CORE: Final = "core"
MULTICAPTURE: Final = "if_available"
KEY: Final = "api_key"
SIGNING: Final = "webhook_secrets"
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})

SETTINGS: Final = (
    Setting(
        name="url", about="Where the processor's API is, without /v1. Plain http only on this machine itself, in test.",
        pattern=r"https?://[A-Za-z0-9.\[\]:_-]{1,250}(/[A-Za-z0-9._~/-]{0,200})?", allowed="an https address",
        default=DEFAULT_URL, place=True,
    ),
    Setting(
        name="profile",
        about="full: the whole API, with idempotency keys. core: servers that know a few parameters only, in test.",
        pattern=f"{FULL}|{CORE}", allowed=f"{FULL} or {CORE}", default=FULL,
    ),
    Setting(
        name="multicapture", about="Whether an authorization may be captured in several parts, where the card allows.",
        pattern=f"off|{MULTICAPTURE}", allowed=f"off or {MULTICAPTURE}", default="off",
    ),
    Setting(
        name="api_version", about="The version of the API that is asked for.",
        pattern=r"[0-9]{4}-[0-9]{2}-[0-9]{2}(\.[a-z]{1,32})?", allowed="yyyy-MM-dd, perhaps with a name",
        default=DEFAULT_VERSION,
    ),
    Setting(
        name=KEY, about="The secret key, or one restricted to payment intents, setup intents, refunds, disputes.",
        pattern=r"(sk|rk)_[A-Za-z0-9_]{5,250}", allowed="sk_… or rk_…", required=True, secret=True, place=True,
    ),
    Setting(
        name=SIGNING, about="What the processor's webhooks are signed with; two while one is being replaced.",
        pattern=r"whsec_[A-Za-z0-9_+/=-]{1,250}( whsec_[A-Za-z0-9_+/=-]{1,250}){0,2}",
        allowed="one to three, whsec_…, with a space between", secret=True,
    ),
)  # fmt: skip


class Unusable(Exception):
    """The account cannot be used as it is set up: ``setting``, and ``why``, without any secret."""

    def __init__(self, setting: str, why: str) -> None:
        super().__init__(f"the account's {setting} {why}")
        self.setting, self.why = setting, why


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """``url`` without a slash at its end. ``full``: the whole API; see SETTINGS."""

    url: str
    full: bool
    multicapture: bool
    version: str
    key: Secret


def setup_of(account: Account) -> Setup:
    """Raises Unusable: no key, a value that is none, plain http where it is not allowed, the core profile in live."""
    given = account.settings
    for one in SETTINGS:
        value = account.secrets[one.name].reveal() if one.name in account.secrets else given.get(one.name, "")
        if value and not re.fullmatch(one.pattern, value):
            raise Unusable(one.name, f"is not {one.allowed}")
    _guard(given)
    key = account.secrets.get(KEY)
    if not key:
        raise Unusable(KEY, "is missing")
    full = given.get("profile", FULL) == FULL
    return Setup(
        url=given.get("url", DEFAULT_URL).rstrip("/"), full=full,
        multicapture=full and given.get("multicapture") == MULTICAPTURE,
        version=given.get("api_version", DEFAULT_VERSION), key=key,
    )  # fmt: skip


def faults_of(given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What is wrong with an account's settings beyond each one's own pattern: (setting, why)."""
    try:
        _guard(given)
    except Unusable as fault:
        return ((fault.setting, fault.why),)
    return ()


def _guard(given: Mapping[str, str]) -> None:
    """Raises Unusable for what this environment does not allow."""
    if settings.IS_LIVE and given.get("profile", FULL) != FULL:
        raise Unusable("profile", f"must be {FULL} in the live environment, which needs idempotency keys")
    url = given.get("url", DEFAULT_URL)
    if not url.startswith("https://") and (settings.IS_LIVE or not is_here(url)):
        raise Unusable("url", "must begin with https://: card numbers and the key would cross the network in clear")


def is_here(url: str) -> bool:
    """Whether an address names this machine itself."""
    try:
        return urlsplit(url).hostname in _LOOPBACK
    except ValueError:
        return False
