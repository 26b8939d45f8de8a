"""The acceptor: the data on the statement, and the sub-merchant a payment facilitator acts for.

Source: Part B, Merchant (the acceptor). All rows are optional.
"""

from __future__ import annotations

import re
from decimal import Decimal

from gateway.catalogue import iso
from gateway.catalogue.formats import AN, AN_UP_TO, COUNTRY, CUSTOM_PARAMETER_KEY, Format, chars, with_words
from gateway.catalogue.structure import NEVER, O, Param, structure

_COORDINATES = re.compile(r"([+-]?[0-9]{1,2}(?:\.[0-9]+)?), ?([+-]?[0-9]{1,3}(?:\.[0-9]+)?)")


def _are_coordinates(value: str) -> bool:
    found = _COORDINATES.fullmatch(value) if len(value) <= 20 else None
    return found is not None and abs(Decimal(found[1])) <= 90 and abs(Decimal(found[2])) <= 180


COORDINATES = Format(
    words="up to 20",
    expects="must be latitude,longitude in degrees, at most 20 characters",
    fits=_are_coordinates,
    example="48.13743,11.57549",
    counterexample="91.0,11.57549",
    schema={"type": "string", "maxLength": 20, "pattern": f"^{_COORDINATES.pattern}$"},
)
COUNTRY_NUMBER = Format(
    words="N3",
    expects="must be a country of ISO 3166-1 in three digits",
    fits=iso.COUNTRY_NUMBERS.__contains__,
    example="276",
    counterexample="DE",
    schema={"type": "string", "pattern": "^[0-9]{3}$"},
)
MERCHANT_STATE = chars("letters and digits", "[A-Za-z0-9]", 1, 50, example="BY", words="letters and digits, 1-50")
MERCHANT_POSTCODE = chars("letters, digits, hyphen", "[A-Za-z0-9-]", 1, 16, example="80331")
MERCHANT_PHONE = chars(
    "letters, digits, plus, hyphen, dot", "[A-Za-z0-9+.-]", 1, 25, example="+49-89-1234567", bad="(089) 12",
    words="up to 25 of letters, digits, plus, hyphen, dot",
)  # fmt: skip

MERCHANT = structure(
    "Merchant (the acceptor)", "Part B", "merchant",
    ("name", AN(1, 100).eg("Example Shop*Books"), O,
     "Overrides the name; usually the statement's first line."),
    ("mcc", AN_UP_TO(4).eg("5942"), O, "Merchant category code."),
    ("street", AN(1, 100).eg("Main Street 12"), O),
    ("city", AN(1, 100).eg("shop.example"), O,
     "Usually the statement's second line: a city, or a phone, e-mail or URL the shopper knows."),
    ("state", MERCHANT_STATE, O),
    ("countryCode", COUNTRY_NUMBER, O, "ISO 3166-1 numeric."),
    ("country", with_words("A2", COUNTRY), O, "ISO 3166-1 alpha-2."),
    ("postcode", MERCHANT_POSTCODE, O),
    ("geographicCoordinates", COORDINATES, O, "latitude,longitude"),
    ("serviceLocationCity", AN(1, 100).eg("Munich"), O, "Where the service was received, if elsewhere."),
    ("serviceLocationState", MERCHANT_STATE, O),
    ("serviceLocationCountryCode", AN(1, 3, words="up to 3").eg("276"), O),
    ("serviceLocationPostCode", MERCHANT_POSTCODE, O),
    ("serviceLocationGeographicCoordinates", COORDINATES, O),
    ("additionalContact", AN(1, 255).eg("help@shop.example"), O),
    ("phone", MERCHANT_PHONE, O),
    ("customerContactPhone", with_words("same format", MERCHANT_PHONE), O, "Customer-service phone."),
    ("websiteId", AN(0, 255).eg("visit-4711"), O, "A random id, unique to the transaction."),
    ("url", AN(1, 255).eg("https://shop.example"), O),
    ("partnerIdCode", AN(1, 60).eg("PARTNER-1"), O, "Partnership agreement code."),
    ("isoId", AN(1, 255).eg("ISO-1"), O, "Independent sales organisation."),
    ("payFacId", AN(1, 255).eg("PF-1"), O, "Payment facilitator."),
    ("payFacName", AN(1, 255).eg("Example Facilitator"), O, "Payment facilitator."),
    ("submerchantId", AN(1, 100).eg("SUB-1"), O, "Only for one card network's payment facilitators."),
    ("marketplaceId", AN(1, 255).eg("MARKET-1"), O),
    ("taxId", AN(1, 60).eg("DE123456789"), O),
    Param(
        name="data[key]", key=CUSTOM_PARAMETER_KEY, need=O,
        format=AN(0, 2048, words="key AN 3-64 of letters, digits, dot, underscore; value AN 0-2048").eg("7"),
        note="Extra data of the merchant.",
    ),
    ("foreignRetailIndicator", AN(1, 25).eg("Y"), O),
    ("legalName", AN(1, 100).eg("Example Shop Ltd"), O),
    ("app.schemeUrl", AN(1, 255).eg("exampleshop://paid"), O,
     "Custom URL scheme that opens the merchant's app."),
    demand=NEVER,
)  # fmt: skip
