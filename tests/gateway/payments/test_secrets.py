"""No card number and no security code is in clear anywhere in the database, nor in any answer.

Source: design goals R8, R9; Part A, Card account; ruling D17.
"""

from __future__ import annotations

import logging

import pytest
from django.db import connection

from gateway.models import Payment
from gateway.vault.sealing import current_vault
from tests.support.client import Api
from tests.support.database import places_of, places_of_word
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

PAN = "373812000012345"
CVV = "7319"
"""Canaries: digits that nothing else has."""


def luhn(number: str) -> str:
    """``number`` with its last digit made right."""
    total = sum(
        sum(divmod(int(digit) * (2 if at % 2 == 0 else 1), 10)) for at, digit in enumerate(reversed(number[:-1]))
    )
    return number[:-1] + str(-total % 10)


NUMBERS = {"right": luhn(PAN), "wrong": luhn(PAN)[:-1] + str((int(luhn(PAN)[-1]) + 1) % 10)}


def everything(api: Api) -> list[str]:
    """Requests of every kind that carry the canaries; the answers' texts."""
    right, wrong = NUMBERS["right"], NUMBERS["wrong"]
    card = {"paymentBrand": "AMEX", "card__number": right, "card__cvv": CVV}
    paid = api.pay(**card)
    assert paid.status == 200, paid
    held = api.pay(**card, paymentType="PA")
    answers = [
        paid,
        held,
        api.pay(**{**card, "card__number": wrong}),
        api.pay(**card, amount="92.1"),
        api.pay(**{**card, "card__cvv": CVV * 2}),
        api.pay(**{**card, "card__number": right + "x"}),
        api.pay(**card, card__expiryYear="2020"),
        api.pay(**card, **{f"field{right}": "x"}),
        api.pay(**card, **{"card.cvc": CVV, "card.nunber": right}),
        api.pay(**card, createRegistration="true"),
        api.pay(**card, entityId="0" * 32),
        api.pay(**card, testMode="EXTERNAL"),
        api.follow(paid.id, "RF", "1.00", **{"card.number": right, "card.cvv": CVV}),
        api.follow(paid.id, "RF", "1.00"),
        api.follow(held.id, "CP", "1.00"),
        api.read(paid.id),
        api.get(f"/v1/payments/{paid.id}", {"card.number": right, "card.cvv": CVV}),
        api.get("/v1/test/acquirer/messages", {"id": paid.id}),
    ]
    assert all(answer.status < 500 for answer in answers), answers
    return [answer.text for answer in answers]


def test_a_card_number_stands_nowhere_in_the_database_and_a_cvv_not_even_sealed(
    shop: Shop, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """A15.5; goals R8, R9."""
    with caplog.at_level(logging.DEBUG):
        answers = everything(shop.api)
    for number in NUMBERS.values():
        assert places_of(number) == set()
    assert places_of_word(CVV) == set()
    written = caplog.text + "".join(capfd.readouterr())
    for text in (*answers, written):
        assert not any(number in text for number in NUMBERS.values())


def test_a_card_number_in_a_path_is_masked_where_the_request_is_kept(shop: Shop) -> None:
    """Issue: a card number is masked wherever it turns up."""
    refund = {"paymentType": "RF", "amount": "1.00", "currency": "EUR"}
    for path in (f"/v1/payments/{NUMBERS['right']}", f"/v1/{NUMBERS['right']}/x"):
        for answer in (shop.api.post(path, refund), shop.api.get(path)):
            assert answer.status == 404
            assert NUMBERS["right"] not in answer.text
    assert places_of(NUMBERS["right"]) == set()


def test_what_is_sealed_for_a_payment_is_its_number_and_nothing_else(shop: Shop) -> None:
    """Goals R8."""
    paid = shop.api.pay(paymentBrand="AMEX", card__number=NUMBERS["right"], card__cvv=CVV)
    row = Payment.objects.get(pk=paid.id)
    assert row.means_sealed is not None
    assert current_vault().open(row.means_sealed, row.id).reveal() == NUMBERS["right"]


def test_a_refused_number_is_not_even_sealed(shop: Shop) -> None:
    """Goals R8: what is not used is not kept."""
    refused = shop.api.pay(paymentBrand="AMEX", card__number=NUMBERS["wrong"])
    assert Payment.objects.get(pk=refused.id).means_sealed is None


def test_a_card_is_recognised_by_its_fingerprint_only(shop: Shop) -> None:
    """Goals R8: equal for equal cards, useless without the key."""
    same = [shop.api.pay(paymentBrand="AMEX", card__number=NUMBERS["right"]).id for _ in range(2)]
    other = shop.api.pay().id
    prints = {str(row.id.hex): bytes(row.means_fingerprint or b"") for row in Payment.objects.all()}
    assert prints[same[0]] == prints[same[1]] != prints[other]
    assert len(prints[other]) == 16


def test_the_scan_would_find_a_number_if_one_stood_there(shop: Shop) -> None:
    """The test above can fail: in text, in JSON and in bytes."""
    paid = shop.api.pay(merchantTransactionId="order-canary-1", merchantMemo="memo-canary-2")
    assert "gateway_payment.merchant_transaction_id" in places_of("order-canary-1")
    assert "gateway_payment.request" in places_of("order-canary-1")
    assert "gateway_payment.merchant_memo" in places_of("memo-canary-2")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE gateway_payment SET means_sealed = %s WHERE id = %s", [NUMBERS["right"].encode(), paid.id]
        )
    assert places_of(NUMBERS["right"]) == {"gateway_payment.means_sealed"}
    shop.api.pay(descriptor=f"code {CVV}, please")
    assert "gateway_payment.request" in places_of_word(CVV)
