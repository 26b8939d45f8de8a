"""The text of a notification, written once. Source: decisions, section 6."""

from __future__ import annotations

from gateway.notifications.payload_format import WebhookPayload, serialize_payload


def test_a_message_is_compact_json_in_its_order_without_escapes() -> None:
    text = serialize_payload("PAYMENT", "CREATED", {"holder": "Jürgen / <b>", "amount": "92.00", "card": {"a": [1]}})
    assert text == (
        '{"type":"PAYMENT","action":"CREATED","payload":{"holder":"Jürgen / <b>","amount":"92.00","card":{"a":[1]}}}'
    )


def test_a_notification_that_nobody_wants_has_neither_text_nor_address() -> None:
    assert (WebhookPayload().text, WebhookPayload().return_url) == ("", "")
