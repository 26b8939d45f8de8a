"""Money: a decimal amount with its currency.

Amounts in requests and answers are text with no or exactly two decimals, whatever the currency (D26); currencies and
exponents come from ISO 4217 as published (`iso4217` package).
Source: Part A, Resources and their fields (decimal amount); Part B, Payment response (amount).
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Self

import iso4217

_AMOUNT = re.compile(r"[0-9]{1,10}(\.[0-9]{2})?")
_CENT = Decimal("0.01")
_LIMIT = Decimal(10) ** 18  # sums stay far inside the 28 digits Decimal computes with


def _exponents() -> dict[str, int]:
    """Alphabetic code -> number of decimals of the minor unit, for currencies a payment can be made in.

    Left out: units without a minor unit (XXX, XTS, XAU, XDR …), in which nothing can be charged, and the codes
    that ISO marks as funds (BOV, CHE, CHW, CLF, COU, MXV, USN, UYI) with UYW and XAD, units of account of the
    same kind: no card scheme settles in them. The X codes that circulate (XAF, XCD, XCG, XOF, XPF) stay.
    """
    units_of_account = {"UYW", "XAD"}
    exponents: dict[str, int] = {}
    for entry in iso4217.raw_xml.iterfind("CcyTbl/CcyNtry"):
        code, decimals, name = entry.findtext("Ccy"), entry.findtext("CcyMnrUnts", ""), entry.find("CcyNm")
        if code is None or name is None or not decimals.isdecimal():
            continue
        if name.get("IsFund") is None and code not in units_of_account:
            exponents[code] = int(decimals)
    return exponents


_EXPONENT: Final = _exponents()
CURRENCY_CODES: Final = frozenset(_EXPONENT)


class CurrencyMismatchError(ValueError):
    """Amounts of different currencies were combined."""


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in one currency. Any sign, at most two decimals; ValueError for anything else."""

    amount: Decimal
    currency: str

    def __post_init__(self) -> None:
        if not isinstance(self.amount, Decimal):
            raise TypeError("amount must be a Decimal")
        if not self.amount.is_finite() or abs(self.amount) >= _LIMIT:
            raise ValueError("amount must be finite and below 10^18")
        if self.amount != self.amount.quantize(_CENT):
            raise ValueError("amount has at most two decimals")
        if self.currency not in _EXPONENT:
            raise ValueError(f"unknown currency {self.currency!r}")

    @classmethod
    def parse(cls, amount: str, currency: str) -> Self:
        """From an API amount: "92" or "92.00". ValueError for "92.0", "1e3", "-1", an unknown currency."""
        return cls(parse_amount(amount), currency)

    @classmethod
    def zero(cls, currency: str) -> Self:
        return cls(Decimal(0), currency)

    def text(self) -> str:
        """Always two decimals, a dot, no grouping: "92.00"."""
        return format_amount(self.amount)

    def minor_units(self) -> int:
        """The amount in minor units, as host messages carry it: JPY 92 -> 92, BHD 1.25 -> 1250.

        ValueError when the amount is finer than the currency, which `fits_currency` refuses beforehand.
        """
        units = self.amount.scaleb(_EXPONENT[self.currency])
        if units != units.to_integral_value():
            raise ValueError(f"{self.text()} is finer than the minor unit of {self.currency}")
        return int(units)

    @classmethod
    def from_minor_units(cls, units: int, currency: str) -> Self:
        """From a host message's minor units. ValueError when the result needs a third decimal."""
        return cls(Decimal(units).scaleb(-currency_exponent(currency)), currency)

    def _same(self, other: "Money") -> Decimal:
        if self.currency != other.currency:
            raise CurrencyMismatchError(f"{self.currency} and {other.currency}")
        return other.amount

    def __add__(self, other: "Money") -> "Money":
        return Money(self.amount + self._same(other), self.currency)

    def __sub__(self, other: "Money") -> "Money":
        return Money(self.amount - self._same(other), self.currency)

    def __neg__(self) -> "Money":
        return Money(-self.amount, self.currency)

    def __lt__(self, other: "Money") -> bool:
        return self.amount < self._same(other)

    def __le__(self, other: "Money") -> bool:
        return self.amount <= self._same(other)

    def __gt__(self, other: "Money") -> bool:
        return self.amount > self._same(other)

    def __ge__(self, other: "Money") -> bool:
        return self.amount >= self._same(other)

    def __bool__(self) -> bool:
        return bool(self.amount)

    def __str__(self) -> str:
        return f"{self.text()} {self.currency}"


def parse_amount(text: str) -> Decimal:
    """Parse an API amount: up to 10 integer digits, then nothing or a dot and two decimals; else ValueError."""
    if not _AMOUNT.fullmatch(text):
        raise ValueError("an amount is up to 10 digits, then nothing or a dot and two decimals")
    return Decimal(text)


def format_amount(amount: Decimal) -> str:
    """Two decimals, as in every answer (D13). ValueError when that would round."""
    quantized = amount.quantize(_CENT)
    if quantized != amount:
        raise ValueError("amount has more than two decimals")
    return format(quantized, "f")


def is_known_currency(currency: str) -> bool:
    """True for an active ISO 4217 code that payments are made in; upper case only."""
    return currency in _EXPONENT


def currency_exponent(currency: str) -> int:
    """Decimals of the minor unit: EUR 2, JPY 0, BHD 3. KeyError for an unknown currency."""
    return _EXPONENT[currency]


def currency_number(currency: str) -> str:
    """The three digits of ISO 4217 for a currency: EUR is 978. ISO 8583 and EMV 3-D Secure name currencies so."""
    return f"{iso4217.Currency(currency).number:03}"


def fits_currency(amount: Decimal, currency: str) -> bool:
    """False for a fraction in a currency that has none (JPY 92.50); KeyError if unknown (D26)."""
    return currency_exponent(currency) > 0 or amount == amount.to_integral_value()
