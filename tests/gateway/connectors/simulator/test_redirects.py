"""Payments that a shopper decides about elsewhere: the pages, the way back, and one payment whatever is clicked.

Source: Part A, What the service does, 6, States, Events, 1; Part B, Asynchronous payment parameters; checks A6, A26,
A29, B13; decisions, section 5.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.http import HttpResponse
from django.test import Client

from gateway.connectors.simulator import orders
from gateway.connectors.simulator.connector import SIMULATOR
from gateway.core import clock, languages
from gateway.core.brands import PAYMENT_BRANDS
from gateway.models import AcquirerExchange, Payment, PaymentEvent, SimulatedOrder, Status, Suspension
from gateway.payments import shopper_return
from tests.support.client import Answer, Api
from tests.support.clock import jump
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

WORDS = languages.load_bank_texts("en")
RESULT_URL = "https://shop.example/result?order=17"
REDIRECTS = [code for code, brand in PAYMENT_BRANDS.items() if brand.redirect]
each_brand = pytest.mark.parametrize("brand", REDIRECTS)


def pay(api: Api, brand: str, **more: str) -> Answer:
    fields = {
        "amount": "92.00",
        "currency": "EUR",
        "paymentBrand": brand,
        "paymentType": "DB",
        "shopperResultUrl": RESULT_URL,
        "merchantTransactionId": "order-17",
    }
    return api.post("/v1/payments", fields | {name.replace("__", "."): value for name, value in more.items()})


def page_of(answer: Answer) -> str:
    return urlsplit(answer.body["redirect"]["url"]).path


def browse(path: str, outcome: str = "", http: Client | None = None) -> HttpResponse:
    client = http or Client()
    found: Any = client.post(path, {"outcome": outcome}) if outcome else client.get(path)
    return found  # type: ignore[no-any-return]


def follow(decision: HttpResponse, http: Client | None = None) -> str:
    """From the bank's answer over our return page to the merchant's address."""
    assert decision.status_code == 303
    back = (http or Client()).get(decision.headers["Location"])
    assert back.status_code == 303
    return str(back.headers["Location"])


@each_brand
def test_the_first_answer_is_pending_with_an_address_to_send_the_shopper_to(api: Api, brand: str) -> None:
    """A6.1, A6.2, A26.2, B13.3."""
    answer = pay(api, brand)
    assert (answer.status, answer.code) == (200, "000.200.000")
    redirect = answer.body["redirect"]
    assert redirect["method"] == "GET"
    assert 6 <= len(redirect["url"]) <= 2048
    assert all(1 <= len(one["value"]) <= 255 for one in redirect["parameters"])
    for sent in (Client().get, Client().post):
        page: Any = sent(page_of(answer), {one["name"]: one["value"] for one in redirect["parameters"]})
        assert page.status_code == 200
        assert b"92.00" in page.content


@each_brand
@pytest.mark.parametrize("outcome", orders.ORDER_OUTCOMES)
def test_each_outcome_is_one_click_and_brings_the_shopper_back_with_the_promised_result(
    api: Api, brand: str, outcome: str
) -> None:
    """A6.3, A6.4, A29.1: the existing query of shopperResultUrl is kept."""
    answer = pay(api, brand)
    url = follow(browse(page_of(answer), outcome))
    kind = orders.ORDER_KIND_BY_BRAND[brand]
    assert url.startswith("https://shop.example/result?order=17&")
    told = parse_qs(urlsplit(url).query)
    assert told == {"order": ["17"], "id": [answer.id], "resourcePath": [f"/v1/payments/{answer.id}"]}
    read = api.get(told["resourcePath"][0])
    assert read.code == kind.code(orders.ORDER_OUTCOMES[outcome])
    assert "redirect" not in read.body
    assert read.status == (200 if outcome == "approve" else 400)


def test_what_was_said_to_an_order_that_was_taken_back_stands_in_the_answer(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decline is ours, the acquirer's details and id are its own."""
    answer = pay(api, "WEBWALLET")
    payment = Payment.objects.select_related("merchant", "channel").get(pk=answer.id)
    real = SIMULATOR.void

    def void(request: Any) -> Any:
        return replace(real(request), connector_tx_id="void-7", details={"AcquirerResponse": "taken back"})

    monkeypatch.setattr(type(SIMULATOR), "void", lambda _self, request: void(request))
    ended = shopper_return.withdraw_payment(payment, None)
    assert (ended.status, ended.connector_tx_id) == (Status.DECLINED, "void-7")
    shown = api.get(f"/v1/payments/{answer.id}")
    assert shown.code == shopper_return.SHOPPER_CANCELLED_CODE
    assert shown.body["resultDetails"]["AcquirerResponse"] == "taken back"


def test_an_app_gets_its_shopper_back_by_its_own_scheme(api: Api) -> None:
    """Decisions, section 7: app schemes are redirected to."""
    answer = pay(api, "WEBWALLET", shopperResultUrl="com.example.app://paid/now")
    page = browse(page_of(answer))
    assert "form-action 'self' com.example.app:" in page.headers["Content-Security-Policy"]
    assert follow(browse(page_of(answer), "approve")).startswith(f"com.example.app://paid/now?id={answer.id}&")


def test_an_address_in_any_script_is_come_back_to_in_the_characters_of_a_header(api: Api) -> None:
    """A29.1: the host as IDNA, the rest percent-encoded; what was encoded already stays as it is."""
    answer = pay(api, "WEBWALLET", shopperResultUrl="https://例え.jp/戻る?name=J%C3%BCrgen+é#oben")
    page = browse(page_of(answer))
    assert "form-action 'self' https://xn--r8jz45g.jp" in page.headers["Content-Security-Policy"]
    back = follow(browse(page_of(answer), "approve"))
    assert back.startswith(f"https://xn--r8jz45g.jp/%E6%88%BB%E3%82%8B?name=J%C3%BCrgen+%C3%A9&id={answer.id}&")
    assert back.endswith("#oben")


@pytest.mark.parametrize(
    "url", ["https://a..b/", "https://shop.example:99999/", "https://shop.example;frame-ancestors/"]
)
def test_an_address_no_browser_can_open_is_refused_before_anybody_pays(api: Api, url: str) -> None:
    """B13.1, A29.1: a page that names it in its policy would fail, and the shopper could not come back."""
    answer = pay(api, "WEBWALLET", shopperResultUrl=url)
    assert answer.status == 400
    assert "shopperResultUrl" in answer.errors
    assert not SimulatedOrder.objects.exists()


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "/result"])
def test_addresses_that_run_or_read_something_are_refused(api: Api, url: str) -> None:
    """A29.1; decisions, section 7."""
    answer = pay(api, "WEBWALLET", shopperResultUrl=url)
    assert answer.status == 400
    assert "shopperResultUrl" in answer.errors


@each_brand
def test_without_an_address_to_come_back_to_nothing_begins(api: Api, brand: str) -> None:
    """B13.1, A29.1."""
    answer = pay(api, brand, shopperResultUrl="")
    assert answer.status == 400
    assert "shopperResultUrl" in answer.errors
    assert not SimulatedOrder.objects.exists()


def test_the_first_of_two_tabs_decides(api: Api) -> None:
    """Issue: two tabs make one payment."""
    answer = pay(api, "ONLINETRANSFER")
    one, other = Client(), Client()
    browse(page_of(answer), http=one), browse(page_of(answer), http=other)
    follow(browse(page_of(answer), "approve", one), one)
    follow(browse(page_of(answer), "cancel", other), other)
    assert api.read(answer.id).code == "000.100.110"
    assert PaymentEvent.objects.filter(payment=answer.id).count() == 3  # begun, suspended, approved


def test_back_and_pay_again_shows_that_it_is_decided(api: Api) -> None:
    """Issue: the back button makes no second payment."""
    answer = pay(api, "WEBWALLET")
    follow(browse(page_of(answer), "approve"))
    page = browse(page_of(answer))
    assert page.status_code == 200
    assert WORDS["APPROVED"] in page.content.decode()
    assert b'name="outcome"' not in page.content
    assert follow(browse(page_of(answer), "approve")).startswith("https://shop.example/")
    assert AcquirerExchange.objects.filter(payment=answer.id).count() == 2  # asked, and asked how it went


def test_leaving_leaves_it_open_and_the_deadline_declines_it_with_evidence(shop: Shop) -> None:
    """Issue: leaving makes it decline at its deadline; the merchant's clock counts."""
    answer = pay(shop.api, "SHOPWALLET")
    left = browse(page_of(answer), "leave")
    assert left.status_code == 200
    assert WORDS["leftTitle"] in left.content.decode()
    assert shopper_return.expire_due_suspensions() == 0
    assert shop.api.read(answer.id).code == "000.200.000"
    jump(1740)  # a minute before the deadline: a slow machine may take seconds to get here
    assert shopper_return.expire_due_suspensions() == 0
    jump(61)
    assert shopper_return.expire_due_suspensions() == 1
    assert shop.api.read(answer.id).code == "100.396.103"
    kinds = [exchange.kind for exchange in AcquirerExchange.objects.filter(payment=answer.id).order_by("id")]
    assert kinds == ["submit", "inquire", "void"]
    evidence = AcquirerExchange.objects.filter(payment=answer.id).latest("id")
    assert evidence.received["order"] == "expired"
    assert evidence.received["decidedAt"]
    assert not Suspension.objects.exists()
    # Too late: the order has ended.
    assert follow(browse(page_of(answer), "approve")).startswith("https://shop.example/")
    assert shop.api.read(answer.id).code == "100.396.103"


def test_who_approved_and_never_came_back_has_paid(shop: Shop) -> None:
    """The bank is asked before a deadline ends anything."""
    answer = pay(shop.api, "ONLINETRANSFER")
    browse(page_of(answer), "approve")
    assert shop.api.read(answer.id).code == "000.200.000"
    assert shop.api.post("/v1/test/clock", {"advance": "1801"}).body["ran"] == {"shopper deadlines": 1}
    assert shop.api.read(answer.id).code == "000.100.110"


def test_coming_back_without_a_decision_changes_nothing(api: Api) -> None:
    """A6.3: how it went is asked of the bank, never read from the address."""
    answer = pay(api, "ONLINETRANSFER")
    back = SimulatedOrder.objects.get(pk=answer.id).return_url
    url = Client().get(back).headers["Location"]
    assert url.startswith("https://shop.example/")
    assert api.read(answer.id).code == "000.200.000"
    browse(page_of(answer), "decline")
    Client().get(back)
    assert api.read(answer.id).code == "100.395.102"


@pytest.mark.parametrize("path", ["/simulator/", "/simulator/42", f"/simulator/{'0' * 32}"])
def test_a_page_that_nobody_was_sent_to_is_not_there(api: Api, path: str) -> None:
    assert Client().get(path).status_code == 404


def test_a_payments_id_does_not_open_its_page(api: Api) -> None:
    answer = pay(api, "WEBWALLET")
    assert Client().get(f"/simulator/{answer.id}").status_code == 404


def test_in_live_there_is_no_simulator(api: Api, live: None) -> None:
    order = SimulatedOrder.objects.create(
        payment="0" * 32, kind="bank", amount="1.00", currency="EUR", brand="ONLINETRANSFER"
    )
    assert Client().get(f"/simulator/{order.handle.hex}", secure=True).status_code == 404


@pytest.mark.parametrize("locale, lang", [("de_DE", "de"), ("dk", "da"), ("en-GB", "en"), ("xx", "en")])
def test_the_pages_speak_the_merchants_locale_where_they_can(api: Api, locale: str, lang: str) -> None:
    """A13.18."""
    page = browse(page_of(pay(api, "INVOICE", locale=locale)))
    assert languages.load_bank_texts(languages.resolve_language(lang) or "")["invoiceTitle"] in page.content.decode()
    assert f'<html lang="{lang}"' in page.content.decode()


def test_the_pages_say_that_they_are_a_test_and_run_no_script(api: Api) -> None:
    """look.md, Simulator pages."""
    for brand in REDIRECTS:
        page = browse(page_of(pay(api, brand)))
        text = page.content.decode()
        assert languages.load_page_texts("en")["test"] in text
        assert "<script" not in text
        assert " style=" not in text
        assert "order-17" in text
        assert page.headers["Cache-Control"] == "no-store"
        assert "script-src 'self'" in page.headers["Content-Security-Policy"]
        assert "unsafe" not in page.headers["Content-Security-Policy"]


def test_what_a_merchant_sends_is_only_text_on_the_page(api: Api) -> None:
    answer = pay(api, "WEBWALLET", descriptor="<b>Shop</b>", merchantTransactionId="<script>1</script>")
    text = browse(page_of(answer)).content.decode()
    assert "&lt;script&gt;" in text
    assert "<script" not in text
    assert "<b>" not in text


@pytest.mark.parametrize("kind, then", [("DB", ("RF", "RV")), ("PA", ("CP", "RV"))])
@each_brand
def test_what_was_paid_elsewhere_is_followed_up_like_anything_else(
    api: Api, brand: str, kind: str, then: tuple[str, ...]
) -> None:
    """A27.3; gateway.payments.payment_methods."""
    for operation in then:
        answer = pay(api, brand, paymentType=kind)
        early = api.follow(answer.id, operation, "10.00")
        assert (early.status, early.code) == (400, "700.400.570")
        follow(browse(page_of(answer), "approve"))
        assert api.follow(answer.id, operation, "10.00").code == "000.100.110"


@pytest.mark.parametrize("kind", ["RB"])
@each_brand
def test_nobody_charges_again_what_a_shopper_has_to_confirm(api: Api, brand: str, kind: str) -> None:
    """gateway.payments.payment_methods."""
    answer = pay(api, brand)
    follow(browse(page_of(answer), "approve"))
    assert api.follow(answer.id, kind, "10.00").code == "600.200.310"
    refused = pay(api, brand, paymentType="CD")
    assert (refused.status, refused.code) == (400, "600.200.310")
    assert "paymentType" in refused.errors


def test_a_lost_answer_is_found_again_and_waits_for_its_shopper(shop: Shop) -> None:
    """House rule 4: the worker died after the bank took the order."""
    answer = pay(shop.api, "ONLINETRANSFER")
    payment = Payment.objects.get(pk=answer.id)
    assert payment.status == Status.PENDING
    order = SimulatedOrder.objects.get(pk=answer.id)
    again = orders.open_simulated_order(_question(payment), orders.BANK_ORDER)
    assert again.handle == order.handle


def _question(payment: Payment) -> Any:
    from gateway.payments.process import build_acquirer_request

    return build_acquirer_request(payment, None, {})


def test_orders_that_were_decided_long_ago_are_forgotten_but_not_what_a_payment_still_asks_about(api: Api) -> None:
    """What stands for another party's memory has an end, too; not while somebody may ask."""
    decided, waiting, asked = (pay(api, "ONLINETRANSFER") for _ in range(3))
    follow(browse(page_of(decided), "approve"))
    long_ago = clock.real_now() - orders.SIMULATED_ORDER_RETENTION - timedelta(seconds=1)
    SimulatedOrder.objects.filter(pk=asked.id).update(state=SimulatedOrder.State.APPROVED)
    SimulatedOrder.objects.update(opened_at=long_ago)
    assert orders.delete_old_simulated_orders(limit=10) == 0
    SimulatedOrder.objects.exclude(pk=waiting.id).update(decided_at=long_ago)
    assert orders.delete_old_simulated_orders(limit=10) == 1
    assert {row.payment.hex for row in SimulatedOrder.objects.all()} == {waiting.id, asked.id}
    assert api.read(decided.id).code == "000.100.110"
