"""Rules shared by all connectors for building acquirer messages: what is forwarded, and how messages are masked.

Source: Part A, Basic payment (descriptor, merchantInvoiceId), Billing address (houseNumber1), Shipping address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from django.conf import settings

from gateway.catalogue.endpoints import PAYMENT_ENDPOINT
from gateway.catalogue.parse import mask_account_number, nest_entries
from gateway.catalogue.structure import Echo
from gateway.connectors.means import BankAccount, Card, GiftCard, Means, TokenAccount, VirtualAccount
from gateway.connectors.port import AcquirerRequest
from gateway.core import result_codes
from gateway.core.masking import MASK_STARS, mask_iban, mask_pan
from gateway.core.secret import Secret, reveal_text

INITIAL_REFERENCE: Final = "standingInstruction.initialTransactionId"
MIGRATED_REFERENCES: Final = tuple(f"recurringMigration.connectorTxId{number}" for number in (1, 2, 3))
_SCHEME_REFERENCE: Final = re.compile(r"[0-9A-Z]{9,15}")
"""Visa, American Express and Discover: 15 digits; Mastercard: 9 characters of the network and 4 of the date."""
LINK_PARAMETER: Final = "standingInstruction.agreementId"
"""The parameter by which a merchant-initiated payment names its agreement's transaction link."""
_TRANSACTION_LINK: Final = re.compile(r"[0-9A-Za-z_-]{22}")
"""Mastercard's Transaction Link Identifier (TLID): https://docs.stripe.com/payments/cards/mastercard-tlid."""
_ADDRESSES = ("billing", "shipping", "merchant.billing", "merchant.shipping")


ONE_TIME_SECRETS: Final = ("cvv", "cryptogram", "dtvc", "pin")
"""Fields of a means of payment that may be used only once."""
CRYPTOGRAM_PARAMETER: Final = "threeDSecure.verificationId"
"""The parameter with an authentication's cryptogram (CAVV, AAV); it is forwarded as AcquirerRequest.cryptogram."""


def forwardable_parameters(values: Mapping[str, str | Secret]) -> dict[str, str]:
    """The parameters that may be sent to an acquirer.

    Leaves out secrets, merchantInvoiceId, merchantMemo, and ``street2`` where there is a ``houseNumber1``;
    ``merchant.name`` overrides the descriptor. Account numbers are masked: the paying account is forwarded with the
    means.
    """
    found: dict[str, str] = {}
    for name, value in values.items():
        row = PAYMENT_ENDPOINT.catalogue.find(name)
        if row is None or not row[0].param.forwarded or row[0].param.private or row[0].param.echo is Echo.NEVER:
            continue
        if row[0].param.echo is Echo.MASK:
            found[name] = mask_account_number(reveal_text(value))
        elif isinstance(value, str):
            found[name] = value
    for address in _ADDRESSES:
        if f"{address}.houseNumber1" in found:
            found.pop(f"{address}.street2", None)
    if "merchant.name" in found:
        found["descriptor"] = found["merchant.name"]
    return found


def flatten_body(body: Mapping[str, Any]) -> dict[str, str]:
    """Turn a nested body back into parameters by full name: the inverse of :func:`nest_entries`."""
    return dict(_flat(body, ""))


def _flat(node: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, Mapping):
        for key, child in node.items():
            in_map = f"{name}[{key}]"
            is_map = bool(name) and PAYMENT_ENDPOINT.catalogue.find(in_map) is not None
            yield from _flat(child, in_map if is_map else f"{name}.{key}" if name else key)
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from _flat(child, f"{name}[{index}]")
    elif isinstance(node, str):
        yield name, node


def external_success_code() -> str:
    """The success code of a real approval: the EXTERNAL one in the test environment, else the live one (ruling D18)."""
    return result_codes.SUCCESS_CODES["" if settings.IS_LIVE else result_codes.EXTERNAL_TEST_MODE]


def parse_scheme_reference(text: str) -> str:
    """``text`` without blanks if it looks like a card scheme's transaction id, else ''.

    A processor's own id, for example, means nothing to another processor or to the scheme.
    """
    packed = "".join(text.split())
    return packed if _SCHEME_REFERENCE.fullmatch(packed) else ""


def parse_transaction_link(text: str) -> str:
    """``text`` if it looks like an id by which Mastercard links transactions, else ''."""
    return text if _TRANSACTION_LINK.fullmatch(text) else ""


def resolve_initial_reference(parameters: Mapping[str, str]) -> str:
    """The reference to an agreement's first transaction that a processor is sent; '' for none.

    It is either a migrated reference, unchanged, or one that looks like a scheme's transaction id.
    """
    named = parameters.get(INITIAL_REFERENCE, "")
    return named if named in [parameters.get(name) for name in MIGRATED_REFERENCES] else parse_scheme_reference(named)


def mask_request(request: AcquirerRequest) -> dict[str, Any]:
    """The request for the stored exchange: nested, account masked, one-time secrets as presence flags only."""
    entries = []
    for name, value in request.parameters.items():
        if name == INITIAL_REFERENCE and not resolve_initial_reference(request.parameters):
            continue
        found = PAYMENT_ENDPOINT.catalogue.find(name)
        if found is not None:
            row, indexes, key = found
            entries.append((row.path, indexes, key, value))
    body = nest_entries(entries)
    if request.cryptogram is not None:
        body.setdefault("threeDSecure", {})["verificationId"] = MASK_STARS
    for name in ("paymentType", "amount", "currency", "paymentBrand"):
        body.pop(name, None)
    message: dict[str, Any] = {
        "operation": request.operation,
        "amount": request.money.text(),
        "currency": request.money.currency,
        "brand": request.brand,
        "transaction": request.payment.hex,
    }
    if request.reference:
        message["reference"] = request.reference
    if request.means is not None:
        message[request.means.kind] = {**body.pop(request.means.kind, {}), **mask_means(request.means)}
    body.pop("card", None)
    return message | body


def mask_means(means: Means) -> dict[str, Any]:
    """A means of payment for storage: account masked, one-time secrets as presence flags only."""
    facts = {name: value for name, value in _MASKED[means.kind](means).items() if value != ""}
    return {**mask_means_account(means), **facts}


def mask_means_account(means: Means) -> dict[str, str]:
    """The masked account by its parameter name."""
    name, masking = _ACCOUNT[means.kind]
    if isinstance(means, BankAccount) and means.is_iban:
        name, masking = "iban", mask_iban
    return {name: masking(means.account.reveal())}


def _card(means: Any) -> dict[str, Any]:
    return {
        "expiryMonth": means.expiry_month,
        "expiryYear": means.expiry_year,
        "cvvPresent": means.cvv is not None,
    }


def _bank_account(means: Any) -> dict[str, Any]:
    signed = {"id": means.mandate_id, "dateOfSignature": means.mandate_signed}
    mandate = {name: value for name, value in signed.items() if value}
    return {
        "holder": means.holder,
        "bankName": means.bank_name,
        "bankCode": means.bank_code,
        "bic": means.bic,
        "country": means.country,
        **({"mandate": mandate} if mandate else {}),
    }


def _token_account(means: Any) -> dict[str, Any]:
    return {
        "type": means.type,
        "expiryMonth": means.expiry_month,
        "expiryYear": means.expiry_year,
        "cryptogramPresent": means.cryptogram is not None,
        "dtvcPresent": means.dtvc is not None,
        "requestor": means.requestor,
    }


def _gift_card(means: Any) -> dict[str, Any]:
    return {"holder": means.holder, "pinPresent": means.pin is not None}


_MASKED: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    Card.kind: _card, BankAccount.kind: _bank_account, VirtualAccount.kind: lambda _: {},
    TokenAccount.kind: _token_account, GiftCard.kind: _gift_card,
}  # fmt: skip
_ACCOUNT: Final[Mapping[str, tuple[str, Callable[[str], str]]]] = {
    Card.kind: ("number", mask_pan),
    BankAccount.kind: ("number", mask_account_number),
    VirtualAccount.kind: ("accountId", mask_account_number),
    TokenAccount.kind: ("number", mask_pan),
    GiftCard.kind: ("number", mask_account_number),
}
"""Kind → the name of the account's parameter, and how it is masked."""
