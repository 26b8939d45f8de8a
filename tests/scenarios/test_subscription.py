"""A magazine sold by subscription: one challenge at the start, then a payment a month without the reader.

Source: Part B, Card on file, Tokenization and registration, 3D Secure; rulings D5, D38; checks B9, B20.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.core import clock
from tests.support.client import Answer, Api
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.threeds import PASS, Shopper, buy, way_back

pytestmark = pytest.mark.django_db

PAID, PENDING = "000.100.110", "000.200.000"
MONTH = 30


@pytest.fixture
def api(shop: Shop) -> Api:
    return shop.api_of(shop.open_channel("subscriptions", three_d_secure=True))


def words(**named: str) -> dict[str, str]:
    return {f"standingInstruction.{name}": value for name, value in named.items()}


def subscribe(api: Api, kind: str = "RECURRING", **more: str) -> Answer:
    """The reader's first payment: challenged, passed, read. Its answer carries the registration."""
    agreed = words(mode="INITIAL", source="CIT", type=kind, expiry="2033-12-31", frequency=str(MONTH), **more)
    first = buy(api, PASS, createRegistration="true", **agreed)
    assert first.code == PENDING, first
    shopper = Shopper.of(first)
    back = way_back(shopper.follow(shopper.enter()))
    paid = api.get(back["resourcePath"])
    assert (paid.status, paid.code) == (200, PAID), paid
    return paid


def charge(api: Api, registration: str, kind: str = "RECURRING", **more: str) -> Answer:
    """The month's payment: no reader, no security code."""
    fields = {"amount": "9.90", "currency": "EUR", "paymentType": "DB"}
    sent = words(mode="REPEATED", source="MIT", type=kind, **more)
    return api.post(f"/v1/registrations/{registration}/payments", fields | sent)


def test_a_year_begins_with_a_challenge_and_goes_on_by_itself(api: Api) -> None:
    """B20.3: CIT once, MIT each month; nobody is sent anywhere, and each names the first."""
    first = subscribe(api)
    registration = first.body["registrationId"]
    told = api.get("/v1/test/acquirer/messages", {"id": first.id}).body["messages"][0]["received"]
    assert first.body["threeDSecure"]["flow"] == "challenge"
    paid = []
    for _ in range(3):
        pass_time(api, days=MONTH)
        month = charge(api, registration)
        assert (month.status, month.code) == (200, PAID), month
        assert "redirect" not in month.body
        assert month.body["registrationId"] == registration
        assert "cvvResponse" not in month.body["result"]
        paid.append(month.id)
    assert len({first.id, *paid}) == 4
    sent = api.get("/v1/test/acquirer/messages", {"id": paid[-1]}).body["messages"][0]["sent"]
    assert sent["standingInstruction"]["initialTransactionId"] == told["networkReference"]
    assert sent["card"]["cvvPresent"] is False
    assert api.follow(paid[-1], "RF", "9.90").status == 200


def test_a_second_charge_in_one_month_is_refused(api: Api) -> None:
    """Part B, Card on file (frequency)."""
    registration = subscribe(api).body["registrationId"]
    early = charge(api, registration)
    assert (early.status, early.code, list(early.errors)) == (400, "700.500.001", ["standingInstruction.frequency"])
    pass_time(api, days=MONTH)
    assert charge(api, registration).status == 200
    assert charge(api, registration).code == "700.500.001"


def test_the_readers_card_is_renewed_and_the_subscription_goes_on(api: Api) -> None:
    """D5: update; 100.100.303 in between."""
    registration = subscribe(api).body["registrationId"]
    path = f"/v1/registrations/{registration}"
    ends = clock.real_now() + timedelta(days=MONTH)
    assert api.post(path, {"card.expiryMonth": f"{ends:%m}", "card.expiryYear": f"{ends:%Y}"}).status == 200
    pass_time(api, days=4 * MONTH)
    late = charge(api, registration)
    assert (late.status, late.code) == (400, "100.100.303")
    newer = {"card.number": "5454545454545454", "card.expiryMonth": "01", "card.expiryYear": "2037"}
    renewed = api.post(path, newer)
    assert (renewed.status, renewed.id, renewed.body["paymentBrand"]) == (200, registration, "MASTER")
    paid = charge(api, registration)
    assert (paid.status, paid.body["card"]["last4Digits"], paid.body["paymentBrand"]) == (200, "5454", "MASTER"), paid


def test_three_instalments_are_three_and_no_more(api: Api) -> None:
    """Part B, Card on file (numberOfInstallments): the first payment is one of them."""
    registration = subscribe(api, "INSTALLMENT", numberOfInstallments="3").body["registrationId"]
    for _ in range(2):
        pass_time(api, days=MONTH)
        assert charge(api, registration, "INSTALLMENT").status == 200
    pass_time(api, days=MONTH)
    over = charge(api, registration, "INSTALLMENT")
    assert (over.status, over.code) == (400, "700.500.001")
    assert list(over.errors) == ["standingInstruction.numberOfInstallments"]
    assert api.read(over.id).code == "700.500.001"


def test_after_the_agreed_end_nothing_is_charged(api: Api) -> None:
    """Part B, Card on file (expiry)."""
    registration = subscribe(api).body["registrationId"]
    assert api.post("/v1/test/clock", {"now": "2034-01-02T12:00:00Z"}).status == 200
    late = charge(api, registration)
    assert (late.status, late.code, list(late.errors)) == (400, "700.500.002", ["standingInstruction.expiry"])


def test_a_reader_who_leaves_has_no_card_here_any_more(api: Api) -> None:
    """D5: DELETE; the payments that were made stay and can be given back."""
    first = subscribe(api)
    registration = first.body["registrationId"]
    assert api.delete(f"/v1/registrations/{registration}").status == 200
    pass_time(api, days=MONTH)
    gone = charge(api, registration)
    assert (gone.status, gone.code) == (400, "100.150.202")
    assert api.follow(first.id, "RF", "92.00").status == 200


def test_a_reader_who_fails_the_challenge_has_no_subscription(api: Api) -> None:
    """Decisions, section 4: a failed payment keeps no registration."""
    agreed = words(mode="INITIAL", source="CIT", type="RECURRING", expiry="2033-12-31", frequency=str(MONTH))
    first = buy(api, PASS, createRegistration="true", **agreed)
    shopper = Shopper.of(first)
    way_back(shopper.follow(shopper.press("fail")))
    result = api.read(first.id)
    assert (result.status, result.code) == (400, "100.380.401")
    assert "registrationId" not in result.body
    assert charge(api, first.id).status == 400
