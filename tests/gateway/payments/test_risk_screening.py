"""Which cards the guards watch, and what becomes of an approval that we refuse: the void that is sent, and the decline
that is answered. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.means import BankAccount, Card, TokenAccount
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ApprovalNotVoidedError,
    OutcomeUnknownError,
    ReversalReason,
    VoidRefusedError,
)
from gateway.core.money import Money
from gateway.models import Channel, Payment
from gateway.payments.risk_screening import (
    PARTIAL_APPROVAL_DETAIL,
    PARTIAL_APPROVAL_REFUSED_CODE,
    _is_fresh_card,
    _plan_resumed_watch,
    evaluate_approval,
    get_reversal_reason,
    void_refused_approval,
)
from gateway.payments.stored_answer import ApprovalPolicy, PrivateFacts
from gateway.risk.evaluation import RiskOutcome, RiskReason, RiskVerdict
from tests.gateway.connectors.test_stub_connector import ASKED

APPROVED = AcquirerReply(
    code="000.100.110",
    approved=Money.parse("10.00", "EUR"),
    connector_tx_id="TX-1",
    details={"AcquirerResponse": "00"},
    received={"outcome": "approved"},
)
AVS = "800.120.300"


def refuse(code: str) -> RiskVerdict:
    return RiskVerdict(
        outcome=RiskOutcome.DECLINE, code=code, reasons=(RiskReason(rule="R", why="why", verdict="decline"),)
    )


class Voiding:
    """A connector whose void answers ``answer``, or raises it."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.asked = answer, ASKED

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        self.asked = request
        if isinstance(self.answer, Exception):
            raise self.answer
        return AcquirerReply(code="000.100.110", received=self.answer)


@pytest.mark.parametrize(
    ("code", "detail", "reason"),
    [
        (AVS, "RiskReason", ReversalReason.SUSPECTED_FRAUD),
        (PARTIAL_APPROVAL_REFUSED_CODE, PARTIAL_APPROVAL_DETAIL, ReversalReason.CUSTOMER),
    ],
)
def test_an_approval_that_is_refused_is_voided_and_answered_as_a_decline(
    code: str, detail: str, reason: ReversalReason
) -> None:
    connector: Any = Voiding({"outcome": "voided"})
    made = void_refused_approval(connector, ASKED, APPROVED, refuse(code))
    assert (connector.asked.reversal_reason, connector.asked.known_transaction_id) == (reason, "TX-1")
    assert made == replace(
        APPROVED,
        code=code,
        approved=None,
        details={"AcquirerResponse": "00", detail: "why; the approval was reversed"},
        received={"outcome": "approved", "takenBack": {"outcome": "voided"}},
    )


@pytest.mark.parametrize(("kind", "outcome"), [("DB", RiskOutcome.DECLINE), ("CD", RiskOutcome.ACCEPT)])
def test_a_payout_is_not_taken_back_for_its_address(kind: str, outcome: RiskOutcome) -> None:
    """docs/decisions/0147: networks know no reversal of one."""
    kept = PrivateFacts(approval_policy=ApprovalPolicy(avs={"N": "decline"}))
    payment = Payment(payment_type=kind, amount=Decimal(10), currency="EUR", answer=kept.as_json())
    assert evaluate_approval(payment, replace(APPROVED, avs="N")).outcome is outcome
    whole = Payment(
        payment_type=kind, amount=Decimal(20), currency="EUR", answer=PrivateFacts(whole_amount_only=True).as_json()
    )
    assert (evaluate_approval(whole, APPROVED).outcome is RiskOutcome.DECLINE) is (kind == "DB"), "approved in part"


def test_an_approval_without_an_id_is_voided_by_what_was_known_before() -> None:
    connector: Any = Voiding({})
    asked = replace(ASKED, known_transaction_id="TX-0")
    void_refused_approval(connector, asked, replace(APPROVED, connector_tx_id=""), refuse(AVS))
    assert connector.asked.known_transaction_id == "TX-0"


def test_a_void_without_an_answer_leaves_the_decline_for_recovery() -> None:
    connector: Any = Voiding(OutcomeUnknownError("silence", {"sent": "void"}, connector_tx_id="TX-2"))
    with pytest.raises(ApprovalNotVoidedError) as caught:
        void_refused_approval(connector, ASKED, APPROVED, refuse(AVS))
    found = caught.value
    assert (found.code, found.connector_tx_id, found.sent) == (AVS, "TX-1", {"sent": "void"})
    assert found.details == {"AcquirerResponse": "00", "RiskReason": "why; the approval was reversed"}


def test_a_void_that_is_refused_is_said_as_it_is() -> None:
    connector: Any = Voiding(VoidRefusedError("kept", {}))
    with pytest.raises(VoidRefusedError):
        void_refused_approval(connector, ASKED, APPROVED, refuse(AVS))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("", ReversalReason.TIMEOUT),
        (PARTIAL_APPROVAL_REFUSED_CODE, ReversalReason.CUSTOMER),
        (AVS, ReversalReason.SUSPECTED_FRAUD),
    ],
)
def test_a_void_says_why(code: str, reason: ReversalReason) -> None:
    assert get_reversal_reason(code) is reason


@pytest.mark.parametrize(
    ("means", "registration", "card_bin", "watched"),
    [
        (Card.kind, None, "411111", True),
        (Card.kind, UUID(int=1), "411111", False),
        (TokenAccount.kind, None, "411111", False),
        (BankAccount.kind, None, "411111", False),
        (Card.kind, None, "420000", False),
    ],
)
def test_a_fresh_card_is_watched_when_its_shopper_comes_back(
    means: str, registration: UUID | None, card_bin: str, watched: bool
) -> None:
    """420000, with these last four digits: a published test card, which is never watched."""
    payment = Payment(
        means=means,
        registration=registration,
        channel=Channel(card_testing={}),
        answer={"card": {"bin": card_bin, "last4Digits": "0000"}},
        created_at=datetime(2026, 5, 14, tzinfo=UTC),
        merchant_id=UUID(int=2),
    )
    plan = _plan_resumed_watch(payment, {"customer.ip": "203.0.113.9"})
    assert (plan.watch is not None) is watched


@pytest.mark.parametrize(
    ("registration", "source", "fresh"),
    [
        (None, None, True),
        (None, "CIT", True),
        (None, "MIT", False),
        (UUID(int=1), "CIT", False),
        (UUID(int=1), "MIT", False),
    ],
)
def test_a_card_is_fresh_that_a_shopper_entered_for_this_payment(
    registration: UUID | None, source: str | None, fresh: bool
) -> None:
    sent = {"standingInstruction.source": source} if source is not None else {}
    assert _is_fresh_card(registration, sent) is fresh
