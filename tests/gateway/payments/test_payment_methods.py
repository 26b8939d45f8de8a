"""Which payment types a method takes, and which means a brand is paid with, written out.

Source: Part A, Basic payment (paymentBrand, paymentType); Part B, Query (paymentMethods); ruling D29.
"""

from __future__ import annotations

import pytest

from gateway.connectors.means import BankAccount, Card, GiftCard, TokenAccount, VirtualAccount
from gateway.core.brands import PAYMENT_BRANDS
from gateway.payments.payment_methods import is_means_accepted, is_type_supported, list_payment_types

EVERY = ["PA", "DB", "CD", "CP", "RF", "RV", "RB", "RC", "CB", "CR"]
PUSHED = ["PA", "DB", "CD", "CP", "RF", "RV", "RC"]
RECEIVED = ["PA", "DB", "CP", "RF", "RV", "RC"]
REDIRECTED = ["PA", "DB", "CP", "RF", "RV", "RC", "CB", "CR"]


@pytest.mark.parametrize(
    ("brand", "types"),
    [
        ("VISA", EVERY),
        ("MAESTRO", EVERY),
        ("WALLET1", EVERY),
        ("DIRECTDEBIT_SEPA", EVERY),
        ("GIFTCARD", EVERY),
        ("USERACCOUNT", EVERY),
        # The shopper pushes the money: there is nothing to charge again or to take back.
        ("CREDITTRANSFER", PUSHED),
        # They take money and cannot pay out.
        ("ONLINETRANSFER", RECEIVED),
        ("INVOICE", RECEIVED),
        ("PREPAYMENT", RECEIVED),
        ("CASHONDELIVERY", RECEIVED),
        ("INSTALMENTS", RECEIVED),
        # The shopper pays elsewhere: no account is stored to pay out to or to charge again.
        ("WEBWALLET", REDIRECTED),
        ("SHOPWALLET", REDIRECTED),
    ],
)
def test_a_brand_takes_the_types_of_its_method(brand: str, types: list[str]) -> None:
    assert list_payment_types(brand) == types
    assert [code for code in EVERY if is_type_supported(brand, code)] == types


@pytest.mark.parametrize("brand", PAYMENT_BRANDS)
def test_a_card_can_be_checked_for_its_risk_and_no_brand_takes_an_unknown_type(brand: str) -> None:
    assert is_type_supported(brand, "RI")
    assert not is_type_supported(brand, "XX")


CARDS = {Card.kind, TokenAccount.kind}
ACCEPTED = {
    "VISA": CARDS,
    "MASTERDEBIT": CARDS,
    "WALLET1": {*CARDS, "wallet1"},
    "WALLET2": {*CARDS, "wallet2"},
    "WALLET3": {*CARDS, "wallet3"},
    "DIRECTDEBIT_SEPA": {BankAccount.kind},
    "CREDITTRANSFER": {BankAccount.kind},
    "USERACCOUNT": {VirtualAccount.kind},
    "WEBWALLET": {VirtualAccount.kind},
    "GIFTCARD": {GiftCard.kind},
    "PREPAYMENT": set(),
    "INVOICE": set(),
}
KINDS = [Card.kind, TokenAccount.kind, BankAccount.kind, VirtualAccount.kind, GiftCard.kind, *(
    f"wallet{number}" for number in (1, 2, 3)
)]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("brand", ACCEPTED)
def test_a_brand_is_paid_with_its_own_means_only(brand: str, kind: str) -> None:
    """A wallet's card data may come decrypted by the merchant, so a card or a token pays with a wallet's brand."""
    assert is_means_accepted(PAYMENT_BRANDS[brand], kind) is (kind in ACCEPTED[brand])
