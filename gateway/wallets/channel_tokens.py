"""Wallet tokens of a channel: opened with its keys, and taken once.

A token is remembered by the statement that begins its payment, so that of two requests with one token only one begins
a payment. Its age is counted in real time: the shopper's device does not know of a merchant's moved clock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings

from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.db.statement import WriteStatement
from gateway.models import Channel, WalletKey, WalletTokenSeen
from gateway.vault.sealing import VaultError, current_vault
from gateway.wallets.formats import decrypt_wallet_token
from gateway.wallets.keys import UnusableKeyError, WalletKeys, parse_wallet_keys
from gateway.wallets.token import DecryptedToken, TokenRefusalReason, WalletTokenRefusedError

TOKEN_USED_CONSTRAINT: Final = "wallet_token_once"  # noqa: S105
"""The constraint that a second payment with one token breaks."""
MAX_KEYS_TRIED: Final = 8
"""Active keys of one wallet that are tried, the newest first."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WalletTokenUse:
    """A token that is about to begin a payment."""

    wallet: str
    merchant: UUID
    digest: bytes
    until: datetime

    def insert(self, write: WriteStatement, payment: UUID) -> None:
        """Remember the token in the statement that begins ``payment``: it fails by TOKEN_USED_CONSTRAINT the second
        time."""
        write.insert(
            WalletTokenSeen,
            merchant_id=self.merchant,
            digest=self.digest,
            payment=payment,
            seen_at=clock.real_now(),
            until=self.until,
        )

    def replayed(self) -> WalletTokenRefusedError:
        return WalletTokenRefusedError(TokenRefusalReason.REPLAYED)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedWalletToken:
    """A token's contents, and what remembers it."""

    token: DecryptedToken = field(repr=False)
    seen: WalletTokenUse


class WalletFaultError(Exception):
    """A fault of ours while a token was open. What went wrong is told by its type alone."""


def open_wallet_token(channel: Channel, wallet: str, text: Secret, money: Money) -> OpenedWalletToken:
    """Open a token for a payment of ``money``. Raises WalletTokenRefusedError.

    Whether it was used is known when the payment begins (:meth:`WalletTokenUse.insert`), not here.
    """
    keys, now = load_usable_keys(channel, wallet), clock.real_now()
    try:
        token = decrypt_wallet_token(wallet, text.reveal(), keys, now=now, money=money)
    except WalletTokenRefusedError:
        raise
    except Exception as fault:
        # The traceback of decrypting holds the card in clear.
        raise WalletFaultError(f"{type(fault).__name__} while a token of {wallet} was opened") from None
    seen = WalletTokenUse(wallet=wallet, merchant=channel.merchant_id, digest=token.digest(wallet), until=token.until)
    return OpenedWalletToken(token=token, seen=seen)


def load_usable_keys(channel: Channel, wallet: str) -> list[WalletKeys]:
    """The channel's active keys, the newest first. One that does not open, or is no key, is left out and logged."""
    rows = WalletKey.objects.filter(channel=channel, wallet=wallet, active=True).order_by("-created_at", "-id")
    if settings.IS_LIVE:
        rows = rows.filter(made=False)
    found = []
    for row in rows[:MAX_KEYS_TRIED]:
        try:
            found.append(parse_wallet_keys(wallet, unseal_wallet_key(row)["private"], row.facts))
        except (VaultError, UnusableKeyError) as fault:
            log.error("wallet_key_unusable", key=row.pk.hex, wallet=wallet, why=str(fault))
    return found


def unseal_wallet_key(row: WalletKey) -> Mapping[str, Secret]:
    """``private`` and, of a made key, ``maker``. Raises VaultError."""
    return {
        name: Secret(pem) for name, pem in json.loads(current_vault().open(row.key_sealed, row.pk).reveal()).items()
    }


def store_wallet_key(
    channel: Channel,
    wallet: str,
    private: Secret,
    facts: Mapping[str, Any],
    *,
    name: str = "",
    maker: Secret | None = None,
) -> WalletKey:
    """Keep a key, sealed; ``maker`` marks it as made to try with. Raises UnusableKeyError when it cannot open
    anything."""
    read = parse_wallet_keys(wallet, private, facts, check=True)
    held = {"private": private.reveal()} | ({"maker": maker.reveal()} if maker is not None else {})
    ident = identifiers.row_id()
    row, _ = WalletKey.objects.update_or_create(
        channel=channel,
        wallet=wallet,
        key_hash=read.key_hash,
        defaults={"name": name, "facts": dict(facts), "active": True, "made": maker is not None},
        create_defaults={
            "id": ident,
            "name": name,
            "facts": dict(facts),
            "made": maker is not None,
            "key_sealed": current_vault().seal(Secret(json.dumps(held)), ident),
        },
    )
    return row


def delete_expired_token_uses(now: datetime, *, limit: int) -> int:
    """Throw away what was remembered of tokens that are too old to be taken again, at most ``limit``; how many."""
    gone = list(WalletTokenSeen.objects.filter(until__lt=now).order_by("until").values_list("pk", flat=True)[:limit])
    return WalletTokenSeen.objects.filter(pk__in=gone).delete()[0] if gone else 0
