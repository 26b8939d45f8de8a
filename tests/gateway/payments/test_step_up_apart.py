"""Each condition of a challenge after a soft decline by itself. docs/decisions/0104."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerReply
from gateway.core import clock
from gateway.core.secret import Secret
from gateway.models import AuthenticationStep, Channel, Payment
from gateway.payments import step_up
from gateway.payments.outcomes import Declined
from gateway.payments.step_up import (
    _is_retry_forbidden,
    _is_step_up_wanted,
    has_unfinished_challenge,
    is_fully_authenticated,
    prepare_step_up_values,
)
from gateway.payments.stored_answer import PrivateFacts

PROOF = {"threeDSecure.authenticationStatus": "Y", "threeDSecure.verificationId": Secret("CAVV")}
SECOND = PrivateFacts(attempt=2).as_json()


@pytest.mark.parametrize(
    ("proof", "full"),
    [
        (PROOF, True),
        ({**PROOF, "threeDSecure.authenticationStatus": "A"}, False),
        ({**PROOF, "threeDSecure.authenticationStatus": "I"}, False),
        ({"threeDSecure.authenticationStatus": "Y"}, False),
        ({"threeDSecure.verificationId": Secret("CAVV")}, False),
        ({}, False),
    ],
    ids=str,
)
def test_an_issuer_wants_a_shopper_who_authenticated_with_a_proof(proof: dict[str, Any], full: bool) -> None:
    assert is_fully_authenticated(proof) is full


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        ({}, {"a": "1", "threeDSecure.exemptionFlag": "01", "threeDSecure.challengeIndicator": "02"}),
        (SECOND, {"a": "1", "threeDSecure.challengeIndicator": "04"}),
    ],
)
def test_the_second_attempt_asks_for_a_challenge_and_no_exemption(answer: dict[str, Any], sent: dict[str, str]) -> None:
    values = {"a": "1", "threeDSecure.exemptionFlag": "01", "threeDSecure.challengeIndicator": "02"}
    assert prepare_step_up_values(Payment(answer=answer), values) == sent


@pytest.mark.parametrize(
    ("answer", "attempt", "step", "unfinished"),
    [
        (SECOND, 2, AuthenticationStep.CHALLENGE, True),
        (SECOND, 2, AuthenticationStep.METHOD, True),
        (SECOND, 2, AuthenticationStep.DONE, False),
        (SECOND, 1, AuthenticationStep.CHALLENGE, False),
        (SECOND, 0, AuthenticationStep.CHALLENGE, False),
        ({}, 2, AuthenticationStep.CHALLENGE, False),
    ],
)
def test_a_second_attempt_was_not_sent_before_its_challenge_is_done(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], attempt: int, step: str, unfinished: bool
) -> None:
    """``attempt`` 0: without an authentication."""
    row = SimpleNamespace(attempt=attempt, step=step) if attempt else None
    payment = Payment(answer=answer)
    monkeypatch.setattr(
        step_up.authentications, "find_authentication_of_payment", lambda ident: row if ident == payment.id else None
    )
    assert has_unfinished_challenge(payment) is unfinished


class Watch:
    """The schemes' rules after one more decline: its network, and whether they forbid another attempt."""

    def __init__(self, network: str, over: bool) -> None:
        self.network, self.over = network, over

    def verdict_after_decline(self) -> object | None:
        return object() if self.over else None


def declined(advice: str = "") -> Declined:
    details = {"MerchantAdviceCode": advice} if advice else {}
    return Declined(reply=AcquirerReply(code="300.100.100", details=details), at=clock.real_now())


@pytest.mark.parametrize(
    ("network", "over", "advice", "forbidden"),
    [
        (None, False, "", False),
        ("Mastercard", False, "", False),
        ("Mastercard", True, "", True),
        ("Mastercard", False, "03", True),
        ("Mastercard", False, "01", False),
        (None, False, "03", True),
        ("Visa", False, "21", False),
        ("Visa", False, "24", True),
        ("Visa", False, "02", False),
    ],
)
def test_no_second_attempt_where_the_issuer_or_the_scheme_forbids_one(
    network: str | None, over: bool, advice: str, forbidden: bool
) -> None:
    plan: Any = SimpleNamespace(retries=Watch(network, over) if network is not None else None)
    assert _is_retry_forbidden(declined(advice), plan) is forbidden
    if network is None:
        assert _is_retry_forbidden(declined(advice), None) is forbidden


CARD = Card(number=Secret("4200000000000000"), expiry_month="11", expiry_year="2036")


@pytest.mark.parametrize(
    ("of_payment", "values", "policy", "flow", "asked", "wanted"),
    [
        ({}, {}, "challenge", "frictionless", False, True),
        ({}, {}, "challenge", "", False, True),
        ({}, {}, "challenge", "challenge", False, False),
        ({}, {}, "challenge", "decoupled", False, False),
        ({}, {}, "challenge", None, True, True),
        ({}, {}, "challenge", None, False, False),
        ({}, {}, "decline", "frictionless", False, False),
        ({"status": "PENDING"}, {}, "challenge", "frictionless", False, False),
        ({"status": "IN_DOUBT"}, {}, "challenge", "frictionless", False, False),
        ({"channel": Channel(three_d_secure=False)}, {}, "challenge", "frictionless", False, False),
        ({"answer": SECOND}, {}, "challenge", "frictionless", False, False),
        ({"payment_type": "CD"}, {}, "challenge", "frictionless", False, False),
        ({}, {"threeDSecure.disable": "true"}, "challenge", "frictionless", False, False),
        ({}, {"threeDSecure.channel": "03"}, "challenge", "frictionless", False, False),
        ({}, {**PROOF, "threeDSecure.eci": "05"}, "challenge", "frictionless", False, False),
    ],
)
def test_a_shopper_who_was_not_challenged_is_challenged_where_the_channel_wants_it(
    monkeypatch: pytest.MonkeyPatch, of_payment: dict[str, Any], values: dict[str, Any], policy: str, flow: str | None,
    asked: bool, wanted: bool,
) -> None:  # fmt: skip
    """``flow``: of the authentication before, None for none; ``asked``: an exemption, at the authorization."""
    row = Payment(**{
        "id": UUID(int=1), "status": "STARTED", "payment_type": "DB", "brand": "VISA", "answer": {},
        "channel": Channel(three_d_secure=True), **of_payment,
    })  # fmt: skip
    before = SimpleNamespace(flow=flow) if flow is not None else None
    configured = SimpleNamespace(on_soft_decline=policy)
    monkeypatch.setattr(step_up.authentications, "find_authentication_of_payment", lambda ident: before)
    monkeypatch.setattr(step_up.server, "load_threeds_configuration", lambda channel: configured)
    monkeypatch.setattr(step_up.exempting, "asked_at_authorization", lambda payment: asked)
    assert _is_step_up_wanted(row, declined(), CARD, values, None) is wanted
    stopped: Any = SimpleNamespace(retries=Watch("Visa", over=True))
    assert not _is_step_up_wanted(row, declined(), CARD, values, stopped)
