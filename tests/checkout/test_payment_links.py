"""Payment links by the API: what is taken, how often they are paid, who may read and close them.

Source: docs/decisions/0083.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from functools import partial
from uuid import UUID

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from checkout.models import Checkout, PaymentLink
from checkout.payment_links import deactivate_payment_link
from checkout.payment_page import parse_open_amount
from gateway.access.tokens import TokenLimits
from gateway.api import token_admission
from gateway.core import clock
from gateway.models import Notification, Payment, RequestLog, Status
from gateway.payments.webhook_payloads import render_webhook_payload
from tests.checkout.test_races import CHALLENGED
from tests.support.client import Answer, Api
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.shopper import DECLINED, Browser
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db
FRICTIONLESS = "4200000000000091"
AT_BANK = {**CHALLENGED, "shopperResultUrl": "http://testserver/pay/x"}
"""A card whose bank asks its holder, with what the page's form adds."""
LINK = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "merchantTransactionId": "order-4711"}


def create(api: Api, **more: str | None) -> Answer:
    fields = {**LINK, **{name.replace("__", "."): value for name, value in more.items()}}
    return api.post("/v1/paymentLinks", {name: value for name, value in fields.items() if value is not None})


def open_amount(api: Api, **more: str | None) -> Answer:
    return create(api, amount=None, **{"link__openAmount": "true", "link__maxAmount": "500.00", **more})


def link_of(answer: Answer) -> PaymentLink:
    assert answer.status == 200, answer
    return PaymentLink.objects.select_related("merchant", "channel").get(pk=answer.id)


def open_link(ident: str, **form: str) -> Browser:
    """A browser of its own that has opened the link."""
    client = Client()
    answer = client.post(f"/pay/{ident}", form) if form else client.get(f"/pay/{ident}")
    assert answer.status_code == 303, answer.content
    return Browser(answer["Location"].rpartition("/")[2].partition("?")[0])


def open_status(ident: str) -> int:
    return int(Client().get(f"/pay/{ident}").status_code)


def pay_link(ident: str) -> Browser:
    browser = open_link(ident)
    assert browser.pay().body["state"] == "done"
    return browser


def first_payment(browser: Browser) -> UUID | None:
    return Checkout.objects.get(pk=browser.checkout.partition("-")[0]).payment_id


def test_a_link_is_made_and_read(api: Api) -> None:
    made = create(api, link__description="Deposit for your stay", customer__email="jane@mail.example")
    assert (made.status, made.code) == (200, "000.000.100")
    assert re.fullmatch("[0-9a-f]{32}", made.id)
    body = made.body
    assert body["url"] == f"http://testserver/pay/{made.id}"
    assert body["state"] == "ACTIVE"
    assert (body["amount"], body["currency"], body["merchantTransactionId"]) == ("92.00", "EUR", "order-4711")
    assert body["link"] == {"reusable": "false", "description": "Deposit for your stay"}
    assert (body["paidCount"], body["paidAmount"]) == (0, "0.00")
    read = api.get(f"/v1/paymentLinks/{made.id}")
    changing = ("ndc", "timestamp")
    assert {name: value for name, value in read.body.items() if name not in changing} == {
        name: value for name, value in body.items() if name not in changing
    }


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"amount": None}, {"amount"}),
        ({"amount": "0.00"}, {"amount"}),
        ({"amount": "92.1"}, {"amount"}),
        ({"currency": None}, {"currency"}),
        ({"paymentType": "CD"}, {"paymentType"}),
        ({"paymentType": None}, {"paymentType"}),
        ({"link__openAmount": "true", "link__maxAmount": "5.00"}, {"amount"}),
        ({"amount": None, "link__openAmount": "true"}, {"link.maxAmount"}),
        ({"link__maxAmount": "5.00"}, {"link.maxAmount"}),
        ({"amount": None, "link__openAmount": "true", "link__minAmount": "6.00", "link__maxAmount": "5.00"},
         {"link.maxAmount"}),
        ({"amount": None, "link__openAmount": "true", "link__minAmount": "0.00", "link__maxAmount": "5.00"},
         {"link.minAmount"}),
        ({"amount": None, "currency": "JPY", "link__openAmount": "true", "link__maxAmount": "500.50"},
         {"link.maxAmount"}),
        ({"amount": None, "currency": "JPY", "link__openAmount": "true", "link__maxAmount": "0.00"},
         {"link.maxAmount"}),
        ({"amount": "92.50", "currency": "JPY"}, {"amount"}),
        ({"link__maxPayments": "5"}, {"link.maxPayments"}),
        ({"link__reusable": "true", "link__maxPayments": "0"}, {"link.maxPayments"}),
        ({"link__reusable": "perhaps"}, {"link.reusable"}),
        ({"link__expiresAt": "2001-05-14 17:00:00"}, {"link.expiresAt"}),
        ({"link__expiresAt": "tomorrow"}, {"link.expiresAt"}),
        ({"link__description": "a" * 201}, {"link.description"}),
        ({"customParameters[paymentLinkId]": "7"}, {"customParameters[paymentLinkId]"}),
        ({"cart__items[1000]__name": "Mug"}, {"cart.items[1000].name"}),
        ({"cart__items[0]__price": "9"}, {"cart.items[0].price"}),
        ({"shopperResultUrl": "javascript:alert(1)"}, {"shopperResultUrl"}),
    ],
)  # fmt: skip
def test_every_wrong_parameter_is_named(api: Api, fields: dict[str, str | None], named: set[str]) -> None:
    answer = create(api, **fields)
    assert (answer.status, answer.code, set(answer.errors)) == (400, "200.300.404", named), answer
    assert not PaymentLink.objects.exists()


@pytest.mark.parametrize("category", ["MO", "TO"])
@pytest.mark.parametrize("path", ["/v1/paymentLinks", "/v1/checkouts, page"])
def test_who_pays_in_a_browser_makes_no_mail_or_telephone_order(api: Api, path: str, category: str) -> None:
    """It would be sent unauthenticated, without the shopper's bank being asked (EU 2015/2366, article 97)."""
    fields = {**LINK, "transactionCategory": "EC"}
    if path.endswith("page"):
        fields["paymentPage"] = "true"
    answer = api.post(path.partition(",")[0], fields | {"transactionCategory": category})
    assert (answer.status, answer.code) == (400, "200.300.404")
    assert [error["name"] for error in answer.body["result"]["parameterErrors"]] == ["transactionCategory"]


def test_a_form_in_the_merchants_own_page_may_be_a_call_centres(api: Api) -> None:
    assert api.post("/v1/checkouts", {**LINK, "transactionCategory": "MO"}).status == 200


def test_what_a_link_stores_is_bounded_since_every_opening_copies_it(api: Api) -> None:
    """Decision 0050: what a stranger's request may cost."""
    lines = {f"cart__items[{at}]__description": "a" * 2048 for at in range(20)}
    answer = create(api, **lines)
    assert answer.status == 400
    assert "32,768" in next(iter(answer.errors.values()))


def test_a_reusable_link_takes_no_order_number_where_each_is_taken_once(shop: Shop) -> None:
    strict = shop.api_of(shop.open_channel("strict", refuse_duplicates=True))
    assert set(create(strict, link__reusable="true").errors) == {"merchantTransactionId"}
    assert create(strict, link__reusable="true", merchantTransactionId=None).status == 200
    assert create(strict).status == 200


def test_an_open_amount_has_bounds_in_the_currencys_decimals(api: Api) -> None:
    assert open_amount(api).body["link"] == {
        "reusable": "false", "openAmount": "true", "minAmount": "0.01", "maxAmount": "500.00"
    }  # fmt: skip
    assert open_amount(api, currency="JPY").body["link"]["minAmount"] == "1.00"
    row = link_of(open_amount(api, link__minAmount="5.00"))
    typed = {
        "5": "5.00", "12,50": "12.50", "12.5": "12.50", " 1 2 ": "12.00", "٥٠": "50.00", "٥٫٥": "5.50",
        "500": "500.00", "500.01": None, "4.99": None, "1.250": None, "-5": None, "1e2": None, "": None, "five": None,
        "9" * 39: None,
    }  # fmt: skip
    found = {text: parse_open_amount(text, row) for text in typed}
    assert found == {text: Decimal(amount) if amount else None for text, amount in typed.items()}
    yen = link_of(open_amount(api, currency="JPY"))
    assert (parse_open_amount("12.50", yen), parse_open_amount("12", yen)) == (None, Decimal(12))


def test_one_key_makes_one_link_and_answers_the_same(api: Api) -> None:
    """D20."""
    sent = {**LINK, "link.reusable": "true"}
    first, second = (api.post("/v1/paymentLinks", sent, Idempotency_Key="link-1") for _ in range(2))
    assert (first.status, first.text) == (second.status, second.text)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert PaymentLink.objects.count() == 1
    other = api.post("/v1/paymentLinks", {**sent, "amount": "93.00"}, Idempotency_Key="link-1")
    assert (other.status, PaymentLink.objects.count()) == (400, 1)


def test_links_are_listed_page_by_page_with_what_was_paid(shop: Shop) -> None:
    made = [create(shop.api, link__description=f"Link {at}").id for at in range(5)]
    pay_link(made[0])
    page = shop.api.get("/v1/paymentLinks", {"limit": "2"})
    assert (page.code, page.body["pages"]) == ("000.000.100", 3)
    assert [link["id"] for link in page.body["paymentLinks"]] == [made[4], made[3]]
    last = shop.api.get("/v1/paymentLinks", {"limit": "2", "pageNo": "3"}).body["paymentLinks"]
    assert [(link["id"], link["paidCount"], link["paidAmount"], link["state"]) for link in last] == [
        (made[0], 1, "92.00", "PAID")
    ]
    for page in ("9", "501"):
        assert shop.api.get("/v1/paymentLinks", {"pageNo": page}).body["paymentLinks"] == []
    assert set(shop.api.get("/v1/paymentLinks", {"limit": "0", "pageNo": "x"}).errors) == {"limit", "pageNo"}
    elsewhere = shop.api_of(shop.open_channel())
    assert elsewhere.get("/v1/paymentLinks").body["paymentLinks"] == []


@pytest.mark.parametrize("closing", ["post", "delete"])
def test_a_closed_link_is_neither_opened_nor_paid(shop: Shop, closing: str) -> None:
    made = create(shop.api, link__reusable="true").id
    browser = open_link(made)
    path = f"/v1/paymentLinks/{made}"
    closed = shop.api.post(f"{path}/deactivate") if closing == "post" else shop.api.delete(path)
    assert (closed.status, closed.body["state"]) == (200, "DEACTIVATED")
    again = shop.api.post(f"{path}/deactivate")
    assert (again.status, again.body["state"]) == (200, "DEACTIVATED")
    assert Client().get(f"/pay/{made}").status_code == 410
    assert browser.pay().status == 404
    assert Client().get(f"/pay/{browser.checkout}").status_code == 410
    assert not Payment.objects.exists()


def test_a_stranger_neither_reads_nor_closes_a_link(shop: Shop, stranger: Shop) -> None:
    made = create(shop.api).id
    path = f"/v1/paymentLinks/{made}"
    other_channel = shop.api_of(shop.open_channel())
    for api in (stranger.api, other_channel):
        for answer in (api.get(path), api.delete(path), api.post(f"{path}/deactivate"), api.get(f"{path[:-1]}x")):
            assert (answer.status, answer.code) == (404, "200.300.404"), answer
    assert shop.api.get(path).body["state"] == "ACTIVE"


def test_scopes_and_limits_of_tokens_hold(shop: Shop) -> None:
    _token, reading = shop.issue(scopes=["read"])
    assert create(shop.api.with_token(reading)).status == 403
    made = create(shop.api).id
    assert shop.api.with_token(reading).get(f"/v1/paymentLinks/{made}").status == 200
    assert shop.api.with_token(reading).delete(f"/v1/paymentLinks/{made}").status == 403
    _token, small = shop.issue(limits=TokenLimits(amount=Decimal("50.00"), day_amount=None, operations=[]))
    limited = shop.api.with_token(small)
    assert create(limited).status == 403
    assert open_amount(limited).status == 403
    assert open_amount(limited, link__maxAmount="50.00").status == 200
    assert shop.api.with_token(None).get(f"/v1/paymentLinks/{made}").status == 401


def test_requests_are_logged_without_the_links_id(shop: Shop) -> None:
    """D3: who reads the log cannot pay."""
    made = create(shop.api).id
    shop.api.post(f"/v1/paymentLinks/{made}/deactivate")
    paths = list(RequestLog.objects.values_list("path", flat=True))
    assert len(paths) == 2
    assert not [path for path in paths if made in path]


# --- paying ---------------------------------------------------------------------------------------------------------


def test_the_payment_its_webhook_and_its_answer_name_the_link(shop: Shop) -> None:
    made = create(shop.api, **{"customParameters[order]": "7"}).id
    browser = pay_link(made)
    payment = Payment.objects.get()
    read = shop.api.get(f"/v1/checkouts/{browser.checkout}/payment").body
    assert read["customParameters"] == {"order": "7", "paymentLinkId": made}
    assert read["merchantTransactionId"] == "order-4711"
    assert payment.request["customParameters"]["paymentLinkId"] == made
    note = Notification.objects.filter(payment=payment).latest("id")
    payload = render_webhook_payload(note, payment)
    assert payload["customParameters"]["paymentLinkId"] == made
    assert payload["merchantTransactionId"] == "order-4711"


def test_a_declined_card_leaves_the_link_open(api: Api) -> None:
    made = create(api).id
    browser = open_link(made)
    assert browser.pay(card__number=DECLINED).status == 400
    assert api.get(f"/v1/paymentLinks/{made}").body["paidCount"] == 0
    assert browser.pay().body["state"] == "done"
    body = api.get(f"/v1/paymentLinks/{made}").body
    assert (body["paidCount"], body["paidAmount"], body["state"]) == (1, "92.00", "PAID")


def test_what_was_paid_is_what_was_approved(api: Api) -> None:
    """A part of what was asked for counts as that part, and what has no result or was declined as nothing."""
    made = create(api, link__reusable="true").id
    for status, approved in (
        (Status.APPROVED, "50.00"),
        (Status.APPROVED, "92.00"),
        (Status.DECLINED, "10.00"),
        (Status.PENDING, None),
        (Status.IN_DOUBT, None),
    ):
        payment = first_payment(pay_link(made))
        Payment.objects.filter(pk=payment).update(status=status, approved_amount=approved)
    one = api.get(f"/v1/paymentLinks/{made}").body
    (listed,) = api.get("/v1/paymentLinks").body["paymentLinks"]
    for shown in (one, listed):
        assert (shown["paidCount"], shown["paidAmount"]) == (2, "142.00")


def test_a_link_is_closed_once_and_keeps_when(shop: Shop) -> None:
    row = link_of(create(shop.api))
    assert deactivate_payment_link(row) is True
    closed = (row.deactivated_at, row.version)
    jump(60)
    assert deactivate_payment_link(link_of(shop.api.get(f"/v1/paymentLinks/{row.public_id}"))) is False
    row.refresh_from_db()
    assert (row.deactivated_at, row.version) == closed


@pytest.mark.parametrize(("minutes", "lasts"), [(20, 20), (30, 30), (40, 30)])
def test_a_checkout_does_not_outlive_its_link(shop: Shop, minutes: int, lasts: int) -> None:
    end = clock.real_now() + timedelta(minutes=minutes)
    made = create(shop.api, link__expiresAt=f"{end:%Y-%m-%d %H:%M:%S}").id
    open_link(made)
    row = Checkout.objects.get()
    assert abs(row.expires_at - row.created_at - timedelta(minutes=lasts)) < timedelta(seconds=30)


def test_a_link_ends_by_its_merchants_clock(shop: Shop, stranger: Shop) -> None:
    end = f"{clock.real_now() + timedelta(hours=1):%Y-%m-%d %H:%M:%S}"
    mine, theirs = (create(each.api, link__expiresAt=end).id for each in (shop, stranger))
    type(shop.merchant).objects.filter(pk=shop.merchant.pk).update(clock_offset=timedelta(hours=2))
    assert (open_status(mine), open_status(theirs)) == (410, 303)
    refused = create(shop.api, link__expiresAt=end)
    assert (refused.status, list(refused.errors)) == (400, ["link.expiresAt"])


def test_a_single_use_link_is_paid_once_and_the_second_browser_is_refused_before_money_moves(api: Api) -> None:
    made = create(api).id
    first, second = open_link(made), open_link(made)
    assert first.pay().body["state"] == "done"
    assert (second.pay().status, Payment.objects.count()) == (404, 1)
    assert Client().get(f"/pay/{second.checkout}").status_code == 410
    assert "already paid" in Client().get(f"/pay/{made}").content.decode()


def test_a_link_with_a_limit_is_paid_as_often_and_one_without_ever_again(api: Api) -> None:
    limited = create(api, link__reusable="true", link__maxPayments="2").id
    opened = [open_link(limited) for _ in range(3)]
    assert [browser.pay().status for browser in opened] == [200, 200, 404]
    assert api.get(f"/v1/paymentLinks/{limited}").body["paidCount"] == 2
    endless = create(api, link__reusable="true", amount="10.00").id
    for _ in range(3):
        pay_link(endless)
    body = api.get(f"/v1/paymentLinks/{endless}").body
    assert (body["paidCount"], body["paidAmount"], body["state"]) == (3, "30.00", "ACTIVE")


def test_a_payment_that_may_still_be_approved_takes_its_place(shop: Shop) -> None:
    """Of a link for two shoppers one is at the bank: the third waits, and nobody's payment is taken from them."""
    type(shop.channel).objects.filter(pk=shop.channel.pk).update(three_d_secure=True)
    twice = create(shop.api, link__reusable="true", link__maxPayments="2").id
    first, second, third = (open_link(twice) for _ in range(3))
    assert first.pay(**AT_BANK).body["state"] == "action"
    assert second.pay(**{**AT_BANK, "card__number": FRICTIONLESS}).body["state"] == "done"
    refused = third.pay(**{**AT_BANK, "card__number": FRICTIONLESS})
    assert (refused.code, refused.body["state"]) == ("800.120.402", "processing")
    assert Payment.objects.get(status=Status.PENDING).pk == first_payment(first)


def test_who_left_the_bank_pays_a_single_use_link_in_another_browser(shop: Shop) -> None:
    """As with another tab of one checkout: what waits for its shopper ends first."""
    type(shop.channel).objects.filter(pk=shop.channel.pk).update(three_d_secure=True)
    made = create(shop.api).id
    phone, desk = open_link(made), open_link(made)
    assert phone.pay(**AT_BANK).body["state"] == "action"
    assert desk.pay(**{**AT_BANK, "card__number": FRICTIONLESS}).body["state"] == "done"
    assert Payment.objects.filter(status=Status.APPROVED).count() == 1
    assert not Payment.objects.filter(status=Status.PENDING).exists()


def test_a_link_expires_by_the_merchants_clock_and_its_checkouts_with_it(shop: Shop) -> None:
    now = clock.merchant_now(shop.merchant)
    ends = now + timedelta(minutes=10)
    made = create(shop.api, link__expiresAt=f"{ends:%Y-%m-%d %H:%M:%S}").id
    browser = open_link(made)
    assert Checkout.objects.get().expires_at == ends.replace(microsecond=0)
    jump(600)
    assert browser.pay().status == 404
    assert Client().get(f"/pay/{made}").status_code == 410
    assert shop.api.get(f"/v1/paymentLinks/{made}").body["state"] == "EXPIRED"


def test_a_checkout_that_ended_unpaid_leads_back_to_its_link(shop: Shop) -> None:
    made = create(shop.api).id
    browser = open_link(made)
    jump(1800)
    page = Client().get(f"/pay/{browser.checkout}")
    assert (page.status_code, f'href="http://testserver/pay/{made}?' in page.content.decode()) == (410, True)
    assert pay_link(made).state().body["state"] == "done"


def test_a_link_of_a_switched_off_channel_is_unknown(shop: Shop) -> None:
    made = create(shop.api).id
    type(shop.channel).objects.filter(pk=shop.channel.pk).update(active=False)
    assert Client().get(f"/pay/{made}").status_code == 404


def test_no_link_is_deleted(api: Api) -> None:
    create(api)
    with pytest.raises(IntegrityError, match="never deleted"), transaction.atomic():
        PaymentLink.objects.all().delete()


# --- at once, on connections of their own ----------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("limit", "shoppers"), [(None, 6), (1, 6), (2, 6)])
def test_of_many_shoppers_at_once_no_more_pay_than_the_link_allows(
    committed: Shop, limit: int | None, shoppers: int
) -> None:
    more = {} if limit == 1 else {"link__reusable": "true"} | ({"link__maxPayments": str(limit)} if limit else {})
    made = create(committed.api, **more).id
    opened = [open_link(made) for _ in range(shoppers)]
    answers = at_once(*[browser.pay for browser in opened])
    paid = Payment.objects.filter(status=Status.APPROVED).count()
    assert {answer.status for answer in answers} <= {200, 400, 404}
    assert paid == sum(answer.status == 200 for answer in answers)
    assert 1 <= paid <= (limit or shoppers)
    for browser in opened:  # whoever lost a race against a payment in progress pays now, if a place is left
        browser.pay()
    body = committed.api.get(f"/v1/paymentLinks/{made}").body
    assert body["paidCount"] == Payment.objects.filter(status=Status.APPROVED).count() == (limit or shoppers)


@pytest.mark.django_db(transaction=True)
def test_closing_and_paying_at_once_agree(committed: Shop) -> None:
    for _ in range(3):
        made = create(committed.api).id
        browser = open_link(made)
        paid, _closed = at_once(browser.pay, partial(committed.api.delete, f"/v1/paymentLinks/{made}"))
        body = committed.api.get(f"/v1/paymentLinks/{made}").body
        assert (body["paidCount"], body["state"]) == ((1, "PAID") if paid.status == 200 else (0, "DEACTIVATED"))
        assert open_status(made) == 410


def test_the_table_of_bins_is_not_read_out_by_opening_a_link_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_admission, "MAX_CARD_BRAND_QUESTIONS", (2, 3600))
    link = create(api, link__reusable="true").id
    opened = [open_link(link).checkout for _ in range(4)]
    asked = [Client().get(f"/v1/checkouts/{one}/card-brands", {"card.bin": "420000"}).status_code for one in opened]
    assert (len(set(opened)), asked) == (4, [200, 200, 429, 429])
