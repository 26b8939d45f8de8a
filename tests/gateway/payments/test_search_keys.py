"""Search keys of payments: which spellings are one, and whose key it is."""

from __future__ import annotations

from uuid import UUID

import pytest

from gateway.core.secret import Secret
from gateway.models import Payment
from gateway.payments.search_keys import (
    NAME_KEY_KIND,
    build_email_key,
    build_last4_key,
    build_name_keys,
    list_name_words,
    match_own_key,
)
from tests.support.client import Api
from tests.support.fixtures import Shop

ONE, OTHER = UUID(int=1), UUID(int=2)
KEPT = [677179747, -1144408894, -298452107]
"""Of an address, an account's end and a name."""


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["Jane Jones"], ["jane", "jones"]),
        (["Jane", "Jones", "JANE"], ["jane", "jones"]),
        (["Mary O'Neill-Smith"], ["mary", "neill", "smith"]),
        (["J. Jones"], ["jones"]),
        (["Jo"], ["jo"]),
        (["Müller"], ["mueller"]),
        (["MÜLLER"], ["mueller"]),
        (["Mueller"], ["mueller"]),
        (["Mu\u0308ller"], ["mueller"]),
        (["Ångström Øre Strauß Æbel Ödön"], ["aangstroem", "oere", "strauss", "aebel", "oedoen"]),
        (["José Núñez"], ["jose", "nunez"]),
        (["Jane_Jones 4711 R2D2"], ["jane", "jones"]),
        ([], []),
        (["", " - "], []),
    ],
)
def test_names_are_compared_by_their_words_without_case_and_accents(texts: list[str], words: list[str]) -> None:
    assert list_name_words(texts) == words
    assert len(build_name_keys(ONE, texts)) == len(words)


def test_twelve_words_of_a_name_can_be_searched() -> None:
    names = [f"a{letter}" for letter in "abcdefghijklmn"]
    assert list_name_words([" ".join(names)]) == names[:12]


def test_a_key_is_a_signed_number_of_32_bits_that_stays_as_it_is() -> None:
    """Rows have it: another hash would find none of them."""
    keys = [
        build_email_key(ONE, "jane@shop.example"),
        build_last4_key(ONE, "3000"),
        *build_name_keys(ONE, ["Jane"]),
    ]
    assert keys == KEPT
    assert all(-(2**31) <= key < 2**31 for key in keys)


def test_an_address_is_the_same_in_capitals() -> None:
    assert build_email_key(ONE, "Jane@Shop.EXAMPLE") == build_email_key(ONE, "jane@shop.example")


@pytest.mark.parametrize("account", ["DE89370400440532013000", "3000", Secret("4111111111113000")], ids=len)
def test_an_account_is_found_by_its_last_four_characters(account: str | Secret) -> None:
    assert build_last4_key(ONE, account) == build_last4_key(ONE, "3000")


@pytest.mark.parametrize("account", ["13001", "300", "3001"])
def test_an_account_with_another_end_is_another_one(account: str) -> None:
    assert build_last4_key(ONE, account) != build_last4_key(ONE, "3000")


def test_the_same_value_of_another_merchant_or_of_another_kind_is_another_key() -> None:
    values = [
        key(merchant, "jane")
        for merchant in (ONE, OTHER)
        for key in (build_email_key, build_last4_key, lambda whose, text: build_name_keys(whose, [text])[0])
    ]
    assert len(set(values)) == len(values)


@pytest.mark.django_db
@pytest.mark.parametrize(("word", "found"), [("jones", 1), ("miller", 0)])
def test_the_database_computes_the_key_of_a_rows_own_merchant(shop: Shop, api: Api, word: str, found: int) -> None:
    api.pay(customer__givenName="Jane", customer__surname="Jones")
    asked = Payment.objects.filter(name_keys__contains=[match_own_key(NAME_KEY_KIND, word)])
    assert asked.count() == found
    [key] = Payment.objects.annotate(own=match_own_key("email", word)).values_list("own", flat=True)
    assert key == build_email_key(shop.merchant.pk, word)
