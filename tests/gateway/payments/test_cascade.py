"""A declined payment is authorized again at the next account of its route, where the code and the rules allow it.

Source: docs/decisions/0108; docs/routing.md.
"""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import override_settings

from gateway.backoffice.payments.route_explanation import explain_failover
from gateway.connectors.iso8583.response_codes import RESULT_BY_DE39
from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerReply, AcquirerRequest, NotFoundAtAcquirer, OutcomeUnknownError
from gateway.core import clock
from gateway.core.result_codes import RESULT_CODES, ResultFamily, find_result_family
from gateway.models import (
    AcquirerExchange,
    CardDecline,
    Notification,
    OpenPayment,
    Payment,
    PaymentEvent,
    Role,
    RoutingRule,
    RoutingTarget,
    Status,
    ThreeDSecureConfiguration,
)
from gateway.payments import late_outcomes, store
from gateway.payments.cascade import CASCADABLE_DECLINES, is_cascadable
from gateway.payments.outcomes import Approved, Declined
from gateway.payments.risk_screening import ScreeningPlan
from gateway.payments.stored_answer import get_attempt_number
from gateway.risk.retry_rules import ADVICE_WAITS, ISSUER_STOPS, RetryWatch, find_issuer_stop
from tests.support import threeds
from tests.support.acquirers import APPROVED, DECLINED, Acquirer, Killed, account, known
from tests.support.client import Answer
from tests.support.client import payment as fields
from tests.support.database import recover_at, statements
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.recovery import claim_after, recover_after
from tests.support.stub import StubProcess, account_at_stub
from tests.support.threads import at_once, in_another_process

pytestmark = pytest.mark.django_db(transaction=True)
NOT_HONOURED = "800.100.152"
OUT_OF_REACH, PENDING, SOFT = "900.100.600", "000.200.001", "300.100.100"
CASCADED = ["begin", "cascade", "approve"]
UNPUBLISHED = "4012888888881881"
"""A card of no table: the schemes' retry rules watch it."""
ONLY_IF_ASKED = "4000030002000007"
"""Authenticated only where a challenge is asked for."""
UNPUBLISHED_MASTERCARD = "5555555555554444"


class Pair:
    """A shop whose rule lets a payment go on to a second acquirer after a decline; the first one declines with 05."""

    def __init__(self, shop: Shop, monkeypatch: pytest.MonkeyPatch, max_cascades: int = 1) -> None:
        self.shop, self.monkeypatch = shop, monkeypatch
        self.first, self.second = Acquirer("first", "declines"), Acquirer("second")
        self.first.decline_code, self.first.decline_details = NOT_HONOURED, {"AcquirerResponse": "05"}
        known(monkeypatch, self.first, self.second)
        self.rule = RoutingRule.objects.create(channel=shop.channel, name="all", max_cascades=max_cascades)
        for number, name in enumerate(("first", "second")):
            self.add_account(name, number)

    def add_account(self, name: str, position: int) -> None:
        row = account(self.shop.channel, name, name=f"The {name}")
        # Weight 0 keeps the order: the first is drawn always.
        RoutingTarget.objects.create(rule=self.rule, account=row, weight=int(position == 0), position=position)

    def add_third(self) -> Acquirer:
        third = Acquirer("third")
        known(self.monkeypatch, self.first, self.second, third)
        self.add_account("third", 2)
        return third

    def decline_with(self, code: str, response: str, advice: str = "") -> None:
        said = {"AcquirerResponse": response, "MerchantAdviceCode": advice}
        self.first.decline_code, self.first.decline_details = code, {name: one for name, one in said.items() if one}

    def pay(self, **more: Any) -> Answer:
        return self.shop.api.pay(testMode="EXTERNAL", **more)

    def killed(self) -> Payment:
        with pytest.raises(Killed):
            self.pay()
        return Payment.objects.select_related("merchant").get()


@pytest.fixture
def pair(committed: Shop, monkeypatch: pytest.MonkeyPatch) -> Pair:
    return Pair(committed, monkeypatch)


def events(payment: Payment) -> list[str]:
    return list(PaymentEvent.objects.filter(payment=payment.pk).order_by("sequence").values_list("event", flat=True))


def exchanges(payment: Payment) -> list[tuple[str, str]]:
    rows = AcquirerExchange.objects.filter(payment=payment.pk).order_by("id")
    return list(rows.values_list("connector", "kind"))


def kill() -> None:
    raise Killed


# --- the way of one payment -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("payment_type", ["DB", "PA"])
def test_a_declined_payment_is_approved_at_the_second_account_as_one_payment(pair: Pair, payment_type: str) -> None:
    answer = pair.pay(paymentType=payment_type)
    assert (answer.status, answer.code) == (200, APPROVED)
    assert not answer.body.get("resultDetails", {}).get("AcquirerResponse")
    payment = Payment.objects.get()
    assert (payment.connector, payment.acquirer_merchant_id, payment.connector_tx_id) == (
        "second", "at second", "second-0",
    )  # fmt: skip
    assert events(payment) == CASCADED
    assert PaymentEvent.objects.get(payment=payment.pk, event="cascade").result_code == NOT_HONOURED
    assert exchanges(payment) == [("first", "submit"), ("second", "submit")]
    assert recover_at(payment) is None
    assert Notification.objects.filter(payment=payment.pk).count() == 1
    [first], [second] = pair.first.requests, pair.second.requests
    assert (first.attempt_key, second.attempt_key) == (payment.id.hex, f"{payment.id.hex}-2")
    assert get_attempt_number(payment) == 2
    [tried] = payment.route["tried"]
    assert tried.pop("at")
    assert tried == {
        "name": "The first", "connector": "first", "account": "at first", "code": NOT_HONOURED, "why": "05",
        "sent": True, "declined": True,
    }  # fmt: skip
    assert (payment.route["name"], payment.route["cascades"], "next" in payment.route) == ("The second", 1, False)


def test_card_and_security_code_go_along_and_are_kept_nowhere(pair: Pair) -> None:
    answer = pair.pay(card__cvv="123")
    assert answer.code == APPROVED
    [first], [second] = pair.first.requests, pair.second.requests
    assert isinstance(second.means, Card)
    assert second.means.cvv is not None
    assert second.means.cvv.reveal() == "123"
    assert (first.parameters, first.means) == (second.parameters, second.means)
    for row in AcquirerExchange.objects.all():
        assert "123" not in str(row.sent.get("card", {}).get("cvv", ""))


def test_follow_ups_go_to_the_account_that_approved(pair: Pair) -> None:
    paid = pair.pay(paymentType="PA").id
    assert pair.shop.api.follow(paid, "CP", "92.00").code == APPROVED
    assert (pair.first.kinds, pair.second.kinds) == (["submit"], ["submit", "submit"])
    assert pair.second.requests[-1].reference == "second-0"
    assert pair.second.requests[-1].attempt == 1


def test_a_follow_up_that_is_declined_goes_nowhere_else(pair: Pair) -> None:
    pair.first.behaviour = "approves"
    paid = pair.pay(paymentType="PA").id
    pair.first.behaviour = "declines"
    assert pair.shop.api.follow(paid, "CP", "92.00").code == NOT_HONOURED
    assert pair.second.asked == []


def test_the_second_decline_is_the_answer(pair: Pair) -> None:
    pair.second.behaviour = "declines"
    answer = pair.pay()
    assert (answer.status, answer.code) == (400, DECLINED)
    assert answer.body["resultDetails"]["AcquirerResponse"] == "51"
    assert events(Payment.objects.get()) == ["begin", "cascade", "decline"]


def test_off_is_the_default_and_costs_nothing(committed: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers as ever; the payment keeps nothing of it."""
    assert RoutingRule._meta.get_field("max_cascades").default == 0
    pair = Pair(committed, monkeypatch, max_cascades=0)
    answer = pair.pay()
    assert (answer.status, answer.code) == (400, NOT_HONOURED)
    payment = Payment.objects.get()
    assert events(payment) == ["begin", "decline"]
    assert pair.second.asked == []
    assert not {"maxCascades", "cascades", "tried"} & payment.route.keys()


def test_a_payment_that_is_approved_at_once_costs_no_further_statement(pair: Pair) -> None:
    pair.first.behaviour = "approves"
    pair.pay()
    costs = []
    for most in (0, 1):
        RoutingRule.objects.update(max_cascades=most)
        with statements() as seen:
            assert pair.pay().code == APPROVED
        costs.append(len(seen))
    assert costs[0] == costs[1]


# --- bounded --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "asked"), [(1, 2), (2, 3)])
def test_at_most_as_many_accounts_as_the_rule_says(pair: Pair, most: int, asked: int) -> None:
    RoutingRule.objects.update(max_cascades=most)
    third = pair.add_third()
    pair.second.behaviour = "declines"
    pair.second.decline_code, pair.second.decline_details = NOT_HONOURED, {"AcquirerResponse": "05"}
    answer = pair.pay()
    assert answer.code == (APPROVED if asked == 3 else NOT_HONOURED)
    assert len(pair.first.asked + pair.second.asked + third.asked) == asked
    payment = Payment.objects.get()
    assert events(payment).count("cascade") == most
    keys = [one.attempt_key for one in (*pair.first.requests, *pair.second.requests, *third.requests)]
    assert len(set(keys)) == asked


def test_no_account_is_asked_twice(pair: Pair) -> None:
    RoutingRule.objects.update(max_cascades=2)
    pair.second.behaviour = "declines"
    pair.second.decline_code, pair.second.decline_details = NOT_HONOURED, {"AcquirerResponse": "05"}
    assert pair.pay().code == NOT_HONOURED
    assert (len(pair.first.asked), len(pair.second.asked)) == (1, 1)


def test_it_begins_within_the_time_of_a_failover_only(pair: Pair) -> None:
    with override_settings(GATEWAY_FAILOVER_WITHIN_S=0):
        assert pair.pay().code == NOT_HONOURED
    assert pair.second.asked == []


NO_CARD = dict.fromkeys(("card__number", "card__cvv", "card__expiryMonth", "card__expiryYear", "card__holder"))
ACCOUNT = {"paymentBrand": "VIRTUALACCOUNT", "virtualAccount__accountId": "shopper@mail.example"}


@pytest.mark.parametrize("sent", [{"paymentType": "CD"}, NO_CARD | ACCOUNT], ids=["payout", "account"])
def test_only_card_payments_that_take_money_go_on(pair: Pair, sent: dict[str, Any]) -> None:
    assert pair.pay(**sent).code == NOT_HONOURED
    assert pair.second.asked == []


# --- which declines -------------------------------------------------------------------------------------------------


NEVER = [
    ("800.100.155", "51"), ("800.100.165", "41"), ("800.100.159", "43"), ("800.100.171", "04"), ("800.100.158", "59"),
    ("800.100.158", "63"), ("800.100.151", "14"), ("800.100.157", "54"), ("800.100.153", "N7"), ("800.100.162", "61"),
    ("800.100.163", "65"), ("800.100.170", "57"), ("800.100.500", "R0"), ("800.100.501", "R1"), ("800.100.501", "R3"),
    ("800.100.176", "19"), ("900.100.201", "91"), ("900.100.200", "96"), ("800.100.152", "17"), ("800.100.152", "85"),
    ("800.100.152", "generic_decline"), ("800.100.152", ""), ("800.100.190", ""), ("800.100.100", "ZZ"),
    ("300.100.100", "1A"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "response"), NEVER)
def test_other_declines_stand(pair: Pair, code: str, response: str) -> None:
    pair.decline_with(code, response)
    assert pair.pay().code == code
    assert pair.second.asked == []


@pytest.mark.parametrize("row", CASCADABLE_DECLINES, ids=lambda row: row.result)
def test_each_row_of_the_table_leads_on(pair: Pair, row: Any) -> None:
    for response in row.responses:
        pair.decline_with(row.result, response)
        assert pair.pay().code == APPROVED, response
    assert row.why
    assert row.source


def test_the_table_holds_declines_that_no_issuer_and_no_scheme_forbids() -> None:
    for row in CASCADABLE_DECLINES:
        assert row.result in RESULT_CODES
        assert find_result_family(row.result) is ResultFamily.REJECTED_BANK
        assert not any(find_issuer_stop(network, row.result, "") for network in ("", "Visa", "Mastercard"))
    led_on = {de39 for de39, code in RESULT_BY_DE39.items() if is_cascadable(code, de39)}
    assert led_on == {"03", "05", "31"}


@pytest.mark.parametrize(
    "advice", sorted({one.advice for one in ISSUER_STOPS if one.advice} | ADVICE_WAITS.keys() | {"01", "40", "99"})
)
def test_an_advice_of_the_issuer_ends_it(pair: Pair, advice: str) -> None:
    pair.decline_with(NOT_HONOURED, "05", advice)
    assert pair.pay().code == NOT_HONOURED
    assert pair.second.asked == []


@pytest.mark.parametrize(("behaviour", "code"), [("silent", PENDING), ("silent after", PENDING)])
def test_an_unknown_outcome_leads_nowhere_else(pair: Pair, behaviour: str, code: str) -> None:
    pair.first.behaviour = behaviour
    assert pair.pay().code == code
    assert pair.second.asked == []


# --- the schemes' retry rules ---------------------------------------------------------------------------------------


def declines_before(pair: Pair, number: int) -> None:
    """A card that was declined so often before."""
    answer = pair.pay(card__number=UNPUBLISHED_MASTERCARD, paymentBrand="MASTER")
    row = CardDecline.objects.get(payment=answer.id) if CardDecline.objects.count() == 1 else None
    assert row is not None
    for _ in range(number - 1):
        row.pk = None
        row.save()


def test_each_attempt_counts_for_the_schemes(pair: Pair) -> None:
    pair.second.behaviour = "declines"
    answer = pair.pay(card__number=UNPUBLISHED)
    assert answer.code == DECLINED
    assert [row.payment.hex for row in CardDecline.objects.all()] == [answer.id] * 2
    pair.second.behaviour = "approves"
    assert pair.pay(card__number=UNPUBLISHED).code == APPROVED
    assert CardDecline.objects.count() == 3


@pytest.mark.parametrize(("before", "code"), [(8, APPROVED), (9, NOT_HONOURED)])
def test_no_attempt_beyond_the_schemes_limit(pair: Pair, before: int, code: str) -> None:
    """Mastercard: 10 declines of a card in 24 hours; the declined attempt is one of them."""
    declines_before(pair, before)
    asked = len(pair.second.asked)
    assert pair.pay(card__number=UNPUBLISHED_MASTERCARD, paymentBrand="MASTER").code == code
    assert len(pair.second.asked) - asked == int(code == APPROVED)


def test_the_second_of_two_attempts_counts_the_first(pair: Pair) -> None:
    RoutingRule.objects.update(max_cascades=2)
    third = pair.add_third()
    declines_before(pair, 8)
    third.asked.clear()
    pair.second.behaviour = "declines"
    pair.second.decline_code, pair.second.decline_details = NOT_HONOURED, {"AcquirerResponse": "05"}
    assert pair.pay(card__number=UNPUBLISHED_MASTERCARD, paymentBrand="MASTER").code == NOT_HONOURED
    assert third.asked == []
    assert CardDecline.objects.count() == 10


def test_a_soft_decline_before_a_step_up_counts_for_the_attempt_after_the_next(pair: Pair) -> None:
    """Mastercard: with 8 declines before, the soft decline is the ninth, and a decline after it the tenth."""
    pair.first.before = kill
    payment = pair.killed()
    now = clock.merchant_now(payment.merchant)
    retries = RetryWatch(
        merchant=payment.merchant_id, payment=payment.pk, key=b"card", network="Mastercard", merchant_initiated=False,
        now=now, day=8, month=8,
    )  # fmt: skip
    reply = AcquirerReply(code=SOFT, sent={"asked": "once"})
    assert retries.verdict_after_decline() is None
    assert store.record_step_up(payment, Declined(reply=reply, at=now), plan=ScreeningPlan(retries=retries))
    assert retries.verdict_after_decline() is not None
    assert CardDecline.objects.get().payment == payment.pk


# --- the second account does not answer -----------------------------------------------------------------------------


def test_where_the_second_account_is_not_reached_the_decline_stands(pair: Pair) -> None:
    """Its code, and its details; the attempt that reached nobody is no decline for the schemes."""
    pair.second.behaviour = "down"
    answer = pair.pay(card__number=UNPUBLISHED)
    assert (answer.status, answer.code) == (400, NOT_HONOURED)
    assert answer.body["resultDetails"]["AcquirerResponse"] == "05"
    payment = Payment.objects.get()
    assert (events(payment), payment.status) == (["begin", "cascade", "decline"], Status.DECLINED)
    assert [one["code"] for one in payment.route["tried"]] == [NOT_HONOURED, OUT_OF_REACH]
    assert CardDecline.objects.count() == 1
    assert (payment.connector, payment.acquirer_merchant_id) == ("first", "at first"), "the account that declined"
    assert (payment.route["name"], payment.route["cascades"], get_attempt_number(payment)) == ("The first", 0, 1)
    assert exchanges(payment) == [("first", "submit"), ("second", "submit")]
    assert recover_at(payment) is None


def test_the_account_that_declined_last_is_the_payments(pair: Pair) -> None:
    """The first and the second account declined, the third is not reached."""
    RoutingRule.objects.update(max_cascades=2)
    pair.add_third().behaviour = "down"
    pair.second.behaviour = "declines"
    pair.second.decline_code, pair.second.decline_details = "800.100.190", {"AcquirerResponse": "03"}
    assert pair.pay().code == "800.100.190"
    payment = Payment.objects.get()
    assert (payment.connector, payment.route["name"], payment.route["cascades"]) == ("second", "The second", 1)
    assert get_attempt_number(payment) == 2


def test_an_account_that_is_not_reached_at_first_stays_the_payments(pair: Pair) -> None:
    pair.first.behaviour = pair.second.behaviour = "down"
    assert pair.pay().code == OUT_OF_REACH
    assert Payment.objects.get().connector == "second"


def test_where_the_second_account_is_not_reached_the_next_one_is(pair: Pair) -> None:
    third = pair.add_third()
    pair.second.behaviour = "down"
    assert pair.pay().code == APPROVED
    assert events(Payment.objects.get()) == ["begin", "cascade", "reroute", "approve"]
    assert third.requests[0].attempt == 2


def test_a_decline_is_no_failed_reach(pair: Pair) -> None:
    """GATEWAY_FAILOVER_MOST counts the accounts that were not reached alone."""
    pair.add_third()
    pair.second.behaviour = "down"
    with override_settings(GATEWAY_FAILOVER_MOST=1):
        assert pair.pay().code == APPROVED
    with override_settings(GATEWAY_FAILOVER_MOST=0):
        assert pair.pay().code == NOT_HONOURED


@pytest.mark.parametrize(("behaviour", "code"), [("silent", NOT_HONOURED), ("silent after", APPROVED)])
def test_a_lost_answer_of_the_second_account_is_asked_for_there(pair: Pair, behaviour: str, code: str) -> None:
    """What did not arrive leaves the decline of the first account, with its details."""
    pair.second.behaviour = behaviour
    answer = pair.pay()
    assert answer.code == PENDING
    assert recover_after(60.0).settled == 1
    payment = Payment.objects.get()
    assert payment.result_code == code
    if code == NOT_HONOURED:
        assert pair.shop.api.read(answer.id).body["resultDetails"]["AcquirerResponse"] == "05"
        assert pair.second.kinds[-1] == "void"
        assert (payment.connector, payment.acquirer_merchant_id) == ("first", "at first"), "whose decline the answer is"
        assert (payment.route["name"], payment.route["cascades"], get_attempt_number(payment)) == ("The first", 0, 1)
        assert payment.route["tried"][-1]["account"] == "at second", "events of that account still find the payment"
        assert "taken back there" in explain_failover(payment.route)[-1]
    else:
        assert (payment.connector, payment.route["cascades"]) == ("second", 1)
    assert exchanges(payment)[0] == ("first", "submit")
    assert {connector for connector, _ in exchanges(payment)[1:]} == {"second"}
    assert pair.first.kinds == ["submit"]
    assert pair.second.kinds[:2] == ["submit", "inquire"]
    assert Notification.objects.filter(payment=payment.pk, action="CREATED").count() == 1


@pytest.mark.parametrize("silent", [0, 1])
def test_a_late_approval_of_the_second_account_is_voided_there(pair: Pair, silent: int) -> None:
    """Goals, R1: recovery has given the payment back to the account that declined, and the second one approves after
    all: the void goes to the second, as its second attempt; then the payment is the first account's again."""
    voids: list[AcquirerRequest] = []

    class Forgetful(Acquirer):
        def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
            return NotFoundAtAcquirer(received={"inquiry": "a request cannot be asked about"})

        def void(self, request: AcquirerRequest) -> AcquirerReply:
            voids.append(request)
            if self.booked and len(voids) <= 1 + silent:
                raise OutcomeUnknownError("no answer", {})
            return super().void(request)

    second = Forgetful("second")
    known(pair.monkeypatch, pair.first, second)
    second.before = in_another_process(lambda: recover_after(60.0))
    assert pair.pay().code == NOT_HONOURED
    payment = Payment.objects.get()
    assert (payment.status, payment.result_code, second.booked != {}) == (Status.DECLINED, NOT_HONOURED, True)
    assert (payment.connector, get_attempt_number(payment)) == ("second", 2), "where the money is"
    for settled in (*[0] * silent, 1):
        assert recover_after(60.0).settled == settled
    payment.refresh_from_db()
    assert (second.booked, pair.first.kinds) == ({}, ["submit"])
    assert {(void.attempt, void.account.merchant) for void in voids} == {(2, "at second")}
    assert (payment.connector, payment.result_code, get_attempt_number(payment)) == ("first", NOT_HONOURED, 1)
    assert not OpenPayment.objects.exists()


def test_a_late_approval_of_an_account_that_had_declined_with_the_same_code_leaves_the_payment_there(
    pair: Pair,
) -> None:
    """Both accounts answered with 800.100.152: the code does not tell whose decline it is."""
    assert pair.second.behaviour != "declines"
    pair.second.behaviour, pair.second.decline_code = "declines", NOT_HONOURED
    assert pair.pay().code == NOT_HONOURED
    payment = Payment.objects.get()
    assert (payment.connector, payment.result_code) == ("second", NOT_HONOURED)
    reply = AcquirerReply(code=APPROVED, connector_tx_id="late", sent={"late": "yes"}, received={"late": "yes"})
    late = Approved(reply=reply, at=clock.real_now(), duration_ms=1)
    store.record_late_approval(payment, late, asked=store.get_attempt_columns(payment), trace=None)
    assert recover_after(60.0).settled == 1
    payment.refresh_from_db()
    assert (payment.connector, payment.acquirer_merchant_id, get_attempt_number(payment)) == ("second", "at second", 2)
    assert pair.second.kinds[-1] == "void"
    assert not OpenPayment.objects.exists()


def test_a_late_approval_that_changed_before_it_was_closed_is_not_settled(pair: Pair) -> None:
    pair.first.decline_code = "800.100.151"
    pair.pay()
    payment = Payment.objects.get()
    Payment.objects.filter(pk=payment.pk).update(sequence=payment.sequence + 1)
    assert not store.close_late_approval(payment)


# --- workers that die, and races with recovery ----------------------------------------------------------------------


def test_killed_between_the_decline_and_the_move_the_decline_is_found(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "record_cascade", lambda *args, **names: kill())
    payment = pair.killed()
    assert (payment.status, payment.connector) == (Status.STARTED, "first")
    assert recover_after(60.0).settled == 1
    payment.refresh_from_db()
    assert payment.status == Status.DECLINED
    assert pair.second.asked == []


def test_killed_after_the_move_the_second_account_is_asked_and_not_the_first(pair: Pair) -> None:
    pair.second.before = kill
    payment = pair.killed()
    assert (payment.status, payment.connector) == (Status.STARTED, "second")
    assert recover_after(60.0).settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, NOT_HONOURED)
    assert (pair.first.kinds, pair.second.kinds) == (["submit"], ["submit", "inquire", "void"])
    assert events(payment) == ["begin", "cascade", "lose", "decline"]


def test_killed_after_the_second_account_approved_its_approval_is_found(pair: Pair) -> None:
    pair.second.after = kill
    payment = pair.killed()
    assert recover_after(60.0).settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.connector_tx_id) == (Status.APPROVED, "second-0")
    assert events(payment) == ["begin", "cascade", "lose", "approve"]


def test_recovery_that_read_the_payment_before_the_move_cannot_move_it(pair: Pair) -> None:
    claimed: list[Payment] = []
    doubted: list[bool] = []
    pair.first.before = lambda: claimed.extend(claim_after(300))
    pair.second.before = lambda: doubted.append(late_outcomes.mark_outcome_unknown(claimed[0]))
    assert pair.pay().code == APPROVED
    assert (claimed[0].connector, doubted) == ("first", [False])
    assert events(Payment.objects.get()) == CASCADED


def test_a_payment_that_recovery_has_taken_over_is_not_moved(pair: Pair) -> None:
    pair.first.before = lambda: [late_outcomes.mark_outcome_unknown(row) for row in claim_after(300)]
    assert pair.pay().code == NOT_HONOURED
    payment = Payment.objects.get()
    assert (payment.status, payment.connector, events(payment)) == (
        Status.DECLINED, "first", ["begin", "lose", "decline"],
    )  # fmt: skip
    assert pair.second.asked == []


def test_one_idempotency_key_is_one_payment_and_one_charge(pair: Pair) -> None:
    """Parallel and later repeats are answered by the same payment."""

    def send() -> Answer:
        return pair.shop.api.post("/v1/payments", fields(testMode="EXTERNAL"), **{"Idempotency-Key": "one-order"})

    answers = at_once(send, send, send)
    again = send()
    assert again.code == APPROVED
    assert {answer.id for answer in answers if answer.code == APPROVED} == {again.id}
    assert (len(pair.first.requests), len(pair.second.requests), Payment.objects.count()) == (1, 1, 1)


# --- with 3-D Secure and risk ---------------------------------------------------------------------------------------


def test_after_a_challenge_the_proof_goes_to_the_second_account_too(pair: Pair) -> None:
    pair.shop.channel.three_d_secure = True
    pair.shop.channel.save()
    shopper = threeds.Shopper.of(threeds.buy(pair.shop.api, threeds.PASS, testMode="EXTERNAL"))
    shopper.open()
    shopper.enter()
    payment = Payment.objects.get()
    assert events(payment) == ["begin", "suspend", "resume", "cascade", "approve"]
    [first], [second] = pair.first.requests, pair.second.requests
    assert second.cryptogram is not None
    assert (second.cryptogram, second.parameters) == (first.cryptogram, first.parameters)
    assert not OpenPayment.objects.exists()


def test_a_second_account_that_wants_a_challenge_gets_it_and_is_asked_again(pair: Pair) -> None:
    """Cascade, then step-up: three attempts with a key each, the last two at the second account."""
    pair.shop.channel.three_d_secure = True
    pair.shop.channel.save()
    ThreeDSecureConfiguration.objects.create(channel=pair.shop.channel, on_soft_decline="challenge")
    pair.second.behaviour = "declines"
    pair.second.decline_code, pair.second.decline_details = SOFT, {"AcquirerResponse": "1A"}
    answer = threeds.buy(pair.shop.api, ONLY_IF_ASKED, testMode="EXTERNAL")
    assert answer.code == "000.200.000"
    pair.second.behaviour = "approves"
    threeds.Shopper.of(answer).enter()
    payment = Payment.objects.get()
    assert (payment.status, payment.connector) == (Status.APPROVED, "second")
    assert events(payment) == ["begin", "cascade", "step_up", "suspend", "resume", "approve"]
    assert [one.attempt for one in pair.first.requests + pair.second.requests] == [1, 2, 3]
    assert not OpenPayment.objects.exists()


def challenged(pair: Pair) -> threeds.Shopper:
    """A shopper whose payment the first account softly declined, and declines with 05 once they are back."""
    pair.shop.channel.three_d_secure = True
    pair.shop.channel.save()
    ThreeDSecureConfiguration.objects.create(channel=pair.shop.channel, on_soft_decline="challenge")
    pair.decline_with(SOFT, "1A")
    shopper = threeds.Shopper.of(threeds.buy(pair.shop.api, ONLY_IF_ASKED, testMode="EXTERNAL"))
    pair.decline_with(NOT_HONOURED, "05")
    return shopper


def test_a_decline_after_the_challenge_goes_on_with_the_proof(pair: Pair) -> None:
    """Step-up, then cascade: the third attempt is the second account's."""
    challenged(pair).enter()
    payment = Payment.objects.get()
    assert (payment.status, payment.connector) == (Status.APPROVED, "second")
    assert events(payment) == ["begin", "step_up", "suspend", "resume", "cascade", "approve"]
    assert [one.attempt for one in pair.first.requests] == [1, 2]
    [third] = pair.second.requests
    assert (third.attempt, third.cryptogram) == (3, pair.first.requests[1].cryptogram)
    assert third.cryptogram is not None


def test_recovery_asks_about_the_third_attempt_at_the_second_account(pair: Pair) -> None:
    pair.second.behaviour = "silent after"
    challenged(pair).enter()
    payment = Payment.objects.get()
    assert (payment.status, payment.connector) == (Status.IN_DOUBT, "second")
    assert recover_after(60.0).settled == 1
    payment.refresh_from_db()
    assert payment.status == Status.APPROVED
    asked = [one.attempt for one in pair.second.requests]
    assert asked == [3] * len(asked)
    assert (pair.first.kinds, pair.second.kinds) == (["submit"] * 2, ["submit", "inquire"])


# --- tried at the stub acquirer with published test cards -----------------------------------------------------------


@pytest.mark.parametrize(
    ("card", "code"),
    [("4000018301000000", APPROVED), ("5200018301000005", APPROVED), ("4000018302000009", "800.100.183"),
     ("4000018303000008", PENDING)],
)  # fmt: skip
def test_published_cards_show_it_at_the_stub_acquirer(
    committed: Shop, acquirer: StubProcess, card: str, code: str
) -> None:
    rule = RoutingRule.objects.create(channel=committed.channel, name="all", max_cascades=1)
    for number in (0, 1):
        row = account_at_stub(committed.channel, acquirer_merchant_id=f"M-{number}")
        RoutingTarget.objects.create(rule=rule, account=row, weight=1 - number, position=number)
    brand = "MASTER" if card.startswith("5") else "VISA"
    answer = committed.api.pay(testMode="EXTERNAL", card__number=card, paymentBrand=brand)
    assert answer.code == code
    if code == PENDING:
        recover_after(60.0)
        assert committed.api.read(answer.id).code == APPROVED
    payment = Payment.objects.get()
    assert payment.acquirer_merchant_id == "M-1"
    submitted = acquirer.entries(kind="submit")
    assert [one["merchant"] for one in submitted] == ["M-0", "M-1"]
    outcomes = [(one["key"], one["outcome"]) for one in submitted]
    assert outcomes[0] == (payment.id.hex, "declined")
    assert outcomes[1:] == [(f"{payment.id.hex}-2", "declined" if code == "800.100.183" else "approved")]


# --- the acquirers' health -------------------------------------------------------------------------------------------


class OneProcessor(Acquirer):
    """Two accounts at one processor: each behaves as ``fate`` says, and ``lost_voids`` voids have no answer."""

    fate: dict[str, str]
    lost_voids = 0

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        self.behaviour = self.fate[request.account.merchant]
        return super().submit(request)

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        if self.lost_voids:
            self.lost_voids -= 1
            raise OutcomeUnknownError("no answer to the void", {"void": request.payment.hex})
        return super().void(request)


def add_processor(shop: Shop, monkeypatch: pytest.MonkeyPatch, **fate: str) -> OneProcessor:
    one = OneProcessor("one")
    one.fate = fate
    one.decline_code, one.decline_details = NOT_HONOURED, {"AcquirerResponse": "05"}
    known(monkeypatch, one)
    rule = RoutingRule.objects.create(channel=shop.channel, name="all", max_cascades=1)
    for position, name in enumerate(fate):
        row = account(shop.channel, "one", name, name=name)
        RoutingTarget.objects.create(rule=rule, account=row, weight=int(position == 0), position=position)
    return one


def read_health(shop: Shop) -> dict[str, Any]:
    cache.clear()
    office = signed_in(person("health", Role.MANAGER, shop.merchant))
    return {own.name: own for own in office.get("/admin/gateway/acquireraccount/health/").context["accounts"]}


def test_what_was_taken_back_is_told_of_the_account_that_was_asked(
    committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The payment is the first account's again. The second one gave no answer to it, nor to the first void: that is
    the second one's fault, where nothing was decided, and from where nothing went on."""
    one = add_processor(committed, monkeypatch, declining="declines", mute="silent")
    one.lost_voids = 1
    assert committed.api.pay(testMode="EXTERNAL").code == PENDING
    assert [recover_after(60.0).settled for _ in range(2)] == [0, 1]
    payment = Payment.objects.get()
    assert (payment.acquirer_merchant_id, payment.result_code) == ("declining", NOT_HONOURED)
    shown = read_health(committed)
    counted = {name: (own.approved, own.declined, own.left, own.sum(2)) for name, own in shown.items()}
    assert counted == {"declining": (0, 1, 0, 0), "mute": (0, 0, 0, 1)}
    assert {name: [fault["why"] for fault in own.faults] for name, own in shown.items()} == {
        "declining": [],
        "mute": ["no answer to the void", "no answer"],
    }


def test_an_attempt_after_a_step_up_is_told_of_the_account_that_was_asked(
    committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first account is asked twice, without and with a challenge; then the second one."""
    add_processor(committed, monkeypatch, first="declines", second="approves")
    answer = committed.api.pay(testMode="EXTERNAL")
    assert answer.code == APPROVED
    payment = Payment.objects.get()
    soft = AcquirerExchange.objects.filter(payment=payment.pk).earliest("id")
    # As a step-up leaves it: a message to the first account before, without a move to another one.
    AcquirerExchange.objects.create(
        payment=payment, id=soft.id - 1, connector="one", kind="submit", sent={}, received={}, duration_ms=5_000,
        at=soft.at - timedelta(seconds=9),
    )  # fmt: skip
    AcquirerExchange.objects.filter(payment=payment.pk).exclude(id=soft.id - 1).update(duration_ms=3)
    AcquirerExchange.objects.filter(payment=payment.pk, id=soft.id).update(duration_ms=4_000)
    shown = read_health(committed)
    assert (shown["first"].p50, shown["first"].p95, shown["second"].p95) == (4_000, 5_000, 3)


def test_an_hours_column_leads_to_what_it_counts(committed: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It led to all payments of the channel. Where another account has one of them now, no list holds it."""
    add_processor(committed, monkeypatch, first="declines", second="approves")
    assert committed.api.pay(testMode="EXTERNAL").code == APPROVED
    office = signed_in(person("reader", Role.MANAGER, committed.merchant))
    counted = {}
    for name, own in read_health(committed).items():
        rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', own.picture)
        counted[name] = [
            (re.findall(r'href="([^"]+)"', head), sum(map(int, re.findall(r"<td[^>]*>(\d+)</td>", cells))))
            for head, cells in rows
        ]
    assert [links for links, number in counted["first"] if number] == [[]]
    (((link,), number),) = [(links, number) for links, number in counted["second"] if number]
    listed = office.get(html.unescape(link)).context["rows"]
    assert len(listed) == number == 1
