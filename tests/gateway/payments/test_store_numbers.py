"""The numbers and times of an attempt's messages, approvals that come while recovery voids, and what keeps a payment
from being inserted. Beside a payment there is another one, whose rows stay as they are.
"""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError

from gateway.connectors.port import AcquirerReply, Redirect
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock
from gateway.models import AcquirerExchange, OpenPayment, Payment, PaymentEvent, RequestLog, Status, Suspension
from gateway.payments import store
from gateway.payments.outcomes import Approved, Declined, OutcomeUnknown, Suspended
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.risk_screening import ScreeningPlan
from gateway.payments.states import PaymentTransitionError
from gateway.payments.stored_answer import PrivateFacts, read_private_facts
from gateway.wallets.channel_tokens import TOKEN_USED_CONSTRAINT
from gateway.wallets.token import TokenRefusalReason, WalletTokenRefusedError
from tests.gateway.payments.test_store import begun, complete, trace
from tests.gateway.payments.test_store_apart import again
from tests.support.database import others_stay, read_rows
from tests.support.fixtures import Shop

MINUTE = timedelta(minutes=1)
LINK = "AbCdEfGhIjKlMnOpQrStUv"


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The accounts that were asked for the number of a message. Each number is the next from 71 on."""
    asked: list[Any] = []

    def assign(connector: Any, channel: UUID, account: str) -> int:
        asked.append((connector, channel, account))
        return 70 + len(asked)

    monkeypatch.setattr(store, "assign_trace_number", assign)
    return asked


# --- the message of an attempt --------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_an_attempt_has_a_number_of_its_account_and_a_time_by_which_it_is_sent(
    shop: Shop, numbers: list[Any], settings: Any
) -> None:
    settings.GATEWAY_ACQUIRER_TIMEOUT_S = 50
    payment, other = begun(shop, acquirer_merchant_id="M-1"), begun(shop)
    stub = CONNECTORS["stub"]
    assert numbers == [
        (CONNECTORS["simulator"], shop.channel.pk, "M-1"),
        (CONNECTORS["simulator"], shop.channel.pk, ""),
    ]
    assert (payment.trace_number, OpenPayment.objects.get(pk=payment.pk).trace_number) == (71, 71)
    assert payment.called_at is None
    assert payment.send_by is not None
    opened = OpenPayment.objects.get(pk=payment.pk)
    assert timedelta(seconds=40) < opened.recover_at - clock.real_now() <= timedelta(seconds=52)
    at = payment.created_at + MINUTE
    reply = AcquirerReply(code="900.100.600")
    with others_stay(payment.pk.hex):
        assert store.reroute_payment(
            payment, reply, connector="stub", account="M-2", route={"name": "b"}, at=at, duration_ms=1, plan=None
        )
    assert numbers[2] == (stub, shop.channel.pk, "M-2")
    assert OpenPayment.objects.get(pk=payment.pk).trace_number == payment.trace_number == 73
    declined = Declined(reply=AcquirerReply(code="300.100.100"), at=at)
    assert store.record_step_up(payment, declined, plan=None)
    assert numbers[3] == (stub, shop.channel.pk, "M-2"), "a step-up stays at the account where the payment is"
    assert OpenPayment.objects.get(pk=other.pk).trace_number == 72


@pytest.mark.django_db
def test_a_shopper_who_is_back_has_a_message_of_a_new_number(shop: Shop, numbers: list[Any]) -> None:
    payment = begun(shop, acquirer_merchant_id="M-1")
    at = payment.created_at
    waiting = Suspended(reply=AcquirerReply(code="000.200.000"), at=at, deadline=at + MINUTE)
    store.complete_payment(payment, waiting)
    assert store.resume_payment(payment, at=at + MINUTE)
    assert numbers[1:] == [(CONNECTORS["simulator"], shop.channel.pk, "M-1")]
    assert OpenPayment.objects.get().trace_number == payment.trace_number == 72
    assert payment.called_at == at + MINUTE


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("sequence", "event", "found"),
    [
        (2, "resume", False),
        (3, "resume", True),
        (3, "step_up", True),
        (3, "reroute", True),
        (3, "cascade", True),
        (3, "token_fallback", True),
        (3, "lose", False),
        (3, "approve", False),
    ],
)
def test_the_time_of_a_call_is_that_of_the_last_event_that_called(
    shop: Shop, sequence: int, event: str, found: bool
) -> None:
    payment, other = begun(shop), begun(shop)
    early, late = payment.created_at + MINUTE, payment.created_at + 2 * MINUTE
    for number, at in ((5, late), (4, early)):
        PaymentEvent.objects.create(payment=payment, sequence=number, event=event, status="STARTED", at=at)
    PaymentEvent.objects.create(payment=other, sequence=6, event="resume", status="STARTED", at=late + MINUTE)
    payment.sequence = sequence
    assert store.find_call_time(payment) == (late if found else None)


@pytest.mark.django_db
@pytest.mark.parametrize("anew", ["", "T-2"])
def test_a_void_that_is_another_message_has_another_number_and_names_what_it_voids(
    shop: Shop, numbers: list[Any], anew: str
) -> None:
    payment, other = begun(shop, acquirer_merchant_id="M-1"), begun(shop)
    for one in (payment, other):
        complete(one, OutcomeUnknown, "000.200.001", recover_at=clock.real_now())
    at = payment.created_at + MINUTE
    with others_stay(payment.pk.hex):
        assert store.record_exchange(
            payment, "void", {"a": 1}, {"b": 2}, at=at, duration_ms=17, inquire_after=timedelta(hours=3), void_anew=anew
        )
    kept, opened = again(payment), OpenPayment.objects.get(pk=payment.pk)
    assert (kept.connector_tx_id, kept.sequence, kept.status) == (anew or "SIM1", 2, Status.IN_DOUBT)
    wait = opened.recover_at - clock.real_now()
    assert timedelta(hours=2, minutes=59) < wait <= timedelta(hours=3)
    assert opened.trace_number == (73 if anew else 71)
    assert numbers[2:] == [(CONNECTORS["simulator"], shop.channel.pk, "M-1")] * bool(anew)
    assert OpenPayment.objects.get(pk=other.pk).trace_number == 72


@pytest.mark.django_db
def test_a_payment_that_was_lost_is_asked_about_in_a_second(shop: Shop) -> None:
    payment = begun(shop)
    complete(payment, OutcomeUnknown, "000.200.001")
    wait = OpenPayment.objects.get().recover_at - clock.real_now()
    assert -MINUTE < wait <= timedelta(seconds=1)


@pytest.mark.django_db
def test_what_is_sealed_waits_with_the_payment(shop: Shop) -> None:
    payment = begun(shop)
    at = payment.created_at
    reply = AcquirerReply(code="000.200.000", redirect=Redirect(url="https://bank.example/"))
    waiting = Suspended(
        reply=reply, at=at, deadline=at + MINUTE, secrets_sealed=b"sealed", stage=Suspension.Stage.AUTHENTICATE
    )
    store.complete_payment(payment, waiting)
    kept = Suspension.objects.get()
    assert (kept.pk, kept.deadline, kept.stage) == (payment.pk, at + MINUTE, Suspension.Stage.AUTHENTICATE)
    assert bytes(kept.secrets_sealed or b"") == b"sealed"
    assert not OpenPayment.objects.exists()


# --- an approval that comes while recovery voids --------------------------------------------------------------------

APPROVED = AcquirerReply(code="000.100.110", sent={"a": 1}, received={"b": 2})
REFUSED = PrivateFacts(refused_code="800.120.300", refused_details={"x": "y"}, transaction_link="OTHER")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("reply", "refused", "facts", "number"),
    [
        ({}, None, PrivateFacts(), 71),
        ({"connector_tx_id": "T-2"}, None, PrivateFacts(), 73),
        ({"transaction_link": LINK}, None, PrivateFacts(transaction_link=LINK), 73),
        # The link is the approval's own.
        ({}, REFUSED, PrivateFacts(refused_code="800.120.300", refused_details={"x": "y"}), 73),
        (
            {"transaction_link": LINK}, REFUSED,
            PrivateFacts(refused_code="800.120.300", refused_details={"x": "y"}, transaction_link=LINK), 73,
        ),
    ],
)  # fmt: skip
def test_an_approval_of_a_payment_that_is_being_voided_is_voided_by_what_it_said(
    shop: Shop,
    numbers: list[Any],
    reply: dict[str, Any],
    refused: PrivateFacts | None,
    facts: PrivateFacts,
    number: int,
) -> None:
    """The void under way does not know of it, so what that finds decides nothing: the payment's version is raised."""
    payment, other = begun(shop, acquirer_merchant_id="M-1"), begun(shop)
    for one in (payment, other):
        complete(one, OutcomeUnknown, "000.200.001")
    own = trace()
    outcome = Approved(reply=AcquirerReply(**{**vars_of(APPROVED), **reply}), at=payment.created_at, duration_ms=17)
    asked = store.get_attempt_columns(payment)
    with others_stay(payment.pk.hex):
        assert store.record_late_approval(payment, outcome, asked=asked, trace=own, refused=refused, kind="late")
    kept = again(payment)
    assert (kept.status, kept.sequence, kept.route) == (Status.IN_DOUBT, 3, None)
    assert kept.connector_tx_id == (reply.get("connector_tx_id") or "SIM1")
    assert read_private_facts(kept.answer) == facts
    opened = OpenPayment.objects.get(pk=payment.pk)
    assert (opened.void_attempted, opened.trace_number) == (True, number)
    assert numbers[2:] == [(CONNECTORS["simulator"], shop.channel.pk, "M-1")] * (number == 73)
    assert not OpenPayment.objects.get(pk=other.pk).void_attempted
    exchange = AcquirerExchange.objects.get(payment=payment.pk, kind="late")
    assert (exchange.duration_ms, exchange.connector) == (17, "simulator")
    logged = RequestLog.objects.get(pk=own.request)
    assert (logged.result_code, logged.status, logged.payment) == ("000.200.001", 200, payment.pk)


def vars_of(reply: AcquirerReply) -> dict[str, Any]:
    return {"code": reply.code, "sent": reply.sent, "received": reply.received}


@pytest.mark.django_db
@pytest.mark.parametrize("moved", [{"sequence": 9}, {"status": Status.DECLINED, "result_code": "900.100.301"}])
def test_an_approval_of_a_payment_that_moved_meanwhile_is_not_written(shop: Shop, moved: dict[str, Any]) -> None:
    payment = begun(shop)
    complete(payment, OutcomeUnknown, "000.200.001")
    Payment.objects.filter(pk=payment.pk).update(**moved)
    before = read_rows()
    outcome = Approved(reply=APPROVED, at=payment.created_at)
    asked = store.get_attempt_columns(payment)
    assert not store.record_late_approval(payment, outcome, asked=asked, trace=trace())
    assert read_rows() == before


@pytest.mark.django_db
def test_an_attempt_that_recovery_left_is_voided_where_it_was_made(shop: Shop, numbers: list[Any]) -> None:
    payment = begun(shop, acquirer_merchant_id="M-1")
    complete(payment, OutcomeUnknown, "000.200.001")
    asked = {"connector": "stub", "acquirer_merchant_id": "M-2", "route": None}
    outcome = Approved(reply=APPROVED, at=payment.created_at)
    assert store.record_late_approval(payment, outcome, asked=asked, trace=None)
    kept = again(payment)
    assert (kept.connector, kept.acquirer_merchant_id, kept.route) == ("stub", "M-2", {"tried": []})
    # The same message as before, since nothing new is known of it but where it went.
    assert numbers[1:] == []
    named = AcquirerReply(code="000.100.110", connector_tx_id="T-2", sent={"a": 1})
    assert store.record_late_approval(
        again(payment), Approved(reply=named, at=payment.created_at), asked=asked, trace=None
    )
    assert numbers[1:] == [(CONNECTORS["stub"], shop.channel.pk, "M-2")]


# --- what keeps a payment from being inserted. No database. ---------------------------------------------------------


def violated(constraint: str) -> IntegrityError:
    fault = IntegrityError()
    fault.__cause__ = Exception()
    fault.__cause__.diag = SimpleNamespace(constraint_name=constraint)  # type: ignore[attr-defined]
    return fault


def test_a_conflict_is_told_by_the_constraint_that_was_violated() -> None:
    used: Any = SimpleNamespace(wallet="wallet2", replayed=lambda: WalletTokenRefusedError(TokenRefusalReason.REPLAYED))
    find = store._find_insert_conflict
    assert isinstance(find(violated("gateway_idempotencykey_pkey")), store.IdempotencyKeyTakenError)
    assert isinstance(find(violated("payment_duplicate"), used), store.DuplicatePaymentError)
    refused = find(violated(TOKEN_USED_CONSTRAINT), used)
    assert isinstance(refused, RequestRefusedError)
    assert [error.name for error in refused.errors] == ["wallet2.paymentToken"]
    for fault in (violated(TOKEN_USED_CONSTRAINT), violated("gateway_payment_pkey"), IntegrityError()):
        assert find(fault) is None
    assert find(violated("gateway_payment_pkey"), used) is None


def test_a_violation_that_is_no_conflict_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: Any) -> bool:
        raise violated("gateway_payment_pkey")

    monkeypatch.setattr(store.WriteStatement, "run", run)
    monkeypatch.setattr(store, "assign_trace_number", lambda *_: 0)
    payment = Payment(connector="simulator", created_at=clock.real_now())
    with pytest.raises(IntegrityError):
        store.insert_payment(payment, trace=trace())


@pytest.mark.django_db
@pytest.mark.parametrize("constraint", ["payment_duplicate", TOKEN_USED_CONSTRAINT])
def test_a_conflict_is_raised_as_what_it_is(monkeypatch: pytest.MonkeyPatch, shop: Shop, constraint: str) -> None:
    used: Any = SimpleNamespace(
        wallet="wallet2", replayed=lambda: WalletTokenRefusedError(TokenRefusalReason.REPLAYED),
        insert=lambda write, payment: None,
    )  # fmt: skip

    def run(_: Any) -> bool:
        raise violated(constraint)

    payment = begun(shop)
    monkeypatch.setattr(store.WriteStatement, "run", run)
    expected = store.DuplicatePaymentError if constraint == "payment_duplicate" else RequestRefusedError
    with pytest.raises(expected):
        store.insert_payment(payment, trace=trace(), wallet_token=used)


class Retries:
    """The schemes' retry rules of a payment: what they were asked to count."""

    def __init__(self, counts: bool) -> None:
        self.counts = counts
        self.counted: list[Any] = []
        self.declines = 0

    def count(self, write: Any, *what: str, **of: bool) -> bool:
        self.counted.append((*what, of))
        return self.counts

    def add_decline(self) -> None:
        self.declines += 1


@pytest.mark.django_db
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("counts", [True, False])
def test_a_refusal_before_a_failover_is_counted_as_one_that_no_issuer_gave(
    shop: Shop, counts: bool, moved: bool
) -> None:
    """Also for a decline after it in the same payment."""
    payment, retries = begun(shop), Retries(counts)
    if moved:
        Payment.objects.filter(pk=payment.pk).update(sequence=7)
    plan: Any = ScreeningPlan(retries=retries)  # type: ignore[arg-type]
    reply = AcquirerReply(
        code="900.100.201", sent={"a": 1}, details={"AcquirerResponse": "91", "MerchantAdviceCode": "02"},
        retryable_elsewhere=True,
    )  # fmt: skip
    at = payment.created_at
    begun_again = store.reroute_payment(
        payment, reply, connector="stub", account="M", route={}, at=at, duration_ms=1, plan=plan
    )
    assert begun_again is not moved
    assert retries.counted == [("900.100.201", "02", "91", {"of_issuer": False})]
    assert retries.declines == int(counts and not moved)


# --- parts of an amount ---------------------------------------------------------------------------------------------


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Two payments that hold the other parts of an amount; what was completed, and asked, in order."""
    found = SimpleNamespace(calls=[], parts=[Payment(), Payment()], held=[True, True])

    def complete_one(payment: Payment, outcome: Any, **named: Any) -> None:
        found.calls.append((payment, outcome, named))

    def approve(part: Payment, others: list[Payment], at: Any) -> str:
        found.calls.append(("build", part, others, at))
        return "approved"

    monkeypatch.setattr(store, "_complete_payment", complete_one)
    monkeypatch.setattr(store, "hold_part", lambda payment, outcome: outcome)
    monkeypatch.setattr(store, "load_earlier_parts", lambda payment: found.parts)
    monkeypatch.setattr(store, "is_held", lambda part: found.held[found.parts.index(part)])
    monkeypatch.setattr(store, "build_part_approval", approve)
    monkeypatch.setattr(store.wakeup, "notify_timer", lambda name: found.calls.append(name))
    return found


GIVEN = {"trace": object(), "kind": "k", "idempotency": object(), "recover_at": clock.real_now(), "plan": object(),
         "was_taken_back": True}  # fmt: skip


@pytest.mark.django_db
def test_the_approval_of_the_rest_approves_the_parts_before_it(shop: Shop, parts: SimpleNamespace) -> None:
    payment = begun(shop)
    one, two = parts.parts
    outcome = Approved(reply=APPROVED, at=payment.created_at)
    given: dict[str, Any] = GIVEN
    store.complete_payment(payment, outcome, **given)
    assert parts.calls == [
        ("build", one, [two, payment], outcome.at), (one, "approved", {}),
        ("build", two, [one, payment], outcome.at), (two, "approved", {}),
        (payment, outcome, {**GIVEN, "parts": parts.parts}), "webhooks",
    ]  # fmt: skip


def test_a_decline_of_the_rest_leaves_the_parts(parts: SimpleNamespace) -> None:
    payment, outcome = Payment(), Declined(reply=AcquirerReply(code="800.100.155"), at=clock.real_now())
    parts.held = [False, True]
    store.complete_payment(payment, outcome)
    nothing = dict.fromkeys(GIVEN) | {"kind": "submit", "was_taken_back": False}
    assert parts.calls == [(payment, outcome, {**nothing, "parts": parts.parts})]


def test_a_payment_alone_is_completed_alone(parts: SimpleNamespace) -> None:
    parts.parts = []
    payment, outcome = Payment(), Approved(reply=APPROVED, at=clock.real_now())
    store.complete_payment(payment, outcome)
    assert [call[0] for call in parts.calls] == [payment]


@pytest.mark.parametrize("held", [[False, True], [True, False]])
def test_parts_that_are_held_no_more_were_completed_by_another(parts: SimpleNamespace, held: list[bool]) -> None:
    parts.held = held
    with pytest.raises(PaymentTransitionError):
        store.complete_payment(Payment(), Approved(reply=APPROVED, at=clock.real_now()))
    assert parts.calls == []


def test_an_approval_has_the_code_of_its_review_and_names_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    reviewed = AcquirerReply(code="000.400.010", details={"a": "b"})
    monkeypatch.setattr(store, "apply_review_code", lambda payment, reply: reviewed if reply is APPROVED else None)
    monkeypatch.setattr(store, "name_parts", lambda parts: {"Parts": str(len(parts))})
    payment, at = Payment(), clock.real_now()
    assert store._resolve_reply(payment, Approved(reply=APPROVED, at=at), []) is reviewed
    named = store._resolve_reply(payment, Approved(reply=APPROVED, at=at), [Payment()])
    assert (named.code, named.details) == ("000.400.010", {"a": "b", "Parts": "1"})
    declined = Declined(reply=APPROVED, at=at)
    assert store._resolve_reply(payment, declined, []) is APPROVED


@pytest.mark.parametrize("held", [True, False])
def test_what_is_held_is_completed_as_held(monkeypatch: pytest.MonkeyPatch, parts: SimpleNamespace, held: bool) -> None:
    at = clock.real_now()
    waiting = Suspended(reply=AcquirerReply(code="000.200.000"), at=at, deadline=at)
    approved = Approved(reply=APPROVED, at=at)
    monkeypatch.setattr(store, "hold_part", lambda payment, outcome: waiting if held else outcome)
    parts.parts = []
    store.complete_payment(Payment(), approved)
    assert parts.calls[0][1] is (waiting if held else approved)


@pytest.mark.django_db
def test_a_part_that_is_approved_stays_at_its_account(shop: Shop) -> None:
    """Whatever account declined it before."""
    payment = begun(shop)
    tried = {"name": "one", "connector": "stub", "account": "M-1", "code": "000.100.110", "declined": True}
    Payment.objects.filter(pk=payment.pk).update(acquirer_merchant_id="M-2", route={"name": "two", "tried": [tried]})
    reply = AcquirerReply(code="000.100.110", approved=payment.money, sent={"a": 1})
    store._complete_payment(again(payment), Approved(reply=reply, at=payment.created_at))
    kept = again(payment)
    assert (kept.status, kept.connector, kept.acquirer_merchant_id) == (Status.APPROVED, "simulator", "M-2")
    assert AcquirerExchange.objects.get().kind == "submit"
