"""Canaries: card numbers and CVVs each number made for one request, and the disguises in which they are looked for."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

WINDOW = 10
"""So many digits of a number in a row are a leak: the first six and the last four may be shown."""
PREFIXES = {"VISA": ("4", 16), "MASTER": ("5388", 16), "AMEX": ("3782", 15), "DINERS": ("3008", 14)}
BREAKS_AT = "13.00"
SILENT_AT = "14.00"
"""Amounts at which the connector of tests.canary.application breaks, or is silent."""
OWN_CVV = ("CVV as", "silence", "crash", "key", "header")
CARD_WORDS = r"cvv|cvc|csc|dtvc|security.?code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """One request's card. ``label`` says which request it was sent with."""

    label: str
    number: str
    cvv: str


@dataclass(slots=True)
class Aviary:
    """Makes canaries, the same in every run, and finds them. No two have one number; CVVs are too short for that."""

    sent: list[Canary] = field(default_factory=list)
    _chance: random.Random = field(default_factory=lambda: random.Random("canary"))
    _index: dict[bytes, set[str]] = field(default_factory=dict)
    _indexed: int = 0
    _own: int = 0

    def card(self, label: str, *, brand: str = "VISA", valid: bool = True) -> Canary:
        """A card of ``brand``; not ``valid``: its check digit is wrong."""
        start, length = PREFIXES[brand]
        while True:
            digits = start + "".join(self._chance.choices("0123456789", k=length - len(start) - 1))
            check = check_digit(digits)
            number = digits + (check if valid else str((int(check) + 1) % 10))
            cvv = self._cvv(label, brand)
            if cvv not in number:
                break
        made = Canary(label=label, number=number, cvv=cvv)
        self.sent.append(made)
        return made

    def _cvv(self, label: str, brand: str) -> str:
        """No HTTP status, no year, no amount of the requests. CVVs that are sent under odd names are nobody else's."""
        if brand == "AMEX":
            return str(self._chance.randrange(4100, 9900))
        if label.startswith(OWN_CVV):
            self._own += 1
            return str(560 + self._own)
        return str(self._chance.randrange(700, 1000))

    def known(self, label: str, number: str) -> Canary:
        """A card with this number, which has to be one of nobody."""
        made = Canary(label=label, number=number, cvv=self.card(f"{label} (CVV)").cvv)
        self.sent.append(made)
        return made

    def found_in(self, text: str, *, cvvs: bool = True) -> set[str]:
        """Labels of the canaries whose number or CVV stands in ``text``, in clear or thinly disguised."""
        return self.numbers_in(text.encode("utf-8", "replace")) | (self.cvvs_in(text) if cvvs else set())

    def numbers_in(self, octets: bytes) -> set[str]:
        """Labels of the canaries of whose number WINDOW digits in a row stand in these bytes, or a disguise of them."""
        windows = self._windows()
        labels: set[str] = set()
        for digits in runs(octets):
            for at in range(len(digits) - WINDOW + 1):
                labels |= windows.get(digits[at : at + WINDOW], set())
        return labels

    def cvvs_in(self, text: str) -> set[str]:
        """Labels of the canaries whose CVV stands in ``text`` as a value of its own."""
        neutral = _NEUTRAL.sub(" ", text)
        by_cvv = {canary.cvv: canary.label for canary in self.sent}
        return {f"{by_cvv[found[1]]} (CVV {found[1]})" for found in _VALUE.finditer(neutral) if found[1] in by_cvv}

    def keyed_cvvs_in(self, octets: bytes) -> set[str]:
        """Labels of the canaries whose CVV stands behind a word that says so: for files full of other digits."""
        by_cvv = {canary.cvv.encode(): canary.label for canary in self.sent}
        return {
            f"{by_cvv[found[1]]} (CVV {found[1].decode()})" for found in _KEYED.finditer(octets) if found[1] in by_cvv
        }

    def _windows(self) -> dict[bytes, set[str]]:
        if self._indexed != len(self.sent):
            self._index.clear()
            for canary in self.sent:
                for number in (canary.number, canary.number[::-1]):
                    for at in range(len(number) - WINDOW + 1):
                        self._index.setdefault(number[at : at + WINDOW].encode(), set()).add(canary.label)
            self._indexed = len(self.sent)
        return self._index


# Digits, with what may stand between two of them: spaces, dashes, percent escapes.
_BETWEEN = rb"[ +.\-_]|%20|%2[dDbB]|&nbsp;|%3"
_RUN = re.compile(rb"[0-9](?:(?:" + _BETWEEN + rb")?[0-9]){%d,}" % (WINDOW - 1))
_SEPARATOR = re.compile(_BETWEEN)
_HEX = re.compile(rb"(?:3[0-9]){%d,}" % WINDOW)
# Three digits as Base64 always are four characters of these kinds, wherever in a text they begin.
_BASE64 = re.compile(rb"(?:[MNO][DTjz][AEIMQUYcgk][wxyz0-5]){4,}")
# What is no CVV although it is four digits: processes, lines, ports, times, years.
_NEUTRAL = re.compile(r"pid: ?[0-9]+|\[[0-9]+\]|line [0-9]+|port[\"': =]+[0-9]+|[0-9]+ms|[0-9:.+-]*[0-9]:[0-9:.+-]+")
_VALUE = re.compile(r"(?<![0-9A-Za-z.,_/#*-])([0-9]{3,4})(?![0-9A-Za-z._-])")
_KEYED = re.compile(rb"(?i)(?:" + CARD_WORDS.encode() + rb")[^0-9A-Za-z]{1,8}([0-9]{3,4})(?![0-9])")


def runs(octets: bytes) -> Iterator[bytes]:
    """Every run of WINDOW digits or more: in clear, with separators, percent-encoded, as hex, as Base64."""
    for found in _RUN.finditer(octets):
        yield _SEPARATOR.sub(b"", found[0])
    for found in _HEX.finditer(octets):
        yield found[0][1::2]
    for found in _BASE64.finditer(octets):
        yield base64.b64decode(found[0])


def check_digit(payload: str) -> str:
    """Luhn, written anew: the canaries must not lean on what they watch."""
    total = 0
    for at, digit in enumerate(reversed(payload)):
        doubled = int(digit) * (2 - at % 2)
        total += doubled - 9 if doubled > 9 else doubled
    return str(-total % 10)
