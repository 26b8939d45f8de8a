"""Values of wallet tokens: a decrypted token, and the reasons to refuse one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from hashlib import sha256
from typing import Final, Literal

from gateway.core.money import Money
from gateway.core.secret import Secret

MAX_TOKEN_CHARS: Final = 16_384
"""The longest token that is parsed; real ones have about 5,000 characters."""
MAX_TOKEN_AGE: Final = timedelta(minutes=15)
"""Maximum age of a token with a timestamp (wallet 1: its signing time; wallet 3: utc)."""
MAX_TOKEN_CLOCK_SKEW: Final = timedelta(minutes=5)
"""How far in the future such a timestamp may be: devices' clocks differ."""
MAX_YEAR: Final = 9999
"""Times beyond the calendar are cut to its last day."""

NumberKind = Literal["DPAN", "PAN"]


class TokenRefusalReason(Enum):
    """Why a token is refused: result code, and text for the merchant.

    200.100.601: a part is missing; 602: complete, but must not be accepted; 603: it cannot be decrypted; 200.300.404:
    it is not a token at all.
    """

    MALFORMED = ("200.300.404", "is not a token of this wallet")
    UNKNOWN_FORMAT = ("200.100.602", "has a format that is not offered")
    TAMPERED = ("200.100.602", "was altered: its signature does not hold")
    UNTRUSTED = ("200.100.602", "is not signed by the wallet's provider: no configured root vouches for its signer")
    EXPIRED = ("200.100.602", "has expired: ask the wallet for a new one")
    FROM_THE_FUTURE = ("200.100.602", "says that it was made in the future")
    REPLAYED = ("200.100.602", "was used already: ask the wallet for a new one")
    AMOUNT_DIFFERS = ("200.100.602", "was made for another amount or currency than this payment's")
    OTHER_RECIPIENT = ("200.100.602", "was made for another recipient")
    WRONG_KEY = ("200.100.603", "is encrypted for a key that this channel does not have")
    UNDECIPHERABLE = ("200.100.603", "cannot be decrypted: it was altered, or it is encrypted for another key")
    INCOMPLETE = ("200.100.601", "lacks card data that a payment needs")
    NO_KEYS = ("600.200.500", "cannot be opened: this channel has no keys for the wallet")

    def __init__(self, code: str, words: str) -> None:
        self.code = code
        self.words = words


class WalletTokenRefusedError(Exception):
    """The token is refused. The text names the reason and the part at fault, never the token's contents."""

    def __init__(self, reason: TokenRefusalReason, detail: str = "") -> None:
        super().__init__(f"{reason.words} ({detail})" if detail else reason.words)
        self.reason = reason
        self.code = reason.code


@dataclass(frozen=True, slots=True, kw_only=True)
class DecryptedToken:
    """A token's contents.

    ``expiry_month`` has two digits, ``expiry_year`` four. ``kind``: the number is a device number (DPAN) or the card's
    (PAN). ``cryptogram`` and ``eci`` prove the shopper's authentication on the device; a PAN has none. ``money``: where
    the format carries it. ``token_id`` identifies the token, however it is wrapped; after ``until`` (real time) the
    token is refused anyway.
    """

    number: Secret
    expiry_month: str
    expiry_year: str
    kind: NumberKind
    token_id: str
    until: datetime
    holder: str = ""
    cryptogram: Secret | None = None
    eci: str | None = None
    money: Money | None = None

    def digest(self, wallet: str) -> bytes:
        """32 bytes that identify this token among all of its wallet."""
        return sha256(f"{wallet}:{self.token_id}".encode()).digest()
