"""Which payment types a brand takes, and which means of payment goes with it: two tables.

Source: Part A, Basic payment (paymentBrand, paymentType), Bank account; Part B, Query (paymentMethods); ruling D29.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.brands import BRANDS, METHODS, Brand, is_card
from gateway.connectors.means import BankAccount, Card, GiftCard, TokenAccount, VirtualAccount
from gateway.payments.operations import FIRST, OPERATIONS

TYPE_NOT_WITH_METHOD: Final = "600.200.310"

_EVERY: Final = frozenset(OPERATIONS) | FIRST
# Nobody can pull again, or be made to give back, what a shopper sent of their own accord.
_SENT_BY_THE_SHOPPER: Final = _EVERY - {"RB", "CB", "CR"}
# Money is only received this way, never paid out.
_RECEIVED_ONLY: Final = _SENT_BY_THE_SHOPPER - {"CD"}

TYPES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "CC": _EVERY,
        "DC": _EVERY,
        "WA": _EVERY,
        "DD": _EVERY,
        "VA": _EVERY,
        "UA": _EVERY,
        "CT": _SENT_BY_THE_SHOPPER,
        "OT": _RECEIVED_ONLY,
        "ET": _RECEIVED_ONLY,
        "NT": _RECEIVED_ONLY,
        "IV": _RECEIVED_ONLY,
        "PP": _RECEIVED_ONLY,
        "OD": _RECEIVED_ONLY,
        "RM": _RECEIVED_ONLY,
    }
)
"""Method → the payment types it takes. Every method has a row: see METHODS."""
assert TYPES.keys() == METHODS.keys()

_NEEDS_THE_SHOPPER: Final = frozenset({"CD", "RB"})
"""Not with a brand that sends the shopper away: there is no stored account to pay out to, or to charge again."""

_WALLETS: Final = ("wallet1", "wallet2", "wallet3")
_FITS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        Card.kind: ("card", *_WALLETS),  # a wallet's card data, decrypted by the merchant
        TokenAccount.kind: ("card", *_WALLETS),
        BankAccount.kind: ("bankAccount",),
        VirtualAccount.kind: ("virtualAccount",),
        GiftCard.kind: ("giftCard",),
        "wallet1": ("wallet1",),
        "wallet2": ("wallet2",),
        "wallet3": ("wallet3",),
    }
)
"""What is sent → the ``means`` of the brands it goes with."""


def takes(brand: str, payment_type: str) -> bool:
    """Whether payments of ``brand`` can be of ``payment_type``, or be followed by it."""
    found = BRANDS[brand]
    return payment_type in TYPES[found.method] and not (found.redirect and payment_type in _NEEDS_THE_SHOPPER)


def types_of(brand: str) -> list[str]:
    """The payment types a brand takes, in the order of the operations."""
    return [code for code in OPERATIONS if takes(brand, code)]


def fits(brand: Brand, kind: str) -> bool:
    """Whether a means of ``kind`` pays with ``brand``."""
    return brand.means is not None and ("card" if is_card(brand.code) else brand.means) in _FITS[kind]
