"""Means of payment as connectors receive them: typed values with their secrets wrapped.

Source: Part A, Card account, Virtual account, Bank account, Token account; Part B, Gift card.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from gateway.core.brands import is_card_brand
from gateway.core.card_number import CardNumber
from gateway.core.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card. ``expiry_month`` has two digits, ``expiry_year`` four; ``number_type`` is PAN, DPAN or empty; ``wallet``
    is the wallet that the card came from, or empty. ``facts`` is what code without access to the number may know of
    it."""

    kind: ClassVar[str] = "card"

    number: Secret
    expiry_month: str
    expiry_year: str
    holder: str = ""
    cvv: Secret | None = None
    number_type: str = ""
    wallet: str = ""
    facts: CardNumber = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", CardNumber.of(self.number))

    @property
    def account(self) -> Secret:
        """The card number, under the name that every means has for its account."""
        return self.number


@dataclass(frozen=True, slots=True, kw_only=True)
class BankAccount:
    """A bank account: ``account`` is an IBAN, or a number together with ``bank_code`` or ``bic``. Dates are
    yyyy-MM-dd."""

    kind: ClassVar[str] = "bankAccount"

    account: Secret
    is_iban: bool
    holder: str = ""
    bank_name: str = ""
    bank_code: str = ""
    bic: str = ""
    country: str = ""
    mandate_id: str = ""
    mandate_signed: str = ""
    due_date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualAccount:
    """The shopper's id at an account provider such as a wallet."""

    kind: ClassVar[str] = "virtualAccount"

    account: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAccount:
    """A token of an external provider (``type`` EXTERNAL) or of a card network (NETWORK). ``cryptogram`` and ``dtvc``
    prove one use of it; like a CVV, they are deleted once the payment is answered. ``requestor``: token requestor id of
    a stored card's token, else empty."""

    kind: ClassVar[str] = "tokenAccount"

    account: Secret
    type: str
    expiry_month: str = ""
    expiry_year: str = ""
    cryptogram: Secret | None = None
    dtvc: Secret | None = None
    requestor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GiftCard:
    """A gift card; its PIN is deleted once the payment is answered."""

    kind: ClassVar[str] = "giftCard"

    account: Secret
    pin: Secret | None = None
    holder: str = ""


Means = Card | BankAccount | VirtualAccount | TokenAccount | GiftCard


def resolve_means_brand(brand: str, means: Means | None) -> str:
    """The brand of the network that a payment with ``means`` goes over: where ``brand`` is a wallet's, that of the card
    in it."""
    if is_card_brand(brand) or not isinstance(means, Card):
        return brand
    return means.facts.brand or brand


ANY_MEANS: Final = frozenset({"", *(kind.kind for kind in (Card, BankAccount, VirtualAccount, TokenAccount, GiftCard))})
"""Every kind of means, and '' for a payment without one."""
