"""Who carries the loss if the shopper denies a payment, by how it was authenticated."""

from __future__ import annotations

import pytest

from gateway.backoffice.payments.explanation import FRAUD_LIABILITY_TEXTS, explain_payment
from gateway.models import Channel, Payment, ThreeDSecureConfiguration
from gateway.payments.fraud_liability import FraudLiability, resolve_fraud_liability
from tests.support.client import Api
from tests.support.fixtures import Shop
from tests.support.threeds import ATTEMPT, FRICTIONLESS, PASS, UNAVAILABLE, Shopper, buy

pytestmark = pytest.mark.django_db

PROOF = {
    "threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA=",
    "threeDSecure.dsTransactionId": "c5b808e7-1de1-4069-a17b-f70d3b3b1645",
}

BEGINS = {"standingInstruction.mode": "INITIAL", "standingInstruction.type": "RECURRING"}


@pytest.fixture
def channel(shop: Shop) -> Channel:
    channel = shop.open_channel("authenticating", three_d_secure=True)
    ThreeDSecureConfiguration.objects.create(channel=channel, on_soft_decline="challenge")
    return channel


@pytest.fixture
def api(shop: Shop, channel: Channel) -> Api:
    return shop.api_of(channel)


@pytest.mark.parametrize(
    ("card", "sent", "liability"),
    [
        (FRICTIONLESS, {}, FraudLiability.ISSUER),
        (ATTEMPT, {}, FraudLiability.ISSUER),
        (UNAVAILABLE, {}, FraudLiability.MERCHANT_UNAUTHENTICATED),
        (FRICTIONLESS, {"threeDSecure.disable": "true"}, FraudLiability.MERCHANT_UNAUTHENTICATED),
        (
            FRICTIONLESS,
            {"threeDSecure.challengeIndicator": "06", "threeDSecure.exemptionFlag": "01"},
            FraudLiability.MERCHANT_EXEMPTED,
        ),
        (FRICTIONLESS, {"transactionCategory": "TO"}, FraudLiability.MERCHANT_ORDER),
        (
            FRICTIONLESS,
            {"transactionCategory": "MO", "threeDSecure.eci": "05", **PROOF},
            FraudLiability.MERCHANT_ORDER,
        ),
        (FRICTIONLESS, {"threeDSecure.eci": "05", **PROOF}, FraudLiability.ISSUER),
        (FRICTIONLESS, {"threeDSecure.eci": "06", **PROOF}, FraudLiability.ISSUER),
        ("5200000000000007", {"threeDSecure.eci": "06", **PROOF}, FraudLiability.MERCHANT_UNAUTHENTICATED),
        ("5200000000000007", {"threeDSecure.eci": "02", **PROOF}, FraudLiability.ISSUER),
        ("5200000000000007", {"threeDSecure.eci": "07", **PROOF}, FraudLiability.MERCHANT_UNAUTHENTICATED),
        ("5200000000000007", {"threeDSecure.eci": "07", **PROOF, **BEGINS}, FraudLiability.ISSUER),
        (FRICTIONLESS, {"threeDSecure.eci": "07", **PROOF, **BEGINS}, FraudLiability.MERCHANT_UNAUTHENTICATED),
    ],
)
def test_the_liability_is_told_by_how_it_was_authenticated(
    api: Api, card: str, sent: dict[str, str], liability: FraudLiability
) -> None:
    """06 is an attempt at Visa, and an accepted exemption at Mastercard; 07 is no authentication at Visa, and at
    Mastercard that of an agreement's payments."""
    payment = Payment.objects.get(pk=buy(api, card, **sent).id)
    assert payment.status == "APPROVED"
    assert resolve_fraud_liability(payment) is liability
    assert FRAUD_LIABILITY_TEXTS[liability] in explain_payment(payment).more


@pytest.mark.parametrize(
    ("card", "eci", "liability"),
    [
        ("4200000000000000", "05", FraudLiability.ISSUER),
        ("4200000000000000", "07", FraudLiability.MERCHANT_UNAUTHENTICATED),
        ("5454545454545454", "02", FraudLiability.ISSUER),
        ("5454545454545454", "05", FraudLiability.MERCHANT_UNAUTHENTICATED),
    ],
)
def test_a_wallets_card_has_the_liability_of_its_network(
    shop: Shop, card: str, eci: str, liability: FraudLiability
) -> None:
    """The wallet's brand is no network's; each network has ECIs of its own."""
    sent = {"paymentBrand": "WALLET1", "wallet1.source": "web", "card.cvv": None, "threeDSecure.eci": eci}
    sent |= {"card.number": card, "threeDSecure.verificationId": PROOF["threeDSecure.verificationId"]}
    payment = Payment.objects.get(pk=shop.api.pay(**sent).id)
    assert (payment.brand, payment.status) == ("WALLET1", "APPROVED")
    assert resolve_fraud_liability(payment) is liability
    assert FRAUD_LIABILITY_TEXTS[liability] in explain_payment(payment).more


def test_a_challenge_and_a_step_up_move_it_to_the_issuer(api: Api) -> None:
    for card in (PASS, "4000030002000007"):
        answer = buy(api, card)
        assert resolve_fraud_liability(Payment.objects.get(pk=answer.id)) is None
        Shopper.of(answer).enter()
        assert resolve_fraud_liability(Payment.objects.get(pk=answer.id)) is FraudLiability.ISSUER


def test_payments_of_other_kinds_have_none(shop: Shop, api: Api) -> None:
    paid = buy(api, FRICTIONLESS)
    assert resolve_fraud_liability(Payment.objects.get(pk=api.follow(paid.id, "RF", "1.00").id)) is None
    assert resolve_fraud_liability(Payment.objects.get(pk=shop.api.pay(card__number="4000015500000005").id)) is None
    for kind in ("CD", "RG"):
        made = Payment.objects.get(pk=buy(api, FRICTIONLESS, paymentType=kind).id)
        assert made.status == "APPROVED"
        assert resolve_fraud_liability(made) is None, kind


def test_a_payment_that_the_merchant_initiates_is_the_merchants(api: Api, channel: Channel) -> None:
    Channel.objects.filter(pk=channel.pk).update(external_references=True)
    renewed = {
        "standingInstruction.mode": "REPEATED",
        "standingInstruction.source": "MIT",
        "standingInstruction.initialTransactionId": "380912345678901",
        "card.cvv": None,
    }
    proved = {"threeDSecure.eci": "05", **PROOF}
    for sent in (renewed, renewed | proved):
        payment = Payment.objects.get(pk=buy(api, FRICTIONLESS, **sent).id)
        assert resolve_fraud_liability(payment) is FraudLiability.MERCHANT_INITIATED


@pytest.mark.parametrize(
    ("card", "three_ds", "liability"),
    [
        (FRICTIONLESS, {"channel": "03", "eci": "05"}, FraudLiability.ISSUER),
        (FRICTIONLESS, {"threeRIInd": "RECURRING", "eci": "06"}, FraudLiability.ISSUER),
        (FRICTIONLESS, {"channel": "03", "eci": "07"}, FraudLiability.MERCHANT_INITIATED),
        ("5200000000000007", {"channel": "03", "eci": "07"}, FraudLiability.ISSUER),
        ("5200000000000007", {"eci": "07"}, FraudLiability.MERCHANT_INITIATED),
        (FRICTIONLESS, {"eci": "05"}, FraudLiability.MERCHANT_INITIATED),
        (FRICTIONLESS, {"channel": "03", "eci": "05", "version": "1.0.2"}, FraudLiability.MERCHANT_INITIATED),
    ],
)
def test_an_authentication_that_the_merchant_made_alone_shifts_it_too(
    api: Api, card: str, three_ds: dict[str, str], liability: FraudLiability
) -> None:
    """3RI."""
    payment = Payment.objects.get(pk=buy(api, card).id)
    instruction = {"mode": "REPEATED", "source": "MIT", "type": "RECURRING"}
    payment.request = {"standingInstruction": instruction, "threeDSecure": three_ds}
    payment.answer = {}
    assert resolve_fraud_liability(payment) is liability


def test_a_proof_of_the_first_protocol_shifts_nothing(api: Api) -> None:
    """The networks ended it in October 2022."""
    sent = {"threeDSecure.eci": "05", **PROOF}
    for version, liability in (("1.0.2", FraudLiability.MERCHANT_UNAUTHENTICATED), ("2.2.0", FraudLiability.ISSUER)):
        answer = buy(api, FRICTIONLESS, **sent, **{"threeDSecure.version": version})
        assert resolve_fraud_liability(Payment.objects.get(pk=answer.id)) is liability


@pytest.mark.parametrize("eci", ["05", "06"])
def test_an_exemption_that_the_issuer_accepted_shifts_nothing(api: Api, eci: str) -> None:
    """I beside an ECI that shows an authentication contradicts itself: the acquirer is sent the exemption."""
    sent = {"threeDSecure.eci": eci, **PROOF, "threeDSecure.version": "2.2.0"}
    payment = Payment.objects.get(pk=buy(api, FRICTIONLESS, **sent).id)
    assert resolve_fraud_liability(payment) is FraudLiability.ISSUER
    payment.request["threeDSecure"] |= {"authenticationStatus": "I", "exemptionFlag": "02"}
    assert resolve_fraud_liability(payment) is FraudLiability.MERCHANT_EXEMPTED


def test_every_liability_has_a_sentence() -> None:
    assert set(FRAUD_LIABILITY_TEXTS) == set(FraudLiability)
