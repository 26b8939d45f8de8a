"""Conditions across structures, by full name, in small groups that endpoints choose from.

Each is a ParameterRule with one example that keeps it and one that breaks it.
"""

from __future__ import annotations

from gateway.catalogue.conditions.accounts import ACCOUNT_CHECKS, IBAN_CHECK
from gateway.catalogue.conditions.amounts import AMOUNT_ZERO, CURRENCY_FITS, MARKETPLACE_SPLIT, ONE_PRIMARY
from gateway.catalogue.conditions.authentication import (
    CB_USECASE,
    INSTALMENTS,
    NO_MAIL_OR_TELEPHONE,
    NO_MAIL_OR_TELEPHONE_ON_PAGES,
    THREEDS_BROWSER,
    THREEDS_PROOF,
    THREEDS_REGISTRATION,
    THREEDS_RETURN_URL,
)
from gateway.catalogue.conditions.card_on_file import CARD_ON_FILE
from gateway.catalogue.conditions.cards import (
    CARD_CHECKS,
    CARD_FITS_BRAND,
    CARD_LUHN,
    CARD_NOT_EXPIRED,
    CVV_FITS_BRAND,
    NUMBER_ONLY_ONCE,
)
from gateway.catalogue.conditions.means import (
    AT_MOST_ONE_MEANS,
    BRAND_NEEDED,
    CVV_REQUIRED,
    DPAN_PROOF,
    MEANS_FOR_PAYMENT,
    NETWORK_TOKEN_PROOF,
    WALLET_WAYS,
)
from gateway.catalogue.conditions.parties import (
    CUSTOMER_NAMES,
    PURPOSE_CODE,
    REFERENCE_UUID,
    SHOPPER_RESULT_URL,
)
from gateway.catalogue.conditions.registrations import NOT_STORABLE, TO_STORE
from gateway.catalogue.rules import ParameterRule

FOR_FOLLOW_UPS: tuple[ParameterRule, ...] = (
    *CURRENCY_FITS,
    *AMOUNT_ZERO,
    *CUSTOMER_NAMES,
    *PURPOSE_CODE,
    *MARKETPLACE_SPLIT,
    *ONE_PRIMARY,
)

FOR_PAYMENTS: tuple[ParameterRule, ...] = (
    *MEANS_FOR_PAYMENT,
    *BRAND_NEEDED,
    *WALLET_WAYS,
    *DPAN_PROOF,
    *NETWORK_TOKEN_PROOF,
    *CVV_REQUIRED,
    *THREEDS_PROOF,
    *THREEDS_BROWSER,
    *THREEDS_RETURN_URL,
    *INSTALMENTS,
    *CARD_ON_FILE,
    *NOT_STORABLE,
    *CB_USECASE,
    *REFERENCE_UUID,
    *SHOPPER_RESULT_URL,
    *FOR_FOLLOW_UPS,
    *NUMBER_ONLY_ONCE,
    *CARD_CHECKS,
    *ACCOUNT_CHECKS,
)
"""All conditions of a server-to-server payment."""

FOR_AUTHENTICATIONS: tuple[ParameterRule, ...] = (
    *THREEDS_BROWSER,
    *THREEDS_RETURN_URL,
    *INSTALMENTS,
    *CB_USECASE,
    *CURRENCY_FITS,
    *CUSTOMER_NAMES,
    *NUMBER_ONLY_ONCE,
    *CARD_CHECKS,
)
"""Conditions of an authentication without a payment."""

FOR_CHECKOUTS: tuple[ParameterRule, ...] = (
    *THREEDS_PROOF,
    *INSTALMENTS,
    *NO_MAIL_OR_TELEPHONE_ON_PAGES,
    *(rule for rule in FOR_FOLLOW_UPS if rule not in CUSTOMER_NAMES),
)
"""Conditions of a payment before its means is known; a customer need not have a name (D28)."""

FOR_CHECKOUT_PAYMENTS: tuple[ParameterRule, ...] = tuple(rule for rule in FOR_PAYMENTS if rule not in CUSTOMER_NAMES)
"""Conditions of the payment that a checkout makes."""

FOR_REGISTRATIONS: tuple[ParameterRule, ...] = (
    *TO_STORE,
    *AT_MOST_ONE_MEANS,
    *BRAND_NEEDED,
    *THREEDS_REGISTRATION,
    *CARD_ON_FILE[:2],
    *CURRENCY_FITS,
    *CUSTOMER_NAMES,
    *NUMBER_ONLY_ONCE,
    *CARD_CHECKS,
    *ACCOUNT_CHECKS,
)
"""All conditions of a direct registration."""

FOR_ONE_CLICK: tuple[ParameterRule, ...] = (
    *THREEDS_PROOF,
    *THREEDS_BROWSER,
    *THREEDS_RETURN_URL,
    *INSTALMENTS,
    *CB_USECASE,
    *CARD_ON_FILE[:2],
    *FOR_FOLLOW_UPS,
)
"""All conditions of a payment by a registration; the means itself was checked when it was stored."""

ALL_CONDITIONS = (*FOR_PAYMENTS, *TO_STORE, *THREEDS_REGISTRATION)

__all__ = [
    "ACCOUNT_CHECKS",
    "ALL_CONDITIONS",
    "AMOUNT_ZERO",
    "AT_MOST_ONE_MEANS",
    "BRAND_NEEDED",
    "CARD_CHECKS",
    "CARD_FITS_BRAND",
    "CARD_LUHN",
    "CARD_NOT_EXPIRED",
    "CARD_ON_FILE",
    "CB_USECASE",
    "CURRENCY_FITS",
    "CUSTOMER_NAMES",
    "CVV_FITS_BRAND",
    "CVV_REQUIRED",
    "DPAN_PROOF",
    "FOR_AUTHENTICATIONS",
    "FOR_CHECKOUTS",
    "FOR_CHECKOUT_PAYMENTS",
    "FOR_FOLLOW_UPS",
    "FOR_ONE_CLICK",
    "FOR_PAYMENTS",
    "FOR_REGISTRATIONS",
    "IBAN_CHECK",
    "INSTALMENTS",
    "MARKETPLACE_SPLIT",
    "MEANS_FOR_PAYMENT",
    "NETWORK_TOKEN_PROOF",
    "NOT_STORABLE",
    "NO_MAIL_OR_TELEPHONE",
    "NO_MAIL_OR_TELEPHONE_ON_PAGES",
    "NUMBER_ONLY_ONCE",
    "ONE_PRIMARY",
    "PURPOSE_CODE",
    "REFERENCE_UUID",
    "SHOPPER_RESULT_URL",
    "THREEDS_BROWSER",
    "THREEDS_PROOF",
    "THREEDS_REGISTRATION",
    "THREEDS_RETURN_URL",
    "TO_STORE",
    "WALLET_WAYS",
]
