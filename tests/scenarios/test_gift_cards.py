"""A department store at an airport: gift cards that hold so much, and travellers who think in their own currency.

Source: Part B, Gift card, Payment response; Part A, Forex; checks A14, B15.
"""

from __future__ import annotations

import pytest

from tests.support.client import Answer, Api, payment

pytestmark = pytest.mark.django_db

PAID = "000.100.110"
PIN = "4711"


def pay(api: Api, number: str, amount: str = "92.00", pin: str = PIN, **more: str) -> Answer:
    fields = {
        "amount": amount,
        "currency": "EUR",
        "paymentType": "DB",
        "paymentBrand": "GIFTCARD",
        "giftCard.number": number,
        "giftCard.pin": pin,
    }
    return api.post("/v1/payments", fields | more)


def test_a_gift_card_pays_and_is_given_back(api: Api) -> None:
    """B15: number masked, PIN nowhere."""
    paid = pay(api, "GC-10042", **{"giftCard.message": "Many happy returns"})
    assert (paid.status, paid.code, paid.body["paymentBrand"]) == (200, PAID, "GIFTCARD")
    assert paid.body["giftCard"] == {"number": "****0042", "message": "Many happy returns"}
    told = api.get("/v1/test/acquirer/messages", {"id": paid.id})
    for text in (paid.text, told.text, api.read(paid.id).text):
        assert "GC-10042" not in text
        assert '"pin"' not in text
    assert api.follow(paid.id, "RF", "92.00").status == 200


def test_a_card_that_holds_twenty_pays_twenty_and_a_bank_card_the_rest(api: Api) -> None:
    """Part B, Payment response: partial approval."""
    part = pay(api, "GC-10020")
    assert (part.status, part.code, part.body["amount"]) == (200, PAID, "20.00")
    assert api.read(part.id).body["amount"] == "20.00"
    rest = api.pay(amount="72.00", **{"cart.payments[0].type": "GIFTCARD", "cart.payments[0].amount": "20.00"})
    assert (rest.code, rest.body["amount"]) == (PAID, "72.00")
    assert api.follow(part.id, "RF", "20.01").code == "700.400.200"
    assert api.follow(part.id, "RF", "20.00").status == 200


def test_a_wrong_pin_and_cards_that_are_empty_expired_or_blocked(api: Api) -> None:
    """Test data: each with its code, each a declined payment that can be read."""
    declined = [
        (pay(api, "GC-10042", pin="0000"), "800.100.166"),
        (pay(api, "GC-10000"), "800.100.203"),
        (pay(api, "GC-20002"), "100.100.303"),
        (pay(api, "GC-20003"), "800.100.160"),
    ]
    for answer, code in declined:
        assert (answer.status, answer.code) == (400, code)
        assert api.read(answer.id).code == code
        assert api.follow(answer.id, "RF", "1.00").code == "700.400.520"
    assert pay(api, "GC-10042").code == PAID


def test_a_gift_card_that_is_bought_hinders_nobody_from_keeping_the_card_that_pays_for_it(api: Api) -> None:
    """Part B, Gift card, Tokenization: what is stored is what pays; a gift card that pays is not stored."""
    bought = {"giftCard.number": "GC-10042", "giftCard.message": "Many happy returns", "createRegistration": "true"}
    paid = api.post("/v1/payments", payment() | bought)
    assert (paid.status, paid.code) == (200, PAID)
    assert paid.body["giftCard"]["number"] == "****0042"
    stored = api.get(f"/v1/registrations/{paid.body['registrationId']}")
    assert stored.body["card"]["last4Digits"] == "0000"
    assert "giftCard.number" in pay(api, "GC-10042", createRegistration="true").errors


def test_a_gift_card_without_its_number_is_asked_for_it(api: Api) -> None:
    """D10."""
    answer = pay(api, "")
    assert (answer.status, list(answer.errors)) == (400, ["giftCard.number"])


def test_a_traveller_sees_dollars_and_pays_in_euro(api: Api) -> None:
    """A14.1: forex is kept, comes back and goes on; what is paid stays the amount."""
    paid = api.pay(forex__amount="101.20", forex__currency="USD")
    assert (paid.code, paid.body["amount"], paid.body["currency"]) == (PAID, "92.00", "EUR")
    sent = api.get("/v1/test/acquirer/messages", {"id": paid.id}).body["messages"][0]["sent"]
    for where in (paid.body, api.read(paid.id).body, sent):
        assert where["forex"] == {"amount": "101.20", "currency": "USD"}
    back = api.follow(paid.id, "RF", "92.00")
    assert (back.status, back.body["currency"]) == (200, "EUR")


def test_half_a_conversion_is_refused(api: Api) -> None:
    """A14.1: amount and currency belong together."""
    for sent, missing in (("forex.amount", "forex.currency"), ("forex.currency", "forex.amount")):
        value = "101.20" if sent == "forex.amount" else "USD"
        answer = api.post("/v1/payments", payment() | {sent: value})
        assert (answer.status, list(answer.errors)) == (400, [missing])
