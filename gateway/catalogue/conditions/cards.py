"""Well-formed card data that is refused nevertheless, each case with a code of its own (D10).

Source: Part A, Card account.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue.conditions.request_facts import find_card_brand
from gateway.catalogue.free_text_masking import MIN_SEARCHED_DIGITS, find_names_holding
from gateway.catalogue.rules import ParameterRule, RuleBreach, RuleInput, build_rule
from gateway.core import brands

_TODAY = "today:"


def _fails_luhn(sent: RuleInput) -> Iterator[RuleBreach]:
    number = sent.card()
    if number is not None and not number.has_right_check_digit(find_card_brand(sent)):
        yield "card.number", "is not a valid card number: the check digit is wrong"


def _misses_brand(sent: RuleInput) -> Iterator[RuleBreach]:
    number, brand = sent.card(), sent.get("paymentBrand")
    if number is not None and brand is not None and brands.is_card_brand(brand) and not number.fits(brand):
        yield "card.number", f"is not a number of {brand}"


def _cvv_misses_brand(sent: RuleInput) -> Iterator[RuleBreach]:
    cvv = sent.secret("card.cvv")
    if cvv is not None and (brand := find_card_brand(sent)) and not brands.is_valid_cvv_length(brand, len(cvv)):
        lengths = sorted(brands.CARD_BRANDS[brand].cvv_lengths - {0})
        yield "card.cvv", f"must have {' or '.join(map(str, lengths))} digits for {brand}"


def _expired(sent: RuleInput) -> Iterator[RuleBreach]:
    month, year = sent.get("card.expiryMonth"), sent.get("card.expiryYear")
    if month is None or year is None:
        return
    today = next((fact[len(_TODAY) :] for fact in sent.facts if fact.startswith(_TODAY)), None)
    # yyyy-MM compares as text does; the card is valid until the end of its month.
    if today is not None and f"{year}-{month}" < today:
        yield ("card.expiryYear" if year < today[:4] else "card.expiryMonth"), "the card is past its expiry"


CARD_LUHN: tuple[ParameterRule, ...] = (
    build_rule(
        "card.number ends in the right check digit", ("card.number",), _fails_luhn, code="100.100.101",
        when=("card.number",),
        keeps={"card.number": "4200000000000000"}, breaks={"card.number": "4444444444444444"},
    ),
)  # fmt: skip
CARD_FITS_BRAND: tuple[ParameterRule, ...] = (
    build_rule(
        "card.number is one of paymentBrand", ("card.number", "paymentBrand"), _misses_brand,
        code="100.100.700", when=("card.number",),
        keeps={"card.number": "4200000000000000", "paymentBrand": "VISA"},
        breaks={"card.number": "5454545454545454", "paymentBrand": "VISA"},
    ),
)  # fmt: skip
CVV_FITS_BRAND: tuple[ParameterRule, ...] = (
    build_rule(
        "card.cvv has as many digits as the brand prints, e.g. AMEX 4, VISA 3", ("card.cvv",),
        _cvv_misses_brand, code="100.100.601", when=("card.cvv",),
        keeps={"card.number": "377777777777770", "card.cvv": "1234", "paymentBrand": "AMEX"},
        breaks={"card.number": "4200000000000000", "card.cvv": "1234", "paymentBrand": "VISA"},
    ),
)  # fmt: skip
CARD_NOT_EXPIRED: tuple[ParameterRule, ...] = (
    build_rule(
        "The card has not expired: it is good until the end of its month",
        ("card.expiryMonth", "card.expiryYear"), _expired, code="100.100.303",
        when=("card.expiryYear",),
        facts=frozenset({"today:2026-11"}),
        keeps={"card.expiryMonth": "11", "card.expiryYear": "2026"},
        breaks={"card.expiryMonth": "10", "card.expiryYear": "2026"},
    ),
)  # fmt: skip
CARD_CHECKS: tuple[ParameterRule, ...] = (*CARD_LUHN, *CARD_FITS_BRAND, *CVV_FITS_BRAND, *CARD_NOT_EXPIRED)


def _elsewhere(sent: RuleInput) -> Iterator[RuleBreach]:
    number = sent.secret("card.number")
    if number is None or len(number) < MIN_SEARCHED_DIGITS:
        return
    for name in find_names_holding(number, sent.values()):
        yield name, "holds the card number, which belongs into card.number and nowhere else"


NUMBER_ONLY_ONCE: tuple[ParameterRule, ...] = (
    build_rule(
        "The card number stands in card.number and in no other parameter", ("card.number", "descriptor"), _elsewhere,
        silent=True, when=("card.number",),
        keeps={"card.number": "4200000000000000", "descriptor": "Order 4711"},
        breaks={"card.number": "4200000000000000", "descriptor": "Paid with 4200000000000000"},
    ),
)  # fmt: skip
