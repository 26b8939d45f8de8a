"""Card data in free-text parameters: what is refused, what is masked before it is stored, what is never altered.

Source: PCI DSS 4.0.1, 3.3.1 and 3.5.1; docs/decisions/0052-card-data-in-free-text.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from gateway.catalogue.structure import Param
from gateway.core import card_data_detection
from gateway.core.secret import Secret

MIN_SEARCHED_DIGITS: Final = 12
"""Fewest digits of a number that is searched for in the other parameters; a shorter one is not a card's."""
MIN_PART_DIGITS: Final = 4
"""Fewest digits of the smaller part of a number that is split over two parameters."""
_WHOLE_PARTS: Final = frozenset({4, 6, 8, 10, 12})
"""Digits in the first part of a split number that is not the request's own: the groups that cards are printed in."""
_MAX_SCANNED_CHARS: Final = 40
"""Characters at the end of one value, and the beginning of the next, that may hold the parts of a split number."""

_IDS: Final = frozenset({
    "entityId", "merchantTransactionId", "merchantInvoiceId", "referenceUuid", "referencedPaymentId", "registrationId",
    "lifecycleId", "shortId", "merchantCustomerId", "agreementId", "initialTransactionId", "dsTransactionId",
    "acsTransactionId", "verificationId", "deviceId", "requestorId", "deviceInfo", "mandate.id",
    "browserFingerprint.id", "browserFingerprint.value", "connectorTxId1", "connectorTxId2", "connectorTxId3",
})  # fmt: skip
"""Last words of names whose values others compare or forward: never altered, masked only where they are displayed."""
_ADDRESSES: Final = re.compile(r"(?:^|\.)(?:url|schemeUrl|merchantWebsite|[A-Za-z]*Url)$")
_THIRTEEN_DIGITS: Final = re.compile(r"(?i)(?:phone|mobile|fax|ticketNumber|exchangeTicketNum)$")
"""Telephone and ticket numbers have thirteen digits, and Visa's cards no longer do."""
_FOUR_DIGITS: Final = re.compile(r"\d(?:\D*\d){3}")
_STARS: Final = ("*", "X", "0")
"""Replacements for a digit, tried in order until the parameter's format accepts the value."""


def find_min_masked_digits(full: str, param: Param) -> int:
    """Digits of the shortest card number that is masked in this parameter; 0: its value is never altered."""
    base = full.partition("[")[0] if param.key is not None else full
    words = base.split(".")
    if param.secret or words[-1] in _IDS or ".".join(words[-2:]) in _IDS or _ADDRESSES.search(base):
        return 0
    if param.format.values:
        return 0
    return (
        card_data_detection.MIN_PAN_DIGITS + 1 if _THIRTEEN_DIGITS.search(base) else card_data_detection.MIN_PAN_DIGITS
    )


def has_three_digits(value: str) -> bool:
    """True if ``value`` has the three digits of the shortest security code: the cheap first test of a value."""
    return card_data_detection.THREE_DIGITS_PATTERN.search(value) is not None


def mask_free_text(param: Param, value: str, shortest: int) -> str:
    """``value`` with its card data masked by a character that the format accepts; the same object if there is none."""
    found = card_data_detection.mask_card_data(value, shortest=shortest)
    if found is value or param.format.problem(found) is None:
        return found
    return next(
        (
            text
            for star in _STARS[1:]
            if param.format.problem(text := card_data_detection.mask_card_data(value, star, shortest=shortest)) is None
        ),
        found,
    )


def find_names_holding(number: Secret, values: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Names of the parameters that contain ``number`` in any notation, in value or name; also of two parameters that
    contain its two parts."""
    digits = number.reveal()
    sent = list(values)
    # Nearly every request ends here: its number's first and last digits are not among those of all texts together.
    folded = card_data_detection.fold_digits("".join(chain.from_iterable(sent)))
    if digits[:MIN_PART_DIGITS] not in folded or digits[-MIN_PART_DIGITS:] not in folded:
        return
    places = range(MIN_PART_DIGITS, len(digits) - MIN_PART_DIGITS + 1)
    heads: dict[int, str] = {}
    tails: dict[int, str] = {}
    for name, value in sent:
        if (
            len(name) >= len(digits) and _FOUR_DIGITS.search(name) and digits in card_data_detection.fold_digits(name)
        ) or (
            len(value) >= len(digits)
            and _FOUR_DIGITS.search(value)
            and digits in card_data_detection.fold_digits(value)
        ):
            yield name
        elif _FOUR_DIGITS.search(value):
            plain = card_data_detection.fold_digits(value)
            if digits[:MIN_PART_DIGITS] in plain:
                heads |= {at: name for at in places if at not in heads and digits[:at] in plain}
            if digits[-MIN_PART_DIGITS:] in plain:
                tails |= {at: name for at in places if at not in tails and digits[at:] in plain}
    yield from sorted(
        {name for at in heads.keys() & tails.keys() if heads[at] != tails[at] for name in (heads[at], tails[at])}
    )


def mask_split_number(first: str, second: str) -> tuple[str, str] | None:
    """Mask the middle of a card number that begins at the end of one value and ends at the beginning of the next;
    None if there is none."""
    if not (_DIGIT.search(first[-4:]) and _DIGIT.search(second[:4])):
        return None
    head, tail = _END.search(first[-_MAX_SCANNED_CHARS:]), _BEGINNING.match(second[:_MAX_SCANNED_CHARS])
    if head is None or tail is None:
        return None
    digits = card_data_detection.fold_digits(head[0]) + card_data_detection.fold_digits(tail[0])
    before = len(card_data_detection.fold_digits(head[0]))
    if (
        before not in _WHOLE_PARTS
        or len(digits) - before < MIN_PART_DIGITS
        or not card_data_detection.is_card_number(digits)
    ):
        return None
    start = len(first) - len(first[-_MAX_SCANNED_CHARS:])
    return (
        _star_digits(first, start + head.start(), start + head.end(), keep_first=6),
        _star_digits(second, tail.start(), tail.end(), keep_last=4),
    )


_DIGIT: Final = re.compile(r"\d")
_END: Final = re.compile(r"(?:\d[\s.\-/_:]{0,2})*\d(?=[^\w]{0,3}\Z)")
_BEGINNING: Final = re.compile(r"[^\w]{0,3}(?:\d[\s.\-/_:]{0,2})*\d(?!\w)")


def _star_digits(text: str, start: int, end: int, *, keep_first: int = 0, keep_last: int = 0) -> str:
    places = [at for at in range(start, end) if text[at].isdecimal()]
    gone = set(places[keep_first : len(places) - keep_last])
    return "".join("*" if at in gone else char for at, char in enumerate(text))
