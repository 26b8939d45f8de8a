"""Masking: card numbers, security codes and tokens disappear from any text before it is written down.

`mask_text` is the last line of defence, for log lines, URLs and JSON that should not hold such a value.
It rather masks a harmless number than leave a card number, and leaves ids, times and amounts alone.
"""

import re
from typing import Final

from gateway.luhn import luhn_ok

STARS: Final = "***"

# One separator between two groups of digits, plain or as a URL writes it.
_SEPARATOR = r"(?:[ +-]|%20|%2[Dd])"

# Cheap question asked of every line: twelve digits in a row (separators allowed), or a word before a secret.
_SUSPICIOUS: Final = re.compile(
    rf"[0-9](?:{_SEPARATOR}?[0-9]){{11}}|cvv|dtvc|pin|bearer|iban|number|cryptogram|paymenttoken|password|secret",
    re.IGNORECASE,
)

_BEARER: Final = re.compile(r"(bearer(?:\s+|\+|%20))[A-Za-z0-9._~+/=|%-]{8,}", re.IGNORECASE)

# key=value, "key": "value", ('key', 'value'), key%3Dvalue, card[cvv]=value, \"key\":\"value\".
_KEYED: Final = re.compile(
    r"""
    (?P<head>(?<![A-Za-z0-9])
      (?P<key>cvv|dtvc|pin|cryptogram|paymentToken|password|secret|iban|number)
      (?:\]|%5D)?
      (?: (?P<keyquote>\\?["'])(?:\s*[:=]\s*|\s*,\s*(?=\\?["'])) | \s*[:=]\s* | %3[ADad] )
    )
    (?: (?P<quote>\\?["'])(?P<quoted>(?:(?!(?P=quote)).)+)
      | (?P<bare>(?!(?:null|None)\b)[^"'\\&\s,;{}()\[\]]+) )
    """,
    re.IGNORECASE | re.VERBOSE,
)
# A value of the key "number" (card.number, tokenAccount.number) may fail Luhn and still be a mistyped card.
_ACCOUNT_NUMBER: Final = re.compile(rf"[0-9](?:{_SEPARATOR}?[0-9]){{7,31}}")

# Tokens stepped over, then chains of digits. Percent and \u escapes are tokens of their own, so that the
# "20" of "%20" never counts as the beginning of a number.
_CHAIN: Final = re.compile(
    rf"""
    (?P<skip>
        (?<![0-9A-Za-z])[0-9A-Fa-f]{{8}}-(?:[0-9A-Fa-f]{{4}}-){{3}}[0-9A-Fa-f]{{12}}(?![0-9A-Za-z])
      | (?<![0-9A-Za-z%])(?=[0-9]*[A-Fa-f])[0-9A-Fa-f]{{24,}}(?![0-9A-Za-z])
      | %[0-9A-Fa-f]{{2}}
      | \\u[0-9A-Fa-f]{{4}}
      | [0-9]\.[0-9]+
    )
    | (?P<chain>[0-9]+(?:{_SEPARATOR}[0-9]+)*)
    """,
    re.VERBOSE,
)
_GROUP: Final = re.compile(r"%2[0Dd]|[0-9]+")

# yyyyMMddHHmmss, with or without milliseconds.
_COMPACT_TIME: Final = re.compile(
    r"20[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]([0-9]{3})?"
)
# Milli-, micro- or nanoseconds since 1970, from 2001 to 2033. No payment card of these lengths starts with 1.
_EPOCH: Final = re.compile(r"1([0-9]{12}|[0-9]{15}|[0-9]{18})")


def mask_pan(number: str) -> str:
    """First six and last four of a card number; the last four of 10 to 12 digits; nothing of fewer."""
    if len(number) >= 13:
        return number[:6] + "*" * (len(number) - 10) + number[-4:]
    if len(number) >= 10:
        return "*" * (len(number) - 4) + number[-4:]
    return "*" * len(number)


def mask_iban(iban: str) -> str:
    """Country, check digits, last four characters: "DE89**************3000"; nothing of fewer than 12."""
    if len(iban) < 12:
        return "*" * len(iban)
    return iban[:4] + "*" * (len(iban) - 8) + iban[-4:]


def looks_like_pan(digits: str) -> bool:
    """13 to 19 digits (12 in the Maestro ranges) that pass Luhn, are no time and do not start with 0."""
    if len(digits) == 12:
        if digits[0] not in "56":
            return False
    elif not 13 <= len(digits) <= 19:
        return False
    if digits[0] == "0" or _EPOCH.fullmatch(digits) or _COMPACT_TIME.fullmatch(digits):
        return False
    return luhn_ok(digits)


def kept_note(text: str, most: int) -> str:
    """Somebody's words as they may be kept: masked, on one line, up to ``most`` characters."""
    return mask_text("".join(char if char.isprintable() else " " for char in text).strip())[:most]


def mask_text(text: str) -> str:
    """`text` with every card number, security code, PIN, IBAN under its key and bearer token masked.

    Returns the same object when there is nothing to mask. Linear in the length of the text.
    """
    if not _SUSPICIOUS.search(text):
        return text
    masked = _BEARER.sub(rf"\g<1>{STARS}", text)
    masked = _KEYED.sub(_mask_keyed, masked)
    masked = _CHAIN.sub(_mask_chain, masked)
    return text if masked == text else masked


def _mask_keyed(found: re.Match[str]) -> str:
    value = found["quoted"] or found["bare"]
    key = found["key"].lower()
    if key == "number":
        # "invoice number: A-17" and house numbers stay.
        if not _ACCOUNT_NUMBER.fullmatch(value):
            return found[0]
        shown = mask_pan(re.sub(_SEPARATOR, "", value))
    elif key == "iban":
        shown = mask_iban(value)
    else:
        shown = STARS
    return f"{found['head']}{found['quote'] or ''}{shown}"


def _mask_chain(found: re.Match[str]) -> str:
    chain = found["chain"]
    if chain is None:
        return found[0]
    groups = [(part.start(), part[0]) for part in _GROUP.finditer(chain) if part[0][0] != "%"]
    hidden: set[int] = set()
    for first in range(len(groups)):
        places: list[int] = []
        for last in range(first, len(groups)):
            start, digits = groups[last]
            places.extend(range(start, start + len(digits)))
            if len(places) > 19:
                break
            if looks_like_pan("".join(chain[place] for place in places)):
                visible = 6 if len(places) >= 13 else 0
                hidden.update(places[visible:-4])
            # Cards are printed in groups of four or more; 2026-11-21 12 is a date.
            if len(digits) < 4:
                break
    if not hidden:
        return chain
    return "".join("*" if place in hidden else char for place, char in enumerate(chain))
