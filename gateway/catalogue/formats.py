"""The specification's format notation as values: N, A, AN, decimal amounts, dates, value lists.

A :class:`Format` is everything there is to know of one cell of a "Format" column: the words a reader sees, the
test a value must pass, what the error says, one example that keeps it and one that breaks it, and its JSON Schema.
Source: Part A, "Resources and their fields"; rulings D22-D26.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from gateway.catalogue import iso

# Refused everywhere: control characters, line and paragraph separators, lone surrogates, and the marks that
# reorder text on a clerk's screen (D22 speaks of control characters; the last group lets one name look like another).
_UNPRINTABLE = "\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff"
PRINTABLE = f"[^{_UNPRINTABLE}]"
NAME_MARKS = " .,'’-/"

Test = Callable[[str], object]
Explain = Callable[[str], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format cell.

    ``words``: the spec's notation. ``expects``: the sentence an error gives ("must be …"). ``fits``: truthy for a
    well-formed value. ``explain``: a better sentence for one certain wrong value, or None. ``example`` and
    ``counterexample``: one value that fits and one that does not. ``values``: the closed list, if there is one.
    ``empty_is_value``: the spec allows length 0, so an empty value is a value and not an absence (D16).
    """

    words: str
    expects: str
    fits: Test
    example: str
    counterexample: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    values: tuple[str, ...] = ()
    explain: Explain | None = None
    empty_is_value: bool = False

    def problem(self, value: str) -> str | None:
        """None when ``value`` fits, else the sentence that says what is allowed."""
        if self.fits(value):
            return None
        if self.explain is not None and (better := self.explain(value)):
            return better
        return f"{self.expects}, e.g. {self.example}" if self.example and not self.values else self.expects

    def eg(self, example: str, counterexample: str | None = None) -> Format:
        """The same format with an example of its own for the docs."""
        return replace(self, example=example, counterexample=counterexample or self.counterexample)


def _pattern(expression: str) -> Test:
    return re.compile(expression).fullmatch


def _span(low: int, high: int) -> str:
    return f"{high}" if low == high else f"{low}-{high}" if low else f"up to {high}"


def _counted(low: int, high: int, unit: str) -> str:
    if low == high:
        return f"exactly {high} {unit}"
    return f"{low} to {high} {unit}" if low > 1 else f"at most {high} {unit}"


def _length_note(high: int, low: int, expects: str) -> Explain:
    def explain(value: str) -> str | None:
        if len(value) > high or len(value) < low:
            return f"{expects}; {len(value)} were sent"
        if re.search(f"[{_UNPRINTABLE}]", value):
            return f"{expects}; control characters are not allowed"
        return None

    return explain


def AN(low: int, high: int, *, words: str = "") -> Format:
    """Any printable characters, ``low`` to ``high`` of them. Length 0 makes an empty value a value."""
    expects = f"must be {_counted(low, high, 'characters')}"
    example = "Example text"[:high] if low <= 12 else "Example text".ljust(low, "x")
    return Format(
        words=words or f"AN {_span(low, high)}",
        expects=expects,
        fits=_pattern(f"{PRINTABLE}{{{low},{high}}}"),
        example=example.strip().ljust(low, "x"),
        counterexample="x" * (high + 1),
        schema={"type": "string", "minLength": low, "maxLength": high},
        explain=_length_note(high, low, expects),
        empty_is_value=low == 0,
    )


def AN_UP_TO(high: int) -> Format:
    """ "AN up to n": one character at least, since an empty value counts as absent."""
    return AN(1, high, words=f"AN up to {high}")


def N(low: int, high: int, *, words: str = "") -> Format:
    """Digits 0-9 only; digits of other scripts are refused."""
    return Format(
        words=words or (f"N{high}" if low == high else f"N {_span(low, high)}"),
        expects=f"must be {_counted(low, high, 'digits')}",
        fits=_pattern(f"[0-9]{{{low},{high}}}"),
        example="123456789012345678901234567890"[: max(low, min(high, 4))],
        counterexample="12a4"[: max(low, 3)],
        schema={"type": "string", "pattern": f"^[0-9]{{{low},{high}}}$"},
    )


def chars(what: str, one: str, low: int, high: int, *, example: str, bad: str = "!", words: str = "") -> Format:
    """A stated class of characters: ``what`` names it in words, ``one`` is the regular expression of one character."""
    return Format(
        words=words or f"{what}, {_span(low, high)}",
        expects=f"must be {_counted(low, high, 'characters')} out of {what}",
        fits=_pattern(f"{one}{{{low},{high}}}"),
        example=example,
        counterexample=bad,
        schema={"type": "string", "pattern": f"^{one}{{{low},{high}}}$"},
    )


def literal(words: str, expression: str, *, expects: str, example: str, bad: str) -> Format:
    """A shape of its own, given as a regular expression."""
    return Format(
        words=words,
        expects=expects,
        fits=_pattern(expression),
        example=example,
        counterexample=bad,
        schema={"type": "string", "pattern": f"^(?:{expression})$"},
    )


def one_of(*values: str, words: str = "", also: tuple[str, ...] = ()) -> Format:
    """A closed list. ``also``: regular spellings accepted beside the spec's own odd ones (D25)."""
    allowed = frozenset(values) | frozenset(also)
    listed = ", ".join((*values, *also))
    return Format(
        words=words or " or ".join([", ".join(values[:-1]), values[-1]] if len(values) > 1 else values),
        expects=f"must be one of {listed}" if len(allowed) > 1 else f"must be {listed}",
        fits=allowed.__contains__,
        example=values[0],
        counterexample="NOT_IN_THE_LIST",
        schema={"type": "string", "enum": [*values, *also]},
        values=(*values, *also),
    )


def listed(words: str, allowed: frozenset[str], *, kind: str, example: str, bad: str, ref: str) -> Format:
    """A code out of a published list (ISO 4217, ISO 3166-1) that is too long to print in an error."""
    return Format(
        words=words,
        expects=f"must be {kind}",
        fits=allowed.__contains__,
        example=example,
        counterexample=bad,
        schema={"$ref": f"#/components/schemas/{ref}"},
    )


def number_between(low: int, high: int, *, words: str, width: int | None = None) -> Format:
    """A whole number in a range. ``width`` fixes the digits ("01 to 12", D23); without it no leading zero."""
    shape = re.compile(f"[0-9]{{{width}}}" if width else "0|[1-9][0-9]*")
    low_text, high_text = (str(low).zfill(width or 1), str(high).zfill(width or 1))

    def fits(value: str) -> bool:
        return len(value) <= len(high_text) and bool(shape.fullmatch(value)) and low <= int(value) <= high

    return Format(
        words=words,
        expects=f"must be a number from {low_text} to {high_text}" + (f", {width} digits" if width else ""),
        fits=fits,
        example=low_text,
        counterexample=str(high + 1),
        schema={"type": "string", "pattern": _range_pattern(low, high, width)},
    )


def _range_pattern(low: int, high: int, width: int | None) -> str:
    if high - low > 100:
        return f"^[0-9]{{{width}}}$" if width else f"^[0-9]{{1,{len(str(high))}}}$"
    return "^(?:" + "|".join(str(n).zfill(width or 1) for n in range(low, high + 1)) + ")$"


def person(low: int, high: int, *, words: str, digits: bool = False) -> Format:
    """People's and places' names: Unicode letters, combining marks, inner space and ``. , ' - /`` (D22)."""
    ascii_run = re.compile(f"[A-Za-z{'0-9' if digits else ''}{re.escape(NAME_MARKS)}]{{{low},{high}}}").fullmatch

    def fits(value: str) -> bool:
        if value[:1] == " " or value[-1:] == " ":
            return False
        if ascii_run(value):
            return True
        return low <= len(value) <= high and all(
            c.isalpha() or c in NAME_MARKS or unicodedata.category(c)[0] == "M" or (digits and c in "0123456789")
            for c in value
        )

    return Format(
        words=words,
        expects=f"must be {_counted(low, high, 'characters')}: letters of any script, "
        + ("digits, " if digits else "")
        + "inner spaces and . , ' - /",
        fits=fits,
        example="Zoë O'Neil"[: max(high, 3)],
        counterexample="<script>",
        schema={"type": "string", "minLength": low, "maxLength": high},
    )


def _decimal(words: str, expression: str, expects: str, example: str) -> Format:
    shape = re.compile(expression)

    def explain(value: str) -> str | None:
        if re.fullmatch(r"[0-9]{1,10}\.[0-9]|[0-9]{1,10}\.[0-9]{3,}", value):
            return f"must have exactly two decimals, e.g. {(value + '0')[: value.index('.') + 3]}"
        if re.fullmatch(r"[0-9]{1,10},[0-9]{1,2}", value):
            return f"takes a dot as the decimal separator, e.g. {value.replace(',', '.').ljust(len(value), '0')}"
        if value[:1] in "+-" and shape.fullmatch(value[1:]):
            return f"must not carry a sign, e.g. {value[1:]}"
        return None

    return Format(
        words=words,
        expects=expects,
        fits=shape.fullmatch,
        example=example,
        counterexample="92.1",
        schema={"type": "string", "pattern": f"^{expression}$"},
        explain=explain,
    )


AMOUNT = _decimal(
    "decimal amount",
    r"[0-9]{1,10}(?:\.[0-9]{2})?",
    "must be up to 10 digits, optionally a dot and exactly two decimals",
    "92.00",
)
"""Up to 10 integer digits, optionally a dot and exactly two decimals."""

AMOUNT_WITH_DOT = _decimal(
    "1-10 integer digits, dot, 2 decimals",
    r"[0-9]{1,10}\.[0-9]{2}",
    "must be 1 to 10 digits, a dot and two decimals",
    "92.00",
)


def _is_date(value: str) -> bool:
    if not re.fullmatch(r"(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}", value):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_date_time(value: str) -> bool:
    if not re.fullmatch(r"(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}", value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


DATE = Format(
    words="date",
    expects="must be a date yyyy-MM-dd of a year 19xx or 20xx",
    fits=_is_date,
    example="2026-05-14",
    counterexample="2026-02-30",
    schema={"type": "string", "format": "date", "pattern": "^(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}$"},
)
DATE_TIME = Format(
    words="yyyy-MM-dd HH:mm:ss",
    expects="must be a date and time yyyy-MM-dd HH:mm:ss, 24 hours",
    fits=_is_date_time,
    example="2026-05-14 17:00:00",
    counterexample="2026-05-14T17:00:00",
    schema={"type": "string", "pattern": "^(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$"},
)
BOOLEAN = one_of("true", "false", words="true or false")
MONTH = number_between(1, 12, words="N2, 01 to 12", width=2)
YEAR = literal("N4, 19xx or 20xx", "(?:19|20)[0-9]{2}", expects="must be a year 19xx or 20xx", example="2034", bad="34")
LANGUAGE = chars("upper-case letters", "[A-Z]", 2, 2, example="DE", bad="de", words="2 uppercase letters")

CURRENCY = listed(
    "A3 uppercase, ISO 4217", iso.CURRENCIES, kind="a currency of ISO 4217 in capitals",
    example="EUR", bad="eur", ref="Currency",
)  # fmt: skip
COUNTRY = listed(
    "A2, ISO 3166-1", iso.COUNTRIES_2, kind="a country of ISO 3166-1 in two capitals",
    example="DE", bad="XQ", ref="Country",
)  # fmt: skip
COUNTRY_3 = listed(
    "3 chars, ISO 3166-1 alpha-3", iso.COUNTRIES_3, kind="a country of ISO 3166-1 in three capitals",
    example="DEU", bad="DE", ref="Country3",
)  # fmt: skip


def phone(low: int, high: int, *, words: str, slash: bool = True) -> Format:
    """First character + or digit, then digits, space, dot, parentheses, hyphen and, mostly, slash."""
    return literal(
        words,
        rf"[+0-9][0-9 .(){'/' if slash else ''}-]{{{low - 1},{high - 1}}}",
        expects=f"must be {_counted(low, high, 'characters')}: + or a digit first, then digits, spaces, dots, "
        + f"parentheses, {'slashes, ' if slash else ''}hyphens",
        example="+49 89 1234567",
        bad="call me",
    )


def _is_absolute_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(re.fullmatch("[A-Za-z][A-Za-z0-9+.-]*", parts.scheme)) and bool(parts.netloc or parts.path)


def url(low: int, high: int, *, words: str, web_only: bool = False) -> Format:
    """An absolute address; ``javascript:``, ``data:``, ``file:`` are refused, app schemes pass unless ``web_only``."""
    printable = re.compile(f"[^\\s{_UNPRINTABLE}]{{{low},{high}}}").fullmatch
    refused = frozenset({"javascript", "data", "file", "vbscript", "blob", "about"})

    def fits(value: str) -> bool:
        if not printable(value) or not _is_absolute_url(value):
            return False
        scheme = value.split(":", 1)[0].lower()
        if scheme in ("http", "https"):
            return bool(urlsplit(value).hostname)
        return not web_only and scheme not in refused

    return Format(
        words=words,
        expects=f"must be an absolute address of at most {high} characters without spaces",
        fits=fits,
        example="https://shop.example/result",
        counterexample="/result",
        schema={"type": "string", "format": "uri", "minLength": low, "maxLength": high},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MapKey:
    """The key of a map parameter, e.g. ``name`` of ``customParameters[name]``."""

    words: str
    fits: Test
    pattern: str
    example: str


def map_key(words: str, one: str, low: int, high: int, example: str) -> MapKey:
    expression = f"{one}{{{low},{high}}}"
    return MapKey(words=words, fits=_pattern(expression), pattern=expression, example=example)


KEY = map_key("3 to 64 letters, digits, dots, underscores", "[A-Za-z0-9._]", 3, 64, "orderRef")
BRAND_KEY = map_key("1 to 32 letters, digits, underscores", "[A-Za-z0-9_]", 1, 32, "VISA")

EMPTY: Mapping[str, str] = MappingProxyType({})


def worded(words: str, form: Format) -> Format:
    """The same format as another cell of the spec writes it."""
    return replace(form, words=words)


def comma_list(words: str, *allowed: str) -> Format:
    """Values out of a closed list, separated by commas without spaces; as many elements as the list has, at most."""
    known = frozenset(allowed)

    def fits(value: str) -> bool:
        return known.issuperset(value.split(",", len(allowed)))

    return Format(
        words=words,
        expects=f"must be a comma-separated list out of {', '.join(allowed)}",
        fits=fits,
        example=",".join(allowed[:2]),
        counterexample="QQ",
        schema={"type": "string", "pattern": f"^(?:{'|'.join(allowed)})(?:,(?:{'|'.join(allowed)}))*$"},
        values=allowed,
    )


def value_list(*values: str, also: tuple[str, ...] = ()) -> Format:
    """A closed list whose cell simply lists the values, by commas."""
    return one_of(*values, words=", ".join(values), also=also)
