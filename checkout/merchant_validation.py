"""Merchant validation of wallet 1: our server requests the session that a page needs to open the wallet's sheet.

The page names the provider's address; it is called only if its host is in the channel's configuration and in the
operator's setting, without redirects, with a deadline and a size limit. The answer is passed to the page unread.
Source: Part A, What the service does, 9; docs/decisions/0028.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from checkout.models import WalletProvider
from checkout.wallet_providers import list_allowed_origins, parse_origin
from gateway.core.secret import Secret
from gateway.vault.sealing import current_vault

VALIDATION_TIMEOUT_S: Final = 10.0
"""From connecting to the last byte; providers let a sheet wait for 30 s."""
MAX_SESSION_BYTES: Final = 65_536
MAX_VALIDATION_URL_CHARS: Final = 2_000
_CHUNK_BYTES: Final = 8_192


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
    try:
        status, octets = _post_json(address, json.dumps(wanted).encode(), _load_identity(provider))
    except (OSError, http.client.HTTPException, ValueError) as fault:
        raise MerchantValidationError(f"the provider could not be asked ({type(fault).__name__})") from None
    if status != http.client.OK:
        raise MerchantValidationError(f"the provider answered with HTTP {status}")
    try:
        found = json.loads(octets)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise MerchantValidationError("the provider's answer is no JSON object")
    return found


def _load_identity(provider: WalletProvider) -> Mapping[str, str] | None:
    if provider.identity_sealed is None:
        return None
    found: dict[str, str] = json.loads(current_vault().open(provider.identity_sealed, provider.id).reveal())
    return found


def _post_json(address: str, body: bytes, identity: Mapping[str, str] | None) -> tuple[int, bytes]:
    """POST ``body``. Returns the status and at most MAX_SESSION_BYTES of the answer. Raises OSError, HTTPException,
    ValueError."""
    parts = urlsplit(address)
    ends = time.monotonic() + VALIDATION_TIMEOUT_S
    host = parts.hostname or ""
    link = (
        http.client.HTTPSConnection(
            host, parts.port, timeout=VALIDATION_TIMEOUT_S, context=_build_tls_context(identity)
        )
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=VALIDATION_TIMEOUT_S)
    )
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        link.request("POST", target, body, {"Content-Type": "application/json", "Accept": "application/json"})
        answer = link.getresponse()
        octets = b""
        while chunk := answer.read1(_CHUNK_BYTES):
            octets += chunk
            if len(octets) > MAX_SESSION_BYTES:
                raise ValueError("too long")
            if time.monotonic() > ends:
                raise TimeoutError
        return answer.status, octets
    finally:
        link.close()


def _build_tls_context(identity: Mapping[str, str] | None) -> ssl.SSLContext:
    """TLS with the merchant's certificate, if there is one. Its key passes through memory only, never a disk."""
    context = ssl.create_default_context()
    if identity is None:
        return context
    pem = Secret(f"{identity['certificate']}\n{identity['key']}\n")
    file = os.memfd_create("identity")
    try:
        os.write(file, pem.reveal().encode())
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
    return context
