"""How a payment is screened once it has begun: who decides first, what is recorded, what the void of a refused approval
says. No database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.port import AcquirerReply
from gateway.core.money import Money
from gateway.models import Channel, Payment
from gateway.payments import risk_screening
from gateway.payments.risk_screening import (
    ScreeningPlan,
    _build_risk_answer,
    _is_test_data,
    describe_refusal,
    plan_resumed_screening,
    screen_follow_up,
    screen_payment,
    void_refused_approval,
)
from gateway.payments.stored_answer import ApprovalPolicy, read_private_facts
from gateway.risk.evaluation import RiskOutcome, RiskReason, RiskVerdict
from gateway.risk.rule_sets import RuleSet
from tests.gateway.connectors.test_stub_connector import ASKED

NOW, LATER = datetime(2035, 11, 15, tzinfo=UTC), datetime(2035, 11, 15, 1, tzinfo=UTC)
MERCHANT, PAYMENT = UUID(int=1), UUID(int=2)
OWNER: Any = SimpleNamespace(id=MERCHANT)
REQUEST: Any = SimpleNamespace(merchant=OWNER, now=NOW)
RULES = RuleSet(key="set", version=3, avs={"N": "decline"}, cvv={"U": "review"})
LOADED: Any = SimpleNamespace(rules=RULES)
SUBJECT: Any = object()


def verdict(code: str, outcome: RiskOutcome = RiskOutcome.DECLINE, **values: Any) -> RiskVerdict:
    reasons = (RiskReason(rule="R", why=f"why {code}"), RiskReason(rule="S", why="another"))
    return RiskVerdict(outcome=outcome, code=code, reasons=reasons, **values)


class Guard:
    """A guard with a verdict."""

    def __init__(self, code: str = "") -> None:
        self.code = code

    def verdict(self) -> RiskVerdict | None:
        return verdict(self.code) if self.code else None


def paid(**values: Any) -> Payment:
    given = {"payment_type": "DB", "answer": {}, "created_at": NOW, "brand": "VISA", **values}
    return Payment(id=PAYMENT, merchant_id=MERCHANT, channel=Channel(card_testing={"own": 1}), **given)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The decisions that were recorded. It is LATER by the merchant's clock."""
    calls: list[Any] = []
    monkeypatch.setattr(
        risk_screening.risk_store, "record_decision", lambda *each, **named: (calls.append((each, named)), True)[1]
    )
    monkeypatch.setattr(risk_screening.clock, "merchant_now", lambda merchant: LATER if merchant is OWNER else None)
    return calls


def plan(**values: Any) -> ScreeningPlan:
    return ScreeningPlan(**values)


@pytest.mark.parametrize(
    ("retries", "watch", "code"),
    [
        ("700.600.002", "", "700.600.002"),
        ("", "800.120.100", "800.120.100"),
        # The schemes' rules are asked first.
        ("700.600.002", "800.120.100", "700.600.002"),
        (None, "800.120.100", "800.120.100"),
        ("700.600.002", None, "700.600.002"),
    ],
)
def test_a_guard_stops_a_payment_before_its_rules_are_asked(
    recorded: list[Any], monkeypatch: pytest.MonkeyPatch, retries: str | None, watch: str | None, code: str
) -> None:
    monkeypatch.setattr(risk_screening.risk_store, "load_signals", None)
    row = paid()
    guards = {
        "retries": Guard(retries) if retries is not None else None,
        "watch": Guard(watch) if watch is not None else None,
    }
    found = screen_payment(row, REQUEST, plan(loaded=LOADED, subject=SUBJECT, **guards))
    assert found is not None
    assert (found.reply.code, found.reply.facts, found.at) == (
        code, {"resultDetails": {"RiskReason": f"why {code}"}}, LATER,
    )  # fmt: skip
    assert recorded == [((row, verdict(code), None), {"answer": {}, "at": NOW})]


@pytest.mark.parametrize(("loaded", "subject"), [(None, SUBJECT), (LOADED, None), (None, None)])
def test_without_a_rule_set_nothing_is_asked_or_recorded(
    recorded: list[Any], monkeypatch: pytest.MonkeyPatch, loaded: Any, subject: Any
) -> None:
    monkeypatch.setattr(risk_screening.risk_store, "load_signals", None)
    quiet: Any = Guard()
    assert screen_payment(paid(), REQUEST, plan(loaded=loaded, subject=subject, watch=quiet, retries=quiet)) is None
    assert recorded == []


@pytest.mark.parametrize(("kind", "observed"), [("DB", True), ("RI", False)])
@pytest.mark.parametrize(
    ("found", "declined"),
    [
        (verdict("800.120.300", score=-12), True),
        (verdict("000.400.010", RiskOutcome.REVIEW, score=7), False),
        (verdict("", RiskOutcome.ACCEPT, score=None), False),
    ],
)
def test_the_rules_judge_a_payment_by_what_was_counted(
    recorded: list[Any], monkeypatch: pytest.MonkeyPatch, kind: str, observed: bool, found: RiskVerdict, declined: bool
) -> None:
    """A check alone was not observed as it began."""
    asked: list[Any] = []
    monkeypatch.setattr(
        risk_screening.risk_store, "load_signals", lambda *each, **named: (asked.append((each, named)), "signals")[1]
    )
    monkeypatch.setattr(risk_screening.risk, "evaluate_rules", lambda *each: (asked.append(each), found)[1])
    row = paid(payment_type=kind)
    quiet: Any = Guard()
    outcome = screen_payment(row, REQUEST, plan(loaded=LOADED, subject=SUBJECT, watch=quiet, retries=quiet))
    assert asked == [
        ((LOADED, SUBJECT), {"merchant": OWNER, "at": NOW, "observed": observed}), (RULES, SUBJECT, "signals"),
    ]  # fmt: skip
    answer = _build_risk_answer(row, found, RULES)
    assert recorded == [((row, found, RULES), {"answer": answer, "at": NOW})]
    assert (outcome is not None) is declined
    if outcome is not None:
        assert (outcome.reply.code, outcome.reply.facts, outcome.at) == ("800.120.300", {}, LATER)


@pytest.mark.parametrize(("answers", "calls", "reads"), [([True], 1, 0), ([False, True], 2, 1), ([False, False], 2, 2)])
def test_a_decision_is_recorded_once_more_where_recovery_was_faster(
    monkeypatch: pytest.MonkeyPatch, answers: list[bool], calls: int, reads: int
) -> None:
    """With what the payment shows by then."""
    written: list[Any] = []
    again: list[Payment] = []

    def record(payment: Payment, *_: Any, answer: Any, at: datetime) -> bool:
        written.append(answer["facts"])
        return answers.pop(0)

    def refresh(payment: Payment) -> None:
        again.append(payment)
        payment.answer = {"facts": {"a": "b"}}

    monkeypatch.setattr(risk_screening.risk_store, "record_decision", record)
    monkeypatch.setattr(risk_screening.risk_store, "load_signals", lambda *each, **named: None)
    monkeypatch.setattr(risk_screening.risk, "evaluate_rules", lambda *_: verdict("", RiskOutcome.ACCEPT, score=1))
    monkeypatch.setattr(Payment, "refresh_from_db", refresh)
    row = paid()
    assert screen_payment(row, REQUEST, plan(loaded=LOADED, subject=SUBJECT)) is None
    assert (len(written), again) == (calls, [row] * reads)
    risk = {"risk": {"score": "+00001"}}
    assert written == [risk, {"a": "b", **risk}][:calls]


@pytest.mark.parametrize(
    ("found", "score", "review"),
    [
        (verdict("000.400.010", RiskOutcome.REVIEW, score=7), "+00007", "000.400.010"),
        (verdict("800.120.300", score=-300), "-00300", ""),
        (verdict("", RiskOutcome.ACCEPT, score=None), "+00000", ""),
    ],
)
def test_a_decision_shows_its_score_and_keeps_what_the_approval_has_to_meet(
    found: RiskVerdict, score: str, review: str
) -> None:
    row = paid(answer={"facts": {"threeDSecure": {"eci": "05"}, "risk": {"score": "old"}}, "descriptor": "Shop"})
    answer = _build_risk_answer(row, found, RULES)
    assert answer["facts"] == {"threeDSecure": {"eci": "05"}, "risk": {"score": score}}
    assert read_private_facts(answer).approval_policy == ApprovalPolicy(
        review=review, avs={"N": "decline"}, cvv={"U": "review"}
    )


@pytest.mark.parametrize(("code", "stops"), [("700.600.002", True), ("", False), (None, False)])
def test_a_follow_up_is_stopped_by_the_schemes_rules_alone(recorded: list[Any], code: str | None, stops: bool) -> None:
    row, watch = paid(), Guard("800.120.100")
    guards: Any = {"retries": Guard(code) if code is not None else None, "watch": watch}
    found = screen_follow_up(row, plan(**guards), REQUEST)
    assert (found is not None) is stops
    if found is not None:
        assert (found.reply.code, found.at) == (code, LATER)
        assert found.reply.facts == {"resultDetails": {"RiskReason": f"why {code}"}}
    assert recorded == [((row, verdict("700.600.002"), None), {"answer": {}, "at": NOW})] * stops
    assert screen_follow_up(row, None, REQUEST) is None


# --- who comes back -------------------------------------------------------------------------------------------------


def test_both_guards_go_on_with_a_payment_whose_shopper_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        risk_screening.card_testing,
        "build_card_testing_watch",
        lambda *each, **named: (asked.append((each, named)), "watch")[1],
    )
    row = paid(
        means="card", means_fingerprint=b"key", test_mode="EXTERNAL",
        answer={"card": {"bin": "411111", "last4Digits": "0008"}},
    )  # fmt: skip
    sent = {"customer.ip": "203.0.113.9"}
    found = plan_resumed_screening(row, sent)
    assert (found.watch, found.loaded, found.subject) == ("watch", None, None)
    assert found.retries is not None
    assert found.retries.key == b"key"
    expected = {"merchant": MERCHANT, "payment": PAYMENT, "card_bin": "411111", "own": {"own": 1}, "now": NOW}
    assert asked == [((sent,), expected)]
    row.channel.card_testing = None
    plan_resumed_screening(row, sent)
    assert asked[1][1]["own"] == {}


@pytest.mark.parametrize(("live", "test_data"), [(False, True), (True, False)])
def test_in_live_there_are_no_test_cards(settings: Any, live: bool, test_data: bool) -> None:
    settings.IS_LIVE = live
    assert _is_test_data("420000", "0000") is test_data
    assert not _is_test_data("420000", "9999")


# --- a refused approval ---------------------------------------------------------------------------------------------

APPROVED = AcquirerReply(code="000.100.110", approved=Money(Decimal(10), "EUR"), connector_tx_id="T-1")


@pytest.mark.parametrize(("given", "known", "named"), [("NEW", "OLD", "NEW"), ("", "OLD", "OLD"), ("", "", "")])
def test_a_void_names_the_link_of_the_approval_and_takes_no_late_answer(given: str, known: str, named: str) -> None:
    asked: list[Any] = []
    connector: Any = SimpleNamespace(void=lambda request: (asked.append(request), AcquirerReply(code="000.100.110"))[1])
    request = replace(ASKED, original=replace(ASKED.point_of_service, link=known), take_late_answer=lambda reply: None)
    void_refused_approval(connector, request, replace(APPROVED, transaction_link=given), verdict("800.120.300"))
    assert (asked[0].original.link, asked[0].take_late_answer) == (named, None)
    assert asked[0].point_of_service == replace(request.point_of_service, link=named)


@pytest.mark.parametrize(
    ("code", "name"), [("800.100.155", "PartialApproval"), ("800.120.300", "RiskReason"), ("800.100.152", "RiskReason")]
)
def test_a_refusal_is_described_by_its_first_reason(code: str, name: str) -> None:
    found = describe_refusal(replace(APPROVED, details={"a": "b"}), verdict(code))
    assert found == {"a": "b", name: f"why {code}; the approval was reversed"}
