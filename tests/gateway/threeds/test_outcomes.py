"""What a stored authentication means for its payment: the outcome, the proof, and what an answer tells. No database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from gateway.models import Authentication, AuthenticationStep
from gateway.threeds.authentications import (
    build_authentication_facts,
    build_authentication_proof,
    find_accepted_indicator,
    outcome_from_authentication,
)
from gateway.threeds.outcome import AuthenticationPassed, AuthenticationPending, AuthenticationRejected

IDENT = UUID("0193f5c8-7a00-7000-8000-000000000003")
DS = "f25084f0-5b16-4c0a-ae5d-b24808a95e4b"


def row(**changes: Any) -> Authentication:
    values: dict[str, Any] = {
        "id": IDENT,
        "attempt": 2,
        "step": AuthenticationStep.DONE,
        "deadline": datetime(2026, 11, 21, tzinfo=UTC),
        "device_channel": "02",
        "version": "2.2.0",
        "trans_status": "Y",
        "eci": "05",
        "ds_transaction": DS,
        "challenge_indicator": "05",
    }
    return Authentication(**values | changes)


@pytest.mark.parametrize(
    ("status", "told", "indicator"),
    [
        ("Y", "Y", ""), ("A", "A", ""), ("U", "U", ""), ("I", "I", "05"), ("N", "N", "05"), ("R", "", ""),
        ("C", "", ""), ("", "", ""),
    ],
)  # fmt: skip
def test_a_proof_has_the_statuses_that_payments_go_on_with(status: str, told: str, indicator: str) -> None:
    found = build_authentication_proof(row(trans_status=status))
    assert found.get("threeDSecure.authenticationStatus", "") == told
    assert found.get("threeDSecure.challengeIndicator", "") == indicator


@pytest.mark.parametrize(
    "step", [AuthenticationStep.METHOD, AuthenticationStep.CHALLENGE, AuthenticationStep.DECOUPLED]
)
def test_an_exemption_is_accepted_when_the_authentication_has_ended(step: str) -> None:
    assert find_accepted_indicator(row(trans_status="I")) == "05"
    assert find_accepted_indicator(row(trans_status="I", step=step)) == ""


@pytest.mark.parametrize(("transaction", "version"), [(DS, "2.2.0"), ("", None)])
def test_a_proof_names_its_version_if_a_directory_took_part(transaction: str, version: str | None) -> None:
    assert build_authentication_proof(row(ds_transaction=transaction)).get("threeDSecure.version") == version


@pytest.mark.parametrize(("version", "ident"), [("2.2.0", str(IDENT)), ("", None)])
def test_an_answer_names_the_servers_id_if_the_card_takes_part(version: str, ident: str | None) -> None:
    assert build_authentication_facts(row(version=version)).get("threeDSServerTransactionId") == ident


@pytest.mark.parametrize(
    ("step", "status"),
    [
        (AuthenticationStep.METHOD, None),
        (AuthenticationStep.CHALLENGE, "C"),
        (AuthenticationStep.DECOUPLED, "D"),
        (AuthenticationStep.DONE, "Y"),
    ],
)
def test_an_answer_tells_where_an_authentication_stands(step: str, status: str | None) -> None:
    assert build_authentication_facts(row(step=step)).get("authenticationStatus") == status


@pytest.mark.parametrize(("channel", "shopper"), [("01", True), ("02", True), ("03", False)])
def test_only_an_authentication_of_the_merchants_own_waits_for_no_shopper(channel: str, shopper: bool) -> None:
    found = outcome_from_authentication(row(step=AuthenticationStep.DECOUPLED, device_channel=channel))
    assert isinstance(found, AuthenticationPending)
    assert (found.shopper, found.step, found.deadline) == (shopper, "decoupled", datetime(2026, 11, 21, tzinfo=UTC))


@pytest.mark.parametrize(("code", "kind"), [("", AuthenticationPassed), ("100.380.401", AuthenticationRejected)])
def test_an_outcome_is_of_its_authorization_attempt(code: str, kind: type) -> None:
    """The second attempt is told from the first one, which was declined."""
    found = outcome_from_authentication(row(code=code))
    assert isinstance(found, kind)
    assert getattr(found, "attempt", 0) == 2
    assert getattr(found, "code", "") == code
