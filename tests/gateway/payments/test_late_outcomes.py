"""What becomes of outcomes that come after recovery has begun to ask: each state, each kind of outcome, payouts to
cards, and what moves meanwhile. Source: docs/decisions/0148, 0152."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.port import AcquirerReply
from gateway.core import clock
from gateway.core.money import Money
from gateway.models import AcquirerExchange, Merchant, OpenPayment, Payment, PaymentEvent, RequestLog
from gateway.payments import late_outcomes, store
from gateway.payments.late_outcomes import record_late_outcome, take_late_answer
from gateway.payments.outcomes import Approved, Booked, Declined, OutcomeUnknown, PaymentOutcome, Suspended
from gateway.payments.states import PaymentTransitionError
from gateway.payments.stored_answer import PrivateFacts, read_private_facts
from tests.gateway.payments.test_store import begun, trace
from tests.support.database import others_stay
from tests.support.fixtures import Shop

UNKNOWN, NO_FUNDS, REVERSED, SUCCESS, PENDING = (
    "000.200.001", "800.100.155", "900.100.301", "000.100.110", "000.200.000",
)  # fmt: skip
NOW = datetime(2033, 5, 6, 7, tzinfo=UTC)
SAID = AcquirerReply(code=SUCCESS, connector_tx_id="T-2", sent={"a": 1}, received={"b": 2})
ELSEWHERE = {"connector": "stub", "acquirer_merchant_id": "M-1", "route": {"name": "two"}}
STATES: dict[str, dict[str, Any]] = {
    "STARTED": {},
    "IN_DOUBT": {"result_code": UNKNOWN},
    "DECLINED": {"result_code": REVERSED, "completed_at": NOW},
    "APPROVED": {"result_code": SUCCESS, "completed_at": NOW, "approved_amount": Decimal("92.00")},
    "PENDING": {"result_code": PENDING},
}


def said(kind: type[Any], **values: Any) -> Any:
    more = {"deadline": NOW + timedelta(hours=1)} if kind is Suspended else {}
    return kind(reply=replace(SAID, **values), at=NOW, duration_ms=17, **more)


# --- which of two is first: recovery's void, or the outcome -----------------------------------------------------------


def payment_in(shop: Shop, status: str, *, voided: bool = False, is_open: bool = True, **values: Any) -> Payment:
    """A payment in this state, as it was when it was still STARTED, beside another one that recovery voids."""
    payment, other = begun(shop), begun(shop)
    Payment.objects.filter(pk__in=(payment.pk, other.pk)).update(status=status, **{**STATES[status], **values})
    OpenPayment.objects.filter(pk=payment.pk).update(void_attempted=voided)
    OpenPayment.objects.filter(pk=other.pk).update(void_attempted=True)
    if not is_open:
        OpenPayment.objects.filter(pk=payment.pk).delete()
    return payment


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("outcome", "values", "payout", "completes"),
    [
        (Approved, {}, False, True),
        (Approved, {"voided": True}, False, False),
        (Suspended, {"voided": True}, False, False),
        (OutcomeUnknown, {"voided": True}, False, False),
        (Declined, {"voided": True}, False, True),
        (Approved, {"voided": True}, True, True),
        (Approved, {"is_open": False}, False, True),
    ],
)
def test_an_outcome_completes_its_payment_unless_a_void_may_undo_it(
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    outcome: type[PaymentOutcome],
    values: dict[str, Any],
    payout: bool,
    completes: bool,
) -> None:
    """Nothing is sent to void a payout to a card, and a void under way changes no decline."""
    payment = payment_in(shop, "IN_DOUBT", **values)
    monkeypatch.setattr(late_outcomes, "is_never_taken_back", lambda one: payout and one is payment)
    seen: list[str] = []
    found = late_outcomes._complete_during_recovery(payment, said(outcome), lambda: seen.append(payment.status))
    assert (found, seen) == (completes, ["IN_DOUBT"] * completes), "it is read anew before"


@pytest.mark.django_db
def test_what_cannot_be_completed_any_more_is_read_anew(shop: Shop) -> None:
    payment = payment_in(shop, "IN_DOUBT")

    def complete() -> None:
        Payment.objects.filter(pk=payment.pk).update(status="DECLINED", **STATES["DECLINED"])
        raise PaymentTransitionError

    assert late_outcomes._complete_during_recovery(payment, said(Approved), complete) is False
    assert (payment.status, payment.result_code) == ("DECLINED", REVERSED)


# --- what else becomes of it ------------------------------------------------------------------------------------------


class Written:
    """What an outcome wrote that completed nothing. ``kept``: the answers of attempts to keep it for its void;
    ``moved``: whether the payment moves by a booking."""

    def __init__(self, patch: pytest.MonkeyPatch, *, completes: bool = False, payout: bool = False) -> None:
        self.calls: list[Any] = []
        self.kept = [True]
        self.moved = True
        patch.setattr(late_outcomes, "_complete_during_recovery", lambda *call: self.calls.append(call) or completes)
        patch.setattr(late_outcomes, "is_never_taken_back", lambda one: payout)
        patch.setattr(late_outcomes, "is_for_person", lambda one: payout)
        for name in ("record_late_approval", "complete_payment", "record_exchange"):
            patch.setattr(store, name, self.writing(name))

    def writing(self, name: str) -> Callable[..., bool]:
        def write(*call: Any, **names: Any) -> bool:
            self.calls.append((name, call, names))
            if name == "complete_payment" and not self.moved:
                raise PaymentTransitionError
            return self.kept.pop(0) if name == "record_late_approval" else True

        return write

    @property
    def names(self) -> list[str]:
        return [name for name, *_ in self.calls[1:]]


class Row(SimpleNamespace):
    """A payment that becomes ``then`` when it is read anew."""

    def refresh_from_db(self) -> None:
        self.status = self.then.pop(0)


def row(status: str, *then: str) -> Any:
    return Row(id=UUID(int=7), status=status, then=list(then))


ASKED, TRACE = {"connector": "stub"}, trace()


def record(payment: Any, outcome: PaymentOutcome, **more: Any) -> None:
    record_late_outcome(payment, outcome, print, asked=ASKED, trace=TRACE, **more)


LATE_APPROVAL, EXCHANGE, BOOKING = ["record_late_approval"], ["record_exchange"], ["complete_payment"]


@pytest.mark.parametrize(
    ("outcome", "status", "payout", "written"),
    [
        (Approved, "IN_DOUBT", False, LATE_APPROVAL),
        (Approved, "DECLINED", False, LATE_APPROVAL),
        (Approved, "APPROVED", False, EXCHANGE),
        (Approved, "PENDING", False, EXCHANGE),
        (Approved, "DECLINED", True, BOOKING),
        (Approved, "IN_DOUBT", True, EXCHANGE),
        (Approved, "APPROVED", True, EXCHANGE),
        (Declined, "DECLINED", True, EXCHANGE),
        (Declined, "DECLINED", False, EXCHANGE),
        (Declined, "APPROVED", False, EXCHANGE),
        (Declined, "APPROVED", True, EXCHANGE),
        (Suspended, "DECLINED", True, EXCHANGE),
        (Suspended, "IN_DOUBT", False, EXCHANGE),
        (Suspended, "APPROVED", True, EXCHANGE),
    ],
)
def test_what_completes_nothing_is_kept_for_its_void_or_booked_or_an_exchange(
    monkeypatch: pytest.MonkeyPatch, outcome: type[PaymentOutcome], status: str, payout: bool, written: list[str]
) -> None:
    """A payout's decline that comes when it was entered as paid has a kind of its own: somebody has to ask."""
    to = Written(monkeypatch, payout=payout)
    payment, answer = row(status), said(outcome)
    record(payment, answer, kind="a kind")
    assert to.calls[0] == (payment, answer, print)
    assert to.names == written
    _, call, names = to.calls[1]
    if written == LATE_APPROVAL:
        assert call == (payment, answer)
        assert names == {"asked": ASKED, "trace": TRACE, "refused": PrivateFacts(), "kind": "a kind"}
    elif written == BOOKING:
        assert call == (payment, Booked(reply=answer.reply, at=NOW, duration_ms=17))
        assert type(call[1]) is Booked
        assert names == {"trace": TRACE, "kind": "a kind"}
    else:
        denied = outcome is Declined and status == "APPROVED" and payout
        assert call == (payment, "denied" if denied else "a kind", {"a": 1}, {"b": 2})
        assert names == {"at": NOW, "duration_ms": 17, "trace": TRACE, "connector": "stub"}


def test_an_exchange_is_of_a_submission_unless_another_kind_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    to = Written(monkeypatch)
    record(row("DECLINED"), said(Declined))
    assert to.calls[1][1][1] == "submit"


@pytest.mark.parametrize("outcome", [Approved, Declined])
def test_what_completed_its_payment_is_written_once(
    monkeypatch: pytest.MonkeyPatch, outcome: type[PaymentOutcome]
) -> None:
    to = Written(monkeypatch, completes=True)
    record(row("DECLINED"), said(outcome))
    assert to.names == []


@pytest.mark.parametrize(
    ("kept", "then", "written"),
    [
        ([False, True], ["DECLINED"], LATE_APPROVAL * 2),
        ([False, False, True], ["IN_DOUBT", "DECLINED"], LATE_APPROVAL * 3),
        ([False], ["APPROVED"], LATE_APPROVAL + EXCHANGE),
        ([False], ["PENDING"], LATE_APPROVAL + EXCHANGE),
    ],
)
def test_an_approval_is_kept_for_its_void_whatever_moves_meanwhile(
    monkeypatch: pytest.MonkeyPatch, kept: list[bool], then: list[str], written: list[str]
) -> None:
    to = Written(monkeypatch)
    to.kept = kept
    record(row("IN_DOUBT", *then), said(Approved))
    assert to.names == written


def test_a_booking_that_somebody_was_faster_than_is_an_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    to = Written(monkeypatch, payout=True)
    to.moved = False
    payment = row("DECLINED", "APPROVED")
    record(payment, said(Approved))
    assert (to.names, payment.status) == (BOOKING + EXCHANGE, "APPROVED")


@pytest.mark.parametrize("outcome", [Approved, Declined, Suspended])
@pytest.mark.parametrize("status", STATES)
def test_a_contradiction_of_what_the_merchant_was_told_is_logged_as_an_error(
    caplog: pytest.LogCaptureFixture, outcome: type[PaymentOutcome], status: str
) -> None:
    late_outcomes._log_contradiction(row(status), said(outcome), ASKED)
    told = {(Approved, "DECLINED"): "approved_after_decline", (Declined, "APPROVED"): "declined_after_approval"}
    word = told.get((outcome, status))
    assert [record.levelname for record in caplog.records] == (["ERROR"] if word else [])
    assert (word or "") in caplog.text
    assert ("stub" in caplog.text) is bool(word)


# --- answers that nobody waited for -----------------------------------------------------------------------------------


def events(payment: Payment) -> list[str]:
    return list(PaymentEvent.objects.filter(payment=payment.pk).order_by("sequence").values_list("event", flat=True))


def exchanges(payment: Payment) -> list[tuple[str, str]]:
    return list(AcquirerExchange.objects.filter(payment=payment.pk).order_by("id").values_list("kind", "connector"))


def granted(amount: str = "92.00") -> AcquirerReply:
    return replace(SAID, approved=Money(Decimal(amount), "EUR"))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("reply", "status", "event"),
    [
        (granted(), "APPROVED", "approve"),
        (replace(SAID, code=NO_FUNDS), "DECLINED", "decline"),
        (replace(SAID, code=PENDING), "PENDING", "suspend"),
    ],
)
@pytest.mark.parametrize("before", ["STARTED", "IN_DOUBT"])
def test_a_late_answer_is_its_payments_outcome_by_the_merchants_clock(
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    reply: AcquirerReply,
    status: str,
    event: str,
    before: str,
) -> None:
    payment = payment_in(shop, before)
    Merchant.objects.update(clock_offset=timedelta(days=3))
    monkeypatch.setattr(clock, "real_now", lambda: NOW)
    with others_stay(payment.pk.hex):
        take_late_answer(payment.pk, ELSEWHERE, reply)
    kept = Payment.objects.get(pk=payment.pk)
    assert (kept.status, kept.result_code, kept.connector_tx_id) == (status, reply.code, "T-2")
    assert events(payment) == ["begin", *(["lose"] if before == "STARTED" else []), event]
    assert PaymentEvent.objects.filter(payment=payment.pk).latest("sequence").at == NOW + timedelta(days=3)
    assert exchanges(payment) == [("late", "simulator")]
    [told] = [one.getMessage() for one in caplog.records if "late_answer" in one.getMessage()]
    assert payment.pk.hex in told
    assert event in told
    assert before in told
    assert not RequestLog.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("status", "voided"), [("IN_DOUBT", True), ("DECLINED", False)], ids=["being voided", "declined"]
)
def test_a_late_approval_beside_a_void_is_voided_by_what_it_said(shop: Shop, status: str, voided: bool) -> None:
    payment = payment_in(shop, status, voided=voided, is_open=voided)
    with others_stay(payment.pk.hex):
        take_late_answer(payment.pk, ELSEWHERE, granted())
    kept = Payment.objects.get(pk=payment.pk)
    assert (kept.status, kept.connector_tx_id) == (status, "T-2")
    assert (kept.connector, kept.acquirer_merchant_id) == ("stub", "M-1")
    assert OpenPayment.objects.get(pk=payment.pk).void_attempted
    assert exchanges(payment) == [("late", "stub")]
    assert read_private_facts(kept.answer).refused_code == ""


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["STARTED", "IN_DOUBT", "DECLINED"])
def test_a_late_approval_that_the_channel_refuses_is_given_back(
    shop: Shop, caplog: pytest.LogCaptureFixture, status: str
) -> None:
    payment = payment_in(
        shop, status, is_open=status != "DECLINED", answer=PrivateFacts(whole_amount_only=True).as_json()
    )
    with others_stay(payment.pk.hex):
        take_late_answer(payment.pk, ELSEWHERE, replace(granted("91.99"), details={"Detail": "x"}))
    kept = Payment.objects.get(pk=payment.pk)
    assert kept.status == ("DECLINED" if status == "DECLINED" else "IN_DOUBT")
    facts = read_private_facts(kept.answer)
    assert facts.refused_code == "800.100.155"
    assert facts.refused_details["Detail"] == "x"
    assert "91.99 of 92.00 EUR" in facts.refused_details["PartialApproval"]
    assert OpenPayment.objects.get(pk=payment.pk).void_attempted
    assert exchanges(payment) == [("late", "stub")]
    assert ("approved_after_decline" in caplog.text) is (status == "DECLINED")
    assert "late_approval_not_kept" not in caplog.text


@pytest.mark.django_db
def test_a_late_approval_of_all_is_not_given_back_where_only_all_is_taken(shop: Shop) -> None:
    payment = payment_in(shop, "IN_DOUBT", answer=PrivateFacts(whole_amount_only=True).as_json())
    take_late_answer(payment.pk, ELSEWHERE, granted("92.00"))
    assert Payment.objects.get(pk=payment.pk).status == "APPROVED"


@pytest.mark.django_db
def test_a_refused_approval_of_what_has_its_approval_is_logged(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    payment = payment_in(shop, "APPROVED", is_open=False, answer=PrivateFacts(whole_amount_only=True).as_json())
    with others_stay():
        take_late_answer(payment.pk, ELSEWHERE, granted("46.00"))
    assert "late_approval_not_kept" in caplog.text
    assert "APPROVED" in caplog.text


@pytest.mark.django_db
def test_a_payment_whose_worker_has_just_written_is_read_anew(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the worker wrote says whether the approval is kept."""
    payment = payment_in(shop, "STARTED")

    def write(one: Payment) -> bool:
        answer = PrivateFacts(whole_amount_only=True).as_json()
        Payment.objects.filter(pk=one.pk).update(status="IN_DOUBT", answer=answer, **STATES["IN_DOUBT"])
        return False

    monkeypatch.setattr(late_outcomes, "mark_outcome_unknown", write)
    take_late_answer(payment.pk, ELSEWHERE, granted("46.00"))
    kept = Payment.objects.get(pk=payment.pk)
    assert (kept.status, read_private_facts(kept.answer).refused_code) == ("IN_DOUBT", "800.100.155")


# --- payments whose worker died ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [one for one in STATES if one != "STARTED"])
def test_what_is_started_no_longer_is_not_lost(monkeypatch: pytest.MonkeyPatch, status: str) -> None:
    monkeypatch.setattr(store, "complete_payment", lambda *call, **names: 1 // 0)
    assert late_outcomes.mark_outcome_unknown(row(status)) is True


@pytest.mark.parametrize("faster", [False, True])
def test_a_lost_payment_keeps_what_was_not_written_and_when_it_is_asked_about(
    monkeypatch: pytest.MonkeyPatch, faster: bool
) -> None:
    done: list[Any] = []
    for name in ("restore_authentication_facts", "restore_token_use"):
        monkeypatch.setattr(late_outcomes, name, lambda one, name=name: done.append(name))
    monkeypatch.setattr(clock, "real_now", lambda: NOW)

    def complete(*call: Any, **names: Any) -> None:
        done.append((call, names))
        if faster:
            raise PaymentTransitionError

    monkeypatch.setattr(store, "complete_payment", complete)
    payment = row("STARTED")
    payment.open = SimpleNamespace(recover_at=NOW + timedelta(hours=2))
    payment.merchant = Merchant(clock_offset=timedelta(days=3))
    assert late_outcomes.mark_outcome_unknown(payment) is not faster
    lost = OutcomeUnknown(reply=AcquirerReply(code=UNKNOWN), at=NOW + timedelta(days=3))
    assert done == [
        "restore_authentication_facts", "restore_token_use",
        ((payment, lost), {"recover_at": NOW + timedelta(hours=2)}),
    ]  # fmt: skip
    assert type(done[2][0][1]) is OutcomeUnknown
