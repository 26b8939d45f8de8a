"""Shopper tokens: a code in a URL that lets a browser act on one payment.

The token is a keyed hash of the payment's id under the vault's keys: it cannot be guessed, is valid for one payment,
and is derived each time, never stored. Source: decisions, section 5.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.conf import settings

from gateway.connectors.port import Redirect
from gateway.core import identifiers
from gateway.vault.sealing import current_vault

_PURPOSE: Final = "shopper"


def build_shopper_token(payment: UUID) -> str:
    """The shopper token of a payment: 32 hex digits."""
    return current_vault().fingerprint(f"{_PURPOSE}:{payment.hex}").hex()


def is_shopper_token(payment: UUID, token: str) -> bool:
    """Whether ``token`` is the payment's, under any key of the vault."""
    sent = identifiers.parse_id(token)
    return sent is not None and current_vault().matches(f"{_PURPOSE}:{payment.hex}", sent.bytes)


def build_shopper_redirect(payment: UUID) -> Redirect:
    """The redirect to our own page for the payment's next step."""
    return Redirect(
        url=f"{settings.GATEWAY_BASE_URL}/shopper/{payment.hex}", parameters=(("token", build_shopper_token(payment)),)
    )


def build_return_url(payment: UUID) -> str:
    """The URL to which a bank or wallet sends the shopper back."""
    return f"{settings.GATEWAY_BASE_URL}/shopper/{payment.hex}/return?token={build_shopper_token(payment)}"


def build_challenge_return_url(ident: UUID) -> str:
    """The URL to which an issuer sends the shopper back after a challenge (notificationURL), of at most 256 characters.
    ``ident``: a payment, or a standalone authentication."""
    return f"{settings.GATEWAY_BASE_URL}/shopper/{ident.hex}/challenged?token={build_shopper_token(ident)}"
