"""Facts about a card number that may be used without the number: first and last digits, length, check digit.

Computed once, where the number arrives. Later code uses these facts, and the number itself stays a Secret.
Source: PCI DSS 4.0.1, 3.4.1 and 3.5.1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from gateway.core import brands
from gateway.core.luhn import is_luhn_valid
from gateway.core.secret import Secret

BIN6_DIGITS: Final = 6
BIN8_DIGITS: Final = 8
LAST4_DIGITS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CardNumber:
    """Facts about one card number. ``is_luhn``: its check digit is valid."""

    bin6: str
    bin8: str = field(repr=False)
    last4: str
    length: int
    is_luhn: bool

    @classmethod
    def of(cls, number: Secret) -> CardNumber:
        text = number.reveal()
        return cls(
            bin6=text[:BIN6_DIGITS],
            bin8=text[:BIN8_DIGITS],
            last4=text[-LAST4_DIGITS:],
            length=len(text),
            is_luhn=is_luhn_valid(text),
        )

    @property
    def brand(self) -> str | None:
        """The brand detected from the number. One shorter than any card has none, though its digits begin like one."""
        return brands.detect_brand(self.bin8, length=self.length) if self.length >= brands.MIN_CARD_DIGITS else None

    def fits(self, code: str) -> bool:
        """True if it has a prefix and a length of card brand ``code``."""
        return brands.prefix_fits_brand(code, self.bin8, self.length)

    def has_right_check_digit(self, code: str | None) -> bool:
        """True if the check digit is valid, or the brand (None: unknown) does not use one."""
        card = brands.CARD_BRANDS.get(code) if code else None
        return self.is_luhn or (card is not None and not card.luhn)


def detect_brand_of_number(number: Secret | None, order: Sequence[str] = (), taken: Collection[str] = ()) -> str | None:
    """The brand detected from a number, of a co-badged card's the first in ``order``; None if none matches, it is
    shorter than any card, or there is no number. ``taken``: as in :func:`gateway.core.brands.detect_brand`."""
    digits = number.reveal() if number is not None else ""
    return brands.detect_brand(digits, order, taken=taken) if len(digits) >= brands.MIN_CARD_DIGITS else None


def is_card_expired(month: str | None, year: str | None, now: datetime) -> bool:
    """Whether a card is past its expiry: it is valid until the end of its month."""
    return month is not None and year is not None and f"{year}-{month}" < f"{now:%Y-%m}"
