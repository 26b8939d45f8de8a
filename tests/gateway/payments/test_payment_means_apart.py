"""Each member of each means, from a request and from a payment's row, and what is kept while a shopper is away."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest

from gateway.catalogue.parse import Parameters
from gateway.connectors.means import BankAccount, Card, GiftCard, Means, TokenAccount, VirtualAccount
from gateway.core.secret import Secret
from gateway.models import Payment
from gateway.payments.payment_means import (
    find_sent_account,
    load_payment_means,
    means_from_account,
    means_from_parameters,
    pack_one_time_secrets,
    restore_one_time_secrets,
    restore_party_accounts,
)
from gateway.vault.sealing import VaultError, current_vault


class Sent:
    """Parameters as they were parsed: plain ones, and secrets."""

    def __init__(self, values: dict[str, str], secrets: dict[str, str]) -> None:
        self.values = values
        self.secrets = {name: Secret(text) for name, text in secrets.items()}

    def get(self, name: str) -> str | None:
        return self.values.get(name)

    def secret(self, name: str) -> Secret | None:
        return self.secrets.get(name)


CARD_VALUES = {
    "card.expiryMonth": "05", "card.expiryYear": "2034", "card.holder": "Jane Jones", "card.numberType": "DPAN",
}  # fmt: skip
CARD = Card(
    number=Secret("4200000000000000"), expiry_month="05", expiry_year="2034", holder="Jane Jones", cvv=Secret("123"),
    number_type="DPAN",
)  # fmt: skip
BANK_VALUES = {
    "bankAccount.holder": "Jane Jones", "bankAccount.bankName": "Example Bank", "bankAccount.bankCode": "37040044",
    "bankAccount.bic": "MARKDEF1100", "bankAccount.country": "DE", "bankAccount.mandate.id": "M-1",
    "bankAccount.mandate.dateOfSignature": "2026-01-15", "transactionDueDate": "2026-12-01",
}  # fmt: skip
BANK = BankAccount(
    account=Secret("DE23100000001234567890"), is_iban=True, holder="Jane Jones", bank_name="Example Bank",
    bank_code="37040044", bic="MARKDEF1100", country="DE", mandate_id="M-1", mandate_signed="2026-01-15",
    due_date="2026-12-01",
)  # fmt: skip
TOKEN_VALUES = {
    "tokenAccount.type": "NETWORK", "tokenAccount.expiryMonth": "06", "tokenAccount.expiryYear": "2035",
}  # fmt: skip
TOKEN = TokenAccount(
    account=Secret("TOKEN-1"), type="NETWORK", expiry_month="06", expiry_year="2035", cryptogram=Secret("CAVV"),
    dtvc=Secret("817"),
)  # fmt: skip
GIFT = GiftCard(account=Secret("GIFT-1"), pin=Secret("4711"), holder="Jane Jones")
GIFT_VALUES = {"paymentBrand": "GIFTCARD", "giftCard.holder": "Jane Jones"}


@pytest.mark.parametrize(
    ("values", "secrets", "means"),
    [
        (CARD_VALUES, {"card.number": "4200000000000000", "card.cvv": "123"}, CARD),
        (CARD_VALUES, {"card.number": "4200000000000000"}, replace(CARD, cvv=None)),
        ({}, {"card.number": "42"}, Card(number=Secret("42"), expiry_month="", expiry_year="")),
        (BANK_VALUES, {"bankAccount.iban": "DE23100000001234567890"}, BANK),
        (BANK_VALUES, {"bankAccount.number": "12"}, replace(BANK, account=Secret("12"), is_iban=False)),
        ({}, {"bankAccount.iban": "DE1"}, BankAccount(account=Secret("DE1"), is_iban=True)),
        ({"virtualAccount.accountId": "jane"}, {}, VirtualAccount(account=Secret("jane"))),
        (TOKEN_VALUES, {"tokenAccount.number": "TOKEN-1", "tokenAccount.cryptogram": "CAVV",
                        "tokenAccount.dtvc": "817"}, TOKEN),
        ({}, {"tokenAccount.number": "TOKEN-1"}, TokenAccount(account=Secret("TOKEN-1"), type="")),
        (GIFT_VALUES, {"giftCard.number": "GIFT-1", "giftCard.pin": "4711"}, GIFT),
        ({"paymentBrand": "GIFTCARD"}, {"giftCard.number": "GIFT-1"}, GiftCard(account=Secret("GIFT-1"))),
        # A gift card that is bought, or given beside another means.
        ({"paymentBrand": "PREPAYMENT"}, {"giftCard.number": "GIFT-1"}, None),
        ({"paymentBrand": "NONE SUCH"}, {"giftCard.number": "GIFT-1"}, None),
        ({}, {"giftCard.number": "GIFT-1"}, None),
        (GIFT_VALUES, {}, None),
        (GIFT_VALUES, {"giftCard.number": "GIFT-1", "card.number": "42"},
         Card(number=Secret("42"), expiry_month="", expiry_year="")),
        ({}, {}, None),
        ({"card.holder": "Jane Jones"}, {"card.cvv": "123"}, None),
    ],
    ids=str,
)  # fmt: skip
def test_a_means_is_made_of_what_was_sent(values: dict[str, str], secrets: dict[str, str], means: Means | None) -> None:
    assert means_from_parameters(cast(Parameters, Sent(values, secrets))) == means


@pytest.mark.parametrize(
    ("values", "secrets", "wallet"),
    [
        ({"wallet1.source": "web"}, {}, "wallet1"),
        ({}, {"wallet2.token": "t"}, "wallet2"),
        ({"a.wallet1": "x"}, {}, ""),
        ({"shopper.wallet": "x"}, {}, ""),
    ],
)
def test_a_card_says_from_which_wallet_it_came(values: dict[str, str], secrets: dict[str, str], wallet: str) -> None:
    found = means_from_parameters(cast(Parameters, Sent(values, {"card.number": "42", **secrets})))
    assert isinstance(found, Card)
    assert found.wallet == wallet


@pytest.mark.parametrize(
    ("values", "secrets", "account"),
    [
        ({"a": "plain"}, {"a": "secret"}, "secret"),
        ({"a": "plain"}, {"b": "secret"}, "plain"),
        ({"b": "plain"}, {}, None),
    ],
)
def test_an_account_is_a_secret_also_where_it_is_none(
    values: dict[str, str], secrets: dict[str, str], account: str | None
) -> None:
    found = find_sent_account(cast(Parameters, Sent(values, secrets)), "a")
    assert (found.reveal() if found is not None else None) == account


@pytest.mark.parametrize(
    ("kind", "values", "means"),
    [
        ("card", CARD_VALUES, replace(CARD, cvv=None)),
        ("bankAccount", BANK_VALUES, replace(BANK, is_iban=False)),
        ("bankAccount", {**BANK_VALUES, "bankAccount.iban": "masked"}, BANK),
        ("tokenAccount", TOKEN_VALUES, replace(TOKEN, cryptogram=None, dtvc=None)),
        ("giftCard", GIFT_VALUES, replace(GIFT, pin=None)),
        ("virtualAccount", {}, VirtualAccount(account=Secret("jane"))),
    ],
)
def test_a_means_of_a_row_has_its_public_values_and_no_one_time_secret(
    kind: str, values: dict[str, str], means: Means
) -> None:
    assert means_from_account(kind, means.account, values) == means


# Of a payment's row.

IDENT = UUID(int=7)


def stored(kind: str, account: str, **columns: Any) -> Payment:
    return Payment(id=IDENT, means=kind, means_sealed=current_vault().seal(Secret(account), IDENT), **columns)


def test_a_payments_means_is_opened_with_what_it_shows() -> None:
    """What is shown of it, then what was sent beside it."""
    answer = {"card": {"holder": "Jane Jones", "expiryMonth": "01"}, "bankAccount": {"bic": "B"}, "avs": "Y",
              "tokenAccount": {"type": "NETWORK"}}  # fmt: skip
    request = {"card": {"expiryMonth": "05", "expiryYear": "2034"}, "transactionDueDate": "2026-12-01"}
    assert load_payment_means(stored("card", "4200000000000000", answer=answer, request=request)) == Card(
        number=Secret("4200000000000000"), expiry_month="05", expiry_year="2034", holder="Jane Jones"
    )
    found = load_payment_means(stored("bankAccount", "12", answer=answer, request=request))
    assert found == BankAccount(account=Secret("12"), is_iban=False, bic="B", due_date="2026-12-01")
    found = load_payment_means(stored("tokenAccount", "T", answer=answer, request=request))
    assert found == TokenAccount(account=Secret("T"), type="NETWORK")


def test_a_payment_without_a_stored_account_has_no_means_and_one_of_another_payment_does_not_open() -> None:
    assert load_payment_means(Payment(id=IDENT, means="card", means_sealed=None)) is None
    moved = stored("card", "42", answer={}, request={})
    moved.id = UUID(int=8)
    with pytest.raises(VaultError):
        load_payment_means(moved)


# One-time secrets.

PARTIES = {"sender.accountNumber": Secret("S"), "recipient.accountNumber": Secret("R")}


@pytest.mark.parametrize(
    ("means", "sent", "kept"),
    [
        (CARD, {}, {"cvv": "123"}),
        (TOKEN, {}, {"cryptogram": "CAVV", "dtvc": "817"}),
        (GIFT, {}, {"pin": "4711"}),
        (BANK, {}, None),
        (None, {}, None),
        (None, PARTIES, {"sender.accountNumber": "S", "recipient.accountNumber": "R"}),
        (CARD, PARTIES, {"cvv": "123", "sender.accountNumber": "S", "recipient.accountNumber": "R"}),
        (BANK, {"sender.accountNumber": "masked", "recipient.name": Secret("N")}, None),
    ],
)
def test_one_time_secrets_are_kept_as_one_text(means: Means | None, sent: Any, kept: dict[str, str] | None) -> None:
    packed = pack_one_time_secrets(means, sent)
    assert (json.loads(packed.reveal()) if packed is not None else None) == kept
    restored = restore_party_accounts(packed)
    assert restored == {name: one for name, one in sent.items() if name in PARTIES and isinstance(one, Secret)}
    if means is not None:
        names = {name: None for name in (kept or {}) if "." not in name}
        bare = replace(means, **cast(Any, names))
        assert restore_one_time_secrets(bare, packed) == means


def test_without_a_means_or_secrets_nothing_is_restored() -> None:
    assert restore_one_time_secrets(None, Secret('{"cvv": "123"}')) is None
    assert restore_one_time_secrets(CARD, None) is CARD
