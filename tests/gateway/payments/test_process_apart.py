"""What each phase of a first payment hands to the next, and which attempt follows which. No database.

Source: docs/decisions/0058, 0036, 0108.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.catalogue.errors import ParameterError
from gateway.catalogue.parameters import Parameters
from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerReply, AcquirerRequest, OutcomeUnknownError
from gateway.connectors.routing import CONNECTORS, NoRouteError
from gateway.core import identifiers
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import Channel, Merchant, Payment
from gateway.payments import process
from gateway.payments.outcomes import Approved, AuthenticationProof, Declined, OutcomeUnknown, Suspended
from gateway.payments.payment_request import RequestTrace
from gateway.payments.process import (
    advance_payment,
    begin_payment,
    build_acquirer_request,
    complete_unless_recovered,
    resolve_route,
    submit_payment,
    submit_with_step_up,
)
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.states import PaymentTransitionError
from gateway.payments.stored_answer import PrivateFacts
from gateway.risk.evaluation import RiskOutcome
from tests.gateway.payments.test_process import CARD, IDENT, NOW, PLAN, ROUTE, SIMULATOR, build, request_of, use

LATER = datetime(2026, 11, 29, 12, 30, tzinfo=UTC)
PROOF = AuthenticationProof(parameters={"threeDSecure.eci": "05"})
DECLINE = Declined(reply=AcquirerReply(code="800.100.155"), at=LATER)


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> list[Merchant]:
    """It is LATER by every merchant's clock: whose clock was asked."""
    asked: list[Merchant] = []
    monkeypatch.setattr(process.clock, "merchant_now", lambda merchant: (asked.append(merchant), LATER)[1])
    return asked


# Screening, authentication, submission.


def test_what_screening_declines_is_neither_authenticated_nor_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(process.risk_screening, "screen_payment", lambda *each: (asked.append(each), DECLINE)[1])
    monkeypatch.setattr(process.shopper_authentication, "authenticate_payment", None)
    monkeypatch.setattr(process, "submit_with_step_up", None)
    done: list[Any] = []
    monkeypatch.setattr(process, "complete_unless_recovered", lambda *each, **named: done.append((each, named)))
    payment, request = build(payment_type="RI"), request_of(payment_type="RI")
    advance_payment(payment, SIMULATOR, request, PLAN)
    assert asked == [(payment, request, PLAN)]
    assert done == [((payment, DECLINE, request), {})]


@pytest.mark.parametrize(
    ("mode", "code"), [("INTERNAL", "000.100.110"), ("EXTERNAL", "000.100.112"), ("", "000.000.000")]
)
def test_a_risk_check_that_no_rule_declines_is_approved_without_an_acquirer(
    monkeypatch: pytest.MonkeyPatch, hours: list[Merchant], mode: str, code: str
) -> None:
    """Ruling D18."""
    monkeypatch.setattr(process.risk_screening, "screen_payment", lambda *_: None)
    monkeypatch.setattr(process.shopper_authentication, "authenticate_payment", None)
    request = request_of(payment_type="RI", test_mode=mode)
    outcome = process._clear_for_acquirer(build(payment_type="RI", test_mode=mode), request, PLAN)
    assert isinstance(outcome, Approved)
    assert (outcome.reply.code, outcome.reply.approved, outcome.at) == (code, Money.parse("92.00", "EUR"), LATER)
    assert hours == [request.merchant]


def test_what_screening_lets_go_on_is_authenticated(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(process.risk_screening, "screen_payment", lambda *_: None)
    monkeypatch.setattr(
        process.shopper_authentication, "authenticate_payment", lambda *each: (asked.append(each), PROOF)[1]
    )
    payment, request = build(), request_of()
    assert process._clear_for_acquirer(payment, request, PLAN) is PROOF
    assert asked == [(payment, request)]


def test_a_payment_is_sent_with_all_that_was_sent_and_its_agreements_references(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The references go before what was sent under their names."""
    sent: list[Any] = []
    done: list[Any] = []
    monkeypatch.setattr(process, "_clear_for_acquirer", lambda *each: PROOF)
    monkeypatch.setattr(process, "submit_with_step_up", lambda *each: (sent.append(each), DECLINE)[1])
    monkeypatch.setattr(process, "complete_unless_recovered", lambda *each, **named: done.append((each, named)))
    values = {"billing.city": "Rome", "standingInstruction.initialTransactionId": "sent"}
    request = request_of(sent=values)
    request.parameters.secrets["card.cvv"] = cvv = Secret("123")
    payment = build()
    advance_payment(payment, SIMULATOR, request, PLAN)
    assert sent == [(payment, SIMULATOR, CARD, {**values, "card.cvv": cvv}, PROOF, request, PLAN)]
    assert done == [((payment, DECLINE, request), {"plan": PLAN})]
    references = {"standingInstruction.initialTransactionId": "known"}
    agreed = replace(use(None), scheme_references=references)
    advance_payment(payment, SIMULATOR, request_of(sent=values, agreement_use=agreed), PLAN)
    assert sent[1][3] == {**values, **references}


# A step-up.


class Submitted:
    """Takes what is submitted and answers with ``outcomes``, one after the other."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes, self.calls = list(outcomes), []  # type: ignore[var-annotated]

    def __call__(self, payment: Payment, connector: Any, asked: AcquirerRequest, *more: Any, since: float) -> Any:
        self.calls.append((payment, connector, asked.means, dict(asked.parameters), *more, since))
        return self.outcomes.pop(0)


ORIGIN: Any = SimpleNamespace(merchant=Merchant(id=UUID(int=1)), trace=None, idempotency=None)
SENT = {"threeDSecure.exemptionFlag": "01", "billing.city": "Rome", "threeDSecure.eci": "07"}


def test_a_payment_is_submitted_once_where_nothing_steps_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.time, "perf_counter", lambda: 100.0)
    submitted = Submitted(DECLINE)
    monkeypatch.setattr(process, "submit_payment", submitted)
    asked: list[Any] = []

    def step(*each: Any, **named: Any) -> Any:
        asked.append((each, named))
        return each[1]

    monkeypatch.setattr(process.step_up, "step_up", step)
    payment = build()
    assert submit_with_step_up(payment, SIMULATOR, CARD, SENT, PROOF, ORIGIN, PLAN) is DECLINE
    values = SENT | {"threeDSecure.eci": "05"}
    assert submitted.calls == [(payment, SIMULATOR, CARD, values, ORIGIN, PLAN, 100.0)]
    assert asked == [((payment, DECLINE, CARD, SENT, ORIGIN, PLAN), {"since": 100.0})]


def test_a_proof_after_a_soft_decline_is_submitted_to_the_account_where_the_payment_is_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once more, with a mandated challenge in place of an exemption."""
    monkeypatch.setattr(process.time, "perf_counter", lambda: 100.0)
    approval = Approved(reply=AcquirerReply(code="000.100.110"), at=LATER)
    submitted = Submitted(DECLINE, approval)
    monkeypatch.setattr(process, "submit_payment", submitted)
    second = AuthenticationProof(parameters={"threeDSecure.eci": "02"})

    def step(payment: Payment, *each: Any, **named: Any) -> Any:
        payment.answer = payment.answer | PrivateFacts(attempt=2).as_json()
        payment.connector = "stub"
        return second

    monkeypatch.setattr(process.step_up, "step_up", step)
    payment = build()
    assert submit_with_step_up(payment, SIMULATOR, CARD, SENT, PROOF, ORIGIN, PLAN) is approval
    values = {"billing.city": "Rome", "threeDSecure.challengeIndicator": "04", "threeDSecure.eci": "02"}
    assert submitted.calls[1] == (payment, CONNECTORS["stub"], CARD, values, ORIGIN, PLAN, 100.0)


def test_a_shopper_who_is_challenged_suspends_the_payment(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Suspended(reply=AcquirerReply(code="000.200.000"), at=LATER, deadline=LATER)
    monkeypatch.setattr(process, "submit_payment", Submitted(DECLINE))
    monkeypatch.setattr(process.step_up, "step_up", lambda *each, **named: waiting)
    assert submit_with_step_up(build(), SIMULATOR, CARD, {}, PROOF, ORIGIN, PLAN) is waiting


# One attempt after the other.

APPROVED = AcquirerReply(code="000.100.110", approved=Money.parse("92.00", "EUR"), connector_tx_id="T-1")
NO_FUNDS = AcquirerReply(code="800.100.155", details={"a": "b"})
OTHER_DECLINE = AcquirerReply(code="800.100.152")
AWAY = AcquirerReply(code="900.100.600", retryable_elsewhere=True)
SILENCE = OutcomeUnknownError("no answer", {"m": 1})
ONE, TWO, THREE = (SimpleNamespace(name=name) for name in ("one", "two", "three"))


class Line:
    """Acquirers that answer in turn, and what may follow an answer: ``failovers``, ``cascades`` and ``numbers`` (the
    card number after its token) are asked in turn, None when they are used up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *replies: Any) -> None:
        self.replies = list(replies)
        self.failovers: list[Any] = []
        self.cascades: list[Any] = []
        self.numbers: list[Any] = []
        self.asked: list[Any] = []
        self.seen: list[tuple[str, str, float]] = []
        self.ticks = iter(range(1_000, 2_000))
        monkeypatch.setattr(process.time, "perf_counter", lambda: float(next(self.ticks)))
        monkeypatch.setattr(process, "_prepare_attempt", self.prepare)
        monkeypatch.setattr(process, "_call_acquirer", self.call)
        monkeypatch.setattr(process.failover, "next_route", self.answer("failover", self.failovers))
        monkeypatch.setattr(process.network_tokens, "fall_back_to_number", self.answer("number", self.numbers))
        monkeypatch.setattr(process.cascade, "next_after_decline", self.answer("cascade", self.cascades))
        monkeypatch.setattr(process.cascade, "restore_decline", lambda first, last: ("restored", first, last))
        monkeypatch.setattr(
            process.metrics, "observe_acquirer_answer", lambda *each: self.seen.append((each[0], str(each[1]), each[2]))
        )

    def prepare(self, payment: Payment, connector: Any, request: AcquirerRequest) -> Any:
        self.asked.append((connector.name, request.attempt))
        return (
            self.replies.pop(0) if isinstance(self.replies[0], AcquirerReply) and self.replies[0].not_sent else request
        )

    def call(self, payment: Payment, connector: Any, request: AcquirerRequest) -> Any:
        return self.replies.pop(0)

    def answer(self, name: str, found: list[Any]) -> Callable[..., Any]:
        def follow(*each: Any, **named: Any) -> Any:
            self.asked.append((name, each, named))
            return found.pop(0) if found else None

        return follow


def submit(payment: Payment, **more: Any) -> Any:
    return submit_payment(payment, ONE, build_acquirer_request(payment, CARD, {}), ORIGIN, PLAN, **more)  # type: ignore[arg-type]


def test_an_approval_ends_the_line(monkeypatch: pytest.MonkeyPatch, hours: list[Merchant]) -> None:
    line, payment = Line(monkeypatch, APPROVED), build()
    outcome = submit(payment)
    assert isinstance(outcome, Approved)
    # The clock ticks a second each time it is read: as the first was asked, as this one is, and as it has answered.
    assert (outcome.reply, outcome.at, outcome.duration_ms) == (APPROVED, LATER, 1_000)
    assert hours == [ORIGIN.merchant]
    assert line.seen == [("one", "approve", 1.0)]
    first, (name, each, named), (last, its, last_named) = line.asked
    assert (first, name, last) == (("one", 1), "number", "cascade")
    assert each[:3] == (payment, ONE, outcome)
    assert (each[3].payment, each[4], named) == (IDENT, PLAN, {"since": 1000.0})
    assert its[:2] == (payment, outcome)
    assert (its[2] is each[3], its[3], last_named) == (True, PLAN, {"since": 1000.0})


def test_the_time_since_the_first_acquirer_was_called_is_the_callers(
    monkeypatch: pytest.MonkeyPatch, hours: list[Merchant]
) -> None:
    line = Line(monkeypatch, AWAY)
    submit(build(), since=7.0)
    assert line.asked[1][2]["since"] == 7.0


def test_an_acquirer_that_judged_nothing_is_followed_by_the_next_of_the_route(
    monkeypatch: pytest.MonkeyPatch, hours: list[Merchant]
) -> None:
    line, payment = Line(monkeypatch, AWAY, APPROVED), build()
    line.failovers.append(TWO)
    outcome = submit(payment)
    assert outcome.reply is APPROVED
    (name, each, named) = line.asked[1]
    assert (name, each) == ("failover", (payment, AWAY, PLAN))
    assert named == {"since": 1000.0, "at": LATER, "duration_ms": 1_000}
    assert [one[0] for one in line.asked] == ["one", "failover", "two", "number", "cascade"]
    assert [one[:2] for one in line.seen] == [("one", "retryable"), ("two", "approve")]


def test_where_no_acquirer_is_left_that_judges_the_last_answer_stands(
    monkeypatch: pytest.MonkeyPatch, hours: list[Merchant]
) -> None:
    line = Line(monkeypatch, AWAY, AWAY)
    line.failovers.append(TWO)
    outcome = submit(build())
    assert isinstance(outcome, Declined)
    assert outcome.reply is AWAY
    assert [one[0] for one in line.asked] == ["one", "failover", "two", "failover"]


@pytest.mark.parametrize("by", ["numbers", "cascades"])
def test_a_decline_is_followed_by_the_card_number_or_by_another_account_in_an_attempt_of_its_own(
    monkeypatch: pytest.MonkeyPatch, hours: list[Merchant], by: str
) -> None:
    line, payment = Line(monkeypatch, NO_FUNDS, APPROVED), build()
    getattr(line, by).append(TWO)

    def number(_: Payment) -> int:
        return 2

    asked = build_acquirer_request(payment, CARD, {})
    monkeypatch.setattr(process, "get_attempt_number", number)
    outcome = submit_payment(payment, ONE, asked, ORIGIN, PLAN)  # type: ignore[arg-type]
    assert outcome.reply is APPROVED
    assert [one for one in line.asked if len(one) == 2] == [("one", 1), ("two", 2)]
    if by == "numbers":
        assert [one[0] for one in line.asked[:3]] == ["one", "number", "two"], "a cascade is not asked for besides"


def test_a_decline_stands_where_nothing_follows(monkeypatch: pytest.MonkeyPatch, hours: list[Merchant]) -> None:
    Line(monkeypatch, NO_FUNDS)
    assert submit(build()).reply is NO_FUNDS


def test_the_decline_is_the_answer_where_the_account_after_it_judged_nothing(
    monkeypatch: pytest.MonkeyPatch, hours: list[Merchant]
) -> None:
    line = Line(monkeypatch, NO_FUNDS, OTHER_DECLINE, AWAY, AWAY)
    line.cascades += [TWO, THREE]
    line.failovers.append(ONE)
    word, first, last = submit(build())
    assert (word, first.reply, last.reply) == ("restored", OTHER_DECLINE, AWAY)
    assert [one for one in line.asked if len(one) == 2] == [("one", 1), ("two", 1), ("three", 1), ("one", 1)]


@pytest.mark.parametrize("reply", [OTHER_DECLINE, APPROVED, SILENCE])
def test_what_the_next_account_says_or_does_not_say_is_the_answer(
    monkeypatch: pytest.MonkeyPatch, hours: list[Merchant], reply: Any
) -> None:
    line = Line(monkeypatch, NO_FUNDS, reply)
    line.cascades.append(TWO)
    outcome = submit(build())
    if reply is SILENCE:
        assert isinstance(outcome, OutcomeUnknown)
        assert (outcome.reply.sent, outcome.at, outcome.duration_ms) == ({"m": 1}, LATER, 1_000)
    else:
        assert outcome.reply is reply


def test_who_is_not_sent_the_request_is_not_called(monkeypatch: pytest.MonkeyPatch, hours: list[Merchant]) -> None:
    unsent = AcquirerReply(code="900.100.600", not_sent=True, retryable_elsewhere=True)
    Line(monkeypatch, unsent)
    monkeypatch.setattr(process, "_call_acquirer", None)
    assert submit(build()).reply is unsent


def test_a_trace_names_the_request_the_acquirer_and_the_payment(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(process.tracing, "trace_span", lambda *each, **named: made.append((each, named)))
    payment = build(payment_type="PA")
    process._trace_submission(payment, ONE)  # type: ignore[arg-type]
    [((name,), named)] = made
    ndc = named.pop("ndc")
    assert (name, named) == (
        "acquirer submit", {"connector": "one", "operation": "PA", "payment": IDENT.hex},
    )  # fmt: skip
    assert ndc() == identifiers.format_ndc(UUID(int=7), UUID(int=2).hex)


def test_an_attempt_has_the_cards_network_token_and_takes_its_answer_late(monkeypatch: pytest.MonkeyPatch) -> None:
    payment = build()
    request = build_acquirer_request(payment, CARD, {})
    tokenized = build_acquirer_request(payment, Card(number=Secret("4"), expiry_month="01", expiry_year="2040"), {})
    asked: list[Any] = []
    monkeypatch.setattr(
        process.network_tokens, "attach_network_token", lambda *each: (asked.append(each), tokenized)[1]
    )
    prepared = process._prepare_attempt(payment, SIMULATOR, request)
    assert isinstance(prepared, AcquirerRequest)
    assert (prepared.means, asked) == (tokenized.means, [(payment, SIMULATOR, request)])
    late: Any = prepared.take_late_answer
    assert late.func is process.late_outcomes.take_late_answer
    columns = {"connector": "simulator", "acquirer_merchant_id": "M-1", "route": None}
    assert late.args == (IDENT, columns)


@pytest.mark.parametrize("outcome", list(RiskOutcome))
def test_an_approval_that_the_rules_refuse_is_voided_where_it_was_given(
    monkeypatch: pytest.MonkeyPatch, outcome: RiskOutcome
) -> None:
    voided: list[Any] = []
    verdict = SimpleNamespace(outcome=outcome)
    judged: list[Any] = []
    monkeypatch.setattr(process.risk_screening, "evaluate_approval", lambda *each: (judged.append(each), verdict)[1])
    monkeypatch.setattr(
        process.risk_screening, "void_refused_approval", lambda *each: (voided.append(each), NO_FUNDS)[1]
    )
    sent: list[Any] = []
    acquirer: Any = SimpleNamespace(submit=lambda request: (sent.append(request), APPROVED)[1])
    payment = build()
    request = build_acquirer_request(payment, CARD, {})
    refused = outcome is RiskOutcome.DECLINE
    assert process._call_acquirer(payment, acquirer, request) is (NO_FUNDS if refused else APPROVED)
    assert sent == [request]
    assert judged == [(payment, APPROVED)]
    assert voided == [(acquirer, request, APPROVED, verdict)] * refused


# The end, where recovery was first.


def test_an_outcome_that_recovery_overtook_is_recorded_with_the_attempt_that_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[dict[str, Any]] = []

    def complete(payment: Payment, outcome: Any, **named: Any) -> None:
        calls.append({"payment": payment, "outcome": outcome, **named})
        raise PaymentTransitionError

    def refresh(payment: Payment) -> None:
        payment.connector, payment.acquirer_merchant_id, payment.route = "stub", "M-9", {"name": "left"}

    late: list[Any] = []
    monkeypatch.setattr(process.store, "complete_payment", complete)
    monkeypatch.setattr(Payment, "refresh_from_db", refresh)
    monkeypatch.setattr(process.late_outcomes, "record_late_outcome", lambda *each, **named: late.append((each, named)))
    payment = build()
    key: Any = object()
    request = request_of(idempotency=key)
    complete_unless_recovered(payment, DECLINE, request, plan=PLAN)
    [((row, outcome, again), named)] = late
    assert (row, outcome) == (payment, DECLINE)
    asked = {"connector": "simulator", "acquirer_merchant_id": "M-1", "route": None}
    assert named == {"asked": asked, "trace": request.trace}
    with pytest.raises(PaymentTransitionError):
        again()
    expected = {"payment": payment, "outcome": DECLINE, "trace": request.trace, "idempotency": key, "plan": PLAN}
    assert calls == [expected, expected]


# The beginning.


def test_a_beginning_has_its_key_its_log_row_and_its_callers_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    named: dict[str, Any] = {}
    monkeypatch.setattr(process, "find_agreement_violation", lambda *_: None)
    monkeypatch.setattr(process.store, "insert_payment", lambda payment, **given: named.update(given) or True)
    key: Any = object()
    trace = RequestTrace(request=UUID(int=8), method="POST", path="/v1/x", at=NOW)

    def write(_: Any) -> None:
        pass

    begin_payment(request_of(idempotency=key, extra_writes=write, trace=trace), ROUTE, PLAN)
    assert (named["idempotency"], named["extra_writes"], named["trace"]) == (key, write, trace)


@pytest.mark.parametrize(
    ("missing", "unsendable", "expected"),
    [
        (("billing.city",), (), ("200.300.404", "billing.city", None, "is required: the acquirer that takes")),
        ((), ("merchant.city",), ("600.200.400", "merchant.city", "Rome", "cannot be sent to any acquirer")),
        # What is missing can be sent, so it is told first.
        (("billing.city",), ("merchant.city",), ("200.300.404", "billing.city", None, "is required")),
    ],
)
def test_what_keeps_a_payment_from_an_acquirer_is_told(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], unsendable: tuple[str, ...], expected: tuple[Any, ...]
) -> None:
    def refuse(*_: object) -> Any:
        raise NoRouteError("none", missing=missing, unsendable=unsendable)

    monkeypatch.setattr(process, "route_payment", refuse)
    with pytest.raises(RequestRefusedError) as refused:
        resolve_route(request_of(sent={"merchant.city": "Rome"}))
    [error] = refused.value.errors
    code, name, value, words = expected
    assert (refused.value.code, error.name, error.value) == (code, name, value)
    assert error.message.startswith(words)


def test_a_secret_does_not_hide_a_parameter_of_its_name_from_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(process, "route_payment", lambda *each: (asked.append(each), ROUTE)[1])
    request = request_of()
    resolve_route(
        request_of(
            parameters=Parameters(values={"card.cvv": "plain"}, secrets={"card.cvv": Secret("123")}),
            channel=Channel(id=UUID(int=2)),
            now=request.now,
        )
    )
    assert asked[0][2].sent == {"card.cvv": "plain"}


def test_refusals_of_parameters_go_before_a_limit_of_the_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ParameterError(name="a", message="b", code="100.100.303")
    monkeypatch.setattr(process, "find_agreement_violation", None)
    assert process._find_refusals(request_of(refused=(first,)), None) == (first,)
