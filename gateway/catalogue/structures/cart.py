"""What was bought, what was paid before, and whose goods they are.

Source: Part B, Cart items, Cart payments, Marketplace.
"""

from __future__ import annotations

from gateway.catalogue import iso
from gateway.catalogue.formats import (
    AMOUNT_WITH_DOT,
    AN,
    AN_UP_TO,
    BOOLEAN,
    CURRENCY,
    DATE,
    Format,
    N,
    literal,
    number_between,
    one_of,
    url,
    value_list,
    with_words,
)
from gateway.catalogue.structure import NEVER, C, O, structure

SAME_DECIMAL = with_words("same decimal form", AMOUNT_WITH_DOT)
QUANTITY = literal(
    "up to 12 digits, optional dot and up to 3 decimals", r"[0-9]{1,12}(?:\.[0-9]{1,3})?",
    expects="must be up to 12 digits, optionally a dot and up to 3 decimals", example="2", bad="2.0005",
)  # fmt: skip
TAX_PERCENTAGE = literal(
    "up to 6 chars, percentage 0 to 100 with up to two decimals",
    r"100(?:\.0{1,2})?|[0-9]{1,2}(?:\.[0-9]{1,2})?",
    expects="must be a percentage from 0 to 100 with up to two decimals", example="19.00", bad="100.01",
)  # fmt: skip
COUNTRY_OR_NUMBER = Format(
    words="2 letters or 3 digits",
    expects="must be a country of ISO 3166-1 in two capitals or three digits",
    fits=(iso.COUNTRIES_2 | iso.COUNTRY_NUMBERS).__contains__,
    example="DE",
    counterexample="DEU",
    schema={"type": "string", "pattern": "^(?:[A-Z]{2}|[0-9]{3})$"},
)
WEB_ADDRESS = url(1, 2048, words="valid URL", web_only=True)
CART_TEXT = AN(1, 255)

CART_ITEMS = structure(
    "Cart items", "Part B", "cart.items[n]",
    ("name", CART_TEXT.eg("Blue mug"), C),
    ("merchantItemId", CART_TEXT.eg("item-1"), C, "Unique item id."),
    ("quantity", QUANTITY, C),
    ("type", one_of(
        "PHYSICAL", "DIGITAL", "MIXED", "ANONYMOUS_DONATION", "AUTHORITIES_PAYMENT", words="AN 1-255"), C),
    ("sku", CART_TEXT.eg("MUG-BLUE"), O),
    ("currency", with_words("A3 ISO 4217", CURRENCY), C),
    ("description", AN(1, 2048).eg("A mug of blue china"), C),
    ("commodityCode", N(1, 8, words="N8").eg("50202306", "5020-23"), O,
     "Commodity code of the product (L3)."),
    ("commodityDescription", AN_UP_TO(50).eg("Mugs"), O, "L3."),
    ("originalPrice", CART_TEXT.eg("8.00"), O, "Per unit, without tax and discount."),
    ("price", AMOUNT_WITH_DOT.eg("9.52"), C, "Per unit, with tax and discount."),
    ("totalAmount", SAME_DECIMAL.eg("19.04"), C, "For the whole quantity."),
    ("taxAmount", SAME_DECIMAL.eg("1.52"), C, "Per unit."),
    ("totalTaxAmount", SAME_DECIMAL.eg("3.04"), C),
    ("tax", TAX_PERCENTAGE, C),
    ("taxCategory", one_of("AA", "S", "E", "Z", words="AN2: AA, S, E or Z"), C, "Mandatory L3 tax category."),
    ("shipping", SAME_DECIMAL.eg("4.90"), C, "Shipping amount of the item."),
    ("discount", SAME_DECIMAL.eg("1.00"), C),
    ("giftMessage", CART_TEXT.eg("Many happy returns"), O),
    ("shippingMethod", CART_TEXT.eg("Parcel"), O),
    ("shippingInstructions", CART_TEXT.eg("Fragile"), O),
    ("shippingTrackingNumber", CART_TEXT.eg("TRACK-1"), O),
    ("quantityUnit", value_list("M", "CM", "KG", "G", "COUNT"), O, "",
     {"default": "COUNT", "filled": True}),
    ("productUrl", WEB_ADDRESS.eg("https://shop.example/mug"), O),
    ("imageUrl", WEB_ADDRESS.eg("https://shop.example/mug.png"), O),
    ("totalDiscountAmount", SAME_DECIMAL.eg("2.00"), O, "What the discount percentage comes to."),
    ("productCode", AN(1, 30).eg("MUG-1"), O, "Your product code."),
    ("partNumber", AN(1, 30).eg("PART-1"), O, "The manufacturer's part number."),
    ("itemNumber", number_between(1, 999, words="N3, 1 to 999"), O, "Line number on the invoice."),
    ("vatReferenceNumber", AN(1, 30).eg("DE123456789"), O),
    ("sellerId", CART_TEXT.eg("seller-1"), O, "The marketplace seller who owns the item."),
    ("recipient.salutation", AN(1, 5).eg("MS"), O),
    ("recipient.firstName", AN(1, 48).eg("Jane"), O),
    ("recipient.lastName", AN(1, 48).eg("Jones"), O),
    ("recipient.middleName", AN(1, 50).eg("Maria"), O),
    ("recipient.apartment", AN(1, 100).eg("4b"), O),
    ("recipient.street", AN(1, 100).eg("Main Street 12"), O, "Address line 1."),
    ("recipient.address", AN(1, 100).eg("Building B"), O, "Address line 2."),
    ("recipient.city", AN(1, 80).eg("Munich"), O),
    ("recipient.state", AN(1, 50).eg("Bavaria"), O),
    ("recipient.postcode", AN(1, 16).eg("80331"), O),
    ("recipient.country", COUNTRY_OR_NUMBER, O),
    ("recipient.phone", N(1, 25).eg("49891234567", "+49 89"), O),
    ("recipient.email", AN(1, 128).eg("jane@mail.example"), O),
    ("deliveryDate", DATE, O),
    demand=NEVER,
    max_items=1000,
    note="Index n from 0 to 999.",
)  # fmt: skip

CART_PAYMENTS = structure(
    "Cart payments", "Part B", "cart.payments[n]",
    ("name", CART_TEXT.eg("Gift card"), O, "Name of the payment method."),
    ("type", one_of("GIFTCARD", "PROMOTION", words="AN 1-255"), O),
    ("amount", AMOUNT_WITH_DOT.eg("10.00"), O),
    ("currency", with_words("3 letters", CURRENCY), O),
    ("status", one_of("pending", "authorized", "captured", words="AN 1-255"), O),
    ("brand", CART_TEXT.eg("VISA"), O),
    ("primary", BOOLEAN, O, "The cart's primary payment method; one at most."),
    demand=NEVER,
    note="Payments already made; index n from 0.",
)  # fmt: skip

MARKETPLACE = structure(
    "Marketplace", "Part B", "marketPlace.sellers[n]",
    ("id", CART_TEXT.eg("seller-1"), O, "Items of this seller carry it as their sellerId."),
    ("amount", AMOUNT_WITH_DOT, O),
    demand=NEVER,
    note="Index n from 0.",
)  # fmt: skip
