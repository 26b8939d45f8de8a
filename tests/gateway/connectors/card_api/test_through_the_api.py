"""A merchant's payments with testMode=EXTERNAL, compared with what the processor booked. Source: ruling D18."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django.test import override_settings

from gateway.connectors.accounts import load_connector_account, seal_connector_secrets
from gateway.connectors.port import NotFoundAtAcquirer, OutcomeUnknownError
from gateway.connectors.routing import CONNECTORS
from gateway.models import (
    AcquirerAccount,
    AcquirerExchange,
    BreakerChange,
    Payment,
    PaymentEvent,
    Status,
    ThreeDSecureConfiguration,
)
from gateway.payments import late_outcomes, recovery
from tests.gateway.connectors.card_api.asking import asked
from tests.support.card_api import AUTHENTICATES, CARD, KEY, WRONG_CVC, CardApi, account_at, card_api, second_account_at
from tests.support.card_host import DECLINES
from tests.support.client import Answer
from tests.support.database import leaves
from tests.support.fixtures import Shop
from tests.support.recovery import claim_after
from tests.support.stub import StubProcess, account_at_stub
from tests.support.threeds import PASS, Shopper, buy

pytestmark = pytest.mark.django_db

SUCCESS = "000.100.112"
IN_DOUBT = "000.200.001"
REVERSED = "900.100.301"
DOWN = "900.100.600"


def pay(shop: Shop, kind: str = "DB", number: str = CARD, amount: str = "92.00", **more: str | None) -> Answer:
    return shop.api.pay(testMode="EXTERNAL", paymentType=kind, amount=amount, **{"card__number": number, **more})


def follow(shop: Shop, payment: str, kind: str, amount: str | None = None, **more: str) -> Answer:
    return shop.api.follow(payment, kind, amount, **more)


def row(answer: Answer) -> Payment:
    return Payment.objects.get(pk=answer.id)


def ask_again(answer: Answer) -> Payment:
    """What a recovery tick does for one payment, in this thread."""
    for payment in claim_after(60):
        late_outcomes.mark_outcome_unknown(payment)
        connector = CONNECTORS[payment.connector]
        recovery.record_outcome(
            payment, recovery.resolve_outcome(connector, recovery.build_inquiry(payment, connector), payment)
        )
    return row(answer)


def agree(processor: CardApi) -> None:
    """Each first payment of ours that holds money is one intent there, of the same amount, and nothing else stands."""
    for payment in Payment.objects.filter(payment_type__in=("PA", "DB"), referenced=None):
        members = Payment.objects.filter(chain=payment.pk, status=Status.APPROVED)
        back = sum(one.approved_amount or 0 for one in members if one.payment_type in ("RF", "RV"))
        expected = (payment.approved_amount or 0) - back if payment.status == Status.APPROVED else 0
        assert processor.stands(payment.pk.hex) == int(expected * 100), payment


def test_a_debit_is_one_intent_of_the_same_amount(card_shop: Shop, processor: CardApi) -> None:
    answer = pay(card_shop, merchantTransactionId="order-4711")
    assert (answer.status, answer.code) == (200, SUCCESS)
    (intent,) = processor.of("payment_intent")
    assert (intent["amount"], intent["currency"], intent["status"]) == (9200, "eur", "succeeded")
    assert intent["metadata"] == {"tollhouse_payment": answer.id, "order": "order-4711"}
    assert row(answer).connector_tx_id == intent["id"]
    assert answer.body["resultDetails"]["ConnectorTxID1"] == intent["id"]
    assert answer.body["result"]["avsResponse"] == "A"
    assert answer.body["result"]["cvvResponse"] == "M"
    agree(processor)


@pytest.mark.parametrize("reason", ["odd\0", "odd\ud800"], ids=ascii)
def test_a_reason_that_the_database_cannot_keep_is_kept_readable(
    card_shop: Shop, processor: CardApi, reason: str
) -> None:
    """The decline was answered with 500, and recovery read the same answer again and again."""
    processor.declines[CARD] = reason
    answer = pay(card_shop)
    assert (answer.status, row(answer).status) == (400, Status.DECLINED)
    assert answer.body["resultDetails"]["AcquirerResponse"] == "odd\ufffd"


def test_every_post_has_a_key_of_our_payment_and_its_type(card_shop: Shop, processor: CardApi) -> None:
    held = pay(card_shop, "PA")
    follow(card_shop, held.id, "CP", "92.00")
    keys = [call.headers["idempotency-key"] for call in processor.calls if call.method == "POST"]
    members = {payment.payment_type: payment.pk.hex for payment in Payment.objects.all()}
    assert keys == [f"{members['PA']}-PA", f"{members['CP']}-CP"]


@pytest.mark.parametrize("captured", ["92.00", "40.00"])
def test_an_authorization_is_captured_whole_or_in_part(card_shop: Shop, processor: CardApi, captured: str) -> None:
    held = pay(card_shop, "PA")
    (intent,) = processor.of("payment_intent")
    assert intent["status"] == "requires_capture"
    answer = follow(card_shop, held.id, "CP", captured)
    assert (answer.status, answer.code) == (200, SUCCESS)
    assert (intent["status"], intent["amount_received"]) == ("succeeded", int(Decimal(captured) * 100))
    assert row(answer).connector_tx_id == intent["latest_charge"]["id"]


def test_without_multicapture_the_rest_is_let_go_and_a_second_capture_is_refused(
    card_shop: Shop, processor: CardApi
) -> None:
    """docs/connectors/card-api.md, Captures."""
    held = pay(card_shop, "PA")
    assert follow(card_shop, held.id, "CP", "40.00").code == SUCCESS
    second = follow(card_shop, held.id, "CP", "10.00")
    assert (second.status, second.code) == (400, "700.400.100")
    rest = follow(card_shop, held.id, "RV")
    assert (rest.code, rest.body["amount"]) == (SUCCESS, "52.00")
    assert processor.of("payment_intent")[0]["amount_received"] == 4000
    assert not processor.refunds_made()


def test_with_multicapture_an_authorization_is_captured_in_parts_and_the_rest_let_go(
    shop: Shop, processor: CardApi
) -> None:
    account_at(shop.channel, processor.url, multicapture="if_available")
    held = pay(shop, "PA")
    for part in ("40.00", "10.00"):
        assert follow(shop, held.id, "CP", part).code == SUCCESS
    (intent,) = processor.of("payment_intent")
    assert (intent["status"], intent["amount_received"]) == ("requires_capture", 5000)
    assert intent["amount_capturable"] == 4200
    assert follow(shop, held.id, "RV").code == SUCCESS
    assert (intent["status"], intent["amount_received"], intent["amount_capturable"]) == ("succeeded", 5000, 0)


def test_a_card_that_allows_one_capture_is_captured_in_part_and_the_rest_let_go(shop: Shop, processor: CardApi) -> None:
    """The processor refuses final_capture=false for it."""
    account_at(shop.channel, processor.url, multicapture="if_available")
    processor.allows_multicapture = False
    held = pay(shop, "PA")
    assert follow(shop, held.id, "CP", "40.00").code == SUCCESS
    (intent,) = processor.of("payment_intent")
    assert (intent["status"], intent["amount_received"]) == ("succeeded", 4000)
    assert follow(shop, held.id, "CP", "10.00").code == "700.400.100"


def test_an_authorization_is_given_up_as_a_whole_only(card_shop: Shop, processor: CardApi) -> None:
    held = pay(card_shop, "PA")
    part = follow(card_shop, held.id, "RV", "10.00")
    assert (part.status, part.code) == (400, "700.400.300")
    assert follow(card_shop, held.id, "RV").code == SUCCESS
    assert processor.of("payment_intent")[0]["status"] == "canceled"
    assert follow(card_shop, held.id, "CP", "92.00").status == 400
    agree(processor)


def test_what_was_captured_over_there_is_not_said_to_be_given_up(card_shop: Shop, processor: CardApi) -> None:
    """Captured in the processor's own pages, and its webhook is late."""
    held = pay(card_shop, "PA")
    (intent,) = processor.of("payment_intent")
    processor.act(intent["id"], "capture", {"amount_to_capture": "9200"})
    answer = follow(card_shop, held.id, "RV")
    assert (answer.status, answer.code) == (400, "700.400.300")
    assert (intent["status"], intent["amount_received"]) == ("succeeded", 9200)
    assert not processor.refunds_made()


def test_a_debit_is_refunded_in_parts_and_reversed(card_shop: Shop, processor: CardApi) -> None:
    paid = pay(card_shop)
    for part in ("30.00", "12.00"):
        refund = follow(card_shop, paid.id, "RF", part)
        assert refund.code == SUCCESS
        assert row(refund).connector_tx_id.startswith("re_")
    assert follow(card_shop, paid.id, "RF", "51.00").code == "700.400.200"
    assert follow(card_shop, paid.id, "RV").code == SUCCESS
    assert [one["amount"] for one in processor.refunds_made()] == [3000, 1200, 5000]
    agree(processor)


def test_a_capture_is_refunded_by_its_charge(card_shop: Shop, processor: CardApi) -> None:
    captured = follow(card_shop, pay(card_shop, "PA").id, "CP", "92.00")
    assert follow(card_shop, captured.id, "RF", "2.00").code == SUCCESS
    (call,) = processor.posts("/v1/refunds")
    assert call.form["charge"] == row(captured).connector_tx_id


def test_a_registration_is_a_verification_without_money(card_shop: Shop, processor: CardApi) -> None:
    fields = {
        "card.number": CARD,
        "card.expiryMonth": "05",
        "card.expiryYear": "2034",
        "card.cvv": "123",
        "card.holder": "Jane Jones",
        "testMode": "EXTERNAL",
    }
    stored = card_shop.api.post("/v1/registrations", fields)
    assert (stored.status, stored.code) == (200, SUCCESS)
    assert [one["status"] for one in processor.of("setup_intent")] == ["succeeded"]
    assert not processor.of("payment_intent")
    again = card_shop.api.post(
        f"/v1/registrations/{stored.id}/payments",
        {
            "paymentType": "DB",
            "amount": "5.00",
            "currency": "EUR",
            "testMode": "EXTERNAL",
            "standingInstruction.mode": "INITIAL",
            "standingInstruction.source": "CIT",
        },
    )
    assert again.code == SUCCESS
    assert "payment_method_data[card][cvc]" not in processor.calls[-1].form
    declined = card_shop.api.post("/v1/registrations", {**fields, "card.number": "4000000000009987"})
    assert (declined.status, declined.code) == (400, "800.100.165")


def test_an_authorization_of_nothing_stores_the_card(card_shop: Shop, processor: CardApi) -> None:
    """D27."""
    answer = pay(card_shop, "PA", amount="0.00", createRegistration="true")
    assert answer.code == SUCCESS
    assert answer.body["registrationId"]
    assert [one["status"] for one in processor.of("setup_intent")] == ["succeeded"]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        ("4000000000000002", "800.100.152"),
        ("4000000000009995", "800.100.155"),
        ("4000000000009987", "800.100.165"),
        ("4000000000000069", "100.100.303"),
        ("4000000000000119", "800.100.152"),
        (AUTHENTICATES, "300.100.100"),
    ],
)
@pytest.mark.parametrize("kind", ["DB", "PA"])
def test_a_decline_has_the_code_of_the_table(
    card_shop: Shop, processor: CardApi, number: str, code: str, kind: str
) -> None:
    answer = pay(card_shop, kind, number)
    assert (answer.status, answer.code) == (400, code)
    assert row(answer).status == Status.DECLINED
    assert row(answer).connector_tx_id == processor.of("payment_intent")[0]["id"]
    agree(processor)


@pytest.mark.parametrize("fault", ["", "silent_after", "silent_before"])
@pytest.mark.parametrize("kind", ["DB", "PA"])
def test_a_soft_decline_that_is_challenged_has_an_intent_per_attempt(
    shop: Shop, processor: CardApi, kind: str, fault: str
) -> None:
    """A key of its own, or the processor would answer with the first decline; an inquiry finds the second's intent."""
    channel = shop.open_channel("stepping up", three_d_secure=True)
    ThreeDSecureConfiguration.objects.create(channel=channel, on_soft_decline="challenge")
    account_at(channel, processor.url)
    exempted = {"testMode": "EXTERNAL", "paymentType": kind, "threeDSecure.challengeIndicator": "06"}
    answer = buy(shop.api_of(channel), AUTHENTICATES, **exempted)
    assert answer.code == "000.200.000", answer
    if fault:
        processor.fault(fault)
    Shopper.of(answer).enter()
    settled = ask_again(answer) if fault else row(answer)
    attempts = [intent["metadata"].get("tollhouse_attempt") for intent in processor.of("payment_intent")]
    if fault == "silent_before":
        assert (settled.result_code, attempts[:1]) == (REVERSED, [None])
    else:
        assert (settled.result_code, attempts) == (SUCCESS, [None, "2"])
        assert settled.connector_tx_id == processor.of("payment_intent")[1]["id"]
    keys = [call.headers["idempotency-key"] for call in processor.calls if call.path.endswith("/payment_intents")]
    assert {key for key in keys if key} <= {f"{answer.id}-{kind}", f"{answer.id}-2-{kind}"}
    agree(processor)


def test_a_wrong_code_is_told(card_shop: Shop, processor: CardApi) -> None:
    assert pay(card_shop, card__cvv=WRONG_CVC).body["result"]["cvvResponse"] == "N"


# --- what the processor does not offer ----------------------------------------------------------------------------


def test_what_the_processor_does_not_offer_is_refused_before_it_is_asked(card_shop: Shop, processor: CardApi) -> None:
    """docs/connectors/card-api.md, What is not possible."""
    assert pay(card_shop, "CD").status == 400
    paid, held = pay(card_shop), pay(card_shop, "PA")
    calls = len(processor.calls)
    assert follow(card_shop, paid.id, "CB", "92.00").code == "700.400.402"
    assert follow(card_shop, paid.id, "RC", "1.00").code == "600.200.400"
    more = {"standingInstruction.industryPractice": "INCREMENTAL_AUTH"}
    raised = card_shop.api.post(
        f"/v1/payments/{held.id}", {"paymentType": "PA", "amount": "1.00", "currency": "EUR", **more}
    )
    assert raised.code == "600.200.400"
    assert len(processor.calls) == calls


# --- silence ------------------------------------------------------------------------------------------------------

ACCEPTED = ("silent_after", "hangs_up_after", "garbled", "html", "huge", "drip", "500_after", "409")
LOST = ("silent_before", "hangs_up_before", "500_before", "503", "redirect")


@pytest.mark.parametrize(
    ("kind", "fault"), [*(("DB", fault) for fault in ACCEPTED), ("PA", "silent_after"), ("PA", "garbled")]
)
def test_what_was_accepted_without_an_answer_is_found_and_stands_once(
    card_shop: Shop, processor: CardApi, fault: str, kind: str
) -> None:
    processor.fault(fault)
    answer = pay(card_shop, kind)
    assert (answer.status, answer.code) == (200, IN_DOUBT)
    settled = ask_again(answer)
    assert (settled.status, settled.result_code) == (Status.APPROVED, SUCCESS)
    assert len(processor.posts("/v1/payment_intents")) == 1
    assert len(processor.of("payment_intent")) == 1
    agree(processor)


@pytest.mark.parametrize("fault", LOST)
def test_what_never_arrived_is_declined_and_cannot_be_accepted_later(
    card_shop: Shop, processor: CardApi, fault: str
) -> None:
    processor.fault(fault)
    answer = pay(card_shop)
    assert answer.code == IN_DOUBT
    lost = processor.posts("/v1/payment_intents")[0]
    settled = ask_again(answer)
    assert (settled.status, settled.result_code) == (Status.DECLINED, REVERSED)
    # The request was only slow: it arrives now.
    status, body = processor.answer(lost)
    assert (status, body["error"]["type"]) == (400, "idempotency_error")
    assert not processor.of("payment_intent")
    agree(processor)


@pytest.mark.parametrize(("waited", "found"), [(True, False), (False, True)])
def test_a_key_in_use_proves_nothing_so_soon_after_the_call(
    card_shop: Shop, processor: CardApi, waited: bool, found: bool
) -> None:
    """A shopper took twenty minutes for the challenge: the call is young, though the payment is old."""
    then = datetime.now(UTC) - timedelta(minutes=20)
    payment = UUID(int=int(then.timestamp() * 1000) << 80 | 7 << 76 | 2 << 62)
    account = load_connector_account(CONNECTORS["stripe"], card_shop.channel.id, "acct_1")
    request = asked(payment=payment, account=account, called_at=datetime.now(UTC) if waited else None)
    processor.keys[f"{payment.hex}-DB"] = ("/v1/payment_intents", {}, 200, {})
    if not found:
        with pytest.raises(OutcomeUnknownError):
            CONNECTORS["stripe"].inquire(request)
        return
    assert isinstance(CONNECTORS["stripe"].inquire(request), NotFoundAtAcquirer)


def test_an_inquiry_says_when_the_processor_was_called(shop: Shop, processor: CardApi) -> None:
    channel = shop.open_channel("challenging", three_d_secure=True)
    account_at(channel, processor.url)
    answer = buy(shop.api_of(channel), PASS, testMode="EXTERNAL")
    processor.fault("silent_after")
    Shopper.of(answer).enter()
    (doubtful,) = claim_after(60)
    resumed = PaymentEvent.objects.get(payment=doubtful, event="resume").at
    assert recovery.build_inquiry(doubtful, CONNECTORS["stripe"]).called_at == resumed


def test_a_decline_in_silence_is_found(card_shop: Shop, processor: CardApi) -> None:
    processor.fault("silent_after")
    answer = pay(card_shop, number="4000000000009995")
    assert answer.code == IN_DOUBT
    settled = ask_again(answer)
    assert (settled.status, settled.result_code) == (Status.DECLINED, "800.100.155")


@pytest.mark.parametrize("lost", [False, True], ids=["answered", "found"])
@pytest.mark.parametrize(
    ("advice", "shown", "again"),
    [
        ({}, None, SUCCESS),
        ({"network_advice_code": "03"}, "03", "700.601.003"),
        ({"network_advice_code": "24", "advice_code": "try_again_later"}, "24", "700.600.002"),
        ({"advice_code": "do_not_try_again"}, "03", "700.601.003"),
    ],
)
def test_what_the_network_advises_is_told_and_kept(
    card_shop: Shop, processor: CardApi, advice: dict[str, str], shown: str | None, again: str, lost: bool
) -> None:
    """A decline that was found by asking says the same as one that was answered."""
    processor.advice = advice
    number = "5555555555554444"
    DECLINES[number] = "generic_decline"
    try:
        if lost:
            processor.fault("silent_after")
        answer = pay(card_shop, number=number, paymentBrand="MASTER")
        told = ask_again(answer).answer if lost else row(answer).answer
    finally:
        del DECLINES[number]
    assert told.get("resultDetails", {}).get("MerchantAdviceCode") == shown
    if not lost:
        assert pay(card_shop, number=number, paymentBrand="MASTER").code == again


@pytest.mark.parametrize(
    ("advice", "code"),
    [
        ({}, SUCCESS),
        ({"advice_code": "try_again_later"}, "800.100.183"),
        ({"advice_code": "confirm_card_data"}, "800.100.183"),
        ({"network_advice_code": "02"}, "800.100.183"),
    ],
)
def test_after_an_advice_no_second_account_is_asked(
    card_shop: Shop, processor: CardApi, advice: dict[str, str], code: str
) -> None:
    """Also after the processor's own, without a code of the network. docs/decisions/0108."""
    processor.advice = advice
    processor.declines[CARD] = "do_not_honor"
    with card_api() as other:
        second_account_at(card_shop.channel, other.url)
        assert pay(card_shop).code == code
        assert len(other.of("payment_intent")) == int(code == SUCCESS)


def test_an_authorization_ends_when_the_processor_says_so_if_that_is_earlier(
    card_shop: Shop, processor: CardApi
) -> None:
    """Visa's ten days; a processor that holds it for five, and for twenty."""
    ends = {}
    for days in (5, 20):
        processor.holds_s = days * 86_400
        made = row(pay(card_shop, "PA"))
        assert made.expires_at is not None
        assert made.completed_at is not None
        ends[days] = (made.expires_at - made.completed_at).total_seconds() / 86_400
    assert ends[5] == pytest.approx(5, abs=0.01)
    assert ends[20] == 10


def test_while_the_processor_is_away_a_payment_stays_in_doubt(card_shop: Shop, processor: CardApi) -> None:
    processor.fault("hangs_up_after")
    answer = pay(card_shop)
    processor.vanish()
    assert ask_again(answer).status == Status.IN_DOUBT
    exchange = AcquirerExchange.objects.filter(payment=answer.id).last()
    assert exchange is not None
    assert "silence" in exchange.received


@pytest.mark.parametrize(("fault", "code"), [("429", DOWN), ("401", "900.100.200")])
def test_what_was_turned_away_unjudged_is_declined_at_once(
    card_shop: Shop, processor: CardApi, fault: str, code: str
) -> None:
    processor.fault(fault)
    answer = pay(card_shop)
    assert (answer.status, answer.code) == (400, code)
    assert not processor.of("payment_intent")


def test_nobody_there_is_a_decline_at_once(card_shop: Shop, processor: CardApi) -> None:
    processor.vanish()
    assert pay(card_shop).code == DOWN


@pytest.mark.parametrize("fault", ["silent_after", "silent_before"])
@pytest.mark.parametrize("kind", ["CP", "RF", "RV"])
def test_a_follow_up_without_an_answer_is_found_or_was_never_there(
    card_shop: Shop, processor: CardApi, kind: str, fault: str
) -> None:
    first = pay(card_shop, "DB" if kind == "RF" else "PA")
    processor.fault(fault, r"/v1/(refunds|payment_intents/\w+/(capture|cancel))")
    answer = follow(card_shop, first.id, kind, "40.00" if kind != "RV" else None)
    assert answer.code == IN_DOUBT
    settled = ask_again(answer)
    arrived = fault == "silent_after"
    assert settled.status == (Status.APPROVED if arrived else Status.DECLINED), settled.result_code
    (intent,) = processor.of("payment_intent")
    assert {
        "CP": intent["amount_received"] == 4000,
        "RF": sum(one["amount"] for one in processor.refunds_made()) == 4000,
        "RV": intent["status"] == "canceled",
    }[kind] is arrived
    if not arrived:
        again = follow(card_shop, first.id, kind, "40.00" if kind != "RV" else None)
        assert again.code == SUCCESS


def test_among_many_objects_the_payments_own_is_found_page_by_page(card_shop: Shop, processor: CardApi) -> None:
    processor.page = 2
    processor.fault("hangs_up_after")
    lost = pay(card_shop, amount="7.00")
    for _ in range(5):
        pay(card_shop)
    assert ask_again(lost).status == Status.APPROVED


def test_a_rule_set_that_refuses_an_approval_has_it_taken_back(card_shop: Shop, processor: CardApi) -> None:
    request_of = pay(card_shop, "PA")
    payment = Payment.objects.select_related("merchant").get(pk=request_of.id)
    connector = CONNECTORS["stripe"]
    for _ in range(2):
        assert connector.void(recovery.build_inquiry(payment, connector)).code == REVERSED
    paid = Payment.objects.select_related("merchant").get(pk=pay(card_shop).id)
    for _ in range(2):
        assert connector.void(recovery.build_inquiry(paid, connector)).code == REVERSED
    assert [processor.stands(one.pk.hex) for one in (payment, paid)] == [0, 0]
    assert len(processor.refunds_made()) == 1


# --- secrets and set-up -------------------------------------------------------------------------------------------


def test_no_number_code_or_key_is_kept_or_told(card_shop: Shop, processor: CardApi) -> None:
    processor.fault("garbled")
    answers = [pay(card_shop, card__cvv="987", number=number) for number in (CARD, CARD, "4000000000009995")]
    processor.fault("401")
    answers.append(pay(card_shop, card__cvv="987"))
    ask_again(answers[0])
    exchanges = list(AcquirerExchange.objects.values_list("sent", "received"))
    assert len(exchanges) >= len(answers)
    told = [answer.body for answer in answers]
    assert not {"987", WRONG_CVC} & set(leaves([exchanges, told]))
    text = json.dumps([exchanges, told])
    for secret in (CARD, "4000000000009995", KEY):
        assert secret not in text
    assert "424242******4242" in text


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"settings": {"url": "http://api.example.com"}}, "url must begin with https://"),
        ({"secrets_sealed": None}, "api_key is missing"),
    ],
)
def test_an_account_that_cannot_be_used_declines_and_says_why(
    card_shop: Shop, processor: CardApi, changes: dict[str, object], why: str
) -> None:
    AcquirerAccount.objects.update(**changes)
    answer = pay(card_shop)
    assert (answer.status, answer.code) == (400, "900.100.200")
    exchange = AcquirerExchange.objects.get(payment=answer.id)
    assert why in exchange.received["unusable"]
    assert not processor.calls


def test_what_this_processor_cannot_be_told_goes_to_the_next_and_opens_no_breaker(
    card_shop: Shop, processor: CardApi, acquirer: StubProcess
) -> None:
    """A wallet's device number is a card that another acquirer takes; and it says nothing about this processor."""
    account_at_stub(card_shop.channel)
    wallet = {
        "card__numberType": "DPAN",
        "threeDSecure__eci": "05",
        "card__cvv": None,
        "threeDSecure__verificationId": "AAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    }
    with override_settings(GATEWAY_BREAKER_LEAST=2, GATEWAY_BREAKER_PAUSE_S=1_000.0):
        for _ in range(3):
            paid = row(pay(card_shop, **wallet))
            assert (paid.status, paid.connector) == (Status.APPROVED, "stub"), paid.result_code
        assert not processor.calls
        assert row(pay(card_shop)).connector == "stripe"
    assert not BreakerChange.objects.exists()


def test_addresses_of_this_machine_need_the_allowance(card_shop: Shop, processor: CardApi) -> None:
    with override_settings(GATEWAY_OUTBOUND_LOOPBACK=False):
        assert pay(card_shop).code == DOWN
    assert not processor.calls


def test_a_wrong_key_is_told_as_an_error_and_never_shown(shop: Shop, processor: CardApi) -> None:
    account_at(shop.channel, processor.url, key="sk_test_anotherKeyAltogether")
    answer = pay(shop)
    assert answer.code == "900.100.200"
    exchange = AcquirerExchange.objects.get(payment=answer.id)
    assert KEY not in json.dumps([exchange.sent, exchange.received])


def test_servers_of_the_core_profile_get_the_card_first_and_no_keys(shop: Shop) -> None:
    with card_api(plain=True) as plain:
        account_at(shop.channel, plain.url, profile="core")
        held = pay(shop, "PA")
        assert held.code == SUCCESS
        assert follow(shop, held.id, "CP", "40.00").code == SUCCESS
        assert follow(shop, held.id, "CP", "40.00").code == "700.400.100"
        assert [call.path for call in plain.calls if call.method == "POST"][:2] == [
            "/v1/payment_methods",
            "/v1/payment_intents",
        ]
        assert not any("idempotency-key" in call.headers for call in plain.calls)
        assert "payment_method_data[card][number]" not in plain.posts("/v1/payment_intents")[0].form


def test_sealed_secrets_of_an_account_are_read_back(shop: Shop) -> None:
    account = account_at(shop.channel, "https://api.example.com")
    assert seal_connector_secrets({"api_key": KEY}, account.pk) != account.secrets_sealed
    assert KEY.encode() not in bytes(account.secrets_sealed or b"")
