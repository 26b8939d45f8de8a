"""Exemptions by rule: asked for a payment, counted against its card's limits, shown. docs/decisions/0105."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from gateway.connectors.accounts import claims_exemption
from gateway.connectors.iso8583.private_field import parse_private_field
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock
from gateway.models import (
    Authentication,
    Channel,
    ExemptionCount,
    ExemptionRequest,
    Payment,
    RiskSet,
    ThreeDSecureConfiguration,
)
from gateway.payments import store
from gateway.payments.chain_amounts import Chain
from gateway.payments.exempting import asked_at_authorization
from gateway.payments.fraud_liability import FraudLiability, resolve_fraud_liability
from gateway.payments.points_of_service import find_point_of_service
from gateway.threeds.exemption_rules import ExemptionStage, StageChoice
from gateway.threeds.server_setup import set_server_secret
from tests.support.acquirers import Killed
from tests.support.card_api import account_at
from tests.support.client import Answer, Api
from tests.support.database import leaves, statements
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, account_at_host
from tests.support.recovery import recover_after
from tests.support.stub import StubProcess, account_at_stub
from tests.support.threads import at_once
from tests.support.threeds import BROWSER, FRICTIONLESS, PASS, UNAVAILABLE, Shopper, buy, fields
from tests.support.threeds_server import SECRET, card_of, running_threeds_server

pytestmark = pytest.mark.django_db

PAID, PENDING, SOFT, DECLINED = "000.100.110", "000.200.000", "300.100.100", "800.100.153"
ACCEPTS, ACCEPTS_MASTER = "4200000000000067", "5200000000000049"
"""Accept an exemption at the authentication, and challenge the shopper without one."""
SOFT_CARD = "4000030002000007"
"""Not authenticated unless a challenge is asked for, and declined softly without."""
LOW_VALUE = {"lowValue": True, "askedAt": "authorization"}


def open_channel(shop: Shop, exemptions: dict[str, Any], *, name: str = "exempting", **values: Any) -> Channel:
    channel = shop.open_channel(name, three_d_secure=True, exemptions=exemptions, **values)
    ThreeDSecureConfiguration.objects.create(channel=channel, on_soft_decline="challenge")
    return channel


@pytest.fixture
def channel(shop: Shop) -> Channel:
    return open_channel(shop, LOW_VALUE)


@pytest.fixture
def api(shop: Shop, channel: Channel) -> Api:
    return shop.api_of(channel)


def sent_to_acquirer(api: Api, answer: Answer) -> list[dict[str, Any]]:
    messages = api.get("/v1/test/acquirer/messages", {"id": answer.id}).body["messages"]
    return [message["sent"].get("threeDSecure", {}) for message in messages]


def count() -> tuple[int, Decimal, int]:
    row = ExemptionCount.objects.get()
    return row.payments, row.amount, row.authentications


def stored(answer: Answer) -> Payment:
    return Payment.objects.select_related("channel").get(pk=answer.id)


# --- at the authorization -------------------------------------------------------------------------------------------


def test_a_low_value_payment_is_authorized_without_a_challenge_and_told_to_the_acquirer(api: Api) -> None:
    """This card is challenged otherwise."""
    answer = buy(api, PASS, amount="12.00")
    assert (answer.status, answer.code) == (200, PAID)
    assert not Authentication.objects.exists()
    assert sent_to_acquirer(api, answer) == [{"challengeIndicator": "02", "exemptionFlag": "01"}]
    assert answer.body["threeDSecure"] == {"challengeIndicator": "02", "exemptionFlag": "01"}
    assert api.read(answer.id).body["threeDSecure"] == answer.body["threeDSecure"]
    assert "exemption" not in answer.body
    row = ExemptionRequest.objects.get()
    assert (row.exemption, row.stage, row.stage_why) == ("LOW_VALUE", "authorization", "set")
    assert (row.euros, row.amount_limit, row.payments, row.amount) == (Decimal(12), 30, 1, Decimal(12))
    assert count() == (1, Decimal(12), 0)


def test_the_merchant_carries_the_loss_of_an_exempted_payment(api: Api) -> None:
    answer = buy(api, PASS, amount="12.00")
    assert resolve_fraud_liability(stored(answer)) is FraudLiability.MERCHANT_EXEMPTED


def test_a_capture_repeats_the_exemption_of_its_authorization(shop: Shop, iso_host: IsoHost) -> None:
    channel = open_channel(shop, LOW_VALUE)
    account_at_host(channel, iso_host)
    api = shop.api_of(channel)
    answer = buy(api, PASS, amount="12.00", paymentType="PA", testMode="EXTERNAL")
    assert api.follow(answer.id, "CP", "12.00").status == 200
    (capture,) = iso_host.seen("0220")
    assert parse_private_field(capture["48"])["exemption"] == "87"


def test_what_the_acquirer_could_not_be_told_is_asked_at_the_authentication(shop: Shop) -> None:
    """The card API takes an exemption beside a cryptogram only: alone it would be a payment without either."""
    channel = open_channel(shop, LOW_VALUE)
    account_at(channel, "http://127.0.0.1:9")
    answer = buy(shop.api_of(channel), PASS, amount="12.00", testMode="EXTERNAL")
    assert answer.code == PENDING
    row = ExemptionRequest.objects.get()
    assert (row.exemption, row.stage, row.stage_why) == ("LOW_VALUE", "authentication", "no claim")
    assert Authentication.objects.exists()


@pytest.mark.parametrize(
    ("connector", "exemption", "brand", "claims"),
    [
        ("stripe", "LOW_VALUE", "VISA", False),
        ("iso8583", "LOW_VALUE", "VISA", True),
        ("iso8583", "TRUSTED_MERCHANT", "MASTER", False),
        ("iso8583", "DELEGATED", "JCB", False),
        ("simulator", "DELEGATED", "JCB", True),
    ],
)
def test_connectors_say_what_they_claim_without_a_proof(
    connector: str, exemption: str, brand: str, claims: bool
) -> None:
    assert claims_exemption(CONNECTORS[connector], exemption, brand) is claims


def test_a_challenge_leaves_a_row_only_for_rules_that_read_it(shop: Shop) -> None:
    """A card that was never counted has nothing to set back; a trusted merchant's card was authenticated here."""
    rows = []
    for rules in ({"corporateBins": ["999999"]}, {"lowValue": True}, {"trusted": True}):
        api = shop.api_of(open_channel(shop, rules, name=next(iter(rules))))
        answer = buy(api, PASS, amount="300.00")
        Shopper.of(answer).enter()
        assert api.read(answer.id).code == PAID
        rows.append(list(ExemptionCount.objects.values_list("payments", "authentications")))
    assert rows == [[], [], [(0, 1)]]


def test_the_sixth_payment_in_a_row_is_challenged_and_begins_the_count_anew(api: Api) -> None:
    """Article 16: five since the last strong authentication."""
    for number in range(1, 6):
        assert buy(api, PASS, amount="10.00").code == PAID
        assert count()[0] == number
    sixth = buy(api, PASS, amount="10.00")
    assert sixth.code == PENDING
    assert count() == (5, Decimal(50), 0)
    Shopper.of(sixth).enter()
    assert api.read(sixth.id).code == PAID
    assert count() == (0, Decimal(0), 1)
    assert buy(api, PASS, amount="10.00").code == PAID
    assert count() == (1, Decimal(10), 1)


@pytest.mark.parametrize("rules", [LOW_VALUE, LOW_VALUE | {"trusted": True}])
def test_each_use_and_each_challenge_keeps_a_cards_count(shop: Shop, rules: dict[str, Any]) -> None:
    """It is forgotten years after the last one."""
    api = shop.api_of(open_channel(shop, rules))
    for amount in ("10.00", "11.00", "300.00"):
        ExemptionCount.objects.update(used_at=clock.real_now() - timedelta(days=900))
        answer = buy(api, PASS, amount=amount)
        if answer.code == PENDING:
            Shopper.of(answer).enter()
        assert api.read(answer.id).code == PAID
        assert ExemptionCount.objects.get().used_at > clock.real_now() - timedelta(days=1), amount
    assert count() == (0, Decimal(0), 1)


def test_100_eur_end_the_count_before_five_payments_do(api: Api) -> None:
    for _ in range(3):
        assert buy(api, PASS, amount="30.00").code == PAID
    assert buy(api, PASS, amount="10.01").code == PENDING
    assert buy(api, PASS, amount="10.00").code == PAID
    assert count() == (4, Decimal(100), 0)


@pytest.mark.django_db(transaction=True)
def test_parallel_payments_do_not_pass_a_limit_together(committed: Shop) -> None:
    """Eight tabs, five payments."""
    api = committed.api_of(open_channel(committed, LOW_VALUE))
    answers = at_once(*[lambda: buy(api, PASS, amount="5.00")] * 8)
    assert sorted(answer.code for answer in answers) == [PAID] * 5 + [PENDING] * 3
    assert count() == (5, Decimal(25), 0)
    assert ExemptionRequest.objects.count() == 5


def test_another_card_and_another_merchant_count_for_themselves(api: Api, shop: Shop) -> None:
    for _ in range(5):
        buy(api, PASS, amount="5.00")
    assert buy(api, "5200000000000007", amount="5.00").code == PAID
    assert ExemptionCount.objects.count() == 2
    other = open_channel(shop, LOW_VALUE, name="of the same merchant")
    assert buy(shop.api_of(other), PASS, amount="5.00").code == PENDING


def test_a_declined_payment_gives_its_count_back(api: Api) -> None:
    assert buy(api, "4000015300000007", amount="20.00").code == DECLINED
    assert ExemptionRequest.objects.get().amount == Decimal(20)
    assert count() == (0, Decimal(0), 0)


def test_a_soft_decline_of_an_exemption_is_challenged_and_then_the_count_begins_anew(api: Api) -> None:
    answer = buy(api, SOFT_CARD, amount="10.00")
    assert answer.code == PENDING
    assert "exemptionFlag" not in answer.body.get("threeDSecure", {})
    assert count() == (1, Decimal(10), 0)
    Shopper.of(answer).enter()
    result = api.read(answer.id)
    assert result.code == PAID
    first, second = sent_to_acquirer(api, answer)
    assert first["exemptionFlag"] == "01"
    assert "exemptionFlag" not in second
    assert count() == (0, Decimal(0), 1)
    assert resolve_fraud_liability(stored(answer)) is FraudLiability.ISSUER


def test_a_shopper_who_then_fails_leaves_the_count_as_it_was(api: Api) -> None:
    answer = buy(api, SOFT_CARD, amount="10.00")
    Shopper.of(answer).press("fail")
    assert api.read(answer.id).status == 400
    assert count() == (0, Decimal(0), 0)


def test_without_the_challenge_a_soft_decline_stands_and_is_given_back(api: Api, channel: Channel) -> None:
    ThreeDSecureConfiguration.objects.filter(pk=channel.pk).update(on_soft_decline="decline")
    assert buy(api, SOFT_CARD, amount="10.00").code == SOFT
    assert count() == (0, Decimal(0), 0)


def test_what_is_given_back_late_does_not_touch_the_count_after_an_authentication(api: Api, channel: Channel) -> None:
    """A payment counted before a challenge, declined after it."""
    waiting = buy(api, SOFT_CARD, amount="10.00")
    challenged = buy(api, SOFT_CARD, amount="50.00")
    Shopper.of(challenged).enter()
    assert count() == (0, Decimal(0), 1)
    Shopper.of(waiting).press("fail")
    assert api.read(waiting.id).status == 400
    assert count() == (0, Decimal(0), 1)


@pytest.mark.django_db(transaction=True)
def test_a_lost_answer_stays_counted_until_recovery_knows_it(committed: Shop, acquirer: StubProcess) -> None:
    """The acquirer declined it, and the exemption is in the payment that recovery reads."""
    channel = open_channel(committed, LOW_VALUE)
    account_at_stub(channel)
    api = committed.api_of(channel)
    acquirer.control.steer(kinds=["submit"], silent_after=1)
    answer = buy(api, "4000015300000007", amount="10.00", testMode="EXTERNAL")
    acquirer.control.steer()
    assert count() == (1, Decimal(10), 0)
    recover_after(60)
    assert stored(answer).status == "DECLINED"
    assert count() == (0, Decimal(0), 0)


# --- at the authentication ------------------------------------------------------------------------------------------


@pytest.fixture
def asking(shop: Shop) -> Api:
    return shop.api_of(open_channel(shop, {"lowValue": True}, name="asking the issuer"))


def test_the_issuer_is_asked_for_no_challenge(asking: Api) -> None:
    answer = buy(asking, UNAVAILABLE, amount="10.00")
    assert answer.code == PAID
    assert Authentication.objects.get().messages[0]["threeDSRequestorChallengeInd"] == "02"
    assert sent_to_acquirer(asking, answer)[0]["exemptionFlag"] == "01"
    assert count() == (1, Decimal(10), 0)
    assert resolve_fraud_liability(stored(answer)) is FraudLiability.MERCHANT_EXEMPTED


def test_an_issuer_that_authenticates_instead_takes_the_liability_and_nothing_is_counted(asking: Api) -> None:
    answer = buy(asking, FRICTIONLESS, amount="10.00")
    assert answer.code == PAID
    assert count() == (0, Decimal(0), 0)
    assert resolve_fraud_liability(stored(answer)) is FraudLiability.ISSUER


def test_an_issuer_that_challenges_nevertheless_begins_the_count_anew(asking: Api) -> None:
    answer = buy(asking, PASS, amount="10.00")
    assert answer.code == PENDING
    assert ExemptionRequest.objects.get().stage == "authentication"
    Shopper.of(answer).enter()
    assert asking.read(answer.id).code == PAID
    assert count() == (0, Decimal(0), 1)
    assert not asked_at_authorization(stored(answer))


def buy_with_accepted_exemption(api: Api, channel: Channel) -> Answer:
    """At an external 3DS server that answers with transStatus I."""
    with running_threeds_server() as fake:
        row = ThreeDSecureConfiguration.objects.get(channel=channel)
        row.server_url, row.requestor_url = fake.url, "https://shop.example"
        row.requestors = {"visa": {"id": "R-1", "name": "Shop", "acquirerBin": "400000", "acquirerMerchantId": "M-1"}}
        row.merchant_category_code, row.merchant_country = "5411", "DE"
        set_server_secret(row, SECRET)
        row.save()
        browser = {"customer__ip": "192.0.2.7", "customer__browser__screenColorDepth": "24"}
        return buy(api, card_of("exempted"), amount="10.00", testMode="EXTERNAL", **browser)


def test_an_issuer_that_accepts_is_the_acquirers_word_and_counts(shop: Shop, iso_host: IsoHost) -> None:
    channel = open_channel(shop, {"lowValue": True}, card_testing={"enabled": False})
    account_at_host(channel, iso_host)
    api = shop.api_of(channel)
    answer = buy_with_accepted_exemption(api, channel)
    assert answer.status == 200, answer
    shown = answer.body["threeDSecure"]
    assert (shown["authenticationStatus"], shown["exemptionFlag"], shown["challengeIndicator"]) == ("I", "01", "02")
    payment = stored(answer)
    assert find_point_of_service(Chain([payment]), payment).exemption == "LOW_VALUE"
    assert len(iso_host.seen("0200")) == 1
    assert count() == (1, Decimal(10), 0)


@pytest.mark.parametrize("card", [ACCEPTS, ACCEPTS_MASTER])
def test_published_cards_show_an_exemption_that_the_bank_accepts(asking: Api, card: str) -> None:
    """As docs/three-d-secure.md says: the sixth of 10.00 is challenged."""
    brand = "VISA" if card == ACCEPTS else "MASTER"
    for number in range(1, 6):
        answer = buy(asking, card, amount="10.00", paymentBrand=brand)
        assert answer.code == PAID
        assert answer.body["threeDSecure"]["authenticationStatus"] == "I"
        assert sent_to_acquirer(asking, answer)[0]["exemptionFlag"] == "01"
        assert resolve_fraud_liability(stored(answer)) is FraudLiability.MERCHANT_EXEMPTED
        assert count()[0] == number
    sixth = buy(asking, card, amount="10.00", paymentBrand=brand)
    assert sixth.code == PENDING
    Shopper.of(sixth).enter()
    assert asking.read(sixth.id).code == PAID
    assert count() == (0, Decimal(0), 1)


def test_published_cards_show_a_trusted_merchant(shop: Shop) -> None:
    """Its first payment is challenged, the next ones are exempted by the bank's list."""
    api = shop.api_of(open_channel(shop, {"trusted": True}))
    first = buy(api, ACCEPTS, amount="300.00")
    assert first.code == PENDING
    Shopper.of(first).enter()
    assert api.read(first.id).code == PAID
    second = buy(api, ACCEPTS, amount="300.00")
    assert second.code == PAID
    shown = second.body["threeDSecure"]
    assert (shown["challengeIndicator"], shown["authenticationStatus"]) == ("08", "I")
    assert ExemptionRequest.objects.get().exemption == "TRUSTED_MERCHANT"


def test_the_exemption_outlives_the_method_page(asking: Api) -> None:
    answer = buy(asking, "4200000000000026", amount="10.00")
    assert answer.code == PENDING
    Shopper.of(answer).post(completed="Y")
    assert asking.read(answer.id).code == PAID
    assert Authentication.objects.get().messages[0]["threeDSRequestorChallengeInd"] == "02"


def test_a_trusted_merchant_is_asked_for_once_the_card_was_authenticated(shop: Shop) -> None:
    api = shop.api_of(open_channel(shop, {"trusted": True, "askedAt": "authorization"}))
    Shopper.of(buy(api, PASS, amount="300.00")).enter()
    assert not ExemptionRequest.objects.exists()
    answer = buy(api, PASS, amount="300.00")
    assert answer.code == PENDING  # asked at the issuer, who challenges
    row = ExemptionRequest.objects.get()
    assert (row.exemption, row.stage, row.stage_why) == ("TRUSTED_MERCHANT", "authentication", "list")
    newest = Authentication.objects.order_by("created_at").last()
    assert newest is not None
    assert newest.messages[0]["threeDSRequestorChallengeInd"] == "08"


def trust(answer: Answer) -> None:
    """The payment's card was authenticated at the merchant once."""
    paid = stored(answer)
    assert paid.means_fingerprint is not None
    ExemptionCount.objects.create(
        merchant=paid.merchant, key=bytes(paid.means_fingerprint), payments=0, amount=0, authentications=1
    )


@pytest.mark.parametrize(
    "card, liability",
    [(FRICTIONLESS, FraudLiability.ISSUER), (UNAVAILABLE, FraudLiability.MERCHANT_UNAUTHENTICATED)],
)
def test_a_trusted_merchant_is_not_claimed_where_the_issuer_did_not_say_so(
    shop: Shop, card: str, liability: FraudLiability
) -> None:
    """The list is the issuer's: it authenticated without a challenge, or did not answer."""
    api = shop.api_of(open_channel(shop, {"trusted": True}))
    trust(buy(api, card, amount="300.00"))
    answer = buy(api, card, amount="300.00")
    assert ExemptionRequest.objects.get().exemption == "TRUSTED_MERCHANT"
    assert answer.code == PAID
    (sent,) = sent_to_acquirer(api, answer)
    claims = {"challengeIndicator", "exemptionFlag"}
    assert not claims & sent.keys()
    assert not claims & answer.body["threeDSecure"].keys()
    assert find_point_of_service(Chain([stored(answer)]), stored(answer)).exemption == ""
    assert resolve_fraud_liability(stored(answer)) is liability


def test_a_trusted_merchant_is_claimed_where_the_issuer_accepts(shop: Shop, iso_host: IsoHost) -> None:
    channel = open_channel(shop, {"trusted": True}, card_testing={"enabled": False})
    account_at_host(channel, iso_host)
    api = shop.api_of(channel)
    trust(buy_with_accepted_exemption(api, channel))
    answer = buy_with_accepted_exemption(api, channel)
    shown = answer.body["threeDSecure"]
    assert (shown["authenticationStatus"], shown["challengeIndicator"]) == ("I", "08")
    assert find_point_of_service(Chain([stored(answer)]), stored(answer)).exemption == "TRUSTED_MERCHANT"


# --- a worker that dies ---------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("card", "left"), [(FRICTIONLESS, (0, 0, 0)), (PASS, (0, 0, 1))], ids=["silent", "challenged"])
def test_what_the_issuer_said_outlives_the_worker(
    committed: Shop, acquirer: StubProcess, monkeypatch: pytest.MonkeyPatch, card: str, left: tuple[int, int, int]
) -> None:
    """The acquirer approved an authenticated payment: no exemption is claimed for it, and none counted."""
    channel = open_channel(committed, {"lowValue": True})
    account_at_stub(channel)
    api = committed.api_of(channel)

    def pay() -> None:
        answer = buy(api, card, amount="10.00", testMode="EXTERNAL", paymentType="PA")
        if answer.code == PENDING:
            Shopper.of(answer).enter()

    complete = store.complete_payment

    def die_with_the_answer(payment: Payment, outcome: Any, **more: Any) -> None:
        if outcome.reply.code != PENDING:
            raise Killed
        complete(payment, outcome, **more)

    with monkeypatch.context() as dying:
        dying.setattr(store, "complete_payment", die_with_the_answer)
        with pytest.raises(Killed):
            pay()
    assert count()[0] == 1
    recover_after(60)
    payment = Payment.objects.select_related("channel").get()
    assert payment.status == "APPROVED"
    assert resolve_fraud_liability(payment) is FraudLiability.ISSUER
    point = find_point_of_service(Chain([payment]), payment)
    assert (point.eci, point.exemption) == ("05", "")
    assert count() == left
    api.follow(payment.id.hex, "CP", "10.00", testMode="EXTERNAL")
    assert api.read(payment.id.hex).body["threeDSecure"]["authenticationStatus"] == "Y"


# --- the other exemptions -------------------------------------------------------------------------------------------


def test_low_risk_wants_a_rule_set_that_accepted_the_payment(shop: Shop) -> None:
    rules = {"fraudRate": "0.05", "maxScore": 20, "askedAt": "authorization"}
    channel = open_channel(shop, rules)
    api = shop.api_of(channel)
    assert buy(api, PASS, amount="200.00").code == PENDING
    dear = {"name": "dear", "when": {"kind": "amount", "over": "220.00", "currency": "EUR"}, "then": {"score": 60}}
    document = {"key": "MAIN", "rules": [dear]}
    RiskSet.objects.create(merchant=shop.merchant, key="MAIN", document=document)
    Channel.objects.filter(pk=channel.pk).update(risk_set="MAIN")
    assert buy(api, PASS, amount="200.00").code == PAID
    row = ExemptionRequest.objects.get()
    assert (row.exemption, row.amount_limit, row.score, row.payments) == ("LOW_RISK", 250, 0, None)
    assert buy(api, PASS, amount="230.00").code == PENDING  # score 60
    assert buy(api, PASS, amount="250.01").code == PENDING
    assert not ExemptionCount.objects.filter(payments__gt=0).exists()


def test_corporate_cards_are_told_by_their_first_digits(shop: Shop) -> None:
    api = shop.api_of(open_channel(shop, {"corporateBins": ["420000"], "askedAt": "authorization"}))
    answer = buy(api, PASS, amount="5000.00")
    assert answer.code == PAID
    assert sent_to_acquirer(api, answer) == [{"challengeIndicator": "02", "exemptionFlag": "04"}]
    assert buy(api, "5200000000000007", amount="5.00").body["threeDSecure"]["flow"] == "frictionless"
    assert ExemptionRequest.objects.count() == 1


def test_another_currency_is_compared_by_its_rate_or_not_exempted(shop: Shop) -> None:
    api = shop.api_of(open_channel(shop, LOW_VALUE | {"rates": {"GBP": "1.20"}}))
    assert buy(api, PASS, amount="25.00", currency="GBP").code == PAID
    assert ExemptionRequest.objects.get().euros == Decimal(30)
    assert buy(api, PASS, amount="25.01", currency="GBP").code == PENDING
    assert buy(api, PASS, amount="1.00", currency="USD").code == PENDING


# --- where rules say nothing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        {"threeDSecure.challengeIndicator": "03"},
        {"threeDSecure.challengeIndicator": "05", "threeDSecure.exemptionFlag": "02"},
        {"threeDSecure.challengeMandatedIndicator": "Y"},
        {"threeDSecure.disable": "true"},
        {"threeDSecure.eci": "05", "threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA=",
         "threeDSecure.dsTransactionId": "c5b808e7-1de1-4069-a17b-f70d3b3b1645"},
        {"transactionCategory": "MO"},
        {"transactionCategory": "TO"},
        {"createRegistration": "true"},
        {"standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT",
         "standingInstruction.type": "UNSCHEDULED"},
        {"standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT",
         "standingInstruction.initialTransactionId": "380912345678901", "card.cvv": None},
        {"threeDSecure.channel": "03", "threeDSecure.threeRIInd": "RECURRING", **dict.fromkeys(BROWSER)},
        {"threeDSecure.amount": "45.00"},
        {"amount": "45.00"},
    ],
    ids=["own wish", "own exemption", "mandated", "disabled", "own proof", "mail", "telephone", "stored", "agreement",
         "merchant-initiated", "3RI", "authenticated amount", "amount"],
)  # fmt: skip
def test_rules_say_nothing(api: Api, channel: Channel, sent: dict[str, str | None]) -> None:
    Channel.objects.filter(pk=channel.pk).update(external_references=True)
    answer = buy(api, FRICTIONLESS, **{"amount": "10.00", **sent})
    assert answer.code in (PAID, PENDING), answer
    assert not ExemptionRequest.objects.exists()
    assert not ExemptionCount.objects.exists()


@pytest.mark.parametrize(
    ("rules", "first", "later"),
    [
        ({}, 0, 0),
        ({"corporateBins": ["420000"]}, 1, 1),
        ({"lowValue": True}, 2, 2),
        # The settings of 3-D Secure besides, and once a minute how requests at either stage ended.
        ({"corporateBins": ["420000"], "askedAt": "better"}, 4, 2),
    ],
    ids=["no rules", "one statement", "with a count", "the better stage"],
)
def test_what_an_exemption_costs_in_statements(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, rules: dict[str, Any], first: int, later: int
) -> None:
    """docs/decisions/0105, under consequences."""
    # Left to itself it takes the stage by the payment's random id, and the stages cost differently.
    choice = StageChoice(stage=ExemptionStage.AUTHENTICATION, why="measured")
    monkeypatch.setattr("gateway.payments.exempting.choose_stage", lambda *_, **__: choice)
    plain, exempting = (shop.api_of(open_channel(shop, each, name=str(each))) for each in ({}, rules))

    def count_statements(api: Api) -> int:
        with statements() as made:
            answer = buy(api, FRICTIONLESS, amount="10.00")
        assert answer.code == PAID
        asked = ExemptionRequest.objects.count()
        assert ("exemptionFlag" in answer.body["threeDSecure"]) == bool(asked)
        assert any("gateway_exemption" in each for each in made) == bool(asked)
        ExemptionRequest.objects.all().delete()
        return len(made)

    count_statements(plain)
    base = count_statements(plain)
    assert [count_statements(exempting) - base for _ in range(3)] == [first, later, later]


def test_a_channel_without_3d_secure_asks_for_nothing(shop: Shop) -> None:
    channel = shop.open_channel("open", exemptions=LOW_VALUE)
    answer = buy(shop.api_of(channel), FRICTIONLESS, amount="10.00")
    assert answer.code == PAID
    assert "threeDSecure" not in answer.body
    assert not ExemptionRequest.objects.exists()


def test_the_same_key_asks_once(api: Api) -> None:
    sent = fields(PASS, amount="10.00")
    first = api.post("/v1/payments", sent, Idempotency_Key="exempt-1")
    again = api.post("/v1/payments", sent, Idempotency_Key="exempt-1")
    assert first.body == again.body
    assert count()[0] == 1
    assert PASS not in leaves(first.body)


# --- by whichever wins more -----------------------------------------------------------------------------------------


def test_the_stage_is_chosen_by_how_the_channels_own_requests_ended(shop: Shop) -> None:
    """Both are tried first; then the challenged ones count as lost."""
    channel = open_channel(shop, {"lowValue": True, "askedAt": "better"})
    api = shop.api_of(channel)
    for _ in range(4):
        answer = buy(api, PASS, amount="5.00")
        row = ExemptionRequest.objects.get(pk=answer.id)
        assert row.stage_why == "measured"
        assert (answer.code == PAID) is (row.stage == "authorization")
