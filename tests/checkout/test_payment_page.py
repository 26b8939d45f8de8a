"""The hosted payment page: paymentPage of a checkout, what the page shows, its headers, receipts and their mails.

Source: docs/decisions/0083.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from checkout import receipts
from checkout.expiry import erase_expired_secrets
from checkout.models import Checkout, PaymentLink, ReceiptMail, ResultCall
from gateway.api import token_admission
from gateway.core import languages
from gateway.models import Payment
from tests.checkout.test_payment_links import create as create_link
from tests.checkout.test_payment_links import open_amount, open_link, pay_link
from tests.support.client import Api
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.shopper import DECLINED, MONEY, Browser, create, open_checkout

pytestmark = pytest.mark.django_db
CART = {
    "cart.items[0].name": "Blue <mug>",
    "cart.items[0].quantity": "2",
    "cart.items[0].price": "9.52",
    "cart.items[1].name": "Shipping",
    "cart.items[1].totalAmount": "4.90",
}


def page_of(api: Api, **more: str | None) -> Browser:
    """A checkout with a payment page."""
    answer = create(api, paymentPage="true", shopperResultUrl=None, **more)
    assert answer.body["paymentPage"] == f"http://testserver/pay/{answer.id}"
    return Browser(answer.id)


def look(browser: Browser, **query: str) -> str:
    return str(Client().get(f"/pay/{browser.checkout}", query).content.decode())


def pay(browser: Browser) -> None:
    """As the page's form does: with its action as the shopper's way back."""
    found = re.search(r'action="([^"]+)"', look(browser))
    assert found is not None
    paid = browser.pay(shopperResultUrl=found[1])
    assert paid.body["returnTo"].startswith(f"http://testserver/pay/{browser.checkout}?locale=en&id=")


def test_a_checkout_has_a_page_if_its_merchant_asks_for_it(api: Api) -> None:
    without = create(api)
    assert set(without.body) == {"id", "result", "buildNumber", "timestamp", "ndc"}
    assert Client().get(f"/pay/{without.id}").status_code == 404
    asked = page_of(api)
    assert Client().get(f"/pay/{asked.checkout}").status_code == 200
    updated = api.post(f"/v1/checkouts/{asked.checkout}", {"amount": "80.00"})
    assert updated.body["paymentPage"] == f"http://testserver/pay/{asked.checkout}"
    assert "€80.00" in look(asked)
    assert set(create(api, paymentPage="perhaps").errors) == {"paymentPage"}
    assert "paymentPage" not in create(api, paymentPage="false").body


def test_the_payment_knows_nothing_of_the_page(api: Api) -> None:
    """Neither as an ignored parameter nor in the echo."""
    browser = page_of(api)
    pay(browser)
    body = api.get(f"/v1/checkouts/{browser.checkout}/payment").body
    assert not {"paymentPage", "ignoredParameters"} & body.keys()
    assert not ResultCall.objects.exists(), "nobody calls our own page"


def test_the_page_shows_the_order_and_has_the_form(shop: Shop) -> None:
    browser = page_of(shop.api, **CART, merchantTransactionId="order-4711")
    page = look(browser)
    for words in ("Pay Shop", "€92.00", "2 ×", "Blue &lt;mug&gt;", "€19.04", "€4.90", "order-4711"):
        assert words in page, words
    assert 'class="paymentWidgets"' in page
    assert f"/v1/paymentWidgets.js?checkoutId={browser.checkout}" in page
    assert 'integrity="sha384-' in page


def test_brands_are_those_of_the_channel_that_this_payment_can_be_made_with(shop: Shop) -> None:
    channel = shop.open_channel(brands=["MASTER", "DIRECTDEBIT_SEPA", "VISA", "GIFTCARD"])
    assert 'data-brands="MASTER DIRECTDEBIT_SEPA VISA"' in look(page_of(shop.api_of(channel)))
    assert 'data-brands="MASTER VISA"' in look(page_of(shop.api_of(channel), currency="USD"))


def test_no_page_is_kept_framed_or_named_to_others(api: Api) -> None:
    """Same capability rules as checkouts."""
    paid = page_of(api)
    pay(paid)
    link = open_amount(api).id
    for path in (f"/pay/{page_of(api).checkout}", f"/pay/{paid.checkout}", f"/pay/{link}", "/pay/unknown"):
        answer = Client().get(path)
        assert answer["Cache-Control"] == "no-store"
        assert answer["Referrer-Policy"] == "no-referrer"
        assert answer["X-Frame-Options"] == "DENY"
        assert answer["X-Robots-Tag"] == "noindex"
        policy = answer["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy
        assert "script-src 'self';" in f"{policy};"
        assert "unsafe" not in policy
        assert not answer.cookies
        foreign = re.findall(r'(?:src|href)="(https?://(?!testserver)[^"]+)', answer.content.decode())
        assert not foreign


@pytest.mark.parametrize("path", ["/pay/unknown", "/pay/unknown/receipt"])
def test_a_form_that_is_sent_where_nothing_is_stays_unread(db: None, path: str) -> None:
    """Anybody may send one: 400 fields cost 5.8 ms on a busy machine, where 5 are allowed."""
    answer = Client().post(path, {f"card.name{number}": "x" for number in range(300)})
    assert answer.status_code == 404
    assert not hasattr(answer.wsgi_request, "_post")


@pytest.mark.parametrize("code", languages.LANGUAGE_CODES)
def test_every_page_speaks_every_language(api: Api, code: str) -> None:
    iso, direction = languages.iso_language_code(code), languages.text_direction(code)
    texts = languages.load_page_texts(code)
    pages = (
        (f"/pay/{page_of(api).checkout}", texts["payTitle"].format(merchant="Shop")),
        (f"/pay/{open_amount(api).id}", texts["goOn"]),
        ("/pay/unknown", texts["linkEnded"]),
    )
    for path, words in pages:
        page = Client().get(path, {"locale": code}).content.decode()
        assert f'<html lang="{iso}" dir="{direction}">' in page
        assert words in page


def test_the_language_is_the_shoppers_then_the_merchants_then_the_browsers(api: Api) -> None:
    browser = page_of(api, locale="fr_FR")
    assert '<html lang="fr"' in look(browser)
    assert '<html lang="ar" dir="rtl"' in look(browser, locale="ar")
    other = page_of(api)
    german = Client().get(f"/pay/{other.checkout}", headers={"accept-language": "de-AT"}).content.decode()
    assert '<html lang="de"' in german
    assert f"/pay/{other.checkout}?locale=de" in german, "the form's way back keeps the language"


def test_a_declined_card_is_told_and_tried_again(api: Api) -> None:
    browser = page_of(api)
    assert browser.pay(card__number="4000015500000005").status == 400
    page = look(browser, resourcePath="x")
    assert "Not paid" in page
    assert "paymentWidgets" in page
    pay(browser)
    assert "Receipt number" in look(browser)


def test_a_payment_without_an_answer_is_waited_for(api: Api) -> None:
    browser = page_of(api)
    pay(browser)
    Payment.objects.update(status="IN_DOUBT")
    page = look(browser)
    assert "Please do not pay again" in page
    assert 'http-equiv="refresh"' in page


def test_the_end_of_a_checkout_is_said(api: Api) -> None:
    browser = page_of(api)
    jump(1800)
    answer = Client().get(f"/pay/{browser.checkout}")
    assert (answer.status_code, "Your time to pay has run out" in answer.content.decode()) == (410, True)


def test_a_card_is_stored_on_the_page(api: Api) -> None:
    made = api.post("/v1/checkouts", {"createRegistration": "true", "paymentPage": "true"})
    browser = Browser(made.id, kind="registration")
    assert f"checkoutId={made.id}/registration" in look(browser)
    assert browser.pay(shopperResultUrl=f"http://testserver/pay/{made.id}").status == 200
    assert "<h1>Saved</h1>" in look(browser)


# --- open amounts ----------------------------------------------------------------------------------------------------


def test_the_shopper_enters_an_open_amount(api: Api) -> None:
    made = open_amount(api, link__minAmount="5.00").id
    page = Client().get(f"/pay/{made}").content.decode()
    assert "Enter an amount between €5.00 and €500.00." in page
    assert not Checkout.objects.exists()
    wrong = Client().post(f"/pay/{made}", {"amount": "4,99", "locale": "de"})
    assert wrong.status_code == 200
    assert 'aria-invalid="true"' in wrong.content.decode()
    browser = open_link(made, amount="12,50", locale="de")
    assert "€12.50" in look(browser)
    assert browser.pay().body["state"] == "done"
    assert str(Payment.objects.get().amount) == "12.50"
    yen = open_amount(api, currency="JPY").id
    assert "between ¥1 and ¥500" in Client().get(f"/pay/{yen}").content.decode()


def test_a_program_that_looks_at_a_link_opens_nothing(api: Api) -> None:
    made = create_link(api).id
    assert Client().head(f"/pay/{made}").status_code == 200
    assert not Checkout.objects.exists()


def test_checkouts_that_links_opened_in_vain_are_deleted_after_a_day(shop: Shop) -> None:
    """What strangers open costs no room for ever."""
    made = create_link(shop.api, link__reusable="true").id
    open_link(made)
    pay_link(made)
    create(shop.api)
    jump(timedelta(days=1, minutes=29).total_seconds())
    erase_expired_secrets()
    assert Checkout.objects.count() == 3
    jump(120)
    erase_expired_secrets()
    link = PaymentLink.objects.get().pk
    assert set(Checkout.objects.values_list("attempts", "link")) == {(1, link), (0, None)}


def test_checkouts_that_nobody_tried_to_pay_are_deleted_after_400_days(shop: Shop) -> None:
    open_checkout(shop.api).pay()
    open_checkout(shop.api).pay(card__number=DECLINED)
    create(shop.api)
    jump(timedelta(days=400, minutes=29).total_seconds())
    erase_expired_secrets()
    assert Checkout.objects.count() == 3
    jump(120)
    erase_expired_secrets()
    assert set(Checkout.objects.values_list("attempts", flat=True)) == {1}


def test_a_link_opens_so_many_checkouts_for_a_network_whatever_the_channels_limit(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a row that is kept for a day, and anybody who has the link makes one."""
    monkeypatch.setattr(token_admission, "MAX_LINK_OPENINGS", (3, 3600))
    link, another = (create_link(api, link__reusable="true", merchantTransactionId=None).id for _ in range(2))
    opened = [Client().get(f"/pay/{link}").status_code for _ in range(5)]
    assert opened == [303, 303, 303, 429, 429]
    assert Checkout.objects.filter(link=link).count() == 3
    assert Client().get(f"/pay/{another}").status_code == 303
    assert Client().get(f"/pay/{link}", REMOTE_ADDR="198.51.100.7").status_code == 303


def test_opening_is_throttled_by_network(shop: Shop) -> None:
    channel = shop.open_channel(limits={"checkout": {"limit": 2, "window_s": 3600}, "widget": None})
    made = shop.api.as_entity(channel.entity_id).post("/v1/paymentLinks", MONEY).id
    found = [Client().get(f"/pay/{made}").status_code for _ in range(3)]
    assert found == [303, 303, 429]
    assert Client().get(f"/pay/{made}", REMOTE_ADDR="198.51.100.7").status_code == 303
    assert Checkout.objects.count() == 3


# --- receipts --------------------------------------------------------------------------------------------------------


def test_the_receipt_says_what_was_paid_with_four_digits_of_the_card(api: Api) -> None:
    browser = page_of(api, **CART, merchantTransactionId="order-4711")
    pay(browser)
    page = look(browser)
    for words in ("Paid", "€92.00", "Visa •••• 0000", "order-4711", "€19.04", "data-print"):
        assert words in page, words
    assert "4200000000000000" not in page
    jump(timedelta(hours=24).total_seconds())
    old = look(browser)
    assert "already paid" in old
    assert "•••• 0000" not in old


def test_a_shop_with_a_page_of_its_own_gets_its_shopper_back(api: Api) -> None:
    answer = create(api, paymentPage="true")
    browser = Browser(answer.id)
    paid = browser.pay(shopperResultUrl=f"http://testserver/pay/{answer.id}")
    assert paid.body["returnTo"].startswith("https://shop.example/result?order=7&id=")
    assert 'href="https://shop.example/result?order=7' in look(browser)
    assert ResultCall.objects.count() == 1


def test_the_receipt_is_mailed_in_the_shoppers_language_three_times_at_most(api: Api) -> None:
    browser = page_of(api, **CART)
    path = f"/pay/{browser.checkout}/receipt"
    assert "mail=paid" in Client().post(path, {"email": "jane@mail.example"})["Location"]
    pay(browser)
    for address in (
        "",
        "jane",
        "jane@mail.example\nBcc: all@mail.example",
        "a@[10.0.0.5]",
        f"{'a' * 300}@mail.example",
    ):
        assert "mail=refused" in Client().post(path, {"email": address})["Location"]
    assert not ReceiptMail.objects.exists()
    for _ in range(3):
        sent = Client().post(path, {"email": " jane@mail.example ", "locale": "de"})
        assert (sent.status_code, "locale=de&mail=sent" in sent["Location"]) == (303, True)
    assert "mail=refused" in Client().post(path, {"email": "jane@mail.example"})["Location"]
    assert (receipts.send_due_receipt_mails(), receipts.send_due_receipt_mails()) == (3, 0)
    assert [sent.to for sent in mail.outbox] == [["jane@mail.example"]] * 3
    assert mail.outbox[0].subject == "[Test] Beleg von Shop: 92,00\u00a0€"
    for words in ("Betrag: 92,00\u00a0€", "Visa •••• 0000", "2 × Blue <mug>  19,04\u00a0€"):
        assert words in mail.outbox[0].body
    assert set(ReceiptMail.objects.values_list("state", "to")) == {("SENT", "")}


def test_a_mail_server_that_is_away_is_tried_again_until_it_is_given_up(api: Api, settings: Any) -> None:
    browser = page_of(api)
    pay(browser)
    Client().post(f"/pay/{browser.checkout}/receipt", {"email": "jane@mail.example"})
    settings.EMAIL_BACKEND = "tests.checkout.test_payment_page.NoServer"
    assert receipts.send_due_receipt_mails() == 0
    row = ReceiptMail.objects.get()
    assert (row.state, row.tries, row.lease_until is not None) == ("DUE", 1, True)
    ReceiptMail.objects.update(tries=receipts.MAX_RECEIPT_MAIL_TRIES - 1, lease_until=None)
    assert receipts.send_due_receipt_mails() == 1
    assert list(ReceiptMail.objects.values_list("state", "to")) == [("GIVEN_UP", "")]


def test_a_receipt_that_cannot_be_written_keeps_no_other_waiting(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    compose = receipts.compose_receipt_mail
    for _ in range(2):
        browser = page_of(api)
        pay(browser)
        Client().post(f"/pay/{browser.checkout}/receipt", {"email": "jane@mail.example"})
    bad = ReceiptMail.objects.earliest("pk")

    def refuse(row: Checkout, payment: Payment, language: str) -> tuple[str, str]:
        if row.pk == bad.checkout_id:
            raise ValueError("a line that cannot be shown")
        return compose(row, payment, language)

    monkeypatch.setattr(receipts, "compose_receipt_mail", refuse)
    assert receipts.send_due_receipt_mails() == 1
    assert len(mail.outbox) == 1
    ReceiptMail.objects.filter(pk=bad.pk).update(tries=receipts.MAX_RECEIPT_MAIL_TRIES - 1, lease_until=None)
    assert receipts.send_due_receipt_mails() == 1
    assert set(ReceiptMail.objects.values_list("state", flat=True)) == {"SENT", "GIVEN_UP"}


class NoServer:
    """A mail server that is away."""

    def __init__(self, **_: object) -> None:
        """Nothing."""

    def send_messages(self, _messages: object) -> int:
        raise ConnectionRefusedError


def test_the_receipt_of_one_is_not_shown_to_another_who_has_the_link(api: Api) -> None:
    made = create_link(api, link__reusable="true").id
    first, second = pay_link(made), open_link(made)
    assert "•••• 0000" in look(first)
    assert "•••• 0000" not in look(second)
    assert "•••• 0000" not in look(open_link(made))
