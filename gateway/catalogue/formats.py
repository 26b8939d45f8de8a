"""The formats of amounts, dates, codes, names, telephone numbers and addresses, built from the spec's notation.

Source: Part A, "Resources and their fields"; rulings D22-D26.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from datetime import date, datetime
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from gateway.catalogue import iso
from gateway.catalogue.notation import (
    AN,
    AN_UP_TO,
    PRINTABLE_CLASS,
    UNPRINTABLE,
    Format,
    FormatTest,
    N,
    chars,
    code_list,
    comma_list,
    compile_test,
    describe_length,
    literal,
    number_between,
    one_of,
    publish_values,
    value_list,
    with_words,
)
from gateway.core import money

__all__ = [
    "AMOUNT",
    "AMOUNT_WITH_DOT",
    "AN",
    "AN_UP_TO",
    "BOOLEAN",
    "BRAND_KEY",
    "COUNTRY",
    "COUNTRY_3",
    "CURRENCY",
    "CUSTOM_PARAMETER_KEY",
    "DATE",
    "DATE_TIME",
    "LANGUAGE",
    "MONTH_NUMBER",
    "PRINTABLE_CLASS",
    "YEAR_NUMBER",
    "Format",
    "MapKey",
    "N",
    "chars",
    "code_list",
    "comma_list",
    "literal",
    "map_key",
    "number_between",
    "one_of",
    "person_name",
    "phone",
    "publish_values",
    "url",
    "value_list",
    "with_words",
]

NAME_MARKS = " .,'’-/"


def person_name(low: int, high: int, *, words: str, digits: bool = False) -> Format:
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
        expects=f"must be {describe_length(low, high, 'characters')}: letters of any script, "
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
            whole, _, part = value.partition(",")
            return f"takes a dot as the decimal separator, e.g. {whole}.{part.ljust(2, '0')}"
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


def normalize_boolean(value: str) -> str:
    """``true`` or ``false`` for the usual spellings of web languages; any other value unchanged."""
    return _BOOLEANS.get(value.lower(), value)


_BOOLEANS = {"true": "true", "1": "true", "false": "false", "0": "false"}
# An empty value is refused, not ignored: some languages write false so, and others no value at all.
BOOLEAN = replace(
    one_of("true", "false", words="true or false"),
    expects="must be true or false",
    explain=None,
    empty_is_value=True,
    usual=normalize_boolean,
    taken_too="1 and 0 in their place, and any letter case, are taken and come back as true or false.",
)
MONTH_NUMBER = number_between(1, 12, words="N2, 01 to 12", width=2)
YEAR_NUMBER = literal(
    "N4, 19xx or 20xx", "(?:19|20)[0-9]{2}", expects="must be a year 19xx or 20xx", example="2034", bad="34"
)
LANGUAGE = chars("upper-case letters", "[A-Z]", 2, 2, example="DE", bad="de", words="2 uppercase letters")

CURRENCY = code_list(
    "A3 uppercase, ISO 4217", money.CURRENCY_CODES, kind="a currency of ISO 4217 in capitals",
    example="EUR", bad="eur", ref="Currency",
)  # fmt: skip
COUNTRY = code_list(
    "A2, ISO 3166-1", iso.COUNTRIES_2, kind="a country of ISO 3166-1 in two capitals",
    example="DE", bad="XQ", ref="Country",
)  # fmt: skip
COUNTRY_3 = code_list(
    "3 chars, ISO 3166-1 alpha-3", iso.COUNTRIES_3, kind="a country of ISO 3166-1 in three capitals",
    example="DEU", bad="DE", ref="Country3",
)  # fmt: skip


def phone(low: int, high: int, *, words: str, slash: bool = True) -> Format:
    """First character + or digit, then digits, space, dot, parentheses, hyphen and, mostly, slash."""
    return literal(
        words,
        rf"[+0-9][0-9 .(){'/' if slash else ''}-]{{{low - 1},{high - 1}}}",
        expects=f"must be {describe_length(low, high, 'characters')}: + or a digit first, then digits, spaces, dots, "
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


def _is_web_host(value: str) -> bool:
    """True if a web address has a host that browsers can look up, and a valid port."""
    parts = urlsplit(value)
    host = parts.hostname or ""
    try:
        if parts.netloc.rpartition("@")[2].startswith("["):
            ip_address(host)
            return parts.port != 0
        return bool(_HOST.fullmatch(host.encode("idna").decode())) and parts.port != 0
    except ValueError:  # an invalid port, a label that is empty or too long, no address between the brackets
        return False


_WEB = frozenset({"http", "https"})
_APP = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)+")
"""An app's scheme: its maker's domain reversed (RFC 8252, 7.1). Schemes that run or read something in a browser or on
a phone (javascript:, data:, jar:, intent:, view-source: …) have no dot, and new ones may appear any day: so this lists
what is allowed, not what is forbidden."""
_ENCODED_AS_A_WHOLE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*%3[Aa]")
"""No address begins so: the colon after its scheme is percent-encoded."""
_HOST = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")


def is_openable_address(address: str, *, web_only: bool = False) -> bool:
    """True if a browser or a phone may be sent there: a web page, or an app whose scheme is a reversed domain
    (com.example.app:), unless ``web_only``. The form has the same rule in checkout/widget/src/view.js."""
    scheme = address.partition(":")[0].lower() if ":" in address else ""
    return scheme in _WEB or (not web_only and _APP.fullmatch(scheme) is not None)


def _decode_once(value: str) -> str:
    """An address that was percent-encoded as a whole (https%3A%2F%2Fshop.example%2F…), decoded; any other value
    unchanged."""
    if not _ENCODED_AS_A_WHOLE.match(value):
        return value
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        return value


def url(low: int, high: int, *, words: str, web_only: bool = False, encoded: bool = False) -> Format:
    """An absolute address for which :func:`is_openable_address` holds; ``web_only``: not an app's; ``encoded``: it may
    be percent-encoded as a whole, and is decoded once."""
    printable = re.compile(f"[^\\s{UNPRINTABLE}]{{{low},{high}}}").fullmatch
    allowed = "https: and http: are" if web_only else "https:, http: and apps named like com.example.app: are"

    def fits(value: str) -> bool:
        return bool(printable(value) and _is_absolute_url(value)) and explain(value) is None

    def explain(value: str) -> str | None:
        if not printable(value):
            return None
        scheme, colon, _ = value.partition(":")
        scheme = scheme.lower()
        if _is_absolute_url(value) and not is_openable_address(value, web_only=web_only):
            return f"must not begin with {scheme}: - {allowed} allowed, e.g. https://shop.example/result"
        if colon and scheme in _WEB and not (_is_absolute_url(value) and _is_web_host(value)):
            return "must name a host, and a port only from 1 to 65535, e.g. https://shop.example/result"
        return None

    return Format(
        words=words,
        expects=f"must be an absolute address of at most {high} characters without spaces",
        fits=fits,
        explain=explain,
        example="https://shop.example/result",
        counterexample="/result",
        schema={"type": "string", "format": "uri", "minLength": low, "maxLength": high},
        usual=_decode_once if encoded else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MapKey:
    """The key of a map parameter, e.g. ``name`` of ``customParameters[name]``."""

    words: str
    fits: FormatTest
    pattern: str
    example: str


def map_key(words: str, one: str, low: int, high: int, example: str) -> MapKey:
    """The format of a map parameter's key: `low` to `high` characters of the class `one`."""
    expression = f"{one}{{{low},{high}}}"
    return MapKey(words=words, fits=compile_test(expression), pattern=expression, example=example)


CUSTOM_PARAMETER_KEY = map_key("3 to 64 letters, digits, dots, underscores", "[A-Za-z0-9._]", 3, 64, "orderRef")
BRAND_KEY = map_key("1 to 32 letters, digits, underscores", "[A-Za-z0-9_]", 1, 32, "VISA")
