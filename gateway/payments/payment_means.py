"""Builds the means of payment from a request's parameters, or from the vault and the payment's row.

The vault seals the account only (card number, IBAN, token); the public details are in the payment's echo. One-time
secrets (CVV, dtvc, cryptogram, PIN) are never sealed with the account; while the shopper authenticates, they are sealed
in the Suspension. Source: Part A, Card account … Token account; Part B, Gift card.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from gateway.catalogue.parse import Parameters
from gateway.connectors.acquirer_message import flatten_body
from gateway.connectors.capabilities import PARTY_ACCOUNTS
from gateway.connectors.means import BankAccount, Card, GiftCard, Means, TokenAccount, VirtualAccount
from gateway.core.brands import PAYMENT_BRANDS
from gateway.core.secret import Secret
from gateway.models import Payment
from gateway.vault.sealing import current_vault

PlainParameters = Mapping[str, str]
"""Parameters that are no secrets, by full name."""
SecretParameters = Mapping[str, Secret]


def means_from_parameters(parameters: Parameters) -> Means | None:
    """The means that was sent; None when none was (a redirect brand, a registration)."""
    values, secrets = parameters.values, parameters.secrets
    for name, kind in ACCOUNT_PARAMETERS:
        if (account := find_sent_account(parameters, name)) is not None:
            return _BY_KIND[kind](values, account, secrets)
    # With another brand a gift card is what is bought or given, not the means that pays.
    gift = secrets.get("giftCard.number")
    brand = PAYMENT_BRANDS.get(values.get("paymentBrand", ""))
    return (
        _build_gift_card(values, gift, secrets) if gift and brand is not None and brand.means == GiftCard.kind else None
    )


def find_sent_account(parameters: Parameters, name: str) -> Secret | None:
    """The account sent in parameter ``name``, or None. A virtual account's id is no secret, but is sealed too."""
    if (account := parameters.secret(name)) is not None:
        return account
    plain = parameters.get(name)
    return Secret(plain) if plain is not None else None


def means_from_account(kind: str, account: Secret, values: PlainParameters) -> Means:
    """The means of an earlier payment from its opened ``account`` and its public ``values``, by full name."""
    return _BY_KIND[kind](values, account, {})


def load_payment_means(payment: Payment) -> Means | None:
    """The means of an earlier payment from its row; None when its account is not stored. Raises VaultError."""
    if payment.means_sealed is None:
        return None
    values = flatten_body(
        {name: payment.answer[name] for name in _DISPLAYED_MEANS if name in payment.answer}
    ) | flatten_body(payment.request)
    return means_from_account(payment.means, current_vault().open(payment.means_sealed, payment.id), values)


def pack_one_time_secrets(means: Means | None, sent: Mapping[str, str | Secret]) -> Secret | None:
    """The one-time secrets of ``means`` and the PARTY_ACCOUNTS among the parameters ``sent`` as one text, to be sealed
    while the shopper authenticates; None without any."""
    secrets = {name: secret.reveal() for name in _ONE_TIME if (secret := getattr(means, name, None)) is not None}
    secrets |= {name: secret.reveal() for name in PARTY_ACCOUNTS if isinstance(secret := sent.get(name), Secret)}
    return Secret(json.dumps(secrets)) if secrets else None


def restore_one_time_secrets(means: Means | None, secrets: Secret | None) -> Means | None:
    """``means`` with the one-time secrets of :func:`pack_one_time_secrets`."""
    if means is None or secrets is None:
        return means
    held = json.loads(secrets.reveal())
    fields: dict[str, Any] = {name: Secret(held[name]) for name in _ONE_TIME if name in held}
    return replace(means, **fields)


def restore_party_accounts(secrets: Secret | None) -> dict[str, Secret]:
    """The PARTY_ACCOUNTS of :func:`pack_one_time_secrets`, by parameter name."""
    held = json.loads(secrets.reveal()) if secrets is not None else {}
    return {name: Secret(held[name]) for name in PARTY_ACCOUNTS if name in held}


STORABLE_MEANS: Final = ("card", "bankAccount", "virtualAccount")
"""The kinds of means that a registration can hold, and the structures of one that responses show."""
_DISPLAYED_MEANS: Final = ("card", "bankAccount", "tokenAccount")
_ONE_TIME: Final = ("cvv", "cryptogram", "dtvc", "pin")


def _build_card(values: PlainParameters, number: Secret, secrets: SecretParameters) -> Card:
    return Card(
        number=number,
        expiry_month=values.get("card.expiryMonth", ""),
        expiry_year=values.get("card.expiryYear", ""),
        holder=values.get("card.holder", ""),
        cvv=secrets.get("card.cvv"),
        number_type=values.get("card.numberType", ""),
        wallet=next((name.partition(".")[0] for name in (*values, *secrets) if name.startswith("wallet")), ""),
    )


def _build_bank_account(values: PlainParameters, account: Secret, secrets: SecretParameters) -> BankAccount:
    return BankAccount(
        account=account,
        is_iban="bankAccount.iban" in values or "bankAccount.iban" in secrets,
        holder=values.get("bankAccount.holder", ""),
        bank_name=values.get("bankAccount.bankName", ""),
        bank_code=values.get("bankAccount.bankCode", ""),
        bic=values.get("bankAccount.bic", ""),
        country=values.get("bankAccount.country", ""),
        mandate_id=values.get("bankAccount.mandate.id", ""),
        mandate_signed=values.get("bankAccount.mandate.dateOfSignature", ""),
        due_date=values.get("transactionDueDate", ""),
    )


def _build_virtual_account(_values: PlainParameters, account: Secret, _secrets: SecretParameters) -> VirtualAccount:
    return VirtualAccount(account=account)


def _build_token_account(values: PlainParameters, account: Secret, secrets: SecretParameters) -> TokenAccount:
    return TokenAccount(
        account=account,
        type=values.get("tokenAccount.type", ""),
        expiry_month=values.get("tokenAccount.expiryMonth", ""),
        expiry_year=values.get("tokenAccount.expiryYear", ""),
        cryptogram=secrets.get("tokenAccount.cryptogram"),
        dtvc=secrets.get("tokenAccount.dtvc"),
    )


def _build_gift_card(values: PlainParameters, account: Secret, secrets: SecretParameters) -> GiftCard:
    return GiftCard(account=account, pin=secrets.get("giftCard.pin"), holder=values.get("giftCard.holder", ""))


_Build = Callable[[PlainParameters, Secret, SecretParameters], Means]
ACCOUNT_PARAMETERS: Final[tuple[tuple[str, str], ...]] = (
    ("card.number", Card.kind),
    ("bankAccount.iban", BankAccount.kind),
    ("bankAccount.number", BankAccount.kind),
    ("virtualAccount.accountId", VirtualAccount.kind),
    ("tokenAccount.number", TokenAccount.kind),
)
"""The parameter that names an account → the kind of means."""
_BY_KIND: Final[Mapping[str, _Build]] = {
    Card.kind: _build_card,
    BankAccount.kind: _build_bank_account,
    VirtualAccount.kind: _build_virtual_account,
    TokenAccount.kind: _build_token_account,
    GiftCard.kind: _build_gift_card,
}
