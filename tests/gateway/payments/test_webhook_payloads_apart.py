"""When the deprecated notificationUrl is called, and what a webhook says beside the API's answer: each by itself.

Source: decisions, section 6; Part A, Events.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from gateway.core import clock, identifiers
from gateway.models import Channel, Merchant, Notification, Payment, RiskDecision
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
