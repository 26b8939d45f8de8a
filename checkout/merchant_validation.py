"""Merchant validation of wallet 1: our server requests the session that a page needs to open the wallet's sheet.

The page names the provider's address; it is called only if its host is in the channel's configuration and in the
operator's setting, by the guarded client of gateway.outbound. The answer is passed to the page unread.
Source: Part A, What the service does, 9; docs/decisions/0028.
"""

from __future__ import annotations

import json
import threading
from http import HTTPStatus
from typing import Any, Final

from checkout.models import WalletProvider
from checkout.wallet_providers import list_allowed_origins, parse_origin
from gateway.core.peer_json import parse_peer_json
from gateway.core.secret import Secret
from gateway.outbound import ConnectionPool, call_url
from gateway.vault.sealing import current_vault

VALIDATION_TIMEOUT_S: Final = 10.0
"""From the look-up of the name to the last byte; providers let a sheet wait for 30 s."""
MAX_VALIDATIONS: Final = 16
"""Sessions that this process requests at a time. A shopper who opens a wallet's sheet causes one; with a provider that
hangs they would hold the threads that payments need. Source: docs/decisions/0168."""
MAX_SESSION_BYTES: Final = 65_536
MAX_VALIDATION_URL_CHARS: Final = 2_000

_running: Final = threading.BoundedSemaphore(MAX_VALIDATIONS)


class MerchantValidationError(Exception):
    """The provider gave no session: the text says why, for the merchant's developer."""


def is_allowed_validation_url(provider: WalletProvider, address: str) -> bool:
    """True if ``address`` is at a host that this channel's provider may be called at."""
    origin = parse_origin(address) if len(address) <= MAX_VALIDATION_URL_CHARS and address.isascii() else ""
    return (
        bool(origin)
        and origin in provider.settings["validationHosts"]
        and origin in list_allowed_origins(provider.wallet)
    )


def request_merchant_session(provider: WalletProvider, address: str, domain: str) -> dict[str, Any]:
    """The provider's session for a page of ``domain``, unchanged. Raises MerchantValidationError."""
    wanted = {
        "merchantIdentifier": provider.settings["merchantId"],
        "displayName": provider.settings["displayName"],
        "initiative": "web",
        "initiativeContext": domain,
    }
    lines = ConnectionPool(most=0, identity=_load_identity(provider))
    if not _running.acquire(blocking=False):
        raise MerchantValidationError("the provider is slow, and too many sessions are asked for just now")
    try:
        outcome = call_url(
            "POST",
            address,
            headers={"Content-Type": "application/json", "Accept": "application/json"},
            body=json.dumps(wanted).encode(),
            timeout_s=VALIDATION_TIMEOUT_S,
            max_bytes=MAX_SESSION_BYTES,
            lines=lines,
        )
    finally:
        _running.release()
    if outcome.status is None:
        raise MerchantValidationError(f"the provider could not be asked ({outcome.failure})")
    if outcome.status != HTTPStatus.OK:
        raise MerchantValidationError(f"the provider answered with HTTP {outcome.status}")
    try:
        found = None if outcome.truncated else parse_peer_json(outcome.body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise MerchantValidationError(f"the provider's answer is no JSON object of at most {MAX_SESSION_BYTES:,} bytes")
    return found


def _load_identity(provider: WalletProvider) -> Secret | None:
    """The merchant's certificate and key as PEM, which the provider knows it by."""
    if provider.identity_sealed is None:
        return None
    found: dict[str, str] = json.loads(current_vault().open(provider.identity_sealed, provider.id).reveal())
    return Secret(f"{found['certificate']}\n{found['key']}\n")
