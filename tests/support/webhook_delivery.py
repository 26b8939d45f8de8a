"""Webhooks in tests: registers an active endpoint, and runs the worker's delivery."""

from __future__ import annotations

from typing import Any

from gateway.access import audit_log
from gateway.models import WebhookDelivery, WebhookEndpoint
from gateway.notifications import endpoints, signing
from gateway.payments import webhook_payloads
from tests.support.fixtures import Shop
from tests.support.webhooks import Hook, Told, decrypted, verified

BY = audit_log.Actor(name="tests")


def register(shop: Shop, hook: Hook, **values: Any) -> tuple[WebhookEndpoint, str]:
    """An active endpoint and its secret, 64 hex digits."""
    endpoint, secret = endpoints.create_endpoint(shop.merchant, hook.url, by=BY, **values)
    assert endpoints.activate_endpoint(endpoint, by=BY).active
    return endpoint, secret.reveal()


def standard(secret: str) -> str:
    """The secret as Standard Webhooks writes it."""
    return signing.format_standard_secret(signing.parse_webhook_secret(secret)).reveal()


def deliver(shop: Shop | None = None) -> int:
    """The worker comes by; how many attempts it made."""
    return webhook_payloads.TIMER.run(shop.merchant if shop is not None else None)


def messages(hook: Hook, secret: str) -> list[dict[str, Any]]:
    """Everything that came, opened, but the test message."""
    return [message for message in (opened(told, secret) for told in hook.told) if message["type"] != "test"]


def opened(told: Told, secret: str) -> dict[str, Any]:
    return verified(told, standard(secret)) if "webhook-id" in told.headers else decrypted(told, secret)


def the_delivery(**conditions: Any) -> WebhookDelivery:
    return WebhookDelivery.objects.exclude(kind="test").get(**conditions)
