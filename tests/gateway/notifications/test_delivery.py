"""Webhooks reach their receivers, in both modes, and again when they did not. Source: decisions, section 6."""

from __future__ import annotations

from gateway import audit
from gateway.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint
from gateway.notifications import endpoints, signing
from gateway.payments import telling
from tests.support.fixtures import Shop
from tests.support.webhooks import Hook, decrypted, hooked, verified

BY = audit.Actor(name="tests")


def register(shop: Shop, hook: Hook, **values: object) -> tuple[WebhookEndpoint, str]:
    """An active endpoint and its secret, 64 hex digits."""
    endpoint, secret = endpoints.make(shop.merchant, hook.url, by=BY, **values)  # type: ignore[arg-type]
    assert endpoints.activate(endpoint, by=BY).active
    return endpoint, secret.reveal()


def standard(secret: str) -> str:
    return signing.standard_form(signing.secret_of(secret)).reveal()


def test_a_payment_is_told_encrypted(shop: Shop) -> None:
    with hooked() as hook:
        _, secret = register(shop, hook)
        paid = shop.api.pay()
        assert telling.TIMER.run(None) == 1
    test, told = hook.told
    assert decrypted(test, secret)["action"] == "webhook activation"
    message = decrypted(told, secret)
    assert (message["type"], message["action"]) == ("PAYMENT", "CREATED")
    assert message["payload"]["id"] == paid.id


def test_a_payment_is_told_signed(shop: Shop) -> None:
    with hooked() as hook:
        _, secret = register(shop, hook, mode="signed")
        paid = shop.api.pay()
        assert telling.TIMER.run(None) == 1
    message = verified(hook.told[1], standard(secret))
    assert message["payload"]["id"] == paid.id
    assert WebhookDelivery.objects.get(kind="PAYMENT").state == "delivered"
    assert WebhookAttempt.objects.filter(delivery__kind="PAYMENT").get().status == 200
