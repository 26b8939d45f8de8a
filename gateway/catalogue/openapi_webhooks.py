"""The OpenAPI document's `webhooks`: the events that a merchant's server receives, as plain text.

Encrypted ones hold the same text. Source: docs/webhooks.md; docs/decisions/0021.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_KINDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "PAYMENT": ("PaymentEvent", "A payment was made (CREATED) or moved on (UPDATED).", "Payment"),
    "REGISTRATION": ("RegistrationEvent", "A registration was made, changed or deleted.", "Registration"),
    "SCHEDULE": ("ScheduleEvent", "A subscription was made, changed or ended.", ""),
    "ALERT": ("AlertEvent", "An issuer told of a complaint before a chargeback, or that alert moved on.", ""),
    "RISK": ("RiskEvent", "Rules or a risk check have decided: risk.outcome, risk.score.", ""),
}
"""Type of event → its schema, what it tells, and the answer that its payload is as well."""


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_PAYLOAD: Final[dict[str, Any]] = {
    "type": "object",
    "description": "What every payload has besides what the API answers about the object.",
    "properties": {
        "shortId": _text("Short number of the change or the payment; with the event's type what sequence counts."),
        "sequence": {"type": "integer", "description": "Rises with every change. Do nothing for a lower one."},
        "source": _text("Who caused it, e.g. API."),
        "paymentMethod": _text("E.g. CC."),
        "merchantAccountId": _text("The account, or the entityId where there is none."),
        "referencedId": _text("The payment a follow-up refers to."),
        "authentication": {
            "type": "object",
            "properties": {"entityId": _text("The channel.")},
            "required": ["entityId"],
            "additionalProperties": True,
        },
        "timestamp": _text("When, in UTC."),
        "ndc": _text("The number of the request that caused it."),
    },
    "required": ["shortId", "sequence", "authentication", "timestamp"],
    "additionalProperties": True,
}


def _event(kind: str, about: str, answer: str) -> dict[str, Any]:
    payload: dict[str, Any] = {"$ref": "#/components/schemas/WebhookPayload"}
    if answer:
        payload = {"allOf": [{"$ref": f"#/components/schemas/{answer}"}, payload]}
    return {
        "type": "object",
        "description": about,
        "properties": {
            "type": {"type": "string", "enum": [kind]},
            "action": _text("CREATED, UPDATED or DELETED."),
            "payload": payload,
        },
        "required": ["type", "action", "payload"],
        "additionalProperties": True,
    }


WEBHOOK_SCHEMAS: Final[Mapping[str, dict[str, Any]]] = {
    "WebhookPayload": _PAYLOAD,
    **{name: _event(kind, about, answer) for kind, (name, about, answer) in _KINDS.items()},
}


def build_webhooks() -> dict[str, Any]:
    """Type of event → the POST that a merchant's server receives."""
    return {
        kind: {
            "post": {
                "operationId": f"webhook-{kind.lower()}",
                "summary": f"{kind.capitalize()} event",
                "description": f"{about} Verify it before you believe it: the body may be encrypted.",
                "security": [],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}},
                },
                "responses": {"2XX": {"description": "Received. Anything else is tried again."}},
            }
        }
        for kind, (name, about, _answer) in _KINDS.items()
    }
