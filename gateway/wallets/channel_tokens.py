"""Opens wallet tokens with a channel's keys, and makes sure that each is used once.

A token's use is recorded in the statement that starts its payment, so of two requests with one token only one starts a
payment. A token's age is measured in real time: the device does not know the merchant's moved clock.
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
from gateway.models import Channel, UsedWalletToken, WalletKey
from gateway.timers.registry import MAX_SWEPT_ROWS, SWEEP_INTERVAL_S, Timer
from gateway.vault.sealing import VaultError, current_vault
from gateway.wallets.formats import decrypt_wallet_token
from gateway.wallets.keys import UnusableKeyError, WalletKeys, parse_wallet_keys
from gateway.wallets.token import DecryptedToken, TokenRefusalReason, WalletTokenRefusedError

TOKEN_USED_CONSTRAINT: Final = "wallet_token_once"  # noqa: S105 - a name or a mask, no password
"""The constraint that a second payment with the same token violates."""
MAX_KEYS_TRIED: Final = 8
"""Active keys of one wallet that are tried, newest first."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WalletTokenUse:
    """The use of a token, to be recorded when its payment starts."""

    wallet: str
    merchant: UUID
    digest: bytes
    until: datetime

    def insert(self, write: WriteStatement, payment: UUID) -> None:
        """Record the use in the statement that starts ``payment``; a second use violates TOKEN_USED_CONSTRAINT."""
        write.insert(
            UsedWalletToken,
            merchant_id=self.merchant,
            digest=self.digest,
            payment=payment,
            seen_at=clock.real_now(),
            until=self.until,
        )

    def replayed(self) -> WalletTokenRefusedError:
        """The error for a token that was used before."""
        return WalletTokenRefusedError(TokenRefusalReason.REPLAYED)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedWalletToken:
    """A decrypted token, and the record of its use."""

    token: DecryptedToken = field(repr=False)
    seen: WalletTokenUse


class WalletFaultError(Exception):
    """An internal error while a token was decrypted; only its type is reported."""


def open_wallet_token(channel: Channel, wallet: str, text: Secret, money: Money) -> OpenedWalletToken:
    """Decrypt a token for a payment of ``money``. Raises WalletTokenRefusedError.

    Whether it was used before shows when the payment starts (:meth:`WalletTokenUse.insert`), not here.
    """
    keys, now = load_usable_keys(channel, wallet), clock.real_now()
    try:
        token = decrypt_wallet_token(wallet, text.reveal(), keys, now=now, money=money)
    except WalletTokenRefusedError:
        raise
    except Exception as fault:
        # The original traceback would hold the card in clear.
        raise WalletFaultError(f"{type(fault).__name__} while a token of {wallet} was opened") from None
    seen = WalletTokenUse(wallet=wallet, merchant=channel.merchant_id, digest=token.digest(wallet), until=token.until)
    return OpenedWalletToken(token=token, seen=seen)


def load_usable_keys(channel: Channel, wallet: str) -> list[WalletKeys]:
    """The channel's active keys, newest first. An unusable key is logged and left out."""
    rows = WalletKey.objects.filter(channel=channel, wallet=wallet, active=True).order_by("-created_at", "-id")
    if settings.IS_LIVE:
        rows = rows.filter(is_test_key=False)
    found = []
    for row in rows[:MAX_KEYS_TRIED]:
        try:
            found.append(parse_wallet_keys(wallet, unseal_wallet_key(row)["private"], row.facts))
        except (VaultError, UnusableKeyError) as fault:
            log.error("wallet_key_unusable", key=row.pk.hex, wallet=wallet, why=str(fault))
    return found


def unseal_wallet_key(row: WalletKey) -> Mapping[str, Secret]:
    """Decrypt a key row: ``private`` and, of a test key, ``maker``. Raises VaultError."""
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
    """Store an encrypted key; ``maker`` marks a test key. Raises UnusableKeyError if it cannot open any token."""
    read = parse_wallet_keys(wallet, private, facts, check=True)
    held = {"private": private.reveal()} | ({"maker": maker.reveal()} if maker is not None else {})
    ident = identifiers.row_id()
    row, _ = WalletKey.objects.update_or_create(
        channel=channel,
        wallet=wallet,
        key_hash=read.key_hash,
        defaults={"name": name, "facts": dict(facts), "active": True, "is_test_key": maker is not None},
        create_defaults={
            "id": ident,
            "name": name,
            "facts": dict(facts),
            "is_test_key": maker is not None,
            "key_sealed": current_vault().seal(Secret(json.dumps(held)), ident),
        },
    )
    return row


def delete_expired_token_uses(now: datetime, *, limit: int) -> int:
    """Delete at most ``limit`` uses of tokens that are expired anyway. Returns how many."""
    gone = list(UsedWalletToken.objects.filter(until__lt=now).order_by("until").values_list("pk", flat=True)[:limit])
    return UsedWalletToken.objects.filter(pk__in=gone).delete()[0] if gone else 0


TIMER: Final = Timer(
    name="wallet tokens",
    run=lambda: delete_expired_token_uses(clock.real_now(), limit=MAX_SWEPT_ROWS),
    every_s=SWEEP_INTERVAL_S,
    about="Forget tokens that are too old to be used again.",
    earliest_due="SELECT min(until) FROM gateway_usedwallettoken",
)
