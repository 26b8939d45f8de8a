"""Soft decline → challenge: the bank that wants an authentication gets it in the same payment. docs/decisions/0104."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from gateway.connectors.iso8583.response_codes import RESULT_BY_BRAND_AND_DE39
from gateway.core import clock
from gateway.models import (
    AcquirerExchange,
    Authentication,
    CardDecline,
    Channel,
    Notification,
    OpenPayment,
    Payment,
    PaymentEvent,
    Registration,
    Suspension,
    ThreeDSecureConfiguration,
)
from gateway.payments import recovery, shopper_authentication, shopper_return
from gateway.payments.outcomes import Suspended
from gateway.risk.retry_rules import NOT_BY_MERCHANT
from gateway.threeds import authentications, server
from gateway.threeds.server_setup import set_server_secret
from gateway.timers import registry
from tests.gateway.threeds_protocol.test_messages import SDK
from tests.support.client import Answer, Api
from tests.support.clock import jump
from tests.support.database import leaves, places_of, statements
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, account_at_host
from tests.support.recovery import recover_after
from tests.support.stub import StubProcess, account_at_stub
from tests.support.threads import at_once, times
from tests.support.threeds import BROWSER, CODE, FRICTIONLESS, METHOD, PASS, Shopper, buy, fields, way_back
from tests.support.threeds_server import SECRET, SLOW_S, card_of, running_threeds_server

pytestmark = pytest.mark.django_db

PAID, PENDING, SOFT = "000.100.110", "000.200.000", "300.100.100"
PAID_OUTSIDE = "000.100.112"
ONLY_IF_ASKED, MASTERCARD_ONLY_IF_ASKED = "4000030002000007", "5200030002000002"
EXEMPTED = "4000030001000008"
"""Authenticated without a challenge where no exemption is asked for."""
UNPUBLISHED = "4012888888881881"
STEPPED_UP = ["begin", "step_up", "suspend", "resume", "approve"]


def open_channel(shop: Shop, **values: Any) -> Channel:
    channel = shop.open_channel("stepping up", three_d_secure=True)
    ThreeDSecureConfiguration.objects.create(channel=channel, on_soft_decline="challenge", **values)
    return channel


@pytest.fixture
def channel(shop: Shop) -> Channel:
    return open_channel(shop)


@pytest.fixture
def api(shop: Shop, channel: Channel) -> Api:
    return shop.api_of(channel)


def events(answer: Answer) -> list[str]:
    rows = PaymentEvent.objects.filter(payment=Payment.objects.get(pk=answer.id)).order_by("sequence")
    return list(rows.values_list("event", flat=True))


def submissions(answer: Answer) -> list[AcquirerExchange]:
    return list(AcquirerExchange.objects.filter(payment=answer.id, kind="submit").order_by("id"))


def sent_to_acquirer(api: Api, answer: Answer) -> list[dict[str, Any]]:
    messages = api.get("/v1/test/acquirer/messages", {"id": answer.id}).body["messages"]
    return [message["sent"] for message in messages]


# --- the way of one payment -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("card", [ONLY_IF_ASKED, MASTERCARD_ONLY_IF_ASKED])
def test_a_soft_decline_is_challenged_and_paid_as_one_payment(api: Api, card: str) -> None:
    answer = buy(api, card)
    assert (answer.status, answer.code) == (200, PENDING)
    assert answer.body["redirect"]["url"].endswith(f"/shopper/{answer.id}")
    assert events(answer) == ["begin", "step_up", "suspend"]
    assert api.read(answer.id).code == PENDING
    shopper = Shopper.of(answer)
    assert way_back(shopper.follow(shopper.enter()))["id"] == answer.id
    result = api.read(answer.id)
    assert (result.status, result.code) == (200, PAID)
    shown = result.body["threeDSecure"]
    assert (shown["flow"], shown["authenticationStatus"]) == ("challenge", "Y")
    assert events(answer) == STEPPED_UP
    assert [row.received["responseCode"] for row in submissions(answer)][1:] == ["00"]
    assert PaymentEvent.objects.get(payment=answer.id, event="step_up").result_code == SOFT
    assert Payment.objects.count() == 1
    assert result.body["resultDetails"]["AcquirerResponse"] == "00"


def test_an_accepted_exemption_that_the_bank_declines_is_followed_by_a_challenge(api: Api) -> None:
    """The exemption is not asked for again: neither of the directory nor of the acquirer."""
    wish = {"threeDSecure.challengeIndicator": "06", "threeDSecure.exemptionFlag": "02"}
    answer = buy(api, EXEMPTED, **wish)
    assert answer.code == PENDING
    Shopper.of(answer).enter()
    assert api.read(answer.id).code == PAID
    first, second = (message["threeDSecure"] for message in sent_to_acquirer(api, answer))
    assert (first["exemptionFlag"], first["authenticationStatus"]) == ("02", "I")
    assert "exemptionFlag" not in second
    assert second["challengeIndicator"] == "04"
    asked = [row.messages[0] for row in Authentication.objects.order_by("attempt")]
    assert [areq["threeDSRequestorChallengeInd"] for areq in asked] == ["06", "04"]


def test_a_slow_acquirer_does_not_keep_the_shopper_from_the_challenge(api: Api) -> None:
    """While the payment waits no acquirer is called, so the time of a failover does not bound it."""
    with override_settings(GATEWAY_FAILOVER_WITHIN_S=0):
        answer = buy(api, ONLY_IF_ASKED)
    assert answer.code == PENDING
    Shopper.of(answer).enter()
    assert api.read(answer.id).code == PAID


def test_without_the_switch_the_answer_is_the_soft_decline(shop: Shop) -> None:
    """The default: what clients have in their code stays what they get."""
    for channel in (shop.channel, shop.open_channel("authenticating", three_d_secure=True)):
        answer = buy(shop.api_of(channel), ONLY_IF_ASKED)
        assert (answer.status, answer.code) == (400, SOFT)
        assert events(answer) == ["begin", "decline"]
        assert len(submissions(answer)) == 1


@pytest.mark.parametrize(("move", "code"), [("cancel", "100.390.124"), ("fail", "100.380.401"), ("unavailable", SOFT)])
def test_whoever_does_not_authenticate_is_declined_and_the_bank_not_asked_again(api: Api, move: str, code: str) -> None:
    answer = buy(api, ONLY_IF_ASKED)
    shopper = Shopper.of(answer)
    assert way_back(shopper.follow(shopper.press(move)))["id"] == answer.id
    result = api.read(answer.id)
    assert (result.status, result.code) == (400, code)
    assert events(answer) == ["begin", "step_up", "suspend", "decline"]
    assert len(submissions(answer)) == 1
    assert not Suspension.objects.exists()
    assert not OpenPayment.objects.exists()


def test_who_takes_too_long_is_declined(api: Api) -> None:
    answer = buy(api, ONLY_IF_ASKED)
    jump(10 * 60 + 1)
    shopper_return.expire_due_suspensions()
    assert api.read(answer.id).code == "100.380.501"
    Shopper.of(answer).enter()
    assert api.read(answer.id).code == "100.380.501"
    assert len(submissions(answer)) == 1


def test_the_same_idempotency_key_is_the_same_payment_before_and_after(api: Api) -> None:
    key = {"Idempotency_Key": "step-up-1"}
    first = api.post("/v1/payments", fields(ONLY_IF_ASKED), **key)
    again = api.post("/v1/payments", fields(ONLY_IF_ASKED), **key)
    assert first.body == again.body
    assert first.code == PENDING
    Shopper.of(first).enter()
    assert api.post("/v1/payments", fields(ONLY_IF_ASKED), **key).id == first.id
    assert Payment.objects.count() == 1
    assert len(submissions(first)) == 2


def test_webhooks_say_pending_once_and_the_end_once(api: Api) -> None:
    answer = buy(api, ONLY_IF_ASKED)
    assert Notification.objects.filter(payment_id=answer.id).count() == 1
    Shopper.of(answer).enter()
    rows = Notification.objects.filter(payment_id=answer.id).order_by("sequence")
    assert [row.sequence for row in rows] == [3, 5]


def test_an_authorization_that_was_stepped_up_is_captured_and_refunded(api: Api) -> None:
    answer = buy(api, ONLY_IF_ASKED, paymentType="PA")
    Shopper.of(answer).enter()
    captured = api.follow(answer.id, "CP", "92.00")
    assert captured.code == PAID
    assert api.follow(captured.id, "RF", "92.00").code == PAID


def test_the_security_code_is_gone_with_the_soft_decline(api: Api) -> None:
    """PCI DSS 4.0.1, 3.3.1: the authorization process completes with the response, approval or decline; what is left of
    the code after it is not even sealed. The challenge's proof goes without one."""
    answer = buy(api, ONLY_IF_ASKED, card__cvv="873")
    assert Suspension.objects.get().secrets_sealed is None
    assert "873" not in leaves(answer.body)
    Shopper.of(answer).enter()
    assert not Suspension.objects.exists()
    assert [sent["card"]["cvvPresent"] for sent in sent_to_acquirer(api, answer)] == [True, False]
    assert places_of(ONLY_IF_ASKED) == set()


def test_a_card_that_is_stored_is_stepped_up_too(api: Api) -> None:
    """A registration asks the bank about the card."""
    unwanted = dict.fromkeys(["amount", "currency", "paymentType"])
    answer = api.post("/v1/registrations", fields(ONLY_IF_ASKED, **unwanted))
    assert answer.code == PENDING, answer
    Shopper.of(answer).enter()
    assert events(answer) == STEPPED_UP
    assert Registration.objects.get().payment.hex == answer.id


def test_an_app_is_challenged_by_its_sdk(api: Api) -> None:
    app = {**dict.fromkeys([*BROWSER, "shopperResultUrl"]), "threeDSecure.deviceInfo": "eyJhbGciOiJ"}
    answer = buy(api, ONLY_IF_ASKED, **app)
    assert answer.code == PENDING
    shopper = Shopper.of(answer)
    sent = json.dumps({"challengeDataEntry": CODE})
    cres = shopper.http.post(f"{shopper.path}?token={shopper.token}", sent, "application/json").json()
    assert cres["transStatus"] == "Y"
    assert api.read(answer.id).code == PAID


# --- never ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        {"threeDSecure.disable": "true"},
        {"transactionCategory": "MO"},
        {"transactionCategory": "TO"},
        {
            "standingInstruction.mode": "REPEATED",
            "standingInstruction.source": "MIT",
            "standingInstruction.initialTransactionId": "380912345678901",
            "card.cvv": None,
        },
        {"threeDSecure.channel": "03", "threeDSecure.threeRIInd": "RECURRING", **dict.fromkeys(BROWSER)},
    ],
    ids=["disabled", "mail order", "telephone order", "merchant-initiated", "3RI"],
)  # fmt: skip
def test_no_challenge_without_a_shopper(api: Api, channel: Channel, sent: dict[str, str | None]) -> None:
    Channel.objects.filter(pk=channel.pk).update(external_references=True)
    answer = buy(api, ONLY_IF_ASKED, **sent)
    assert answer.code == SOFT, answer
    assert events(answer)[-1] == "decline"
    assert "step_up" not in events(answer)


def test_no_challenge_after_a_challenge(api: Api) -> None:
    """The bank had its chance; what it then did not say is not asked once more."""
    answer = buy(api, EXEMPTED, **{"customParameters[3DS2_flow]": "challenge"})
    Shopper.of(answer).press("unavailable")
    assert api.read(answer.id).code == SOFT
    assert events(answer) == ["begin", "suspend", "resume", "decline"]
    assert Authentication.objects.count() == 1


# --- at a processor -------------------------------------------------------------------------------------------------


@pytest.fixture
def host(iso_host: IsoHost, shop: Shop, channel: Channel) -> IsoHost:
    account_at_host(channel, iso_host)
    Channel.objects.filter(pk=channel.pk).update(card_testing={"enabled": False})
    return iso_host


def decline_softly(host: IsoHost, *, times: int = 1, advice: str = "") -> None:
    more = {"de48": f"84{len(advice):02}{advice}"} if advice else {}
    host.next("0200", de39="1A", times=times, **more)


def buy_outside(api: Api, card: str = FRICTIONLESS, **sent: str | None) -> Answer:
    return buy(api, card, testMode="EXTERNAL", **sent)


def test_each_attempt_is_a_message_of_its_own(api: Api, host: IsoHost) -> None:
    """The trace number tells the second from the declined first, so that a reversal can name it."""
    decline_softly(host)
    answer = buy_outside(api)
    assert answer.code == PENDING
    Shopper.of(answer).enter()
    assert api.read(answer.id).code == PAID_OUTSIDE
    first, second = host.seen("0200")
    assert first["11"] != second["11"]
    assert [message["63"] for message in (first, second)] == [answer.id, answer.id]


def test_a_second_attempt_has_its_own_time_and_reference_number(api: Api, host: IsoHost) -> None:
    """It is a new transaction: DE7 is when its message is sent, DE12 and DE13 the same time at the terminal, and DE37
    has its hour and number. Source: ISO 8583:1987, DE7 and DE37; docs/decisions/0094."""
    decline_softly(host)
    answer = buy_outside(api)
    jump(300)
    Shopper.of(answer).enter()
    assert api.read(answer.id).code == PAID_OUTSIDE
    first, second = host.seen("0200")
    resumed = PaymentEvent.objects.get(payment=answer.id, event="resume").at
    assert first["7"] == f"{Payment.objects.get(pk=answer.id).created_at:%m%d%H%M%S}"
    assert second["7"] == f"{resumed:%m%d%H%M%S}" != first["7"]
    assert (second["12"], second["13"]) == (f"{resumed:%H%M%S}", f"{resumed:%m%d}")
    assert second["37"] == f"{resumed.year % 10}{resumed:%j%H}{second['11']}" != first["37"]


@pytest.mark.django_db(transaction=True)
def test_the_reversal_of_a_second_attempt_names_it_by_its_own_numbers(committed: Shop, iso_host: IsoHost) -> None:
    """DE90 has DE11 and DE7 of the message that had no answer, though another process sends the reversal."""
    channel = open_channel(committed)
    account_at_host(channel, iso_host)
    api = committed.api_of(channel)
    decline_softly(iso_host)
    answer = buy_outside(api)
    jump(300)
    iso_host.next("0200", "lost")
    Shopper.of(answer).enter()
    assert api.read(answer.id).code == "000.200.001"
    # As a worker that died before it could write what it had sent.
    Payment.objects.filter(pk=answer.id).update(connector_tx_id="")
    recover_after(60)
    second = iso_host.seen("0200")[1]
    (reversal,) = iso_host.seen("0420")
    assert reversal["90"][:20] == f"0200{second['11']}{second['7']}"
    assert [reversal[number] for number in ("7", "12", "13", "37")] == [second[n] for n in ("7", "12", "13", "37")]
    assert iso_host.holds == 0


def test_a_payment_that_waited_for_its_shopper_has_the_time_at_which_it_is_sent(api: Api, host: IsoHost) -> None:
    """An issuer that challenges at once: its shopper took five minutes."""
    answer = buy_outside(api, PASS)
    jump(300)
    Shopper.of(answer).enter()
    assert api.read(answer.id).code == PAID_OUTSIDE
    (sent,) = host.seen("0200")
    resumed = PaymentEvent.objects.get(payment=answer.id, event="resume").at
    assert sent["7"] == f"{resumed:%m%d%H%M%S}" != f"{Payment.objects.get(pk=answer.id).created_at:%m%d%H%M%S}"


def test_a_second_soft_decline_is_the_end(api: Api, host: IsoHost) -> None:
    """At most once per payment."""
    decline_softly(host, times=2)
    answer = buy_outside(api)
    Shopper.of(answer).enter()
    assert api.read(answer.id).code == SOFT
    assert events(answer) == ["begin", "step_up", "suspend", "resume", "decline"]
    assert Authentication.objects.count() == 2


def test_a_method_page_before_the_soft_decline_leads_on_to_the_challenge(api: Api, host: IsoHost) -> None:
    """The shopper is on our page already and stays there; at the end they are at the shop."""
    decline_softly(host)
    answer = buy_outside(api, METHOD)
    shopper = Shopper.of(answer)
    again = shopper.follow(shopper.post(completed="Y"))
    assert again.status_code == 200
    assert events(answer) == ["begin", "suspend", "resume", "step_up", "suspend"]
    challenge = shopper.follow(shopper.post(completed="Y"))
    assert b'name="code"' in challenge.content
    assert way_back(shopper.follow(shopper.enter()))["id"] == answer.id
    assert api.read(answer.id).code == PAID_OUTSIDE
    assert len(host.seen("0200")) == 2


def test_the_outcome_of_the_first_authentication_does_not_continue_the_second(api: Api, host: IsoHost) -> None:
    """A tab that is late with the method page's end must not pay without the challenge."""
    decline_softly(host)
    answer = buy_outside(api, METHOD)
    Shopper.of(answer).post(completed="Y")
    payment = Payment.objects.select_related("merchant", "channel").get(pk=answer.id)
    stale = authentications.outcome_from_authentication(Authentication.objects.get(attempt=1))
    assert shopper_return.apply_authentication_outcome(payment, stale, None).status == "PENDING"
    assert len(host.seen("0200")) == 1
    assert Suspension.objects.count() == 1


def test_a_form_of_the_first_authentication_that_is_sent_again_does_not_move_the_second(
    api: Api, host: IsoHost
) -> None:
    """A double click, or a second tab: the method page of the second has not loaded yet."""
    decline_softly(host)
    answer = buy_outside(api, METHOD)
    shopper = Shopper.of(answer)
    assert b'name="attempt" value="1"' in shopper.open().content
    first = {"completed": "Y", "attempt": "1"}
    for _ in range(2):
        page = shopper.follow(shopper.post(**first))
    assert Authentication.objects.get(attempt=2).step == "method"
    assert b'name="attempt" value="2"' in page.content
    challenge = shopper.follow(shopper.post(completed="Y", attempt="2"))
    assert b'name="code"' in challenge.content
    shopper.post(**first)
    row = Authentication.objects.get(attempt=2)
    assert (row.step, row.attempts) == ("challenge", 0)
    assert way_back(shopper.follow(shopper.enter()))["id"] == answer.id


@pytest.mark.parametrize("advice", ["03", "25"])
def test_an_issuer_that_forbids_another_try_is_not_asked_again(api: Api, host: IsoHost, advice: str) -> None:
    decline_softly(host, advice=advice)
    answer = buy_outside(api, UNPUBLISHED)
    assert answer.code == SOFT, answer
    assert len(host.seen("0200")) == 1
    assert Authentication.objects.count() == 1


def test_the_declined_attempt_counts_for_the_schemes_rules(api: Api, host: IsoHost) -> None:
    """And at their limit there is no second attempt."""
    decline_softly(host)
    answer = buy_outside(api, UNPUBLISHED)
    assert answer.code == PENDING
    (row,) = CardDecline.objects.all()
    Shopper.of(answer).enter()
    assert api.read(answer.id).code == PAID_OUTSIDE
    assert CardDecline.objects.count() == 1
    same = {"merchant_id": row.merchant_id, "key": row.key, "payment": row.payment, "at": row.at}
    CardDecline.objects.bulk_create(CardDecline(**same) for _ in range(13))
    decline_softly(host)
    assert buy_outside(api, UNPUBLISHED).code == SOFT
    assert CardDecline.objects.count() == 15
    assert buy_outside(api, UNPUBLISHED).code == "700.600.002"


@pytest.mark.parametrize(("advice", "stops"), [("", ""), ("21", NOT_BY_MERCHANT)])
def test_the_declined_attempt_counts_with_the_issuers_advice(api: Api, host: IsoHost, advice: str, stops: str) -> None:
    """Advice about payments that the merchant initiates forbids no challenge, and holds afterwards."""
    decline_softly(host, advice=advice)
    answer = buy_outside(api, UNPUBLISHED)
    assert answer.code == PENDING, answer
    assert CardDecline.objects.get().stops == stops


def test_every_soft_decline_of_a_network_is_one(api: Api, host: IsoHost) -> None:
    codes = {de39 for (brand, de39), code in RESULT_BY_BRAND_AND_DE39.items() if code == SOFT and brand == "MASTER"}
    assert codes == {"65"}
    host.next("0200", de39="65")
    answer = buy_outside(api, "5200000000000007")
    assert answer.code == PENDING


def test_a_plain_payment_costs_no_further_statement(shop: Shop) -> None:
    costs = []
    for policy in ("decline", "challenge"):
        channel = shop.open_channel(policy, three_d_secure=True)
        ThreeDSecureConfiguration.objects.create(channel=channel, on_soft_decline=policy)
        api = shop.api_of(channel)
        buy(api, FRICTIONLESS)
        with statements() as seen:
            assert buy(api, FRICTIONLESS).code == PAID
        costs.append(len(seen))
    assert costs[0] == costs[1]


# --- an external 3DS server, which may answer a mandated challenge otherwise -----------------------------------------


@pytest.fixture
def server_channel(channel: Channel, host: IsoHost) -> Iterator[Channel]:
    with running_threeds_server() as fake:
        row = ThreeDSecureConfiguration.objects.get(channel=channel)
        row.server_url, row.requestor_url = fake.url, "https://shop.example"
        row.requestors = {"visa": {"id": "R-1", "name": "Shop", "acquirerBin": "400000", "acquirerMerchantId": "M-1"}}
        row.merchant_category_code, row.merchant_country = "5411", "DE"
        set_server_secret(row, SECRET)
        row.save()
        yield channel


def buy_by_server(api: Api, scenario: str, **sent: str | None) -> Answer:
    browser = {"customer__ip": "192.0.2.7", "customer__browser__screenColorDepth": "24"}
    return buy_outside(api, card_of(scenario), **(browser | sent))


@pytest.mark.parametrize(("softly", "code", "last"), [(1, PAID_OUTSIDE, "approve"), (2, SOFT, "decline")])
def test_a_bank_that_authenticates_without_a_challenge_after_all_is_asked_at_once(
    server_channel: Channel, api: Api, host: IsoHost, softly: int, code: str, last: str
) -> None:
    """No redirect; and at most once."""
    decline_softly(host, times=softly)
    answer = buy_by_server(api, "frictionless")
    assert answer.code == code, answer
    assert events(answer) == ["begin", "step_up", last]
    assert len(host.seen("0200")) == 2
    assert OpenPayment.objects.count() == 0
    rows = Authentication.objects.order_by("attempt")
    assert [row.messages[0].get("threeDSRequestorChallengeInd") for row in rows] == [None, "04"]


def test_a_second_authentication_that_takes_too_long_leaves_the_soft_decline(
    server_channel: Channel, api: Api, host: IsoHost
) -> None:
    """The time in which another acquirer may be called is the payment's, not each attempt's."""
    decline_softly(host)
    with override_settings(GATEWAY_FAILOVER_WITHIN_S=SLOW_S):
        answer = buy_by_server(api, "slow second")
    assert answer.code == SOFT, answer
    assert events(answer) == ["begin", "decline"]
    assert len(host.seen("0200")) == 1


def test_a_bank_that_does_not_authenticate_after_all_leaves_the_soft_decline(
    server_channel: Channel, api: Api, host: IsoHost
) -> None:
    decline_softly(host)
    answer = buy_by_server(api, "exempted", **{"threeDSecure.challengeIndicator": "05"})
    assert answer.code == SOFT, answer
    assert events(answer) == ["begin", "decline"]
    assert len(host.seen("0200")) == 1


def test_an_app_is_not_challenged_by_a_server_that_cannot(server_channel: Channel, api: Api, host: IsoHost) -> None:
    """Its merchant is told of the soft decline, which a challenge that never ends would hide."""
    decline_softly(host)
    app = dict.fromkeys([*BROWSER, "shopperResultUrl"]) | {"threeDSecure.deviceInfo": json.dumps(SDK)}
    answer = buy_by_server(api, "frictionless", **app)
    assert answer.code == SOFT, answer
    assert events(answer) == ["begin", "decline"]
    assert Authentication.objects.count() == 1


# --- faults and interleavings ---------------------------------------------------------------------------------------


@pytest.fixture
def stubbed(committed: Shop, acquirer: StubProcess) -> tuple[Api, StubProcess]:
    """The shop at a stub acquirer, all of it committed: recovery asks in threads of its own."""
    channel = open_channel(committed)
    account_at_stub(channel)
    return committed.api_of(channel), acquirer


def standing(acquirer: StubProcess) -> list[str]:
    """Keys that the acquirer has approved and not taken back."""
    taken_back = {entry["key"] for entry in acquirer.entries(kind="void", outcome="reversed")}
    return [
        entry["key"] for entry in acquirer.entries(kind="submit", outcome="approved") if entry["key"] not in taken_back
    ]


@pytest.mark.django_db(transaction=True)
def test_a_lost_answer_to_the_first_attempt_is_the_decline_that_it_was(stubbed: tuple[Api, StubProcess]) -> None:
    api, acquirer = stubbed
    acquirer.control.steer(kinds=["submit"], silent_after=1)
    answer = buy_outside(api, ONLY_IF_ASKED)
    acquirer.control.steer()
    recover_after(60)
    assert api.read(answer.id).code == SOFT
    assert events(answer) == ["begin", "lose", "decline"]
    assert standing(acquirer) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("fault", "code", "booked"), [("silent_after", PAID_OUTSIDE, 1), ("silent_before", "900.100.301", 0)]
)
def test_a_lost_answer_to_the_second_attempt_is_inquired_about(
    stubbed: tuple[Api, StubProcess], fault: str, code: str, booked: int
) -> None:
    """The inquiry names the second attempt, not the declined first one."""
    api, acquirer = stubbed
    answer = buy_outside(api, ONLY_IF_ASKED)
    acquirer.control.steer(kinds=["submit"], **{fault: 1})
    Shopper.of(answer).enter()
    assert api.read(answer.id).code == "000.200.001"
    acquirer.control.steer()
    recover_after(60)
    result = api.read(answer.id)
    assert result.code == code
    assert standing(acquirer) == [f"{answer.id}-2"] * booked
    assert result.code != SOFT


@pytest.mark.django_db(transaction=True)
def test_a_crash_after_the_soft_decline_was_recorded_charges_nothing(stubbed: tuple[Api, StubProcess]) -> None:
    """The worker dies before the payment waits for its shopper: the issuer's answer stands, and it is asked nothing."""
    api, acquirer = stubbed
    answer = buy_outside(api, ONLY_IF_ASKED)
    payment = Payment.objects.get(pk=answer.id)
    said = submissions(answer)[0].received["response"]
    # As the statement of the step-up left it.
    Suspension.objects.all().delete()
    Payment.objects.filter(pk=payment.pk).update(status="STARTED", result_code="")
    OpenPayment.objects.create(payment=payment, recover_at=clock.real_now(), inquiries=0)
    recover_after(60)
    result = api.read(answer.id)
    assert (result.code, result.body["resultDetails"]["AcquirerResponse"]) == (SOFT, said)
    assert events(answer)[-1] == "decline"
    Shopper.of(answer).enter()
    assert api.read(answer.id).code == SOFT
    assert standing(acquirer) == []
    assert acquirer.entries(kind="void") == []
    assert not OpenPayment.objects.exists()
    registry.run_all_timers()
    assert set(Authentication.objects.values_list("step", flat=True)) == {"done"}


@pytest.mark.django_db(transaction=True)
def test_a_worker_stopped_before_the_redirect_finds_payment_and_authentication_ended(
    stubbed: tuple[Api, StubProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stepped on two connections: recovery and the timers run between the step-up's statement and the suspension."""
    api, acquirer = stubbed
    suspend = shopper_authentication.suspend_for_shopper
    steps: list[tuple[str, str]] = []

    def overtake() -> None:
        recover_after(60)
        steps.append((Payment.objects.get().status, Authentication.objects.get(attempt=2).step))
        registry.run_all_timers()
        steps.append((Payment.objects.get().status, Authentication.objects.get(attempt=2).step))

    def stopped(*given: Any, **named: Any) -> Suspended:
        at_once(overtake)
        return suspend(*given, **named)

    monkeypatch.setattr(shopper_authentication, "suspend_for_shopper", stopped)
    answer = buy_outside(api, ONLY_IF_ASKED)
    assert steps == [("DECLINED", "challenge"), ("DECLINED", "done")]
    assert answer.code == api.read(answer.id).code == SOFT
    assert Authentication.objects.get(attempt=2).step == "done"
    assert (standing(acquirer), Suspension.objects.count()) == ([], 0)


def test_a_worker_that_recovery_overtook_at_the_soft_decline_leaves_its_result(api: Api, channel: Channel) -> None:
    """Between the first answer and its record: the decline stands, and no challenge begins."""
    answer = buy(api, ONLY_IF_ASKED)
    payment = Payment.objects.select_related("merchant", "channel").get(pk=answer.id)
    row = Authentication.objects.get(attempt=2)
    Payment.objects.filter(pk=payment.pk).update(sequence=payment.sequence + 1)
    server.continue_challenge(row.id, {"challengeDataEntry": CODE})
    outcome = authentications.outcome_from_authentication(Authentication.objects.get(pk=row.pk))
    assert shopper_return.apply_authentication_outcome(payment, outcome, None).status == "PENDING"
    assert len(submissions(answer)) == 1


@pytest.mark.django_db(transaction=True)
def test_ten_right_codes_at_once_pay_once(committed: Shop) -> None:
    api = committed.api_of(open_channel(committed))
    answer = buy(api, ONLY_IF_ASKED)
    redirect = answer.body["redirect"]
    at_once(*times(10, lambda: Shopper(redirect).enter()))
    assert api.read(answer.id).code == PAID
    assert events(answer) == STEPPED_UP
    assert len(submissions(answer)) == 2


@pytest.mark.django_db(transaction=True)
def test_a_double_submit_under_one_key_steps_up_once(committed: Shop) -> None:
    api = committed.api_of(open_channel(committed))
    key = {"Idempotency_Key": "double"}
    answers = at_once(*times(6, lambda: api.post("/v1/payments", fields(ONLY_IF_ASKED), **key)))
    assert {answer.id for answer in answers if answer.status == 200} == {Payment.objects.get().id.hex}
    assert Authentication.objects.count() == 2
    assert AcquirerExchange.objects.count() == 1


def test_a_challenge_passes_the_plain_card_as_before(api: Api) -> None:
    """The switch changes nothing for a bank that challenges by itself."""
    answer = buy(api, PASS)
    Shopper.of(answer).enter()
    assert events(answer) == ["begin", "suspend", "resume", "approve"]
    assert recovery.recover_due_payments().claimed == 0
