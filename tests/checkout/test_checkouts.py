"""Checkouts over HTTP: made, changed, paid once, read, expired."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import override_settings

from checkout.models import Checkout, ResultCall
from gateway.models import Payment, RequestLog, Status
from tests.support.bin_files import write_bin_file
from tests.support.client import Api
from tests.support.clock import jump
from tests.support.database import places_of
from tests.support.fixtures import Shop
from tests.support.shopper import DECLINED, Browser, create, open_checkout, result_of

pytestmark = pytest.mark.django_db
PENDING = re.compile(r"^(000\.200)")


def test_a_checkout_is_created_with_an_unguessable_id_that_is_its_ndc(api: Api) -> None:
    """A1.3, A12.1, A27.8, D3, D14: 32-48 of letters, digits, dot, hyphen."""
    first, second = create(api), create(api)
    assert first.status == 200
    assert first.code == "000.200.100"
    assert "successfully created checkout" in first.description
    assert re.fullmatch("[0-9A-F]{32}-[0-9A-Za-z]{1,15}", first.id)
    assert 32 <= len(first.id) <= 48
    assert first.body["ndc"] == first.id
    assert first.id[:12] != second.id[:12]


def test_a_brand_that_nobody_knows_is_told_when_the_checkout_is_made(api: Api) -> None:
    """Not to the shopper, who could not pay."""
    answer = create(api, paymentBrand="VISAA")
    assert (answer.status, answer.code) == (400, "600.200.200")
    assert "VISA" in answer.errors["paymentBrand"]
    answer = create(api, **{"overridePaymentType[MASTERR]": "PA"})
    assert list(answer.errors) == ["overridePaymentType[MASTERR]"]
    assert not Checkout.objects.exists()


@pytest.mark.parametrize(
    "fields, fault",
    [
        ({"paymentType": "SD"}, "paymentType"),
        ({"paymentType": "3D"}, "paymentType"),
        ({"paymentType": "CD", "paymentBrand": "ONLINETRANSFER"}, "paymentType"),
        ({"overridePaymentType[VISA]": "SD"}, "overridePaymentType[VISA]"),
        ({"overridePaymentType[ONLINETRANSFER]": "CD"}, "overridePaymentType[ONLINETRANSFER]"),
    ],
)
def test_a_type_that_nobody_could_pay_by_is_told_when_the_checkout_is_made(
    api: Api, fields: dict[str, str], fault: str
) -> None:
    """A13.8: not to the shopper; and not either when the checkout is changed."""
    assert list(create(api, **fields).errors) == [fault]
    assert not Checkout.objects.exists()
    made = create(api)
    assert list(api.post(f"/v1/checkouts/{made.id}", fields).errors) == [fault]


def test_an_override_of_the_one_brand_is_the_type_that_counts(api: Api) -> None:
    """A13.8: paymentType need not go with a brand whose own type is given."""
    fields = {"paymentBrand": "ONLINETRANSFER", "overridePaymentType[ONLINETRANSFER]": "DB"}
    assert create(api, paymentType="CD", **fields).status == 200


@pytest.mark.parametrize(
    ("overrides", "kind"),
    [
        ({"overridePaymentType[MASTER]": "PA"}, "PA"),
        ({"overridePaymentType[MASTER]": "DB", "overridePaymentType[MASTERDEBIT]": "PA"}, "PA"),
        ({"overridePaymentType[VISA]": "PA"}, "DB"),
    ],
)
def test_the_override_of_a_scheme_counts_for_a_kind_of_its_cards_that_a_table_of_bins_tells(
    api: Api, tmp_path: Path, overrides: dict[str, str], kind: str
) -> None:
    with write_bin_file(tmp_path, "545454\t\t\t\t\t\t\tMASTERDEBIT"):
        browser = open_checkout(api, **overrides)
        browser.pay(paymentBrand=None, card__number="5454545454545454")
    paid = Payment.objects.get()
    assert (paid.payment_type, paid.brand) == (kind, "MASTERDEBIT")


def test_an_override_is_sent_when_a_checkout_is_created_and_not_later(api: Api, shop: Shop) -> None:
    """Part A, Basic payment: accepted only when creating a checkout. What was set then stays."""
    made = create(api, **{"overridePaymentType[MASTER]": "PA"})
    path, kept = f"/v1/checkouts/{made.id}", {"overridePaymentType[MASTER]": "PA"}
    for name in ("overridePaymentType[MASTER]", "overridePaymentType[VISA]"):
        refused = api.post(path, {name: "PA", "amount": "1.2"})
        assert (refused.status, set(refused.errors)) == (400, {name, "amount"})
        assert "is not an allowed parameter here" in refused.errors[name]
        assert "is not an allowed parameter here" in api.post(path, {name: "PA"}).errors[name]
    assert api.post(path, {"overridePaymentType[MASTER]": "", "amount": "80.00"}).code == "000.200.101"
    found = Checkout.objects.get().request
    assert (found["amount"], found | kept) == ("80.00", found)
    lenient = shop.api_of(shop.open_channel(parameters="lenient"))
    changed = lenient.post(f"/v1/checkouts/{create(lenient).id}", kept)
    assert (changed.status, changed.body["ignoredParameters"]) == (200, list(kept))


def test_a_checkout_takes_what_the_fast_checkout_sends(api: Api) -> None:
    """A9.7, A9.8: amount and currency, cart, customer, shipping and references are optional."""
    answer = create(
        api,
        merchantTransactionId="order-4711",
        merchantInvoiceId="invoice-4711",
        customer__ip="192.0.2.1",
        customer__email="jane@mail.example",
        shipping__city="Munich",
        **{"cart.items[0].name": "Mug", "cart.items[0].price": "12.00"},
    )
    assert answer.status == 200, answer


def test_a_payment_names_amount_currency_and_type_and_a_stored_card_does_not(api: Api) -> None:
    """D29."""
    answer = create(api, amount=None, currency=None, paymentType=None)
    assert answer.status == 400
    assert set(answer.errors) == {"amount", "currency", "paymentType"}
    stored = create(api, amount=None, currency=None, paymentType=None, createRegistration="true")
    assert stored.status == 200
    assert Checkout.objects.get().kind == Checkout.Kind.REGISTRATION


def test_a_card_number_has_no_place_in_a_checkout(api: Api) -> None:
    """Decisions, section 7: card data come from the form."""
    answer = create(api, card__number="4200000000000000")
    assert answer.status == 400
    assert "card.number" in answer.errors
    assert not Checkout.objects.exists()


def test_a_gift_card_may_be_bought_by_a_checkout(api: Api) -> None:
    """Part A, Endpoints: a checkout's body is like a payment request, but for numbers (decision 0020)."""
    greeting = {"holder": "Tom Jones", "message": "Many happy returns", "type": "BIRTHDAY"}
    browser = open_checkout(api, **{f"giftCard.{name}": value for name, value in greeting.items()})
    assert browser.pay().status == 200
    assert result_of(api, browser).body["giftCard"] == greeting
    for name in ("giftCard.number", "giftCard.pin"):
        assert list(create(api, **{name: "4711"}).errors) == [name]


def test_integrity_brings_the_hash_of_the_script(api: Api) -> None:
    """A10.6."""
    told = api.http.get("/v1/fastcheckout/integrity").json()
    assert create(api, integrity="true").body["integrity"] == told["integrity"]
    assert "integrity" not in create(api).body
    assert "integrity" not in create(api, integrity="false").body
    assert api.pay(integrity="true").body["integrity"] == told["integrity"]
    assert "integrity" not in api.pay(integrity="false").body


def test_before_the_payment_the_result_is_pending_and_has_no_id(api: Api) -> None:
    """A27.6; D4."""
    answer = result_of(api, open_checkout(api))
    assert (answer.status, answer.code) == (200, "000.200.000")
    assert "transaction pending" in answer.description
    assert "id" not in answer.body


def test_a_paid_checkout_answers_the_payment_object(api: Api) -> None:
    """A27.5, A27.6; D4; A6: the shopper comes back with id and resourcePath."""
    browser = open_checkout(api, merchantTransactionId="order-4711", **{"customParameters[orderRef]": "7"})
    paid = browser.pay(**{"customParameters[SHOPPER_size]": "M"})
    assert paid.status == 200, paid
    assert paid.body["state"] == "done"
    assert paid.body["returnTo"] == (
        f"https://shop.example/result?order=7&id={browser.checkout}"
        f"&resourcePath=%2Fv1%2Fcheckouts%2F{browser.checkout}%2Fpayment"
    )
    answer = result_of(api, browser)
    assert (answer.status, answer.code) == (200, "000.100.110")
    assert answer.body["amount"] == "92.00"
    assert answer.body["merchantTransactionId"] == "order-4711"
    assert answer.body["customParameters"] == {"orderRef": "7", "SHOPPER_size": "M"}
    assert answer.body["card"]["last4Digits"] == "0000"
    assert api.read(answer.id).code == "000.100.110"


def test_a_browser_learns_the_state_and_no_payment(api: Api) -> None:
    """Decisions, section 7."""
    browser = open_checkout(api)
    answer = browser.pay()
    assert set(answer.body) == {
        "result", "state", "attempts", "redirect", "returnTo", "buildNumber", "timestamp", "ndc",
    }  # fmt: skip
    assert Payment.objects.get().id.hex not in answer.text
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Cache-Control"] == "no-store"
    state = browser.state()
    assert state.body["state"] == "done"
    assert state.body["returnTo"] == answer.body["returnTo"]
    assert Payment.objects.get().id.hex not in state.text


def test_a_declined_card_frees_the_checkout_for_another(api: Api) -> None:
    """D4, D12: 400 with the payment object; then a second try."""
    browser = open_checkout(api)
    declined = browser.pay(card__number=DECLINED)
    assert (declined.status, declined.code, declined.body["state"]) == (400, "800.100.155", "open")
    told = result_of(api, browser)
    assert (told.status, told.code) == (400, "800.100.155")
    assert told.body["id"]
    assert browser.state().body["state"] == "open"
    assert browser.pay().status == 200
    assert result_of(api, browser).code == "000.100.110"
    assert [row.status for row in Payment.objects.order_by("id")] == [Status.DECLINED, Status.APPROVED]


def test_a_paid_checkout_is_not_paid_again(api: Api) -> None:
    """Part A, What the service does, 8."""
    browser = open_checkout(api)
    first = browser.pay()
    again = browser.pay(card__number="5454545454545454", paymentBrand="MASTER")
    assert again.status == 200
    assert again.body["returnTo"] == first.body["returnTo"]
    assert Payment.objects.count() == 1


def test_a_second_try_keeps_its_number_where_numbers_are_unique(committed: Shop) -> None:
    """D20: a declined attempt of the same checkout is no first payment."""
    api = committed.api_of(committed.open_channel(refuse_duplicates=True))
    browser = open_checkout(api, merchantTransactionId="order-4711")
    assert browser.pay(card__number=DECLINED).status == 400
    assert browser.pay().status == 200
    other = open_checkout(api, merchantTransactionId="order-4711")
    assert other.pay().code == "800.110.100"


@override_settings(GATEWAY_CARD_TESTING_GUARD=False)
def test_after_twenty_declines_a_checkout_takes_no_more(api: Api) -> None:
    """Card testing ends somewhere."""
    browser = open_checkout(api)
    for _ in range(20):
        assert browser.pay(card__number=DECLINED).code == "800.100.155"
    refused = browser.pay()
    assert (refused.status, refused.code) == (400, "700.500.001")


def test_every_answer_to_a_shopper_has_the_attempts_that_were_counted(api: Api) -> None:
    """One refused by parameter is none. By this number a page tells a press that was lost from one that arrived."""
    browser = open_checkout(api)
    answers = [browser.pay(**changes) for changes in ({"card__expiryMonth": "13"}, {"card__number": DECLINED}, {}, {})]
    assert [(one.status, one.body["attempts"]) for one in answers] == [(400, 0), (400, 1), (200, 2), (200, 2)]
    assert browser.state().body["attempts"] == 2
    assert "attempts" not in Browser("0" * 32 + "-node01").pay().body


def test_the_merchant_may_submit_with_its_token(api: Api) -> None:
    """A27.5; Part A, Endpoints: POST /checkouts/{id}/payment; the answer is the payment object."""
    browser = open_checkout(api)
    fields = {
        "card.number": "4200000000000000",
        "card.expiryMonth": "05",
        "card.expiryYear": "2034",
        "card.cvv": "123",
        "customParameters[orderRef]": "7",
    }
    answer = api.post(f"/v1/checkouts/{browser.checkout}/payment", fields)
    assert (answer.status, answer.code) == (200, "000.100.110")
    assert answer.body["paymentBrand"] == "VISA"
    assert "Access-Control-Allow-Origin" not in answer.headers


# --- update --------------------------------------------------------------------------------------------------------


def test_an_update_replaces_what_is_sent_and_keeps_the_rest(api: Api) -> None:
    """D3."""
    browser = open_checkout(api, merchantTransactionId="order-4711")
    answer = api.post(f"/v1/checkouts/{browser.checkout}", {"amount": "50.00"})
    assert (answer.status, answer.code, answer.id) == (200, "000.200.101", browser.checkout)
    assert answer.body["ndc"] == browser.checkout
    assert browser.config().body["checkout"]["amount"] == "50.00"
    browser.pay()
    told = result_of(api, browser).body
    assert (told["amount"], told["merchantTransactionId"]) == ("50.00", "order-4711")


def test_an_update_is_checked_like_a_creation(api: Api) -> None:
    browser = open_checkout(api)
    answer = api.post(f"/v1/checkouts/{browser.checkout}", {"amount": "50.0", "paymentType": "CP"})
    assert answer.status == 400
    assert {"amount", "paymentType"} <= set(answer.errors)


def test_a_paid_checkout_is_not_changed(api: Api) -> None:
    browser = open_checkout(api)
    browser.pay()
    answer = api.post(f"/v1/checkouts/{browser.checkout}", {"amount": "50.00"})
    assert answer.status == 400
    assert "paid" in answer.description


# --- what a browser may send ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("amount", "1.00"),
        ("currency", "USD"),
        ("paymentType", "PA"),
        ("testMode", "EXTERNAL"),
        ("entityId", "8a8294174b7ecb28014b9699220015ca"),
        ("threeDSecure.disable", "true"),
        ("threeDSecure.eci", "05"),
        ("customParameters[orderRef]", "8"),
        ("customer.email", "eve@mail.example"),
        ("overridePaymentType[VISA]", "PA"),
        ("registrations[0].id", "0" * 32),
        ("registrationId", "0" * 32),
        ("createRegistration", "true"),
        ("merchantTransactionId", "another-one"),
        ("nonsense", "1"),
        ("standingInstruction.mode", "INITIAL"),
        ("card.numberType", "DPAN"),
        ("wallet1.source", "web"),
    ],
)
def test_what_a_page_may_not_send_is_refused_by_name(api: Api, name: str, value: str) -> None:
    """Decisions, section 7; Part A, Authentication, 5."""
    browser = open_checkout(api)
    answer = browser.pay(**{name: value})
    assert answer.status == 400
    assert answer.code == "200.300.404"
    assert name in answer.errors
    assert answer.body["state"] == "open"
    assert not Payment.objects.exists()


def test_every_fault_of_a_form_is_told_at_once(api: Api) -> None:
    """D10."""
    answer = open_checkout(api).pay(amount="1.00", card__expiryMonth="13", card__number=None)
    assert set(answer.errors) >= {"amount", "card.expiryMonth", "card.number"}


def test_the_merchants_word_is_not_changed_by_a_page(api: Api) -> None:
    browser = open_checkout(api, billing__city="Munich", **{"customParameters[SHOPPER_size]": "M"}, paymentBrand="VISA")
    answer = browser.pay(billing__city="Berlin", **{"customParameters[SHOPPER_size]": "L"}, paymentBrand="MASTER")
    assert set(answer.errors) == {"billing.city", "customParameters[SHOPPER_size]", "paymentBrand"}
    # What the page repeats changes nothing.
    browser.pay(**{"customParameters[SHOPPER_size]": "M"}, paymentBrand="VISA")
    assert result_of(api, browser).body["customParameters"] == {"SHOPPER_size": "M"}


def test_the_merchants_result_address_wins_over_the_pages(api: Api) -> None:
    """Decisions, section 7."""
    answer = open_checkout(api).pay(shopperResultUrl="https://page.example/end")
    assert answer.body["returnTo"].startswith("https://shop.example/result")
    of_page = open_checkout(api, shopperResultUrl=None).pay(shopperResultUrl="https://page.example/end")
    assert of_page.body["returnTo"].startswith("https://page.example/end?id=")


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "/result"])
def test_an_address_that_is_none_is_refused(api: Api, url: str) -> None:
    """Decisions, section 7."""
    assert "shopperResultUrl" in create(api, shopperResultUrl=url).errors
    assert "shopperResultUrl" in open_checkout(api, shopperResultUrl=None).pay(shopperResultUrl=url).errors


@pytest.mark.parametrize(
    "url",
    [
        "jar:https://a.example/x!/y",
        "intent://x#Intent;S.browser_fallback_url=javascript:alert(1);end",
        "view-source:https://a.example/",
        "ms-msdt:/id%20PCWDiagnostic",
        "filesystem:https://a.example/temporary/x",
        "x-javascript:alert(1)",
        "shopapp://paid",
        "com..example://x",
        ".com://x",
    ],
)
def test_only_web_addresses_and_apps_named_like_domains_are_led_to(api: Api, url: str) -> None:
    """What a browser or a phone would open is on a list of what is allowed."""
    for name in ("shopperResultUrl", "notificationUrl"):
        assert name in create(api, **{name: url}).errors
    assert "shopperResultUrl" in open_checkout(api, shopperResultUrl=None).pay(shopperResultUrl=url).errors


@pytest.mark.parametrize("url", ["com.example.app://paid", "COM.Example.App://paid?a=b", "com.example.app:/paid"])
def test_an_app_is_led_back_to_by_its_own_scheme(api: Api, url: str) -> None:
    answer = open_checkout(api, shopperResultUrl=url).pay()
    assert answer.body["returnTo"].lower().startswith(url.lower().partition("?")[0])


def test_a_shopper_uses_up_nothing_of_the_merchants_limits(shop: Shop) -> None:
    """Whoever has a checkout's id counts for that checkout and their own address only."""
    api = shop.api_of(shop.open_channel(limits={"*": {"limit": 3, "window_s": 1_000_000}}))
    browser, other = open_checkout(api), open_checkout(api)
    assert [browser.pay(card__number=DECLINED).status for _ in range(5)].count(429) == 2
    assert [browser.state().status for _ in range(4)] == [200, 200, 200, 429]
    assert other.pay().status == 200
    assert [other.config().status for _ in range(4)] == [200, 200, 200, 429]
    elsewhere = browser.http.get(f"/v1/checkouts/{browser.checkout}/state", REMOTE_ADDR="198.51.100.7")
    assert elsewhere.status_code == 200
    assert [api.pay().status for _ in range(4)] == [200, 200, 200, 429]


def test_the_type_of_one_brand_is_overridden(api: Api) -> None:
    """A13.8: of the brand that is sent, and of the one that the number tells."""
    told = open_checkout(api, **{"overridePaymentType[MASTER]": "PA"})
    told.pay(paymentBrand=None, card__number="5454545454545454")
    assert result_of(api, told).body["paymentType"] == "PA"
    browser = open_checkout(api, **{"overridePaymentType[MASTER]": "PA"})
    browser.pay(paymentBrand="MASTER", card__number="5454545454545454")
    assert result_of(api, browser).body["paymentType"] == "PA"
    other = open_checkout(api, **{"overridePaymentType[MASTER]": "PA"})
    other.pay(paymentBrand=None)
    assert result_of(api, other).body["paymentType"] == "DB"
    assert "overridePaymentType" not in result_of(api, other).body
    refused = create(api, **{"overridePaymentType[MASTER]": "CP"})
    assert "overridePaymentType[MASTER]" in refused.errors


def test_a_card_that_fails_the_luhn_check_is_a_declined_attempt(api: Api) -> None:
    """D10."""
    browser = open_checkout(api)
    assert browser.pay(card__number="4444444444444444").code == "100.100.101"
    assert browser.pay().status == 200


# --- life ----------------------------------------------------------------------------------------------------------


def test_a_checkout_ends_after_exactly_thirty_minutes(shop: Shop) -> None:
    """A31.1, A8.3, A26.1: by the merchant's clock, paid or not."""
    unpaid, paid = open_checkout(shop.api), open_checkout(shop.api)
    paid.pay()
    row = Checkout.objects.get(pk=unpaid.checkout[:32].lower())
    assert (row.expires_at - row.created_at).total_seconds() == 1800
    jump(1798)
    assert unpaid.state().body["state"] == "open"
    assert result_of(shop.api, paid).status == 200
    jump(2)
    for browser in (unpaid, paid):
        answer = result_of(shop.api, browser)
        assert (answer.status, answer.code) == (404, "200.300.404")
        assert "No payment session found" in answer.description
        assert browser.config().status == 404
        assert "No payment session found" in browser.config().description
    # Who was charged is not told that the time ran out.
    assert [browser.state().body["state"] for browser in (unpaid, paid)] == ["expired", "done"]
    refused = unpaid.pay()
    assert (refused.status, refused.body["state"]) == (404, "expired")
    assert "No payment session found" in refused.description
    assert Payment.objects.count() == 1
    assert shop.api.read(Payment.objects.get().id.hex).status == 200


@pytest.mark.parametrize("ident", ["0" * 32 + "-node01", "nonsense", "A" * 32, "0" * 32 + "-" + "x" * 16])
def test_an_unknown_id_names_nothing(api: Api, ident: str) -> None:
    """A27.6; D4."""
    browser = Browser(ident)
    for answer in (browser.pay(), browser.state(), browser.config(), result_of(api, browser)):
        assert answer.status == 404
        assert "No payment session found" in answer.description


def test_another_merchant_reads_and_changes_nothing(shop: Shop, stranger: Shop) -> None:
    """R11."""
    browser = open_checkout(shop.api)
    browser.pay()
    assert result_of(stranger.api, browser).status == 404
    assert stranger.api.post(f"/v1/checkouts/{browser.checkout}", {"amount": "1.00"}).status == 404
    assert stranger.api.post(f"/v1/checkouts/{browser.checkout}/payment", {}).status == 404
    other = shop.api_of(shop.open_channel())
    assert result_of(other, browser).status == 404


# --- the call the gateway owes -------------------------------------------------------------------------------------


def test_a_started_payment_is_due_for_a_call_at_29_minutes(shop: Shop) -> None:
    """A29.2; decisions, section 6."""
    browser = open_checkout(shop.api)
    assert not ResultCall.objects.exists()
    browser.pay()
    call = ResultCall.objects.select_related("checkout").get()
    assert (call.due_at - call.checkout.created_at).total_seconds() == 29 * 60
    assert call.payment_id == Payment.objects.get().pk


def test_a_payment_after_29_minutes_is_due_ten_seconds_later(shop: Shop) -> None:
    browser = open_checkout(shop.api)
    shop.api.post("/v1/test/clock", {"advance": str(29 * 60 + 20)})
    browser.pay()
    call = ResultCall.objects.get()
    assert (call.due_at - Payment.objects.get().created_at).total_seconds() == 10


def test_a_fetched_result_needs_no_call(api: Api) -> None:
    """A29.2: none if the merchant fetched before; a later attempt owes one again, and one only."""
    browser = open_checkout(api)
    result_of(api, browser)
    browser.pay(card__number=DECLINED)
    assert ResultCall.objects.count() == 1
    head = api.call("HEAD", f"/v1/checkouts/{browser.checkout}/payment", {"entityId": str(api.entity)})
    assert (head.status, head.http.content) == (400, b"")
    assert ResultCall.objects.count() == 1, "whoever sends HEAD has not read it"
    result_of(api, browser)
    assert not ResultCall.objects.exists()
    assert Checkout.objects.get().fetched_at is not None
    browser.pay()
    assert ResultCall.objects.count() == 1
    assert Checkout.objects.get().fetched_at is None


def test_an_apps_address_is_never_called(api: Api) -> None:
    """Decisions, section 7: app schemes are only redirected to."""
    browser = open_checkout(api, shopperResultUrl="com.shop.app://result")
    assert browser.pay().body["returnTo"].startswith("com.shop.app://result?id=")
    assert not ResultCall.objects.exists()


# --- what is kept --------------------------------------------------------------------------------------------------


def test_neither_number_nor_security_code_nor_the_checkouts_id_is_in_a_log(api: Api) -> None:
    """D3; goals R7."""
    document = {"customer.identificationDocId": "C01X00T471111", "customer.identificationDocType": "IDCARD"}
    browser = open_checkout(api, **document)
    browser.pay(amount="1.00")
    browser.pay()
    result_of(api, browser)
    assert not places_of("4200000000000000")
    assert not places_of("C01X00T471111")
    assert Checkout.objects.get().request_sealed is not None
    paths = list(RequestLog.objects.values_list("path", flat=True))
    assert len(paths) == 3
    assert not [path for path in paths if browser.checkout[:32] in path]


def test_an_idempotency_key_makes_one_checkout(api: Api) -> None:
    """D20."""
    fields = {"amount": "92.00", "currency": "EUR", "paymentType": "DB"}
    first, second = (api.post("/v1/checkouts", fields, Idempotency_Key="order-4711") for _ in range(2))
    assert first.id == second.id
    assert second.headers["Idempotent-Replayed"] == "true"
    assert Checkout.objects.count() == 1


def test_an_idempotency_key_updates_once(api: Api) -> None:
    """D20: the stored answer comes again, another body is refused, and a later update is not undone."""
    browser = open_checkout(api)
    path = f"/v1/checkouts/{browser.checkout}"
    first = api.post(path, {"amount": "93.00"}, Idempotency_Key="u-1")
    assert first.code == "000.200.101"
    api.post(path, {"amount": "94.00"})
    again = api.post(path, {"amount": "93.00"}, Idempotency_Key="u-1")
    assert (again.body, again.headers["Idempotent-Replayed"]) == (first.body, "true")
    assert browser.config().body["checkout"]["amount"] == "94.00"
    assert api.post(path, {"amount": "95.00"}, Idempotency_Key="u-1").status == 400
    assert browser.config().body["checkout"]["amount"] == "94.00"
    faulty = api.post(path, {"amount": "1.5"}, Idempotency_Key="u-2")
    assert (faulty.status, api.post(path, {"amount": "96.00"}, Idempotency_Key="u-2").code) == (400, "000.200.101")


def test_public_routes_take_no_other_method_and_say_so(api: Api) -> None:
    browser = open_checkout(api)
    for path in ("payment", "state", "config"):
        answer = browser.http.put(f"/v1/checkouts/{browser.checkout}/{path}")
        assert answer.status_code == 405, path
