"""What is paid, by which operation, and the references that go with it.

Source: Part A, Basic payment, Forex, Authentication; Part B, Tokenization and registration, Custom parameters
and scheme data, Asynchronous payment parameters, Chargeback.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue.formats import (
    AMOUNT,
    AN,
    BOOLEAN,
    BRAND_KEY,
    CURRENCY,
    CUSTOM_PARAMETER_KEY,
    Format,
    chars,
    literal,
    number_between,
    one_of,
    url,
    value_list,
    with_words,
)
from gateway.catalogue.rules import RuleBreach, RuleInput, build_rule, required_together
from gateway.catalogue.structure import ALWAYS, NEVER, C, O, Param, R, structure

PAYMENT_TYPE_CODES = (
    "CB", "CD", "CR", "DB", "CP", "IV", "PA", "RB", "RC", "RF", "RL", "RV", "AD", "IN", "FI", "CL",
    "CF", "DR", "RG", "RR", "TE", "CT", "DS", "RS", "SD", "AC", "MD", "EA", "RI", "3D", "SA", "EN",
    "ID", "IC", "DP", "CG", "TG", "SF", "IS", "VD", "DV", "AF", "GK", "RD", "TM", "FT", "KT", "AR",
    "AL", "PL", "FN", "FZ", "RE", "RX", "FO", "CS", "EX", "SE", "AU", "TK", "TF", "ER",
)  # fmt: skip
"""The operation codes in use (Part B, Query, paymentTypes); the block of paymentType itself shows no list."""

PAYMENT_TYPE = one_of(*PAYMENT_TYPE_CODES, words="A2").eg("DB", "ZZ")
BRAND_FIELD = chars(
    "letters, digits, underscore", "[A-Za-z0-9_]", 1, 32,
    example="VISA", bad="VISA!", words="AN 1-32 of letters, digits, underscore",
)  # fmt: skip


def _letters_and_digits(high: int, example: str) -> Format:
    words = f"AN up to {high}, letters and digits"
    return chars("letters and digits", "[A-Za-z0-9]", 1, high, example=example, words=words)


ENTITY = structure(
    "Authentication", "Part A", "",
    ("entityId", literal(
        "AN 32, lowercase hexadecimal", "[0-9a-f]{32}", expects="must be 32 digits or letters a to f",
        example="8a8294174b7ecb28014b9699220015ca", bad="8A8294174B7ECB28014B9699220015CA",
    ), C, "The channel; the merchant entity where channel dispatching is active.", {"private": True}),
)  # fmt: skip

TEST_MODE = structure(
    "Test modes", "Part A, What the service does, 5", "",
    ("testMode", one_of("EXTERNAL", "INTERNAL"), O,
     "EXTERNAL goes to the processor's test system, INTERNAL to the simulators.", {"default": "INTERNAL"}),
)  # fmt: skip

BASIC_PAYMENT = structure(
    "Basic payment", "Part A", "",
    ("amount", AMOUNT, R, "The only amount that is processed; taxes and shipping are already in it."),
    ("taxAmount", AMOUNT.eg("14.69"), C, "The tax part of the amount."),
    ("discountAmount", AMOUNT.eg("5.00"), O, "Discount on the whole invoice (L3 data)."),
    ("currency", CURRENCY, R),
    ("paymentBrand", BRAND_FIELD, C, "May be left out where the brand is detected from a card number."),
    ("paymentType", PAYMENT_TYPE, R, "The operation, e.g. DB, PA, CD, CP, RV, RF, RG."),
    ("integrity", BOOLEAN, O, "true returns the widget script's integrity hash."),
    Param(
        name="overridePaymentType[brand]", key=BRAND_KEY, need=O,
        format=with_words("key AN 1-32 letters, digits, underscore; value A2", PAYMENT_TYPE.eg("PA")),
        note="Replaces paymentType for one brand. Only when a checkout is created.",
    ),
    ("descriptor", AN(1, 127).eg("Shop order 4711"), O,
     "What the shopper's statement says; merchant.name may override it."),
    ("merchantTransactionId", AN(8, 255).eg("order-4711"), C,
     "Your reference, unique per transaction. Some receivers require it."),
    ("merchantInvoiceId", AN(8, 255).eg("invoice-4711"), O,
     "Your invoice number, unique. Not sent onwards.", {"forwarded": False}),
    ("merchantMemo", AN(8, 255).eg("Second delivery"), O,
     "Appears in reporting only.", {"private": True, "forwarded": False}),
    ("transactionCategory", _letters_and_digits(32, "EC"), O),
    ("sequence", AN(1, 255, words="AN").eg("FINAL"), O, "FINAL marks the last transaction of a chain."),
    ("numberOfCaptures", number_between(1, 98, words="N2, 1 to 98"), O,
     "The most partial captures there may be."),
    ("promotionCode", _letters_and_digits(15, "SPRING26"), O, "One per order."),
    ("locale", AN(1, 10).eg("de_DE"), O, "Language and country; what is supported depends on the connector."),
    ("transactionPurposeCode", AN(1, 12).eg("ISSUPP"), O,
     "Required for money transfers to Argentina, Bangladesh, Chile, Colombia, Egypt and India."),
    ("integrationType", AN(1, 10).eg("WIDGET"), O),
    ("transactionBai", AN(1, 2, words="AN2").eg("FT"), O, "Business application id of a push transfer."),
    ("transactionTti", AN(1, 3, words="AN3").eg("C07"), O, "Transaction type of a network's send service."),
    ("transactionProcessingCode", value_list("PURCHASE", "FUNDING", "PAYMENT"), O,
     "FUNDING for the funding side of a transfer, PAYMENT for its payout.",
     {"default": "PURCHASE", "filled": True}),
    ("lifecycleId", AN(1, 35, words="AN35").eg("MDS0001"), O,
     "Links an authorization with its later transactions."),
    ("referenceUuid", AN(1, 32, words="AN32").eg("8a829449515d198b01517d5601df5584"), O,
     "The earlier payment, instead of its id in the path. With REAUTHORIZATION and INCREMENTAL_AUTH."),
    demand=ALWAYS,
)  # fmt: skip

FOREX = structure(
    "Forex", "Part A", "forex",
    ("amount", AMOUNT, C, "When a currency is converted during the transaction."),
    ("currency", CURRENCY.eg("USD"), C, "When a currency is converted during the transaction."),
    rules=[required_together("amount", "currency")],
)  # fmt: skip

TOKENIZATION = structure(
    "Tokenization and registration", "Part B", "",
    ("createRegistration", BOOLEAN, O, "true stores the payment data; the answer carries registration.id."),
    ("overrideHolder", BOOLEAN, O,
     "Lets the sent holder replace an empty one of the registration, for this payment only."),
    demand=NEVER,
)  # fmt: skip

ACCOUNT_UPDATER = structure(
    "Account updater", "decision 0135", "",
    ("accountUpdater", BOOLEAN, O,
     "false: the holder wants no updates of the stored card by the card networks' account updater."),
    demand=NEVER,
)  # fmt: skip

CUSTOM_PARAMETERS = structure(
    "Custom parameters and scheme data", "Part B", "",
    Param(
        name="customParameters[name]", key=CUSTOM_PARAMETER_KEY, need=C,
        format=AN(0, 2048, words="name AN 3-64 of letters, digits, dot, underscore; value AN 0-2048").eg("7"),
        note="Comes back in the answer. Names sent from a browser start with SHOPPER_.",
    ),
    demand=NEVER,
)  # fmt: skip


def _live_returns_by_https(sent: RuleInput) -> Iterator[RuleBreach]:
    for name in ("shopperResultUrl", "notificationUrl"):
        if "live" in sent.facts and (sent.get(name) or "").lower().startswith("http:"):
            yield name, "must not be http: in the live environment, where addresses on the web are https:"


HTTPS_IN_LIVE = build_rule(
    "shopperResultUrl and notificationUrl are no http: addresses in the live environment",
    ("shopperResultUrl", "notificationUrl"),
    _live_returns_by_https,
    keeps={"shopperResultUrl": "https://shop.example/result"},
    breaks={"shopperResultUrl": "http://shop.example/result"},
    facts=frozenset({"live"}),
)

ASYNCHRONOUS = structure(
    "Asynchronous payment parameters", "Part B", "",
    ("shopperResultUrl", url(6, 2048, words="AN 6-2048, absolute, URL-encoded", encoded=True), C,
     "Where the shopper returns to after the payment."),
    ("notificationUrl", url(6, 2048, words="AN 6-2048, URL-encoded", web_only=True, encoded=True), O,
     "Use webhooks instead.", {"deprecated": True}),
    demand=NEVER, rules=[HTTPS_IN_LIVE],
)  # fmt: skip

CHARGEBACK = structure(
    "Chargeback", "Part B", "",
    ("chargebackResultCode", literal(
        "000.100.2 followed by two digits", r"000\.100\.2[0-9]{2}",
        expects="must be 000.100.2 followed by two digits",
        example="000.100.203", bad="000.100.303",
    ), O, "Why the payment was charged back."),
    demand=NEVER,
)  # fmt: skip
