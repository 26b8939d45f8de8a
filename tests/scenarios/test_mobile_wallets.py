"""A kiosk whose customers hold a phone to the till: wallet tokens that we open, and data that the kiosk opened.

Source: Part A, Mobile wallets; decisions, section 1 (D20), section 2 (D32); the test environment's own token maker.
"""

from __future__ import annotations

import pytest

from tests.support.client import Answer, Api
from tests.support.fixtures import Shop
from tests.support.threeds import BILLING, BROWSER, PASS, RESULT_URL, Shopper, way_back

pytestmark = pytest.mark.django_db

PAID = "000.100.110"
NUMBER = "4200000000000000"
FORMATS = [("wallet1", "ec_v1"), ("wallet1", "rsa_v1"), ("wallet2", "ecv1"), ("wallet2", "ecv2"), ("wallet3", "jwe")]
each_format = pytest.mark.parametrize(("wallet", "form"), FORMATS)


def token(api: Api, wallet: str, form: str, **more: str) -> str:
    """What the customer's phone makes."""
    fields = {"wallet": wallet, "format": form, "amount": "92.00", "currency": "EUR", **more}
    made = api.post("/v1/test/wallet-token", fields)
    assert made.status == 200, made
    return str(made.body["paymentToken"])


def pay(api: Api, wallet: str, paid_with: str, **changes: str) -> Answer:
    fields = {
        "amount": "92.00",
        "currency": "EUR",
        "paymentType": "DB",
        "paymentBrand": wallet.upper(),
        f"{wallet}.paymentToken": paid_with,
    }
    return api.post("/v1/payments", fields | changes)


@each_format
def test_a_phone_pays_and_the_purchase_is_given_back(api: Api, wallet: str, form: str) -> None:
    """A1.8, A7.3, A16.1: the encrypted way; the proof in the token goes on, token and number come back nowhere."""
    sent = token(api, wallet, form)
    paid = pay(api, wallet, sent)
    assert (paid.status, paid.code, paid.body["paymentBrand"]) == (200, PAID, wallet.upper()), paid
    card = paid.body["card"]
    assert (card["bin"], card["last4Digits"], card["numberType"]) == ("420000", "0000", "DPAN")
    told = api.get("/v1/test/acquirer/messages", {"id": paid.id})
    assert told.body["messages"][0]["sent"]["threeDSecure"]["eci"] == "05"
    for text in (paid.text, told.text, api.read(paid.id).text):
        assert NUMBER not in text
        assert sent not in text
    assert api.follow(paid.id, "RF", "92.00").status == 200


@each_format
def test_a_token_that_somebody_copied_pays_nothing(committed: Shop, wallet: str, form: str) -> None:
    """A replay is refused, whatever it is sent with; the first purchase stands."""
    api = committed.api
    sent = token(api, wallet, form)
    paid = pay(api, wallet, sent)
    for again in (pay(api, wallet, sent), pay(api, wallet, sent, merchantTransactionId="order-4712")):
        assert (again.status, again.code) == (400, "200.100.602")
        assert "was used already" in again.errors[f"{wallet}.paymentToken"]
        assert "id" not in again.body
    assert api.read(paid.id).code == PAID


@each_format
def test_a_token_that_was_changed_or_kept_too_long_pays_nothing(api: Api, wallet: str, form: str) -> None:
    """A clear error that names the parameter; a token made anew pays."""
    codes = {"tampered": "200.100.603" if wallet == "wallet3" else "200.100.602", "expired": "200.100.602"}
    for defect, code in codes.items():
        refused = pay(api, wallet, token(api, wallet, form, defect=defect))
        assert (refused.status, refused.code, list(refused.errors)) == (400, code, [f"{wallet}.paymentToken"])
        assert "id" not in refused.body
    assert pay(api, wallet, token(api, wallet, form)).code == PAID


@pytest.mark.parametrize(("wallet", "form"), [("wallet1", "ec_v1"), ("wallet1", "rsa_v1"), ("wallet3", "jwe")])
def test_a_customer_agreed_to_ninety_two_and_pays_no_more(api: Api, wallet: str, form: str) -> None:
    """What the shopper agreed to is what is paid."""
    for changes in ({"amount": "93.00"}, {"currency": "USD"}):
        refused = pay(api, wallet, token(api, wallet, form), **changes)
        assert (refused.status, refused.code) == (400, "200.100.602")
        assert "another amount" in refused.errors[f"{wallet}.paymentToken"]


def test_a_line_that_broke_is_tried_again_with_its_key(api: Api) -> None:
    """D20: the same request is answered as before; it is no replay of the token."""
    sent = token(api, "wallet1", "ec_v1")
    fields = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "paymentBrand": "WALLET1"}
    fields |= {"wallet1.paymentToken": sent}
    first = api.post("/v1/payments", fields, Idempotency_Key="till-7-0001")
    again = api.post("/v1/payments", fields, Idempotency_Key="till-7-0001")
    assert (first.status, first.text) == (200, again.text)


def test_a_neighbours_token_opens_nothing_here(api: Api, stranger: Shop) -> None:
    """Keys per channel."""
    theirs = token(stranger.api, "wallet1", "ec_v1")
    assert pay(api, "wallet1", theirs).code == "600.200.500"
    token(api, "wallet1", "ec_v1")
    assert pay(api, "wallet1", theirs).code == "200.100.603"
    assert pay(stranger.api, "wallet1", theirs).code == PAID


def test_a_card_behind_the_phone_that_is_over_its_limit(api: Api) -> None:
    """Every card of the test data works inside a token."""
    declined = pay(api, "wallet2", token(api, "wallet2", "ecv2", number="4000015500000005"))
    assert (declined.status, declined.code) == (400, "800.100.155")
    assert api.read(declined.id).status == 400


@pytest.mark.parametrize("wallet", ["wallet1", "wallet2", "wallet3"])
def test_the_kiosk_opens_its_tokens_itself(api: Api, wallet: str) -> None:
    """A7.4, A16.3, A16.4: the decrypted way: source, card data and proof, all of them."""
    opened = {
        "amount": "92.00",
        "currency": "EUR",
        "paymentType": "DB",
        "paymentBrand": wallet.upper(),
        f"{wallet}.source": "app",
        "card.number": NUMBER,
        "card.expiryMonth": "12",
        "card.expiryYear": "2030",
        "threeDSecure.eci": "05",
        "threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA=",
    }
    paid = api.post("/v1/payments", opened)
    assert (paid.status, paid.code, paid.body[wallet]) == (200, PAID, {"source": "app"})
    assert NUMBER not in paid.text
    for missing in ("threeDSecure.eci", "threeDSecure.verificationId", "card.expiryYear"):
        refused = api.post("/v1/payments", {name: value for name, value in opened.items() if name != missing})
        assert (refused.status, missing in refused.errors) == (400, True), missing
    assert api.post("/v1/payments", opened | {f"{wallet}.source": "tv"}).status == 400


def test_where_cards_are_authenticated_the_phones_proof_is_enough_and_a_bare_card_is_challenged(shop: Shop) -> None:
    """D32: the device authenticated the customer; wallet 2's own card numbers carry no proof."""
    api = shop.api_of(shop.open_channel("authenticating", three_d_secure=True))
    assert pay(api, "wallet1", token(api, "wallet1", "ec_v1")).code == PAID
    bare = token(api, "wallet2", "ecv2", number=PASS, proof="none")
    answer = pay(api, "wallet2", bare, shopperResultUrl=RESULT_URL, **BROWSER, **BILLING)
    assert (answer.status, answer.code) == (200, "000.200.000"), answer
    shopper = Shopper.of(answer)
    assert way_back(shopper.follow(shopper.enter()))["id"] == answer.id
    assert api.read(answer.id).code == PAID
