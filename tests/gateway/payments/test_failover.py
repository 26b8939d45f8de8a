"""A payment that certainly was not accepted goes on to the next acquirer, once, and recovery always asks the right one.

Source: docs/routing.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings

from gateway.access import audit_log
from gateway.configuration.apply import apply_configuration, find_configuration_target
from gateway.connectors import accounts
from gateway.connectors.port import AcquirerReply, ConnectorSetting
from gateway.core import clock
from gateway.models import (
    AcquirerAccount,
    AcquirerExchange,
    CardDecline,
    OpenPayment,
    Payment,
    PaymentEvent,
    RoutingRule,
    RoutingTarget,
    Status,
)
from gateway.payments import late_outcomes, recovery, store
from gateway.payments.risk_screening import ScreeningPlan
from gateway.risk.retry_rules import RetryWatch
from tests.support import threeds
from tests.support.acquirers import APPROVED, DECLINED, Acquirer, Killed, account, known
from tests.support.database import recover_at, statements
from tests.support.fixtures import Shop
from tests.support.recovery import claim_after, recover_after

pytestmark = pytest.mark.django_db(transaction=True)
OUT_OF_REACH = "900.100.600"
PENDING = "000.200.001"
REVERSED = "900.100.301"


class Pair:
    """A shop with accounts at two acquirers, the first of which nobody reaches."""

    def __init__(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shop, self.first, self.second = shop, Acquirer("first", "down"), Acquirer("second")
        known(monkeypatch, self.first, self.second)
        self.accounts = [account(shop.channel, one, name=f"The {one}") for one in ("first", "second")]

    def pay(self, **more: Any) -> Any:
        return self.shop.api.pay(testMode="EXTERNAL", **more)

    def killed(self) -> Payment:
        """Pay with a worker that dies on the way."""
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


def recover(after_s: float = 60.0) -> recovery.RecoverySummary:
    return recover_after(after_s)


def test_a_payment_that_nobody_took_goes_to_the_next_account_and_says_so(pair: Pair) -> None:
    """Failover to the next acquirer; the choice and its reason kept on the payment."""
    answer = pair.pay()
    assert (answer.status, answer.code) == (200, APPROVED)
    payment = Payment.objects.get()
    assert (payment.connector, payment.acquirer_merchant_id, payment.connector_tx_id) == (
        "second",
        "at second",
        "second-0",
    )
    assert events(payment) == ["begin", "reroute", "approve"]
    assert exchanges(payment) == [("first", "submit"), ("second", "submit")]
    assert recover_at(payment) is None
    [tried] = payment.route["tried"]
    assert tried.pop("at")
    assert tried == {
        "name": "The first",
        "connector": "first",
        "account": "at first",
        "code": OUT_OF_REACH,
        "why": "unreachable: no line",
        "sent": True,
    }
    assert payment.route["name"] == "The second"
    assert "next" not in payment.route


def test_follow_ups_go_where_the_money_is_and_nowhere_else(pair: Pair) -> None:
    """Follow-ups never fail over."""
    pa = pair.pay(paymentType="PA").id
    assert pair.shop.api.follow(pa, "CP", "40.00").code == APPROVED
    pair.second.behaviour = "down"
    pair.first.behaviour = "approves"
    answer = pair.shop.api.follow(pa, "CP", "10.00")
    assert (answer.status, answer.code) == (400, OUT_OF_REACH)
    row = Payment.objects.get(pk=answer.id)
    assert (row.connector, row.route, row.status) == ("second", None, Status.DECLINED)
    assert pair.first.kinds == ["submit"]


@pytest.mark.parametrize(
    "behaviour, code", [("declines", DECLINED), ("silent", PENDING), ("silent after", PENDING), ("approves", APPROVED)]
)
def test_an_answer_or_silence_leads_nowhere_else(pair: Pair, behaviour: str, code: str) -> None:
    """Never after silence."""
    pair.first.behaviour = behaviour
    assert pair.pay().code == code
    payment = Payment.objects.get()
    assert (payment.connector, "tried" in payment.route) == ("first", False)
    assert pair.second.asked == []


def test_failover_ends_when_nobody_is_left_and_the_last_word_is_kept(pair: Pair) -> None:
    """Bounded."""
    pair.second.behaviour = "down"
    answer = pair.pay()
    assert (answer.status, answer.code) == (400, OUT_OF_REACH)
    payment = Payment.objects.get()
    assert (payment.status, recover_at(payment)) == (Status.DECLINED, None)
    assert [one["connector"] for one in payment.route["tried"]] == ["first", "second"]
    assert exchanges(payment) == [("first", "submit"), ("second", "submit")]


def test_failover_is_bounded_by_number_and_by_time(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded by number and by total time."""
    third = Acquirer("third")
    pair.second.behaviour = "down"
    known(monkeypatch, pair.first, pair.second, third)
    account(pair.shop.channel, "third")
    with override_settings(GATEWAY_FAILOVER_MOST=1):
        assert pair.pay().code == OUT_OF_REACH
    with override_settings(GATEWAY_FAILOVER_WITHIN_S=0):
        assert pair.pay().code == OUT_OF_REACH
    assert third.asked == []
    assert pair.second.kinds == ["submit"]
    assert pair.pay().code == APPROVED
    assert third.kinds == ["submit"]


def test_a_rule_with_one_account_leaves_nowhere_to_go(pair: Pair) -> None:
    """The rest of the rule's targets is the failover order."""
    rule = RoutingRule.objects.create(channel=pair.shop.channel, name="only the first")
    RoutingTarget.objects.create(rule=rule, account=pair.accounts[0])
    assert pair.pay().code == OUT_OF_REACH
    assert pair.second.asked == []
    RoutingTarget.objects.create(rule=rule, account=pair.accounts[1], weight=0)
    assert pair.pay().code == APPROVED


# --- accounts whose secrets do not open ---------------------------------------------------------------------------


KEY = ConnectorSetting(name="key", about="A key.", pattern=".+", allowed="any text", required=True, secret=True)


@pytest.fixture
def locked(pair: Pair) -> Iterator[Pair]:
    """The first acquirer answers, but nobody can open what it wants to be asked with."""
    accounts.clear_account_cache()
    pair.first.behaviour, pair.first.settings = "approves", (KEY,)
    AcquirerAccount.objects.filter(connector="first").update(secrets_sealed=b"of another key")
    yield pair
    accounts.clear_account_cache()


def test_an_account_whose_secrets_do_not_open_is_passed_by(locked: Pair) -> None:
    answer = locked.pay()
    assert (answer.status, answer.code) == (200, APPROVED)
    payment = Payment.objects.get()
    assert (payment.connector, locked.first.asked) == ("second", [])
    assert [one["why"] for one in payment.route["tried"]] == ["secrets: they do not open"]


def test_a_payment_with_no_other_account_is_declined_at_once_and_not_in_doubt(locked: Pair) -> None:
    locked.accounts[1].delete()
    answer = locked.pay()
    assert (answer.status, answer.code) == (400, OUT_OF_REACH)
    payment = Payment.objects.get()
    assert (payment.status, recover_at(payment), locked.first.asked) == (Status.DECLINED, None, [])


def test_a_follow_up_is_refused_before_it_begins(locked: Pair) -> None:
    AcquirerAccount.objects.filter(connector="first").update(secrets_sealed=None)
    paid = locked.pay(paymentType="PA").id
    AcquirerAccount.objects.filter(connector="first").update(secrets_sealed=b"of another key")
    accounts.clear_account_cache()
    answer = locked.shop.api.follow(paid, "CP", "40.00")
    assert (answer.status, answer.code) == (400, "900.100.205")
    assert [payment.id.hex for payment in Payment.objects.all()] == [paid]
    assert locked.first.kinds == ["submit"]


# --- workers that die ---------------------------------------------------------------------------------------------


def kill() -> None:
    raise Killed


def test_killed_before_the_move_the_first_acquirer_is_asked(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1: kill -9 at any point leaves recovery asking the right acquirer."""
    monkeypatch.setattr(store, "reroute_payment", lambda *args, **names: kill())
    payment = pair.killed()
    assert (payment.status, payment.connector) == (Status.STARTED, "first")
    assert recover().settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, REVERSED)
    assert (pair.first.kinds, pair.second.kinds) == (["submit", "inquire", "void"], [])


def test_killed_after_the_move_the_second_acquirer_is_asked_and_not_the_first(pair: Pair) -> None:
    """R1; the time to recover it begins anew with the move."""
    seen: list[Any] = []
    pair.first.before = lambda: seen.append(OpenPayment.objects.get().recover_at)
    pair.second.before = kill
    payment = pair.killed()
    assert (payment.status, payment.connector, payment.acquirer_merchant_id) == (Status.STARTED, "second", "at second")
    moved = recover_at(payment)
    assert moved is not None
    assert moved > seen[0]
    assert recover().settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, REVERSED)
    assert (pair.first.kinds, pair.second.kinds) == (["submit"], ["submit", "inquire", "void"])


def test_killed_after_the_second_acquirer_accepted_its_approval_is_found(pair: Pair) -> None:
    """R1: 0 lost."""
    pair.second.after = kill
    payment = pair.killed()
    assert recover().settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.connector_tx_id) == (Status.APPROVED, "second-0")
    assert events(payment) == ["begin", "reroute", "lose", "approve"]
    assert pair.first.kinds == ["submit"]


# --- races with recovery ------------------------------------------------------------------------------------------


def test_recovery_that_read_the_payment_before_the_move_cannot_move_it(pair: Pair) -> None:
    """R1: it would ask the first acquirer, and decline what the second accepts."""
    claimed: list[Payment] = []
    doubted: list[bool] = []
    pair.first.before = lambda: claimed.extend(claim_after(300))
    pair.second.before = lambda: doubted.append(late_outcomes.mark_outcome_unknown(claimed[0]))
    assert pair.pay().code == APPROVED
    assert claimed[0].connector == "first"
    assert doubted == [False]
    assert events(Payment.objects.get()) == ["begin", "reroute", "approve"]


def test_a_payment_that_recovery_has_taken_over_is_not_moved(pair: Pair) -> None:
    """R1: whoever came first decides where it is; the acquirer's word that it did not accept still counts."""
    pair.first.before = lambda: [late_outcomes.mark_outcome_unknown(row) for row in claim_after(300)]
    answer = pair.pay()
    payment = Payment.objects.get()
    assert (answer.code, payment.status, payment.connector) == (OUT_OF_REACH, Status.DECLINED, "first")
    assert events(payment) == ["begin", "lose", "decline"]
    assert pair.second.asked == []


# --- what goes along ----------------------------------------------------------------------------------------------


def test_the_proof_of_an_authentication_and_the_card_go_to_the_next_acquirer(pair: Pair) -> None:
    """Wallet and 3DS proofs stay valid."""
    pair.shop.channel.three_d_secure = True
    pair.shop.channel.save()
    answer = threeds.buy(pair.shop.api, threeds.FRICTIONLESS, testMode="EXTERNAL")
    assert answer.code == APPROVED
    [first], [second] = pair.first.requests, pair.second.requests
    assert first.parameters == second.parameters
    assert second.cryptogram is not None
    assert second.cryptogram == first.cryptogram
    assert second.card == first.card
    assert second.card is not None
    assert second.card.cvv is not None
    assert (first.account.merchant, second.account.merchant) == ("at first", "at second")


def test_after_a_challenge_the_payment_can_still_go_to_the_next_acquirer(pair: Pair) -> None:
    """Only first payments, also those that waited for their shopper."""
    pair.shop.channel.three_d_secure = True
    pair.shop.channel.save()
    answer = threeds.buy(pair.shop.api, threeds.PASS, testMode="EXTERNAL")
    assert pair.first.asked == []
    shopper = threeds.Shopper.of(answer)
    shopper.open()
    shopper.enter()
    payment = Payment.objects.get()
    assert (payment.status, payment.connector) == (Status.APPROVED, "second")
    assert events(payment) == ["begin", "suspend", "resume", "reroute", "approve"]


def test_what_the_rules_on_avs_take_back_is_taken_back_where_it_was_approved(pair: Pair) -> None:
    """The rules on AVS and CVV use the connector that answered."""
    target = find_configuration_target(pair.shop.channel.id)
    assert target is not None
    apply_configuration(
        target, {"risk": {"set": "S", "sets": [{"key": "S", "avs": {"N": "decline"}}]}}, by=audit_log.COMMAND_LINE_ACTOR
    )
    pair.second.behaviour = "wrong address"
    assert pair.pay().code == "800.400.100"
    assert (pair.first.kinds, pair.second.kinds) == (["submit"], ["submit", "void"])
    assert pair.second.booked == {}


# --- what it costs ------------------------------------------------------------------------------------------------


def test_routing_costs_one_statement_for_external_and_none_for_internal(pair: Pair) -> None:
    """Goals, P4: a payment of INTERNAL asks for no rule and keeps no route."""
    rule = RoutingRule.objects.create(channel=pair.shop.channel, name="all")
    RoutingTarget.objects.create(rule=rule, account=pair.accounts[1])
    with statements() as seen:
        assert pair.shop.api.pay().status == 200
    assert not [text for text in seen if "routing" in text or "acquireraccount" in text]
    assert Payment.objects.get().route is None
    with statements() as seen:
        assert pair.pay().status == 200
    assert len([text for text in seen if "routing" in text or "acquireraccount" in text]) == 1


# --- what networks count ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "brand", "response", "counted"),
    [
        ("4012888888881881", "VISA", "91", 1),
        ("4012888888881881", "VISA", "90", 0),
        ("5555555555554444", "MASTER", "91", 0),
    ],
)
def test_a_fault_on_the_way_to_the_issuer_counts_at_visa_though_the_next_account_approves(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, number: str, brand: str, response: str, counted: int
) -> None:
    """docs/decisions/0158."""
    reply = AcquirerReply(
        code="900.100.201", sent={"a": 1}, details={"AcquirerResponse": response}, retryable_elsewhere=True
    )
    monkeypatch.setattr(pair.first, "submit", lambda request: reply)
    assert pair.pay(card__number=number, paymentBrand=brand).code == APPROVED
    payment = Payment.objects.get()
    assert events(payment) == ["begin", "reroute", "approve"]
    assert list(CardDecline.objects.values_list("payment", flat=True)) == [payment.pk] * counted


@pytest.mark.parametrize(
    ("network", "before", "response", "sent", "forbidden"),
    [
        ("Visa", 14, "91", True, True),
        ("Visa", 13, "91", True, False),
        ("Visa", 14, "90", True, False),
        ("Visa", 14, "91", False, False),
        ("Mastercard", 14, "91", True, False),
    ],
)
def test_a_refusal_that_is_the_last_that_visa_allows_leads_to_no_other_account(
    network: str, before: int, response: str, sent: bool, forbidden: bool
) -> None:
    """Visa: 15 declines of a card in 30 days."""
    now = clock.real_now()
    retries = RetryWatch(
        merchant=UUID(int=1), payment=UUID(int=2), key=b"card", network=network, merchant_initiated=False, now=now,
        month=before,
    )  # fmt: skip
    refusal = AcquirerReply(
        code="900.100.201", sent={"a": 1} if sent else {}, details={"AcquirerResponse": response},
        retryable_elsewhere=True,
    )  # fmt: skip
    assert ScreeningPlan(retries=retries).forbids_failover(refusal) is forbidden
    assert ScreeningPlan().forbids_failover(refusal) is False
