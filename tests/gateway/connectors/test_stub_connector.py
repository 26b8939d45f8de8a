"""What the stub acquirer's messages mean: pure mapping."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerRequest, ConnectorAccount, OutcomeUnknownError
from gateway.connectors.stub.connector import build_submission, mask_submission, reply_from_stub_answer
from gateway.core.money import Money
from gateway.core.secret import Secret
from tests.support.database import leaves

PAN = "4200000000000000"
ASKED = AcquirerRequest(
    payment=UUID(int=7),
    operation="DB",
    money=Money.parse("10.00", "EUR"),
    brand="VISA",
    at=datetime(2026, 1, 1, tzinfo=UTC),
    means=Card(number=Secret(PAN), expiry_month="05", expiry_year="2034", cvv=Secret("987")),
    account=ConnectorAccount(merchant="M-1"),
)
APPROVED = {
    "id": 1, "key": ASKED.payment.hex, "outcome": "approved", "code": "000.100.110", "transactionId": "STB7",
    "response": "00", "approvedAmount": "10.00", "cvv": "M",
}  # fmt: skip


def reply(**changes: Any) -> Any:
    answer = {name: value for name, value in (APPROVED | changes).items() if value is not None}
    return reply_from_stub_answer(ASKED, answer, {"key": "K"})


def test_the_message_carries_the_card_and_what_is_kept_does_not() -> None:
    """Goals, R8."""
    masked = mask_submission(ASKED)
    message = build_submission(ASKED, masked)
    assert (message["card"]["number"], message["card"]["cvv"]) == (PAN, "987")
    assert (message["key"], message["merchant"]) == (ASKED.payment.hex, "M-1")
    assert PAN not in str(masked)
    assert "987" not in leaves(masked)
    assert {**message, "card": None} == {**masked, "card": None}


def test_an_approval_grants_its_amount() -> None:
    """Part B, Payment response."""
    found = reply(approvedAmount="5.00", advice="02")
    assert (found.code, found.approved, found.connector_tx_id) == ("000.100.112", Money.parse("5.00", "EUR"), "STB7")
    assert found.details == {"AcquirerResponse": "00", "MerchantAdviceCode": "02"}
    assert found.cvv == "M"


@pytest.mark.parametrize("outcome", ["declined", "voided"])
def test_a_decline_grants_nothing(outcome: str) -> None:
    """Part B, Payment response."""
    found = reply(outcome=outcome, code="800.100.155", approvedAmount=None)
    assert (found.code, found.approved) == ("800.100.155", None)


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": None},
        {"outcome": "maybe"},
        {"outcome": "unknown"},
        {"outcome": 7},
        {"code": None},
        {"code": "999"},
        {"code": "123.456.789"},
        {"approvedAmount": None},
        {"approvedAmount": "ten"},
        {"approvedAmount": "10.01"},
        {"approvedAmount": 10.0},
        {"code": "800.100.155"},
        {"outcome": "declined"},
        {"code": "000.100.203"},
    ],
    ids=str,
)
def test_an_answer_that_makes_no_sense_leaves_the_payment_in_doubt(changes: dict[str, Any]) -> None:
    """Goals, R1 and R3: neither granted nor declined on nonsense."""
    with pytest.raises(OutcomeUnknownError):
        reply(**changes)


def test_what_an_answer_holds_besides_is_not_kept() -> None:
    """Goals, R8."""
    found = reply(card={"number": PAN}, number=PAN, avs="F" * 1000)
    assert PAN not in str(found.received)
    assert found.avs == ""
