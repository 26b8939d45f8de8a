"""Payment brands: which brand a card number belongs to, what its cards look like, and who issued them.

Brands are in `data/brands.json` (the widget reads the same file), issuers in the operator's table of BINs and, in the
test environment, in `data/issuers.tsv`. An unknown brand code is not a format error: `find_brand()` returns None and
the caller refuses the payment with 600.200.200.
Source: Part A, Basic payment (paymentBrand); Part B, Query (paymentMethods), Payment response (card.*).
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from django.conf import settings

from gateway.core.bin_table import TABLE_DIGITS, BinTable, Issuer, read_bin_table

_DATA: Final = Path(__file__).parents[1] / "data"
TEST_BIN_FILE: Final = _DATA / "issuers.tsv"
"""The table of BINs of the test environment: invented banks."""

ISSUER_BIN_DIGITS: Final = 6
# Fewer digits than any card has: only a prefix is known, so lengths are not checked.
MIN_CARD_DIGITS: Final = 12

DIRECT_DEBIT_METHOD: Final = "DD"

# Payment method codes of the query. The spec lists the codes only; the labels are our reading of them.
PAYMENT_METHODS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DD": "Direct debit",
        "CT": "Credit transfer",
        "CC": "Credit card",
        "WA": "Wallet",
        "VA": "Virtual account",
        "UA": "User account",
        "OT": "Online transfer",
        "DC": "Debit card",
        "ET": "Electronic transfer",
        "NT": "Non-instant transfer",
        "IV": "Invoice",
        "PP": "Prepayment",
        "OD": "On delivery",
        "RM": "Payment by rate",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brand:
    """A payment brand. `means`: the structure its payments carry ("card", "bankAccount", …) or None."""

    code: str
    label: str
    method: str
    means: str | None
    redirect: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CardBrand(Brand):
    """A card brand.

    `ranges`: prefix ranges that may carry the brand. `detected`: ranges from which the brand is detected when the
    request names none (narrower, or empty, for brands that share another's numbers). A range is two prefixes of
    equal length, both included. A CVV length of 0 means that cards without a CVV exist. `co_badges`: brands
    that one card may carry together with this one.
    """

    ranges: tuple[tuple[str, str], ...]
    detected: tuple[tuple[str, str], ...]
    lengths: frozenset[int]
    cvv_lengths: frozenset[int]
    luhn: bool
    co_badges: tuple[str, ...]
    after_scheme: bool


def _parse_range(text: str) -> tuple[str, str]:
    low, _, high = text.partition("-")
    if len(high or low) != len(low):
        raise ValueError(f"unequal ends of a range: {text}")
    return low, high or low


def _parse_card_brand(row: dict[str, Any]) -> CardBrand:
    ranges = tuple(_parse_range(text) for text in row["ranges"])
    return CardBrand(
        code=row["code"],
        label=row["label"],
        method=row["method"],
        means="card",
        redirect=False,
        ranges=ranges,
        detected=tuple(_parse_range(text) for text in row["detect"]) if "detect" in row else ranges,
        lengths=frozenset(row["lengths"]),
        cvv_lengths=frozenset(row["cvv"]),
        luhn=row["luhn"],
        co_badges=tuple(row["beside"]),
        after_scheme=row["after"],
    )


_TABLE: Final = json.loads((_DATA / "brands.json").read_text(encoding="utf-8"))
CARD_BRANDS: Final[Mapping[str, CardBrand]] = MappingProxyType(
    {row["code"]: _parse_card_brand(row) for row in _TABLE["cards"]}
)
PAYMENT_BRANDS: Final[Mapping[str, Brand]] = MappingProxyType(
    {**CARD_BRANDS, **{row["code"]: Brand(**row) for row in _TABLE["others"]}}
)


MASTERCARD_BRANDS: Final = ("MASTER", "MASTERDEBIT", "MAESTRO")
"""The brands of one network, whose rules they share."""
SCHEME_BY_VARIANT: Final[Mapping[str, str]] = MappingProxyType(
    {"VISADEBIT": "VISA", "VISAELECTRON": "VISA", "VPAY": "VISA", "MASTERDEBIT": "MASTER"}
)
"""Brand of a kind of a scheme's cards (debit, say) → the scheme's brand: a merchant who does not list the kind
takes such a card by the scheme's brand."""


def find_brand(code: str) -> Brand | None:
    """The brand with this code, card or not; None for an unknown code."""
    return PAYMENT_BRANDS.get(code)


def is_card_brand(code: str) -> bool:
    """Whether a paymentBrand is a card brand."""
    return code in CARD_BRANDS


def _longest_prefix(ranges: tuple[tuple[str, str], ...], number: str) -> int:
    """Length of the most specific range that takes `number`, 0 for none."""
    return max(
        (len(low) for low, high in ranges if len(number) >= len(low) and low <= number[: len(low)] <= high),
        default=0,
    )


def detect_brands(digits: str, *, length: int = 0) -> tuple[str, ...]:
    """Card brands of a number or of its first digits, best match first; empty when no range fits. ``length``: of a
    number of which ``digits`` are the first eight at least.

    The most specific range wins; brands that share a scheme's numbers (Visa Electron, Carte Bancaire) come
    after the schemes, since an acquirer that takes them takes the scheme. The check digit is not looked at.
    """
    matches = [
        (card.after_scheme, -matched, place, card.code)
        for place, card in enumerate(CARD_BRANDS.values())
        if (matched := _longest_prefix(card.detected, digits)) and _has_length(card, length or len(digits))
    ]
    return tuple(code for *_, code in sorted(matches))


def detect_brand(digits: str, order: Sequence[str] = (), *, length: int = 0, taken: Collection[str] = ()) -> str | None:
    """The best match of `detect_brands` that the card carries, as `detect_carried_brands` knows it, or None. Of a
    co-badged card it is the first in ``order`` that the card carries: the merchant's preference, for payments whose
    request names no brand. ``taken``: the brands that are taken, empty for all; a card of a kind that is not among them
    is one of its scheme, if that is."""
    by_range = detect_brands(digits, length=length)
    carried = _list_issued_brands(digits, length or len(digits)) or _list_co_badged_brands(by_range)
    found = next((code for code in (*order, *by_range, *carried) if code in carried), None)
    return resolve_listed_brand(found, [taken]) if found is not None else None


def resolve_listed_brand(brand: str, lists: Iterable[Collection[str]]) -> str:
    """The brand by which ``lists`` of brands take a card of ``brand``: its scheme's, where one of them names that and
    none this kind of its cards."""
    scheme = SCHEME_BY_VARIANT.get(brand)
    if scheme is None:
        return brand
    named = {code for one in lists for code in one}
    return scheme if brand not in named and scheme in named else brand


def _has_length(card: CardBrand, length: int) -> bool:
    """Whether a number of the brand has so many digits; True for fewer than any card has."""
    return length < MIN_CARD_DIGITS or length in card.lengths


def detect_carried_brands(digits: str) -> tuple[str, ...]:
    """The brands that one card carries. Where a table of BINs says which, those of them that the number fits; else the
    best match of `detect_brands` and those of the others that it may be co-badged with, as the hosted field decides."""
    return _list_issued_brands(digits, len(digits)) or _list_co_badged_brands(detect_brands(digits))


def _list_issued_brands(digits: str, length: int) -> tuple[str, ...]:
    """The brands that a table of BINs says, which the number fits; empty where it says none."""
    issuer = find_issuer(digits)
    cards = [CARD_BRANDS[code] for code in issuer.brands] if issuer is not None else []
    fitting = (card for card in cards if _longest_prefix(card.ranges, digits))
    return tuple(card.code for card in fitting if _has_length(card, length))


def _list_co_badged_brands(by_range: Sequence[str]) -> tuple[str, ...]:
    """The best match of the ranges and the others that one card may carry with it."""
    best, *others = by_range or ("",)
    if not best:
        return ()
    co_badges = CARD_BRANDS[best].co_badges
    return (best, *(code for code in others if code in co_badges or best in CARD_BRANDS[code].co_badges))


def order_brands(carried: Sequence[str], order: Sequence[str]) -> list[str]:
    """The brands of a card, those of the merchant's ``order`` first, as the hosted field offers them."""
    return sorted(carried, key=lambda code: order.index(code) if code in order else len(order))


def prefix_fits_brand(code: str, prefix: str, length: int) -> bool:
    """True when a number of ``length`` digits that begins with ``prefix`` (at least eight of them) has a prefix and a
    length of card brand `code`; False when it is no card brand."""
    card = CARD_BRANDS.get(code)
    return card is not None and _longest_prefix(card.ranges, prefix) > 0 and length in card.lengths


def is_valid_cvv_length(code: str, digits: int) -> bool:
    """True when the brand's cards have security codes of this length; 3 or 4 for an unknown brand."""
    card = CARD_BRANDS.get(code)
    return digits in (card.cvv_lengths if card else {3, 4})


def is_cvv_required(code: str) -> bool:
    """True when every card of the brand has a security code."""
    card = CARD_BRANDS.get(code)
    return card is not None and 0 not in card.cvv_lengths


@lru_cache(maxsize=4)
def load_bin_tables(path: str, is_live: bool) -> tuple[BinTable, ...]:
    """The operator's table of BINs, where there is one, and in the test environment the one of invented banks. Raises
    BinTableError."""
    own = (read_bin_table(Path(path), CARD_BRANDS),) if path else ()
    return own if is_live else (*own, read_bin_table(TEST_BIN_FILE, CARD_BRANDS))


def are_brands_in_bin_table() -> bool:
    """Whether the operator's table of BINs says which brands cards carry."""
    return bool(settings.GATEWAY_BIN_FILE) and any(
        table.has_brands for table in load_bin_tables(settings.GATEWAY_BIN_FILE, settings.IS_LIVE)
    )


def find_issuer(digits: str) -> Issuer | None:
    """The facts of a number's first digits, six or more; None where no table knows them."""
    return _find_issuer(digits[:TABLE_DIGITS], settings.GATEWAY_BIN_FILE, settings.IS_LIVE)


@lru_cache(maxsize=4_096)
def _find_issuer(digits: str, path: str, is_live: bool) -> Issuer | None:
    for table in load_bin_tables(path, is_live):
        if (found := table.find_issuer(digits)) is not None:
            return found
    return None
