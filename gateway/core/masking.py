"""Masking of card numbers, security codes and tokens in any text before it is written to a log or stored.

`mask_text` is the last line of defence, for log lines, URLs and JSON that should not contain such values. It masks a
harmless number rather than leave a card number, and leaves ids, times and amounts alone.
"""

import re
from typing import Final

from gateway.core import card_data_detection
from gateway.core.luhn import is_luhn_valid

MASK_STARS: Final = "***"

# Cheap first test of every line, next to the detector's own: a keyword of a secret.
_SUSPICIOUS: Final = re.compile(
    r"cvv|dtvc|pin|bearer|iban|number|cryptogram|paymenttoken|password|secret", re.IGNORECASE
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
_SEPARATOR: Final = r"(?:[ +-]|%20|%2[Dd])"
_ACCOUNT_NUMBER: Final = re.compile(rf"[0-9](?:{_SEPARATOR}?[0-9]){{7,31}}")
_MIN_SHOWN_DIGITS: Final = 12
"""Shortest number, in digits, that is masked on display: Maestro's."""


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
    """12 to 19 digits of a range and a length that a card brand has, with the right check digit."""
    return is_luhn_valid(digits) and card_data_detection.is_in_card_range(digits)


_IDENTIFIER: Final = re.compile(
    r"[0-9a-f]{32}(?:-[0-9a-f]{32})?|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|.{4}:(?:[0-9a-f]{2}){10,32}",
    re.IGNORECASE,
)
"""An id, an ndc or the fingerprint of a card, whose digits mean nothing."""


_PAGE_CURSOR: Final = re.compile(r"([0-9.:TZ+-]{1,40})-[0-9a-f]{32}")
"""Where a page of a list begins: a line's number, day or time, and an id."""


def contains_card_number(text: str) -> bool:
    """True if a typed text has a full card number in any notation, or a security code next to a word for it. Ids never
    count as one."""
    if _IDENTIFIER.fullmatch(text):
        return False
    if (cursor := _PAGE_CURSOR.fullmatch(text)) is not None and not looks_like_pan(re.sub("[^0-9]", "", cursor[1])):
        return False
    plain = re.sub(r"[\s\-.]", "", text)
    return looks_like_pan(plain) or card_data_detection.mask_card_data(text, shortest=_MIN_SHOWN_DIGITS) != text


def mask_note(text: str, most: int) -> str:
    """A person's note ready to store: masked, on one line, up to ``most`` characters."""
    return mask_text("".join(char if char.isprintable() else " " for char in text).strip())[:most]


def mask_text(text: str) -> str:
    """`text` with every card number, security code, PIN, IBAN under its key and bearer token masked.

    Returns the same object when there is nothing to mask. Linear in the length of the text.
    """
    masked = text
    if _SUSPICIOUS.search(text):
        masked = _BEARER.sub(rf"\g<1>{MASK_STARS}", masked)
        masked = _KEYED.sub(_mask_keyed_value, masked)
    masked = card_data_detection.mask_card_data(masked, shortest=_MIN_SHOWN_DIGITS)
    return text if masked == text else masked


def _mask_keyed_value(match: re.Match[str]) -> str:
    value = match["quoted"] or match["bare"]
    key = match["key"].lower()
    if key == "number":
        # "invoice number: A-17" and house numbers stay.
        if not _ACCOUNT_NUMBER.fullmatch(value):
            return match[0]
        shown = mask_pan(re.sub(_SEPARATOR, "", value))
    elif key == "iban":
        shown = mask_iban(value)
    else:
        shown = MASK_STARS
    return f"{match['head']}{match['quote'] or ''}{shown}"
