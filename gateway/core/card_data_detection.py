"""Detects and masks card numbers and security codes in free text, in any notation. The only detector in the system.

A number counts when it has 13 to 19 digits (12 for Maestro) in a range that a card brand uses, the length of that
brand and a valid check digit. Digits may be of any script, with blanks, dots, hyphens, slashes, underscores or colons
between groups, and with list separators or brackets around the groups that cards are printed in. A security code
counts next to a keyword for it ("cvc2: 737"). Times, amounts, decimals, hexadecimal ids, IBANs, EANs and telephone
numbers are left alone. Linear in the length of the text.
Source: docs/decisions/0052-card-data-in-free-text.md.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from gateway.core.brands import CARD_BRANDS

MIN_PAN_DIGITS: Final = 13
"""Shortest number, in digits, that is masked in stored text; text that is only displayed is masked from 12 digits."""
MAX_PAN_DIGITS: Final = 19
_BIN: Final = 8
"""Length of the longest brand prefix, in digits."""

_BLANKS: Final = r"\s\u00ad\u180e\u200b-\u200f\u2060\ufeff"
_HYPHENS: Final = r"\-\u2010-\u2015\u2043\u2212\ufe58\ufe63\uff0d"
_DOTS: Final = r".\u00b7\u2022\u2024\u2027\u2219\u30fb\u3002\uff0e"
_SLASHES: Final = r"/\u2044\u2215\uff0f"
_OTHERS: Final = r"_\uff3f:\uff1a\ufe55+"
_LISTING: Final = ",;|'’~=#*\\"
"""Separators that mostly stand between different numbers: they count only in the groups that cards are printed in."""
_BRACKETS: Final = "()[]{}<>"
"""Brackets: around a group they count like list separators, whatever the grouping."""
_SEPARATOR: Final = (
    r"(?:%(?:20|09|2[DdEeFfBbCc]|3[AaBb]|5[Ff]|[Cc]2%[Aa]0|[Ee]2%80%[0-9A-Fa-f]{2})"
    r"|&(?:nbsp|\#160|\#x[Aa]0|thinsp|ndash|shy);"
    r"|\\u(?:00[Aa][0Dd]|20[0-9A-Fa-f]{2}|2212|3000|[Ff][Ee][Ff][Ff])|\\[nrt/]"
    rf"|[{_BLANKS}{_HYPHENS}{_DOTS}{_SLASHES}{_OTHERS}{re.escape(_LISTING + _BRACKETS)}])"
)
_BETWEEN: Final = rf"{_SEPARATOR}{{1,3}}"

_PRECHECK: Final = re.compile(rf"\d(?:{_SEPARATOR}{{0,3}}\d){{11}}")
"""Cheap first test of every text: twelve digits with at most separators between them."""

# Tokens that hold digits but are not card numbers, then chains of digits.
_TOKENS: Final = re.compile(
    rf"""
    (?P<skip>
        (?<![0-9A-Za-z])[0-9A-Fa-f]{{8}}-(?:[0-9A-Fa-f]{{4}}-){{3}}[0-9A-Fa-f]{{12}}(?![0-9A-Za-z])
      | (?<![0-9A-Za-z%])(?=[0-9]*[A-Fa-f])[0-9A-Fa-f]{{24,128}}(?![0-9A-Za-z])
      | (?<![0-9])(?:19|20)[0-9]{{2}}-[01][0-9]-[0-3][0-9]
        (?:(?:[ T]|%20)[0-2][0-9](?::|%3[Aa])[0-5][0-9](?:(?::|%3[Aa])[0-6][0-9](?:[.,][0-9]{{1,9}})?)?
           (?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?(?![0-9])
      | (?<![0-9])(?:19|20)[0-9]{{2}}[01][0-9][0-3][0-9]T[0-2][0-9][0-5][0-9][0-6][0-9](?![0-9])
      | (?<![0-9.])[0-9]{{4}}\.[0-9]{{4}}\.[0-9]{{4}}(?![0-9.])
      | (?<![0-9.])[0-9]{{1,6}}\.[0-9]{{7,}}(?![0-9.])
    )
    | (?P<escape>(?!%[Bb][0-9]{{12,19}}\^)%[0-9A-Fa-f]{{2}}|\\u[0-9A-Fa-f]{{4}})
    | (?P<iban>(?<![0-9A-Za-z])[A-Z]{{2}}[0-9]{{2}}(?:[ ]?[A-Z0-9]{{4}}){{2,7}}(?:[ ]?[A-Z0-9]{{1,3}})?(?![0-9A-Za-z]))
    | (?P<chain>\d+(?:{_BETWEEN}\d+)*)
    """,
    re.VERBOSE,
)
_CHAIN: Final = re.compile(rf"\d+(?:{_BETWEEN}\d+)*")
_GROUP: Final = re.compile(rf"(?P<between>{_SEPARATOR})|(?P<digits>\d+)")

_NOT_DIGITS: Final = bytes(range(256)).translate(None, b"0123456789")
THREE_DIGITS_PATTERN: Final = re.compile(r"\d\D*\d\D*\d")
"""Cheap first test for security codes: the shortest has three digits."""
_CODE_WORDS: Final = (
    r"cvv2?|cvc2?|cvn2?|csc|cav2|dtvc"
    r"|(?:card[ _-]?)?security[ _-]?(?:code|number)|card[ _-]?(?:verification|validation)[ _-]?(?:code|value|number)?"
    r"|karten-?pr(?:ü|ue|u\u0308)f(?:nummer|ziffer|code|zahl)|pr(?:ü|ue|u\u0308)f(?:nummer|ziffer|code)"
    r"|sicherheits(?:code|nummer)|kpn"
    r"|code[ _-]de[ _-]s[eé]curit[eé]|cryptogramme(?:[ _-]visuel)?|c[oó]digo[ _-]de[ _-]segur(?:idad|an[çc]a)"
    r"|codice[ _-]di[ _-]sicurezza|card[ _-]?code|(?-i:CID)(?![A-Za-z0-9])"
)
_CODE: Final = r"\d(?:[ .\-]?\d){2,3}"
_FILLING: Final = r"[^\w\n]{0,6}(?:(?:is|ist|was|war|lautet|code|number|nummer|value|nr|no)[^\w\n]{1,6})?"
_SECURITY_CODES: Final = re.compile(
    rf"(?<![A-Za-z])(?:{_CODE_WORDS})"
    rf"(?:(?:{_FILLING})(?P<after>{_CODE})(?![\d])"
    # On the next line: after a colon, or alone on it. Other text that begins with three digits there is unrelated.
    rf"|[^\w\n]{{0,4}}[:=][^\w\n]{{0,3}}\n\s{{0,4}}(?P<told>{_CODE})(?![\d]|[.,:/-]\d)"
    rf"|[^\w\n]{{0,4}}\n\s{{0,4}}(?P<alone>{_CODE})(?=[^\w\n]{{0,4}}(?:\n|\Z)))"
    rf"|(?<![\d.,])(?P<before>\d{{3,4}})[^\w\n]{{1,3}}(?:{_CODE_WORDS})(?![A-Za-z0-9])(?!{_FILLING}\d)",
    re.IGNORECASE,
)
_CODE_PRECHECK: Final = re.compile(
    r"cv[vcn]|csc|cav2|dtvc|secur|segur|sicur|s[eé]cur|verification|validation|pr(?:ü|ue|u\u0308)f|sicherheits|kpn"
    r"|cryptogramme|card[ _-]?code|(?-i:CID)",
    re.IGNORECASE,
)
_TRACK: Final = re.compile(r"\^[^^\n]{2,26}\^[0-9]{7}[^?\s]{0,80}\??|[=D][0-9]{7,40}\??")
"""What follows the number on a magnetic stripe: name, expiry, service code and discretionary data."""

_MIN_CODE_CHARS: Final = len("cvv737")
TextSpan = tuple[int, int]


def _merge_ranges(ranges: Sequence[tuple[str, str]]) -> tuple[list[int], list[int]]:
    """Merge prefix ranges into disjoint intervals of eight digits; returns their starts and their ends."""
    spans = sorted((int(low.ljust(_BIN, "0")), int(high.ljust(_BIN, "9"))) for low, high in ranges)
    starts: list[int] = []
    ends: list[int] = []
    for low, high in spans:
        if starts and low <= ends[-1] + 1:
            ends[-1] = max(ends[-1], high)
        else:
            starts.append(low)
            ends.append(high)
    return starts, ends


_RANGES: Final = {
    length: _merge_ranges([each for brand in CARD_BRANDS.values() if length in brand.lengths for each in brand.ranges])
    for length in range(12, MAX_PAN_DIGITS + 1)
}


def _list_lengths_by_prefix() -> tuple[list[int], list[tuple[int, ...]]]:
    """Eight-digit prefixes at which the possible lengths change, in order, and the lengths from each on."""
    spans = {length: list(zip(*ranges, strict=True)) for length, ranges in _RANGES.items()}
    edges = sorted({0, *(edge for each in spans.values() for low, high in each for edge in (low, high + 1))})
    lengths = [
        tuple(length for length, each in spans.items() if any(low <= edge <= high for low, high in each))
        for edge in edges
    ]
    return edges, lengths


_PREFIXES: Final = _list_lengths_by_prefix()
_EVEN: Final = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def is_in_card_range(digits: str) -> bool:
    """True if a brand has cards with this prefix and of this length."""
    known = _RANGES.get(len(digits))
    if known is None:
        return False
    starts, ends = known
    prefix = int(digits[:_BIN])
    at = bisect_right(starts, prefix) - 1
    return at >= 0 and prefix <= ends[at]


def fold_digits(text: str) -> str:
    """The digits of ``text`` only, those of other scripts as 0 to 9."""
    if text.isascii():
        return text.encode().translate(None, _NOT_DIGITS).decode()
    return "".join(char if char.isascii() else str(unicodedata.decimal(char)) for char in re.findall(r"\d", text))


def find_security_codes(text: str) -> list[TextSpan]:
    """Spans of the security codes that stand next to a keyword for one."""
    if len(text) < _MIN_CODE_CHARS or not _CODE_PRECHECK.search(text):
        return []
    return [match.span(match.lastgroup or 0) for match in _SECURITY_CODES.finditer(text)]


def find_card_numbers(text: str, shortest: int = MIN_PAN_DIGITS) -> Iterator[list[int]]:
    """The positions of the digits of every card number in ``text``."""
    if len(text) < shortest or not _PRECHECK.search(text):
        return
    for match in _TOKENS.finditer(text):
        if (chain := match["chain"]) is not None:
            yield from _find_in_chain(chain, match.start(), shortest, text)
        elif (iban := match["iban"]) is not None and not has_iban_check_digits(iban):
            for part in _CHAIN.finditer(text, *match.span()):
                yield from _find_in_chain(part[0], part.start(), shortest, text)


def is_card_number(digits: str) -> bool:
    """True if a string of digits is a card number: a known range, its length, a valid check digit."""
    return (
        len(digits) >= MIN_PAN_DIGITS and _passes_luhn(_luhn_sums(digits), 0, len(digits)) and is_in_card_range(digits)
    )


def may_contain_card_number(text: str) -> bool:
    """Cheap test whether ``text`` needs a full search for card numbers, which costs up to 2 µs a character."""
    return _PRECHECK.search(text) is not None


def contains_card_data(text: str) -> bool:
    """True if ``text`` contains a card number of 13 digits or more, or a security code."""
    return next(find_card_numbers(text), None) is not None or bool(find_security_codes(text))


def mask_card_data(text: str, star: str = "*", *, shortest: int = MIN_PAN_DIGITS) -> str:
    """``text`` with card numbers reduced to their first six and last four digits and security codes replaced; the same
    object if there are none. ``star``: the replacement for one digit."""
    if not THREE_DIGITS_PATTERN.search(text):
        return text
    places: set[int] = set()
    tails: list[TextSpan] = []
    for number in find_card_numbers(text, shortest):
        places.update(number[6 if len(number) >= MIN_PAN_DIGITS else 0 : -4])
        if track := _TRACK.match(text, number[-1] + 1):
            tails.append((track.start() + 1, track.end()))
    codes = find_security_codes(text)
    if not places and not codes:
        return text
    for start, end in (*codes, *tails):
        places.update(at for at in range(start, end) if text[at].isdecimal())
    return "".join(star if at in places else char for at, char in enumerate(text))


def has_iban_check_digits(text: str) -> bool:
    """True if the IBAN check digits are right; country and length are not checked."""
    packed = text.replace(" ", "")
    return int("".join(str(int(char, 36)) for char in packed[4:] + packed[:4])) % 97 == 1


def _find_in_chain(chain: str, offset: int, shortest: int, text: str) -> Iterator[list[int]]:
    """The card numbers in one chain of groups; each begins and ends at a group's boundary."""
    if len(chain) < shortest:
        return
    groups: list[TextSpan] = []
    between: list[str] = [""]
    places: list[int] = []
    for group in _GROUP.finditer(chain):
        if (digits := group["digits"]) is None:
            # An escape stands for a character of its own, never for a list separator.
            between[-1] += group[0] if len(group[0]) == 1 else " "
            continue
        if len(digits) > MAX_PAN_DIGITS:
            # No card number has so many digits in a row: the chain breaks here.
            groups.append((len(places), len(places)))
            between.append("\0")
        else:
            groups.append((len(places), len(places) + len(digits)))
            places.extend(range(group.start(), group.end()))
            between.append("")
    if len(places) < shortest:
        return
    plain = "".join([chain[at] for at in places])
    digits = plain if plain.isascii() else fold_digits(plain)
    sums = _luhn_sums(digits)
    # The first group of those that end at one digit; a group without digits follows it.
    groups_by_end = {end: at for at, (start, end) in reversed([*enumerate(groups)]) if end > start}
    for first, (start, first_end) in enumerate(groups):
        if start == first_end:
            continue
        # Thirteen digits are an EAN only where no longer number follows them: in doubt they are masked.
        whole = first + 1 == len(groups) or groups[first + 1][1] > first_end
        for length in _find_card_lengths(digits[start : start + _BIN]):
            last = groups_by_end.get(start + length)
            if (
                last is not None
                and length >= shortest
                and _passes_luhn(sums, start, start + length)
                and not any("\0" in separator for separator in between[first + 1 : last + 1])
                and _is_printed_grouping(groups[first : last + 1], between[first + 1 : last + 1])
                and not _is_other_number(
                    digits[start : start + length], whole and first == last, first == 0 and _follows_plus(text, offset)
                )
            ):
                yield [offset + at for at in places[start : start + length]]
        if digits[start] == "0" and (padded := _find_padded(digits[start:first_end])):
            yield [offset + at for at in places[first_end - padded : first_end]]


def _find_padded(digits: str) -> int:
    """The length of the card number behind the zeros that fill a field of fixed width; 0 for none."""
    number = digits.lstrip("0")
    return len(number) if is_card_number(number) and not _is_other_number(number, whole=True, after_plus=False) else 0


def _find_card_lengths(prefix: str) -> tuple[int, ...]:
    """How many digits cards with these first eight may have, in order; none for fewer digits."""
    edges, lengths = _PREFIXES
    return lengths[bisect_right(edges, int(prefix)) - 1] if len(prefix) == _BIN else ()


def _luhn_sums(digits: str) -> tuple[list[int], list[int]]:
    """Running Luhn sums, doubling the digits at even positions, and those at odd positions."""
    sums: tuple[list[int], list[int]] = ([0], [0])
    for at, char in enumerate(digits):
        digit = int(char)
        sums[0].append(sums[0][-1] + (_EVEN[digit] if at % 2 == 0 else digit))
        sums[1].append(sums[1][-1] + (_EVEN[digit] if at % 2 else digit))
    return sums


def _passes_luhn(sums: tuple[list[int], list[int]], start: int, end: int) -> bool:
    """True if the Luhn check passes: the last digit is not doubled, the one before it is."""
    running = sums[end % 2]
    return (running[end] - running[start]) % 10 == 0


def _is_printed_grouping(groups: Sequence[TextSpan], between: Sequence[str]) -> bool:
    """True if a card number may be written in these groups with these separators."""
    lengths = [end - start for start, end in groups]
    if len(lengths) == 1:
        return True
    head, last = lengths[:-1], lengths[-1]
    if any(sign in _LISTING or sign in _BRACKETS for separator in between for sign in separator):
        bare = {
            "".join(sign for sign in separator if sign not in _BRACKETS and not sign.isspace()) for separator in between
        }
        return len(bare) == 1 and ((set(head) == {4} and last <= 4) or head == [4, 6])
    if all(length >= 4 for length in head) and last >= 3:
        return True
    if len(set(between)) > 1:
        return False
    return (all(2 <= length <= 6 for length in head) and last <= 6) or (len(set(head)) == 1 and last <= head[0])


def _is_other_number(digits: str, whole: bool, after_plus: bool) -> bool:
    """True for other numbers: 13 digits that are an EAN, or up to 15 after a plus (a telephone number)."""
    if after_plus and len(digits) <= 15:
        return True
    if not whole or len(digits) != 13:
        return False
    return sum(int(char) * (3 if at % 2 else 1) for at, char in enumerate(digits)) % 10 == 0


def _follows_plus(text: str, at: int) -> bool:
    return at > 0 and text[at - 1] == "+" and (at == 1 or not (text[at - 2].isalnum() or text[at - 2] in "=%&"))
