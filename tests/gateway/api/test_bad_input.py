"""Bad input gets the right status, the envelope and a text that helps; nothing is stored that should not be.

Source: Part A, Errors; rulings D10, D16, D23, D26, D41.
"""

from __future__ import annotations

import pytest

from gateway.models import AcquirerExchange, Notification, Payment, PaymentEvent, RequestLog
from tests.support.client import FORM, Answer, Api, form, payment
from tests.support.database import places_of
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

MIB = 1024 * 1024
PAYMENTS = "/v1/payments"


def refused(answer: Answer, *names: str, status: int = 400, code: str = "200.300.404") -> Answer:
    """The answer is an envelope with this status and code that names ``names``, and no payment came of it."""
    assert (answer.status, answer.code) == (status, code), answer
    assert set(names) <= set(answer.errors), answer
    if code == "200.300.404" and names:
        assert "invalid or missing parameter" in answer.description
    assert "id" not in answer.body
    assert Payment.objects.count() == 0
    assert PaymentEvent.objects.count() == 0
    assert Notification.objects.count() == 0
    return answer


# --- bodies that are no form ---------------------------------------------------------------------------------------


def test_an_empty_body_is_told_every_parameter_it_lacks(api: Api) -> None:
    """Errors; D10."""
    refused(api.send(PAYMENTS, b""), "entityId", "amount", "currency", "paymentType")


def test_a_post_with_its_parameters_in_the_address_is_told_where_they_go(api: Api) -> None:
    """Part A, Authentication, 3."""
    sent = form([("entityId", api.entity or ""), *payment().items()]).decode()
    assert "in its body, not in its address" in refused(api.send(f"{PAYMENTS}?{sent}", b"")).description
    paid = api.send(f"{PAYMENTS}?entityId={api.entity}", sent.encode())
    assert paid.status == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_another_request_with_its_parameters_in_the_body_is_told_where_they_go(api: Api, method: str) -> None:
    path = f"/v1/registrations/{'0' * 32}"
    answer = refused(api.send(path, f"entityId={api.entity}".encode(), method=method))
    assert f"send a {method}'s parameters in its address, not in its body: ?entityId=…" in answer.description


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_end_of_a_line_after_the_form_is_no_part_of_it(api: Api, end: bytes) -> None:
    """A form that was kept in a file, and sent as the file is."""
    body = form([("entityId", api.entity or ""), *payment().items()])
    assert api.send(PAYMENTS, body + end).status == 200
    # Within the form it stays what it is.
    answer = api.send(PAYMENTS, body.replace(b"amount=92.00", b"amount=92.00" + end))
    assert (answer.status, set(answer.errors)) == (400, {"amount"})


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/json; charset=utf-8", FORM, "text/plain", ""]
)
def test_a_json_body_is_told_to_send_a_form(api: Api, content_type: str) -> None:
    """Part A, What the service does, 3."""
    body = b'{"entityId":"%s","amount":"92.00"}' % (api.entity or "").encode()
    answer = api.send(PAYMENTS, body, content_type=content_type)
    if content_type != FORM:
        assert "application/x-www-form-urlencoded" in refused(answer).description
    else:
        refused(answer, "entityId", "amount", "currency", "paymentType")


@pytest.mark.parametrize(
    "content_type", ["multipart/form-data; boundary=x", "application/xml", "text/html", "nonsense", "x" * 300]
)
def test_another_content_type_is_told_which_is_taken(api: Api, content_type: str) -> None:
    """Part A, What the service does, 3."""
    answer = refused(api.send(PAYMENTS, b"--x\r\n", content_type=content_type))
    assert "application/x-www-form-urlencoded" in answer.description


@pytest.mark.parametrize(
    "content_type", [FORM, "application/x-www-form-urlencoded", "APPLICATION/X-WWW-FORM-URLENCODED; charset=utf-8", ""]
)
def test_the_charset_is_recommended_and_not_required(api: Api, content_type: str) -> None:
    """A3.2."""
    body = form([("entityId", api.entity or ""), *payment().items()])
    assert api.send(PAYMENTS, body, content_type=content_type).status == 200


def test_a_body_of_40_mib_is_refused(api: Api) -> None:
    """D41."""
    answer = refused(api.send(PAYMENTS, b"entityId=" + b"a" * (40 * MIB)))
    assert "4,194,304 bytes" in answer.description


def test_a_large_body_of_a_stranger_is_refused_for_its_token(api: Api) -> None:
    """D41: the token is checked before the body is read."""
    assert api.with_token("x").send(PAYMENTS, b"a=" + b"a" * (40 * MIB)).status == 403
    assert api.with_token(None).send(PAYMENTS, b"a=" + b"a" * (40 * MIB)).status == 401


def test_more_than_fifty_thousand_fields_are_refused(api: Api) -> None:
    """D41."""
    assert "50,000" in refused(api.send(PAYMENTS, b"&".join([b"a=1"] * 50_001))).description


@pytest.mark.parametrize("value", [b"\xff\xfe", b"%FF", b"%C3%28", b"\xc3", b"%ED%A0%80"])
def test_bytes_that_are_no_utf_8_are_refused_and_the_parameter_is_named(api: Api, value: bytes) -> None:
    """A3.1."""
    answer = api.send(PAYMENTS, b"entityId=" + (api.entity or "").encode() + b"&customer.givenName=" + value)
    refused(answer, "customer.givenName")


@pytest.mark.parametrize("length", ["-1", "abc", "", "99999999999999999999"])
def test_a_wrong_content_length_is_no_fault_of_ours(api: Api, length: str) -> None:
    """Errors: never a 5xx."""
    answer = Answer(
        api.http.generic(
            "POST", PAYMENTS, b"amount=1", FORM, headers={"Authorization": f"Bearer {api.token}"}, CONTENT_LENGTH=length
        )
    )
    assert 400 <= answer.status < 500, answer
    assert answer.body["result"]["code"]


# --- characters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["\0", "a\0b", "a\r\nb", "a\nb", "a\tb", "\x1b[31m", "a\x7fb", "a\u2028b", "a\u202eb", "\x85"]
)
@pytest.mark.parametrize("name", ["descriptor", "customer.givenName", "customParameters[orderRef]", "merchantMemo"])
def test_control_characters_are_refused_everywhere(api: Api, name: str, text: str) -> None:
    """D22."""
    refused(api.pay(**{name: f"Example {text} text"}), name)


@pytest.mark.parametrize("name", ["\0", "amount\0", "customParameters[a\0b]", "card.\0number", "a\r\nSet-Cookie: x=1"])
def test_control_characters_in_names_are_no_fault_of_ours(api: Api, name: str) -> None:
    """Errors: never a 5xx, and no header is injected."""
    answer = api.post(PAYMENTS, [*payment().items(), (name, "x\r\nSet-Cookie: y=1")])
    assert answer.status in (200, 400), answer
    assert "Set-Cookie" not in answer.headers
    assert "\0" not in answer.text


@pytest.mark.parametrize(
    "tail",
    ["?a=%00", "?%00=1", "?entityId=%FF", "?entityId=a&entityId=b", "?" + "a=1&" * 3000, "?[[[]]]=x", "?a=%0d%0aX:1"],
)
def test_nonsense_in_a_query_is_answered_in_the_envelope(api: Api, tail: str) -> None:
    """Errors."""
    answer = api.call("GET", f"/v1/payments/{'0' * 32}{tail}")
    assert answer.status == 400, answer
    assert answer.code == "200.300.404"


@pytest.mark.parametrize(
    "target",
    ["x", "0" * 31, "0" * 33, "A" * 32, "%00", "..", "%0d%0aX", "a b", "٣" * 32, "'; DROP TABLE--", "-" * 5000],
)
def test_nonsense_in_a_path_names_no_payment(api: Api, target: str) -> None:
    """D11."""
    assert api.read(target).status == 404
    assert api.follow(target, "RF", "1.00").status == 404


# --- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, value", [("amount", "92.00"), ("card.number", "4200000000000000"), ("entityId", "x")])
def test_a_repeated_name_is_an_error(api: Api, name: str, value: str) -> None:
    """D16."""
    pairs = [("entityId", api.entity or ""), *payment().items(), (name, value)]
    refused(api.post(PAYMENTS, pairs), name)


def test_a_body_of_the_same_name_a_thousand_times_is_one_error(api: Api) -> None:
    """D16."""
    answer = refused(api.post(PAYMENTS, [*payment().items(), *[("descriptor", "x")] * 1000]))
    assert list(answer.errors) == ["descriptor"]


@pytest.mark.parametrize(
    "name",
    [
        "cart.items[].name",
        "cart.items[-1].name",
        "cart.items[x].name",
        "cart.items[0",
        "cart.items0].name",
        "cart[items]",
        "card..number",
        "card.",
        "card[number]",
        "customParameters[]",
        "customParameters[[a]]",
        "threeDSecure.v2.nonsense.requestorId",
        "airline.passengers[0].legs[].departureAirport",
    ],
)
def test_bracket_and_dot_nonsense_is_named(api: Api, name: str) -> None:
    """D16."""
    refused(api.post(PAYMENTS, [*payment().items(), (name, "x")]), name)


def test_a_spelling_mistake_is_told_the_name_that_was_meant(api: Api) -> None:
    answer = refused(api.pay(paymentBrand=None, paymentBrnad="VISA", amount="92.1"), "paymentBrnad", "amount")
    assert answer.errors["paymentBrnad"] == "is not an allowed parameter - did you mean paymentBrand?"
    assert answer.errors["amount"].startswith("must have exactly two decimals, e.g. 92.10")
    told = {one["name"]: one["link"] for one in answer.body["result"]["parameterErrors"]}
    assert told["paymentBrnad"].endswith("/docs/reference/payment#paymentBrand")


def test_an_unknown_name_is_ignored_and_reported(api: Api) -> None:
    """D16."""
    answer = api.pay(ourOwnTracking="7")
    assert answer.status == 200
    assert answer.body["ignoredParameters"] == ["ourOwnTracking"]
    assert "ourOwnTracking" not in api.read(answer.id).body


def test_a_strict_channel_refuses_and_a_lenient_one_ignores(shop: Shop) -> None:
    """D16."""
    strict = shop.api_of(shop.open_channel(parameters="strict"))
    lenient = shop.api_of(shop.open_channel(parameters="lenient"))
    refused(strict.pay(ourOwnTracking="7"), "ourOwnTracking")
    assert lenient.pay(ourOwnTracking="7", amonut="1").status == 200


@pytest.mark.parametrize("brand", ["PAYPAL", "KLARNA_INVOICE", "VISAA"])
@pytest.mark.parametrize("path", [PAYMENTS, "/v1/registrations", "/v1/checkouts"])
def test_an_unknown_brand_is_named_whatever_means_it_would_need(api: Api, brand: str, path: str) -> None:
    """D30."""
    money = {"amount": "92.00", "currency": "EUR", "paymentType": "DB"}
    answer = api.post(path, {"paymentBrand": brand, **({} if "registrations" in path else money)})
    assert (answer.status, list(answer.errors)) == (400, ["paymentBrand"]), answer
    assert "is not a brand of this gateway" in answer.errors["paymentBrand"]


def test_a_type_that_begins_nothing_is_told_all_that_do(api: Api) -> None:
    """Decisions, section 4: RG begins a chain, where no stored means is paid with."""
    assert api.pay(paymentType="SD").errors["paymentType"] == "is not offered here; CD, DB, PA, RG, RI are"
    stored = api.pay(createRegistration="true").body["registrationId"]
    money = {"amount": "92.00", "currency": "EUR"}
    clicked = api.post(f"/v1/registrations/{stored}/payments", money | {"paymentType": "SD"})
    assert clicked.errors["paymentType"] == "is not offered here; CD, DB, PA, RI are"
    assert api.pay(paymentType="RG").status == 200


# --- amounts and currencies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "amount",
    [
        "٩٢",
        "92.٠٠",
        "1e3",
        "NaN",
        "Infinity",
        "-1",
        "-0.01",
        "+92.00",
        "92.1",
        "92.123",
        "92,00",
        "0x5C",
        " 92.00",
        "92.00 ",
        "1_000",
        "12345678901",
        "",
        "92.",
        ".92",
        "९२",
        "1'000",
        "ten",
        "92.00.00",
    ],
)
def test_an_amount_of_the_wrong_form_is_named(api: Api, amount: str) -> None:
    """D26."""
    refused(api.pay(amount=amount), "amount")


@pytest.mark.parametrize("currency", ["eur", "Eur", "XXQ", "E", "EURO", "978", "€", ""])
def test_a_currency_that_is_none_is_named(api: Api, currency: str) -> None:
    """A13.4."""
    refused(api.pay(currency=currency), "currency")


def test_a_yen_amount_is_whole(api: Api) -> None:
    """D26."""
    assert "amount" in api.pay(amount="92.50", currency="JPY").errors
    assert Payment.objects.count() == 0 or api.pay(amount="92.50", currency="JPY").status == 400
    assert api.pay(amount="92.00", currency="JPY").status == 200
    assert api.pay(amount="92", currency="JPY").status == 200


@pytest.mark.parametrize("number", ["40000002", "4000000002", "40000000006"])
def test_a_number_shorter_than_any_card_is_no_brands_and_none_of_it_is_shown(api: Api, number: str) -> None:
    """Part A, Card account: 8 digits and more have the format. D30: no brand is detected; D17: a number never shows."""
    assert api.pay(card__number=number, paymentBrand=None).errors.keys() == {"paymentBrand"}
    assert not Payment.objects.exists()
    made = api.pay(card__number=number)
    assert (made.status, made.code) == (400, "100.100.700")
    for answer in (made, api.read(made.id)):
        assert "card" not in answer.body


@pytest.mark.parametrize(
    "first, kind", [("PA", "CP"), ("PA", "RV"), ("PA", "PA"), ("PA", "RC"), ("DB", "RF"), ("DB", "RB"), ("DB", "CB")]
)
def test_a_follow_up_of_a_yen_payment_is_whole_also_without_a_currency(api: Api, first: str, kind: str) -> None:
    """D2, D26: its currency is the chain's."""
    made = api.pay(paymentType=first, amount="1000", currency="JPY").id
    practice = {"standingInstruction.industryPractice": "INCREMENTAL_AUTH"} if kind == "PA" else {}
    for currency in ({}, {"currency": "JPY"}):
        wrong = api.post(f"/v1/payments/{made}", {"paymentType": kind, "amount": "10.50", **practice, **currency})
        assert (wrong.status, wrong.code) == (400, "200.300.404")
        assert wrong.errors == {"amount": "must be a whole number in JPY, e.g. 92 or 92.00"}
    assert Payment.objects.count() == 1
    whole = api.post(f"/v1/payments/{made}", {"paymentType": kind, "amount": "10.00", **practice})
    assert (whole.status, whole.body["amount"], whole.body["currency"]) == (200, "10.00", "JPY")


def test_an_amount_of_zero_charges_nobody(api: Api) -> None:
    """D27: only PA with createRegistration, and RG."""
    for kind in ("DB", "PA", "CD"):
        answer = api.pay(amount="0.00", paymentType=kind)
        assert answer.status == 400
        assert "amount" in answer.errors


# --- cards and means -----------------------------------------------------------------------------------------------


def test_a_number_that_fails_luhn_is_a_declined_payment_with_its_own_code(api: Api) -> None:
    """D10."""
    answer = api.pay(card__number="4444444444444444")
    assert (answer.status, answer.code) == (400, "100.100.101")
    assert "invalid creditcard" in answer.description
    assert "card.number" in answer.errors
    assert AcquirerExchange.objects.count() == 0


def test_a_card_that_has_expired_is_a_declined_payment_with_its_own_code(api: Api) -> None:
    """D10."""
    answer = api.pay(card__expiryMonth="01", card__expiryYear="2024")
    assert (answer.status, answer.code) == (400, "100.100.303")
    assert {"card.expiryMonth", "card.expiryYear"} & set(answer.errors)


@pytest.mark.parametrize("month", ["5", "00", "13", "٠٥", "5 ", "005"])
def test_a_month_has_two_digits_from_01_to_12(api: Api, month: str) -> None:
    """D23."""
    refused(api.pay(card__expiryMonth=month), "card.expiryMonth")


def test_two_means_of_payment_are_one_too_many(api: Api) -> None:
    """D29."""
    fields = {
        "bankAccount.holder": "Jane Jones",
        "bankAccount.iban": "DE23100000001234567890",
        "bankAccount.bic": "MARKDEF1100",
        "bankAccount.country": "DE",
    }
    refused(api.post(PAYMENTS, payment() | fields), "card.number", "bankAccount.iban")


def test_no_means_of_payment_is_an_error(api: Api) -> None:
    """D29."""
    no_card = dict.fromkeys(("card__number", "card__expiryMonth", "card__expiryYear", "card__cvv", "card__holder"))
    refused(api.pay(**no_card), "card.number")


def test_a_brand_that_is_not_set_up_is_told_which_are(shop: Shop) -> None:
    """D30."""
    channel = shop.api_of(shop.open_channel(brands=["MASTER"], currencies=["USD"]))
    answer = channel.pay(currency="USD")
    assert (answer.status, answer.code) == (400, "600.200.201")
    assert "MASTER" in answer.errors["paymentBrand"]
    assert "USD" in channel.pay().errors["currency"]
    assert api_codes(shop.api.pay(paymentBrand="NOSUCHBRAND")) == (400, "600.200.200")


def api_codes(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.code


def test_a_follow_up_type_is_sent_to_the_payment_it_follows(api: Api) -> None:
    """Part A, Endpoints."""
    answer = refused(api.pay(paymentType="RF"), "paymentType")
    assert "/v1/payments/{id}" in answer.errors["paymentType"]


@pytest.mark.parametrize("kind", ["ZZ", "db", "D", "DBX", "1"])
def test_a_payment_type_that_is_none_is_named(api: Api, kind: str) -> None:
    """A13.6."""
    answer = api.pay(paymentType=kind)
    assert answer.status == 400
    assert "paymentType" in answer.errors
    assert Payment.objects.count() == 0


# --- carts ---------------------------------------------------------------------------------------------------------


def test_a_cart_of_a_thousand_items_passes_and_item_1000_is_refused(api: Api) -> None:
    """A31.5, B5.2; D31."""
    items = {f"cart.items[{at}].name": f"Shirt {at}" for at in range(1000)}
    refused(api.post(PAYMENTS, payment() | items | {"cart.items[1000].name": "x"}), "cart.items[1000].name")
    answer = api.post(PAYMENTS, payment() | items)
    assert answer.status == 200
    assert [item["name"] for item in answer.body["cart"]["items"]] == [f"Shirt {at}" for at in range(1000)]


# --- what is kept --------------------------------------------------------------------------------------------------


def test_a_validation_error_is_kept_in_the_request_log_with_its_secrets_masked(shop: Shop) -> None:
    """D10; goals: nothing stored that should not be."""
    pan, cvv = "5454545454545454", "731"
    answer = shop.api.pay(amount="92.1", card__number=pan, card__cvv=cvv, merchantTransactionId="order-4711-a")
    refused(answer, "amount")
    log = RequestLog.objects.get()
    assert (log.status, log.result_code, log.payment) == (400, "200.300.404", None)
    assert log.ndc == answer.body["ndc"]
    kept = dict(log.parameters)
    assert kept["amount"] == "92.1"
    assert kept["merchantTransactionId"] == "order-4711-a"
    assert kept["card.number"] == "545454******5454"
    assert places_of(pan) == set()
    assert cvv not in kept.values()


@pytest.mark.parametrize("method, token, status", [("POST", None, 401), ("POST", "x", 403), ("GET", None, 401)])
def test_a_stranger_writes_nothing_into_the_database(api: Api, method: str, token: str | None, status: int) -> None:
    """Goals: a stranger cannot fill our disk."""
    assert api.with_token(token).call(method, f"/v1/payments/{'0' * 32}").status == status
    assert RequestLog.objects.count() == 0


def test_a_payment_is_found_by_the_ndc_of_its_answer(shop: Shop) -> None:
    """Part B, Payment response: ndc."""
    for answer in (
        shop.api.pay(),
        shop.api.pay(card__number="4000015500000005"),
        shop.api.pay(card__number="4444444444444444"),
    ):
        log = RequestLog.objects.get(payment=answer.id)
        assert log.ndc == answer.body["ndc"]
        assert (log.status, log.result_code, log.method, log.path) == (answer.status, answer.code, "POST", PAYMENTS)
        assert (log.entity_id, log.token) == (shop.channel.id, shop.token.id)
        assert log.parameters is None
