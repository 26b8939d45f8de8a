"""Canaries: card numbers, CVVs, other secrets, each made for one request, and the disguises they are looked for in."""

from __future__ import annotations

import base64
import random
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

WINDOW = 11
"""So many digits of a number in a row are a leak: no more than ten may be shown. With ten, digits of times and ids were
mistaken for one of these thousands of numbers in one run of twenty."""
WRITTEN = 13
"""The same where the signs between are left out, so that neighbours of all kinds join up."""
PREFIXES = {"VISA": ("4", 16), "MASTER": ("5388", 16), "AMEX": ("3782", 15), "DINERS": ("3008", 14)}
WRITINGS: dict[str, tuple[int, str]] = {
    "plain": (19, ""), "blanks": (4, " "), "no-break blanks": (4, "\u00a0"), "thin blanks": (4, "\u2009"),
    "dots": (4, "."), "hyphens": (4, "-"), "en dashes": (4, "\u2013"), "slashes": (4, "/"), "underscores": (4, "_"),
    "colons": (4, ":"), "pairs": (2, " "), "threes": (3, "."), "fives": (5, "-"), "sixes": (6, " "),
}  # fmt: skip
"""Name of a writing → digits of a group, what stands between two."""
SCRIPTS = {"full-width": 0xFF10, "Arabic": 0x660, "Devanagari": 0x966}
"""Name of a script → its zero."""
BREAKS_AT = "13.00"
SILENT_AT = "14.00"
"""Amounts at which the connector of tests.canary.application breaks, or is silent."""
OWN_CVV = ("CVV as", "silence", "crash", "key", "header")
OWN_CVVS, SHARED_CVVS, AMEX_CVVS = range(560, 800), range(800, 999), range(4100, 9900)
REHEARSED_CVV = {3: "123", 4: "1234"}
"""What a rehearsal sends: no CVV of a canary."""
CARD_WORDS = r"cvv|cvc|csc|dtvc|security.?code"


def written(number: str, writing: str) -> str:
    """A number in one of WRITINGS or SCRIPTS."""
    if writing in SCRIPTS:
        return "".join(chr(SCRIPTS[writing] + int(digit)) for digit in number)
    size, between = WRITINGS[writing]
    return between.join(number[at : at + size] for at in range(0, len(number), size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """One request's card. ``label`` says which request it was sent with."""

    label: str
    number: str
    cvv: str


@dataclass(slots=True)
class Aviary:
    """Makes canaries, the same in every run, and finds them. No two have one number; CVVs are too short for that.

    ``avoid``: numbers that the product stores or answers of itself, which no CVV may be. A ``rehearsal`` sends one
    CVV only, so that what else comes back is known before.
    """

    sent: list[Canary] = field(default_factory=list)
    avoid: frozenset[str] = frozenset()
    rehearsal: bool = False
    secrets: dict[str, str] = field(default_factory=dict)
    _chance: random.Random = field(default_factory=lambda: random.Random("canary"))
    _index: dict[bytes, set[str]] = field(default_factory=dict)
    _indexed: tuple[int, int] = (0, 0)
    _written: dict[str, str] = field(default_factory=dict)
    _written_of: int = 0
    _by_cvv: dict[str, str] = field(default_factory=dict)
    _by_cvv_of: int = 0
    _secret_texts: list[tuple[bytes, str]] = field(default_factory=list)
    _own: int = 0
    _groups: set[str] = field(default_factory=set)
    _amex_cvvs: set[str] = field(default_factory=set)

    def card(self, label: str, *, brand: str = "VISA", valid: bool = True) -> Canary:
        """A card of ``brand``; not ``valid``: its check digit is wrong."""
        start, length = PREFIXES[brand]
        while True:
            digits = start + "".join(self._chance.choices("0123456789", k=length - len(start) - 1))
            check = check_digit(digits)
            number = digits + (check if valid else str((int(check) + 1) % 10))
            cvv = self._cvv(label, brand)
            groups = {number[at : at + 4] for at in range(0, length, 4)} | {number[-4:]}
            if cvv not in number and cvv not in self._groups and groups.isdisjoint(self._amex_cvvs):
                break
        # A masked number shows its last group, which must be nobody's CVV.
        self._groups |= groups
        self._amex_cvvs |= {cvv} if brand == "AMEX" else set()
        made = Canary(label=label, number=number, cvv=cvv)
        self.sent.append(made)
        return made

    def _cvv(self, label: str, brand: str) -> str:
        """No HTTP status, no year, no number of ``avoid``. A CVV that is sent under an odd name is used once."""
        if self.rehearsal:
            return REHEARSED_CVV[4 if brand == "AMEX" else 3]
        if label.startswith(OWN_CVV):
            free = self._free(OWN_CVVS)
            self._own += 1
            return free[self._own - 1]
        return self._chance.choice(self._free(AMEX_CVVS if brand == "AMEX" else SHARED_CVVS))

    def _free(self, range_: range) -> list[str]:
        return [text for text in map(str, range_) if text not in self.avoid]

    def secret(self, label: str, length: int) -> str:
        """A text of letters that is a secret of its own: a cryptogram, a PIN."""
        return self.known_secret(label, "".join(self._chance.choices("GHJKLMNPQRSTUVWXYZ", k=length)))

    def known_secret(self, label: str, text: str) -> str:
        """``text``, from now on looked for."""
        self.secrets[text] = label
        return text

    def iban(self, label: str, *, wrong_by: int = 0) -> str:
        """A German IBAN whose account number is a canary; ``wrong_by`` spoils its check digits."""
        account = self.card(label).number[:16]
        rest = f"10{account}"
        check = 98 - int(f"{rest}131400") % 97
        return f"DE{(check + wrong_by - 2) % 97 + 2:02d}{rest}"

    def known(self, label: str, number: str) -> Canary:
        """A card with this number, which no real card may have."""
        made = Canary(label=label, number=number, cvv=self.card(f"{label} (CVV)").cvv)
        self.sent.append(made)
        return made

    def found_in(self, text: str, *, cvvs: bool = True) -> set[str]:
        """Labels of the canaries whose number or CVV stands in ``text``, in clear or thinly disguised."""
        found = self.numbers_in(text.encode("utf-8", "replace")) | self.written_in(text)
        return found | (self.cvvs_in(text) if cvvs else set())

    def written_in(self, text: str) -> set[str]:
        """Labels of the canaries whose number stands in ``text`` in digits of any script, with any signs between."""
        if text.isascii() and not _WRITTEN.search(text):
            return set()
        if self._written_of != len(self.sent):
            self._written_of = len(self.sent)
            self._written = {
                canary.number[at : at + WRITTEN]: canary.label
                for canary in self.sent
                for at in range(len(canary.number) - WRITTEN + 1)
            }
        plain = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text if char != "*")
        found: set[str] = set()
        for run in re.findall(rf"[0-9]{{{WRITTEN},}}", re.sub(r"[\W_]+", "", plain)):
            for at in range(len(run) - WRITTEN + 1):
                if (label := self._written.get(run[at : at + WRITTEN])) is not None:
                    found.add(label)
        return found

    def numbers_in(self, octets: bytes, window: int = WINDOW) -> set[str]:
        """Labels of the canaries of whose number ``window`` digits in a row stand in these bytes, or a disguise of
        them; and of secret texts that stand there as they are, or as hex."""
        windows = self._windows(window)
        labels = {f"{label} (secret)" for text, label in self._texts_of_secrets() if text in octets}
        for digits in runs(_TIME.sub(b"T", octets)):
            for at in range(len(digits) - window + 1):
                labels |= windows.get(digits[at : at + window], set())
        return labels

    def cvvs_in(self, text: str) -> set[str]:
        """Labels of the canaries whose CVV stands in ``text`` as a value of its own."""
        neutral = _NEUTRAL.sub(" ", text)
        by_cvv = self._labels_by_cvv()
        return {f"{by_cvv[found[1]]} (CVV {found[1]})" for found in _VALUE.finditer(neutral) if found[1] in by_cvv}

    def keyed_cvvs_in(self, octets: bytes) -> set[str]:
        """Labels of the canaries whose CVV stands behind a word that says so: for files full of other digits."""
        by_cvv = self._labels_by_cvv()
        cvvs = (found[1].decode() for found in _KEYED.finditer(octets))
        return {f"{by_cvv[cvv]} (CVV {cvv})" for cvv in cvvs if cvv in by_cvv}

    def _labels_by_cvv(self) -> dict[str, str]:
        """CVV → label. Made when more have been sent, not for each of the many texts that are searched."""
        if self._by_cvv_of != len(self.sent):
            self._by_cvv_of = len(self.sent)
            self._by_cvv = {canary.cvv: canary.label for canary in self.sent}
        return self._by_cvv

    def _texts_of_secrets(self) -> list[tuple[bytes, str]]:
        """Each secret's text, and its hex, with its label."""
        if len(self._secret_texts) != 2 * len(self.secrets):
            texts = [(text.encode(), label) for text, label in self.secrets.items()]
            self._secret_texts = [*texts, *((text.hex().encode(), label) for text, label in texts)]
        return self._secret_texts

    def _windows(self, window: int) -> dict[bytes, set[str]]:
        if self._indexed != (len(self.sent), window):
            self._index.clear()
            for canary in self.sent:
                for number in (canary.number, canary.number[::-1]):
                    for at in range(len(number) - window + 1):
                        self._index.setdefault(number[at : at + window].encode(), set()).add(canary.label)
            self._indexed = (len(self.sent), window)
        return self._index


# Ten digits with no letter between them: what is looked at twice.
_WRITTEN = re.compile(r"[0-9](?:[\W_]{0,9}[0-9]){9}")
# Digits, with what may stand between two of them: spaces, dashes, percent escapes.
_BETWEEN = rb"[ +.\-_]|%20|%2[dDbB]|&nbsp;|%3"
# A moment with its fraction and zone is fourteen digits, another in each run.
_TIME = re.compile(
    rb"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[T ])?[0-9]{2}:[0-9]{2}:[0-9]{2}[.,][0-9]{1,9}(?:[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_RUN = re.compile(rb"[0-9](?:(?:" + _BETWEEN + rb")?[0-9]){%d,}" % (WINDOW - 1))
_SEPARATOR = re.compile(_BETWEEN)
_HEX = re.compile(rb"(?:3[0-9]){%d,}" % WINDOW)
# Three digits as Base64 always are four characters of these kinds, wherever in a text they begin.
_BASE64 = re.compile(rb"(?:[MNO][DTjz][AEIMQUYcgk][wxyz0-5]){4,}")
# What is no CVV although it is four digits: processes, lines, ports, times, years.
_NEUTRAL = re.compile(
    r"pid: ?[0-9]+|\[[0-9]+\]|line [0-9]+|port[\"': =]+[0-9]+|[0-9]+ms|[0-9:.+-]*[0-9]:[0-9:.+-]+"
    # Durations and distances, which are another in each run.
    r"|(?:Ms|Seconds|_ms|_s)[\"']*[:=] ?-?[0-9]+"
    # Base64 of keys, tokens and proofs: three digits between two of its signs say nothing.
    r"|[A-Za-z0-9+/]{20,}={1,2}|[A-Za-z0-9+/]{40,}"
)
_VALUE = re.compile(r"(?<![0-9A-Za-z.,_/#*-])([0-9]{3,4})(?![0-9A-Za-z._-])")
_KEYED = re.compile(rb"(?i)(?:" + CARD_WORDS.encode() + rb")[^0-9A-Za-z]{1,8}([0-9]{3,4})(?![0-9])")


def numbers_of(text: str) -> set[str]:
    """Every value in ``text`` that could be taken for a CVV."""
    return {found[1] for found in _VALUE.finditer(_NEUTRAL.sub(" ", text))}


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
