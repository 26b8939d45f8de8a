"""The Luhn check digit (ISO/IEC 7812-1, annex B)."""

import re
from typing import Final

_DIGITS: Final = re.compile(r"[0-9]{2,}")
# What a digit in a doubled position adds: 7 -> 14 -> 1 + 4.
_DOUBLED: Final = str.maketrans("0123456789", "0246813579")


def is_luhn_valid(number: str) -> bool:
    """True when `number` is two or more ASCII digits and its last digit is the right check digit."""
    if not _DIGITS.fullmatch(number):
        return False
    return (sum(map(int, number[-1::-2])) + sum(map(int, number[-2::-2].translate(_DOUBLED)))) % 10 == 0


def compute_check_digit(payload: str) -> str:
    """The check digit for `payload`. ValueError unless `payload` is ASCII digits."""
    for digit in "0123456789":
        if is_luhn_valid(payload + digit):
            return digit
    raise ValueError("payload must be digits")
