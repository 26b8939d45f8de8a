"""The Luhn check digit (ISO/IEC 7812-1, annex B)."""

import re
from typing import Final

_DIGITS: Final = re.compile(r"[0-9]{2,}")
# What a digit in a doubled position adds: 7 -> 14 -> 1 + 4.
_DOUBLED: Final = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def is_luhn_valid(number: str) -> bool:
    """True when `number` is two or more ASCII digits and its last digit is the right check digit."""
    if not _DIGITS.fullmatch(number):
        return False
    digits = [int(digit) for digit in reversed(number)]
    return (sum(digits[0::2]) + sum(_DOUBLED[digit] for digit in digits[1::2])) % 10 == 0


def compute_check_digit(payload: str) -> str:
    """The check digit for `payload`. ValueError unless `payload` is ASCII digits."""
    for digit in "0123456789":
        if is_luhn_valid(payload + digit):
            return digit
    raise ValueError("payload must be digits")
