"""A shop whose shoppers' banks are asked: waved through, challenged, refused, left, tried again.

Source: Part A, What the service does; Part B, 3D Secure; decisions, section 5; checks A6, A7.8, A8, B11.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Api
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.threeds import FAIL, FRICTIONLESS, METHOD_CHALLENGE, PASS, Shopper, buy, way_back, words

pytestmark = pytest.mark.django_db

PAID, PENDING = "000.100.110", "000.200.000"
SOFT = "4000030001000008"


@pytest.fixture
def api(shop: Shop) -> Api:
    return shop.api_of(shop.open_channel("authenticating", three_d_secure=True))


def asked(api: Api, payment: str) -> list[dict[str, Any]]:
    """What the acquirer was sent."""
    messages = api.get("/v1/test/acquirer/messages", {"id": payment}).body["messages"]
    return [message["sent"] for message in messages]


def test_a_shopper_whom_the_bank_knows_notices_nothing(api: Api) -> None:
    """B11.1: frictionless; the ordinary code, the bank's proof goes on to the acquirer."""
    paid = buy(api, FRICTIONLESS)
    assert (paid.status, paid.code) == (200, PAID)
    assert "redirect" not in paid.body
    told = paid.body["threeDSecure"]
    assert (told["flow"], told["authenticationStatus"], told["eci"]) == ("frictionless", "Y", "05")
    (sent,) = asked(api, paid.id)
    assert sent["threeDSecure"]["verificationId"]
    assert api.follow(paid.id, "RF", "92.00").status == 200


def test_a_shopper_is_challenged_mistypes_asks_for_another_code_and_pays(api: Api) -> None:
    """A6.1 to A6.4: pending, the bank's page, the way back, the result is fetched. The acquirer waits for it."""
    answer = buy(api)
    assert (answer.status, answer.code) == (200, PENDING)
    assert asked(api, answer.id) == []
    assert api.read(answer.id).code == PENDING
    assert api.follow(answer.id, "RF", "92.00").code == "700.400.570"
    shopper = Shopper.of(answer)
    assert "92.00 EUR" in words(shopper.open())
    assert "Tries left: 2" in words(shopper.follow(shopper.enter("000000")))
    assert "A new code is on its way" in words(shopper.follow(shopper.press("resend")))
    back = way_back(shopper.follow(shopper.enter()))
    assert back == {"order": "7", "id": answer.id, "resourcePath": f"/v1/payments/{answer.id}"}
    result = api.get(back["resourcePath"])
    assert (result.status, result.code, result.id) == (200, PAID, answer.id)
    assert (result.body["threeDSecure"]["flow"], result.body["result"]["cvvResponse"]) == ("challenge", "M")
    assert "redirect" not in result.body
    (sent,) = asked(api, answer.id)
    assert sent["card"]["cvvPresent"] is True
    assert api.follow(answer.id, "RF", "92.00").status == 200


def test_the_banks_hidden_page_comes_first_and_then_its_challenge(api: Api) -> None:
    """Decisions, section 5: preconditions."""
    answer = buy(api, METHOD_CHALLENGE)
    (hidden,) = answer.body["redirect"]["preconditions"]
    assert hidden["origin"] == "iframe#hidden"
    shopper = Shopper.of(answer)
    page = shopper.follow(shopper.post(completed="Y"))
    assert "Confirm your payment" in words(page)
    assert way_back(shopper.follow(shopper.enter()))["id"] == answer.id
    assert api.read(answer.id).code == PAID


def test_a_shopper_who_cannot_prove_it_does_not_pay_and_takes_another_card(api: Api) -> None:
    """A challenge that fails: the acquirer is never asked, nothing can follow it."""
    answer = buy(api, FAIL)
    shopper = Shopper.of(answer)
    assert way_back(shopper.follow(shopper.enter()))["id"] == answer.id
    result = api.read(answer.id)
    assert (result.status, result.code) == (400, "100.380.401")
    assert asked(api, answer.id) == []
    assert api.follow(answer.id, "RF", "92.00").code == "700.400.520"
    assert buy(api, FRICTIONLESS).code == PAID


def test_a_shopper_who_cancels_comes_back_and_has_not_paid(api: Api) -> None:
    """Decisions, section 5: 100.390.124; the back button brings nothing back."""
    answer = buy(api)
    shopper = Shopper.of(answer)
    assert way_back(shopper.follow(shopper.press("cancel")))["id"] == answer.id
    assert api.read(answer.id).code == "100.390.124"
    assert way_back(shopper.follow(shopper.enter()))["id"] == answer.id
    assert api.read(answer.id).code == "100.390.124"
    assert asked(api, answer.id) == []


def test_a_shopper_who_goes_away_is_waited_for_and_then_declined(api: Api) -> None:
    """Issue: until the deadline of the merchant's clock; a code that comes later counts for nothing."""
    answer = buy(api)
    shopper = Shopper.of(answer)
    assert shopper.open().status_code == 200
    pass_time(api, minutes=9)
    assert api.read(answer.id).code == PENDING
    pass_time(api, minutes=1, seconds=1)
    result = api.read(answer.id)
    assert (result.status, result.code) == (400, "100.380.501")
    assert way_back(shopper.follow(shopper.enter()))["id"] == answer.id
    assert api.read(answer.id).code == "100.380.501"
    assert asked(api, answer.id) == []


def test_a_soft_decline_is_tried_again_with_the_shopper_there(shop: Shop, api: Api) -> None:
    """300.100.100: the issuer wants a proof. The same card goes through on the channel that fetches one."""
    declined = buy(shop.api, SOFT)
    assert (declined.status, declined.code) == (400, "300.100.100")
    again = buy(api, SOFT, **{"customParameters[3DS2_flow]": "challenge"})
    assert again.code == PENDING
    shopper = Shopper.of(again)
    way_back(shopper.follow(shopper.enter()))
    result = api.read(again.id)
    assert (result.status, result.code) == (200, PAID)
    assert result.body["threeDSecure"]["flow"] == "challenge"
    assert declined.id != again.id
    assert shop.api.read(declined.id).code == "300.100.100"


def test_a_small_purchase_asks_for_an_exemption(api: Api) -> None:
    """B11.3, D32: the wish goes to the bank and to the acquirer, and needs its indicator."""
    wish = {"threeDSecure.exemptionFlag": "01", "threeDSecure.challengeIndicator": "05"}
    paid = buy(api, FRICTIONLESS, amount="9.20", **wish)
    assert paid.code == PAID
    told, (sent,) = paid.body["threeDSecure"], asked(api, paid.id)
    for where in (told, sent["threeDSecure"]):
        assert (where["exemptionFlag"], where["challengeIndicator"]) == ("01", "05")
    alone = buy(api, FRICTIONLESS, **{"threeDSecure.exemptionFlag": "01"})
    assert (alone.status, list(alone.errors)) == (400, ["threeDSecure.challengeIndicator"])


def test_what_the_banks_page_needs_is_asked_for_at_once_and_the_payment_then_works(api: Api) -> None:
    """D34: the shop's developer forgot the browser."""
    missing = {"shopperResultUrl": None, "customer.browser.userAgent": None, "billing.city": None}
    broken = buy(api, **missing)
    assert (broken.status, set(broken.errors)) == (400, set(missing))
    assert buy(api, PASS).code == PENDING
