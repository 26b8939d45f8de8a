"""The Warning header: what is deprecated works and says so, what is recommended may be missing and is named.

Source: Part B, Asynchronous payment parameters, Recurring migration, Custom parameters and scheme data.
"""

from __future__ import annotations

import pytest

from gateway.api.deprecation_warnings import MAX_MASKED_NAMES, build_warning_header
from gateway.catalogue.parse import Parameters
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop
from tests.support.threeds import FRICTIONLESS, fields

pytestmark = pytest.mark.django_db

STORED = {"card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034"}
ITEMS, SCORE = "threeDSecure.schemeData[CB-ITEMSNB]", "threeDSecure.schemeData[CB-SCORE_MERCHANT]"


def regional(api: Api, **more: str) -> Answer:
    use_case = {"threeDSecure.schemeData[CB-USECASE]": "01"}
    return api.post("/v1/payments", fields(FRICTIONLESS) | {"paymentBrand": "CARTEBANCAIRE"} | use_case | more)


def said(answer: Answer) -> str:
    assert answer.status == 200, answer
    return answer.headers.get("Warning", "")


def test_whoever_brings_an_agreement_along_is_told_that_this_way_is_deprecated(api: Api) -> None:
    """B10.3."""
    moved = {"recurringMigration.paymentType": "DB", "recurringMigration.connectorTxId1": "380912345678901"}
    assert "recurringMigration is deprecated" in said(api.post("/v1/registrations", STORED | moved))
    both = api.pay(notificationUrl="http://localhost:9999/", createRegistration="true", **moved)
    assert said(both).count("is deprecated") == 2
    assert said(api.post("/v1/registrations", STORED)) == ""


def test_scheme_data_that_is_recommended_and_missing_is_a_remark_and_no_error(shop: Shop) -> None:
    """B12.2: C, recommended; for the regional scheme alone, and where an authentication starts."""
    assert said(regional(shop.api)) == ""
    api = shop.api_of(shop.open_channel("authenticating", three_d_secure=True))
    told = said(regional(api))
    assert f"{ITEMS} is recommended" in told
    assert f"{SCORE} is recommended" in told
    assert said(regional(api, **{ITEMS: "02"})).count("is recommended") == 1
    assert said(regional(api, **{ITEMS: "02", SCORE: "SCORE-80"})) == ""
    assert said(api.post("/v1/payments", fields(FRICTIONLESS))) == ""


@pytest.mark.parametrize("number", [0, 1, MAX_MASKED_NAMES, MAX_MASKED_NAMES + 1, MAX_MASKED_NAMES + 2])
def test_some_of_the_masked_names_are_told_and_of_the_rest_how_many(number: int) -> None:
    names = tuple(f"customParameters[p{at}]" for at in range(number))
    told = build_warning_header(Parameters(masked=names), frozenset())
    more = number - MAX_MASKED_NAMES
    expected = [f"{name} held card data, which is masked" for name in names[:MAX_MASKED_NAMES]]
    expected += [f"{more} more parameters held card data, which is masked"] if more > 0 else []
    assert told == ", ".join(f'299 Tollhouse "{text}"' for text in expected)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a!z}", "a!z}"),
        ("a b", "a?b"),
        ("a~b", "a?b"),
        ('a"b', "a?b"),
        ("a\\b", "a?b"),
        ("a\x7fb", "a?b"),
        ("aéb", "a?b"),
    ],
)
def test_a_name_is_told_in_characters_that_a_quoted_text_has(name: str, shown: str) -> None:
    told = build_warning_header(Parameters(masked=(name,)), frozenset())
    assert told == f'299 Tollhouse "{shown} held card data, which is masked"'


@pytest.mark.parametrize(
    ("values", "facts", "told"),
    [
        ({"paymentBrand": "CARTEBANCAIRE", "card.number": "4200000000000000"}, {"threeds"}, 2),
        ({"paymentBrand": "CARTEBANCAIRE", "card.number": "4200000000000000"}, set(), 0),
        ({"paymentBrand": "VISA", "card.number": "4200000000000000"}, {"threeds"}, 0),
        ({"paymentBrand": "CARTEBANCAIRE"}, {"threeds"}, 0),
        ({"notificationUrl": "x"}, set(), 1),
    ],
)
def test_what_is_recommended_is_told_where_an_authentication_of_the_scheme_will_begin(
    values: dict[str, str], facts: set[str], told: int
) -> None:
    header = build_warning_header(Parameters(values), frozenset(facts))
    assert header.count("299 Tollhouse") == told
