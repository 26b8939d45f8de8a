"""Every request and query table of the specification, as values, in the spec's order."""

from __future__ import annotations

from gateway.catalogue.structure import Structure
from gateway.catalogue.structures.addresses import BILLING, MERCHANT_BILLING, MERCHANT_SHIPPING, SHIPPING
from gateway.catalogue.structures.airline import AIRLINE, LEGS, PASSENGERS
from gateway.catalogue.structures.basic import (
    ACCOUNT_UPDATER,
    ASYNCHRONOUS,
    BASIC_PAYMENT,
    CHARGEBACK,
    CUSTOM_PARAMETERS,
    ENTITY,
    FOREX,
    PAYMENT_TYPE_CODES,
    TEST_MODE,
    TOKENIZATION,
)
from gateway.catalogue.structures.card_facts import CARD_FACTS
from gateway.catalogue.structures.card_on_file import STANDING_INSTRUCTION
from gateway.catalogue.structures.cart import CART_ITEMS, CART_PAYMENTS, MARKETPLACE
from gateway.catalogue.structures.checkout import ACCOUNT_STRUCTURES, BROWSER_STRUCTURES, CHOSEN_CARD, OFFERED_CARDS
from gateway.catalogue.structures.means import (
    BANK_ACCOUNT,
    CARD,
    DUE_DATE,
    GIFT_CARD,
    TOKEN_ACCOUNT,
    VIRTUAL_ACCOUNT,
    WALLETS,
)
from gateway.catalogue.structures.merchant import MERCHANT
from gateway.catalogue.structures.migration import MIGRATION
from gateway.catalogue.structures.payment_links import LINK, LINK_CART_ITEMS, LINK_CUSTOMER, LINK_PAGING, PAYMENT_PAGE
from gateway.catalogue.structures.people import CORPORATE, CUSTOMER, RECIPIENT, SENDER, SHIPPING_CUSTOMER
from gateway.catalogue.structures.query import PAGING, PAYMENT_METHOD_CODES, QUERY
from gateway.catalogue.structures.reporting import (
    APPROVALS,
    MAX_APPROVAL_DAYS,
    REPORTING,
    SETTLEMENT_FILTER,
    SETTLEMENT_PAGES,
)
from gateway.catalogue.structures.risk import RISK
from gateway.catalogue.structures.scheduling import JOB
from gateway.catalogue.structures.threeds import (
    EXEMPTION,
    NETWORK_KEYS,
    PROOF,
    SCHEME_DATA,
    THREE_D_SECURE,
    three_d_secure,
)

REQUEST_STRUCTURES: tuple[Structure, ...] = (
    ENTITY,
    TEST_MODE,
    # Part A
    BASIC_PAYMENT,
    FOREX,
    CARD,
    *WALLETS,
    VIRTUAL_ACCOUNT,
    BANK_ACCOUNT,
    DUE_DATE,
    TOKEN_ACCOUNT,
    CUSTOMER,
    SHIPPING_CUSTOMER,
    BILLING,
    MERCHANT_BILLING,
    SHIPPING,
    MERCHANT_SHIPPING,
    # Part B
    CORPORATE,
    SENDER,
    RECIPIENT,
    MERCHANT,
    CART_ITEMS,
    CART_PAYMENTS,
    MARKETPLACE,
    AIRLINE,
    PASSENGERS,
    LEGS,
    TOKENIZATION,
    MIGRATION,
    *THREE_D_SECURE,
    CUSTOM_PARAMETERS,
    SCHEME_DATA,
    ASYNCHRONOUS,
    GIFT_CARD,
    RISK,
    JOB,
    STANDING_INSTRUCTION,
    CHARGEBACK,
)
"""The structures of a payment request's body; no name is in two of them."""

ALL_STRUCTURES: tuple[Structure, ...] = (*REQUEST_STRUCTURES, REPORTING, QUERY)

_OWN = (ENTITY, TEST_MODE, BASIC_PAYMENT)
_MEANS = (CARD, *WALLETS, VIRTUAL_ACCOUNT, BANK_ACCOUNT, TOKEN_ACCOUNT, GIFT_CARD)
_FIRST_ONLY = (TOKENIZATION, MIGRATION, *THREE_D_SECURE, SCHEME_DATA, JOB)

REQUEST_STRUCTURES_OF_PAYMENTS = tuple(one for one in REQUEST_STRUCTURES if one not in _OWN)
"""All but the three that an endpoint lists for itself: entityId, testMode, Basic payment."""

REQUEST_STRUCTURES_OF_FOLLOW_UPS = tuple(
    one for one in REQUEST_STRUCTURES_OF_PAYMENTS if one not in _MEANS and one not in _FIRST_ONLY
)
"""Means, authentication, registration and schedule belong to the first payment of a chain (D2)."""

REQUEST_STRUCTURES_OF_CHECKOUTS = (
    *ACCOUNT_STRUCTURES,
    *(one for one in REQUEST_STRUCTURES_OF_PAYMENTS if one not in _MEANS),
    OFFERED_CARDS,
)
"""The shopper supplies the means (D29); other known data may be sent beforehand."""

KNOWN_STRUCTURES: tuple[Structure, ...] = (
    *ALL_STRUCTURES,
    OFFERED_CARDS,
    CHOSEN_CARD,
    PAGING,
    SETTLEMENT_PAGES,
    PAYMENT_PAGE,
    LINK,
    LINK_PAGING,
)
"""The specification's tables and ours: a name in one of these is known, though perhaps not accepted here."""

__all__ = [
    "ACCOUNT_UPDATER",
    "AIRLINE",
    "ALL_STRUCTURES",
    "APPROVALS",
    "ASYNCHRONOUS",
    "BANK_ACCOUNT",
    "BASIC_PAYMENT",
    "BILLING",
    "BROWSER_STRUCTURES",
    "CARD",
    "CARD_FACTS",
    "CART_ITEMS",
    "CART_PAYMENTS",
    "CHARGEBACK",
    "CHOSEN_CARD",
    "CORPORATE",
    "CUSTOMER",
    "CUSTOM_PARAMETERS",
    "DUE_DATE",
    "ENTITY",
    "EXEMPTION",
    "FOREX",
    "GIFT_CARD",
    "JOB",
    "KNOWN_STRUCTURES",
    "LEGS",
    "LINK",
    "LINK_CART_ITEMS",
    "LINK_CUSTOMER",
    "LINK_PAGING",
    "MARKETPLACE",
    "MAX_APPROVAL_DAYS",
    "MERCHANT",
    "MERCHANT_BILLING",
    "MERCHANT_SHIPPING",
    "MIGRATION",
    "NETWORK_KEYS",
    "OFFERED_CARDS",
    "PAGING",
    "PASSENGERS",
    "PAYMENT_METHOD_CODES",
    "PAYMENT_PAGE",
    "PAYMENT_TYPE_CODES",
    "PROOF",
    "QUERY",
    "RECIPIENT",
    "REPORTING",
    "REQUEST_STRUCTURES",
    "REQUEST_STRUCTURES_OF_CHECKOUTS",
    "REQUEST_STRUCTURES_OF_FOLLOW_UPS",
    "REQUEST_STRUCTURES_OF_PAYMENTS",
    "RISK",
    "SCHEME_DATA",
    "SENDER",
    "SETTLEMENT_FILTER",
    "SETTLEMENT_PAGES",
    "SHIPPING",
    "SHIPPING_CUSTOMER",
    "STANDING_INSTRUCTION",
    "TEST_MODE",
    "THREE_D_SECURE",
    "TOKENIZATION",
    "TOKEN_ACCOUNT",
    "VIRTUAL_ACCOUNT",
    "WALLETS",
    "three_d_secure",
]
