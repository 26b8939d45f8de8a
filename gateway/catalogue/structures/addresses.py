"""Billing and shipping addresses, the customer's and the merchant's.

Source: Part A, Billing address, Merchant billing address, Shipping address, Merchant shipping address.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue.formats import (
    AMOUNT_WITH_DOT,
    AN,
    COUNTRY,
    DATE,
    chars,
    one_of,
    person_name,
    phone,
    value_list,
    with_words,
)
from gateway.catalogue.rules import RuleBreach, RuleInput, build_rule, requires
from gateway.catalogue.structure import NEVER, C, O, structure

STREET = AN(1, 100).eg("Main Street")
HOUSE_NUMBER = AN(1, 100).eg("12a")
STATE = chars("letters, digits, dot", "[A-Za-z0-9.]", 1, 50, example="BY")
POSTCODE = chars("letters and digits", "[A-Za-z0-9]", 1, 16, example="80331")
PERSON_NAME_FIELD = AN(1, 255, words="AN").eg("Jane")
COMPANY = AN(1, 60).eg("Jones & Co")
PHONE_TEXT = AN(1, 25).eg("+49 89 1234567")
PHONE = phone(
    6,
    26,
    words="6-26 chars, first char + or digit, then digits, space, dot, parentheses, slash, hyphen",
)
EMAIL = AN(6, 128).eg("jane@mail.example")
NORMALIZED = AN(1, 255).eg("12 Main Street, 80331 Munich, DE")
VALIDATION_STATUS = AN(1, 255).eg("validated")
_FOR_3DS = "Mandatory for 3D Secure v2."
_STREET_ONLY = "When present, street1 holds only the street's name and street2 is ignored."


def _streets(sent: RuleInput) -> Iterator[RuleBreach]:
    first, second = sent.get("street1"), sent.get("street2")
    if first is None and second is None:
        return
    if f"{first or ''}{second or ''}".replace(" ", "").isdecimal():
        yield ("street2" if first is None else "street1"), "must not consist of digits only, street2 included"


NOT_ONLY_DIGITS = build_rule(
    "street1 plus street2 must not consist of digits only", ("street1", "street2"), _streets,
    keeps={"street1": "12 Main", "street2": "34"}, breaks={"street1": "12", "street2": "34"},
)  # fmt: skip
HOUSE_NUMBERS = requires("houseNumber2", "houseNumber1")

BILLING = structure(
    "Billing address", "Part A", "billing",
    ("street1", STREET, C, _FOR_3DS),
    ("street2", AN(1, 100).eg("Building B"), C, "street1 plus street2 must not consist of digits only."),
    ("houseNumber1", HOUSE_NUMBER, O, _STREET_ONLY),
    ("houseNumber2", HOUSE_NUMBER, O, "Requires houseNumber1."),
    ("city", AN(1, 80).eg("Munich"), C, _FOR_3DS),
    ("state", STATE, C),
    ("postcode", POSTCODE, C, _FOR_3DS),
    ("country", with_words("A2 uppercase, ISO 3166-1", COUNTRY), C, _FOR_3DS),
    ("normalized", NORMALIZED, O, "The normalized address."),
    ("validationStatus", VALIDATION_STATUS, O, "Whether the consumer confirmed the normalized form."),
    rules=[NOT_ONLY_DIGITS, HOUSE_NUMBERS],
    demand=NEVER,
)  # fmt: skip

MERCHANT_BILLING = BILLING.at(
    "merchant.billing", title="Merchant billing address", need=O, note="Bills from another location."
).plus(
    ("givenName", PERSON_NAME_FIELD, O),
    ("surname", PERSON_NAME_FIELD.eg("Jones"), O),
    ("middleName", PERSON_NAME_FIELD.eg("Maria"), O),
    ("companyName", COMPANY, O),
    ("phone", PHONE_TEXT, O),
    ("workPhone", PHONE_TEXT, O),
    ("mobile", PHONE, O),
    ("email", EMAIL, O),
)

SHIPPING_METHODS = (
    "CARRIER_DESIGNATED_BY_CUSTOMER", "ELECTRONIC_DELIVERY", "EXPEDITED", "GROUND", "INTERNATIONAL",
    "LOWEST_COST", "MILITARY", "NEXT_DAY_OVERNIGHT", "OTHER", "POINT_PICKUP", "PUDO", "SAME_DAY_SERVICE",
    "STORE_PICKUP", "THREE_DAY_SERVICE", "TWO_DAY_SERVICE",
)  # fmt: skip

SHIPPING = structure(
    "Shipping address", "Part A", "shipping",
    ("street1", STREET, C),
    ("street2", AN(1, 100).eg("Building B"), C),
    ("houseNumber1", HOUSE_NUMBER, O, _STREET_ONLY),
    ("houseNumber2", HOUSE_NUMBER, O, "Requires houseNumber1."),
    ("city", person_name(1, 80, words="letters 1-80").eg("Munich"), C),
    ("state", STATE, C),
    ("postcode", POSTCODE, C),
    ("country", with_words("A2 letters, ISO 3166-1", COUNTRY), C),
    ("method", one_of(*SHIPPING_METHODS, words="5-30 uppercase letters and underscore"), C),
    ("cost", AMOUNT_WITH_DOT.eg("4.90"), C, "Total shipping cost."),
    ("comment", AN(1, 160).eg("Leave at the door"), C),
    ("expectedDate", DATE, O, "Expected delivery."),
    ("logisticsProvider", AN(1, 255).eg("Example Parcel"), O),
    ("trackingNumber", AN(1, 255).eg("TRACK-1"), O),
    ("returnTrackingNumber", AN(1, 255).eg("TRACK-2"), O),
    ("normalized", NORMALIZED, O),
    ("validationStatus", VALIDATION_STATUS, O),
    ("warehouse", AN(1, 100).eg("North"), O, "The warehouse that delivers."),
    ("preference", value_list("GET_FROM_FILE", "NO_SHIPPING", "SET_PROVIDED_ADDRESS"), O),
    ("middleName", PERSON_NAME_FIELD.eg("Maria"), O),
    ("companyName", COMPANY, O),
    ("phone", PHONE, O),
    ("mobile", PHONE, O),
    ("workPhone", PHONE_TEXT, O),
    ("email", EMAIL, O),
    ("type", one_of("RETURN", "SHIPMENT"), O),
    rules=[HOUSE_NUMBERS],
    demand=NEVER,
)  # fmt: skip

MERCHANT_SHIPPING = SHIPPING.at(
    "merchant.shipping", title="Merchant shipping address", need=O, note="Ships from another location."
)
