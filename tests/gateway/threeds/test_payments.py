"""Payments on a channel with 3-D Secure, over HTTP: every card, every way, every end."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from typing import Any

import pytest

from gateway.catalogue.conditions.request_facts import AUTHENTICATING_FACTS, will_authenticate
from gateway.catalogue.rules import RuleInput
from gateway.core import clock
from gateway.core.secret import Secret
from gateway.models import (
    Authentication,
    AuthenticationStep,
    Channel,
    Payment,
    Status,
    Suspension,
    ThreeDSecureConfiguration,
)
from gateway.payments import shopper_return
from gateway.threeds import server
from gateway.timers import registry
from tests.gateway.threeds_protocol.test_messages import SDK
from tests.support.client import Api
from tests.support.clock import jump
from tests.support.database import leaves, places_of
from tests.support.fixtures import Shop
from tests.support.stub import StubProcess, account_at_stub
from tests.support.threeds import (
    ATTEMPT,
    BILLING,
    BROWSER,
    CODE,
    FAIL,
    FRICTIONLESS,
    METHOD,
    METHOD_CHALLENGE,
    NOT_ENROLLED,
    PASS,
    REJECTED,
    UNAVAILABLE,
    Shopper,
    buy,
    way_back,
    words,
)

pytestmark = pytest.mark.django_db

PAID = "000.100.110"
PENDING = "000.200.000"
PROOF = {
    "threeDSecure.eci": "05",
    "threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA=",
    "threeDSecure.dsTransactionId": "c5b808e7-1de1-4069-a17b-f70d3b3b1645",
}


@pytest.fixture
def channel(shop: Shop) -> Channel:
    return shop.open_channel("authenticating", three_d_secure=True)


@pytest.fixture
def api(shop: Shop, channel: Channel) -> Api:
    return shop.api_of(channel)


def configure(channel: Channel, **values: Any) -> None:
    ThreeDSecureConfiguration.objects.update_or_create(channel=channel, defaults=values)


def sent_to_acquirer(api: Api, payment: str) -> list[dict[str, Any]]:
    messages = api.get("/v1/test/acquirer/messages", {"id": payment}).body["messages"]
    return [message["sent"] for message in messages]


def test_what_asks_for_the_browsers_fields_is_what_is_authenticated() -> None:
    """D34: one reading of who initiates a payment, for the conditions and for the 3DS server."""
    names = [f"standingInstruction.{name}" for name in ("mode", "source", "industryPractice")]
    choices = [
        (None, "INITIAL", "REPEATED"),
        (None, "CIT", "MIT"),
        (None, "NO_SHOW", "RESUBMISSION", "DELAYED_CHARGES"),
    ]
    for chosen in itertools.product(*choices):
        said = {name: value for name, value in zip(names, chosen, strict=True) if value is not None}
        wanted = server.is_authentication_wanted(said, proved=False, brand="VISA", operation="DB")
        sent = RuleInput(said, facts=AUTHENTICATING_FACTS, secrets={"card.number": Secret(PASS)})
        assert wanted == will_authenticate(sent), said


# --- every card -----------------------------------------------------------------------------------------------------

AT_ONCE = [
    (FRICTIONLESS, 200, PAID, {"authenticationStatus": "Y", "eci": "05", "flow": "frictionless"}),
    ("5200000000000007", 200, PAID, {"authenticationStatus": "Y", "eci": "02", "flow": "frictionless"}),
    ("4200000000000000", 200, PAID, {"authenticationStatus": "Y", "eci": "05"}),
    (ATTEMPT, 200, PAID, {"authenticationStatus": "A", "eci": "06"}),
    (UNAVAILABLE, 200, PAID, {"authenticationStatus": "U", "eci": "07"}),
    (NOT_ENROLLED, 200, PAID, {}),
    (REJECTED, 400, "100.390.118", {"authenticationStatus": "R"}),
]


@pytest.mark.parametrize(("card", "status", "code", "told"), AT_ONCE, ids=[row[0] for row in AT_ONCE])
def test_a_card_without_a_challenge_is_answered_at_once(
    api: Api, card: str, status: int, code: str, told: dict[str, str]
) -> None:
    """Decisions, sections 3 and 5: frictionless answers with the ordinary code."""
    answer = buy(api, card)
    assert (answer.status, answer.code) == (status, code)
    assert "redirect" not in answer.body
    assert answer.body.get("threeDSecure", {}) | told == answer.body.get("threeDSecure", {})
    assert not Suspension.objects.exists()


@pytest.mark.parametrize("card", [PASS, "5200000000000015"])
def test_a_challenge_that_is_passed_pays(api: Api, card: str) -> None:
    """A6.2 to A6.4, A7.8."""
    answer = buy(api, card)
    assert (answer.status, answer.code) == (200, PENDING)
    assert all(len(one["value"]) <= 255 for one in answer.body["redirect"]["parameters"])
    shopper = Shopper.of(answer)
    page = shopper.open()
    assert page.status_code == 200
    assert "92.00 EUR" in words(page)
    back = way_back(shopper.follow(shopper.enter()))
    assert back == {"order": "7", "id": answer.id, "resourcePath": f"/v1/payments/{answer.id}"}
    result = api.get(back["resourcePath"])
    assert (result.status, result.code) == (200, PAID)
    assert result.body["threeDSecure"]["authenticationStatus"] == "Y"
    assert result.body["threeDSecure"]["flow"] == "challenge"
    assert "redirect" not in result.body
    assert "verificationId" not in result.body["threeDSecure"]


@pytest.mark.parametrize("card", [FAIL, "5200000000000064"])
def test_a_challenge_that_fails_declines_and_nobody_is_asked(api: Api, card: str) -> None:
    """Decisions, section 5."""
    answer = buy(api, card)
    shopper = Shopper.of(answer)
    way_back(shopper.follow(shopper.enter()))
    result = api.read(answer.id)
    assert (result.status, result.code) == (400, "100.380.401")
    assert result.body["threeDSecure"]["authenticationStatus"] == "N"
    assert sent_to_acquirer(api, answer.id) == []


@pytest.mark.parametrize(
    ("move", "code"),
    [("cancel", "100.390.124"), ("fail", "100.380.401"), ("pass", PAID), ("unavailable", PAID)],
)
def test_every_outcome_is_one_click_away(api: Api, move: str, code: str) -> None:
    """Look and feel: simulator pages."""
    answer = buy(api)
    shopper = Shopper.of(answer)
    way_back(shopper.follow(shopper.press(move)))
    assert api.read(answer.id).code == code


def test_three_wrong_codes_decline(api: Api) -> None:
    """Wrong code: three at most."""
    answer = buy(api)
    shopper = Shopper.of(answer)
    assert "This code is wrong. Try again. Tries left: 2" in words(shopper.follow(shopper.enter("000000")))
    assert "Tries left: 1" in words(shopper.follow(shopper.enter("000000")))
    way_back(shopper.follow(shopper.enter("000000")))
    assert api.read(answer.id).code == "100.380.401"


def test_a_wrong_code_then_the_right_one_pays(api: Api) -> None:
    """The tries are counted, not the first one taken."""
    answer = buy(api)
    shopper = Shopper.of(answer)
    shopper.enter("000000")
    way_back(shopper.follow(shopper.enter()))
    assert api.read(answer.id).code == PAID


def test_a_code_is_sent_again_three_times(api: Api) -> None:
    """Resend, limited."""
    shopper = Shopper.of(buy(api))
    for _ in range(3):
        assert "A new code is on its way" in words(shopper.follow(shopper.press("resend")))
    assert "No more codes can be sent" in words(shopper.follow(shopper.press("resend")))
    assert "Enter the code first" in words(shopper.follow(shopper.enter("")))


@pytest.mark.parametrize(("card", "flow"), [(METHOD, "frictionless"), (METHOD_CHALLENGE, "challenge")])
def test_the_issuers_method_page_goes_before(api: Api, card: str, flow: str) -> None:
    """Decisions, section 5: preconditions."""
    answer = buy(api, card)
    assert answer.code == PENDING
    (page,) = answer.body["redirect"]["preconditions"]
    assert (page["origin"], page["method"]) == ("iframe#hidden", "POST")
    assert page["parameters"][0]["name"] == "threeDSMethodData"
    shopper = Shopper.of(answer)
    assert shopper.http.post("/shopper/method", {"threeDSMethodData": "x"}).status_code == 200
    assert "Confirm with your bank" in words(shopper.open())
    after = shopper.follow(shopper.post(completed="Y"))
    if flow == "challenge":
        assert "Confirm your payment" in words(after)
        after = shopper.follow(shopper.enter())
    way_back(after)
    result = api.read(answer.id)
    assert (result.code, result.body["threeDSecure"]["flow"]) == (PAID, flow)
    row = Authentication.objects.get()
    areq = next(said for said in row.messages if said["messageType"] == "AReq")
    assert areq["threeDSCompInd"] == "Y"
    assert row.number_sealed is None


def test_a_channel_can_leave_the_method_page_out(api: Api, channel: Channel) -> None:
    """Per-channel configuration."""
    configure(channel, method=False)
    assert buy(api, METHOD).code == PAID


# --- when it starts -----------------------------------------------------------------------------------------------

ENROLLED = {"customParameters[3DS2_enrolled]": "true"}


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("card", [PASS, NOT_ENROLLED])
def test_a_challenge_comes_only_on_a_channel_that_authenticates_for_a_card_that_is_enrolled(
    shop: Shop, active: bool, card: str
) -> None:
    """A8.7."""
    api = shop.api_of(shop.open_channel("matrix", three_d_secure=active))
    answer = buy(api, card)
    assert answer.code == (PENDING if active and card == PASS else PAID)


@pytest.mark.parametrize(
    "given",
    [
        {"threeDSecure.disable": "true"},
        PROOF,
        {"paymentType": "CD"},
    ],
    ids=["disabled", "proved elsewhere", "a credit"],
)
def test_nothing_starts_where_nothing_should(api: Api, given: dict[str, str]) -> None:
    """B11.4, B11.6; D32."""
    answer = buy(api, **given)
    assert answer.code == PAID
    assert not Authentication.objects.exists()


def test_disable_false_turns_nothing_on(shop: Shop) -> None:
    """B11.7."""
    assert buy(shop.api, **{"threeDSecure.disable": "false"}).code == PAID
    assert not Authentication.objects.exists()


def test_an_external_proof_goes_onwards_as_it_came(api: Api) -> None:
    """A7.9, B11.4."""
    answer = buy(api, **PROOF)
    (sent,) = sent_to_acquirer(api, answer.id)
    assert {f"threeDSecure.{name}": value for name, value in sent["threeDSecure"].items()} == PROOF | {
        "threeDSecure.verificationId": "***"
    }


def test_our_own_proof_takes_the_same_names_and_exemptions_go_onwards(api: Api) -> None:
    """B11.3; D32."""
    wishes = {"threeDSecure.challengeIndicator": "05", "threeDSecure.exemptionFlag": "02"}
    answer = buy(api, FRICTIONLESS, **wishes)
    (sent,) = sent_to_acquirer(api, answer.id)
    proof = sent["threeDSecure"]
    assert (proof["challengeIndicator"], proof["exemptionFlag"]) == ("05", "02")
    assert (proof["eci"], proof["authenticationStatus"], proof["version"]) == ("05", "Y", "2.2.0")
    assert proof["verificationId"] == "***"
    assert len(proof["dsTransactionId"]) == len(proof["acsTransactionId"]) == 36
    areq = Authentication.objects.get().messages[0]
    assert areq["threeDSRequestorChallengeInd"] == "05"
    assert "exemptionFlag" not in areq
    told = answer.body["threeDSecure"]
    assert (told["challengeIndicator"], told["dsTransactionId"]) == ("05", proof["dsTransactionId"])


def test_after_a_challenge_the_acquirer_gets_proof_and_security_code(api: Api) -> None:
    """The CVV lives until the payment's answer."""
    answer = buy(api, card__cvv="999", **{"threeDSecure.challengeIndicator": "01"})
    assert Suspension.objects.get().secrets_sealed is not None
    shopper = Shopper.of(answer)
    shopper.enter()
    (sent,) = sent_to_acquirer(api, answer.id)
    assert sent["card"]["cvvPresent"] is True
    assert (sent["threeDSecure"]["authenticationStatus"], sent["threeDSecure"]["challengeIndicator"]) == ("Y", "01")
    result = api.read(answer.id)
    assert result.body["result"]["cvvResponse"] == "N"
    assert not Suspension.objects.exists()


@pytest.mark.parametrize("move", ["pass", "cancel", "fail"])
def test_the_security_code_is_gone_with_the_answer_and_stands_nowhere_in_clear(api: Api, move: str) -> None:
    """Issue: the CVV lives only sealed, only until the payment's answer or its deadline."""
    answer = buy(api, card__cvv="873")
    assert Suspension.objects.get().secrets_sealed is not None
    assert "873" not in leaves(answer.body)
    Shopper.of(answer).press(move)
    assert not Suspension.objects.exists()
    assert "873" not in leaves(api.read(answer.id).body)
    row = Authentication.objects.get()
    assert "873" not in leaves([row.messages, row.ask, row.request, row.answer])
    assert places_of(PASS) == set()


def test_a_soft_decline_is_approved_once_the_shopper_has_authenticated(api: Api, shop: Shop) -> None:
    """300.100.100: step up and try again."""
    soft = "4000030001000008"
    assert buy(shop.api, soft).code == "300.100.100"
    assert buy(api, soft).code == PAID
    assert buy(shop.api, soft, **PROOF).code == PAID


# --- conditions ---------------------------------------------------------------------------------------------------


def test_all_browser_and_billing_fields_are_named_at_once(api: Api) -> None:
    """A20.8, A22.2, D34."""
    answer = buy(api, **dict.fromkeys([*BROWSER, *BILLING, "shopperResultUrl"]))
    assert answer.status == 400
    assert set(answer.errors) == {*BROWSER, *BILLING, "shopperResultUrl"}


def test_an_app_and_the_merchant_alone_need_no_browser(api: Api) -> None:
    """B11.5, B11.8."""
    without = dict.fromkeys([*BROWSER, "shopperResultUrl"])
    assert buy(api, FRICTIONLESS, **without, **{"threeDSecure.deviceInfo": "eyJhbGciOiJ"}).code == PAID
    assert buy(api, FRICTIONLESS, **without, **{"threeDSecure.channel": "03"}).code == PAID


def test_nothing_is_demanded_where_nothing_starts(api: Api) -> None:
    """D34."""
    without = dict.fromkeys([*BROWSER, *BILLING, "shopperResultUrl"])
    assert buy(api, **without, **{"threeDSecure.disable": "true"}).code == PAID
    assert buy(api, **without, **PROOF).code == PAID


def test_instalments_need_their_number(api: Api) -> None:
    """B20.4."""
    given = {"standingInstruction.type": "INSTALLMENT"}
    assert set(buy(api, FRICTIONLESS, **given).errors) == {"standingInstruction.numberOfInstallments"}
    more = {
        "standingInstruction.numberOfInstallments": "12",
        "standingInstruction.expiry": "2094-05-14",
        "standingInstruction.frequency": "30",
    }
    assert buy(api, FRICTIONLESS, **given, **more).code == PAID
    areq = Authentication.objects.get().messages[0]
    assert (areq["purchaseInstalData"], areq["recurringExpiry"], areq["recurringFrequency"]) == ("12", "20940514", "30")


# --- steering, wishes, policy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("card", "given", "code"),
    [
        (FRICTIONLESS, {"customParameters[3DS2_flow]": "challenge"}, PENDING),
        (PASS, {"customParameters[3DS2_flow]": "frictionless"}, PAID),
        (PASS, {"customParameters[3DS2_enrolled]": "false"}, PAID),
        (NOT_ENROLLED, {**ENROLLED, "customParameters[3DS2_flow]": "challenge"}, PENDING),
    ],
)
def test_custom_parameters_steer_the_simulator(api: Api, card: str, given: dict[str, str], code: str) -> None:
    """Decisions, section 5."""
    assert buy(api, card, **given).code == code


@pytest.mark.parametrize(
    ("card", "policy", "code"),
    [
        (UNAVAILABLE, {"on_unavailable": "decline"}, "100.390.112"),
        (NOT_ENROLLED, {"on_unavailable": "decline"}, "100.390.110"),
        (ATTEMPT, {"on_attempt": "decline"}, "100.390.109"),
        (PASS, {"networks": ["mastercard"], "on_unavailable": "decline"}, "100.390.110"),
        (PASS, {"networks": ["mastercard"]}, PAID),
    ],
)
def test_the_channel_says_what_happens_without_a_full_proof(
    api: Api, channel: Channel, card: str, policy: dict[str, Any], code: str
) -> None:
    """Per-channel configuration."""
    configure(channel, **policy)
    assert buy(api, card).code == code


def test_the_channels_requestor_and_indicator_are_used(api: Api, channel: Channel) -> None:
    """Part B, requestorId, challengeIndicator."""
    configure(channel, requestors={"visa": {"id": "R-1", "name": "Shop"}}, challenge_indicator="04")
    assert buy(api, FRICTIONLESS).code == PENDING
    areq = Authentication.objects.get().messages[0]
    assert (areq["threeDSRequestorID"], areq["threeDSRequestorChallengeInd"]) == ("R-1", "04")


def test_the_risk_amount_is_authenticated_and_the_amount_is_paid(api: Api) -> None:
    """B16.4, D33: the challenge shows risk.amount."""
    answer = buy(api, **{"risk.amount": "70.00", "threeDSecure.amount": "50.00"})
    shopper = Shopper.of(answer)
    assert "70.00 EUR" in words(shopper.open())
    shopper.enter()
    assert api.read(answer.id).body["amount"] == "92.00"


def test_the_banks_page_shows_the_merchants_hints(api: Api) -> None:
    """B11.12."""
    answer = buy(api, **{"threeDSecure.authenticationInd": "ADD_CARD", "threeDSecure.npa": "true"})
    page = words(Shopper.of(answer).open())
    assert "threeDSRequestorAuthenticationInd 04" in page
    assert "messageCategory 02" in page


# --- 3RI, decoupled, apps -------------------------------------------------------------------------------------------

THREE_RI = {
    **dict.fromkeys([*BROWSER, "shopperResultUrl"]),
    "threeDSecure.channel": "03",
    "threeDSecure.threeRIInd": "RECURRING",
}


@pytest.mark.parametrize(("card", "code"), [(PASS, PAID), (FAIL, "100.390.121"), (FRICTIONLESS, PAID)])
def test_a_requestor_initiated_authentication_needs_no_shopper(api: Api, card: str, code: str) -> None:
    """B11.8, 3RI: answered at once."""
    answer = buy(api, card, **THREE_RI)
    assert answer.code == code
    assert answer.body["threeDSecure"]["flow"] == "3ri"


def move_clock(api: Api, seconds: int) -> None:
    assert api.post("/v1/test/clock", {"advance": str(seconds)}).status == 200


@pytest.mark.parametrize(("card", "code"), [(PASS, PAID), (FAIL, "100.380.401")])
def test_a_decoupled_authentication_is_answered_by_the_tick(api: Api, card: str, code: str) -> None:
    """B11.9, decoupled: pending, then the result."""
    answer = buy(api, card, **{"threeDSecure.decoupled": "true"})
    assert answer.code == PENDING
    registry.run_all_timers()
    assert api.read(answer.id).code == PENDING
    move_clock(api, 31)
    registry.run_all_timers()
    result = api.read(answer.id)
    assert (result.code, result.body["threeDSecure"]["flow"]) == (code, "decoupled")


def test_a_decoupled_authentication_can_be_answered_on_its_page(api: Api) -> None:
    """Every outcome one click away; without a shopper there is no page."""
    answer = buy(api, **{"threeDSecure.decoupled": "true"})
    shopper = Shopper.of(answer)
    assert "Confirm in your banking app" in words(shopper.open())
    way_back(shopper.follow(shopper.press("pass")))
    assert api.read(answer.id).code == PAID
    alone = buy(api, **THREE_RI, **{"threeDSecure.decoupled": "true"})
    assert (alone.code, "redirect" in alone.body) == (PENDING, False)


def test_an_apps_sdk_does_the_challenge_by_json(api: Api) -> None:
    """B11.5: deviceInfo starts the app-based flow."""
    answer = buy(api, **dict.fromkeys(BROWSER), **{"threeDSecure.deviceInfo": "eyJhbGciOiJ"})
    assert answer.code == PENDING
    assert answer.body["threeDSecure"]["acsTransactionId"]
    shopper = Shopper.of(answer)
    address = f"{shopper.path}?token={shopper.token}"

    def say(**creq: str) -> dict[str, Any]:
        found = shopper.http.post(address, json.dumps({"messageType": "CReq", **creq}), "application/json")
        return dict(found.json())

    assert say(challengeDataEntry="000000")["challengeCompletionInd"] == "N"
    passed = say(challengeDataEntry=CODE)
    assert (passed["challengeCompletionInd"], passed["transStatus"]) == ("Y", "Y")
    assert say() == passed
    assert api.read(answer.id).code == PAID
    assert shopper.http.post(address, "[", "application/json").status_code == 400
    assert shopper.http.post(address, "[1]", "application/json").status_code == 400
    assert Authentication.objects.get().messages[0]["sdkEncData"] == "•••"
    assert places_of("eyJhbGciOiJ") <= {"gateway_payment.request"}


@pytest.mark.parametrize(
    "value",
    [
        *('"\\u0000"', '"\\ud800"', '{"x": ["\\u0000"]}', "NaN", "1e999", '{"4111111111111111": 4111111111111111}'),
        *("[" * depth + "]" * depth for depth in (30, 300, 900, 2_000)),
    ],
    ids=lambda value: value[:20],
)
@pytest.mark.parametrize("name", ["sdkTransID", "sdkMaxTimeout", "sdkEphemPubKey", "deviceRenderOptions"])
def test_device_data_of_any_shape_are_kept_without_a_card_number(api: Api, name: str, value: str) -> None:
    """Such a payment was answered with 500: the database keeps no NUL and no half of a character."""
    sdk = json.dumps(SDK)[:-1] + f', "{name}": {value}}}'
    answer = buy(api, FRICTIONLESS, **dict.fromkeys(BROWSER), **{"threeDSecure.deviceInfo": sdk})
    assert answer.code == PAID
    assert "411111" not in json.dumps(Authentication.objects.get().messages).replace("411111******1111", "")


@pytest.mark.parametrize(
    "value", ["\0", "\ud800", "é", "9" * 65, 123456, True, None, {"code": CODE}], ids=lambda value: ascii(value)[:12]
)
@pytest.mark.parametrize("name", ["challengeDataEntry", "challengeCancel", "oobContinue"])
def test_an_apps_nonsense_is_told_as_nonsense_and_costs_no_try(api: Api, name: str, value: object) -> None:
    """B11.5: what a bank could not read (EMV error 203) changes nothing."""
    shopper = Shopper.of(buy(api))
    address = f"{shopper.path}?token={shopper.token}"
    found = shopper.http.post(address, json.dumps({name: value}), "application/json")
    assert (found.status_code, found.json()) == (400, {"messageType": "Erro", "errorCode": "203"})
    row = Authentication.objects.get()
    assert (row.step, row.attempts, row.resends) == (AuthenticationStep.CHALLENGE, 0, 0)


# --- the acquirer's own test system -----------------------------------------------------------------------------


def test_an_acquirer_gets_the_proof_and_custom_parameters_steer_nothing(
    api: Api, channel: Channel, acquirer: StubProcess
) -> None:
    """B11.4; decisions, section 5: steering is for INTERNAL."""
    account_at_stub(channel)
    steered = {"testMode": "EXTERNAL", "customParameters[3DS2_flow]": "frictionless"}
    answer = buy(api, **steered)
    assert answer.code == PENDING
    Shopper.of(answer).enter()
    assert api.read(answer.id).code == "000.100.112"
    (sent,) = sent_to_acquirer(api, answer.id)
    assert sent["threeDSecure"]["authenticationStatus"] == "Y"
    assert sent["card"]["cvvPresent"] is True


# --- time, tabs, strangers ------------------------------------------------------------------------------------------


def test_after_the_deadline_the_payment_is_declined_with_evidence(api: Api) -> None:
    """Issue: time-out; 100.380.501."""
    answer = buy(api)
    registry.run_all_timers()
    assert api.read(answer.id).code == PENDING
    move_clock(api, 10 * 60 + 1)
    registry.run_all_timers()
    assert api.read(answer.id).code == "100.380.501"
    row = Authentication.objects.get()
    assert (row.step, row.code, row.trans_status_reason) == ("done", "100.380.501", "14")
    assert not Suspension.objects.exists()
    assert way_back(Shopper.of(answer).open())["id"] == answer.id


@pytest.mark.parametrize("card", [PASS, METHOD])
def test_an_authentication_whose_worker_died_ends_once_its_payment_has(api: Api, card: str) -> None:
    """R8: killed between keeping the authentication and suspending the payment; recovery declines the payment."""
    answer = buy(api, card)
    Suspension.objects.all().delete()
    Payment.objects.filter(pk=answer.id).update(status="DECLINED", result_code="900.100.301")
    registry.run_all_timers()
    row = Authentication.objects.get()
    assert (row.step, row.code, row.number_sealed) == ("done", "100.380.501", None)
    assert api.read(answer.id).code == "900.100.301"


@pytest.mark.parametrize("card", [PASS, METHOD])
def test_a_page_opened_after_the_deadline_ends_the_payment_before_the_tick_does(api: Api, card: str) -> None:
    """A code that comes too late counts for nothing."""
    answer = buy(api, card)
    jump(10 * 60 + 1)
    shopper = Shopper.of(answer)
    way_back(shopper.follow(shopper.enter()))
    assert api.read(answer.id).code == "100.380.501"


def test_the_method_page_gives_no_more_time(api: Api) -> None:
    """One deadline for the whole authentication."""
    answer = buy(api, METHOD_CHALLENGE)
    before = Authentication.objects.get().deadline
    move_clock(api, 5 * 60)
    Shopper.of(answer).post(completed="Y")
    assert Authentication.objects.get().deadline == before == Suspension.objects.get().deadline


def test_a_decoupled_authentication_has_the_time_that_its_bank_was_told_after_a_method_page_too(api: Api) -> None:
    """threeDSRequestorDecMaxTime, in minutes: an answer within it counts, whose report comes somewhat later."""
    answer = buy(api, METHOD_CHALLENGE, **{"threeDSecure.decoupled": "true"})
    move_clock(api, 5 * 60)
    Shopper.of(answer).post(completed="Y")
    row = Authentication.objects.get()
    areq = next(said for said in row.messages if said["messageType"] == "AReq")
    assert row.step == "decoupled"
    assert row.deadline == Suspension.objects.get().deadline
    asked = clock.merchant_now(row.merchant)
    told = timedelta(minutes=int(areq["threeDSRequestorDecMaxTime"]))
    reported_by = told + timedelta(minutes=5)
    assert reported_by - timedelta(minutes=1) < row.deadline - asked <= reported_by
    # A worker died between the two.
    Suspension.objects.update(deadline=asked - timedelta(minutes=1))
    shopper_return.expire_due_suspensions()
    assert Suspension.objects.get().deadline == row.deadline
    assert Payment.objects.get(pk=answer.id).status == Status.PENDING


def test_an_authentication_that_ended_while_its_bank_was_asked_stays_ended(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its deadline passed, and its payment was declined for it: a late proof changes nothing any more."""
    buy(api, METHOD)
    ident, send = Authentication.objects.get().id, server._send_areq

    def send_late(row: Authentication, *more: Any) -> Authentication:
        server.expire_authentication(ident)
        return send(row, *more)

    monkeypatch.setattr(server, "_send_areq", send_late)
    outcome = server.complete_method(ident, completed=True)
    row = Authentication.objects.get()
    assert (row.step, row.trans_status, row.proof_sealed) == ("done", "N", None)
    assert row.code
    assert outcome == server.complete_method(ident, completed=True)


def test_the_channel_says_how_long_the_shopper_may_take(api: Api, channel: Channel) -> None:
    """Per-channel configuration."""
    configure(channel, challenge_minutes=30)
    answer = buy(api)
    move_clock(api, 29 * 60)
    registry.run_all_timers()
    assert api.read(answer.id).code == PENDING


def test_two_tabs_the_back_button_and_a_double_click_make_one_payment(api: Api) -> None:
    """Issue: compare-and-set."""
    answer = buy(api)
    one, two = Shopper.of(answer), Shopper.of(answer)
    assert one.open().status_code == two.open().status_code == 200
    one.enter()
    for late in (one.enter(), two.enter(), two.press("cancel"), one.press("fail")):
        assert way_back(one.follow(late))["id"] == answer.id
    assert api.read(answer.id).code == PAID
    assert len(sent_to_acquirer(api, answer.id)) == 1
    assert way_back(two.open())["id"] == answer.id


def test_who_authenticated_and_left_is_taken_on_at_the_next_look(api: Api) -> None:
    """A worker that died between the bank's word and the acquirer."""
    answer = buy(api)
    row = Authentication.objects.get()
    server.continue_challenge(row.id, {"challengeDataEntry": CODE})
    assert api.read(answer.id).code == PENDING
    assert way_back(Shopper.of(answer).open())["id"] == answer.id
    assert api.read(answer.id).code == PAID


def test_who_authenticated_and_left_is_taken_on_at_the_deadline(api: Api) -> None:
    """The proof is there: it is no time-out."""
    answer = buy(api)
    server.continue_challenge(Authentication.objects.get().id, {"challengeDataEntry": CODE})
    move_clock(api, 10 * 60 + 1)
    shopper_return.expire_due_suspensions()
    assert api.read(answer.id).code == PAID


def test_without_its_token_a_page_is_not_there(api: Api) -> None:
    """The address is the capability; a token names one payment."""
    first, second = Shopper.of(buy(api)), Shopper.of(buy(api))
    assert first.http.get(first.path).status_code == 404
    assert first.http.get(first.path, {"token": second.token}).status_code == 404
    assert first.http.post(first.path, {"token": "0" * 32, "move": "pass"}).status_code == 404
    assert first.http.get("/shopper/" + "0" * 32, {"token": first.token}).status_code == 404
    assert first.http.get("/shopper/nothing", {"token": first.token}).status_code == 404
    assert Payment.objects.filter(status=Status.PENDING).count() == 2


def test_the_pages_say_nothing_of_the_card_and_may_be_framed(api: Api) -> None:
    """Goals, R8; the widget shows the challenge in a sheet."""
    answer = buy(api, card__cvv="873")
    page = Shopper.of(answer).open()
    text = page.content.decode()
    assert PASS not in text
    assert "•••• 0042" in text
    policy = page["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors *" in policy
    assert "form-action 'self' https://shop.example" in policy
    assert "X-Frame-Options" not in page
    assert page["Cache-Control"] == "no-store"
    assert page["Referrer-Policy"] == "no-referrer"


def test_inside_a_widget_the_end_is_told_to_the_framing_page(api: Api) -> None:
    """?embedded=true: the frame stays, the page around it goes on."""
    answer = buy(api)
    shopper = Shopper.of(answer)
    assert 'name="embedded"' in shopper.open(embedded="true").content.decode()
    done = shopper.follow(shopper.post(move="code", code=CODE, embedded="true"))
    assert done.status_code == 200
    assert f'data-done="{answer.id}"' in done.content.decode()


@pytest.mark.parametrize("code", ["1", "2", "3", "4", "5", None])
def test_the_challenge_window_is_the_one_that_was_asked_for(api: Api, code: str | None) -> None:
    """A20.10."""
    answer = buy(api, **{"customer.browser.challengeWindow": code})
    shown = f"0{code or 5}"
    assert f'data-window="{shown}"' in Shopper.of(answer).open().content.decode()


def test_a_shopper_without_a_way_back_is_told_how_it_went(api: Api) -> None:
    """An app has no shopperResultUrl."""
    given = {**dict.fromkeys([*BROWSER, "shopperResultUrl"]), "threeDSecure.deviceInfo": "eyJhbGciOiJ"}
    shopper = Shopper.of(buy(api, **given))
    assert "went through" in words(shopper.follow(shopper.enter()))


def test_in_live_no_directory_is_there_and_the_payment_is_declined(api: Api, channel: Channel, live: None) -> None:
    """No simulator outside the test environment."""
    configure(channel, on_unavailable="decline")
    answer = buy(api.over_tls())
    assert answer.code in ("600.200.700", "100.390.106")
    assert answer.status == 400


def test_after_a_challenge_approvals_count_against_failures_too(api: Api, channel: Channel) -> None:
    """Issue: normal traffic from one address is not stopped, on a channel that challenges every card either."""
    Channel.objects.filter(pk=channel.pk).update(card_testing={"failures": 3})
    steered = {"customer__ip": "192.0.2.7", "customParameters[3DS2_flow]": "challenge"}
    bad, good = "4000020000000000", "4200001234567897"  # no published cards: those are not counted
    for card in (bad, good, bad, good, bad, good, bad):
        answer = buy(api, card, **steered)
        Shopper.of(answer).enter()
    flow = {"customParameters[3DS2_flow]": "frictionless"}
    assert buy(api, good, customer__ip="192.0.2.7", **flow).code == PAID
