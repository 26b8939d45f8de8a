"""Timers tell in one statement when they have something to do; beat wakes those, and each of the others in its turn."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from celery import current_app
from django.db import OperationalError, connection, connections
from django.db.models import Model
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from kombu import Connection
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from config import beat
from gateway import metrics
from gateway.backoffice.access import audit_seals
from gateway.core import clock
from gateway.models import (
    AcquirerAccount,
    AuthorizationRelease,
    BackgroundWork,
    CardTestingCount,
    ClerkLimitUsage,
    FanOutPosition,
    IdempotencyKey,
    Merchant,
    OpenPayment,
    Payment,
    ProcessorEvent,
    RiskObservation,
    ThrottleWindow,
    TimerRun,
    UsedWalletToken,
    WebhookDelivery,
)
from gateway.timers import due_times, registry
from tests.support.client import payment
from tests.support.fixtures import Shop
from tests.support.shopper import open_checkout
from tests.support.subscriptions import started, store_card

pytestmark = pytest.mark.django_db

TELLING = {name for name, timer in registry.TIMERS.items() if timer.earliest_due}
SMALL_TABLES = {
    "gateway_merchant", "gateway_fanoutposition", "gateway_webhookendpoint", "reporting_clearinginstitute",
    "reporting_sftpsource",
}  # fmt: skip
"""Tables with a row for each merchant, institute or server: reading one from end to end costs less than its index."""


@pytest.fixture
def shop(shop: Shop) -> Shop:
    """Its making stands in the audit trail, and is sealed."""
    audit_seals.seal_new_entries()
    return shop


@pytest.fixture
def committed(committed: Shop) -> Shop:
    """The same, committed."""
    audit_seals.seal_new_entries()
    return committed


def due() -> set[str]:
    return due_times.find_due_timers(TELLING)


# --- what is due ---------------------------------------------------------------------------------------------------


def test_every_timer_of_seconds_tells_its_due_times() -> None:
    """All but those that look into a folder: these would be woken every second for nothing."""
    frequent = {name for name, timer in registry.TIMERS.items() if timer.every_s <= 10}
    assert frequent - TELLING == {"bank inbox", "settlement folder"}


def test_what_is_woken_each_minute_without_a_look_is_known() -> None:
    """Each is a wake-up of a worker that mostly finds nothing. A new timer tells its due times, or stands here."""
    frequent = {name for name, timer in registry.TIMERS.items() if timer.every_s <= 60}
    assert frequent - TELLING == {
        "bank inbox", "payment archive", "reconciliation files", "self-test", "settlement folder",
    }  # fmt: skip


def test_an_idle_installation_wakes_few_timers(shop: Shop) -> None:
    """In ten minutes each once, and those that cannot tell at their intervals. One of these comes each minute: by that
    the doctor and an alarm know whether beat and worker are alive."""
    looks, intervals = Looks(), {name: timer.every_s for name, timer in registry.TIMERS.items()}
    for _ in range(60):
        looks.after(1, intervals)
    woken = [name for _ in range(600) for name in looks.after(1, intervals)]
    often = {name: woken.count(name) for name in woken if woken.count(name) > 1}
    assert often == {"reconciliation files": 10, "self-test": 10, "payment page": 2, "retry outcomes": 2}
    assert len(set(woken)) < len(registry.TIMERS)


def test_nothing_is_due_where_nothing_was_done(shop: Shop) -> None:
    assert due() == set()


def test_only_the_timers_that_are_asked_about_are_told(shop: Shop) -> None:
    payment = Payment.objects.get(pk=shop.api.pay().id)
    OpenPayment.objects.create(payment=payment, recover_at=clock.real_now() - timedelta(seconds=1))
    assert due_times.find_due_timers({"recovery"}) == {"recovery"}
    assert due_times.find_due_timers({"jobs", "webhooks"}) == {"webhooks"}
    assert due_times.find_due_timers(set()) == set()


def test_a_payment_in_doubt_is_due_when_its_inquiry_is(shop: Shop) -> None:
    """By real time: a merchant's clock has no effect on an acquirer."""
    payment = Payment.objects.get(pk=shop.api.pay().id)
    row = OpenPayment.objects.create(payment=payment, recover_at=clock.real_now() + timedelta(hours=1))
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=timedelta(days=1))
    assert "recovery" not in due()
    OpenPayment.objects.filter(pk=row.pk).update(recover_at=clock.real_now() - timedelta(seconds=1))
    assert "recovery" in due()


def test_what_was_left_of_an_authorization_is_due_when_its_release_is(shop: Shop) -> None:
    payment = Payment.objects.get(pk=shop.api.pay(paymentType="PA").id)
    AuthorizationRelease.objects.create(
        authorization=payment.pk,
        merchant=shop.merchant,
        channel=shop.channel,
        currency="EUR",
        cause=AuthorizationRelease.Cause.FINAL,
        created_at=clock.real_now(),
        due_at=clock.real_now() + timedelta(hours=1),
    )
    assert "authorization releases" not in due()
    AuthorizationRelease.objects.update(due_at=clock.real_now() - timedelta(seconds=1))
    assert "authorization releases" in due()


def test_a_notification_is_due_until_it_was_fanned_out(shop: Shop) -> None:
    assert shop.api.pay().status == 200
    assert "webhooks" in due()
    registry.run_timer_now("webhooks")
    FanOutPosition.objects.update(gaps=[])  # of numbers that other tests took and gave back
    assert "webhooks" not in due()


def test_a_job_is_due_when_the_clock_of_its_merchant_was_moved(shop: Shop, stranger: Shop) -> None:
    """The look that follows the move sees it; when the work is done it is due no more."""
    assert started(shop.api, store_card(shop.api)).status == 200
    assert "jobs" not in due()
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=timedelta(days=400))
    assert "jobs" in due()


def test_a_checkout_that_a_shopper_paid_is_due_for_its_result_call(shop: Shop) -> None:
    browser = open_checkout(shop.api, shopperResultUrl="https://shop.example/result")
    assert browser.pay().status == 200
    assert "result calls" not in due()
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=timedelta(minutes=29, seconds=5))
    assert "result calls" in due()


def test_background_work_is_due_while_no_worker_has_it(shop: Shop, django_user_model: type) -> None:
    owner = django_user_model.objects.create(username="clerk")  # type: ignore[attr-defined]
    asked = {"kind": "none", "title": "x", "owner": owner, "parameters": {}, "asked_at": clock.real_now()}
    BackgroundWork.objects.create(**asked)
    assert "background work" in due()
    BackgroundWork.objects.update(lease_until=clock.real_now() + timedelta(seconds=60))
    assert "background work" not in due()


LONG_AGO = timedelta(days=1_500)


def age(model: type[Model], column: str) -> None:
    """Let the rows of a table be so old that each is deleted."""
    model._default_manager.update(**{column: clock.real_now() - LONG_AGO})


def make_release(shop: Shop) -> None:
    AuthorizationRelease.objects.create(
        authorization=Payment.objects.get(pk=shop.api.pay(paymentType="PA").id).pk,
        merchant=shop.merchant,
        channel=shop.channel,
        currency="EUR",
        cause=AuthorizationRelease.Cause.FINAL,
        created_at=clock.real_now(),
        ended_at=clock.real_now(),
    )


def make_key(shop: Shop) -> None:
    assert shop.api.post("/v1/payments", payment(), Idempotency_Key="one").status == 200


def make_checkout(shop: Shop) -> None:
    open_checkout(shop.api)


def make_event(shop: Shop) -> None:
    account = AcquirerAccount.objects.create(channel=shop.channel, connector="acme", acquirer_merchant_id="one")
    now = clock.real_now()
    ProcessorEvent.objects.create(
        account=account, event_id="one", kind="x", object_id="x", state="done", due_at=now, created_at=now, done_at=now
    )


def make_token_use(shop: Shop) -> None:
    UsedWalletToken.objects.create(
        merchant=shop.merchant,
        digest=b"1" * 32,
        payment=uuid4(),
        seen_at=clock.real_now(),
        until=clock.real_now() + timedelta(days=1),
    )


@pytest.mark.parametrize(
    ("timer", "make", "model", "column"),
    [
        ("authorization releases, old", make_release, AuthorizationRelease, "ended_at"),
        ("idempotency keys", make_key, IdempotencyKey, "created_at"),
        ("wallet tokens", make_token_use, UsedWalletToken, "until"),
        ("checkout expiry", make_checkout, Checkout, "expires_at"),
        ("processor events, old", make_event, ProcessorEvent, "done_at"),
    ],
)
def test_what_is_deleted_when_it_is_old_is_due_then(
    shop: Shop, timer: str, make: Callable[[Shop], Any], model: type[Model], column: str
) -> None:
    """Not before, and no more when a run has deleted it."""
    make(shop)
    assert timer not in due()
    age(model, column)
    assert timer in due()
    assert registry.run_timer_now(timer)
    for _ in range(3):
        registry.run_timer_now(timer)
    assert timer not in due()


def make_window(shop: Shop) -> None:
    ThrottleWindow.objects.create(
        entity_id=shop.channel.pk, operation="payment", window_s=60, window=clock.real_now().timestamp() // 60, count=1
    )


def make_count(shop: Shop) -> None:
    CardTestingCount.objects.create(
        merchant_id=shop.merchant.pk,
        kind="bin",
        key=b"1",
        bucket=1,
        shard=0,
        failed=1,
        passed=0,
        at=clock.real_now(),
    )


def make_observation(shop: Shop) -> None:
    RiskObservation.objects.create(
        merchant_id=shop.merchant.pk, key=b"1", at=clock.real_now(), payment=uuid4(), amount="1.00", currency="EUR"
    )


def make_move(shop: Shop) -> None:
    ClerkLimitUsage.objects.create(
        payment=uuid4(), user=1, merchant_id=shop.merchant.pk, amount="1.00", currency="EUR", at=clock.real_now()
    )


@pytest.mark.parametrize(
    ("timer", "make", "model", "old"),
    [
        ("throttle windows", make_window, ThrottleWindow, {"window": 1}),
        ("card testing", make_count, CardTestingCount, {"at": clock.real_now() - LONG_AGO}),
        ("risk observations", make_observation, RiskObservation, {"at": clock.real_now() - LONG_AGO}),
        ("approvals", make_move, ClerkLimitUsage, {"at": clock.real_now() - LONG_AGO}),
    ],
)
def test_what_no_index_has_by_age_is_due_while_there_is_any(
    shop: Shop, timer: str, make: Callable[[Shop], None], model: type[Model], old: dict[str, Any]
) -> None:
    """It is woken at its interval then, and no more when nothing is left."""
    model._default_manager.all().delete()
    assert timer not in due()
    make(shop)
    assert timer in due()
    registry.run_timer_now(timer)
    assert timer in due()
    model._default_manager.update(**old)
    registry.run_timer_now(timer)
    assert timer not in due()


def test_a_clock_that_is_ahead_makes_no_webhook_of_others_late(shop: Shop, stranger: Shop) -> None:
    """How long a queue has waited is an alarm."""
    now = clock.real_now()
    waiting = WebhookDelivery.objects.create(
        endpoint_id=uuid4(), merchant=shop.merchant, kind="test", action="", body="{}", due_at=now,
        give_up_at=now + timedelta(days=30), created_at=now,
    )  # fmt: skip
    assert "webhook sweep" not in due()
    Merchant.objects.filter(pk=stranger.merchant.pk).update(clock_offset=timedelta(days=400))
    assert "webhook sweep" in due()
    age = due_times.measure_queue_ages()["webhook sweep"]
    assert age is not None
    assert age < timedelta(minutes=1)
    WebhookDelivery.objects.filter(pk=waiting.pk).update(give_up_at=now + timedelta(days=401))
    assert "webhook sweep" not in due()


def test_no_look_reads_a_large_table_from_end_to_end() -> None:
    """It is made every second, whatever the tables hold."""
    asked = [timer for timer in registry.TIMERS.values() if timer.earliest_due]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        statement = due_times._build_statement(asked)
        cursor.execute(f"EXPLAIN {statement}", {"wanted": [True] * len(asked)})
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert set(re.findall(r"Seq Scan on (\w+)", plan)) <= SMALL_TABLES, plan


# --- who is woken --------------------------------------------------------------------------------------------------


class Looks:
    """Looks on a clock of the test's own."""

    def __init__(self) -> None:
        self.at = 1_000.0
        self.looks = due_times.DueLooks(lambda: self.at)

    def after(self, seconds: float, intervals: dict[str, float]) -> set[str]:
        self.at += seconds
        return set(self.looks.choose_timers(intervals))


@pytest.fixture
def folders(settings: Settings, tmp_path: Path) -> None:
    """Both watched folders are set, and payments are archived."""
    settings.GATEWAY_SEPA_INBOX = settings.GATEWAY_SETTLEMENT_FOLDER = str(tmp_path)
    settings.GATEWAY_PAYMENT_HOT_DAYS = 1_095


@pytest.mark.usefixtures("folders")
def test_a_start_wakes_the_timers_in_turn_and_each_within_a_minute(shop: Shop) -> None:
    """Fifty at once would need fifty connections."""
    looks, intervals = Looks(), {name: timer.every_s for name, timer in registry.TIMERS.items()}
    woken: set[str] = set()
    for _ in range(60):
        found = looks.after(1, intervals)
        assert len(found) <= due_times.MAX_ROUTINE_TICKS_PER_LOOK
        woken |= found
    assert woken == set(registry.TIMERS)


def test_one_with_nothing_due_is_woken_every_ten_minutes_and_one_with_something_at_its_interval(shop: Shop) -> None:
    looks, intervals = Looks(), {"recovery": 5.0}
    assert looks.after(0, intervals) == {"recovery"}
    assert not any(looks.after(1, intervals) for _ in range(599))
    assert looks.after(1, intervals) == {"recovery"}
    payment = Payment.objects.get(pk=shop.api.pay().id)
    OpenPayment.objects.create(payment=payment, recover_at=clock.real_now() - timedelta(seconds=1))
    assert [bool(looks.after(1, intervals)) for _ in range(6)] == [False] * 4 + [True, False]


@pytest.mark.usefixtures("folders")
def test_one_that_cannot_tell_is_woken_at_its_interval() -> None:
    looks, intervals = Looks(), {"bank inbox": 10.0}
    assert [bool(looks.after(5, intervals)) for _ in range(5)] == [True, False, True, False, True]


@pytest.mark.parametrize(
    ("name", "setting", "off", "on"),
    [
        ("bank inbox", "GATEWAY_SEPA_INBOX", "", "folder"),
        ("settlement folder", "GATEWAY_SETTLEMENT_FOLDER", "", "folder"),
        ("payment archive", "GATEWAY_PAYMENT_HOT_DAYS", 0, 1_095),
    ],
)
def test_what_is_not_set_is_not_looked_into(settings: Settings, name: str, setting: str, off: Any, on: Any) -> None:
    looks = Looks()
    setattr(settings, setting, off)
    assert not any(looks.after(60, {name: 10.0}) for _ in range(3))
    setattr(settings, setting, on)
    assert looks.after(1, {name: 10.0}) == {name}


def test_a_timer_that_is_off_is_not_late(settings: Settings, tmp_path: Path) -> None:
    TimerRun.objects.create(name="bank inbox", last_at=clock.real_now() - timedelta(days=1), last_ms=1)
    late = [f'tollhouse_timer_lag_seconds{{timer="bank inbox"}} {value}' for value in ("0.0", "86")]
    for folder, expected in (("", late[0]), (str(tmp_path), late[1])):
        settings.GATEWAY_SEPA_INBOX = folder
        assert expected in metrics.render_metrics().decode()


def test_what_is_no_timer_is_not_woken() -> None:
    assert Looks().after(0, {"a timer of an older release": 1.0}) == set()


# --- beat ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The timers that were sent since the last call, from a broker in memory."""

    def take() -> list[str]:
        found = []
        with Connection("memory://") as line:
            queue = line.SimpleQueue(current_app.conf.task_default_queue)
            while queue.qsize():
                message = queue.get(block=False)
                message.ack()
                found.append(message.payload[0][0])
        return found

    take()
    return take


def scheduler() -> beat.TimerScheduler:
    made = beat.TimerScheduler(app=current_app._get_current_object(), lazy=False)
    made._looked_for_due = float("-inf")
    return made


@pytest.mark.django_db(transaction=True)
def test_beat_sends_what_is_due_and_of_the_rest_a_few(committed: Shop, sent: Callable[[], list[str]]) -> None:
    payment = Payment.objects.get(pk=committed.api.pay().id)
    OpenPayment.objects.create(payment=payment, recover_at=clock.real_now() - timedelta(seconds=1))
    made = scheduler()
    assert 0 < made.tick() <= due_times.DUE_LOOK_INTERVAL_S
    first = sent()
    assert {"recovery", "webhooks"} <= set(first)
    assert len(first) == 2 + due_times.MAX_ROUTINE_TICKS_PER_LOOK
    made.tick()
    assert sent() == []


@pytest.mark.django_db(transaction=True)
def test_two_beats_send_both(committed: Shop, sent: Callable[[], list[str]]) -> None:
    """A row is claimed by one; a beat that dies leaves the other one's ticks."""
    payment = Payment.objects.get(pk=committed.api.pay().id)
    OpenPayment.objects.create(payment=payment, recover_at=clock.real_now() - timedelta(seconds=1))
    one, two = scheduler(), scheduler()
    one.tick()
    two.tick()
    assert sent().count("recovery") == 2


@pytest.mark.django_db(transaction=True)
def test_a_tick_that_was_switched_off_is_not_sent(committed: Shop, sent: Callable[[], list[str]]) -> None:
    """In the back office."""
    assert committed.api.pay().status == 200
    beat.sync_periodic_tasks()
    PeriodicTask.objects.filter(name="webhooks").update(enabled=False)
    scheduler().tick()
    assert "webhooks" not in sent()


@pytest.mark.django_db(transaction=True)
def test_a_tick_at_another_interval_of_the_back_office_comes_no_more_often(committed: Shop) -> None:
    beat.sync_periodic_tasks()
    slower = IntervalSchedule.objects.create(every=90, period=IntervalSchedule.SECONDS)
    PeriodicTask.objects.filter(name="recovery").update(interval=slower)
    entry = scheduler().schedule["recovery"]
    assert beat.is_timer_tick(entry)
    assert entry.schedule.run_every.total_seconds() == 90
    assert not entry.is_due().is_due


@pytest.mark.django_db(transaction=True)
def test_tasks_of_others_are_sent_by_their_own_schedule(committed: Shop) -> None:
    every = IntervalSchedule.objects.create(every=1, period=IntervalSchedule.SECONDS)
    PeriodicTask.objects.create(name="own", task="shop.tasks.own", interval=every)
    entry = scheduler().schedule["own"]
    assert not beat.is_timer_tick(entry)
    entry.last_run_at -= timedelta(seconds=5)
    assert entry.is_due().is_due


@pytest.mark.django_db(transaction=True)
def test_a_beat_that_starts_or_goes_on_while_the_database_is_away_waits_for_it(
    committed: Shop, sent: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A beat that was started while a standby was promoted died; so did one that read all rows anew at that moment."""
    payment = Payment.objects.get(pk=committed.api.pay().id)
    OpenPayment.objects.create(payment=payment, recover_at=clock.real_now() - timedelta(seconds=1))
    PeriodicTask.objects.all().delete()

    def away(*args: Any) -> Any:
        raise OperationalError("away")

    with monkeypatch.context() as patch:
        connection.close()
        patch.setattr(type(connections["default"]), "get_new_connection", away)
        made = scheduler()
        made.tick()
    assert sent() == []
    made._looked = made._looked_for_due = float("-inf")
    made.tick()
    assert {"recovery", "webhooks"} <= set(sent())

    with monkeypatch.context() as patch:
        connection.close()
        patch.setattr(type(connections["default"]), "get_new_connection", away)
        made._last_full_sync -= timedelta(days=1)
        made._looked = float("-inf")
        assert set(made.schedule) == set(registry.TIMERS)
    PeriodicTask.objects.filter(name="recovery").update(enabled=False)
    made._looked = float("-inf")
    assert set(made.schedule) == set(registry.TIMERS) - {"recovery"}
