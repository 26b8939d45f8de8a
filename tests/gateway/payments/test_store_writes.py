"""What each move of a payment writes, and that it writes nothing of it where the payment was moved before.

Beside every payment there is another one with the same rows, which stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import override_settings

from gateway.connectors.port import AcquirerReply
from gateway.core import clock
from gateway.models import (
    AcquirerExchange,
    AuthorizationExpiry,
    AuthorizationRelease,
    BankOrder,
    BankOrderEvent,
    ChainState,
    Notification,
    OpenPayment,
    Payment,
    PaymentEvent,
    RequestLog,
    Status,
    Suspension,
)
from gateway.payments import store
from gateway.payments.outcomes import Approved, Declined, OutcomeUnknown, Suspended
from gateway.payments.states import PaymentTransitionError
from gateway.payments.stored_answer import EarlierDecline, PrivateFacts, TokenUse, read_private_facts
from tests.gateway.payments.test_store import begun, complete, trace
from tests.support.database import others_stay, read_rows
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

CODE = "800.100.155"
REPLY = AcquirerReply(code=CODE, sent={"a": 1}, received={"b": 2}, details={"MerchantAdviceCode": "02"})


def again(payment: Payment) -> Payment:
    return Payment.objects.select_related("merchant", "channel").get(pk=payment.pk)


def events(payment: Payment) -> list[tuple[int, str, str, str]]:
    found = PaymentEvent.objects.filter(payment=payment).order_by("sequence")
    return [(one.sequence, one.event, one.status, one.result_code) for one in found]


def told(payment: Payment) -> list[tuple[str, str, int]]:
    found = Notification.objects.filter(payment_id=payment.pk).order_by("id")
    return [(one.kind, one.action, one.sequence) for one in found]


def held(shop: Shop) -> tuple[Payment, int]:
    """An authorization that can expire, and the row that asks."""
    payment = Payment.objects.get(pk=shop.api.pay(paymentType="PA", amount="100.00").id)
    return payment, AuthorizationExpiry.objects.get(authorization=payment.pk).pk


# The end of an authorization.


@pytest.mark.parametrize("release", [True, False])
@pytest.mark.parametrize("later", [True, False])
def test_an_expiry_is_written_with_its_event_its_webhook_and_what_comes_next(
    shop: Shop, release: bool, later: bool
) -> None:
    payment, row = held(shop)
    _, others_row = held(shop)
    end = payment.expires_at
    assert end is not None
    at, again_at = end + timedelta(hours=1), end + timedelta(days=30)
    before = AuthorizationExpiry.objects.get(pk=others_row).due_at
    with others_stay(payment.pk.hex):
        assert store.expire_authorization(
            payment, end, at=at, expiry=row, release=release, again_at=again_at if later else None
        )
    kept = again(payment)
    assert (kept.status, kept.expires_at, kept.expired_at, kept.sequence) == (Status.APPROVED, end, at, 3)
    assert events(payment)[-1] == (3, "expire", "APPROVED", "000.100.110")
    assert PaymentEvent.objects.get(payment=payment, sequence=3).at == at
    assert told(payment)[-1] == ("PAYMENT", "UPDATED", 3)
    due = AuthorizationExpiry.objects.filter(pk=row).values_list("due_at", flat=True)
    assert list(due) == [again_at] * later
    assert AuthorizationExpiry.objects.get(pk=others_row).due_at == before
    found = AuthorizationRelease.objects.values_list("authorization", "cause", "created_at")
    assert list(found) == [(payment.pk, "EXPIRY", at)] * release
    assert ChainState.objects.get(pk=payment.pk).expired


@pytest.mark.parametrize("changed", ["sequence", "follow_ups"])
def test_an_authorization_that_moved_meanwhile_neither_expires_nor_is_released(shop: Shop, changed: str) -> None:
    payment, row = held(shop)
    stale = again(payment)
    Payment.objects.filter(pk=payment.pk).update(**{changed: getattr(payment, changed) + 1})
    end = payment.expires_at
    assert end is not None
    before = read_rows()
    assert not store.insert_release(stale, AuthorizationRelease.Cause.FINAL, at=end, expiry=row)
    assert not store.expire_authorization(stale, end, at=end, expiry=row, release=True)
    assert read_rows() == before


def test_a_release_takes_the_place_of_the_row_that_asked(shop: Shop) -> None:
    payment, row = held(shop)
    _, others_row = held(shop)
    at = clock.real_now()
    with others_stay(payment.pk.hex):
        assert store.insert_release(payment, AuthorizationRelease.Cause.FINAL, at=at, expiry=row)
    release = AuthorizationRelease.objects.get()
    assert (release.authorization, release.cause, release.created_at) == (payment.pk, "FINAL", at)
    assert list(AuthorizationExpiry.objects.values_list("pk", flat=True)) == [others_row]
    assert again(payment).sequence == payment.sequence


def test_only_an_approved_authorization_expires_and_only_an_approved_transfer_is_returned(shop: Shop) -> None:
    payment = begun(shop)
    at = clock.real_now()
    for act in (
        lambda: store.expire_authorization(payment, at, at=at, expiry=1, release=False),
        lambda: store.record_returned_transfer(payment, "AC04", at=at),
    ):
        with pytest.raises(PaymentTransitionError):
            act()
    assert again(payment).sequence == 1


# A transfer that came back.


@pytest.mark.parametrize("reason", ["AC04", ""])
def test_a_transfer_that_came_back_is_written_once_with_its_reason_and_the_banks_event(shop: Shop, reason: str) -> None:
    paid = [Payment.objects.get(pk=shop.api.pay(paymentType="CD").id) for _ in range(2)]
    told_of = []
    for one in paid:
        order = BankOrder.objects.create(
            payment=one.pk, merchant=shop.merchant, channel=shop.channel, kind="PAY", amount=one.amount, currency="EUR",
            created_at=one.created_at,
        )  # fmt: skip
        told_of.append(BankOrderEvent.objects.create(order=order, state="RETURNED", at=one.created_at))
    payment, stale = paid[0], again(paid[0])
    at = clock.real_now() + timedelta(days=2)
    store.record_returned_transfer(payment, reason, at=at, bank_event=told_of[0].pk)
    kept = again(payment)
    assert (kept.status, kept.returned_at, kept.sequence) == (Status.APPROVED, at, 3)
    assert kept.answer.get("returnReason") == (reason or None)
    assert events(payment)[-1][:3] == (3, "return", "APPROVED")
    assert told(payment)[-1] == ("PAYMENT", "UPDATED", 3)
    assert list(BankOrderEvent.objects.order_by("id").values_list("applied", flat=True)) == [True, False]
    before = read_rows()
    with pytest.raises(PaymentTransitionError):
        store.record_returned_transfer(stale, reason, at=at, bank_event=told_of[1].pk)
    assert read_rows() == before


# An exchange that moves nothing.


@pytest.mark.parametrize("changes", [{"sequence": 2}, {"status": "IN_DOUBT", "result_code": "000.200.001"}])
def test_an_inquiry_about_a_payment_that_moved_is_not_kept(shop: Shop, changes: dict[str, Any]) -> None:
    payment = begun(shop)
    stale = again(payment)
    Payment.objects.filter(pk=payment.pk).update(**changes)
    at = clock.real_now()
    before = read_rows()
    assert not store.record_exchange(stale, "inquire", {}, {}, at=at, duration_ms=1, inquire_after=timedelta(0))
    assert read_rows() == before
    assert store.record_exchange(stale, "submit", {}, {}, at=at, duration_ms=1), "without it nothing is compared"


def test_an_answer_that_comes_for_a_payment_without_a_code_is_logged_as_undecided(shop: Shop) -> None:
    """Another worker moved the payment while its acquirer was asked, and nothing is decided yet."""
    payment = begun(shop)
    assert payment.result_code == ""
    own = trace()
    assert store.record_exchange(payment, "submit", {}, {}, at=clock.real_now(), duration_ms=1, trace=own)
    assert RequestLog.objects.get(pk=own.request).result_code == "000.200.001"


# The next attempt of a payment.


class Watch:
    """The schemes' retry rules of a payment: what was counted."""

    def __init__(self) -> None:
        self.counted: list[tuple[str, str]] = []
        self.declines = 0

    def count(self, write: Any, code: str, advice: str) -> None:
        self.counted.append((code, advice))

    def add_decline(self) -> None:
        self.declines += 1


Attempt = Callable[[Payment, Any], bool]


def declined(payment: Payment) -> Declined:
    return Declined(reply=REPLY, at=payment.created_at + timedelta(seconds=5), duration_ms=17)


ROUTE = {"name": "second"}
ATTEMPTS: dict[str, Attempt] = {
    "step_up": lambda payment, plan: store.record_step_up(payment, declined(payment), plan=plan),
    "cascade": lambda payment, plan: store.record_cascade(
        payment, declined(payment), connector="stub", account="M-2", route=ROUTE, plan=plan
    ),
    "token_fallback": lambda payment, plan: store.record_token_fallback(payment, declined(payment), plan=plan),
    "reroute": lambda payment, plan: store.reroute_payment(
        payment, REPLY, connector="stub", account="M-2", route=ROUTE, at=payment.created_at + timedelta(seconds=5),
        duration_ms=17, plan=None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTEMPTS)
def test_the_next_attempt_is_written_before_it_is_made(shop: Shop, name: str) -> None:
    payment, _ = begun(shop), begun(shop)
    OpenPayment.objects.update(recover_at=clock.real_now() - timedelta(days=1), trace_number=99)
    watch = Watch()
    with others_stay(payment.pk.hex):
        assert ATTEMPTS[name](payment, SimpleNamespace(retries=watch))
    kept = again(payment)
    moved = name in ("cascade", "reroute")
    where = ("stub", "M-2", ROUTE) if moved else ("simulator", "", None)
    assert (kept.connector, kept.acquirer_merchant_id, kept.route) == where
    assert (payment.connector, payment.sequence, payment.status) == (where[0], 2, Status.STARTED)
    assert (kept.status, kept.result_code, kept.sequence) == (Status.STARTED, "", 2)
    assert events(payment) == [(1, "begin", "STARTED", ""), (2, name, "STARTED", CODE)]
    at = payment.created_at + timedelta(seconds=5)
    assert PaymentEvent.objects.get(payment=payment, sequence=2).at == at
    [exchange] = AcquirerExchange.objects.all()
    assert (exchange.connector, exchange.kind, exchange.received, exchange.at, exchange.duration_ms) == (
        "simulator", "submit", {"b": 2}, at, 17
    )  # fmt: skip
    opened = OpenPayment.objects.get(pk=payment.pk)
    assert opened.recover_at > clock.real_now()
    assert opened.trace_number == payment.trace_number != 99
    assert payment.called_at == at
    facts = read_private_facts(kept.answer)
    earlier = EarlierDecline(code=CODE, details={"MerchantAdviceCode": "02"})
    assert facts.earlier_decline == (None if name == "reroute" else earlier)
    assert facts.attempt == (2 if name == "step_up" else 1)
    assert facts.network_token == (TokenUse.DECLINED if name == "token_fallback" else "")
    counts = name != "reroute"
    assert (watch.counted, watch.declines) == ([(CODE, "02")] * counts, int(counts))
    assert told(payment) == []
    assert store.find_call_time(kept) is None
    Payment.objects.filter(pk=payment.pk).update(sequence=3)
    assert store.find_call_time(again(payment)) == at


@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.parametrize("changes", [{"sequence": 2}, {"status": "IN_DOUBT", "result_code": "000.200.001"}])
def test_a_payment_that_moved_meanwhile_makes_no_next_attempt(shop: Shop, name: str, changes: dict[str, Any]) -> None:
    payment = begun(shop)
    stale, watch = again(payment), Watch()
    Payment.objects.filter(pk=payment.pk).update(**changes)
    before = read_rows()
    assert not ATTEMPTS[name](stale, SimpleNamespace(retries=watch))
    assert read_rows() == before
    assert (stale.sequence, stale.connector, watch.declines) == (1, "simulator", 0)


def test_a_refusal_that_sent_nothing_has_no_exchange(shop: Shop) -> None:
    payment = begun(shop)
    at = payment.created_at
    reply = AcquirerReply(code=CODE)
    assert store.reroute_payment(
        payment, reply, connector="stub", account="M", route={}, at=at, duration_ms=1, plan=None
    )
    assert not AcquirerExchange.objects.exists()


def test_a_shopper_who_is_back_has_the_payment_called_anew(shop: Shop) -> None:
    payment, other = begun(shop), begun(shop)
    at = payment.created_at + timedelta(minutes=5)
    for one in (payment, other):
        suspend(one)
    stale = again(payment)
    payment.answer = {"shown": 1}
    asked: list[str] = []
    plan: Any = SimpleNamespace(
        add_begin_writes=lambda write, row: asked.append("add"), read_begin_results=lambda write: asked.append("read")
    )
    assert store.resume_payment(payment, at=at, plan=plan)
    kept = again(payment)
    assert (kept.status, kept.result_code, kept.sequence, kept.answer) == (Status.STARTED, "", 3, {"shown": 1})
    assert asked == ["add", "read"]
    assert list(Suspension.objects.values_list("pk", flat=True)) == [other.pk]
    assert list(OpenPayment.objects.values_list("pk", "inquiries")) == [(payment.pk, 0)]
    assert OpenPayment.objects.get().recover_at > clock.real_now()
    assert events(payment)[-1] == (3, "resume", "STARTED", "")
    assert (payment.called_at, store.find_call_time(kept)) == (at, at)
    before = read_rows()
    assert not store.resume_payment(stale, at=at)
    assert read_rows() == before


def suspend(payment: Payment, **values: Any) -> None:
    deadline = payment.created_at + timedelta(hours=1)
    reply = AcquirerReply(code="000.200.000")
    store.complete_payment(payment, Suspended(reply=reply, at=payment.created_at, deadline=deadline, **values))


# By which row a payment without a final result is found again.


@pytest.mark.parametrize(
    ("before", "outcome", "opened", "suspended"),
    [
        (Status.STARTED, Approved, False, False),
        (Status.STARTED, Declined, False, False),
        (Status.STARTED, OutcomeUnknown, True, False),
        (Status.STARTED, Suspended, False, True),
        (Status.IN_DOUBT, Approved, False, False),
        (Status.IN_DOUBT, Declined, False, False),
        (Status.IN_DOUBT, Suspended, False, True),
        (Status.PENDING, Approved, False, False),
        (Status.PENDING, Declined, False, False),
        (Status.PENDING, OutcomeUnknown, True, False),
    ],
)
def test_a_payment_without_a_result_is_found_by_what_it_waits_for(
    shop: Shop, before: Status, outcome: type, opened: bool, suspended: bool
) -> None:
    payment, other = begun(shop), begun(shop)
    for one in (payment, other):
        if before == Status.PENDING:
            suspend(one)
        elif before == Status.IN_DOUBT:
            complete(one, OutcomeUnknown, "000.200.001")
    mine = payment.pk
    at = clock.real_now() + timedelta(hours=3)
    if outcome is Suspended:
        suspend(payment, stage=Suspension.Stage.REDIRECT, secrets_sealed=b"x")
    else:
        code = {Approved: "000.100.110", Declined: CODE, OutcomeUnknown: "000.200.001"}[outcome]
        complete(payment, outcome, code, recover_at=at)
    assert (
        list(OpenPayment.objects.filter(pk=mine).values_list("recover_at", "void_attempted")) == [(at, False)] * opened
    )
    waits = Suspension.objects.filter(pk=mine).values_list("deadline", "stage")
    assert list(waits) == [(payment.created_at + timedelta(hours=1), Suspension.Stage.REDIRECT)] * suspended
    others = (OpenPayment.objects.filter(pk=other.pk).exists(), Suspension.objects.filter(pk=other.pk).exists())
    assert others == (before != Status.PENDING, before == Status.PENDING)
    final = outcome in (Approved, Declined)
    assert (again(payment).completed_at is not None) is final
    assert told(payment)[-1][1] == ("CREATED" if before == Status.STARTED else "UPDATED")


def test_what_is_given_back_and_lost_is_voided_whatever_comes_late(shop: Shop) -> None:
    payment = begun(shop)
    suspend(payment)
    payment.answer = PrivateFacts(refused_code="100.400.500").as_json()
    complete(payment, OutcomeUnknown, "000.200.001")
    assert OpenPayment.objects.get().void_attempted


@pytest.mark.parametrize("sent", [{"a": 1}, {}])
def test_an_outcome_keeps_its_exchange_where_something_was_sent(shop: Shop, sent: dict[str, Any]) -> None:
    payment = begun(shop)
    reply = AcquirerReply(code=CODE, sent=sent, received={"b": 2}, avs="A", cvv="M", details={"c": "d"})
    outcome = Declined(reply=reply, at=payment.created_at + timedelta(seconds=9), duration_ms=17)
    store.complete_payment(payment, outcome, kind="bank")
    kept = again(payment)
    assert (kept.approved_amount, kept.completed_at, kept.result_code) == (None, outcome.at, CODE)
    assert {name: kept.answer[name] for name in ("avs", "cvv", "resultDetails")} == {
        "avs": "A", "cvv": "M", "resultDetails": {"c": "d"},
    }  # fmt: skip
    found = AcquirerExchange.objects.values_list("kind", "received", "at", "duration_ms", "connector")
    assert list(found) == [("bank", {"b": 2}, outcome.at, 17, "simulator")] * bool(sent)
    assert not RequestLog.objects.exists()


def test_a_payment_that_is_refused_as_it_begins_is_told_and_logged_and_asks_nobody(shop: Shop) -> None:
    payment = begun(shop)
    refused = Payment(**{field.attname: getattr(payment, field.attname) for field in Payment._meta.concrete_fields
                         if field.attname not in ("id", "chain", "number", "status", "completed_at")})  # fmt: skip
    refused.chain = refused.pk
    assert store.insert_payment(refused, trace=trace(), refusal="100.100.303")
    kept = again(refused)
    assert (kept.status, kept.result_code, kept.completed_at) == (Status.DECLINED, "100.100.303", kept.created_at)
    assert events(refused) == [(1, "refuse", "DECLINED", "100.100.303")]
    assert told(refused) == [("PAYMENT", "CREATED", 1)]
    assert RequestLog.objects.get().status == 400
    assert list(OpenPayment.objects.values_list("pk", flat=True)) == [payment.pk]
    assert told(payment) == []


# Which account a payment is counted for in the end. No database.

FIRST = {"name": "one", "connector": "stub", "account": "M-1", "code": CODE, "declined": True}
UNREACHED = {"name": "two", "connector": "card-api", "account": "M-2", "code": "900.100.600"}
SECOND = {"name": "three", "connector": "iso8583", "account": "M-3", "code": "800.100.152", "declined": True}


@pytest.mark.parametrize(
    ("tried", "code", "account"),
    [
        ([], CODE, None),
        ([UNREACHED], "900.100.600", None),
        ([FIRST], CODE, ("one", "stub", "M-1", 0)),
        ([FIRST, UNREACHED], CODE, ("one", "stub", "M-1", 0)),
        ([FIRST, SECOND], "800.100.152", ("three", "iso8583", "M-3", 1)),
        ([FIRST, SECOND], CODE, None),
        ([FIRST, UNREACHED], "900.100.600", None),
    ],
)
def test_a_payment_is_the_account_s_whose_decline_is_its_answer(
    tried: list[dict[str, Any]], code: str, account: tuple[str, str, str, int] | None
) -> None:
    route = {"name": "last", "cascades": 7, "tried": tried}
    found = store._resolve_final_account(route, code)
    if account is None:
        assert found == {"route": route}
    else:
        name, connector, merchant, cascades = account
        assert found == {
            "route": {**route, "name": name, "cascades": cascades}, "connector": connector,
            "acquirer_merchant_id": merchant,
        }  # fmt: skip


def test_an_attempt_that_was_voided_is_told_and_its_payment_goes_back_to_who_declined() -> None:
    at = clock.real_now()
    payment = Payment(connector="iso8583", acquirer_merchant_id="M-9", route={"name": "last", "tried": [FIRST]})
    found = store._return_to_declining_account(payment, CODE, at)
    assert (found["connector"], found["acquirer_merchant_id"]) == ("stub", "M-1")
    assert found["route"]["tried"] == [
        FIRST,
        {
            "name": "last", "connector": "iso8583", "account": "M-9", "code": "900.100.301", "why": "",
            "at": at.isoformat(timespec="seconds"), "sent": True, "voided": True,
        },
    ]  # fmt: skip
    payment.route = {"tried": [FIRST]}
    assert store._return_to_declining_account(payment, CODE, at)["route"]["tried"][-1]["name"] == "M-9"
    for route, code in ((None, CODE), ({"tried": [UNREACHED]}, CODE), ({"tried": [FIRST]}, "800.100.151")):
        payment.route = route
        assert store._return_to_declining_account(payment, code, at) == {}


@override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=7)
def test_a_payment_is_recovered_when_no_living_worker_can_still_be_answered() -> None:
    assert store.get_recovery_delay() == timedelta(seconds=9)
