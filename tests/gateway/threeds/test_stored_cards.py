"""3-D Secure and stored cards: a card stored by a challenged payment, and a stored card that is challenged."""

from __future__ import annotations

import pytest

from gateway.catalogue.conditions.authentication import ADDRESS_FIELDS, BROWSER_FIELDS
from gateway.models import Authentication, Registration, Suspension
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop
from tests.support.threeds import BILLING, BROWSER, FAIL, FRICTIONLESS, PASS, RESULT_URL, Shopper, buy

pytestmark = pytest.mark.django_db
AGREES = {
    "standingInstruction.mode": "INITIAL",
    "standingInstruction.type": "UNSCHEDULED",
    "standingInstruction.source": "CIT",
}
AGAIN = {**AGREES, "standingInstruction.mode": "REPEATED"}


@pytest.fixture
def api(shop: Shop) -> Api:
    return shop.api_of(shop.open_channel(three_d_secure=True))


def passed(api: Api, answer: Answer) -> Answer:
    """The payment after its shopper entered the code."""
    shopper = Shopper.of(answer)
    shopper.follow(shopper.enter())
    return api.get(f"/v1/payments/{answer.id}")


def test_a_challenged_payment_stores_its_card_once_it_is_paid(api: Api) -> None:
    """B9; decisions, section 4."""
    answer = buy(api, PASS, createRegistration="true")
    assert "registrationId" not in answer.body
    assert not Registration.objects.exists()
    paid = passed(api, answer)
    stored = Registration.objects.get()
    assert paid.body["registrationId"] == paid.body["registration"]["id"] == stored.id.hex
    failed = buy(api, FAIL, createRegistration="true")
    assert "registrationId" not in passed(api, failed).body
    assert Registration.objects.count() == 1


def test_a_stored_card_is_authenticated_and_its_agreement_goes_onwards(api: Api) -> None:
    """D34, D38: the shopper clicks, the bank asks, the acquirer gets proof, code and reference."""
    first = passed(api, buy(api, PASS, createRegistration="true", **AGREES))
    (told,) = api.get("/v1/test/acquirer/messages", {"id": first.id}).body["messages"]
    click = f"/v1/registrations/{first.body['registrationId']}/payments"
    sent = {
        "amount": "12.00",
        "currency": "EUR",
        "paymentType": "DB",
        "shopperResultUrl": RESULT_URL,
        "card.cvv": "999",
        "standingInstruction.initialTransactionId": first.id,
        **AGAIN,
    }
    bare = api.post(click, sent)
    assert {*BROWSER, *BILLING} <= set(bare.errors)
    waiting = api.post(click, sent | BROWSER | BILLING)
    assert (waiting.status, waiting.code) == (200, "000.200.000")
    assert Suspension.objects.get().secrets_sealed is not None
    paid = passed(api, waiting)
    assert (paid.status, paid.body["result"]["cvvResponse"]) == (200, "N")
    assert not Suspension.objects.exists()
    (message,) = api.get("/v1/test/acquirer/messages", {"id": paid.id}).body["messages"]
    scheme = told["received"]["networkReference"]
    assert message["sent"]["standingInstruction"]["initialTransactionId"] == scheme
    assert message["sent"]["threeDSecure"]["authenticationStatus"] == "Y"
    assert message["sent"]["card"]["cvvPresent"] is True


def test_a_stored_card_of_the_regional_scheme_says_what_it_is_used_for(api: Api) -> None:
    """B12.2, B12.4: one click is authenticated like any other payment."""
    card = {"card.number": FRICTIONLESS, "card.expiryMonth": "05", "card.expiryYear": "2034"}
    card |= BROWSER | BILLING | {"shopperResultUrl": RESULT_URL}
    stored = api.post("/v1/registrations", card | {"paymentBrand": "CARTEBANCAIRE"}).id
    order = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "shopperResultUrl": RESULT_URL}
    order |= BROWSER | BILLING
    use_case = "threeDSecure.schemeData[CB-USECASE]"
    refused = api.post(f"/v1/registrations/{stored}/payments", order)
    assert (refused.status, refused.errors.keys()) == (400, {use_case})
    paid = api.post(f"/v1/registrations/{stored}/payments", order | {use_case: "01"})
    assert (paid.status, paid.body["paymentBrand"]) == (200, "CARTEBANCAIRE")
    assert paid.headers["Warning"].count("is recommended") == 2
    other = api.post("/v1/registrations", card | {"paymentBrand": "VISA"}).id
    assert "Warning" not in api.post(f"/v1/registrations/{other}/payments", order).headers


CARD = {"card.expiryMonth": "05", "card.expiryYear": "2034", "card.cvv": "123", "paymentBrand": "VISA"}


def test_storing_a_card_authenticates_and_challenges(api: Api) -> None:
    """PSD2 RTS, article 24: a card is stored with the shopper's authentication (NPA, add card)."""
    sent = CARD | BROWSER | BILLING | {"shopperResultUrl": RESULT_URL}
    waiting = api.post("/v1/registrations", sent | {"card.number": PASS})
    assert (waiting.status, waiting.code) == (200, "000.200.000")
    assert not Registration.objects.exists()
    areq = Authentication.objects.get().messages[0]
    assert (areq["messageCategory"], areq["threeDSRequestorAuthenticationInd"]) == ("02", "04")
    done = passed(api, waiting)
    assert done.status == 200
    assert Registration.objects.get().id.hex == waiting.id
    assert not Suspension.objects.exists()
    failed = api.post("/v1/registrations", sent | {"card.number": FAIL})
    assert passed(api, failed).code == "100.380.401"
    assert Registration.objects.count() == 1


@pytest.mark.parametrize(
    "path, kind", [("/v1/registrations", {}), ("/v1/registrations", {"paymentType": "RG"}), ("/v1/payments", {})]
)
def test_storing_a_card_needs_what_a_payment_needs(api: Api, path: str, kind: dict[str, str]) -> None:
    """Part B, 3D Secure; docs/decisions/0070: browser, address and return URL; not where nothing is authenticated."""
    if path == "/v1/payments":
        kind = {"paymentType": "RG", "amount": "0.00", "currency": "EUR"}
    sent = CARD | {"card.number": FRICTIONLESS} | kind
    refused = api.post(path, sent)
    assert (refused.status, set(refused.errors)) == (400, {*BROWSER_FIELDS, *ADDRESS_FIELDS, "shopperResultUrl"})
    assert "threeDSecure" not in str(api.post(path, sent | {"threeDSecure.disable": "true"}).errors)
    app = api.post(path, sent | {"threeDSecure.deviceInfo": "e30"})
    assert set(app.errors) == set(ADDRESS_FIELDS)


def test_storing_a_card_without_a_challenge_is_answered_at_once(api: Api) -> None:
    sent = CARD | BROWSER | BILLING | {"shopperResultUrl": RESULT_URL, "card.number": FRICTIONLESS}
    assert api.post("/v1/registrations", sent).code == "000.100.110"
    assert Authentication.objects.get().category == "02"


def test_verifying_a_card_to_store_it_is_no_payment_either(api: Api) -> None:
    answer = buy(api, FRICTIONLESS, createRegistration="true", amount="0.00", paymentType="PA")
    assert answer.status == 200
    areq = Authentication.objects.get().messages[0]
    assert (areq["messageCategory"], areq["threeDSRequestorAuthenticationInd"]) == ("02", "04")
