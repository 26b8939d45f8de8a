"""Token formats by wallet, and one function that decrypts them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final

from gateway.core.money import Money
from gateway.wallets import wallet1, wallet2, wallet3
from gateway.wallets.keys import WalletKeys
from gateway.wallets.strict_parsing import refuse_parse_errors
from gateway.wallets.token import MAX_TOKEN_CHARS, DecryptedToken, TokenRefusalReason, WalletTokenRefusedError

TOKEN_OPENERS: Final[Mapping[str, Callable[..., DecryptedToken]]] = MappingProxyType(
    {"wallet1": wallet1.decrypt_wallet1, "wallet2": wallet2.decrypt_wallet2, "wallet3": wallet3.decrypt_wallet3}
)
WALLET_FORMATS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"wallet1": ("ec_v1", "rsa_v1"), "wallet2": ("ecv2", "ecv1"), "wallet3": ("jwe",)}
)
"""The formats of a wallet; the first one is what test tokens are made in unless another is asked for."""


def decrypt_wallet_token(
    wallet: str, token: str, keys: Sequence[WalletKeys], *, now: datetime, money: Money | None = None
) -> DecryptedToken:
    """Decrypt a token. ``wallet``: wallet1, wallet2 or wallet3; ``now``: real time; ``money``: the amount to pay, which
    must equal the token's, if it has one. Raises WalletTokenRefusedError, whatever was sent."""
    if not keys:
        raise WalletTokenRefusedError(TokenRefusalReason.NO_KEYS)
    if len(token) > MAX_TOKEN_CHARS:
        raise WalletTokenRefusedError(TokenRefusalReason.MALFORMED, f"it is longer than {MAX_TOKEN_CHARS:,} characters")
    with refuse_parse_errors(TokenRefusalReason.MALFORMED):
        found = TOKEN_OPENERS[wallet](token, keys, now=now)
    if money is not None and found.money is not None and found.money != money:
        raise WalletTokenRefusedError(TokenRefusalReason.AMOUNT_DIFFERS)
    return found
