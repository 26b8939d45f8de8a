"""An external 3DS server: payments through a process of its own, by docs/connectors/threeds-server.md."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client, override_settings

from gateway.models import Authentication, AuthenticationStep, Channel, Payment, ThreeDSecureConfiguration
from gateway.payments.chain_amounts import Chain
from gateway.payments.points_of_service import find_point_of_service
from gateway.payments.shopper_return import complete_due_authentications
from gateway.threeds.server_setup import set_server_secret
from tests.gateway.threeds_protocol.test_messages import SDK
from tests.support.client import Answer, Api
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.stub import StubProcess, account_at_stub
from tests.support.threeds import BROWSER, Shopper, buy, fields, way_back
from tests.support.threeds_server import SECRET, FakeThreeDSServer, card_of, running_threeds_server, sign

pytestmark = pytest.mark.django_db

PAID, PENDING = "000.100.112", "000.200.000"


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeThreeDSServer]:
    with running_threeds_server() as found:
        yield found


@pytest.fixture
def channel(shop: Shop, fake: FakeThreeDSServer, acquirer: StubProcess) -> Channel:
    found = shop.open_channel("authenticating", three_d_secure=True)
    account_at_stub(found)
    row = ThreeDSecureConfiguration(
        channel=found,
        server_url=fake.url,
        requestors={"visa": {"id": "R-1", "name": "Shop", "acquirerBin": "400000", "acquirerMerchantId": "M-1"}},
        requestor_url="https://shop.example",
        merchant_category_code="5411",
        merchant_country="DE",
        on_unavailable="decline",
    )
    set_server_secret(row, SECRET)
    row.save()
    return found


@pytest.fixture
def api(shop: Shop, channel: Channel) -> Api:
    return shop.api_of(channel)


def pay(api: Api, scenario: str, **changes: str | None) -> Answer:
    browser = {"customer__ip": "192.0.2.7", "customer__browser__screenColorDepth": "24"}
    return buy(api, card_of(scenario), testMode="EXTERNAL", **(browser | changes))


def report(rreq: dict[str, Any], *, at: int | None = None, secret: str = SECRET) -> Any:
    body = json.dumps(rreq).encode()
    headers = {"Tollhouse-Signature": sign(body, at, secret)}
    return Client().post("/connectors/threeds/results", body, "application/json", headers=headers)


def the_row() -> Authentication:
    return Authentication.objects.get()


def result(fake: FakeThreeDSServer, **values: str) -> dict[str, Any]:
    found: dict[str, Any] = fake.control("result", threeDSServerTransID=str(the_row().id), **values)
    return found


def test_a_card_without_a_challenge_pays_with_the_proof(api: Api, fake: FakeThreeDSServer) -> None:
    answer = pay(api, "frictionless")
    assert (answer.status, answer.code) == (200, PAID)
    assert answer.body["threeDSecure"]["eci"] == "05"
    (message,) = api.get("/v1/test/acquirer/messages", {"id": answer.id}).body["messages"]
    assert message["sent"]["threeDSecure"]["eci"] == "05"
    sent = fake.calls("/v1/authentications")[-1]["message"]
    assert sent["acquirerBIN"] == "400000"
    assert sent["threeDSServerRefNumber"].startswith("3DS_LOA")
    assert len(sent["notificationURL"]) <= 256


def sent_proof(api: Api, payment: str) -> dict[str, Any]:
    (message,) = api.get("/v1/test/acquirer/messages", {"id": payment}).body["messages"]
    found: dict[str, Any] = message["sent"]["threeDSecure"]
    return found


def exemption_of(payment: str) -> str:
    """What a reversal or a capture says of it."""
    row = Payment.objects.get(pk=payment)
    return find_point_of_service(Chain([row]), row).exemption


@pytest.mark.parametrize("asked", ["channel", "request"])
def test_an_accepted_exemption_reaches_the_acquirer(api: Api, fake: FakeThreeDSServer, asked: str) -> None:
    """Part B, exemption requests: both must be flagged, the authentication and the payment."""
    wish = {"threeDSecure.challengeIndicator": "05"} if asked == "request" else {}
    if asked == "channel":
        ThreeDSecureConfiguration.objects.update(challenge_indicator="05")
    answer = pay(api, "exempted", **wish)
    assert answer.code == PAID
    assert fake.calls("/v1/authentications")[-1]["message"]["threeDSRequestorChallengeInd"] == "05"
    sent = sent_proof(api, answer.id)
    assert (sent["authenticationStatus"], sent["eci"], sent["challengeIndicator"]) == ("I", "07", "05")
    assert exemption_of(answer.id) == "LOW_RISK"


def test_an_authentication_in_place_of_an_exemption_leaves_none(api: Api, fake: FakeThreeDSServer) -> None:
    """Stripe, exemption_indicator: "requested via 3DS and accepted by the issuer"; claimed beside an authentication,
    the merchant may lose the shift of liability."""
    wish = {"threeDSecure.challengeIndicator": "05", "threeDSecure.exemptionFlag": "02"}
    answer = pay(api, "frictionless", **wish)
    assert (answer.code, exemption_of(answer.id)) == (PAID, "")
    ThreeDSecureConfiguration.objects.update(challenge_indicator="05")
    assert exemption_of(pay(api, "frictionless").id) == ""


def test_an_exemption_that_mastercard_accepts_by_2_1_is_no_refusal(api: Api, fake: FakeThreeDSServer) -> None:
    """Status N, reason 81, ECI 06 and an AAV; 2.1 has no status I, and no challenge indicator 05."""
    row = ThreeDSecureConfiguration.objects.get()
    ThreeDSecureConfiguration.objects.update(
        requestors=row.requestors | {"mastercard": row.requestors["visa"]}, challenge_indicator="05"
    )
    number = card_of("exempted by 2.1", "54")
    more = {"customer__ip": "192.0.2.7", "customer__browser__screenColorDepth": "24", "paymentBrand": "MASTER"}
    answer = buy(api, number, testMode="EXTERNAL", **more)
    assert answer.code == PAID, answer
    assert fake.calls("/v1/authentications")[-1]["message"]["threeDSRequestorChallengeInd"] == "02"
    sent = sent_proof(api, answer.id)
    assert (sent["eci"], sent["authenticationStatus"], sent["verificationId"]) == ("06", "N", "***")
    assert exemption_of(answer.id) == "LOW_RISK"
    assert pay(api, "exempted by 2.1").code == "100.380.401"  # of Visa it is a refusal


def test_data_that_mastercard_only_shares_is_no_failure(api: Api, fake: FakeThreeDSServer) -> None:
    """Status U, reason 80, ECI 04: nobody was to be authenticated, so the channel's policy does not decline it."""
    row = ThreeDSecureConfiguration.objects.get()
    assert row.on_unavailable == "decline"
    ThreeDSecureConfiguration.objects.update(
        requestors=row.requestors | {"mastercard": row.requestors["visa"]}, challenge_indicator="06"
    )
    answer = buy(api, card_of("data only", "54"), testMode="EXTERNAL", paymentBrand="MASTER", customer__ip="192.0.2.7")
    assert answer.code == PAID, answer
    assert fake.calls("/v1/authentications")[-1]["message"]["threeDSRequestorChallengeInd"] == "06"
    sent = sent_proof(api, answer.id)
    assert (sent["eci"], sent["authenticationStatus"], sent["verificationId"]) == ("04", "U", "***")
    assert exemption_of(answer.id) == ""
    assert pay(api, "data only").code == "100.390.107"  # of Visa it is no answer of the issuer's


@pytest.mark.parametrize("category", ["MO", "TO"])
def test_a_mail_or_telephone_order_is_not_authenticated(api: Api, fake: FakeThreeDSServer, category: str) -> None:
    """It is out of the scope of strong authentication, and has no browser."""
    before = len(fake.calls("/v1/authentications"))
    card = {"card.number": card_of("challenge"), "card.expiryMonth": "05", "card.expiryYear": "2034"}
    money = {"paymentType": "DB", "amount": "10.00", "currency": "EUR", "testMode": "EXTERNAL"}
    answer = api.post("/v1/payments", {**card, **money, "transactionCategory": category})
    assert answer.code == PAID, answer
    assert len(fake.calls("/v1/authentications")) == before
    assert not Authentication.objects.exists()


def store_card(api: Api, scenario: str) -> Answer:
    unwanted = dict.fromkeys(["amount", "currency", "paymentType"])
    return api.post(
        "/v1/registrations",
        fields(
            card_of(scenario),
            testMode="EXTERNAL",
            customer__ip="192.0.2.7",
            customer__browser__screenColorDepth="24",
            **unwanted,
        ),
    )


def test_a_card_is_stored_by_an_authentication_without_a_value(api: Api, fake: FakeThreeDSServer) -> None:
    """A non-payment authentication need not have one, and an ECI that claims one is not sent without it. Source: EMV
    3-D Secure v2.2.0, table A.1, Authentication Value: required for 01-PA, by the directory server's rules for
    02-NPA."""
    answer = store_card(api, "proof missing")
    assert answer.code == PAID, answer
    assert fake.calls("/v1/authentications")[-1]["message"]["messageCategory"] == "02"
    sent = sent_proof(api, answer.id)
    assert (sent["authenticationStatus"], "verificationId" in sent, "eci" in sent) == ("Y", False, False)
    assert sent["dsTransactionId"] == the_row().ds_transaction
    assert pay(api, "proof missing").code == "100.390.115"


def test_the_result_of_a_challenge_to_store_a_card_needs_no_value(api: Api, fake: FakeThreeDSServer) -> None:
    answer = store_card(api, "challenge")
    assert answer.code == PENDING, answer
    assert report(result(fake, transStatus="Y", authenticationValue="", eci="")).status_code == 200
    assert (the_row().step, the_row().trans_status, the_row().eci) == (AuthenticationStep.DONE, "Y", "")
    assert api.read(answer.id).code == PAID


def test_an_older_issuer_gets_the_older_protocol(api: Api, fake: FakeThreeDSServer) -> None:
    assert pay(api, "old version").code == PAID
    sent = fake.calls("/v1/authentications")[-1]["message"]
    assert sent["messageVersion"] == "2.1.0"
    assert "browserJavascriptEnabled" not in sent


def test_a_screen_and_an_address_that_the_protocol_does_not_know_decline_nobody(
    api: Api, fake: FakeThreeDSServer
) -> None:
    odd = {"customer__browser__screenColorDepth": "30", "billing__city": "C" * 80, "card__holder": "Jane " + "J" * 90}
    assert pay(api, "frictionless", **odd).code == PAID
    sent = fake.calls("/v1/authentications")[-1]["message"]
    assert (sent["browserColorDepth"], len(sent["billAddrCity"]), len(sent["cardholderName"])) == ("24", 50, 45)


@pytest.mark.parametrize("authenticated", [True, False])
def test_the_merchant_alone_names_the_authentication_that_began_the_agreement(
    api: Api, fake: FakeThreeDSServer, authenticated: bool
) -> None:
    """EMVCo, recurring and instalment transactions: a 3RI of an agreement refers to its first authentication."""
    kind = {"standingInstruction.type": "RECURRING", "standingInstruction.expiry": "2030-01-01"}
    first = pay(api, "frictionless", **kind, **{"standingInstruction.mode": "INITIAL"})
    assert first.code == PAID
    began = the_row()
    if not authenticated:
        Authentication.objects.all().delete()
    instruction = {"mode": "REPEATED", "source": "MIT", "initialTransactionId": first.id, "frequency": "28"}
    alone = dict.fromkeys([*BROWSER, "shopperResultUrl", "card.cvv"]) | {
        "threeDSecure.channel": "03",
        "threeDSecure.threeRIInd": "RECURRING",
        **{f"standingInstruction.{name}": text for name, text in instruction.items()},
    }
    again = pay(api, "frictionless", **kind, **alone)
    assert again.code == PAID, again
    sent = fake.calls("/v1/authentications")[-1]["message"]
    assert sent["threeRIInd"] == "01"
    told = sent.get("threeDSRequestorPriorAuthenticationInfo")
    assert (told is not None) is authenticated
    if told is not None:
        assert (told["threeDSReqPriorRef"], told["threeDSReqPriorAuthMethod"]) == (began.acs_transaction, "01")


@pytest.mark.parametrize(
    "country, own, sent, wanted",
    [
        ("DE", "", {"createRegistration": "true"}, "04"),
        ("GB", "", {"standingInstruction.mode": "INITIAL", "standingInstruction.type": "UNSCHEDULED"}, "04"),
        ("DE", "", {}, None),
        ("US", "", {"createRegistration": "true"}, None),
        ("DE", "", {"createRegistration": "true", "merchant.country": "US"}, None),
        ("DE", "", {"createRegistration": "true", "threeDSecure.merchant.country": "USA"}, None),
        ("US", "", {"createRegistration": "true", "threeDSecure.merchant.country": "FRA"}, "04"),
        ("DE", "02", {"createRegistration": "true"}, "02"),
        ("DE", "", {"createRegistration": "true", "threeDSecure.challengeIndicator": "01"}, "01"),
        ("DE", "", {"createRegistration": "true", "threeDSecure.challengeMandatedIndicator": "N"}, None),
        ("DE", "", {"createRegistration": "true", "threeDSecure.challengeMandatedIndicator": "Y"}, "04"),
    ],
)
def test_where_the_law_wants_it_a_challenge_is_asked_for_as_a_card_is_stored(
    api: Api,
    channel: Channel,
    fake: FakeThreeDSServer,
    country: str,
    own: str,
    sent: dict[str, str],
    wanted: str | None,
) -> None:
    """PSD2, article 97: what the merchant initiates later stands on it. What merchant and channel say goes first."""
    ThreeDSecureConfiguration.objects.update(merchant_country=country, challenge_indicator=own)
    assert pay(api, "frictionless", **sent).code == PAID
    assert fake.calls("/v1/authentications")[-1]["message"].get("threeDSRequestorChallengeInd") == wanted


APP = dict.fromkeys([*BROWSER, "shopperResultUrl"]) | {"threeDSecure.deviceInfo": json.dumps(SDK)}


@pytest.mark.parametrize(
    ("own", "sent", "wanted"),
    [
        ("", {}, None),
        ("", {"threeDSecure.challengeMandatedIndicator": "Y"}, None),
        ("", {"threeDSecure.challengeIndicator": "04"}, "04"),
        ("04", {}, "04"),
    ],
)
def test_no_challenge_of_our_own_is_asked_for_in_an_app(
    api: Api, fake: FakeThreeDSServer, own: str, sent: dict[str, str], wanted: str | None
) -> None:
    """A card is stored in a country of strong authentication, and the challenge could not be carried out."""
    ThreeDSecureConfiguration.objects.update(challenge_indicator=own)
    answer = pay(api, "frictionless", createRegistration="true", **APP, **sent)
    assert answer.code == PAID, answer
    asked = fake.calls("/v1/authentications")[-1]["message"]
    assert (asked["deviceChannel"], asked.get("threeDSRequestorChallengeInd")) == ("01", wanted)


@pytest.mark.parametrize(("policy", "code"), [("decline", "100.390.107"), ("proceed", PAID)])
def test_an_app_that_would_be_challenged_does_not_wait(
    api: Api, fake: FakeThreeDSServer, policy: str, code: str
) -> None:
    """As where there is no authentication, the channel decides at once, and nothing is claimed of one."""
    ThreeDSecureConfiguration.objects.update(on_unavailable=policy)
    answer = pay(api, "challenge", **APP)
    assert answer.code == code, answer
    assert answer.body["threeDSecure"]["authenticationStatus"] == "C"
    row = the_row()
    assert (row.step, row.flow, row.eci) == (AuthenticationStep.DONE, "challenge", "")
    assert row.messages[-1]["errorDetail"] == "a challenge that cannot be carried out"
    if policy == "proceed":
        (message,) = api.get("/v1/test/acquirer/messages", {"id": answer.id}).body["messages"]
        assert not message["sent"].get("threeDSecure")
    assert report(result(fake, transStatus="N", challengeCancel="05")).status_code == 200
    assert api.read(answer.id).code == code


def test_an_issuer_of_2_1_is_not_asked_for_a_3ri_that_2_1_does_not_have(api: Api, fake: FakeThreeDSServer) -> None:
    """Nobody has made a fault: as where the issuer cannot authenticate, the channel's policy decides."""
    kind = "SPLIT_SHIPMENT"
    absent = dict.fromkeys([*BROWSER, "shopperResultUrl"])
    alone = {"threeDSecure.channel": "03", "threeDSecure.threeRIInd": kind, **absent}
    assert pay(api, "frictionless", **alone).code == PAID
    assert fake.calls("/v1/authentications")[-1]["message"]["threeRIInd"] == "06"
    Authentication.objects.all().delete()
    before = len(fake.calls("/v1/authentications"))
    assert pay(api, "old version", **alone).code == "100.390.121"
    assert any("3RI: not in 2.1.0" in said.get("errorDetail", "") for said in the_row().messages)
    ThreeDSecureConfiguration.objects.update(on_unavailable="proceed")
    answer = pay(api, "old version", **alone)
    assert answer.code == PAID
    assert "verificationId" not in json.dumps(api.get("/v1/test/acquirer/messages", {"id": answer.id}).body)
    assert len(fake.calls("/v1/authentications")) == before


@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        ("decoupled refusal", "100.390.122"),
        ("unavailable", "100.390.112"),
        ("malformed", "100.390.115"),
        ("proof missing", "100.390.115"),
        ("html", "100.390.115"),
        ("erro", "100.390.115"),
        ("not enrolled", "100.390.110"),
        ("silent", "100.390.111"),
    ],
)
def test_without_an_authentication_the_channel_declines(
    api: Api, acquirer: StubProcess, scenario: str, code: str
) -> None:
    answer = pay(api, scenario)
    assert (answer.status, answer.code) == (400, code)
    assert acquirer.entries(kind="request") == []


@pytest.mark.parametrize(
    ("ended", "code"), [("Y", PAID), ("N", "100.380.401"), ("", "100.380.501")], ids=["passed", "failed", "nothing"]
)
def test_a_decoupled_result_whose_report_was_lost_is_asked_for_after_the_issuers_time(
    api: Api, fake: FakeThreeDSServer, ended: str, code: str
) -> None:
    """Nobody comes back for whom it would be asked for. The issuer may answer until its last minute, and reports
    after that."""
    answer = pay(api, "decoupled", **{"threeDSecure.decoupled": "true"})
    assert answer.code == PENDING
    if ended:
        result(fake, transStatus=ended)
    asked = len(fake.calls("/v1/results"))
    for minutes in (59, 2, 2):
        pass_time(api, minutes=minutes)
        assert (api.read(answer.id).code, len(fake.calls("/v1/results"))) == (PENDING, asked)
    pass_time(api, minutes=3)
    assert (api.read(answer.id).code, len(fake.calls("/v1/results"))) == (code, asked + 1)


def test_the_result_of_an_ended_payments_authentication_is_not_asked_for(api: Api, fake: FakeThreeDSServer) -> None:
    """The shopper gave the payment up: no result changes anything, and the call would hold up others."""
    answer = pay(api, "decoupled", **{"threeDSecure.decoupled": "true"})
    result(fake, transStatus="Y")
    Payment.objects.filter(pk=answer.id).update(status="DECLINED")
    asked = len(fake.calls("/v1/results"))
    assert complete_due_authentications() == 1
    assert len(fake.calls("/v1/results")) == asked
    assert (the_row().step, the_row().trans_status) == ("done", "N")


def test_a_call_that_failed_is_made_once_more_under_the_same_key(api: Api, fake: FakeThreeDSServer) -> None:
    assert pay(api, "fails once").code == PAID
    first, second = fake.calls("/v1/authentications")[-2:]
    assert first == second


def test_a_server_that_is_gone_and_a_policy_that_goes_on(api: Api, channel: Channel) -> None:
    ThreeDSecureConfiguration.objects.update(server_url="http://127.0.0.1:9", on_unavailable="proceed")
    assert pay(api, "frictionless").code == PAID
    ThreeDSecureConfiguration.objects.update(on_unavailable="decline")
    assert pay(api, "frictionless").code == "100.390.111"


@pytest.mark.parametrize("column", ["requestor_url", "merchant_category_code", "merchant_country", "requestors"])
def test_what_a_directory_would_refuse_is_not_sent(api: Api, fake: FakeThreeDSServer, column: str) -> None:
    """The fault names the element; the payment is declined whatever the policy says."""
    before = len(fake.calls("/v1/authentications"))
    empty: Any = {} if column == "requestors" else ""
    ThreeDSecureConfiguration.objects.update(**{column: empty}, on_unavailable="proceed")
    assert pay(api, "frictionless").code == "100.390.117"
    assert len(fake.calls("/v1/authentications")) == before
    assert any("201 " in said.get("errorDetail", "") for said in the_row().messages)


def test_a_challenge_ends_by_the_signed_result(api: Api, fake: FakeThreeDSServer) -> None:
    answer = pay(api, "challenge")
    assert (answer.status, answer.code) == (200, PENDING)
    shopper = Shopper.of(answer)
    page = shopper.open().content.decode()
    assert f'action="{fake.url}/acs"' in page
    assert 'name="creq"' in page
    assert "123456" not in page
    rreq = result(fake, transStatus="Y")
    said = report(rreq)
    assert (said.status_code, said.json()["messageType"], said.json()["resultsStatus"]) == (200, "RRes", "01")
    assert report(rreq).status_code == 200
    assert way_back(shopper.open())["id"] == answer.id
    paid = api.get(f"/v1/payments/{answer.id}")
    assert (paid.code, paid.body["threeDSecure"]["authenticationStatus"]) == (PAID, "Y")


def test_a_lost_result_is_asked_for_when_the_shopper_is_back(api: Api, fake: FakeThreeDSServer) -> None:
    answer = pay(api, "challenge")
    shopper = Shopper.of(answer)
    back = shopper.http.post(f"{shopper.path}/challenged?token={shopper.token}", {"cres": "e30"})
    assert back.status_code == 303
    assert shopper.http.get(back["Location"]).status_code == 200
    assert api.get(f"/v1/payments/{answer.id}").code == PENDING
    result(fake, transStatus="Y")
    assert way_back(shopper.http.get(back["Location"]))["id"] == answer.id
    assert api.get(f"/v1/payments/{answer.id}").code == PAID


@pytest.mark.parametrize("move", [{"move": "code", "code": "123456"}, {"move": "pass"}, {"move": "cancel"}])
def test_the_simulated_bank_has_no_say_in_it(api: Api, move: dict[str, str]) -> None:
    """The token of a page proves nothing about a cardholder."""
    answer = pay(api, "challenge")
    Shopper.of(answer).post(**move)
    assert the_row().step == AuthenticationStep.CHALLENGE
    assert Payment.objects.get(pk=the_row().payment).status == "PENDING"


def test_a_result_without_the_right_signature_changes_nothing(api: Api, fake: FakeThreeDSServer) -> None:
    pay(api, "challenge")
    rreq = result(fake, transStatus="Y")
    assert report(rreq, secret="x" * 40).status_code == 401
    assert report(rreq, at=int(time.time()) - 301).status_code == 401
    assert report(rreq | {"threeDSServerTransID": "00000000-0000-4000-8000-000000000000"}).status_code == 401
    assert report(rreq | {"messageType": "CRes"}).status_code == 400
    assert report({"messageType": "CRes"}).status_code == 401
    assert the_row().step == AuthenticationStep.CHALLENGE


@pytest.mark.parametrize("body", [b"[" * 60_000, b'{"threeDSServerTransID": "%s", ' % (b"0" * 32), b"x" * 70_000])
def test_a_result_without_a_signature_is_not_decoded(body: bytes) -> None:
    """What is no JSON is not noticed before the signature is wrong: a stranger's bytes are only searched."""
    answer = Client().post("/connectors/threeds/results", body, "application/json")
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "change",
    [{"transStatus": "C"}, {"transStatus": "I"}, {"transStatus": ""}, {"acsTransID": "x"}, {"authenticationValue": ""}],
)
def test_a_result_that_is_none_changes_nothing(api: Api, fake: FakeThreeDSServer, change: dict[str, str]) -> None:
    pay(api, "challenge")
    answer = report(result(fake, transStatus="Y") | change)
    assert (answer.status_code, answer.json()["errorCode"]) == (400, "203")
    assert the_row().step == AuthenticationStep.CHALLENGE


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"transStatus": "N", "challengeCancel": "01"}, "100.390.124"),
        ({"transStatus": "N", "challengeCancel": "04"}, "100.380.501"),
        ({"transStatus": "N", "challengeCancel": "05"}, "100.380.501"),
        ({"transStatus": "U", "challengeCancel": "06"}, "100.390.112"),
        ({"transStatus": "N", "challengeCancel": "07"}, "100.380.401"),
        ({"transStatus": "N", "challengeCancel": "08"}, "100.380.501"),
        ({"transStatus": "R"}, "100.390.114"),
        ({"transStatus": "N"}, "100.380.401"),
    ],
)
def test_each_end_of_a_challenge_has_its_code(
    api: Api, fake: FakeThreeDSServer, values: dict[str, str], code: str
) -> None:
    answer = pay(api, "challenge")
    assert report(result(fake, **values)).status_code == 200
    assert api.get(f"/v1/payments/{answer.id}").code == code


def test_a_broken_off_challenge_follows_the_policy_for_what_is_not_available(
    api: Api, fake: FakeThreeDSServer, channel: Channel
) -> None:
    ThreeDSecureConfiguration.objects.update(on_unavailable="proceed")
    answer = pay(api, "challenge")
    report(result(fake, transStatus="U", challengeCancel="06"))
    assert api.get(f"/v1/payments/{answer.id}").code == PAID


def test_the_issuers_method_page_is_loaded_first(api: Api, fake: FakeThreeDSServer) -> None:
    before = len(fake.calls("/v1/authentications"))
    answer = pay(api, "method")
    (condition,) = answer.body["redirect"]["preconditions"]
    assert condition["url"] == f"{fake.url}/method"
    shopper = Shopper.of(answer)
    assert f'action="{fake.url}/method"' in shopper.open().content.decode()
    assert len(fake.calls("/v1/authentications")) == before
    shopper.follow(shopper.post(completed="Y"))
    assert fake.calls("/v1/authentications")[-1]["message"]["threeDSCompInd"] == "Y"
    report(result(fake, transStatus="Y"))
    assert api.get(f"/v1/payments/{answer.id}").code == PAID


def test_internal_test_mode_stays_with_the_simulator(api: Api, fake: FakeThreeDSServer) -> None:
    before = len(fake.calls("/v1/versioning"))
    assert buy(api, "4200000000000042").code == PENDING
    assert len(fake.calls("/v1/versioning")) == before
    assert the_row().server_url == ""


def test_live_asks_the_external_server(shop: Shop, channel: Channel, fake: FakeThreeDSServer) -> None:
    from gateway.threeds.directory_server import get_directory_server

    with override_settings(IS_LIVE=True):
        found = get_directory_server(channel.three_ds, "")
        assert found is not None
        assert found.url == fake.url
