"""When the deprecated notificationUrl is called, and what a webhook says beside the API's answer: each by itself.

Source: decisions, section 6; Part A, Events.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings

from gateway.core import clock, identifiers
from gateway.models import Channel, Merchant, Notification, Payment, Registration, RiskDecision
from gateway.outbound.address_guard import MAX_URL_CHARS
from gateway.payments import webhook_payloads
from gateway.payments.webhook_payloads import _build_return_url, render_webhook_payload

NOW = datetime(2035, 11, 15, tzinfo=UTC)
URL, CHANNEL = "https://shop.example/n", UUID(int=5)


def payment(**values: Any) -> Payment:
    return Payment(**{
        "id": UUID(int=1), "number": 4711, "payment_type": "DB", "brand": "VISA", "method": "CC", "status": "APPROVED",
        "result_code": "000.100.110", "amount": Decimal(92), "currency": "EUR", "created_at": NOW,
        "request": {"notificationUrl": URL}, "answer": {"descriptor": "SHOP"}, "request_id": UUID(int=7),
        "channel": Channel(id=CHANNEL, name="c"), "merchant": Merchant(name="m"), **values,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "values", "called"),
    [
        ("PAYMENT", {}, True),
        ("PAYMENT", {"status": "DECLINED"}, True),
        ("PAYMENT", {"status": "PENDING"}, False),
        ("PAYMENT", {"status": "IN_DOUBT"}, False),
        ("PAYMENT", {"request": {}}, False),
        ("RISK", {}, False),
        ("REGISTRATION", {}, False),
        ("REGISTRATION", {"payment_type": "RG"}, True),
        ("REGISTRATION", {"payment_type": "RG", "status": "PENDING"}, False),
        ("REGISTRATION", {"payment_type": "RR"}, False),
        ("REGISTRATION", {"request": {"notificationUrl": URL, "createRegistration": "true"}}, False),
    ],
)
def test_the_notification_url_is_called_with_a_final_result(kind: str, values: dict[str, Any], called: bool) -> None:
    """Of a direct registration once, and not beside its payment's."""
    row = payment(**values)
    found = _build_return_url(Notification(kind=kind), row)
    path = f"%2Fv1%2Fpayments%2F{row.id.hex}"
    assert found == (f"{URL}?id={row.id.hex}&resourcePath={path}" if called else "")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({}, {"source": "API"}),
        ({"resource_path": "/v1/checkouts/c/payment"}, {"source": "CHECKOUT"}),
        ({"resource_path": "/v1/payments/x"}, {"source": "API"}),
        ({"acquirer_merchant_id": "ACCOUNT"}, {"merchantAccountId": "ACCOUNT"}),
        ({}, {"merchantAccountId": CHANNEL.hex}),
        ({"referenced": UUID(int=3)}, {"referencedId": UUID(int=3).hex}),
        ({"method": "DC"}, {"paymentMethod": "DC"}),
    ],
)
def test_a_webhook_says_where_a_payment_came_from_and_what_it_is(values: dict[str, Any], shown: dict[str, str]) -> None:
    notification = Notification(kind="PAYMENT", channel_id=CHANNEL, sequence=3, created_at=NOW)
    body = render_webhook_payload(notification, payment(**values))
    expected = {
        "id": UUID(int=1).hex, "authentication": {"entityId": CHANNEL.hex}, "sequence": 3,
        "shortId": identifiers.format_short_id(4711), "timestamp": clock.format_timestamp(NOW),
        "ndc": identifiers.format_ndc(UUID(int=7), CHANNEL.hex), **shown,
    }  # fmt: skip
    assert {name: body[name] for name in expected} == expected
    assert ("referencedId" in body) is ("referenced" in values)


@pytest.mark.parametrize(
    ("kind", "decision", "risk"),
    [
        ("PAYMENT", RiskDecision(outcome="accept", score=70), None),
        ("RISK", None, None),
        ("RISK", RiskDecision(outcome="accept", score=70), {"outcome": "accept", "score": "+00070"}),
        ("RISK", RiskDecision(outcome="decline", score=0), {"outcome": "decline", "score": "+00000"}),
        ("RISK", RiskDecision(outcome="decline", score=None), {"outcome": "decline"}),
    ],
)
def test_a_decision_on_risk_is_told_to_whom_it_concerns(
    kind: str, decision: RiskDecision | None, risk: dict[str, str] | None
) -> None:
    notification = Notification(kind=kind, channel_id=CHANNEL, sequence=3, created_at=NOW)
    assert render_webhook_payload(notification, payment(), decision=decision).get("risk") == risk


STORED = UUID(int=4)


def registration() -> Registration:
    row = Registration(
        id=STORED, brand="MASTER", details={"card": {"bin": "545454", "holder": "Jane"}}, request={}, test_mode=""
    )
    row._state.fields_cache["network_token"] = None  # it has none, and no database is asked
    return row


@pytest.mark.parametrize(
    ("kind", "values", "stored", "is_payments", "brand"),
    [
        # Of a registration that a payment made: as it is stored.
        ("REGISTRATION", {}, True, False, "MASTER"),
        # Of a change: the record of it.
        ("REGISTRATION", {"payment_type": "RR"}, True, False, "VISA"),
        ("REGISTRATION", {"payment_type": "RG"}, True, False, "VISA"),
        ("REGISTRATION", {"payment_type": "TE"}, True, False, "VISA"),
        ("REGISTRATION", {"payment_type": "DR"}, True, False, "VISA"),
        ("REGISTRATION", {}, False, True, "VISA"),
        ("PAYMENT", {}, True, True, "VISA"),
    ],
)
def test_a_registration_is_told_as_its_endpoints_answer_it(
    kind: str, values: dict[str, Any], stored: bool, is_payments: bool, brand: str
) -> None:
    notification = Notification(kind=kind, channel_id=CHANNEL, sequence=3, created_at=NOW)
    row = payment(registration=STORED, result_code="000.100.112", **values)
    body = render_webhook_payload(notification, row, registration=registration() if stored else None)
    assert body["id"] == (row.id if is_payments else STORED).hex
    assert ("amount" in body, body["paymentBrand"]) == (is_payments, brand)
    assert body["result"]["code"] == "000.100.112"


def test_a_webhook_of_risk_adds_to_the_score_that_was_shown() -> None:
    row = payment(answer={"descriptor": "SHOP", "facts": {"risk": {"score": "+00001", "other": "x"}}})
    notification = Notification(kind="RISK", channel_id=CHANNEL, sequence=3, created_at=NOW)
    told = render_webhook_payload(notification, row, decision=RiskDecision(outcome="accept", score=None))
    assert told["risk"] == {"score": "+00001", "other": "x", "outcome": "accept"}


@pytest.mark.parametrize(("spare", "called"), [(0, True), (-1, False)])
def test_an_address_of_the_greatest_length_is_called(spare: int, called: bool) -> None:
    plain = _build_return_url(Notification(kind="PAYMENT"), payment())
    url = URL + "n" * (MAX_URL_CHARS - len(plain) - spare)
    found = _build_return_url(Notification(kind="PAYMENT"), payment(request={"notificationUrl": url}))
    assert len(found) == (MAX_URL_CHARS if called else 0)


@override_settings(GATEWAY_BUILD_NUMBER="build-1")
def test_a_webhook_says_which_build_wrote_it(monkeypatch: pytest.MonkeyPatch) -> None:
    notification = Notification(id=7, kind="PAYMENT", channel_id=CHANNEL, sequence=3, created_at=NOW)
    assert render_webhook_payload(notification, payment())["buildNumber"] == "build-1"
    monkeypatch.setattr(webhook_payloads, "_PAYLOAD_SOURCES", {})
    webhook_payloads.register_payload_source("SCHEDULE", lambda rows: {one.pk: {"a": "b"} for one in rows})
    other = Notification(id=8, kind="SCHEDULE", action="CREATED")
    built = webhook_payloads.build_webhook_payloads([other], {8})
    assert json.loads(built[8].text)["payload"] == {"a": "b", "buildNumber": "build-1"}
    assert webhook_payloads.build_webhook_payloads([other], set()) == {}


def test_the_sweep_is_of_all_merchants_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[datetime] = []
    monkeypatch.setattr(webhook_payloads.retention, "purge_webhook_deliveries", lambda at: (asked.append(at), 5)[1])
    before = clock.real_now()
    assert webhook_payloads.SWEEP_TIMER.run() == 5
    assert before <= asked[0] <= clock.real_now()


def test_the_timer_delivers_what_is_rendered_here(monkeypatch: pytest.MonkeyPatch) -> None:
    run: Any = webhook_payloads.TIMER.run
    assert (run.func, run.args) == (
        webhook_payloads.delivery.deliver_due_webhooks, (webhook_payloads.build_webhook_payloads,),
    )  # fmt: skip
