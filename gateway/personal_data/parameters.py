"""Which request parameters can hold a shopper's data, and how they are removed from stored documents.

Stored requests, answers and webhook bodies have the same names in the same nesting as the parameter catalogue, so one
list says it for all of them. A test holds that every parameter of the catalogue is in one of the two lists.
Source: docs/decisions/0102.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

PERSONAL_PARAMETERS: Final = (
    "card.holder", "card.number", "card.expiryMonth", "card.expiryYear", "card.cvv",
    "wallet1", "wallet2", "wallet3", "virtualAccount", "tokenAccount", "giftCard",
    "bankAccount.holder", "bankAccount.number", "bankAccount.iban", "bankAccount.bic", "bankAccount.bankName",
    "bankAccount.bankCode", "bankAccount.mandate.dateOfSignature",
    "customer", "billing", "shipping", "corporate", "sender", "recipient",
    "cart.items.recipient", "cart.items.giftMessage", "cart.items.shippingInstructions",
    "cart.items.shippingTrackingNumber",
    "airline.passengers", "airline.bookingRefNum", "airline.ticketDeliveryMethod",
    "threeDSecure.deviceInfo", "customParameters", "risk.parameters", "risk.accountToken", "merchantMemo",
    "link.description",
)  # fmt: skip
"""Names, or beginnings of names, whose values can be a shopper's."""
KEPT_PARAMETERS: Final = frozenset({"customParameters.paymentLinkId", "customParameters[paymentLinkId]"})
"""Below a personal name, but the product's own: a payment link counts its payments by it."""
ANSWERED_PERSONAL_MEMBERS: Final = ("redirect",)
"""Members that only answers have: a redirect's fields repeat what the shopper's bank was sent."""
NOT_PERSONAL_PARAMETERS: Final = (
    "entityId", "testMode", "amount", "taxAmount", "discountAmount", "currency", "paymentBrand", "paymentType",
    "integrity", "overridePaymentType", "descriptor", "merchantTransactionId", "merchantInvoiceId",
    "transactionCategory", "sequence", "numberOfCaptures", "promotionCode", "locale", "transactionPurposeCode",
    "integrationType", "transactionBai", "transactionTti", "transactionProcessingCode", "lifecycleId",
    "referenceUuid", "forex", "card.numberType", "bankAccount.country", "bankAccount.mandate.id",
    "transactionDueDate", "merchant", "cart.items", "cart.payments", "marketPlace", "airline",
    "createRegistration", "overrideHolder", "recurringMigration", "threeDSecure", "shopperResultUrl",
    "notificationUrl", "risk", "job", "standingInstruction", "chargebackResultCode", "date", "sortValue",
    "sortOrder", "limit", "paymentTypes", "paymentMethods", "includeLinkedTransactions", "shortId",
    "registrations", "registrationId", "pageNo", "reconciliationType", "paymentPage", "link", "accountUpdater",
)  # fmt: skip
"""The rest: amounts, references of the merchant, the merchant's own data. A longer name in PERSONAL_PARAMETERS goes
first."""

_INDEX: Final = re.compile(r"\[(?:[0-9]+|n)\]")


def is_personal_parameter(name: str) -> bool:
    """Whether the value of ``name``, such as ``customer.email`` or ``cart.items.name``, can be a shopper's."""
    if name in KEPT_PARAMETERS:
        return False
    name = _INDEX.sub("", name)
    return any(_begins(name, one) for one in (*PERSONAL_PARAMETERS, *ANSWERED_PERSONAL_MEMBERS))


def is_known_parameter(name: str) -> bool:
    """Whether one of the two lists has ``name``."""
    return is_personal_parameter(name) or any(_begins(_INDEX.sub("", name), one) for one in NOT_PERSONAL_PARAMETERS)


def remove_personal_values(document: Any) -> Any:
    """``document`` without its personal members. Lists do not count in a path: ``cart.items[0].name`` is
    ``cart.items.name``."""
    return _select(document, "", personal=False)


def select_personal_values(document: Any) -> Any:
    """The personal members of ``document`` alone."""
    return _select(document, "", personal=True)


def _select(document: Any, path: str, *, personal: bool) -> Any:
    if not path and _is_list_of_pairs(document):
        return [pair for pair in document if (not _is_free_of_people(pair[0])) is personal]
    if isinstance(document, list):
        return [_select(one, path, personal=personal) for one in document]
    if not isinstance(document, Mapping):
        return document
    found: dict[str, Any] = {}
    for name, value in document.items():
        below = f"{path}.{name}" if path else str(name)
        if isinstance(value, Mapping | list):
            inner = _select(value, below, personal=personal)
            if inner or (not value and is_personal_parameter(below) is personal):
                found[name] = inner
        elif is_personal_parameter(below) is personal:
            found[name] = value
    return found


def _is_list_of_pairs(document: Any) -> bool:
    """Whether it is the request log's form: [name, value] as sent, unknown names too."""
    return isinstance(document, list) and all(isinstance(one, list) and len(one) == 2 for one in document)


def _is_free_of_people(name: str) -> bool:
    """A name that the catalogue does not have may be a misspelt ``customer.email``."""
    return is_known_parameter(name) and not is_personal_parameter(name)


def _begins(name: str, beginning: str) -> bool:
    return name == beginning or name.startswith((f"{beginning}.", f"{beginning}["))
