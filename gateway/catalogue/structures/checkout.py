"""What checkouts add to the tables: stored cards that are offered, and what a shopper's browser may send.

Source: Part A, What the service does, 8; Authentication, 5; rulings, section 7.
"""

from __future__ import annotations

from gateway.catalogue.formats import literal
from gateway.catalogue.structure import NEVER, C, O, Structure, structure
from gateway.catalogue.structures.addresses import BILLING
from gateway.catalogue.structures.basic import ASYNCHRONOUS, BASIC_PAYMENT, CUSTOM_PARAMETERS, TOKENIZATION
from gateway.catalogue.structures.means import BANK_ACCOUNT, CARD, GIFT_CARD, VIRTUAL_ACCOUNT, WALLETS
from gateway.catalogue.structures.people import CUSTOMER

_ID = literal(
    "AN 32 letters and digits", "[0-9A-Za-z]{32}", expects="must be a registration id of 32 letters and digits",
    example="8ac7a4a19ad9a7a3019ada4b7c6d5e4f", bad="42",
)  # fmt: skip


def select_rows(table: Structure, *names: str) -> Structure:
    """Some rows of a table, none required: what is missing is reported when the payment is built."""
    return table.without(*(row.name for row in table.rows if row.name not in names)).demanding(NEVER)


OFFERED_CARDS = structure(
    "Stored cards offered", "Part A, What the service does, 8", "registrations[n]",
    ("id", _ID, O, "A registration of this shopper, shown in the form by brand and last digits."),
    demand=NEVER,
)  # fmt: skip

CHOSEN_CARD = structure(
    "Stored card chosen", "Decisions, section 7", "",
    ("registrationId", _ID, C, "One of the registrations this checkout offers, instead of a card's data."),
    demand=NEVER,
)  # fmt: skip

BROWSER_PARAMETERS = tuple(row.name for row in CUSTOMER.rows if row.name.startswith("browser."))

BROWSER_STRUCTURES: tuple[Structure, ...] = (
    select_rows(BASIC_PAYMENT, "paymentBrand"),
    select_rows(CARD, "holder", "number", "expiryMonth", "expiryYear", "cvv"),
    *(one.without("source").demanding(NEVER) for one in WALLETS),
    VIRTUAL_ACCOUNT.demanding(NEVER),
    select_rows(BANK_ACCOUNT, "holder", "bankName", "number", "iban", "bankCode", "bic", "country"),
    CHOSEN_CARD,
    select_rows(CUSTOMER, *BROWSER_PARAMETERS),
    select_rows(BILLING, "street1", "street2", "houseNumber1", "houseNumber2", "city", "state", "postcode", "country"),
    select_rows(TOKENIZATION, "createRegistration"),
    CUSTOM_PARAMETERS,
    select_rows(ASYNCHRONOUS, "shopperResultUrl"),
)
"""The names a page's form may send; none of them decides how much is paid, how, or to whom."""

ACCOUNT_STRUCTURES: tuple[Structure, ...] = (
    select_rows(CARD, "holder"),
    select_rows(BANK_ACCOUNT, "holder", "bankName", "country", "mandate.id", "mandate.dateOfSignature"),
    # Not its number and PIN: a shopper, who has the checkout's id, could pay with the gift card that is being bought.
    select_rows(GIFT_CARD, "holder", "message", "type"),
)
"""What a merchant may send of a means before the shopper has chosen one; its number comes from the form."""
