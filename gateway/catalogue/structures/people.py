"""Who takes part: the customer, who receives the goods, and the parties of a company payment or a transfer.

Source: Part A, Customer, Shipping customer; Part B, Corporate, Sender, Recipient.
"""

from __future__ import annotations

from gateway.catalogue.formats import (
    AN,
    AN_UP_TO,
    BOOLEAN,
    COUNTRY_3,
    DATE,
    LANGUAGE,
    Format,
    N,
    chars,
    literal,
    one_of,
    person_name,
    phone,
    value_list,
    with_words,
)
from gateway.catalogue.rules import required_together
from gateway.catalogue.structure import NEVER, C, Echo, O, structure

MASKED_PERSON_FIELD = {"echo": Echo.MASK}
CUSTOMER_EMAIL = AN(6, 128).eg("jane@mail.example")
CUSTOMER_PHONE = phone(
    1,
    25,
    words="up to 25; first char + or digit, then digits, space, dot, parentheses, slash, hyphen",
)
TIMEZONE = literal(
    "1-5", "-[0-9]{1,4}|[0-9]{1,5}",
    expects="must be minutes, at most 5 characters, with a minus when local time is ahead of UTC",
    example="-120", bad="+02:00",
)  # fmt: skip
CHALLENGE_WINDOW = literal("N1", "0?[1-5]", expects="must be a code from 1 to 5", example="5", bad="6")
_FOR_3DS = "Mandatory for 3D Secure v2."

CUSTOMER = structure(
    "Customer", "Part A", "customer",
    ("merchantCustomerId", AN(1, 255).eg("customer-17"), O, "The shopper's id in your system."),
    ("givenName", AN_UP_TO(50).eg("Jane"), C, "Required when any other customer parameter is sent."),
    ("middleName", AN(2, 50).eg("Maria"), O),
    ("surname", AN_UP_TO(50).eg("Jones"), C, "Required when any other customer parameter is sent."),
    ("sex", one_of("M", "F"), O),
    ("birthDate", DATE.eg("1990-05-14"), O),
    ("phone", CUSTOMER_PHONE, O, "Some risk checks need it."),
    ("mobile", with_words("same as phone", CUSTOMER_PHONE), O, "Some risk checks need it."),
    ("workPhone", AN(1, 25).eg("+49 89 1234567"), O, "Some risk checks need it."),
    ("email", CUSTOMER_EMAIL, O, "For risk checks and direct-debit mandates."),
    ("companyName", AN(1, 60).eg("Jones & Co"), O),
    ("identificationDocType", value_list("IDCARD", "PASSPORT", "TAXSTATEMENT"), C,
     "Requires identificationDocId."),
    ("identificationDocId", AN(8, 64).eg("C01X00T47"), C, "Requires identificationDocType.", MASKED_PERSON_FIELD),
    ("ip", AN(1, 255).eg("192.0.2.1"), O),
    ("merchantReference", AN_UP_TO(255).eg("account-17"), O,
     "The payer's account or a reference for the payee."),
    ("salutation", value_list("MR", "MRS", "MS", "MX"), O),
    ("language", LANGUAGE, O),
    ("category", one_of("INDIVIDUAL", "COMPANY"), O),
    ("browserFingerprint.id", AN(1, 255, words="1-255").eg("fp-4711"), O),
    ("browserFingerprint.value", AN(1, 4096, words="1-4096").eg("0400tyDoXdXc"), O),
    ("browser.acceptHeader", AN(1, 2048, words="1-2048").eg("text/html"), C,
     "Exact HTTP accept header. " + _FOR_3DS),
    ("browser.language", AN(1, 8, words="1-8").eg("de-DE"), C, "Language tag (BCP 47). " + _FOR_3DS),
    ("browser.screenHeight", N(1, 6, words="1-6").eg("1080", "tall"), C, "Pixels. " + _FOR_3DS),
    ("browser.screenWidth", N(1, 6, words="1-6").eg("1920", "wide"), C, "Pixels. " + _FOR_3DS),
    ("browser.timezone", TIMEZONE, C, "Minutes between UTC and local time, negative when ahead. " + _FOR_3DS),
    ("browser.userAgent", AN(1, 2048, words="1-2048").eg("Mozilla/5.0"), C,
     "Exact user-agent header. " + _FOR_3DS),
    ("browser.javaEnabled", BOOLEAN, C, _FOR_3DS),
    ("browser.screenColorDepth", N(1, 2, words="N 1-2").eg("24", "deep"), O, "Bits per pixel."),
    ("browser.challengeWindow", CHALLENGE_WINDOW, O, "Size of the challenge window, 1 (01) to 5 (05)."),
    ("browser.deviceId", AN(1, 32).eg("device-17"), O),
    ("app.deviceId", AN(1, 40).eg("device-17"), O, "A mobile device."),
    ("status", one_of("NEW", "EXISTING"), O),
    rules=[required_together("identificationDocType", "identificationDocId")],
    demand=NEVER,
)  # fmt: skip

SHIPPING_CUSTOMER = CUSTOMER.without(
    "browserFingerprint.id", "browserFingerprint.value", "browser.deviceId", "app.deviceId"
).at("shipping.customer", title="Shipping customer", need=O, note="Ships to another person.")

CORPORATE = structure(
    "Corporate", "Part B", "corporate",
    ("name", AN(1, 30).eg("Jones & Co"), O),
    ("description", AN(1, 160).eg("Office supplies"), O),
    ("street", AN(1, 100).eg("Main Street 12"), O),
    ("address", AN(1, 100, words="AN 1-100 (address line 2)").eg("Building B"), O),
    ("city", AN(1, 80).eg("Munich"), O),
    ("state", AN(1, 50).eg("BY"), O),
    ("postCode", AN(1, 16).eg("80331"), O),
    ("suite", AN(1, 30).eg("Suite 5"), O),
    ("postboxNumber", AN(1, 15).eg("1234"), O),
    ("purchase", one_of("Y", "N", words="Y or N (purchase indicator)"), O),
    ("phone", N(1, 25).eg("49891234567", "+49 89"), O),
    ("fax", N(1, 25).eg("49891234568", "+49 89"), O),
    ("vatId", AN(0, 255).eg("DE123456789"), O, "May be empty."),
    demand=NEVER,
)  # fmt: skip


def _words(high: int, example: str) -> Format:
    """Names and places of "letters, digits, whitespace" (D22)."""
    return person_name(1, high, words=f"letters, digits, whitespace, up to {high}", digits=True).eg(example)


def _code(example: str, words: str = "letters, digits, whitespace, up to 50") -> Format:
    """The same class for values that are not names: ASCII letters and digits only."""
    return chars("letters, digits, whitespace", "[A-Za-z0-9 ]", 1, 50, example=example, words=words)


NATIONALITY = person_name(1, 50, words="letters and whitespace, up to 50").eg("German")
BIRTH_COUNTRY = chars("upper-case letters", "[A-Z]", 1, 3, example="DEU", bad="deu", words="up to 3 letters (alpha-3)")
BIRTH_DATE = with_words("date yyyy-MM-dd", DATE).eg("1990-05-14")
SOURCES_OF_FUNDS = {
    "01": "credit",
    "02": "debit",
    "03": "prepaid",
    "04": "cash",
    "05": "debit or deposit-access accounts other than those linked to the cardholder's scheme",
    "06": "credit accounts other than those linked to the scheme",
    "07": "deposit account",
    "08": "mobile money account",
    "09": "other",
}

SENDER = structure(
    "Sender (the party who pays the debt)", "Part B", "sender",
    ("name", _words(100, "Jane Jones"), O),
    ("givenName", _words(50, "Jane"), O),
    ("middleName", _words(50, "Maria"), O),
    ("surname", _words(50, "Jones"), O),
    ("birthDate", BIRTH_DATE, O),
    ("accountNumber", AN_UP_TO(32).eg("DE23100000001234567890"), O, "", MASKED_PERSON_FIELD),
    ("street", AN_UP_TO(100).eg("Main Street 12"), O),
    ("city", _words(50, "Munich"), O),
    ("state", _words(50, "Bavaria"), O),
    ("country", COUNTRY_3, O),
    ("postcode", AN(1, 30).eg("80331"), O),
    ("accountNumberType", value_list(
        "OTHER", "RTN_AND_BANK_ACCOUNT", "IBAN", "IBAN_AND_BIC", "CARD_ACCOUNT"), O),
    ("sourceOfFunds", one_of(
        *SOURCES_OF_FUNDS,
        words="N2: " + ", ".join(f"{code} {what}" for code, what in SOURCES_OF_FUNDS.items()),
    ), O),
    ("entityType", _code(
        "business", "letters, digits, whitespace, up to 50 (for example individual or business)"), O),
    ("nationality", NATIONALITY, O),
    ("occupation", _code("Engineer"), O),
    ("birthCountry", BIRTH_COUNTRY, O),
    demand=NEVER,
)  # fmt: skip

RECIPIENT = structure(
    "Recipient (the party whose debt is paid)", "Part B", "recipient",
    ("givenName", _words(48, "Ravi"), O),
    ("middleName", _words(48, "Kumar"), O),
    ("surname", _words(48, "Mehta"), O),
    ("birthDate", BIRTH_DATE, O),
    ("phone", phone(
        1, 25, slash=False,
        words="starts with + or digit; digits, space, parentheses, dot, hyphen; up to 25",
    ), O),
    ("accountNumber", AN_UP_TO(32).eg("DE23100000001234567890"), O, "", MASKED_PERSON_FIELD),
    ("street", AN_UP_TO(100).eg("Main Street 12"), O),
    ("city", _words(50, "Pune"), O),
    ("state", _words(50, "Maharashtra"), O),
    ("country", COUNTRY_3.eg("IND"), O),
    ("postcode", AN(1, 30).eg("411001"), O),
    ("accountNumberType", value_list(
        "OTHER", "RTN_AND_BANK_ACCOUNT", "IBAN", "PHONE_NUMBER", "BAN_AND_BIC", "WALLET_ID",
        "SOCIAL_NETWORK_ID", also=("IBAN_AND_BIC",),
    ), O),
    ("nationality", NATIONALITY.eg("Indian"), O),
    ("identificationType", _code("PASSPORT"), O),
    ("identificationValue", _code("C01X00T47"), O, "", MASKED_PERSON_FIELD),
    ("entityType", _code("individual"), O),
    ("relationship", _code("brother"), O),
    ("occupation", _code("Engineer"), O),
    ("birthCountry", BIRTH_COUNTRY.eg("IND"), O),
    demand=NEVER,
)  # fmt: skip
