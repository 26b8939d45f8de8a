"""Means of payment: cards, wallets, accounts, tokens, gift cards.

Source: Part A, Card account, Mobile wallets, Virtual account, Bank account, Token account; Part B, Gift card.
"""

from __future__ import annotations

from gateway.catalogue.formats import (
    AN,
    COUNTRY,
    DATE,
    MONTH_NUMBER,
    YEAR_NUMBER,
    Format,
    N,
    chars,
    literal,
    one_of,
    person_name,
    with_words,
)
from gateway.catalogue.rules import required_one_of
from gateway.catalogue.structure import NEVER, C, Echo, O, R, Structure, structure

NEVER_ECHOED = {"echo": Echo.NEVER}
MASKED_MEANS_FIELD = {"echo": Echo.MASK}

MAX_WALLET_TOKEN_CHARS = 16_384
"""Most characters of an encrypted wallet token; the longest in use have about 4,000."""

CARD = structure(
    "Card account", "Part A", "card",
    ("holder", person_name(3, 128, words="A 3-128").eg("Jane Jones"), O),
    ("number", N(8, 32).eg("4200000000000000", "4200 0000"), R, "Card or account number.", NEVER_ECHOED),
    ("expiryMonth", MONTH_NUMBER, R),
    ("expiryYear", YEAR_NUMBER, R),
    ("cvv", N(3, 4).eg("123", "12"), C, "Asked for on channels that demand it.", NEVER_ECHOED),
    ("numberType", one_of("PAN", "DPAN"), O, "Whether the number is the card's own or a device's."),
    triggers=("number", "expiryMonth", "expiryYear"),
)  # fmt: skip


def _wallet(n: int) -> Structure:
    """One wallet: an encrypted token, or ``source`` with decrypted card data. A condition requires one."""
    network = with_words("as supplied by the wallet in its payment-method network field", AN(1, 255).eg("Visa"))
    kind = with_words("as supplied by the wallet in its payment-method type field", AN(1, 255).eg("debit"))
    only_first = (
        ("cardNetwork", network, O, "The wallet's network field."),
        ("cardType", kind, O, "The wallet's type field."),
    )
    return structure(
        "Mobile wallets",
        "Part A",
        f"wallet{n}",
        (
            "paymentToken",
            with_words("format defined by the wallet provider", AN(1, MAX_WALLET_TOKEN_CHARS)),
            R,
            "The encrypted token, unchanged.",
            NEVER_ECHOED,
        ),
        *(only_first if n == 1 else ()),
        ("source", one_of("web", "app"), R, "Where the decrypted card data came from."),
        demand=NEVER,
        note="Either paymentToken, or source with the decrypted card data.",
    )


WALLETS = tuple(_wallet(n) for n in (1, 2, 3))

VIRTUAL_ACCOUNT = structure(
    "Virtual account",
    "Part A",
    "virtualAccount",
    ("accountId", AN(1, 100).eg("shopper@mail.example"), R, "The shopper's id at the provider of the account."),
)


def _letters_and_digits(low: int, high: int, words: str, example: str) -> Format:
    return chars("letters and digits", "[A-Za-z0-9]", low, high, example=example, words=words)


BIC_FIELD = literal(
    "AN 8 or 11 letters and digits", "[A-Za-z0-9]{8}(?:[A-Za-z0-9]{3})?",
    expects="must be 8 or 11 letters and digits", example="MARKDEF1100", bad="MARKDEF11",
)  # fmt: skip
IBAN = literal(
    "AN up to 31: 2 letters, 2 digits, then 11-27 letters/digits", "[A-Za-z]{2}[0-9]{2}[A-Za-z0-9]{11,27}",
    expects="must be 2 letters, 2 digits, then 11 to 27 letters or digits, without spaces",
    example="DE23100000001234567890", bad="DE23 1000 0000 1234 5678 90",
)  # fmt: skip

# A holder alone requires nothing: it may accompany a registration (overrideHolder).
_ASIDE = ("bankName", "country", "mandate.id", "mandate.dateOfSignature")

BANK_ACCOUNT = structure(
    "Bank account", "Part A", "bankAccount",
    ("holder", AN(4, 128).eg("Jane Jones"), R),
    ("bankName", AN(1, 255).eg("Example Bank"), C),
    ("number", _letters_and_digits(3, 64, "AN 3-64 letters and digits", "1234567890"), C,
     "number or iban is required.", MASKED_MEANS_FIELD),
    ("iban", IBAN, C, "number or iban is required.", MASKED_MEANS_FIELD),
    ("bankCode", _letters_and_digits(1, 12, "AN 1-12 letters and digits", "37040044"), C,
     "bankCode or bic is required."),
    ("bic", BIC_FIELD, C, "bankCode or bic is required."),
    ("country", COUNTRY, C),
    ("mandate.id", chars(
        "letters and hyphens", "[A-Za-z-]", 1, 256,
        example="MANDATE-ABC", bad="4711", words="letters and hyphens, up to 256",
    ), C, "The direct-debit mandate. Left out of risk checks."),
    ("mandate.dateOfSignature", DATE, C, "Left out of risk checks."),
    triggers=("number", "iban", "bankCode", "bic", *_ASIDE),
    rules=[
        required_one_of("number", "iban", when=("bankCode", "bic", *_ASIDE)),
        required_one_of("bankCode", "bic", when=("number", "iban", *_ASIDE)),
    ],
)  # fmt: skip

DUE_DATE = structure(
    "Bank account", "Part A", "",
    ("transactionDueDate", DATE, C, "When the direct debit is due. Left out of risk checks."),
    demand=NEVER,
)  # fmt: skip

CRYPTOGRAM_FIELD = literal(
    "AN 28-32, base64 encoded", r"(?=.{28,32}$)[A-Za-z0-9+/]+={0,2}",
    expects="must be 28 to 32 characters of base64", example="AgAAAAAAAIR8CQrXcIhbQAAAAAA=", bad="AgAAAAAA",
)  # fmt: skip

TOKEN_ACCOUNT = structure(
    "Token account",
    "Part A",
    "tokenAccount",
    ("number", N(12, 19).eg("4200000000000000", "4200 0000"), R, "The token of an external provider.", NEVER_ECHOED),
    ("type", one_of("EXTERNAL", "NETWORK"), R),
    ("expiryMonth", MONTH_NUMBER, O),
    ("expiryYear", YEAR_NUMBER, O),
    ("cryptogram", CRYPTOGRAM_FIELD, C, "Dynamic data that proves the use of the token.", NEVER_ECHOED),
    ("dtvc", N(3, 4).eg("123", "12"), C, "Dynamic one-time token verification code.", NEVER_ECHOED),
)

GIFT_CARD = structure(
    "Gift card", "Part B", "giftCard",
    ("number", AN(2, 255).eg("GC-10042"), O, "", MASKED_MEANS_FIELD),
    ("pin", AN(2, 255).eg("4711"), O, "", NEVER_ECHOED),
    ("holder", AN(2, 255).eg("Jane Jones"), O),
    ("message", AN(2, 160).eg("Many happy returns"), O),
    ("type", one_of(
        "ANNIVERSARY", "BIRTHDAY", "CONGRATULATIONS", "APRIL_FOOLS_DAY", "EASTER", "FATHERS_DAY",
        "GRADUATION", "HOLIDAY", "SEASONS_GREETINGS", "PASSOVER", "KWANZAA", "HALLOWEEN", "MOTHERS_DAY",
        "NEW_YEARS_DAY", "BOSSES_DAY", "ST_PATRICKS_DAY", "SWEETEST_DAY", "CHRISTMAS", "BABY_SHOWER",
        "THANKSGIVING", "OTHER", "VALENTINES_DAY", "WEDDING", "SECRETARYS_DAY", "CHINESE_NEW_YEAR",
        "HANUKKAH", "CELEBRATE_FALL", "GRANDPARENTS_DAY", "INDEPENDENCE_DAY",
        words="AN up to 16",
    ), O, "The occasion."),
    demand=NEVER,
)  # fmt: skip
