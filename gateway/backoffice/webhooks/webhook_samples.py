"""Sample webhooks: the newest event of a kind as a sample, or an example if there is none yet.

A sample has ``payload.sample`` true.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.db.models import Max

from gateway.core import clock
from gateway.models import Notification, WebhookEndpoint
from gateway.notifications import payload_format
from gateway.payments import webhook_payloads

MAX_SAMPLED_EVENTS: Final = 5_000
"""Events searched for one to use as a sample."""
_PAID: Final[Mapping[str, Any]] = {
    "id": "0" * 32, "paymentType": "DB", "paymentBrand": "VISA", "amount": "92.00", "currency": "EUR",
    "card": {"bin": "420000", "last4Digits": "0000", "holder": "Jane Jones", "expiryMonth": "05", "expiryYear": "2034"},
}  # fmt: skip
_RESULT: Final = {"code": "000.100.110", "description": "Request successfully processed in test mode"}
_MADE_UP: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "PAYMENT": ("UPDATED", {**_PAID, "result": _RESULT}),
    "REGISTRATION": ("CREATED", {"id": "0" * 32, "paymentBrand": "VISA", "card": _PAID["card"], "result": _RESULT}),
    "SCHEDULE": ("CREATED", {
        "id": "0" * 32, "paymentType": "SD", "amount": "9.90", "currency": "EUR", "result": _RESULT,
        "job": {"expression": "0 0 6 1 * ? *"}, "state": "ACTIVE",
    }),
    "ALERT": ("CREATED", {
        "id": "0" * 32, "shortId": "0000.0000.0000", "kind": "ALERT", "state": "OPEN",
        "referencedId": "0" * 32, "amount": "92.00",
        "currency": "EUR",
        "reasonCode": "000.100.220", "provider": "example", "reference": "A-1", "answerBy": "2030-01-04 10:00:00+0000",
    }),
    "RISK": ("CREATED", {**_PAID, "result": _RESULT, "risk": {"outcome": "ACCEPT", "score": "12"}}),
}  # fmt: skip
"""Kind → action and payload of the example."""


def build_sample_webhook(endpoint: WebhookEndpoint, kind: str) -> str:
    """The body of a sample of this kind for this endpoint."""
    newest = _find_newest_payload(endpoint, kind)
    action, payload = (newest["action"], newest["payload"]) if newest is not None else _MADE_UP[kind]
    entity = (endpoint.channel_id or endpoint.merchant_id).hex
    about = {
        "authentication": {"entityId": entity},
        "buildNumber": settings.GATEWAY_BUILD_NUMBER,
        "sequence": 1,
        "timestamp": clock.format_timestamp(clock.merchant_now(endpoint.merchant)),
    }
    return payload_format.serialize_payload(kind, action, {**about, **payload, "sample": True})


def _find_newest_payload(endpoint: WebhookEndpoint, kind: str) -> dict[str, Any] | None:
    newest = Notification.objects.aggregate(newest=Max("pk"))["newest"] or 0
    mine = Notification.objects.filter(pk__gt=newest - MAX_SAMPLED_EVENTS, merchant=endpoint.merchant_id, kind=kind)
    if endpoint.channel_id is not None:
        mine = mine.filter(channel=endpoint.channel_id)
    found = mine.order_by("-pk").first()
    if found is None:
        return None
    words = webhook_payloads.build_webhook_payloads([found], {found.pk}).get(found.pk)
    if words is None or not words.text:
        return None
    payload: dict[str, Any] = json.loads(words.text)
    return payload
