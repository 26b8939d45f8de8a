"""The payment types that each method takes, and the means that each brand is paid with: two tables.

Source: Part A, Basic payment (paymentBrand, paymentType), Bank account; Part B, Query (paymentMethods); ruling D29.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.connectors.means import BankAccount, Card, GiftCard, TokenAccount, VirtualAccount
from gateway.core.brands import PAYMENT_BRANDS, PAYMENT_METHODS, Brand, is_card_brand
from gateway.payments.operation_table import CHAIN_START_TYPES, OPERATIONS

TYPE_NOT_WITH_METHOD_CODE: Final = "600.200.310"

_ALL_TYPES: Final = frozenset(OPERATIONS) | CHAIN_START_TYPES
# A push payment, which the shopper initiates at the bank, can be neither rebilled nor charged back.
_PUSH_PAYMENT_TYPES: Final = _ALL_TYPES - {"RB", "CB", "CR"}
# Methods that receive money only and cannot pay out.
_RECEIVE_ONLY_TYPES: Final = _PUSH_PAYMENT_TYPES - {"CD"}

METHOD_PAYMENT_TYPES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "CC": _ALL_TYPES,
        "DC": _ALL_TYPES,
        "WA": _ALL_TYPES,
        "DD": _ALL_TYPES,
        "VA": _ALL_TYPES,
        "UA": _ALL_TYPES,
        "CT": _PUSH_PAYMENT_TYPES,
        "OT": _RECEIVE_ONLY_TYPES,
        "ET": _RECEIVE_ONLY_TYPES,
        "NT": _RECEIVE_ONLY_TYPES,
        "IV": _RECEIVE_ONLY_TYPES,
        "PP": _RECEIVE_ONLY_TYPES,
        "OD": _RECEIVE_ONLY_TYPES,
        "RM": _RECEIVE_ONLY_TYPES,
    }
)
"""Method → the payment types it takes. Every method has a row: see PAYMENT_METHODS."""
assert METHOD_PAYMENT_TYPES.keys() == PAYMENT_METHODS.keys()

_STORED_ACCOUNT_TYPES: Final = frozenset({"CD", "RB"})
"""Types not possible with redirect brands: there is no stored account to pay out to or to charge again."""

_WALLETS: Final = ("wallet1", "wallet2", "wallet3")
_ACCEPTED_MEANS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
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
"""Kind of means that was sent → the ``Brand.means`` it pays with."""


def is_type_supported(brand: str, payment_type: str) -> bool:
    """Whether payments of ``brand`` can be of ``payment_type``, or be followed by it."""
    row = PAYMENT_BRANDS[brand]
    return payment_type in METHOD_PAYMENT_TYPES[row.method] and not (
        row.redirect and payment_type in _STORED_ACCOUNT_TYPES
    )


def list_payment_types(brand: str) -> list[str]:
    """The payment types a brand takes, in the order of the operations."""
    return [code for code in OPERATIONS if is_type_supported(brand, code)]


def is_means_accepted(brand: Brand, kind: str) -> bool:
    """Whether a means of ``kind`` pays with ``brand``."""
    return brand.means is not None and ("card" if is_card_brand(brand.code) else brand.means) in _ACCEPTED_MEANS[kind]
