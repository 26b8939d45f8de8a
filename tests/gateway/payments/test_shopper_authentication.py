"""When a payment's shopper is authenticated here, what the 3DS server is asked, and how the shopper is sent to it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.means import BankAccount, Card
from gateway.core import clock
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import Channel, Merchant, Payment, Suspension
from gateway.payments import shopper_authentication
from gateway.payments.exempting import AskedExemption
from gateway.payments.outcomes import AuthenticationProof, Declined, Suspended
from gateway.payments.shopper_authentication import (
    authenticate_payment,
    build_authentication_redirect,
    build_authentication_request,
    is_shopper_authenticated_here,
    restore_authentication_facts,
    suspend_for_shopper,
)
from gateway.payments.shopper_tokens import build_shopper_redirect
from gateway.payments.stored_answer import PrivateFacts
from gateway.threeds.outcome import AuthenticationPassed, AuthenticationPending, AuthenticationRejected
from gateway.vault.sealing import current_vault

NOW, LATER = datetime(2035, 11, 15, 12, tzinfo=UTC), datetime(2035, 11, 15, 13, tzinfo=UTC)
CARD = Card(
    number=Secret("4200000000000000"), expiry_month="11", expiry_year="2036", holder="Jane Jones", cvv=Secret("123")
)
MERCHANT, CHANNEL = Merchant(name="m"), Channel(name="c", three_d_secure=True)
REQUEST, FIRST = UUID(int=8), UUID(int=9)
PROOF = {"threeDSecure.verificationId": Secret("CAVV"), "threeDSecure.eci": "05"}


def payment(**values: Any) -> Payment:
    row = Payment(**{
        "id": UUID(int=1), "merchant": MERCHANT, "channel": CHANNEL, "payment_type": "DB", "brand": "VISA",
        "amount": Decimal(92), "currency": "EUR", "test_mode": "EXTERNAL", "answer": {}, **values,
    })  # fmt: skip
    row.acquirer_merchant_id = "ACCOUNT"
    return row


# --- when -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("card", "of_payment", "values", "secrets", "here"),
    [
        ({}, {}, {}, {}, True),
        ({}, {"payment_type": "CD"}, {}, {}, False),
        ({}, {}, {"threeDSecure.disable": "true"}, {}, False),
        ({}, {}, {"threeDSecure.eci": "05"}, PROOF, False),
        ({}, {}, {"threeDSecure.eci": "05"}, {}, True),
        ({"number_type": "DPAN"}, {}, {}, {}, False),
        ({"number_type": "PAN"}, {}, {}, {}, True),
        # A wallet's brand does not name the network, the card in it does.
        ({"wallet": "wallet1"}, {"brand": "WALLET1"}, {}, {}, True),
        ({"wallet": "wallet1", "number": Secret("6200000000000005")}, {"brand": "WALLET1"}, {}, {}, False),
        ({"wallet": "wallet1", "number": Secret("0000000000000000")}, {"brand": "VISA"}, {}, {}, True),
        ({"number": Secret("4200000000000000")}, {"brand": "UNIONPAY"}, {}, {}, False),
    ],
)
def test_a_channel_authenticates_a_card_that_no_device_or_proof_has_authenticated(
    card: dict[str, Any], of_payment: dict[str, Any], values: dict[str, str], secrets: dict[str, Any], here: bool
) -> None:
    fields = {"number": CARD.number, "expiry_month": "11", "expiry_year": "2036", **card}
    assert is_shopper_authenticated_here(payment(**of_payment), Card(**fields), values, {**values, **secrets}) is here


# --- what -----------------------------------------------------------------------------------------------------------


def test_the_server_is_asked_for_the_payment_as_it_is() -> None:
    row = payment()
    asked = build_authentication_request(
        row, CARD, {"a": "1"}, merchant=MERCHANT, request=REQUEST, now=NOW, attempt=2, agreed=FIRST
    )
    assert (asked.payment, asked.attempt, asked.agreed, asked.request, asked.now) == (row.id, 2, FIRST, REQUEST, NOW)
    assert (asked.merchant, asked.channel, asked.brand) == (MERCHANT, CHANNEL, "VISA")
    assert (asked.number, asked.expiry, asked.holder) == (CARD.number, ("11", "2036"), "Jane Jones")
    assert (asked.money, asked.parameters) == (Money(Decimal(92), "EUR"), {"a": "1"})
    assert (asked.test_mode, asked.account) == ("EXTERNAL", "ACCOUNT")
    assert f"/shopper/{row.id.hex}/challenged?" in asked.build_notification_url(row.id)
    plain = build_authentication_request(row, CARD, {}, merchant=MERCHANT, request=REQUEST, now=NOW)
    assert (plain.attempt, plain.agreed) == (1, None)


ADDING = {"threeDSecure.npa": "true", "threeDSecure.authenticationInd": "ADD_CARD"}


@pytest.mark.parametrize(
    ("of_payment", "values", "asked"),
    [
        ({}, {}, {}),
        ({}, {"createRegistration": "true"}, {"createRegistration": "true"}),
        ({"amount": Decimal(0)}, {}, {}),
        ({"amount": Decimal(0)}, {"createRegistration": "false"}, {"createRegistration": "false"}),
        ({"amount": Decimal(0)}, {"createRegistration": "true"}, {**ADDING, "createRegistration": "true"}),
        ({"payment_type": "RG"}, {}, ADDING),
        ({"payment_type": "RG"}, {"threeDSecure.npa": "false"}, {**ADDING, "threeDSecure.npa": "false"}),
    ],
)
def test_storing_a_card_without_a_payment_is_no_payment_unless_the_request_says_so(
    of_payment: dict[str, Any], values: dict[str, str], asked: dict[str, str]
) -> None:
    found = build_authentication_request(
        payment(**of_payment), CARD, values, merchant=MERCHANT, request=REQUEST, now=NOW
    )
    assert found.parameters == asked


# --- what becomes of the payment ------------------------------------------------------------------------------------


def pending(**values: Any) -> AuthenticationPending:
    given = {"authentication": UUID(int=5), "step": "challenge", "deadline": LATER, "shopper": True, **values}
    return AuthenticationPending(**given)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A 3DS server with the outcome and an exemption that a test sets."""
    found = SimpleNamespace(outcome=None, exemption=AskedExemption(), asked=[], exempted=[])

    def begin(asked: Any) -> Any:
        found.asked.append(asked)
        return None, found.outcome

    def exempt(*given: Any) -> AskedExemption:
        found.exempted.append(given)
        return found.exemption

    monkeypatch.setattr(shopper_authentication.server, "begin_authentication", begin)
    monkeypatch.setattr(shopper_authentication.exempting, "ask_exemption", exempt)
    monkeypatch.setattr(clock, "merchant_now", lambda merchant: LATER if merchant is MERCHANT else None)
    return found


def request_of(row: Payment, means: Any = CARD, channel: Channel = CHANNEL, agreement_use: Any = None) -> Any:
    parameters = SimpleNamespace(values={"a": "1", "b": "2"}, secrets={"card.number": CARD.number})
    return SimpleNamespace(
        means=means, parameters=parameters, channel=channel, merchant=MERCHANT, now=NOW, agreement_use=agreement_use,
        trace=SimpleNamespace(request=REQUEST), brand=row.brand,
    )  # fmt: skip


@pytest.mark.parametrize(
    "values",
    [
        {"channel": Channel(three_d_secure=False)},
        {"means": BankAccount(account=Secret("DE1"), is_iban=True)},
        {"means": None},
        {"means": Card(number=CARD.number, expiry_month="11", expiry_year="2036", number_type="DPAN")},
    ],
    ids=["channel", "account", "none", "device"],
)
def test_who_is_not_authenticated_goes_on_without_a_proof(server: SimpleNamespace, values: dict[str, Any]) -> None:
    row = payment()
    assert authenticate_payment(row, request_of(row, **values)) == AuthenticationProof(parameters={})
    assert (server.asked, server.exempted) == ([], [])


def test_an_exemption_at_the_authorization_skips_the_authentication(server: SimpleNamespace) -> None:
    server.exemption = AskedExemption(parameters={"threeDSecure.exemptionFlag": "01"}, skips=True)
    row = payment()
    assert authenticate_payment(row, request_of(row)) == AuthenticationProof(
        parameters={"threeDSecure.exemptionFlag": "01"}
    )
    assert server.asked == []
    assert server.exempted == [(row, CARD, {"a": "1", "b": "2"})]


def test_the_shopper_authenticates_and_the_payment_waits(server: SimpleNamespace) -> None:
    server.outcome, server.exemption = pending(facts={"x": "y"}), AskedExemption(parameters={"b": "3"})
    row = payment()
    found = authenticate_payment(row, request_of(row))
    assert isinstance(found, Suspended)
    assert (found.reply.code, found.reply.facts, found.at, found.deadline) == ("000.200.000", {"x": "y"}, LATER, LATER)
    [asked] = server.asked
    assert (asked.payment, asked.parameters, asked.request, asked.now) == (row.id, {"a": "1", "b": "3"}, REQUEST, NOW)
    assert (asked.merchant, asked.agreed, asked.attempt) == (MERCHANT, None, 1)


@pytest.mark.parametrize(
    ("use", "agreed"),
    [
        (None, None),
        (SimpleNamespace(agreement=None), None),
        (SimpleNamespace(agreement=SimpleNamespace(id=FIRST)), FIRST),
    ],
)
def test_the_server_knows_which_payment_began_the_agreement(
    server: SimpleNamespace, use: Any, agreed: UUID | None
) -> None:
    server.outcome = AuthenticationRejected(code="100.380.401")
    row = payment()
    authenticate_payment(row, request_of(row, agreement_use=use))
    assert server.asked[0].agreed == agreed


def test_a_proof_goes_to_the_acquirer_with_the_exemption_that_was_accepted(server: SimpleNamespace) -> None:
    shown = {"facts": {"threeDSecure": {"exemptionFlag": "01"}}}
    row = payment(answer=shown | PrivateFacts(exemption="LOW_VALUE").as_json())
    server.outcome = AuthenticationPassed(
        proof={"threeDSecure.eci": "05"}, facts={"threeDSecure": {"eci": "05"}}, attempt=1
    )
    found = authenticate_payment(row, request_of(row))
    assert found == AuthenticationProof(parameters={"threeDSecure.eci": "05", "threeDSecure.exemptionFlag": "01"})
    assert row.answer["facts"]["threeDSecure"] == {"exemptionFlag": "01", "eci": "05"}


def test_who_is_rejected_is_declined_with_what_the_issuer_said(server: SimpleNamespace) -> None:
    server.outcome = AuthenticationRejected(code="100.380.401", facts={"x": "y"})
    row = payment()
    found = authenticate_payment(row, request_of(row))
    assert isinstance(found, Declined)
    assert (found.reply.code, found.reply.facts, found.at) == ("100.380.401", {"x": "y"}, LATER)


def test_the_security_code_is_sealed_for_the_payment_while_its_shopper_is_away() -> None:
    row = payment()
    sent = {"sender.accountNumber": Secret("4711"), "a": "1"}
    found = suspend_for_shopper(row, pending(facts={"x": "y"}), CARD, sent, at=NOW)
    assert (found.at, found.deadline, found.stage) == (NOW, LATER, Suspension.Stage.AUTHENTICATE)
    assert found.secrets_sealed is not None
    kept = current_vault().open(found.secrets_sealed, row.id).reveal()
    assert "123" in kept
    assert "4711" in kept
    assert found.reply.redirect == build_shopper_redirect(row.id)
    bare = Card(number=CARD.number, expiry_month="11", expiry_year="2036")
    assert suspend_for_shopper(row, pending(), bare, {}, at=NOW).secrets_sealed is None


# --- the way to the issuer ------------------------------------------------------------------------------------------


def test_who_acts_without_a_shopper_sends_nobody_away() -> None:
    assert build_authentication_redirect(UUID(int=1), pending(shopper=False)) is None


@pytest.mark.parametrize("step", ["challenge", "decoupled", "done"])
def test_a_challenge_is_on_our_page(step: str) -> None:
    assert build_authentication_redirect(UUID(int=1), pending(step=step)) == build_shopper_redirect(UUID(int=1))


@pytest.mark.parametrize(
    ("method_url", "url", "reports"),
    [("", "http://testserver/shopper/method", False), ("https://acs.example/m", "https://acs.example/m", True)],
)
def test_the_issuers_method_page_goes_before(method_url: str, url: str, reports: bool) -> None:
    found = build_authentication_redirect(UUID(int=1), pending(step="method", method_url=method_url))
    assert found is not None
    [page] = found.preconditions
    assert (found.url, page.url, page.method, page.origin) == (
        build_shopper_redirect(UUID(int=1)).url, url, "POST", "iframe#hidden",
    )  # fmt: skip
    [(name, data)] = page.parameters
    notify = "http://testserver/shopper/method" if reports else ""
    assert (name, data) == (
        "threeDSMethodData",
        shopper_authentication.authentications.build_method_data(UUID(int=5), notify),
    )


# --- after a worker's death -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "attempt", "restored"),
    [
        ({"means": "card"}, 1, True),
        ({"means": "card", "answer": PrivateFacts(attempt=2).as_json()}, 2, True),
        ({"means": "bankAccount"}, 1, False),
        ({"means": "card", "referenced": FIRST}, 1, False),
        ({"means": "card"}, 2, False),
    ],
    ids=str,
)
def test_what_the_present_attempt_showed_is_shown_again(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], attempt: int, restored: bool
) -> None:
    """``attempt``: of the authentication that has ended."""
    row = payment(**values)
    found = {(row.id, attempt): object()}
    source = shopper_authentication.authentications
    monkeypatch.setattr(source, "find_ended_authentication", lambda *which: found.get(which))
    monkeypatch.setattr(source, "build_authentication_facts", lambda one: {"eci": "05"} if one else {})
    before = dict(row.answer)
    restore_authentication_facts(row)
    assert row.answer == (before | {"facts": {"threeDSecure": {"eci": "05"}}} if restored else before)
