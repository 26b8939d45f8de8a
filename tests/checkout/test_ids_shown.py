"""Ids are stored as a merchant sent them, and people see a card number in one masked. Source: docs/decisions/0052."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.urls import reverse

from checkout import receipts
from checkout.models import Checkout, PaymentLink
from gateway.models import Authentication
from tests.checkout.test_payment_links import create, open_link, pay_link
from tests.support.fixtures import Shop
from tests.support.office import signed_in
from tests.support.shopper import open_checkout
from tests.support.threeds import buy

pytestmark = pytest.mark.django_db
NUMBER = "4135119718147810"
SHOWN = "413511******7810"
IDS = {
    "merchantTransactionId": NUMBER,
    "merchantInvoiceId": NUMBER,
    "shopperResultUrl": f"https://shop.example/{NUMBER}",
}


@pytest.mark.parametrize("digits", range(1, 17))
def test_an_answer_that_a_page_reads_has_no_digit_of_the_number(shop: Shop, digits: int) -> None:
    """A script of the merchant's page may send each beginning of a number from the hosted field: were four digits of
    each shown, it would know them all."""
    for beside in ({"wallet1.paymentToken": "x"}, {"card.holder": "?"}):
        answer = open_checkout(shop.api).pay(card__number="4135119718147811"[:digits], **beside)
        assert answer.status == 400
        told = {one["name"]: one["value"] for one in answer.body["result"]["parameterErrors"] if "value" in one}
        assert told["card.number"] == "•••"
        assert not re.search("[0-9]", "".join(told.values()))


@pytest.fixture
def office(db: None) -> Client:
    return signed_in(User.objects.create_superuser("root"))


def read_page(client: Client, name: str, *arguments: Any) -> str:
    answer = client.get(reverse(f"admin:{name}", args=arguments))
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_neither_the_payment_page_nor_the_receipt_shows_one(shop: Shop) -> None:
    """Found by hand: the page, the receipt and its mail repeated it."""
    made = create(shop.api, merchantTransactionId=NUMBER, link__reusable="true")
    before = open_link(made.id).checkout
    paid = pay_link(made.id).checkout
    for checkout in (before, paid):
        page = Client().get(f"/pay/{checkout}").content.decode()
        assert NUMBER not in page
        assert SHOWN in page
    assert Client().post(f"/pay/{paid}/receipt", {"email": "jane@mail.example"}).status_code == 303
    receipts.send_due_receipt_mails()
    (sent,) = mail.outbox
    assert NUMBER not in sent.body
    assert SHOWN in sent.body


def test_a_channel_that_keeps_free_text_shows_its_numbers_masked_all_the_same(shop: Shop) -> None:
    api = shop.api_of(shop.open_channel(mask_card_data=False))
    cart = {"cart.items[0].name": f"Box {NUMBER}", "cart.items[0].quantity": "1", "cart.items[0].price": "92.00"}
    made = create(api, **cart, link__description=f"For {NUMBER}")
    assert PaymentLink.objects.get(pk=made.id).description == f"For {NUMBER}"
    page = Client().get(f"/pay/{open_link(made.id).checkout}").content.decode()
    assert NUMBER not in page
    assert page.count(SHOWN) == 2


def test_no_page_of_a_payment_link_or_checkout_shows_one(shop: Shop, office: Client) -> None:
    made = create(shop.api, **IDS)
    open_link(made.id)
    pages = [
        read_page(office, "checkout_paymentlink_changelist"),
        read_page(office, "checkout_paymentlink_change", PaymentLink.objects.get().pk),
        read_page(office, "checkout_checkout_change", Checkout.objects.get().pk),
    ]
    for page in pages:
        assert NUMBER not in page
        assert SHOWN in page


def test_no_page_of_an_authentication_shows_one(shop: Shop, office: Client) -> None:
    channel = shop.open_channel(three_d_secure=True)
    assert buy(shop.api_of(channel)).status == 200
    row = Authentication.objects.get()
    Authentication.objects.update(request={"merchantTransactionId": NUMBER, "cart": [{"name": NUMBER, "count": 1}]})
    page = read_page(office, "gateway_authentication_change", row.pk)
    assert NUMBER not in page
    assert SHOWN in page
