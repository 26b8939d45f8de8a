"""Webhooks once more: counted first, then sent."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import override_settings

from gateway.core import clock
from gateway.models import AuditEntry, Notification, WebhookAttempt, WebhookDelivery, WebhookEndpoint
from gateway.notifications import replay, retention
from gateway.notifications.fan_out import fan_out_notifications
from gateway.payments import webhook_payloads
from tests.support.fixtures import Shop
from tests.support.threads import PATIENCE_S
from tests.support.webhook_delivery import deliver, messages, opened, register
from tests.support.webhooks import hooked


def command(name: str, *arguments: str) -> list[dict[str, Any]]:
    out = StringIO()
    call_command(name, *arguments, stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def by_id(several: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Deliveries go out side by side, in no order that is promised."""
    return sorted(several, key=lambda message: str(message["payload"]["id"]))


def test_a_replay_is_counted_first_and_tells_the_same_once_more(shop: Shop) -> None:
    with hooked() as hook:
        _, secret = register(shop, hook)
        held = shop.api.pay(paymentType="PA")
        shop.api.follow(held.id, "CP", "92.00")
        deliver()
        before = messages(hook, secret)
        (told,) = command("webhook_replay", "--entity", shop.channel.entity_id, "--dry-run")
        assert (told["events"], told["payments"], told["off"]) == (2, 2, 0)
        assert told["oldest"] <= told["newest"]
        assert deliver() == 0
        (done,) = command("webhook_replay", "--entity", shop.channel.entity_id)
        assert done["replayed"] == 2
        assert deliver() == 2
        after = messages(hook, secret)
    assert by_id(after) == by_id([*before, *before])
    assert AuditEntry.objects.filter(action="replay").count() == 1


def test_one_can_be_chosen_by_payment_delivery_kind_state_or_time(shop: Shop) -> None:
    entity = shop.merchant.entity_id
    with hooked() as hook:
        endpoint, _ = register(shop, hook)
        first, second = shop.api.pay(), shop.api.pay(createRegistration="true")
        deliver()
        one = WebhookDelivery.objects.filter(payment=first.id).get()

        def counted(*arguments: str) -> int:
            (told,) = command("webhook_replay", "--entity", entity, "--dry-run", *arguments)
            return int(told["events"])

        assert counted() == 3
        assert counted("--payment", second.id) == 2
        assert counted("--delivery", f"msg_{one.pk.hex}") == 1
        assert counted("--kinds", "REGISTRATION") == 1
        assert counted("--states", "given_up") == 0
        assert counted("--endpoint", endpoint.pk.hex) == 3
        later = (clock.real_now() + timedelta(hours=1)).strftime("%Y-%m-%d %H:%M:%S")
        assert counted("--from", later) == 0
        assert counted("--to", later) == 3


def test_a_merchant_replays_nothing_of_another_one(shop: Shop, stranger: Shop) -> None:
    with hooked() as hook:
        endpoint, _ = register(shop, hook)
        paid = shop.api.pay()
        deliver()
    entity = stranger.channel.entity_id
    assert command("webhook_replay", "--entity", entity, "--payment", paid.id, "--dry-run")[0]["events"] == 0
    with pytest.raises(CommandError, match="no such endpoint"):
        command("webhook_replay", "--entity", entity, "--endpoint", endpoint.pk.hex, "--dry-run")


def test_a_replay_goes_on_where_it_was_broken_off(shop: Shop) -> None:
    with hooked() as hook:
        register(shop, hook)
        for _ in range(5):
            shop.api.pay()
        deliver()
        selection = replay.ReplaySelection(merchant=shop.merchant)
        begun = replay.replay_deliveries(selection, batch=2)
        assert next(begun) == 2
        begun.close()
        assert replay.preview_replay(selection).events == 3
        assert list(replay.replay_deliveries(selection, batch=2)) == [2, 1]
        assert deliver() == 5


def test_what_a_worker_delivers_meanwhile_is_not_replayed_again(shop: Shop) -> None:
    with hooked() as hook:
        register(shop, hook)
        for _ in range(5):
            shop.api.pay()
        deliver()
        batches = []
        for number in replay.replay_deliveries(replay.ReplaySelection(merchant=shop.merchant), batch=2):
            batches.append(number)
            assert deliver() == number
            if len(batches) > 5:
                break
    assert batches == [2, 2, 1]


def test_the_times_of_a_replay_are_those_of_the_events(shop: Shop) -> None:
    """Not those of their handing on, which comes later when no worker was there."""
    with hooked() as hook:
        register(shop, hook)
        shop.api.pay()
        Notification.objects.update(created_at=clock.real_now() - timedelta(hours=2))
        deliver()
        before = clock.real_now() - timedelta(hours=1)
        assert replay.preview_replay(replay.ReplaySelection(merchant=shop.merchant, until=before)).events == 1
        assert replay.preview_replay(replay.ReplaySelection(merchant=shop.merchant, since=before)).events == 0


def test_what_an_endpoint_that_is_off_would_get_is_counted_apart(shop: Shop) -> None:
    with hooked() as hook:
        endpoint, secret = register(shop, hook)
        hook.answers = [500]
        shop.api.pay()
        deliver()
        command("webhook_endpoint", "--off", "--endpoint", endpoint.pk.hex)
        told = replay.preview_replay(replay.ReplaySelection(merchant=shop.merchant))
        assert (told.events, told.off) == (0, 1)
        missed = shop.api.pay()
        assert deliver() == 0
        (shown,) = command("webhook_endpoint", "--activate", "--endpoint", endpoint.pk.hex)
        assert shown["state"] == "active"
        (done,) = command("webhook_replay", "--entity", shop.merchant.entity_id)
        assert done["replayed"] == 1
        since = ("--from", "2020-01-01 00:00:00")
        wanted = ("--entity", shop.merchant.entity_id, "--endpoint", endpoint.pk.hex, "--missed")
        assert command("webhook_replay", *wanted, *since, "--dry-run") == [{"events": 1}]
        assert command("webhook_replay", *wanted, *since) == [{"events": 1, "replayed": 1}]
        assert command("webhook_replay", *wanted, *since, "--dry-run") == [{"events": 0}]
        assert deliver() == 2
        assert missed.id in {message["payload"]["id"] for message in messages(hook, secret)[-2:]}


def test_an_endpoint_is_made_listed_rotated_and_switched_off_by_command(shop: Shop, tmp_path: Path) -> None:
    entity = shop.channel.entity_id
    with hooked() as hook:
        made, active = command(
            "webhook_endpoint",
            "--entity",
            entity,
            "--url",
            hook.url,
            "--mode",
            "signed",
            "--kinds",
            "PAYMENT,RISK",
            "--activate",
        )
        assert (made["state"], active["state"], made["kinds"]) == ("inactive", "active", ["PAYMENT", "RISK"])
        assert len(made["secret"]) == 64
        assert opened(hook.told[0], made["secret"])["type"] == "test"
        (listed,) = command("webhook_endpoint", "--entity", entity, "--list")
        assert "secret" not in listed
        (rotated,) = command("webhook_endpoint", "--entity", entity, "--rotate")
        assert rotated["secret"] != made["secret"]
        assert rotated["standard_secret"].startswith("whsec_")
        mine = tmp_path / "secret"
        mine.write_text("ab" * 32 + "\n")
        (own,) = command("webhook_endpoint", "--entity", entity, "--rotate", "--secret-file", str(mine), "--no-overlap")
        assert "secret" not in own
        assert own["previous_until"] is None
        shop.api.pay()
        deliver()
        assert opened(hook.told[-1], "ab" * 32)["type"] == "PAYMENT"
        (off,) = command("webhook_endpoint", "--entity", entity, "--off")
        assert off["state"] == "off"
    told = AuditEntry.objects.filter(subject="webhookendpoint").values_list("action", flat=True)
    assert list(told) == ["add", "activate", "rotate", "rotate", "off"]
    assert not AuditEntry.objects.filter(after__icontains="abababab").exists()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["webhook_endpoint", "--entity", "nobody", "--url", "https://shop.example/"], "--entity must name"),
        (["webhook_endpoint", "--entity", "{entity}", "--url", "http://10.0.0.1/"], "private"),
        (["webhook_endpoint", "--entity", "{entity}", "--url", "https://a.example/", "--kinds", "X"], "'X' is none"),
        (["webhook_endpoint", "--entity", "{entity}", "--rotate"], "Say which"),
        (["webhook_endpoint", "--endpoint", "0" * 32, "--off"], "no such endpoint"),
        (["webhook_endpoint", "--entity", "{entity}", "--url", "https://a.example/", "--secret-file", "/"], "/"),
        (["webhook_replay", "--entity", "{entity}", "--states", "lost"], "'lost' is none"),
        (["webhook_replay", "--entity", "{entity}", "--from", "yesterday"], "--from is a time"),
        (["webhook_replay", "--entity", "{entity}", "--missed"], "needs --endpoint"),
        (["webhook_replay", "--entity", "{entity}", "--payment", "7"], "32 lower-case hex"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(shop: Shop, arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        command(*[argument.replace("{entity}", shop.channel.entity_id) for argument in arguments])
    assert not WebhookEndpoint.objects.exists()


def test_what_ended_long_ago_is_forgotten_and_what_waits_is_not(shop: Shop) -> None:
    with hooked() as hook:
        register(shop, hook)
        shop.api.pay()
        deliver()
        hook.always = 500
        waits = shop.api.pay()
        deliver()
    with override_settings(GATEWAY_WEBHOOK_DAYS=90):
        assert retention.purge_webhook_deliveries(clock.real_now()) == 0
        # The test message, and the one that was delivered.
        assert retention.purge_webhook_deliveries(clock.real_now() + timedelta(days=29)) == 0
        assert retention.purge_webhook_deliveries(clock.real_now() + timedelta(days=91)) == 2
    kept = WebhookDelivery.objects.get()
    assert kept.payment is not None
    assert (kept.payment.hex, kept.state) == (waits.id, "given_up")
    assert WebhookAttempt.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_what_waited_too_long_is_given_up_in_batches_that_wait_for_nobody(
    committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A paused endpoint with millions is not ended in one statement, and a row that a sender holds is passed by."""
    with hooked() as hook:
        register(committed, hook)
    for _ in range(5):
        committed.api.pay()
    fan_out_notifications(webhook_payloads.build_webhook_payloads)
    WebhookDelivery.objects.filter(state="waiting").update(give_up_at=clock.real_now() - timedelta(seconds=1))
    waiting = list(WebhookDelivery.objects.filter(state="waiting").order_by("id").values_list("pk", flat=True))
    monkeypatch.setattr(retention, "PURGE_BATCH_SIZE", 2)
    monkeypatch.setattr(retention, "MAX_GIVE_UP_BATCHES", 1)

    def purge() -> None:
        retention.purge_webhook_deliveries(clock.real_now())
        connection.close()

    with transaction.atomic():
        WebhookDelivery.objects.select_for_update().get(pk=waiting[0])
        other = threading.Thread(target=purge)
        other.start()
        other.join(PATIENCE_S)
        assert not other.is_alive()
    given_up = WebhookDelivery.objects.filter(state="given_up")
    assert waiting[0] not in given_up.values_list("pk", flat=True)
    assert given_up.count() == 2
    for _ in range(2):
        purge()
    assert given_up.count() == 5
