"""testMode=EXTERNAL: which account takes a payment, and every operation against the stub acquirer, over HTTP."""

from __future__ import annotations

import pytest

from gateway.backoffice.payments.timeline import build_payment_story
from gateway.connectors.acquirer_message import external_success_code
from gateway.connectors.routing import CONNECTORS
from gateway.models import AcquirerExchange, Payment
from gateway.payments.acquirer_message_store import restore_message
from tests.support.database import recover_at
from tests.support.fixtures import Shop
from tests.support.stub import StubProcess, account_at_stub


def test_external_without_an_acquirer_account_is_refused_and_makes_no_payment(shop: Shop) -> None:
    """Part A, What the service does, 5."""
    account_at_stub(shop.channel, active=False)
    account_at_stub(shop.channel, acquirer_merchant_id="M-2", currencies=["USD"])
    answer = shop.api.pay(testMode="EXTERNAL")
    assert (answer.status, answer.code) == (400, "600.200.700")
    assert not Payment.objects.exists()


def test_a_parameter_that_the_acquirer_wants_is_asked_for_by_name(
    shop: Shop, acquirer: StubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A13.11, A20.5."""
    monkeypatch.setattr(CONNECTORS["stub"], "required", frozenset({"merchantTransactionId"}))
    account_at_stub(shop.channel)
    answer = shop.api.pay(testMode="EXTERNAL")
    assert (answer.status, answer.code) == (400, "200.300.404")
    assert [error["name"] for error in answer.body["result"]["parameterErrors"]] == ["merchantTransactionId"]
    assert not Payment.objects.exists()
    assert shop.api.pay(testMode="EXTERNAL", merchantTransactionId="order-0007").code == "000.100.112"


def test_external_succeeds_with_its_own_code_and_keeps_masked_messages(shop: Shop, acquirer: StubProcess) -> None:
    """A1.6, D18; goals, R8: the payment's story in the back office names who was asked."""
    account_at_stub(shop.channel)
    answer = shop.api.pay(testMode="EXTERNAL", billing__postcode="44444", card__cvv="999")
    assert (answer.status, answer.code) == (200, "000.100.112")
    assert answer.body["result"]["avsResponse"] == "N"
    assert answer.body["result"]["cvvResponse"] == "N"
    assert acquirer.control.transactions()[answer.id]["approved"] == "92.00"
    exchange = AcquirerExchange.objects.get()
    sent = restore_message(exchange, exchange.payment)
    assert sent["card"]["number"] == "420000******0000"
    assert sent["merchant"] == "M-1"
    added = {"transaction", "key", "kind", "merchant", "testMode", "card"}
    assert exchange.sent["differs"].keys() == added, "what the payment's row says is not kept again: decision 0044"
    assert "999" not in str(sent["card"])
    logged = acquirer.log.read_text()
    assert "420000******0000" in logged
    assert "4200000000000000" not in logged
    payment = Payment.objects.select_related("merchant", "channel").get()
    assert payment.connector == "stub"
    asked = [moment.title for moment in build_payment_story(payment).moments if moment.kind == "exchange"]
    assert [title.split()[0] for title in asked] == ["stub"]


@pytest.mark.parametrize(
    "number, code",
    [("4000015500000005", "800.100.155"), ("4000040000000008", "000.400.000"), ("4000090002000001", "900.100.200")],
)
def test_external_answers_by_the_same_test_cards(shop: Shop, acquirer: StubProcess, number: str, code: str) -> None:
    """Decisions, section 5."""
    account_at_stub(shop.channel)
    assert shop.api.pay(testMode="EXTERNAL", card__number=number).code == code


def test_in_live_success_is_its_own_code(live: None) -> None:
    """Ruling D18."""
    assert external_success_code() == "000.000.000"


def test_in_live_no_payment_goes_to_the_stub(shop: Shop, acquirer: StubProcess, live: None) -> None:
    """It approves test cards without money: an account at it, made in test or by hand, is not asked."""
    account_at_stub(shop.channel)
    answer = shop.api.over_tls().pay()
    assert answer.code == "600.200.700"
    assert acquirer.control.transactions() == {}


def test_follow_ups_go_where_the_first_payment_went(shop: Shop, acquirer: StubProcess) -> None:
    """Decisions, section 4; ruling D2."""
    account_at_stub(shop.channel)
    pa = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00").id
    capture = shop.api.follow(pa, "CP", "60.00")
    again = shop.api.post(
        f"/v1/payments/{pa}",
        {
            "paymentType": "PA",
            "amount": "10.00",
            "currency": "EUR",
            "paymentBrand": "VISA",
            "standingInstruction.industryPractice": "INCREMENTAL_AUTH",
        },
    )
    refund = shop.api.follow(capture.id, "RF", "25.00")
    rest = shop.api.follow(pa, "RV")
    rebill = shop.api.follow(capture.id, "RB", "5.00")
    for answer in (capture, again, refund, rest, rebill):
        assert (answer.status, answer.code) == (200, "000.100.112"), answer
    booked = acquirer.control.transactions()
    assert [row["approved"] for row in booked.values()] == ["100.00", "60.00", "10.00", "25.00", "50.00", "5.00"]
    assert sorted(acquirer.control.books()["pools"].values()) == ["0.00", "35.00", "5.00"]
    assert shop.api.follow(capture.id, "CB", "35.00", chargebackResultCode="000.100.203").code == "000.100.203"
    assert not acquirer.entries(exceeds=True)


def test_an_acquirer_that_is_down_declines_at_once_and_leaves_no_doubt(shop: Shop, acquirer: StubProcess) -> None:
    """Goals, R3: nothing was sent, so nothing can have been accepted."""
    account_at_stub(shop.channel)
    acquirer.kill()
    answer = shop.api.pay(testMode="EXTERNAL")
    assert (answer.status, answer.code) == (400, "900.100.600")
    payment = Payment.objects.get()
    assert (payment.status, recover_at(payment)) == ("DECLINED", None)
    assert AcquirerExchange.objects.get().received["unreachable"]


def test_internal_costs_no_statement_for_routing(shop: Shop) -> None:
    """Goals, P4."""
    from tests.support.database import statements

    account_at_stub(shop.channel)
    with statements() as seen:
        assert shop.api.pay().status == 200
    assert not [text for text in seen if "acquireraccount" in text]
