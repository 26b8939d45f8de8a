"""Every condition of the catalogue is a value with two examples; one test walks them all."""

from __future__ import annotations

import re

import pytest

from gateway.catalogue import conditions
from gateway.catalogue.conditions import ALL_CONDITIONS
from gateway.catalogue.formats import Format
from gateway.catalogue.lookup import compile_structures
from gateway.catalogue.rules import ParameterRule, RuleInput
from gateway.catalogue.structure import Echo, Param, Structure
from gateway.catalogue.structures import (
    ALL_STRUCTURES,
    KNOWN_STRUCTURES,
    NETWORK_KEYS,
    PAYMENT_METHOD_CODES,
    PAYMENT_TYPE_CODES,
    REQUEST_STRUCTURES,
    three_d_secure,
)
from gateway.core.secret import Secret

RULES: list[tuple[str, ParameterRule]] = [
    *((one.title, rule) for one in ALL_STRUCTURES for rule in one.rules),
    *(("conditions", rule) for rule in ALL_CONDITIONS),
]
ROWS: list[tuple[Structure, Param]] = [(one, row) for one in ALL_STRUCTURES for row in one.rows]

SECRET_PARAMETERS = {name for name, row in compile_structures(KNOWN_STRUCTURES)[0].items() if row.param.secret}
RULE_IDS = [f"{where}: {rule.text}" for where, rule in RULES]
ROW_IDS = [one.full(row.name) for one, row in ROWS]

each_rule = pytest.mark.parametrize("rule", [rule for _, rule in RULES], ids=RULE_IDS)
each_row = pytest.mark.parametrize("row", [row for _, row in ROWS], ids=ROW_IDS)


def breaches(rule: ParameterRule, values: dict[str, str], *facts: str) -> list[str]:
    """The names a rule complains of, indexes written as n."""
    plain = {name: value for name, value in values.items() if name not in SECRET_PARAMETERS}
    secrets = {name: Secret(value) for name, value in values.items() if name in SECRET_PARAMETERS}
    sent = RuleInput(plain, facts=frozenset(facts) or rule.facts, secrets=secrets)
    return [re.sub(r"\[[0-9]+\]", "[n]", name) for name, _ in rule.check(sent)]


@each_rule
def test_a_request_that_keeps_a_condition_passes_it(rule: ParameterRule) -> None:
    """Part A and B, notes of the tables."""
    assert breaches(rule, dict(rule.keeps)) == []


@each_rule
def test_a_request_that_breaks_a_condition_is_told_which_parameter(rule: ParameterRule) -> None:
    """Part A and B, notes of the tables; Errors."""
    named = breaches(rule, dict(rule.breaks))
    assert named
    assert set(named) <= set(rule.names)


SKIPPED = [rule for _, rule in RULES if rule.when or rule.when_facts]
EXAMPLES = [dict(example) for _, rule in RULES for example in (rule.keeps, rule.breaks) if example.get("amount") != "x"]
EXAMPLES.append({name: value for example in EXAMPLES for name, value in example.items()})
ALL_FACTS = frozenset().union(*(rule.facts for _, rule in RULES), {"registration", "registration: card"})


@pytest.mark.parametrize("rule", SKIPPED, ids=[rule.text for rule in SKIPPED])
def test_a_condition_is_broken_only_by_requests_that_it_is_checked_for(rule: ParameterRule) -> None:
    """Part A and B, notes of the tables: a condition that is skipped would have found nothing."""
    broken = {*rule.breaks, *(name.partition(".")[0] for name in rule.breaks)}
    assert rule.is_applicable(broken, rule.facts)
    for values in EXAMPLES:
        without = {
            name: value
            for name, value in values.items()
            if name not in rule.when and name.partition(".")[0] not in rule.when
        }
        if rule.when:
            assert breaches(rule, without, *ALL_FACTS) == []
        if rule.when_facts:
            assert breaches(rule, dict(values), "none") == []


@pytest.mark.parametrize("rule", ALL_CONDITIONS, ids=[rule.text for rule in ALL_CONDITIONS])
def test_a_condition_says_nothing_of_an_unrelated_request(rule: ParameterRule) -> None:
    """D29: only the means of payment is asked of every payment."""
    expected = ["card.number", "paymentBrand"] if rule in conditions.MEANS_FOR_PAYMENT[1:] else []
    expected = ["card.number"] if rule is conditions.TO_STORE[0] else expected
    assert breaches(rule, {"merchantInvoiceId": "invoice-4711"}) == expected


@each_row
def test_the_example_of_a_row_fits_and_its_counterexample_does_not(row: Param) -> None:
    """Part A, Resources and their fields: format notation."""
    assert row.format.problem(row.format.example) is None
    assert row.format.problem(row.format.counterexample)
    assert not row.default or row.format.fits(row.default)


@pytest.mark.parametrize(
    "title, rows",
    [
        ("Basic payment", 24),
        ("Forex", 2),
        ("Card account", 6),
        ("Mobile wallets", 8),
        ("Virtual account", 1),
        ("Bank account", 10),
        ("Token account", 6),
        ("Customer", 32),
        ("Shipping customer", 28),
        ("Billing address", 10),
        ("Merchant billing address", 18),
        ("Shipping address", 26),
        ("Merchant shipping address", 26),
        ("Corporate", 13),
        ("Sender (the party who pays the debt)", 17),
        ("Recipient (the party whose debt is paid)", 19),
        ("Merchant (the acceptor)", 30),
        ("Cart items", 45),
        ("Cart payments", 7),
        ("Marketplace", 2),
        ("Airline", 46),
        ("Tokenization and registration", 2),
        ("Recurring migration (deprecated)", 6),
        ("3D Secure", 35),
        ("Custom parameters and scheme data", 4),
        ("Asynchronous payment parameters", 2),
        ("Reporting parameters", 4),
        ("Gift card", 5),
        ("Risk", 8),
        ("Scheduling (subscription jobs)", 16),
        ("Card on file (standing instruction)", 10),
        ("Chargeback", 1),
        ("Query", 8),
    ],
)
def test_a_table_has_as_many_rows_as_the_specification(title: str, rows: int) -> None:
    """Part A and B, all tables."""
    of_title = [one for one in ALL_STRUCTURES if one.title == title or one.title.startswith(f"{title}: ")]
    assert sum(len(one.rows) for one in of_title) == rows


def test_no_name_stands_in_two_request_structures() -> None:
    """Part A, Resources and their fields."""
    names = [one.full(row.name) for one in REQUEST_STRUCTURES for row in one.rows]
    assert len(names) == len(set(names))


def test_the_query_knows_62_payment_types_and_14_payment_methods() -> None:
    """Part B, Query."""
    assert (len(set(PAYMENT_TYPE_CODES)), len(set(PAYMENT_METHOD_CODES))) == (62, 14)


def test_the_network_keys_of_3d_secure_are_a_setting() -> None:
    """Part B, 3D Secure; D35."""
    message = three_d_secure(("visa", "girocard"))[0]
    assert [name for name in message.names if name.startswith("v2.")] == [
        "v2.visa.requestorId",
        "v2.visa.requestorName",
        "v2.girocard.requestorId",
        "v2.girocard.requestorName",
    ]
    assert len(NETWORK_KEYS) == 6


def test_card_numbers_codes_tokens_and_pins_never_come_back() -> None:
    """D17; PCI DSS 4.0.1, 3.3."""
    never = {one.full(row.name) for one, row in ROWS if row.echo is Echo.NEVER}
    assert never == {
        "card.number",
        "card.cvv",
        "tokenAccount.number",
        "tokenAccount.cryptogram",
        "tokenAccount.dtvc",
        "wallet1.paymentToken",
        "wallet2.paymentToken",
        "wallet3.paymentToken",
        "giftCard.pin",
    }


def test_a_proof_of_authentication_is_a_secret_that_comes_back_as_it_was_sent() -> None:
    """docs/decisions/0052."""
    assert {one.full(row.name) for one, row in ROWS if row.echo is Echo.PROOF} == {"threeDSecure.verificationId"}
    assert all(row.secret for _, row in ROWS if row.echo is Echo.PROOF)


def test_memo_and_invoice_stay_with_the_merchant() -> None:
    """Part A, Basic payment: merchantMemo, merchantInvoiceId."""
    assert {row.name for _, row in ROWS if not row.forwarded} == {"merchantMemo", "merchantInvoiceId", "deviceInfo"}
    assert {row.name for _, row in ROWS if row.private} == {"merchantMemo", "entityId"}


def form_of(name: str) -> Format:
    return next(row.format for one, row in ROWS if one.full(row.name) == name)


@pytest.mark.parametrize(
    "name, good, bad",
    [
        ("numberOfCaptures", ["1", "98"], ["0", "99", "01", "001", "1x"]),
        ("card.expiryMonth", ["01", "12"], ["1", "00", "13", "١٢"]),
        ("card.expiryYear", ["1999", "2034"], ["34", "2134", "1899"]),
        ("card.holder", ["Łukasz Wójcik", "Anne-Marie O’Neil", "李小龙"], ["Jo", "<b>x", " Jane", "Jane\u0000"]),
        ("bankAccount.iban", ["DE23100000001234567890", "NO9386011117947"], ["DE23 1000", "D123100000001234567890"]),
        ("bankAccount.bic", ["MARKDEF1", "MARKDEF1100"], ["MARKDEF", "MARKDEF110"]),
        ("bankAccount.mandate.id", ["MANDATE-A", "a" * 256], ["M1", "a" * 257]),
        ("tokenAccount.cryptogram", ["AgAAAAAAAIR8CQrXcIhbQAAAAAA=", "A" * 32], ["A" * 27, "A" * 33, "-" * 28]),
        ("billing.state", ["BY", "N.Y."], ["New York", "Bayern!"]),
        ("shipping.city", ["Zürich", "Saint-Denis"], ["4711", ""]),
        ("shipping.cost", ["5.00"], ["5", "5.0", ".50"]),
        ("shipping.method", ["PUDO", "SAME_DAY_SERVICE"], ["DRONE"]),
        ("customer.browser.timezone", ["-120", "300", "0"], ["+60", "-12345", "--1"]),
        ("customer.browser.challengeWindow", ["1", "05"], ["0", "6", "005"]),
        ("corporate.vatId", ["", "DE123"], ["x" * 256]),
        ("corporate.phone", ["4989"], ["+49"]),
        ("sender.sourceOfFunds", ["01", "09"], ["1", "10"]),
        ("recipient.accountNumberType", ["BAN_AND_BIC", "IBAN_AND_BIC"], ["CARD_ACCOUNT"]),
        ("merchant.countryCode", ["276"], ["DE", "27", "999"]),
        ("merchant.geographicCoordinates", ["48.1,11.5", "-33.8,-151.2"], ["48.1", "91,0", "0,181", "1" * 21]),
        ("cart.items[n].quantity", ["1", "999999999999.125"], ["1.1250", "1.", "-1", "1234567890123"]),
        ("cart.items[n].tax", ["0", "19", "7.5", "100.00"], ["100.01", "101", "19.000", "7."]),
        (
            "shopperResultUrl",
            [
                "https://例え.jp/戻る",
                "http://localhost:8000/x",
                "https://[::1]:8443/",
                "https://shop.example./",
                "com.example.app://a",
            ],
            [
                "https://a..b/",
                f"https://{'a' * 64}.example/",
                "https://shop.example:99999/",
                "https://shop.example:x/",
                "https://shop.example;frame-ancestors/",
                "https://*/",
                "https://[zz]/",
                "https://shop.example:0/",
            ],
        ),
        ("cart.items[n].productUrl", ["https://shop.example/a"], ["/a", "app://a", "javascript:alert(1)"]),
        ("cart.items[n].recipient.country", ["DE", "276"], ["DEU", "de"]),
        ("threeDSecure.version", ["1.0.2", "2.2.0"], ["2.2", "3.0.0"]),
        ("threeDSecure.authenticationInd", ["_DELAYED_SHIPMENT", "DELAYED_SHIPMENT"], ["DELAYED"]),
        ("threeDSecure.authenticationStatus", ["Y", "A", "U", "N", "I"], ["C", "D", "i", "YY"]),
        ("recurringMigration.amount", ["12345678.00", "1"], ["123456789", "1.0"]),
        ("giftCard.type", ["SEASONS_GREETINGS"], ["EASTER_MONDAY"]),
        (
            "chargebackResultCode",
            ["000.100.203", "000.100.211", "000.100.212", "000.100.277"],
            ["000.100.303", "000.100.2", "000x100x203", "000.100.2110", "000.100.21"],
        ),
        ("shortId", ["1234.5678.9012"], ["123456789012", "12345678901234", "x", "1234.5678.901", "1234.5678.9012."]),
        ("paymentTypes", ["DB", "DB,RF", "3D"], ["QQ", "DB,", "DB;RF", "db"]),
        ("limit", ["100", "500"], ["99", "501", "0100"]),
        ("entityId", ["0" * 32], ["0" * 31, "A" * 32, "g" * 32]),
        ("overridePaymentType[brand]", ["PA"], ["ZZ", "pa"]),
        ("job.year", ["", "*", "2026-2030", "2026/2"], ["1969", "2030-2026"]),
        ("job.month", ["1", "*/3", "11-2"], ["13", "JAN", "?"]),
        ("job.dayOfMonth", ["?", "L", "LW", "L-3", "15W", "1,15", "28-3"], ["0", "32", "L,1", "15W,16", "1#2"]),
        ("job.dayOfWeek", ["?", "MON-FRI", "FRI-MON", "6#3", "FRIL", "6L", "L"], ["8", "MON#6", "15W", "XYZ"]),
        ("job.hour", ["0", "08", "22-2", "*/4"], ["24", "?", "*/24", "8-"]),
        ("job.minute", ["0", "59"], ["60", "*", "0,30"]),
        ("job.expression", ["0 0 12 1 * ?", "0 */5 0 ? JAN-MAR MON#1 2026"], ["0 0 12 1 *", "0 0 12 1 * MON", "x"]),
    ],
)
def test_a_format_takes_what_the_specification_says(name: str, good: list[str], bad: list[str]) -> None:
    """A31.4, B5.6, B21.1; Part A and B, format columns; D22-D26, D35, D39, D40."""
    form = form_of(name)
    assert [value for value in good if form.problem(value)] == []
    assert [value for value in bad if not form.problem(value)] == []


def test_all_29_gift_card_occasions_and_all_15_shipping_methods_are_listed() -> None:
    """A24.3; Part B, Gift card; Part A, Shipping address; D24."""
    assert len(set(form_of("giftCard.type").values)) == 29
    assert len(set(form_of("shipping.method").values)) == 15


@pytest.mark.parametrize("country", ["ARG", "BGD", "CHL", "COL", "EGY", "IND"])
@pytest.mark.parametrize("side", ["FUNDING", "PAYMENT"])
def test_a_money_transfer_to_six_countries_needs_a_purpose(country: str, side: str) -> None:
    """B3.3; Part A, Basic payment: transactionPurposeCode; D37."""
    (rule,) = conditions.PURPOSE_CODE
    transfer = {"transactionProcessingCode": side, "recipient.country": country}
    assert breaches(rule, transfer) == ["transactionPurposeCode"]
    assert breaches(rule, transfer | {"transactionProcessingCode": "PURCHASE"}) == []


@pytest.mark.parametrize(
    "instruction, asked",
    [
        ({}, True),
        ({"standingInstruction.source": "CIT", "standingInstruction.mode": "INITIAL"}, True),
        ({"standingInstruction.source": "CIT", "standingInstruction.mode": "REPEATED"}, True),
        ({"standingInstruction.source": "MIT"}, False),
        ({"standingInstruction.mode": "REPEATED"}, False),
    ],
)
def test_only_a_shopper_is_asked_for_a_security_code(instruction: dict[str, str], asked: bool) -> None:
    """Part A, Card account: card.cvv; Part B, Card on file."""
    (rule,) = conditions.CVV_REQUIRED
    payment = {"paymentType": "DB", "card.number": "4200000000000000"}
    assert bool(breaches(rule, payment | instruction)) is asked
    assert breaches(rule, payment | {"wallet1.source": "web"}) == []
    assert breaches(rule, payment, "threeds") == []


def test_a_card_is_good_until_the_end_of_its_month() -> None:
    """D10: past expiry."""
    (rule,) = conditions.CARD_NOT_EXPIRED
    assert rule.code == "100.100.303"
    card = {"card.expiryMonth": "11", "card.expiryYear": "2026"}
    assert breaches(rule, card, "today:2026-11") == []
    assert breaches(rule, card, "today:2026-12") == ["card.expiryMonth"]
    assert breaches(rule, card, "today:2027-01") == ["card.expiryYear"]


@pytest.mark.parametrize(
    "number, brand",
    [
        ("4200000000000000", "VISA"),
        ("4242424242424242", "VISA"),
        ("4111111111111111", "VISA"),
        ("5454545454545454", "MASTER"),
        ("5105105105105100", "MASTER"),
        ("5200000000000007", "MASTER"),
        ("377777777777770", "AMEX"),
        ("30082246403846", "DINERS"),
        ("4012001037461114", "VISA"),
    ],
)
def test_the_test_cards_pass_the_checks_of_their_brand(number: str, brand: str) -> None:
    """D5: simulator cards."""
    for values in ({"card.number": number}, {"card.number": number, "paymentBrand": brand}):
        for rule in conditions.CARD_CHECKS:
            assert breaches(rule, values) == []


CARD = {"paymentType": "DB", "card.number": "4200000000000000"}
PROOF = {"threeDSecure.eci": "05", "threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA="}
SERVER = {"threeDSecure.dsTransactionId": "c5b808e7-1de1-4069-a17b-f70d3b3b1645"}


@pytest.mark.parametrize(
    "more",
    [
        PROOF | SERVER,
        {"threeDSecure.disable": "true"},
        {"standingInstruction.source": "MIT"},
        {"paymentType": "CD"},
    ],
)
def test_browser_and_address_are_asked_for_when_an_authentication_will_start(more: dict[str, str]) -> None:
    """Part A, Customer and Billing address: mandatory for 3D Secure v2; D34."""
    browser, address = conditions.THREEDS_BROWSER
    assert len(breaches(browser, CARD, "threeds")) == 7
    assert len(breaches(address, CARD | {"threeDSecure.disable": "false"}, "threeds")) == 4
    assert breaches(browser, CARD, "cvv") + breaches(address, CARD, "cvv") == []
    assert breaches(browser, CARD | more, "threeds") + breaches(address, CARD | more, "threeds") == []


@pytest.mark.parametrize(
    "more, asked",
    [
        ({}, True),
        ({"threeDSecure.npa": "false"}, True),
        ({"threeDSecure.npa": "true"}, False),
        ({"threeDSecure.npa": "true", "threeDSecure.authenticationInd": "RECURRING"}, True),
        ({"threeDSecure.npa": "true", "threeDSecure.authenticationInd": "INSTALLMENT"}, True),
        ({"threeDSecure.npa": "true", "threeDSecure.authenticationInd": "ADD_CARD"}, False),
        ({"paymentBrand": "VISA"}, False),
    ],
)
def test_the_regional_scheme_wants_a_use_case(more: dict[str, str], asked: bool) -> None:
    """B12.4; Part B, Custom parameters and scheme data: CB-USECASE."""
    (rule,) = conditions.CB_USECASE
    assert bool(breaches(rule, CARD | {"paymentBrand": "CARTEBANCAIRE"} | more, "threeds")) is asked


@pytest.mark.parametrize(
    "values, named",
    [
        (PROOF | SERVER, set()),
        (PROOF, {"threeDSecure.dsTransactionId"}),
        (SERVER, set(PROOF)),
        (PROOF | {"card.numberType": "DPAN"}, set()),
        (PROOF | {"wallet2.source": "app"}, set()),
        ({"threeDSecure.eci": "05"}, set()),
    ],
)
def test_three_values_prove_an_authentication(values: dict[str, str], named: set[str]) -> None:
    """Part B, 3D Secure; D32."""
    assert {name for rule in conditions.THREEDS_PROOF for name in breaches(rule, values)} == named


@pytest.mark.parametrize(
    "values, named",
    [
        (CARD, set()),
        (CARD | {"paymentBrand": "WALLET1"}, {"wallet1.source"}),
        (CARD | {"wallet1.source": "web"}, {"card.expiryMonth", "card.expiryYear", *PROOF}),
        ({"wallet3.paymentToken": "{}"}, set()),
        ({"wallet1.cardType": "debit"}, {"wallet1.paymentToken"}),
    ],
)
def test_a_wallet_pays_by_token_or_by_decrypted_card_data(values: dict[str, str], named: set[str]) -> None:
    """Part A, Mobile wallets."""
    assert {name for rule in conditions.WALLET_WAYS for name in breaches(rule, values)} == named


@pytest.mark.parametrize(
    "values, named",
    [
        ({}, {"card.number", "paymentBrand"}),
        ({"paymentBrand": "WEBWALLET"}, set()),
        ({"paymentBrand": "INVOICE"}, set()),
        ({"paymentBrand": "WALLET2"}, {"wallet2.paymentToken"}),
        (
            {"paymentBrand": "DIRECTDEBIT_SEPA"},
            {
                "bankAccount.holder",
                "bankAccount.iban",
                "bankAccount.number",
                "bankAccount.bic",
                "bankAccount.bankCode",
            },
        ),
        ({"paymentBrand": "GIFTCARD"}, {"giftCard.number"}),
        ({"paymentBrand": "GIFTCARD", "giftCard.number": "GC-10042"}, set()),
        ({"bankAccount.iban": "DE1", "bankAccount.number": "1"}, set()),
        ({"card.number": "1", "tokenAccount.number": "2"}, {"card.number", "tokenAccount.number"}),
        ({"card.cvv": "123", "card.holder": "Jane Jones"}, {"card.number", "paymentBrand"}),
        ({"referenceUuid": "1"}, set()),
        ({"bankAccount.bic": "MARKDEF1"}, set()),
    ],
)
def test_a_payment_has_exactly_one_means(values: dict[str, str], named: set[str]) -> None:
    """D29."""
    assert {name for rule in conditions.MEANS_FOR_PAYMENT for name in breaches(rule, values)} == named


def test_a_registration_is_a_means_and_a_code_beside_it_does_not_count() -> None:
    """D29."""
    for rule in conditions.MEANS_FOR_PAYMENT:
        assert breaches(rule, {"card.cvv": "123"}, "registration") == []
    assert breaches(conditions.MEANS_FOR_PAYMENT[0], CARD, "registration") == ["card.number"]


@pytest.mark.parametrize(
    "values, breached",
    [
        ({"amount": "0", "paymentType": "DB"}, True),
        ({"amount": "0.00", "paymentType": "PA"}, True),
        ({"amount": "0", "paymentType": "PA", "createRegistration": "true"}, False),
        ({"amount": "0", "paymentType": "RG"}, False),
        ({"amount": "0.01", "paymentType": "DB"}, False),
    ],
)
def test_only_registrations_may_have_no_amount(values: dict[str, str], breached: bool) -> None:
    """D27."""
    (rule,) = conditions.AMOUNT_ZERO
    assert bool(breaches(rule, values)) is breached
