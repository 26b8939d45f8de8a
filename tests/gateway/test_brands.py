"""Brands: detection by prefix, what fits a brand, the other means, the issuers."""

import json
import re
from pathlib import Path

import pytest

from gateway.core import brands
from gateway.core.brands import (
    CARD_BRANDS,
    PAYMENT_BRANDS,
    PAYMENT_METHODS,
    detect_brand,
    detect_brands,
    detect_carried_brands,
    find_issuer,
    prefix_fits_brand,
)
from gateway.core.card_number import CardNumber, detect_brand_of_number
from gateway.core.luhn import compute_check_digit, is_luhn_valid
from gateway.core.secret import Secret

PREFIXES = [
    ("4", "VISA"), ("420000", "VISA"), ("424242", "VISA"), ("411111", "VISA"), ("499999", "VISA"),
    ("51", "MASTER"), ("55", "MASTER"), ("510510", "MASTER"), ("559999", "MASTER"),
    ("222100", "MASTER"), ("222099", None), ("250000", "MASTER"), ("272099", "MASTER"), ("272100", None),
    ("34", "AMEX"), ("37", "AMEX"), ("33", None), ("349999", "AMEX"), ("377777", "AMEX"),
    ("36", "DINERS"), ("300", "DINERS"), ("305", "DINERS"), ("306000", None), ("309500", "DINERS"),
    ("309600", None), ("38", "DINERS"), ("39", "DINERS"), ("300822", "DINERS"),
    ("6011", "DISCOVER"), ("601200", None), ("644", "DISCOVER"), ("649", "DISCOVER"), ("65", "DISCOVER"),
    ("643999", None), ("650000", "DISCOVER"),
    ("3528", "JCB"), ("3589", "JCB"), ("352799", None), ("359000", None),
    ("62", "UNIONPAY"), ("622126", "UNIONPAY"), ("622925", "UNIONPAY"), ("810000", "UNIONPAY"),
    ("2200", "MIR"), ("2204", "MIR"), ("2205", None), ("500000", "MAESTRO"), ("6759", "MAESTRO"),
    ("560000", "MAESTRO"), ("589999", "MAESTRO"), ("493698", "MAESTRO"),
    ("6703", "BCMC"), ("5019", "DANKORT"),
    ("401178", "ELO"), ("509000", "ELO"), ("655021", "ELO"), ("606282", "HIPERCARD"), ("637095", "HIPER"),
    ("63743358", "HIPER"), ("508500", "RUPAY"), ("508499", "MAESTRO"),
    ("652150", "RUPAY"), ("653150", "DISCOVER"),
    ("979200", "TROY"), ("589562", "NARANJA"), ("506099", "VERVE"),
    ("0", None), ("1", None), ("9", None), ("", None),
]  # fmt: skip

NUMBERS = [
    ("4200000000000000", "VISA"), ("4242424242424242", "VISA"), ("4222222222222", "VISA"),
    ("5454545454545454", "MASTER"), ("2223000048400011", "MASTER"), ("377777777777770", "AMEX"),
    ("378282246310005", "AMEX"), ("30082246403846", "DINERS"), ("36700102000000", "DINERS"),
    ("6011111111111117", "DISCOVER"), ("3530111333300000", "JCB"), ("6759649826438453", "MAESTRO"),
    ("6200000000000005", "UNIONPAY"), ("6703444444444449", "BCMC"), ("5019717010103742", "DANKORT"),
]  # fmt: skip


@pytest.mark.parametrize(("prefix", "code"), PREFIXES)
def test_a_prefix_names_its_brand(prefix: str, code: str | None) -> None:
    """Part A, paymentBrand: card brand detection."""
    assert detect_brand(prefix) == code


@pytest.mark.parametrize(("number", "code"), NUMBERS)
def test_a_whole_number_names_its_brand_and_fits_it(number: str, code: str) -> None:
    """Part A, paymentBrand: card brand detection."""
    assert is_luhn_valid(number)
    assert detect_brand(number) == code
    assert prefix_fits_brand(code, number, len(number))
    assert CardNumber.of(Secret(number)).has_right_check_digit(code)


@pytest.mark.parametrize("number", ["420000000000000", "42000000000000000", "37777777777777", "555555555555555"])
def test_a_number_of_a_wrong_length_has_no_brand(number: str) -> None:
    """A brand is a prefix and a length."""
    assert detect_brands(number) == ()
    assert not prefix_fits_brand("VISA", number, len(number))


@pytest.mark.parametrize("number", ["40000002", "40000000006", "5454545454", "62000000001"])
def test_a_number_shorter_than_any_card_has_no_brand_though_it_begins_like_one(number: str) -> None:
    """D30: what is typed is recognized by its first digits, what is sent only as a whole."""
    assert detect_brands(number) != ()
    assert detect_brand_of_number(Secret(number)) is None
    assert CardNumber.of(Secret(number)).brand is None


def test_a_brand_that_shares_a_schemes_numbers_comes_after_the_scheme() -> None:
    """Best first."""
    assert detect_brands("4571000000000001") == ("VISA", "DANKORT")
    assert detect_brands("4970100000000154") == ("VISA", "CARTEBANCAIRE")
    assert detect_brands("4026000000000002") == ("VISA", "VISAELECTRON")
    assert detect_brands("6703444444444449") == ("BCMC", "MAESTRO")
    assert detect_brands("622126") == ("UNIONPAY", "DISCOVER")
    assert detect_brands("4200000000000000") == ("VISA",)


@pytest.mark.parametrize(
    ("code", "number", "expected"),
    [
        ("VISA", "5454545454545454", False),
        ("MASTER", "4200000000000000", False),
        ("VISADEBIT", "4200000000000000", True),
        ("CARTEBANCAIRE", "5454545454545454", True),
        ("DISCOVER", "6221260000000000", True),
        ("WALLET1", "4200000000000000", False),
        ("NOSUCHBRAND", "4200000000000000", False),
    ],
)
def test_a_number_fits_the_brands_that_may_carry_it(code: str, number: str, expected: bool) -> None:
    """Result code 100.100.700 answers a number that does not fit."""
    assert prefix_fits_brand(code, number, len(number)) is expected


@pytest.mark.parametrize(
    "number", ["4444444444444444", "4200000000000001", "", "4", "٤٢٠٠٠٠٠٠٠٠٠٠٠٠٠٠", "4200 0000 0000 0000"]
)
def test_a_number_without_a_right_check_digit_fails(number: str) -> None:
    """ISO/IEC 7812-1, annex B."""
    assert not is_luhn_valid(number)


def test_one_wrong_digit_is_always_found() -> None:
    """ISO/IEC 7812-1, annex B."""
    number = "4242424242424242"
    for place in range(len(number)):
        for digit in set("0123456789") - {number[place]}:
            assert not is_luhn_valid(number[:place] + digit + number[place + 1 :])
    assert compute_check_digit(number[:-1]) == number[-1]


@pytest.mark.parametrize(
    ("code", "cvv", "expected"),
    [
        ("VISA", "123", True),
        ("VISA", "1234", False),
        ("AMEX", "1234", True),
        ("AMEX", "123", False),
        ("NOSUCHBRAND", "123", True),
        ("NOSUCHBRAND", "12", False),
    ],
)
def test_a_security_code_is_as_long_as_the_brand_says(code: str, cvv: str, expected: bool) -> None:
    """Result code 100.100.601."""
    assert brands.is_valid_cvv_length(code, len(cvv)) is expected


def test_maestro_cards_may_have_no_security_code() -> None:
    """Result code 100.100.600 is for brands that need one."""
    assert brands.is_cvv_required("VISA")
    assert not brands.is_cvv_required("MAESTRO")


def test_every_brand_code_has_the_form_of_payment_brand() -> None:
    """Part A, paymentBrand: 1-32 letters, digits, underscore; Part B, brandResult: A up to 16."""
    for code, brand in PAYMENT_BRANDS.items():
        assert re.fullmatch(r"[A-Z0-9_]{1,32}", code)
        assert brand.code == code
        assert brand.label
        assert brand.method in PAYMENT_METHODS
    for code, card in CARD_BRANDS.items():
        assert re.fullmatch(r"[A-Z]{1,16}", code)
        assert card.means == "card"
        assert card.ranges
        assert max(card.lengths) <= 19
        assert set(card.co_badges) <= set(CARD_BRANDS)
        assert all(low <= high and (low + high).isdecimal() for low, high in card.ranges + card.detected)
        assert all(prefix_fits_brand(code, low, max(card.lengths)) for low, _ in card.detected)


@pytest.mark.parametrize(
    ("code", "method", "means", "redirect"),
    [
        ("DIRECTDEBIT_SEPA", "DD", "bankAccount", False),
        ("WALLET1", "WA", "wallet1", False),
        ("WALLET3", "WA", "wallet3", False),
        ("WEBWALLET", "VA", "virtualAccount", True),
        ("SHOPWALLET", "VA", "virtualAccount", True),
        ("ONLINETRANSFER", "OT", "bankAccount", True),
        ("INVOICE", "IV", None, True),
        ("PREPAYMENT", "PP", None, False),
        ("VISA", "CC", "card", False),
        ("MAESTRO", "DC", "card", False),
    ],
)
def test_a_brand_names_its_payment_method(code: str, method: str, means: str | None, redirect: bool) -> None:
    """Part B, Query: paymentMethods."""
    brand = brands.find_brand(code)
    assert brand is not None
    assert (brand.method, brand.means, brand.redirect) == (method, means, redirect)
    assert brands.is_card_brand(code) is (means == "card")


def test_an_unknown_brand_is_no_brand() -> None:
    """Result code 600.200.200 is the caller's."""
    assert brands.find_brand("NOSUCHBRAND") is None


def test_the_methods_are_those_of_the_query() -> None:
    """Part B, Query: paymentMethods."""
    assert set(PAYMENT_METHODS) == {
        "DD",
        "CT",
        "CC",
        "WA",
        "VA",
        "UA",
        "OT",
        "DC",
        "ET",
        "NT",
        "IV",
        "PP",
        "OD",
        "RM",
    }


def test_issuers_are_facts_of_a_bin_and_none_where_unknown() -> None:
    """Part B, Payment response: card.issuer, card.type, card.level, card.regulatedFlag."""
    found = find_issuer("420000")
    assert found is not None
    assert (found.bank, found.type, found.level, found.regulated) == (
        "Tollhouse Test Bank",
        "CREDIT",
        "CLASSIC",
        False,
    )
    assert find_issuer("4200000000000000") == found
    assert find_issuer("499999") is None
    assert find_issuer("42") is None


def test_issuers_of_the_file_are_plainly_invented() -> None:
    """Reserved names and numbers only: RFC 2606 .example, numbers kept for fiction."""
    lines = (Path(brands.__file__).parents[1] / "data" / "issuers.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert len({line.split("\t")[0] for line in lines}) == len(lines)
    for line in lines:
        found = find_issuer(line.split("\t")[0])
        assert found is not None
        assert "Test" in found.bank
        assert re.fullmatch(r"https://([a-z-]+\.)+example", found.website)
        assert re.fullmatch(r"\+44 20 7946 0[0-9]{3}|\+1 202 555 01[0-9]{2}", found.phone)
        assert found.type in {"CREDIT", "DEBIT", "PREPAID"}
        assert re.fullmatch(r"[A-Z]{2}", found.country)


def test_the_table_is_the_file_the_widget_reads() -> None:
    """One table, two readers."""
    table = json.loads((Path(brands.__file__).parents[1] / "data" / "brands.json").read_text(encoding="utf-8"))
    assert [row["code"] for row in table["cards"]] == list(CARD_BRANDS)
    assert {row["code"] for row in table["cards"] + table["others"]} == set(PAYMENT_BRANDS)


@pytest.mark.parametrize(
    ("number", "carried"),
    [
        ("4970100000000154", ("VISA", "CARTEBANCAIRE")),
        ("5131000000000001", ("MASTER", "CARTEBANCAIRE")),
        ("4026000000000002", ("VISA", "VISAELECTRON")),
        ("4970100000000000017", ("VISA",)),  # 19 digits: no card of Carte Bancaire
        ("4011780000000006", ("ELO",)),  # in Visa's range, but no card is both
        ("4200000000000000", ("VISA",)),
        ("0000000000000000", ()),
    ],
)
def test_a_card_carries_its_best_match_and_what_stands_beside_it(number: str, carried: tuple[str, ...]) -> None:
    assert detect_carried_brands(number) == carried


@pytest.mark.parametrize(
    ("order", "brand"),
    [
        ((), "VISA"),
        (("CARTEBANCAIRE", "VISA"), "CARTEBANCAIRE"),
        (("VISA", "CARTEBANCAIRE"), "VISA"),
        (("MASTER", "CARTEBANCAIRE"), "CARTEBANCAIRE"),
        (("MASTER", "AMEX"), "VISA"),
    ],
)
def test_a_merchants_order_chooses_among_the_brands_of_a_card(order: tuple[str, ...], brand: str) -> None:
    assert detect_brand("4970100000000154", order) == brand


def test_an_order_gives_no_card_a_brand_that_it_lacks() -> None:
    assert detect_brand("4200000000000000", ("CARTEBANCAIRE", "MADA", "MASTER")) == "VISA"
    assert detect_brand("0000000000000000", ("CARTEBANCAIRE",)) is None
