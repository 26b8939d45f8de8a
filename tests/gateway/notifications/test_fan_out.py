"""Each notification becomes one delivery for each endpoint, once, whoever else writes at the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from psycopg import connect

from gateway.core import clock
from gateway.models import FanOutPosition, Notification, WebhookDelivery
from gateway.notifications import claims
from gateway.notifications import fan_out as module
from gateway.notifications.fan_out import SequenceGap, fan_out_notifications
from gateway.payments import webhook_payloads
from tests.support.database import statements, until_somebody_waits_for_a_lock
from tests.support.fixtures import Shop
from tests.support.threads import PATIENCE_S, at_once
from tests.support.webhook_delivery import deliver, messages, register
from tests.support.webhooks import hooked


def hand_on() -> int:
    return fan_out_notifications(webhook_payloads.build_webhook_payloads)


def told() -> int:
    return WebhookDelivery.objects.exclude(kind="test").count()


def test_a_payment_writes_nothing_more_when_there_are_endpoints(shop: Shop) -> None:
    shop.api.pay()
    with statements() as before:
        shop.api.pay()
    with hooked() as hook:
        register(shop, hook)
        with statements() as after:
            shop.api.pay()
    assert (len(after), after.commits) == (len(before), before.commits)


def test_nothing_to_hand_on_costs_one_statement(shop: Shop) -> None:
    shop.api.pay()
    while hand_on() or gaps():
        clean_gaps()
    with statements() as seen:
        assert hand_on() == 0
    assert len(seen) == 1


def gaps() -> list[dict[str, object]]:
    found = FanOutPosition.objects.get().gaps
    assert isinstance(found, list)
    return found


def clean_gaps() -> None:
    """Numbers that tests before this one drew and gave back."""
    FanOutPosition.objects.update(gaps=[])


def test_what_was_written_before_the_row_of_the_position_is_handed_on(shop: Shop) -> None:
    with hooked() as hook:
        register(shop, hook)
        FanOutPosition.objects.all().delete()
        shop.api.pay()
        shop.api.pay()
        assert hand_on() == 2
    assert told() == 2


def test_batches_follow_each_other(shop: Shop) -> None:
    with hooked() as hook:
        register(shop, hook)
        for _ in range(5):
            shop.api.pay()
        assert [fan_out_notifications(webhook_payloads.build_webhook_payloads, limit=2) for _ in range(4)] == [
            2,
            2,
            1,
            0,
        ]
    assert told() == 5


def test_a_number_whose_transaction_ends_later_is_not_lost(committed: Shop) -> None:
    """Numbers are given in order, but transactions end as they like."""
    with hooked() as hook:
        _, secret = register(committed, hook)
        first = committed.api.pay()
        hand_on()
        clean_gaps()
        row = Notification.objects.order_by("-pk").values().first()
        assert row is not None
        with connect(**_where()) as slow:
            slow.execute(
                "INSERT INTO gateway_notification"
                " (merchant_id, channel_id, kind, action, payment_id, sequence, created_at)"
                " VALUES (%s, %s, 'PAYMENT', 'UPDATED', %s, 9, %s)",
                (row["merchant_id"], row["channel_id"], row["payment_id"], clock.real_now()),
            )
            later = committed.api.pay()
            assert hand_on() == 1
            (gap,) = gaps()
            assert gap["first"] == gap["last"]
            assert hand_on() == 0
            # However long it takes: its transaction is still open.
            FanOutPosition.objects.update(gaps=[{**gap, "at": "2020-01-01T00:00:00+00:00"}])
            assert hand_on() == 0
            assert len(gaps()) == 1
            slow.commit()
        assert hand_on() == 1
        assert gaps() == []
        deliver()
        ids = [(message["payload"]["id"], message["payload"]["sequence"]) for message in messages(hook, secret)]
    assert sorted(ids) == sorted([(first.id, 2), (first.id, 9), (later.id, 2)])


def _after(fragment: str, step: Callable[[], object]) -> Callable[..., object]:
    """An execute wrapper: ``step`` once, after the first statement that contains ``fragment``."""
    pending = [step]

    def wrapper(execute: Callable[..., object], sql: str, params: object, many: bool, context: object) -> object:
        result = execute(sql, params, many, context)
        if fragment in sql and pending:
            pending.pop()()
        return result

    return wrapper


def test_a_number_of_a_transaction_that_began_while_the_rows_were_read_is_not_lost(committed: Shop) -> None:
    """The horizon of a gap is that of the reading that missed the number, not of one before it."""
    with hooked() as hook:
        register(committed, hook)
        committed.api.pay()
        hand_on()
        clean_gaps()
        committed.api.pay()
        row = Notification.objects.order_by("-pk").values().first()
        assert row is not None
        insert = (
            "INSERT INTO gateway_notification"
            " (merchant_id, channel_id, kind, action, payment_id, sequence, created_at)"
            " VALUES (%s, %s, 'PAYMENT', 'UPDATED', %s, %s, %s)"
        )
        mine = (row["merchant_id"], row["channel_id"], row["payment_id"])
        with connect(**_where()) as slow, connect(**_where(), autocommit=True) as fast:

            def meanwhile() -> None:
                slow.execute(insert, (*mine, 8, clock.real_now()))
                fast.execute(insert, (*mine, 9, clock.real_now()))

            with connection.execute_wrapper(_after("pg_current_snapshot", meanwhile)):
                assert hand_on() == 2
            (gap,) = gaps()
            FanOutPosition.objects.update(gaps=[{**gap, "at": "2020-01-01T00:00:00+00:00"}])
            assert hand_on() == 0
            assert len(gaps()) == 1
            slow.commit()
        assert hand_on() == 1


def test_an_endpoint_that_was_switched_off_meanwhile_gets_no_delivery(committed: Shop) -> None:
    """It would wait for up to 30 days, and be sent when the endpoint is switched on again."""
    with hooked() as hook:
        endpoint, _ = register(committed, hook)
        committed.api.pay()

        def switch_off() -> None:
            with connect(**_where(), autocommit=True) as other:
                other.execute("UPDATE gateway_webhookendpoint SET state = 'off' WHERE id = %s", (endpoint.pk,))

        with connection.execute_wrapper(_after('FROM "gateway_webhookendpoint"', switch_off)):
            assert hand_on() == 1
    assert told() == 0


def test_an_endpoint_that_is_switched_off_waits_for_the_deliveries_and_cancels_them(committed: Shop) -> None:
    with hooked() as hook:
        endpoint, _ = register(committed, hook)
        committed.api.pay()
        off: list[threading.Thread] = []

        def switch_off() -> None:
            def body() -> None:
                claims.disable_endpoint(endpoint.pk, "gone", clock.real_now())
                connection.close()

            off.append(threading.Thread(target=body))
            off[0].start()
            until_somebody_waits_for_a_lock()

        with connection.execute_wrapper(_after("INSERT INTO gateway_webhookdelivery", switch_off)):
            assert hand_on() == 1
        off[0].join(PATIENCE_S)
    assert [*WebhookDelivery.objects.exclude(kind="test").values_list("state", flat=True)] == ["cancelled"]


def test_a_number_that_was_given_back_is_forgotten(committed: Shop) -> None:
    committed.api.pay()
    hand_on()
    clean_gaps()
    with connect(**_where()) as undone:
        undone.execute("SELECT nextval('gateway_notification_id_seq'), nextval('gateway_notification_id_seq')")
        undone.rollback()
    committed.api.pay()
    assert hand_on() == 1
    (gap,) = gaps()
    FanOutPosition.objects.update(gaps=[{**gap, "at": "2020-01-01T00:00:00+00:00"}])
    # Whoever else writes in this PostgreSQL, other tests among them, has to have ended what was open then.
    deadline = time.monotonic() + PATIENCE_S
    while gaps() and time.monotonic() < deadline:
        assert hand_on() == 0
    assert gaps() == []
    committed.api.pay()
    assert hand_on() == 1


def test_of_a_gap_only_what_is_still_missing_is_remembered() -> None:
    gap = SequenceGap(first=5, last=9, xid=100, at="2026-01-01T00:00:00+00:00")
    left = module._drop_filled_gaps([gap], [6, 9], 99, clock.real_now())
    assert [(one.first, one.last) for one in left] == [(5, 5), (7, 8)]
    assert module._drop_filled_gaps([gap], [], 100, clock.real_now()) == []
    missing = module._find_gaps(3, [4, 7, 8, 10], 50, clock.real_now())
    assert [(one.first, one.last, one.xid) for one in missing] == [(5, 6, 50), (9, 9, 50)]


@pytest.mark.parametrize(
    ("xmin", "age_ms", "permanent"),
    [(100, 2_000, True), (100, 1_999, False), (99, 2_000, False), (101, 60_000, True), (99, 86_400_000, False)],
)
def test_a_gap_is_permanent_once_it_is_two_seconds_old_and_what_was_open_then_has_ended(
    xmin: int, age_ms: int, permanent: bool
) -> None:
    """A number may be reserved a moment before its transaction has an id, so its end alone does not tell."""
    now = clock.real_now()
    gap = SequenceGap(first=5, last=9, xid=100, at=(now - timedelta(milliseconds=age_ms)).isoformat())
    assert gap.is_permanent(xmin, now) == permanent
    assert (module._drop_filled_gaps([gap], [], xmin, now) == []) == permanent


def test_workers_at_once_hand_each_event_on_once(committed: Shop) -> None:
    with hooked() as hook:
        register(committed, hook)
    for _ in range(10):
        committed.api.pay()
    clean_gaps()
    handed = at_once(*[hand_on] * 4)
    assert sum(handed) == 10
    assert told() == 10


def test_one_event_that_cannot_be_told_does_not_hold_back_the_others(shop: Shop) -> None:
    with hooked() as hook:
        _, secret = register(shop, hook)
        broken, fine = shop.api.pay(), shop.api.pay()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("UPDATE gateway_payment SET answer = '[]' WHERE id = %s", (broken.id,))
        deliver()
        assert [message["payload"]["id"] for message in messages(hook, secret)] == [fine.id]


def test_one_delivery_that_cannot_be_kept_does_not_hold_back_the_others(shop: Shop) -> None:
    """One row that the database refuses fails the statement that all of them share."""
    with hooked() as hook:
        endpoint, _ = register(shop, hook)
        for _ in range(3):
            shop.api.pay()
        rows = [module.build_delivery_row(one, endpoint, body="{}") for one in Notification.objects.order_by("pk")]
        rows[1]["url"] = "http://shop.example/" + "x" * 4_000
        assert module.insert_deliveries(rows) == 2
    kept = WebhookDelivery.objects.exclude(kind="test").values_list("notification", flat=True)
    assert set(kept) == {rows[0]["notification"], rows[2]["notification"]}


def _where() -> dict[str, Any]:
    about = connection.get_connection_params()
    return {name: about[name] for name in ("host", "port", "user", "password", "dbname") if about.get(name)}
