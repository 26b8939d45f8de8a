"""What a notification says: the API's answer as of its event, and what only notifications carry.

Source: decisions, section 6; Part A, Events; Part B, Payment response.
"""

from __future__ import annotations

import pytest

from gateway.models import Notification, WebhookDelivery
from gateway.payments import webhook_payloads
from tests.support.fixtures import Shop
from tests.support.redirected_shopper import Visitor, order
from tests.support.webhook_delivery import deliver, messages, register
from tests.support.webhooks import hooked

ONLY_TOLD = {"authentication", "shortId", "source", "paymentMethod", "merchantAccountId", "sequence"}


def test_the_payload_is_the_answer_of_the_api_and_what_only_notifications_carry(shop: Shop) -> None:
    with hooked() as hook:
        _, secret = register(shop, hook)
        paid = shop.api.pay(customer__givenName="Zoë", customer__surname="李", merchantTransactionId="order-4711")
        deliver()
        (message,) = messages(hook, secret)
    payload = message["payload"]
    assert payload["authentication"] == {"entityId": shop.channel.entity_id}
    assert payload["sequence"] == 2
    assert payload["source"] == "API"
    assert payload["paymentMethod"] == "CC"
    assert payload["merchantAccountId"]
    assert len(payload["shortId"]) == 14
    answered = {name: value for name, value in payload.items() if name not in ONLY_TOLD}
    assert {**answered, "timestamp": ""} == {**paid.body, "timestamp": ""}


def test_a_follow_up_carries_what_it_refers_to(shop: Shop) -> None:
    """A27.4, A29.7, B18.14."""
    with hooked() as hook:
        _, secret = register(shop, hook)
        held = shop.api.pay(paymentType="PA")
        captured = shop.api.follow(held.id, "CP", "50.00")
        refunded = shop.api.follow(captured.id, "RF", "20.00")
        deliver()
        told = {message["payload"]["id"]: message["payload"] for message in messages(hook, secret)}
    assert "referencedId" not in told[held.id]
    assert told[captured.id]["referencedId"] == held.id
    assert told[refunded.id]["referencedId"] == captured.id


@pytest.mark.parametrize("number, brand", [("4200000000000000", "VISA"), ("4444444444444444", "VISA")])
def test_an_approval_and_a_refusal_are_told_with_the_code_that_was_answered(
    shop: Shop, number: str, brand: str
) -> None:
    with hooked() as hook:
        _, secret = register(shop, hook)
        paid = shop.api.pay(card__number=number, paymentBrand=brand)
        deliver()
        (message,) = messages(hook, secret)
    assert message["payload"]["result"]["code"] == paid.code
    assert message["payload"]["id"] == paid.id


def test_a_request_that_makes_no_payment_tells_nothing(shop: Shop) -> None:
    with hooked() as hook:
        register(shop, hook)
        assert shop.api.pay(amount="nothing").status == 400
        assert deliver() == 0


def test_registrations_are_told_when_they_are_made_and_deleted(shop: Shop) -> None:
    with hooked() as hook:
        _, secret = register(shop, hook, kinds=["REGISTRATION"])
        paid = shop.api.pay(createRegistration="true")
        registration = paid.body["registrationId"]
        assert shop.api.delete(f"/v1/registrations/{registration}").status == 200
        deliver()
        made, deleted = sorted(messages(hook, secret), key=lambda message: message["action"])
    assert (made["type"], made["action"], made["payload"]["id"]) == ("REGISTRATION", "CREATED", registration)
    assert made["payload"]["card"]["last4Digits"] == "0000"
    assert "paymentType" not in made["payload"]
    assert (deleted["action"], deleted["payload"]["id"]) == ("DELETED", registration)


def test_what_was_pending_is_told_as_pending_even_when_it_is_told_late(shop: Shop) -> None:
    """A worker that comes by when all is over tells each event as it was."""
    with hooked() as hook:
        _, secret = register(shop, hook)
        begun = order(shop.api, "ONLINETRANSFER")
        assert begun.code == "000.200.000", begun
        Visitor.of(begun).decide("approve")
        final = shop.api.read(begun.id)
        deliver()
        first, last = sorted(messages(hook, secret), key=lambda message: message["payload"]["sequence"])
    assert (first["action"], first["payload"]["result"]["code"]) == ("CREATED", "000.200.000")
    assert (last["action"], last["payload"]["result"]["code"]) == ("UPDATED", final.code)
    assert final.code.startswith("000.100.1")
    assert "redirect" not in last["payload"]


def test_risk_is_told_with_outcome_and_score(shop: Shop) -> None:
    with hooked() as hook:
        _, secret = register(shop, hook, kinds=["RISK"])
        checked = shop.api.pay(paymentType="RI")
        deliver()
        (message,) = messages(hook, secret)
    assert (message["type"], message["payload"]["id"]) == ("RISK", checked.id)
    assert message["payload"]["risk"]["score"] == checked.body["risk"]["score"]


def test_no_card_number_or_cvv_is_told_or_kept(shop: Shop) -> None:
    with hooked() as hook:
        register(shop, hook, mode="signed")
        shop.api.pay(
            card__number="4242424242424242", merchantTransactionId="4242424242424242", createRegistration="true"
        )
        deliver()
        bodies = b"".join(told.body for told in hook.told)
    assert b"4242424242424242" not in bodies
    assert b'"cvv"' not in bodies
    assert b'"number"' not in bodies
    assert not WebhookDelivery.objects.filter(body__contains="4242424242424242").exists()


def test_the_notification_url_of_a_payment_is_called_with_its_final_result(shop: Shop) -> None:
    """A29.6, B13.2; Deprecated, and still kept: GET with id and resourcePath."""
    with hooked(answers=[500]) as hook:
        paid = shop.api.pay(notificationUrl=f"{hook.url}?shop=7")
        assert deliver() == 1
        assert Notification.objects.count() == 1
        WebhookDelivery.objects.update(due_at=WebhookDelivery.objects.get().created_at)
        assert deliver() == 1
        first, second = hook.told
    assert first.line == second.line
    assert first.line == f"GET /hook?shop=7&id={paid.id}&resourcePath=%2Fv1%2Fpayments%2F{paid.id} HTTP/1.1"
    assert first.body == b""


def test_the_notification_url_is_not_called_while_the_shopper_is_away(shop: Shop) -> None:
    """A29.6: once, with the final result."""
    with hooked() as hook:
        begun = order(shop.api, "ONLINETRANSFER", notificationUrl=hook.url)
        assert begun.code == "000.200.000", begun
        deliver()
        assert hook.told == []
        Visitor.of(begun).decide("approve")
        deliver()
        (call,) = hook.told
    assert begun.id in call.line


def test_whoever_sends_a_notification_url_is_told_that_it_is_deprecated(shop: Shop) -> None:
    """A29.6, B13.2."""
    assert "notificationUrl is deprecated" in shop.api.pay(notificationUrl="http://localhost:9999/").headers["Warning"]
    assert "Warning" not in shop.api.pay().headers


def test_a_notification_url_of_the_greatest_length_is_called(shop: Shop) -> None:
    """Part B: AN 6-2048. What we add to it comes on top."""
    with hooked() as hook:
        url = f"{hook.url}?shop="
        shop.api.pay(notificationUrl=url + "7" * (2_048 - len(url)))
        deliver()
        assert len(hook.told) == 1


def test_a_notification_url_that_grows_too_long_when_it_is_encoded_holds_nobody_back(shop: Shop) -> None:
    """A letter of another script takes up to twelve characters."""
    with hooked() as hook:
        _, secret = register(shop, hook)
        url = f"{hook.url}?shop="
        long = shop.api.pay(notificationUrl=url + "\N{GRINNING FACE}" * (2_048 - len(url)))
        after = shop.api.pay()
        deliver()
        assert {message["payload"]["id"] for message in messages(hook, secret)} == {long.id, after.id}
    assert not WebhookDelivery.objects.exclude(url="").exists()


def test_a_notification_url_into_our_own_network_is_not_called(shop: Shop) -> None:
    shop.api.pay(notificationUrl="http://169.254.169.254/latest")
    assert deliver() == 1
    tried = WebhookDelivery.objects.get().tried.get()
    assert (tried.status, tried.failure) == (None, "forbidden")


def test_the_timer_is_known_to_the_ticks() -> None:
    from gateway.timers.registry import TIMERS

    assert TIMERS["webhooks"] is webhook_payloads.TIMER
