"""Money: amounts as the wire writes them, and currencies as ISO 4217 has them."""

from decimal import Decimal

import pytest

from gateway.core import money as money_module
from gateway.core.money import (
    CURRENCY_CODES,
    CurrencyMismatchError,
    Money,
    currency_exponent,
    currency_number,
    fits_currency,
    format_amount,
    is_known_currency,
    parse_amount,
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("92", "92.00"),
        ("92.00", "92.00"),
        ("0", "0.00"),
        ("0.01", "0.01"),
        ("9999999999.99", "9999999999.99"),
    ],
)
def test_an_amount_has_none_or_two_decimals_and_is_answered_with_two(text: str, answer: str) -> None:
    """Part A, format notation; D13."""
    assert Money.parse(text, "EUR").text() == answer


@pytest.mark.parametrize(
    "text",
    [
        "",
        "92.1",
        "92.",
        ".50",
        "92.000",
        "92,00",
        "-1",
        "+1",
        "1e3",
        "NaN",
        "Infinity",
        "99999999999",
        " 92",
        "92\n",
        "٩٢",
        "9_2",
    ],
)
def test_anything_else_is_no_amount(text: str) -> None:
    """Part A, format notation; D26."""
    with pytest.raises(ValueError):
        parse_amount(text)


@pytest.mark.parametrize(
    ("currency", "decimals"),
    [("EUR", 2), ("USD", 2), ("JPY", 0), ("ISK", 0), ("BHD", 3), ("KWD", 3), ("XOF", 0)],
)
def test_the_exponent_is_that_of_iso_4217(currency: str, decimals: int) -> None:
    """D26."""
    assert currency_exponent(currency) == decimals


@pytest.mark.parametrize(
    "currency", ["XXX", "XTS", "XAU", "XDR", "CHE", "CLF", "UYW", "USN", "DEM", "ZZZ", "eur", "EU", ""]
)
def test_a_unit_nobody_pays_in_is_not_known(currency: str) -> None:
    """D26; no funds codes, no metals, no test codes."""
    assert not is_known_currency(currency)
    with pytest.raises(ValueError):
        Money(Decimal(1), currency)
    with pytest.raises(KeyError):
        currency_exponent(currency)


def test_circulating_currencies_are_known() -> None:
    """D26."""
    for currency in ("EUR", "USD", "GBP", "CHF", "JPY", "XAF", "XCD", "XOF", "XPF", "ZAR", "BRL"):
        assert is_known_currency(currency)
    assert 140 < len(CURRENCY_CODES) < 170


@pytest.mark.parametrize(
    ("amount", "currency", "fits"),
    [
        ("92", "JPY", True),
        ("92.00", "JPY", True),
        ("92.50", "JPY", False),
        ("92.40", "JPY", False),
        ("92.60", "JPY", False),
        ("92.50", "EUR", True),
        ("92.50", "BHD", True),
    ],
)
def test_a_currency_without_decimals_takes_whole_amounts_only(amount: str, currency: str, fits: bool) -> None:
    """D26."""
    assert fits_currency(parse_amount(amount), currency) is fits


@pytest.mark.parametrize(
    ("amount", "currency", "units"), [("92.00", "EUR", 9200), ("92", "JPY", 92), ("1.25", "BHD", 1250)]
)
def test_host_messages_carry_minor_units(amount: str, currency: str, units: int) -> None:
    """ISO 4217 minor units, there and back."""
    money = Money.parse(amount, currency)
    assert money.minor_units() == units
    assert Money.from_minor_units(units, currency) == money


def test_no_minor_units_are_made_up() -> None:
    """D26."""
    for amount in ("92.40", "92.50", "92.60"):
        with pytest.raises(ValueError, match=f"{amount} is finer than the minor unit of JPY"):
            Money(Decimal(amount), "JPY").minor_units()
    with pytest.raises(ValueError):
        Money.from_minor_units(1255, "BHD")


def test_money_adds_subtracts_and_compares_within_one_currency() -> None:
    """House: money never loses its currency."""
    ten, three = Money.parse("10", "EUR"), Money.parse("3.50", "EUR")
    assert (ten + three).text() == "13.50"
    assert (ten - three).text() == "6.50"
    assert (three - ten).text() == "-6.50" == (-(ten - three)).text()
    assert three < ten
    assert ten >= three
    assert Money.parse("10", "EUR") == Money.parse("10.00", "EUR")
    assert not Money.zero("EUR")
    assert Money.parse("0.01", "EUR")
    assert -Money.parse("0.01", "EUR")
    assert str(ten) == "10.00 EUR"


@pytest.mark.parametrize("operation", ["__add__", "__sub__", "__lt__", "__le__", "__gt__", "__ge__"])
def test_two_currencies_never_meet(operation: str) -> None:
    """House: money never loses its currency."""
    with pytest.raises(CurrencyMismatchError):
        getattr(Money.parse("1", "EUR"), operation)(Money.parse("1", "USD"))
    assert Money.parse("1", "EUR") != Money.parse("1", "USD")


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "0.001", "1e30"])
def test_money_is_finite_with_two_decimals(amount: str) -> None:
    """D13."""
    with pytest.raises(ValueError):
        Money(Decimal(amount), "EUR")


def test_money_is_no_float() -> None:
    """Style: Decimal in, Decimal out."""
    with pytest.raises(TypeError):
        Money(92.0, "EUR")  # type: ignore[arg-type]
    assert format_amount(Decimal("1E+2")) == "100.00"
    for finer in ("1.005", "1.004", "1.006", "-1.005", "0.0001"):
        with pytest.raises(ValueError, match="more than two decimals"):
            format_amount(Decimal(finer))


def test_an_amount_stays_below_its_limit() -> None:
    limit = Decimal(10) ** 18
    for sign in (1, -1):
        assert Money(sign * (limit - Decimal("0.01")), "EUR").amount == sign * (limit - Decimal("0.01"))
        with pytest.raises(ValueError, match="below"):
            Money(sign * limit, "EUR")


@pytest.mark.parametrize(("currency", "number"), [("EUR", "978"), ("ALL", "008"), ("AUD", "036"), ("BHD", "048")])
def test_a_currencys_number_has_three_digits(currency: str, number: str) -> None:
    assert currency_number(currency) == number


def test_equal_amounts_are_neither_below_nor_above_each_other() -> None:
    one, same, more = (Money(Decimal(amount), "EUR") for amount in ("1.00", "1", "1.01"))
    assert (one <= same, one >= same, one < same, one > same) == (True, True, False, False)
    assert (one <= more, one >= more, one < more, one > more) == (True, False, True, False)


def test_currencies_are_read_from_the_list_of_iso_4217() -> None:
    """As they were when the module was loaded."""
    read = money_module._exponents()
    assert read.keys() == CURRENCY_CODES
    assert {code: read[code] for code in ("EUR", "JPY", "BHD", "CLP", "XOF", "ZWG")} == {
        "EUR": 2, "JPY": 0, "BHD": 3, "CLP": 0, "XOF": 0, "ZWG": 2,
    }  # fmt: skip
    for code in ("XXX", "XAU", "XDR", "CLF", "CHE", "UYI", "UYW", "XAD", "BOV"):
        assert code not in read, code


@pytest.mark.parametrize("amount", ["0.001", "-0.009", "92.005", "92.006"])
def test_money_has_no_third_decimal(amount: str) -> None:
    with pytest.raises(ValueError, match="at most two decimals"):
        Money(Decimal(amount), "EUR")
