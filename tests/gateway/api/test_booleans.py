"""Booleans as clients write them: what is taken for true and false, everywhere, and what is refused.

Source: Parts A and B, "true or false"; docs/decisions/0048-readings-of-names-booleans-and-pages.md.
"""

from __future__ import annotations

import pytest

from checkout.models import Checkout
from gateway.catalogue.endpoints import ENDPOINTS, Endpoint
from gateway.catalogue.formats import BOOLEAN
from gateway.catalogue.openapi import build_openapi, example_name
from gateway.catalogue.parse import InvalidParametersError, UnknownNamePolicy
from gateway.models import Payment, Registration
from tests.support.client import Api
from tests.support.fixtures import Shop
from tests.support.shopper import create, open_checkout

pytestmark = pytest.mark.django_db

TRUE, FALSE = ("true", "1", "True", "TRUE", "tRuE"), ("false", "0", "False", "FALSE", "fAlSe")
NEITHER = ("yes", "no", "on", "off", "2", "-1", "01", "1.0", "t", "y", " true", "true ", "١", "")
WORDS = [*((word, "true") for word in TRUE), *((word, "false") for word in FALSE)]
BOOLEANS = [
    (endpoint, example_name(structure, row))
    for endpoint in ENDPOINTS
    for structure in endpoint.structures
    for row in structure.rows
    if row.format.words == BOOLEAN.words
]


def _taken(endpoint: Endpoint, name: str, value: str, policy: str = UnknownNamePolicy.NORMAL) -> str | None:
    """The value that is kept; None for an error of this name. Other errors (what is required) are of no matter."""
    found = endpoint.catalogue.find(name)
    assert found is not None
    try:
        return endpoint.catalogue.parse([("entityId", "0" * 32), (name, value)], policy=policy).get(name)
    except InvalidParametersError as fault:
        if any(error.name == name and "must be true or false" in error.message for error in fault.errors):
            return None
    return (
        found[0].param.format.usual(value)
        if found[0].param.format.usual and policy != UnknownNamePolicy.STRICT
        else value
    )


def test_booleans_stand_where_the_specification_has_them() -> None:
    """Part A, Basic payment, Customer; Part B, Cart payments, Tokenization, 3D Secure, Query."""
    assert {name for _, name in BOOLEANS} == {
        "integrity",
        "createRegistration",
        "overrideHolder",
        "customer.browser.javaEnabled",
        "shipping.customer.browser.javaEnabled",
        "cart.payments[0].primary",
        "threeDSecure.npa",
        "threeDSecure.decoupled",
        "threeDSecure.disable",
        "includeLinkedTransactions",
        # Ours: docs/decisions/0083 and 0135.
        "accountUpdater",
        "paymentPage",
        "link.openAmount",
        "link.reusable",
    }


@pytest.mark.parametrize("endpoint, name", BOOLEANS, ids=[f"{one.name}: {name}" for one, name in BOOLEANS])
def test_every_boolean_of_every_endpoint_is_read_alike(endpoint: Endpoint, name: str) -> None:
    for word, meaning in WORDS:
        assert _taken(endpoint, name, word) == meaning
        assert _taken(endpoint, name, word, UnknownNamePolicy.LENIENT) == meaning
        assert _taken(endpoint, name, word, UnknownNamePolicy.STRICT) == (word if word in ("true", "false") else None)
    for word in NEITHER:
        for policy in (UnknownNamePolicy.NORMAL, UnknownNamePolicy.LENIENT, UnknownNamePolicy.STRICT):
            assert _taken(endpoint, name, word, policy) is None, word


@pytest.mark.parametrize("word, meaning", WORDS)
def test_a_boolean_comes_back_as_the_specification_writes_it(api: Api, word: str, meaning: str) -> None:
    answer = api.pay(
        **{
            "createRegistration": word,
            "threeDSecure.npa": word,
            "cart.payments[0].primary": word,
            "customer.browser.javaEnabled": word,
        }
    )
    assert answer.status == 200, answer
    assert answer.body["createRegistration"] == meaning
    assert answer.body["threeDSecure"]["npa"] == meaning
    assert answer.body["cart"]["payments"][0]["primary"] == meaning
    assert answer.body["customer"]["browser"]["javaEnabled"] == meaning
    assert ("registrationId" in answer.body) is (meaning == "true")
    kept = Payment.objects.get().request
    assert api.read(answer.id).body["createRegistration"] == meaning
    assert word == meaning or f'"{word}"' not in str(kept).replace("'", '"')


def test_conditions_see_what_was_meant(api: Api, shop: Shop) -> None:
    """An amount of 0 goes with PA and createRegistration; one cart payment is primary; a 3DS channel asks the browser
    unless it is bypassed."""
    stored = api.pay(paymentType="PA", amount="0.00", createRegistration="1")
    assert stored.status == 200, stored
    assert list(api.pay(paymentType="PA", amount="0.00", createRegistration="0").errors) == ["amount"]
    two = {"cart.payments[0].primary": "True", "cart.payments[1].primary": "1"}
    assert api.pay(**two).status == 400
    secure = shop.api_of(shop.open_channel(three_d_secure=True))
    assert secure.pay(**{"threeDSecure.disable": "TRUE"}).code == "000.100.110"
    assert secure.pay(**{"threeDSecure.disable": "0"}).status == 400


def test_a_query_reads_its_boolean_alike(api: Api) -> None:
    held = api.pay(paymentType="PA", merchantTransactionId="order-4711").id
    taken = api.follow(held, "CP", "92.00").id
    for word, meaning in WORDS:
        found = api.get("/v1/query", {"merchantTransactionId": "order-4711", "includeLinkedTransactions": word})
        assert len(found.body["payments"]) == (2 if meaning == "true" else 1)
        assert ("payments" in api.get(f"/v1/query/{taken}", {"includeLinkedTransactions": word}).body) is (
            meaning == "true"
        )
    for word in NEITHER:
        answer = api.get("/v3/query", {"merchantTransactionId": "order-4711", "includeLinkedTransactions": word})
        assert list(answer.errors) == ["includeLinkedTransactions"], word


@pytest.mark.parametrize("word, meaning", WORDS)
def test_a_checkout_reads_its_booleans_alike(api: Api, word: str, meaning: str) -> None:
    made = create(api, integrity=word, createRegistration=word)
    assert ("integrity" in made.body) is (meaning == "true")
    assert Checkout.objects.get().request["createRegistration"] == meaning
    changed = api.post(f"/v1/checkouts/{made.id}", {"integrity": word})
    assert ("integrity" in changed.body) is (meaning == "true")
    only_stores = api.post("/v1/checkouts", {"createRegistration": word})
    assert only_stores.status == (200 if meaning == "true" else 400)


@pytest.mark.parametrize("word, meaning", WORDS)
def test_a_form_reads_its_booleans_alike(api: Api, word: str, meaning: str) -> None:
    browser = open_checkout(
        api, **{"customer.merchantCustomerId": "jane", "customer.givenName": "Jane", "customer.surname": "Jones"}
    )
    answer = browser.pay(**{"createRegistration": word, "customer.browser.javaEnabled": word})
    assert answer.status == 200, answer
    payment = Payment.objects.get()
    assert (payment.request["createRegistration"], payment.request["customer"]["browser"]["javaEnabled"]) == (
        meaning,
        meaning,
    )
    assert Registration.objects.exists() is (meaning == "true")


@pytest.mark.parametrize("word", ["1", "0", "True", "yes", "2", ""])
def test_a_strict_channel_takes_the_words_of_the_specification_alone(shop: Shop, word: str) -> None:
    strict = shop.api_of(shop.open_channel(parameters="strict"))
    assert list(strict.pay(createRegistration=word).errors) == ["createRegistration"]
    assert strict.pay(createRegistration="true").status == 200
    assert list(create(strict, integrity=word).errors) == ["integrity"]
    browser = open_checkout(strict)
    assert list(browser.pay(**{"customer.browser.javaEnabled": word}).errors) == ["customer.browser.javaEnabled"]
    assert browser.pay(**{"customer.browser.javaEnabled": "false"}).status == 200


@pytest.mark.parametrize("word", ["yes", "on", "2", ""])
def test_what_is_neither_is_named(api: Api, word: str) -> None:
    answer = api.pay(createRegistration=word)
    assert answer.errors == {"createRegistration": "must be true or false"}
    assert open_checkout(api).pay(**{"customer.browser.javaEnabled": word}).status == 400


def test_the_document_says_what_is_taken() -> None:
    whole = build_openapi("https://pay.example", "test")
    form = whole["paths"]["/v1/payments"]["post"]["requestBody"]["content"]["application/x-www-form-urlencoded"]
    told = form["schema"]["properties"]["createRegistration"]
    assert told["enum"] == ["true", "false"]
    assert "1 and 0 in their place, and any letter case, are taken" in told["description"]
