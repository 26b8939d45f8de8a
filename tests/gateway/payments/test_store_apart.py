"""Late approvals row by row, and what is written with a payment's beginning and end besides its own columns.

Beside every payment there is another one, whose rows stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from gateway.connectors.port import AcquirerReply, Redirect
from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.models import (
    AcquirerExchange,
    IdempotencyKey,
    Notification,
    OpenPayment,
    Payment,
    PaymentEvent,
    PaymentToken,
    RequestLog,
    Status,
)
from gateway.payments import store
from gateway.payments.idempotency import IdempotencyClaim, parse_idempotency_claim
from gateway.payments.outcomes import Approved, Declined, Suspended
from gateway.payments.payment_request import IdempotencyContext
from gateway.payments.side_effects import CompletionEffects
from gateway.payments.states import PaymentTransitionError
from tests.gateway.payments.test_store import begun, record_only, trace
from tests.support.database import others_stay, read_rows
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

NO_FUNDS, REVERSED = "800.100.155", "900.100.301"
FIRST = {"name": "one", "connector": "stub", "account": "M-1", "code": NO_FUNDS, "declined": True}
VOIDED = {"name": "two", "connector": "card-api", "account": "M-2", "code": REVERSED, "voided": True}
MINUTE = timedelta(minutes=1)


def again(payment: Payment) -> Payment:
    return Payment.objects.get(pk=payment.pk)


def declined(shop: Shop, **columns: Any) -> Payment:
    """A payment that recovery has declined, and another one of the same state."""
    made = [begun(shop) for _ in range(2)]
    for payment in made:
        outcome = Declined(reply=AcquirerReply(code=NO_FUNDS), at=payment.created_at)
        store.complete_payment(payment, outcome)
        Payment.objects.filter(pk=payment.pk).update(answer={"descriptor": "Shop"}, **columns)
    return again(made[0])


# An approval that came too late.

APPROVED = AcquirerReply(code="000.100.110", sent={"a": 1}, received={"b": 2})
HERE = {"connector": "stub", "acquirer_merchant_id": "M-1", "route": {"name": "one", "tried": [FIRST, VOIDED]}}

LINKED = {"descriptor": "Shop", "transactionLink": "L"}


def attempt(**values: Any) -> dict[str, Any]:
    return {"connector": "stub", "acquirer_merchant_id": "M-1", "route": {"name": "two", "cascades": 1}, **values}


@pytest.mark.parametrize(
    ("asked", "reply", "changes"),
    [
        (attempt(), APPROVED, {}),
        (attempt(), replace(APPROVED, connector_tx_id="T-2"), {"connector_tx_id": "T-2"}),
        (attempt(), replace(APPROVED, transaction_link="L"), {"answer": LINKED}),
        (
            attempt(acquirer_merchant_id="M-2"),
            APPROVED,
            {"acquirer_merchant_id": "M-2", "route": {"name": "two", "cascades": 1, "tried": [FIRST, VOIDED]}},
        ),
        (
            attempt(connector="card-api"),
            APPROVED,
            {"connector": "card-api", "route": {"name": "two", "cascades": 1, "tried": [FIRST, VOIDED]}},
        ),
        (
            attempt(connector="card-api", route=None),
            APPROVED,
            {"connector": "card-api", "route": {"tried": [FIRST, VOIDED]}},
        ),
        (
            attempt(connector="card-api", acquirer_merchant_id="M-2"),
            replace(APPROVED, connector_tx_id="T-2", transaction_link="L"),
            {
                "connector": "card-api", "acquirer_merchant_id": "M-2", "connector_tx_id": "T-2",
                "answer": LINKED,
                "route": {"name": "two", "cascades": 1, "tried": [FIRST, VOIDED]},
            },
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_asked_for", [True, False])
def test_a_late_approval_opens_its_payment_for_the_void_where_it_was_approved(
    shop: Shop, asked: dict[str, Any], reply: AcquirerReply, changes: dict[str, Any], is_asked_for: bool
) -> None:
    """``is_asked_for``: a request waits for the answer, and is logged."""
    payment = declined(shop, **HERE, connector_tx_id="T-1")
    payment.trace_number = 88
    before = {name: getattr(payment, name) for name in (*HERE, "connector_tx_id", "answer")}
    own = trace() if is_asked_for else None
    outcome = Approved(reply=reply, at=payment.created_at + timedelta(hours=5), duration_ms=17)
    with others_stay(payment.pk.hex):
        store.record_late_approval(payment, outcome, asked=asked, trace=own)
    kept = again(payment)
    assert (kept.status, kept.result_code, kept.sequence) == (Status.DECLINED, NO_FUNDS, 2)
    assert {name: getattr(kept, name) for name in before} == before | changes
    opened = OpenPayment.objects.get()
    # A void that names what the approval said is a message with a number of its own; these connectors have none.
    number = 88 if reply is APPROVED else 0
    assert (opened.pk, opened.inquiries, opened.void_attempted, opened.trace_number) == (payment.pk, 0, True, number)
    assert abs(opened.recover_at - clock.real_now()) < MINUTE
    [exchange] = AcquirerExchange.objects.all()
    assert (exchange.payment_id, exchange.connector, exchange.kind) == (payment.pk, asked["connector"], "submit")
    assert (exchange.sent, exchange.received) == ({"a": 1}, {"b": 2})
    assert (exchange.at, exchange.duration_ms) == (outcome.at, 17)
    logged = RequestLog.objects.values_list("id", "status", "result_code", "payment")
    assert list(logged) == ([(own.request, 400, NO_FUNDS, payment.pk)] if own is not None else [])
    assert Notification.objects.filter(payment_id=payment.pk).count() == 1


def test_a_late_approval_of_a_payment_that_tried_nothing_before_is_kept(shop: Shop) -> None:
    payment = declined(shop, connector="stub")
    store.record_late_approval(
        payment, Approved(reply=APPROVED, at=payment.created_at), asked=attempt(connector="card-api"), trace=None
    )
    assert again(payment).route == {"name": "two", "cascades": 1, "tried": []}


def test_an_approval_of_a_payment_that_is_declined_no_more_is_not_written(shop: Shop) -> None:
    payment = declined(shop)
    Payment.objects.filter(pk=payment.pk).update(status=Status.APPROVED, approved_amount=Decimal(92))
    before = read_rows()
    outcome = Approved(reply=APPROVED, at=payment.created_at)
    store.record_late_approval(payment, outcome, asked=attempt(connector="card-api"), trace=trace())
    assert read_rows() == before


@pytest.mark.parametrize(
    ("columns", "changes"),
    [
        ({"route": None}, {}),
        ({"route": {"name": "two"}}, {}),
        ({"route": {"tried": [FIRST]}}, {}),
        ({"route": {"tried": [VOIDED, FIRST]}}, {}),
        ({"acquirer_merchant_id": "M-9", "route": {"tried": [FIRST, VOIDED]}}, {}),
        ({"connector": "iso8583", "route": {"tried": [FIRST, VOIDED]}}, {}),
        (
            {"route": {"name": "two", "tried": [FIRST, VOIDED]}},
            {"connector": "stub", "acquirer_merchant_id": "M-1",
             "route": {"name": "one", "cascades": 0, "tried": [FIRST, VOIDED]}},
        ),
    ],
)  # fmt: skip
def test_a_late_approval_that_is_void_gives_the_payment_back_to_who_declined_it(
    shop: Shop, columns: dict[str, Any], changes: dict[str, Any]
) -> None:
    at = {"connector": "card-api", "acquirer_merchant_id": "M-2", "route": None, **columns}
    payment = declined(shop, **at)
    other = Payment.objects.exclude(pk=payment.pk).get()
    for one in (payment, other):
        OpenPayment.objects.create(payment=one, recover_at=clock.real_now())
    with others_stay(payment.pk.hex):
        assert store.close_late_approval(payment)
    kept = again(payment)
    assert {name: getattr(kept, name) for name in at} == {**at, **changes}
    assert (kept.status, kept.sequence) == (Status.DECLINED, 2)
    assert list(OpenPayment.objects.values_list("pk", flat=True)) == [other.pk]


@pytest.mark.parametrize("moved", [{"sequence": 9}, {"status": Status.APPROVED, "approved_amount": 92}])
def test_a_late_approval_of_a_payment_that_moved_is_not_closed(shop: Shop, moved: dict[str, Any]) -> None:
    payment = declined(shop)
    OpenPayment.objects.create(payment=payment, recover_at=clock.real_now())
    Payment.objects.filter(pk=payment.pk).update(**moved)
    before = read_rows()
    assert not store.close_late_approval(payment)
    assert read_rows() == before


# A beginning.


def build(shop: Shop, **values: Any) -> Payment:
    ident = identifiers.row_id()
    return Payment(**{
        "id": ident, "merchant": shop.merchant, "channel": shop.channel, "chain": ident, "payment_type": "DB",
        "brand": "VISA", "method": "CC", "amount": Decimal("92.00"), "currency": "EUR", "connector": "simulator",
        "request_id": identifiers.row_id(), "created_at": clock.real_now(), **values,
    })  # fmt: skip


class Plan:
    """Risk queries of a payment: what was asked of them, in order."""

    retries = None

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def add_begin_writes(self, write: Any, payment: Payment) -> None:
        self.calls.append(("begin", payment.id))

    def read_begin_results(self, write: Any) -> None:
        self.calls.append("read")

    def add_end_writes(self, write: Any, reply: AcquirerReply) -> None:
        self.calls.append(("end", reply))


def build_plan() -> Any:
    return Plan()


@pytest.mark.parametrize("refusal", ["", NO_FUNDS])
def test_a_beginning_raises_its_parents_counter_and_asks_about_risk(shop: Shop, refusal: str) -> None:
    parent, other = begun(shop), begun(shop)
    Payment.objects.update(follow_ups=4)
    parent.refresh_from_db()
    payment, plan = build(shop), build_plan()
    written: list[Any] = []
    with others_stay(parent.pk.hex, payment.pk.hex):
        assert store.insert_payment(
            payment,
            trace=trace(),
            refusal=refusal,
            parent=parent,
            plan=plan,
            extra_writes=written.append,
        )
    assert (again(parent).follow_ups, again(other).follow_ups, len(written)) == (5, 4, 1)
    assert plan.calls == (["read"] if refusal else [("begin", payment.id), "read"])
    assert OpenPayment.objects.filter(pk=payment.pk).exists() is (not refusal)
    logged = RequestLog.objects.values_list("result_code", "payment")
    assert list(logged) == [(NO_FUNDS, payment.pk)] * bool(refusal)


def context(key: str = "key-1") -> IdempotencyContext:
    claim = parse_idempotency_claim(key, [("a", "1")], token=UUID(int=1), method="POST", path="/v1/payments")
    assert isinstance(claim, IdempotencyClaim)
    return IdempotencyContext(claim=claim)


@pytest.mark.parametrize("refusal", ["", NO_FUNDS])
def test_a_key_is_claimed_with_the_beginning_and_answered_with_the_end(shop: Shop, refusal: str) -> None:
    payment, once = build(shop), context()
    assert store.insert_payment(payment, trace=trace(), refusal=refusal, idempotency=once)
    row = IdempotencyKey.objects.get()
    assert (row.payment, row.status, once.stored is None) == (payment.pk, 200 if refusal else None, not refusal)
    second = context()
    with pytest.raises(store.IdempotencyKeyTakenError):
        store.insert_payment(build(shop), trace=trace(), idempotency=second)
    assert second.stored is None


def test_a_key_of_a_beginning_that_came_too_late_is_not_answered(shop: Shop) -> None:
    parent = begun(shop)
    stale = again(parent)
    Payment.objects.filter(pk=parent.pk).update(follow_ups=9)
    once = context()
    before = read_rows()
    assert not store.insert_payment(build(shop), trace=trace(), refusal=NO_FUNDS, parent=stale, idempotency=once)
    assert (once.stored, read_rows() == before) == (None, True)


@pytest.mark.parametrize("begun_", [True, False])
def test_a_wallets_token_is_used_by_its_payment(shop: Shop, begun_: bool) -> None:
    used: list[UUID] = []
    wallet: Any = SimpleNamespace(insert=lambda write, payment: used.append(payment))
    payment = build(shop)
    store.insert_payment(payment, trace=trace(), wallet_token=wallet if begun_ else None)
    assert used == [payment.id] * begun_


# An end.


@pytest.mark.parametrize(
    ("kind", "code", "told"),
    [
        ("DB", "000.100.110", [("PAYMENT", "CREATED")]),
        ("DB", NO_FUNDS, [("PAYMENT", "CREATED")]),
        ("RI", "000.100.110", [("RISK", "CREATED")]),
        ("RG", NO_FUNDS, [("PAYMENT", "CREATED")]),
    ],
)
@pytest.mark.parametrize("is_asked_for", [True, False])
def test_an_end_is_told_logged_and_answered(
    shop: Shop, kind: str, code: str, told: list[Any], is_asked_for: bool
) -> None:
    payment, once, plan = build(shop, payment_type=kind), context(), build_plan()
    assert store.insert_payment(payment, trace=trace(), idempotency=once)
    granted = Money(payment.amount, "EUR") if code != NO_FUNDS else None
    reply = AcquirerReply(code=code, approved=granted, sent={"a": 1}, received={"b": 2}, connector_tx_id="T-7")
    own = trace() if is_asked_for else None
    end: Any = (Approved if granted is not None else Declined)(
        reply=reply, at=payment.created_at + MINUTE, duration_ms=17
    )
    store.complete_payment(payment, end, trace=own, idempotency=once, plan=plan)
    found = Notification.objects.filter(payment_id=payment.pk)
    assert list(found.values_list("kind", "action")) == told
    assert {(one.created_at, one.sequence, one.channel_id, one.merchant_id) for one in found} == {
        (end.at, 2, shop.channel.pk, shop.merchant.pk)
    }
    logged = RequestLog.objects.values_list("id", "status", "result_code", "payment")
    http = 400 if code == NO_FUNDS else 200
    assert list(logged) == ([(own.request, http, code, payment.pk)] if own is not None else [])
    assert plan.calls == [("end", reply)]
    assert once.stored is not None
    assert IdempotencyKey.objects.get().status == once.stored.status
    event = PaymentEvent.objects.get(payment=payment, sequence=2)
    assert (event.at, event.result_code, event.status) == (end.at, code, payment.status)
    assert again(payment).connector_tx_id == "T-7"


def test_an_end_that_came_too_late_is_not_answered(shop: Shop) -> None:
    payment, once = build(shop), context()
    assert store.insert_payment(payment, trace=trace(), idempotency=once)
    Payment.objects.filter(pk=payment.pk).update(sequence=9)
    before = read_rows()
    outcome = Declined(reply=AcquirerReply(code=NO_FUNDS), at=payment.created_at)
    with pytest.raises(PaymentTransitionError):
        store.complete_payment(payment, outcome, idempotency=once, trace=trace())
    assert (once.stored, read_rows() == before) == (None, True)


def test_the_exchange_of_a_voided_attempt_is_the_connectors_that_was_asked(shop: Shop) -> None:
    payment = begun(shop)
    columns = {"connector": "card-api", "acquirer_merchant_id": "M-2", "route": {"name": "two", "tried": [FIRST]}}
    Payment.objects.filter(pk=payment.pk).update(**columns)
    reply = AcquirerReply(code=NO_FUNDS, sent={"a": 1})
    store.complete_payment(again(payment), Declined(reply=reply, at=payment.created_at), was_taken_back=True)
    kept = again(payment)
    assert (kept.connector, kept.acquirer_merchant_id) == ("stub", "M-1")
    assert AcquirerExchange.objects.get().connector == "card-api"


@pytest.mark.parametrize("granted", [None, Money(Decimal("40.00"), "EUR")])
def test_what_an_acquirer_reports_joins_its_chain_as_approved(shop: Shop, granted: Money | None) -> None:
    parent, other = begun(shop), begun(shop)
    stale = again(parent)
    own = trace()
    row = build(shop, payment_type="CB", chain=parent.pk, referenced=parent.pk, amount=Decimal("50.00"))
    reply = AcquirerReply(code="000.100.200", approved=granted, connector_tx_id="T-9", details={"a": "b"})
    added: list[UUID] = []
    assert store.insert_acquirer_reported_payment(
        row, reply, parent=parent, trace=own, extra_writes=lambda write, payment: added.append(payment.id)
    )
    kept = again(row)
    amount = granted.amount if granted is not None else Decimal("50.00")
    assert (kept.status, kept.approved_amount, kept.result_code) == (Status.APPROVED, amount, "000.100.200")
    assert (kept.connector_tx_id, kept.completed_at, added) == ("T-9", kept.created_at, [row.id])
    assert kept.answer["resultDetails"] == {"a": "b"}
    assert (again(parent).follow_ups, again(other).follow_ups) == (1, 0)
    assert Notification.objects.filter(payment_id=row.id, action="CREATED", created_at=row.created_at).count() == 1
    logged = RequestLog.objects.get(pk=own.request)
    assert (logged.result_code, logged.payment) == ("000.100.200", row.id)
    before = read_rows()
    late = build(shop, payment_type="CB", chain=parent.pk, referenced=parent.pk)
    assert not store.insert_acquirer_reported_payment(late, reply, parent=stale, trace=trace())
    assert read_rows() == before


@pytest.mark.parametrize(
    ("retryable", "route", "connector"),
    [
        (True, {"name": "two", "tried": [FIRST]}, "stub"),
        (False, {"name": "two", "tried": [FIRST]}, "simulator"),
        (True, None, "simulator"),
        (True, {"name": "two", "tried": []}, "simulator"),
    ],
)
def test_a_last_account_that_judged_nothing_leaves_the_payment_to_who_declined_it(
    shop: Shop, retryable: bool, route: dict[str, Any] | None, connector: str
) -> None:
    payment = begun(shop)
    Payment.objects.filter(pk=payment.pk).update(route=route)
    reply = AcquirerReply(code=NO_FUNDS, retryable_elsewhere=retryable)
    store.complete_payment(again(payment), Declined(reply=reply, at=payment.created_at))
    assert again(payment).connector == connector


def suspend(payment: Payment) -> Redirect:
    redirect = Redirect(url="https://bank.example/")
    reply = AcquirerReply(code="000.200.000", redirect=redirect)
    at = payment.created_at
    store.complete_payment(payment, Suspended(reply=reply, at=at, deadline=at + MINUTE))
    return redirect


def test_a_redirect_is_kept_while_its_shopper_is_away(shop: Shop) -> None:
    payment = begun(shop)
    assert suspend(payment).as_json() == again(payment).answer["redirect"]
    store.complete_payment(payment, Declined(reply=AcquirerReply(code=NO_FUNDS), at=payment.created_at))
    assert "redirect" not in again(payment).answer


def test_a_shopper_who_is_back_is_asked_about_by_the_rules_of_risk(shop: Shop) -> None:
    payment, plan = begun(shop), build_plan()
    suspend(payment)
    assert store.resume_payment(payment, at=payment.created_at, plan=plan)
    assert plan.calls == [("begin", payment.id), "read"]


@pytest.mark.parametrize("plan", [None, build_plan()])
def test_a_decline_before_the_next_attempt_is_counted_where_somebody_counts(shop: Shop, plan: Any) -> None:
    payment = begun(shop)
    outcome = Declined(reply=AcquirerReply(code="300.100.100"), at=payment.created_at)
    assert store.record_step_up(payment, outcome, plan=plan)


def test_the_card_number_after_a_token_forgets_the_token_of_its_own_payment(shop: Shop) -> None:
    payment, other = begun(shop), begun(shop)
    for one in (payment, other):
        PaymentToken.objects.create(payment=one, number_sealed=b"x", expiry_month="05", expiry_year="2034")
    outcome = Declined(reply=AcquirerReply(code=NO_FUNDS), at=payment.created_at)
    assert store.record_token_fallback(payment, outcome, plan=None)
    assert list(PaymentToken.objects.values_list("pk", flat=True)) == [other.pk]


@pytest.mark.parametrize(("connector", "kept"), [("", "simulator"), ("card-api", "card-api")])
def test_an_exchange_that_moves_nothing_is_kept_with_who_was_asked(shop: Shop, connector: str, kept: str) -> None:
    payment = begun(shop)
    at = payment.created_at + MINUTE
    assert store.record_exchange(payment, "void", {"a": 1}, {"b": 2}, at=at, duration_ms=17, connector=connector)
    found = AcquirerExchange.objects.values_list(
        "payment", "kind", "sent", "received", "at", "duration_ms", "connector"
    )
    assert list(found) == [(payment.pk, "void", {"a": 1}, {"b": 2}, at, 17, kept)]
    assert (again(payment).sequence, again(payment).status) == (1, Status.STARTED)


def test_an_approved_registration_is_told_as_a_registration_alone(shop: Shop) -> None:
    card = {
        "paymentBrand": "VISA", "card.number": "4200000000000000", "card.holder": "Jane Jones",
        "card.expiryMonth": "05", "card.expiryYear": "2034",
    }  # fmt: skip
    assert shop.api.post("/v1/registrations", card).status == 200
    assert list(Notification.objects.values_list("kind", flat=True)) == ["REGISTRATION"]


def test_side_effects_on_rows_that_are_there_are_written(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    payment, other = begun(shop), begun(shop)
    effects = CompletionEffects(
        changes={"merchant_memo": "changed"}, answer={"descriptor": "Shop"},
        updates=[(OpenPayment, {"trace_number": 5}, {"payment_id": other.pk})],
    )  # fmt: skip
    monkeypatch.setattr(store, "build_completion_effects", lambda *call, **names: effects)
    store.complete_payment(payment, Declined(reply=AcquirerReply(code=NO_FUNDS), at=payment.created_at))
    kept = again(payment)
    assert (kept.merchant_memo, kept.answer) == ("changed", {"descriptor": "Shop"})
    assert OpenPayment.objects.get().trace_number == 5


def test_a_record_is_logged_and_its_key_is_taken_once(shop: Shop) -> None:
    subject, own = begun(shop), trace()
    for number in range(2):
        payment, told = record_only(shop, identifiers.row_id())

        def write(payment: Payment = payment, told: dict[str, Any] = told, number: int = number) -> bool:
            return store.insert_record_only_payment(
                payment, lambda write: None, told, trace=trace() if number else own, idempotency=context()
            )

        if number == 0:
            assert write()
            logged = RequestLog.objects.get()
            assert (logged.pk, logged.status, logged.result_code) == (own.request, 200, payment.result_code)
            assert logged.payment == payment.pk != subject.pk
            continue
        with pytest.raises(store.IdempotencyKeyTakenError), transaction.atomic():
            write()
