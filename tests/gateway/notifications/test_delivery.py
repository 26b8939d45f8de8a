"""Webhooks reach their receivers, and again when they did not. Source: decisions, section 6."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, transaction

from gateway.core import clock
from gateway.models import RiskSet, WebhookAttempt, WebhookDelivery, WebhookEndpoint
from gateway.notifications import claims, delivery, endpoints, retry_schedule
from gateway.notifications.fan_out import fan_out_notifications
from gateway.outbound import CallFailure
from gateway.payments import webhook_payloads
from gateway.portal import webhook_receiver
from tests.support.fixtures import Shop, open_shop
from tests.support.receivers import receiving
from tests.support.threads import PATIENCE_S, at_once
from tests.support.webhook_delivery import BY, deliver, messages, opened, register, the_delivery
from tests.support.webhooks import hooked


def pass_time(shop: Shop, time: timedelta) -> None:
    """So much later, by the merchant's clock."""
    shop.merchant.refresh_from_db()
    shop.merchant.clock_offset += time
    shop.merchant.save(update_fields=["clock_offset"])


@pytest.mark.parametrize(
    "values", [{}, {"wrapper": "json"}, {"mode": "signed"}], ids=["encrypted", "encrypted in JSON", "signed"]
)
def test_a_payment_is_told_once_and_the_attempt_is_kept(shop: Shop, values: dict[str, str]) -> None:
    with hooked(answer_body=b"thanks\n\0 4200000000000000") as hook:
        _, secret = register(shop, hook, **values)
        paid = shop.api.pay()
        assert deliver() == 1
        assert deliver() == 0
        (message,) = messages(hook, secret)
    assert (message["type"], message["action"], message["payload"]["id"]) == ("PAYMENT", "CREATED", paid.id)
    sent = the_delivery()
    assert (sent.state, sent.attempts) == ("delivered", 1)
    (tried,) = sent.tried.all()
    assert (tried.number, tried.status, tried.failure) == (1, 200, "")
    assert tried.answer == "thanks   420000******0000"


def test_only_the_kinds_and_the_channel_that_were_asked_for_are_told(shop: Shop) -> None:
    other = shop.open_channel()
    with hooked() as every, hooked() as mine, hooked() as registrations:
        for hook, values in (
            (every, {}),
            (mine, {"channel": shop.channel}),
            (registrations, {"kinds": ["REGISTRATION"]}),
        ):
            register(shop, hook, mode="signed", **values)
        paid = shop.api.pay(createRegistration="true")
        elsewhere = shop.api_of(other).pay()
        assert deliver() == 6
        told = [[one.headers["webhook-id"] for one in hook.told[1:]] for hook in (every, mine, registrations)]
    assert [len(one) for one in told] == [3, 2, 1]
    by_url = dict(WebhookDelivery.objects.exclude(kind="test").values_list("pk", "payment"))
    assert {payment.hex for payment in by_url.values() if payment} == {paid.id, elsewhere.id}


def test_another_merchants_events_are_never_told(shop: Shop, stranger: Shop) -> None:
    with hooked() as hook:
        register(shop, hook)
        stranger.api.pay()
        assert deliver() == 0


def test_every_attempt_tells_the_same_text_under_the_same_id(shop: Shop) -> None:
    with hooked() as hook:
        _, secret = register(shop, hook, mode="signed")
        hook.answers = [500, 302, 404]
        shop.api.pay()
        assert deliver() == 1
        for wait in (1, 2, 4):
            assert deliver() == 0
            pass_time(shop, timedelta(minutes=wait))
            assert deliver() == 1
        told = hook.told[1:]
    assert len(told) == 4
    assert len({one.body for one in told}) == 1
    assert len({one.headers["webhook-id"] for one in told}) == 1
    assert [tried.status for tried in WebhookAttempt.objects.filter(delivery=the_delivery())] == [500, 302, 404, 200]
    assert all(opened(one, secret) for one in told)


def test_the_retries_follow_the_table_for_thirty_days_of_the_merchants_clock(shop: Shop) -> None:
    with hooked() as hook:
        register(shop, hook)
        hook.always = 503
        shop.api.pay()
        start = clock.merchant_now(shop.merchant)
        tried: list[timedelta] = []
        while (due := delivery.next_webhook_at(shop.merchant)) is not None:
            pass_time(shop, max(timedelta(0), due - clock.merchant_now(shop.merchant)))
            tried.append(clock.merchant_now(shop.merchant) - start)
            assert deliver(shop) == 1
    minutes = [round(one.total_seconds() / 60) for one in tried]
    table = [0, 1, 3, 7, 15, 30, 60, 120]
    assert minutes == [*table, *(120 + day * 1_440 for day in range(1, 30))]
    sent = the_delivery()
    assert (sent.state, sent.attempts) == ("given_up", 37)
    assert sent.ended_at is not None
    assert sent.ended_at - sent.created_at <= retry_schedule.WEBHOOK_GIVE_UP_AFTER
    assert sent.tried.count() == 37


def test_410_switches_the_endpoint_off_and_what_waits_is_cancelled(shop: Shop) -> None:
    with hooked() as hook:
        endpoint, _ = register(shop, hook)
        hook.answers = [500, 410]
        shop.api.pay()
        deliver()
        shop.api.pay()
        deliver()
        endpoint.refresh_from_db()
        assert (endpoint.state, endpoint.reason) == ("off", "the receiver answered 410 Gone")
        assert set(WebhookDelivery.objects.exclude(kind="test").values_list("state", flat=True)) == {"cancelled"}
        shop.api.pay()
        assert deliver() == 0
    assert len(hook.told) == 3


def test_a_receiver_that_is_not_there_is_an_attempt_with_its_reason(shop: Shop) -> None:
    with hooked() as hook:
        register(shop, hook)
    shop.api.pay()
    assert deliver() == 1
    tried = the_delivery().tried.get()
    assert (tried.status, tried.failure) == (None, CallFailure.UNREACHABLE)
    assert "refused" in tried.answer


def test_an_endpoint_that_fails_wholly_is_paused_probed_and_resumed(shop: Shop) -> None:
    with hooked() as hook:
        endpoint, _ = register(shop, hook)
        hook.always = 500
        for _ in range(4):
            shop.api.pay()
        while endpoint.state == "active":
            deliver(shop)
            due = delivery.next_webhook_at(shop.merchant)
            assert due is not None
            pass_time(shop, due - clock.merchant_now(shop.merchant) + timedelta(milliseconds=1))
            endpoint.refresh_from_db()
        assert endpoint.state == "paused"
        assert "have failed since" in endpoint.reason
        assert endpoint.failures >= retry_schedule.PAUSE_AFTER_FAILURES
        before = len(hook.told)
        assert endpoint.probe_at is not None
        pass_time(shop, endpoint.probe_at - clock.merchant_now(shop.merchant) + timedelta(hours=3))
        assert deliver(shop) == 1  # all four are due, one is tried
        assert len(hook.told) == before + 1
        endpoint.refresh_from_db()
        assert (endpoint.state, endpoint.probes) == ("paused", 1)
        shop.api.pay()
        hook.always = 200
        assert deliver(shop) == 0
        pass_time(shop, timedelta(minutes=3))
        assert deliver(shop) == 5  # the probe, and then everything that waited
        endpoint.refresh_from_db()
    assert (endpoint.state, endpoint.reason, endpoint.failures, endpoint.probe_at) == ("active", "", 0, None)
    assert set(WebhookDelivery.objects.exclude(kind="test").values_list("state", flat=True)) == {"delivered"}


def test_while_secrets_rotate_both_are_honoured_for_a_day(shop: Shop) -> None:
    with hooked() as signed, hooked() as sealed:
        first, old = register(shop, signed, mode="signed")
        second, key = register(shop, sealed)
        new, new_key = (endpoints.rotate_secret(one, by=BY).reveal() for one in (first, second))
        shop.api.pay()
        deliver()
        during = signed.told[-1]
        assert opened(during, old) == opened(during, new)
        assert len(during.headers["webhook-signature"].split()) == 2
        assert opened(sealed.told[-1], key)  # a body has one key: the one that the receiver has for sure
        WebhookEndpoint.objects.update(previous_until=clock.real_now())
        shop.api.pay()
        deliver()
        after = signed.told[-1]
        assert len(after.headers["webhook-signature"].split()) == 1
        assert opened(after, new)
        assert opened(sealed.told[-1], new_key)
    with pytest.raises(Exception, match="No matching signature"):
        opened(after, old)


def test_a_worker_that_dies_loses_its_lease_and_another_one_sends(shop: Shop) -> None:
    with hooked() as hook:
        register(shop, hook, mode="signed")
        shop.api.pay()
        fan_out_notifications(webhook_payloads.build_webhook_payloads)
        (lost,) = claims.claim_due_webhooks({}, room=8, limit=8)
        assert claims.claim_due_webhooks({}, room=8, limit=8) == []
        assert deliver() == 0
        # It had sent, and died before it could say so.
        died = delivery.attempt_webhook(lost)
        WebhookDelivery.objects.filter(pk=lost.id).update(lease_until=clock.real_now())
        assert deliver() == 1
        first, second = hook.told[1:]
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        # And if it was only slow: what it did is kept, and changes nothing.
        assert claims.record_webhook_attempts([died]) == 0
    sent = the_delivery()
    assert (sent.state, sent.attempts, sent.tried.count()) == ("delivered", 1, 2)


def test_workers_at_once_send_each_webhook_once(committed: Shop) -> None:
    with hooked() as hook:
        register(committed, hook, mode="signed")
        paid = [committed.api.pay().id for _ in range(30)]
        made = at_once(*[lambda: deliver()] * 4)
        assert sum(made) == 30
        idents = [one.headers["webhook-id"] for one in hook.told[1:]]
    assert len(idents) == len(set(idents)) == 30
    assert {row.payment.hex for row in WebhookDelivery.objects.exclude(kind="test") if row.payment} == set(paid)


def test_claims_at_once_never_lease_one_delivery_twice(committed: Shop) -> None:
    with hooked() as hook:
        register(committed, hook)
    for _ in range(12):
        committed.api.pay()
    fan_out_notifications(webhook_payloads.build_webhook_payloads)
    several = at_once(*[lambda: [due.id for due in claims.claim_due_webhooks({}, room=5, limit=5)]] * 6)
    leased = [ident for one in several for ident in one]
    assert len(leased) == len(set(leased))
    assert leased


def hang(line: object, request: bytes) -> None:
    """Answers the test message, and nothing after it."""
    if b"webhook-id" in request and b"activation" not in request:
        line.recv(1)  # type: ignore[attr-defined]
    else:
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")  # type: ignore[attr-defined]


def test_a_receiver_that_hangs_makes_nobody_wait_but_itself(committed: Shop) -> None:
    with hooked() as good:
        register(committed, good, mode="signed")
        with receiving(hang) as receiver:
            slow, _ = endpoints.create_endpoint(committed.merchant, receiver.url, by=BY, mode="signed")
            assert endpoints.activate_endpoint(slow, by=BY).active
            for _ in range(20):
                committed.api.pay()
            # The run ends though eight calls hang: they are left to their threads.
            while the_count("delivered") < 20:
                deliver()
            assert len(good.told) == 21
            assert the_count("waiting") == 20
            assert len(receiver.requests) - 1 <= delivery.THREADS_PER_ENDPOINT
        # The receiver is gone now: what hung is written down, and what stood in line goes back untried.
        while WebhookAttempt.objects.filter(delivery__endpoint=slow, failure="broken").count() == 0:
            deliver()
    connection.close()


def test_what_others_sent_is_not_undone_with_a_transaction(committed: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a worker whose self-test moves a clock, in a transaction that is rolled back, while webhooks are sent."""
    monkeypatch.setattr(delivery, "SLOW_ATTEMPT_S", 0.1)
    answering = threading.Event()

    def answer(line: object, request: bytes) -> None:
        assert b"activation" in request or answering.wait(PATIENCE_S)
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")  # type: ignore[attr-defined]

    def build_payloads(*about: Any) -> Mapping[int, Any]:
        answering.set()
        return webhook_payloads.build_webhook_payloads(*about)

    with receiving(answer) as receiver:
        endpoint, _ = endpoints.create_endpoint(committed.merchant, receiver.url, by=BY, mode="signed")
        assert endpoints.activate_endpoint(endpoint, by=BY).active
        committed.api.pay()
        assert deliver() == 0  # the run ends, the attempt goes on
        committed.api.pay()
        with transaction.atomic():
            assert delivery.next_webhook_at(committed.merchant) is None
            assert delivery.deliver_due_webhooks(build_payloads, committed.merchant) == 0
            transaction.set_rollback(True)
        answering.set()
        while the_count("delivered") < 2:
            deliver()
        assert len(receiver.requests) == 1 + 2


@pytest.mark.parametrize("most", [("MAX_SENDER_THREADS", 16), ("MAX_HELD_WEBHOOKS", 32)], ids=["threads", "held"])
def test_a_merchant_with_many_receivers_that_hang_makes_no_other_merchant_wait(
    committed: Shop, monkeypatch: pytest.MonkeyPatch, most: tuple[str, int]
) -> None:
    """Found by trying: 32 receivers that hang had all threads, and nobody else was told anything for 90 seconds."""
    monkeypatch.setattr(delivery, *most)
    monkeypatch.setattr(delivery, "_sender", delivery.WebhookSender())
    other = open_shop(committed.merchant.division, "Other shop")
    with hooked() as good:
        register(other, good, mode="signed")
        with receiving(hang) as receiver:
            for _ in range(4):
                slow, _ = endpoints.create_endpoint(committed.merchant, receiver.url, by=BY, mode="signed")
                assert endpoints.activate_endpoint(slow, by=BY).active
            for _ in range(10):
                committed.api.pay()
            deliver()
            other.api.pay()
            deliver()
            assert len(good.told) == 2
        deliver(committed)  # the receiver is gone now: no call is left behind
    connection.close()


def test_threads_that_do_not_start_are_not_counted_and_what_they_had_is_sent_later(
    committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = delivery.WebhookSender()
    monkeypatch.setattr(delivery, "_sender", sender)
    with hooked() as hook:
        register(committed, hook, mode="signed")
        told = len(hook.told)
        committed.api.pay()
        committed.api.pay()
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", lambda thread: (_ for _ in ()).throw(RuntimeError("no more")))
            patch.setattr(delivery, "MAX_DELIVERY_RUN_S", 0)
            deliver()
        assert (len(hook.told), sender.room()) == (told, delivery.MAX_SENDER_THREADS)
        assert sender.shares() == delivery.MerchantShares(other=delivery.MAX_SENDER_THREADS // 2)
        deliver()
        assert the_count("delivered") == 2
    connection.close()


@pytest.mark.django_db
def test_what_ends_after_its_run_is_recorded_by_one_thread_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by trying: a hundred calls that had hung ended at once, and PostgreSQL had no more sessions for anybody."""
    sender = delivery.WebhookSender()
    lock, second = threading.Lock(), threading.Barrier(2)
    recording: list[int] = [0, 0]

    def record(several: Sequence[Any]) -> None:
        with lock:
            recording[0] += 1
            recording[1] = max(recording)
        with suppress(threading.BrokenBarrierError):
            second.wait(0.2)
        with lock:
            recording[0] -= 1

    monkeypatch.setattr(claims, "record_webhook_attempts", record)
    monkeypatch.setattr(delivery, "RESULT_BATCH_SIZE", 1)
    for number in range(2):
        sender._done.put(SimpleNamespace(due=SimpleNamespace(id=number), outcome=1))  # type: ignore[arg-type]
    at_once(sender._settle_without_run, sender._settle_without_run)
    assert recording == [0, 1]
    assert sender.collect(0) == []


def the_count(state: str) -> int:
    return WebhookDelivery.objects.exclude(kind="test").filter(state=state).count()


def test_an_endpoint_is_inactive_until_a_test_message_is_answered_2xx(shop: Shop) -> None:
    with hooked(answers=[500, 302]) as hook:
        endpoint, secret = endpoints.create_endpoint(shop.merchant, hook.url, by=BY)
        shop.api.pay()
        assert deliver() == 0
        for _ in range(2):
            assert not endpoints.activate_endpoint(endpoint, by=BY).active
        assert endpoint.state == "inactive"
        assert endpoints.activate_endpoint(endpoint, by=BY).active
        assert deliver() == 0  # what was before its activation is not told
        message = opened(hook.told[-1], secret.reveal())
    assert (message["type"], message["action"]) == ("test", "webhook activation")
    assert WebhookDelivery.objects.filter(kind="test").count() == 3


@pytest.mark.parametrize(
    "url, more, words",
    [
        ("http://169.254.169.254/latest", {}, "private"),
        ("http://user:secret@shop.example/", {}, "user name"),
        ("ftp://shop.example/", {}, "http and https"),
        ("https://shop.example/", {"kinds": ["PAYMENTS"]}, "PAYMENTS"),
        ("https://shop.example/", {"kinds": []}, "none was given"),
        ("https://shop.example/", {"mode": "return"}, "mode"),
        ("https://shop.example/", {"mode": "signed", "wrapper": "json"}, "wrapper"),
    ],
)
def test_an_endpoint_that_could_not_be_told_is_refused_in_words(
    shop: Shop, url: str, more: dict[str, object], words: str
) -> None:
    with pytest.raises(endpoints.InvalidEndpointError, match=words):
        endpoints.create_endpoint(shop.merchant, url, by=BY, **more)  # type: ignore[arg-type]
    assert not WebhookEndpoint.objects.exists()


def test_in_live_an_endpoint_is_https(shop: Shop, live: None) -> None:
    with pytest.raises(endpoints.InvalidEndpointError, match="https"):
        endpoints.create_endpoint(shop.merchant, "http://shop.example/", by=BY)


def test_a_secret_that_the_vault_cannot_open_is_an_attempt_that_failed(shop: Shop) -> None:
    with hooked() as hook:
        endpoint, _ = register(shop, hook)
        WebhookEndpoint.objects.filter(pk=endpoint.pk).update(secret_sealed=b"\1nonsense")
        shop.api.pay()
        assert deliver() == 1
        assert len(hook.told) == 1
    assert "secret" in the_delivery().tried.get().answer


def test_the_next_due_time_of_one_merchant_is_their_own(shop: Shop, stranger: Shop) -> None:
    with hooked() as hook:
        register(shop, hook)
        assert delivery.next_webhook_at(shop.merchant) is None
        hook.always = 500
        shop.api.pay()
        deliver()
    assert delivery.next_webhook_at(stranger.merchant) is None
    due = delivery.next_webhook_at(shop.merchant)
    assert due is not None
    assert due == the_delivery().due_at


def test_a_run_for_one_merchant_leaves_the_others_alone(shop: Shop, stranger: Shop) -> None:
    with hooked() as mine, hooked() as theirs:
        register(shop, mine)
        register(stranger, theirs)
        shop.api.pay()
        stranger.api.pay()
        assert deliver(shop) == 1
        assert (len(mine.told), len(theirs.told)) == (2, 1)
        assert deliver() == 1


def test_the_receiver_on_the_docs_page_reads_what_is_sent(shop: Shop) -> None:
    """/docs/webhooks shows this code as it is."""
    with hooked() as plain, hooked() as wrapped, hooked() as signed:
        keys = {
            "plain": register(shop, plain)[1],
            "wrapped": register(shop, wrapped, wrapper="json")[1],
            "signed": register(shop, signed, mode="signed")[1],
        }
        paid = shop.api.pay()
        assert deliver() == 3
        hooks = {"plain": plain, "wrapped": wrapped, "signed": signed}
        told = {name: hook.told for name, hook in hooks.items()}
    seen: dict[str, int] = {}
    for name, (test, event) in told.items():
        read = webhook_receiver.read_signed if name == "signed" else webhook_receiver.read_encrypted
        assert not webhook_receiver.take(read(test.headers, test.body, [keys[name]]), seen)
        message = read(event.headers, event.body, ["ab" * 32, keys[name]])
        assert message["payload"]["id"] == paid.id
        assert webhook_receiver.take(message, seen) == (name == "plain")
        with pytest.raises(ValueError, match="secret of ours"):
            read(event.headers, event.body, ["ab" * 32])
        with pytest.raises(ValueError, match="secret of ours"):
            read(event.headers, event.body.replace(b"a", b"b"), [keys[name]])


def test_the_receiver_on_the_docs_page_takes_every_event_once(shop: Shop) -> None:
    """A decision of the rules carries the id of the payment, and each change of a registration the registration's."""
    with hooked() as hook:
        _, secret = register(shop, hook)
        RiskSet.objects.create(merchant=shop.merchant, key="SET", document={"key": "SET", "rules": []})
        shop.channel.risk_set = "SET"
        shop.channel.save()
        paid = shop.api.pay(createRegistration="true")
        registration = f"/v1/registrations/{paid.body['registrationId']}"
        assert shop.api.post(registration, {"card.expiryMonth": "06", "card.expiryYear": "2035"}).status == 200
        assert shop.api.delete(registration).status == 200
        deliver()
        told = messages(hook, secret)
    seen: dict[str, int] = {}
    assert sorted(f"{message['type']} {message['action']}" for message in told) == [
        "PAYMENT CREATED",
        "REGISTRATION CREATED",
        "REGISTRATION DELETED",
        "REGISTRATION UPDATED",
        "RISK CREATED",
    ]
    assert all(webhook_receiver.take(message, seen) for message in told)
    assert not any(webhook_receiver.take(message, seen) for message in told)
