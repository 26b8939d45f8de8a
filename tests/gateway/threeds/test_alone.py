"""POST and GET /v1/threeDSecure: an authentication without a payment."""

from __future__ import annotations

import pytest

from gateway.core import identifiers
from gateway.models import Authentication, Channel, Payment
from gateway.timers import registry
from tests.support.client import Answer, Api
from tests.support.database import places_of
from tests.support.fixtures import Shop
from tests.support.threeds import (
    ATTEMPT,
    BROWSER,
    CODE,
    FAIL,
    FRICTIONLESS,
    METHOD,
    NOT_ENROLLED,
    PASS,
    REJECTED,
    UNAVAILABLE,
    Shopper,
    buy,
    fields,
    way_back,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def channel(shop: Shop) -> Channel:
    return shop.open_channel("authenticating", three_d_secure=True)


@pytest.fixture
def api(shop: Shop, channel: Channel) -> Api:
    return shop.api_of(channel)


def authenticate(api: Api, card: str = FRICTIONLESS, **changes: str | None) -> Answer:
    return api.post("/v1/threeDSecure", fields(card, paymentType=None, card__cvv=None, **changes))


def read(api: Api, ident: str) -> Answer:
    return api.get(f"/v1/threeDSecure/{ident}")


AT_ONCE = [
    (FRICTIONLESS, {}, 200, "000.400.110", True),
    ("5200000000000007", {}, 200, "000.400.110", True),
    (ATTEMPT, {}, 200, "000.400.110", True),
    (PASS, {"threeDSecure.challengeIndicator": "06"}, 200, "000.400.120", False),
    (UNAVAILABLE, {}, 400, "000.400.103", False),
    (NOT_ENROLLED, {}, 400, "000.400.102", False),
    (REJECTED, {}, 400, "100.390.118", False),
    (FAIL, {"threeDSecure.channel": "03"}, 400, "000.400.112", False),
]


@pytest.mark.parametrize(("card", "given", "status", "code", "proved"), AT_ONCE)
def test_each_card_has_its_answer(
    api: Api, card: str, given: dict[str, str], status: int, code: str, proved: bool
) -> None:
    """Decisions, section 3: 000.400.110 and 000.400.120 are for standalone 3-D Secure."""
    answer = authenticate(api, card, **given)
    assert (answer.status, answer.code) == (status, code)
    assert (answer.body["paymentType"], answer.body["amount"]) == ("3D", "92.00")
    told = answer.body.get("threeDSecure", {})
    assert ("verificationId" in told) is proved
    again = read(api, answer.id)
    assert (again.status, again.code, again.body.get("threeDSecure", {})) == (status, code, told)
    assert not Payment.objects.exists()
    assert places_of(card) == set()


def test_its_proof_pays_elsewhere_without_a_second_authentication(api: Api) -> None:
    """D32: the same three values that an external server gives."""
    told = authenticate(api).body["threeDSecure"]
    proof = {f"threeDSecure.{name}": told[name] for name in ("eci", "verificationId", "dsTransactionId")}
    answer = buy(api, FRICTIONLESS, **proof)
    assert answer.code == "000.100.110"
    assert Authentication.objects.count() == 1


def test_a_challenge_is_passed_on_the_same_pages(api: Api) -> None:
    """Part B, 3D Secure."""
    answer = authenticate(api, PASS)
    assert (answer.code, "verificationId" in answer.body["threeDSecure"]) == ("000.200.000", False)
    shopper = Shopper.of(answer)
    assert shopper.open().status_code == 200
    back = way_back(shopper.follow(shopper.enter(CODE)))
    assert back == {"order": "7", "id": answer.id, "resourcePath": f"/v1/threeDSecure/{answer.id}"}
    result = api.get(back["resourcePath"])
    assert (result.code, result.body["threeDSecure"]["authenticationStatus"]) == ("000.100.110", "Y")
    assert len(result.body["threeDSecure"]["verificationId"]) == 28
    assert "redirect" not in result.body


@pytest.mark.parametrize("card", [PASS, METHOD])
def test_one_that_waits_is_read_with_its_redirect(api: Api, card: str) -> None:
    """A merchant's page that was loaded anew sends the shopper there once more."""
    answer = authenticate(api, card)
    again = read(api, answer.id)
    assert (again.code, again.body["redirect"]) == ("000.200.000", answer.body["redirect"])
    assert Shopper.of(again).open().status_code == 200


@pytest.mark.parametrize(("move", "code"), [("cancel", "100.390.124"), ("fail", "100.380.401")])
def test_a_challenge_that_is_not_passed_is_told(api: Api, move: str, code: str) -> None:
    """The family of rejections."""
    answer = authenticate(api, PASS)
    Shopper.of(answer).press(move)
    assert (read(api, answer.id).status, read(api, answer.id).code) == (400, code)


def test_the_method_page_and_the_deadline_hold_here_too(api: Api) -> None:
    """Time-out by the merchant's clock."""
    answer = authenticate(api, METHOD)
    assert answer.body["redirect"]["preconditions"]
    api.post("/v1/test/clock", {"advance": "601"})
    registry.run_all_timers()
    assert read(api, answer.id).code == "100.380.501"
    row = Authentication.objects.get()
    assert row.number_sealed is None


def test_a_decoupled_one_is_answered_by_the_tick(api: Api) -> None:
    """Part B, decoupled."""
    answer = authenticate(api, PASS, **{"threeDSecure.decoupled": "true"})
    api.post("/v1/test/clock", {"advance": "31"})
    registry.run_all_timers()
    assert read(api, answer.id).code == "000.100.110"


def test_every_mandatory_field_is_named_at_once(api: Api) -> None:
    """A20.8, A22.2; ruling D10."""
    answer = api.post("/v1/threeDSecure", {"paymentType": "DB", "threeDSecure.eci": "05"})
    assert answer.status == 400
    wanted = {"amount", "currency", "card.number", "card.expiryMonth", "card.expiryYear", "paymentType"}
    assert wanted | {"threeDSecure.eci"} <= set(answer.errors)
    assert set(authenticate(api, **dict.fromkeys(BROWSER)).errors) == set(BROWSER)


def test_what_is_refused_makes_nothing(api: Api, shop: Shop) -> None:
    """A wrong check digit; a channel without 3-D Secure; a brand without it."""
    assert authenticate(api, "4444444444444444").code == "100.100.101"
    refused = authenticate(shop.api)
    assert (refused.status, refused.code, set(refused.errors)) == (400, "000.400.104", {"entityId"})
    union = authenticate(api, "6200000000000005", paymentBrand="UNIONPAY")
    assert (union.status, union.code) == (400, "000.400.101")
    assert not Authentication.objects.exists()


def test_a_strangers_authentication_is_answered_like_none(api: Api, shop: Shop, stranger: Shop) -> None:
    """R11."""
    theirs = authenticate(stranger.api_of(stranger.open_channel(three_d_secure=True))).id
    of_payment = buy(api, PASS)
    row = Authentication.objects.get(payment=of_payment.id)
    other = shop.api_of(shop.open_channel("other", three_d_secure=True))
    own = authenticate(api).id
    for asker, ident in ((api, theirs), (api, identifiers.row_id().hex), (api, row.id.hex), (other, own), (api, "x")):
        answer = read(asker, ident)
        assert (answer.status, answer.code) == (404, "700.400.580")
    assert read(api, own).status == 200
