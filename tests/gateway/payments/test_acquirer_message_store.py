"""Stored acquirer messages: kept as the difference from the payment, and restored completely."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core import identifiers
from gateway.models import AcquirerExchange, Payment
from gateway.payments import acquirer_message_store
from tests.support.client import Api

REQUEST = {
    "paymentType": "DB", "paymentBrand": "VISA", "amount": "92.00", "currency": "EUR", "merchantTransactionId": "o-1",
    "card": {"holder": "Jane Jones", "expiryMonth": "05", "expiryYear": "2034"},
    "customer": {"email": "jane@shop.example"},
}  # fmt: skip
LEAVES = st.none() | st.booleans() | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner), max_leaves=6
)
MESSAGES = st.dictionaries(st.sampled_from(["card", "customer", "amount", "brand", "x"]), VALUES)


def payment_of(request: dict[str, Any]) -> Payment:
    return Payment(
        id=identifiers.row_id(),
        payment_type="DB",
        brand="VISA",
        amount=Decimal("92.00"),
        currency="EUR",
        request=request,
    )


def told_again(sent: dict[str, Any], payment: Payment) -> dict[str, Any]:
    return acquirer_message_store.restore_message(
        AcquirerExchange(payment=payment, sent=acquirer_message_store.compact_message(sent, payment)), payment
    )


def test_a_message_in_our_own_words_is_kept_as_what_it_adds() -> None:
    payment = payment_of(REQUEST)
    card = {**REQUEST["card"], "number": "420000******0000", "cvvPresent": True}  # type: ignore[dict-item]
    own = {"operation": "DB", "amount": "92.00", "currency": "EUR", "brand": "VISA", "transaction": payment.id.hex}
    sent = {**own, "merchantTransactionId": "o-1", "customer": REQUEST["customer"], "card": card}
    assert acquirer_message_store.compact_message(sent, payment) == {
        "differs": {"card": {"number": "420000******0000", "cvvPresent": True}}
    }
    assert told_again(sent, payment) == sent
    del sent["customer"]
    assert acquirer_message_store.compact_message(sent, payment)["differs"]["customer"] is None
    assert told_again(sent, payment) == sent


def own_words(payment: Payment, **more: Any) -> dict[str, Any]:
    """The message that repeats the payment alone, and what is said otherwise."""
    message = {
        "operation": "DB", "amount": "92.00", "currency": "EUR", "brand": "VISA", "transaction": payment.id.hex,
        "merchantTransactionId": "o-1", "customer": REQUEST["customer"], "card": REQUEST["card"],
    }  # fmt: skip
    return message | more


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({}, {}),
        ({"amount": "91.00"}, {"amount": "91.00"}),
        ({"card": {"holder": "Jane Jones"}}, {"card": {"expiryMonth": None, "expiryYear": None}}),
        ({"card": {**REQUEST["card"], "holder": "John"}}, {"card": {"holder": "John"}}),  # type: ignore[dict-item]
        ({"card": "masked"}, {"card": "masked"}),
        ({"brand": {"name": "VISA"}}, {"brand": {"name": "VISA"}}),
        ({"new": {"a": {"b": "c"}}}, {"new": {"a": {"b": "c"}}}),
        ({"customer": {}}, {"customer": {"email": None}}),
    ],
    ids=str,
)
def test_only_what_differs_from_the_payment_is_kept(said: dict[str, Any], kept: dict[str, Any]) -> None:
    payment = payment_of(REQUEST)
    message = own_words(payment, **said)
    assert acquirer_message_store.compact_message(message, payment) == {"differs": kept}
    assert told_again(message, payment) == message


@pytest.mark.parametrize(
    "said",
    [
        {"new": None},
        {"card": {"holder": None}},
        {"transaction": "another's"},
        {"transaction": None},
        {"new": {"a": {"b": None}}},
    ],
    ids=str,
)
def test_a_message_with_a_null_or_of_another_payment_is_kept_whole(said: dict[str, Any]) -> None:
    payment = payment_of(REQUEST)
    message = own_words(payment, **said)
    kept = acquirer_message_store.compact_message(message, payment)
    assert kept == message
    assert kept is not message
    assert told_again(message, payment) == message


def test_a_message_with_the_payment_under_its_key_is_kept_as_what_it_adds() -> None:
    """The stub acquirer's: it names the payment by ``key``."""
    payment = payment_of(REQUEST)
    message = own_words(payment, kind="submit", key=payment.id.hex, merchant="M1")
    del message["transaction"]
    assert acquirer_message_store.compact_message(message, payment) == {
        "differs": {"transaction": None, "kind": "submit", "key": payment.id.hex, "merchant": "M1"}
    }
    assert told_again(message, payment) == message


@pytest.mark.parametrize("named", ["key", "transaction"])
def test_a_later_attempt_and_an_inquiry_are_kept_whole(named: str) -> None:
    """Neither repeats the payment: an attempt has a key of its own, an inquiry has nothing else."""
    payment = payment_of(REQUEST)
    attempt = own_words(payment) | {named: f"{payment.id.hex}-2"}
    if named == "key":
        del attempt["transaction"]
    inquiry = {"kind": "inquire", "key": payment.id.hex}
    for message in (attempt, inquiry):
        assert acquirer_message_store.compact_message(message, payment) == message
        assert told_again(message, payment) == message


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"differs": {"amount": "1.00"}, "other": "x"}, {"differs": {"amount": "1.00"}, "other": "x"}),
        ({"mti": "0200"}, {"mti": "0200"}),
        ({}, {}),
    ],
    ids=str,
)
def test_what_is_no_patch_is_told_as_it_is(sent: dict[str, Any], told: dict[str, Any]) -> None:
    payment = payment_of(REQUEST)
    found = acquirer_message_store.restore_message(AcquirerExchange(payment=payment, sent=sent), payment)
    assert found == told


@given(MESSAGES, st.booleans())
def test_whatever_was_sent_comes_back(sent: dict[str, Any], ours: bool) -> None:
    payment = payment_of(REQUEST)
    message = {**sent, "transaction": payment.id.hex} if ours else sent
    assert told_again(message, payment) == message


@pytest.mark.django_db
def test_a_payment_by_card_keeps_little_of_its_message(api: Api) -> None:
    """Goals, P4; decision 0044."""
    answer = api.pay(customer__givenName="Jane", customer__surname="Jones", customer__email="jane@shop.example")
    payment = Payment.objects.get(pk=answer.id)
    row = AcquirerExchange.objects.get(payment=payment)
    assert set(row.sent["differs"]) == {"card"}
    sent = acquirer_message_store.restore_message(row, payment)
    assert (sent["operation"], sent["transaction"], sent["amount"]) == ("DB", payment.id.hex, "92.00")
    assert sent["customer"]["email"] == "jane@shop.example"
