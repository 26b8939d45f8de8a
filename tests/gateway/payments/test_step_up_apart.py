"""Each condition of a challenge after a soft decline by itself. docs/decisions/0104."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.means import BankAccount, Card
from gateway.connectors.port import AcquirerReply
from gateway.core import clock
from gateway.core.secret import Secret
from gateway.models import AuthenticationStep, Channel, Merchant, Payment
from gateway.payments import step_up
from gateway.payments.outcomes import Approved, AuthenticationProof, Declined, Suspended
from gateway.payments.step_up import (
    _is_retry_forbidden,
    _is_step_up_wanted,
    has_unfinished_challenge,
    is_fully_authenticated,
    prepare_step_up_values,
)
from gateway.payments.stored_answer import PrivateFacts
from gateway.threeds.outcome import AuthenticationPassed, AuthenticationPending, AuthenticationRejected
from gateway.vault.sealing import current_vault

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


@pytest.mark.parametrize(
    ("values", "external", "wanted"),
    [
        ({"threeDSecure.deviceInfo": "x"}, False, True),
        ({"threeDSecure.deviceInfo": "x"}, True, False),
        ({}, True, True),
        ({"threeDSecure.channel": "03"}, False, False),
    ],
)
def test_an_app_is_challenged_where_no_external_server_would_have_to(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str], external: bool, wanted: bool
) -> None:
    configured, channel = SimpleNamespace(on_soft_decline="challenge"), Channel(three_d_secure=True)
    row = Payment(
        id=UUID(int=1), status="STARTED", payment_type="DB", brand="VISA", answer={}, channel=channel,
        test_mode="EXTERNAL",
    )  # fmt: skip
    asked: list[Any] = []
    monkeypatch.setattr(
        step_up.authentications, "find_authentication_of_payment",
        lambda ident: SimpleNamespace(flow="frictionless") if ident == row.id else None,
    )  # fmt: skip
    monkeypatch.setattr(step_up.server, "load_threeds_configuration", lambda of: configured if of is channel else None)
    monkeypatch.setattr(step_up, "is_server_external", lambda *each: (asked.append(each), external)[1])
    assert _is_step_up_wanted(row, declined(), CARD, values, None) is wanted
    assert asked == [(configured, "EXTERNAL")]


# What follows a soft decline.

CODED = replace(CARD, cvv=Secret("817"))
MERCHANT, CHANNEL = Merchant(id=UUID(int=3)), Channel(three_d_secure=True)
ORIGIN: Any = SimpleNamespace(merchant=MERCHANT, trace=SimpleNamespace(request=UUID(int=7)), idempotency=None)
PLAN: Any = SimpleNamespace(retries=None)
SENT = {"threeDSecure.exemptionFlag": "01", "billing.city": "Rome", "sender.accountNumber": Secret("4711")}
SHOWN = {"threeDSecure": {"eci": "05"}}
WAITING = AuthenticationPending(
    authentication=UUID(int=9), step="challenge", deadline=clock.real_now(), shopper=True, facts=SHOWN
)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A 3DS server with the outcome of a test, a store that records or does not, and a clock."""
    found = SimpleNamespace(outcome=WAITING, wanted=True, records=True, is_over=False, asked=[], recorded=[], since=[])

    def begin(asked: Any) -> Any:
        found.asked.append(asked)
        return None, found.outcome

    def record(*each: Any, plan: Any) -> bool:
        found.recorded.append((*each, plan))
        return bool(found.records)

    def look(*each: Any) -> bool:
        found.looked = each
        return bool(found.wanted)

    monkeypatch.setattr(step_up.server, "begin_authentication", begin)
    monkeypatch.setattr(step_up, "_is_step_up_wanted", look)
    monkeypatch.setattr(step_up.store, "record_step_up", record)
    monkeypatch.setattr(step_up.failover, "is_time_over", lambda since: (found.since.append(since), found.is_over)[1])
    return found


def paid() -> Payment:
    return Payment(
        id=UUID(int=1), status="STARTED", payment_type="DB", brand="VISA", answer={"descriptor": "Shop"},
        channel=CHANNEL, amount=Decimal(92), currency="EUR",
    )  # fmt: skip


def step(payment: Payment, outcome: Any, means: Any = CODED, origin: Any = ORIGIN) -> Any:
    return step_up.step_up(payment, outcome, means, SENT, origin, PLAN, since=7.0)


OTHER = Declined(reply=AcquirerReply(code="800.100.155"), at=clock.real_now())
APPROVED = Approved(reply=AcquirerReply(code="300.100.100"), at=clock.real_now())
BANK = BankAccount(account=Secret("DE1"), is_iban=True)
UNTRACED: Any = SimpleNamespace(merchant=MERCHANT, trace=None, idempotency=None)


@pytest.mark.parametrize(
    ("outcome", "means", "origin"),
    [
        (OTHER, CODED, ORIGIN),
        (APPROVED, CODED, ORIGIN),
        (declined(), BANK, ORIGIN),
        (declined(), None, ORIGIN),
        (declined(), CODED, UNTRACED),
    ],
)
def test_only_a_shoppers_card_is_stepped_up_and_only_after_a_soft_decline(
    line: SimpleNamespace, outcome: Any, means: Any, origin: Any
) -> None:
    """A payment without a request of its own, as a timer makes it, has nobody to send to the challenge."""
    assert step(paid(), outcome, means, origin) is outcome
    assert (line.asked, line.recorded) == ([], [])


def test_a_soft_decline_stands_where_no_challenge_is_wanted(line: SimpleNamespace) -> None:
    line.wanted, outcome, payment = False, declined(), paid()
    assert step(payment, outcome) is outcome
    assert line.looked == (payment, outcome, CODED, SENT, PLAN)
    assert line.asked == []


@pytest.mark.parametrize("records", [True, False])
def test_the_second_authentication_asks_for_a_challenge_and_keeps_no_security_code(
    line: SimpleNamespace, records: bool
) -> None:
    """PCI DSS 4.0.1, 3.3.1. Where recovery was faster, the soft decline stands."""
    line.records, outcome, payment = records, declined(), paid()
    found = step(payment, outcome)
    [asked] = line.asked
    assert (asked.payment, asked.attempt, asked.merchant) == (payment.id, 2, MERCHANT)
    assert (asked.request, asked.now, asked.number) == (UUID(int=7), outcome.at, CARD.number)
    assert asked.parameters == {"billing.city": "Rome", "threeDSecure.challengeIndicator": "04"}
    assert line.recorded == [(payment, outcome, PLAN)]
    if not records:
        assert found is outcome
        return
    assert isinstance(found, Suspended)
    assert (found.at, found.deadline, found.reply.facts) == (outcome.at, WAITING.deadline, SHOWN)
    assert found.secrets_sealed is not None
    kept = current_vault().open(found.secrets_sealed, payment.id).reveal()
    assert "4711" in kept
    assert "817" not in kept


@pytest.mark.parametrize(
    ("proof", "is_over", "records", "goes_on"),
    [
        (PROOF, False, True, True),
        (PROOF, True, True, False),
        (PROOF, False, False, False),
        ({}, False, True, False),
        ({**PROOF, "threeDSecure.authenticationStatus": "A"}, False, True, False),
    ],
)
def test_a_full_proof_without_a_challenge_is_submitted_while_there_is_time(
    line: SimpleNamespace, proof: dict[str, Any], is_over: bool, records: bool, goes_on: bool
) -> None:
    line.outcome = AuthenticationPassed(proof=proof, facts=SHOWN, attempt=2)
    line.is_over, line.records = is_over, records
    outcome, payment = declined(), paid()
    found = step(payment, outcome)
    if goes_on:
        assert found == AuthenticationProof(parameters=proof)
        assert (line.recorded, line.since) == ([(payment, outcome, PLAN)], [7.0])
    else:
        assert found is outcome
    assert payment.answer == {"descriptor": "Shop"} | ({"facts": SHOWN} if goes_on else {})
    assert len(line.recorded) == (proof is PROOF and not is_over)


def test_who_is_rejected_keeps_the_soft_decline(line: SimpleNamespace) -> None:
    line.outcome, outcome = AuthenticationRejected(code="100.380.401"), declined()
    assert step(paid(), outcome) is outcome
    assert line.recorded == []
