"""Which deliveries are leased, and what an attempt's result changes: each condition of these statements by itself.

Source: decisions, section 6; docs/webhooks.md.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.test import override_settings

from gateway.core import clock, identifiers
from gateway.core.secret import Secret
from gateway.db.statement import execute_sql
from gateway.models import InspectedWebhook, Merchant, WebhookAttempt, WebhookDelivery, WebhookEndpoint
from gateway.notifications import claims, delivery, inspector, replay, retention, retry_schedule
from gateway.notifications.claims import DueWebhook, MerchantShares, WebhookAttemptResult
from gateway.notifications.inspector import InspectedMessage
from gateway.notifications.replay import ReplaySelection
from gateway.outbound import CallFailure, CallOutcome
from gateway.payments.webhook_payloads import SWEEP_TIMER
from gateway.timers import due_times
from gateway.vault.sealing import current_vault
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
WELL, BAD = CallOutcome(status=200, body=b"ok"), CallOutcome(status=500, body=b"no")


def make_endpoint(shop: Shop, **values: Any) -> WebhookEndpoint:
    ident = identifiers.row_id()
    return WebhookEndpoint.objects.create(
        **{
            "id": ident,
            "merchant": shop.merchant,
            "url": f"https://shop.example/{ident.hex}",
            "kinds": ["PAYMENT"],
            "state": "active",
            "secret_sealed": current_vault().seal(Secret("11" * 32), ident),
            **values,
        }
    )


def make_delivery(endpoint: WebhookEndpoint, due: timedelta = -SECOND, **values: Any) -> WebhookDelivery:
    now = clock.merchant_now(endpoint.merchant)
    return WebhookDelivery.objects.create(
        **{
            "endpoint": endpoint,
            "merchant": endpoint.merchant,
            "kind": "PAYMENT",
            "action": "CREATED",
            "body": "{}",
            "due_at": now + due,
            "created_at": now + due,
            "give_up_at": now + retry_schedule.WEBHOOK_GIVE_UP_AFTER,
            **values,
        }
    )


def set_clock(shop: Shop, offset: timedelta) -> None:
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=offset)
    shop.merchant.clock_offset = offset


def claim(room: int = 100, busy: dict[UUID, int] | None = None, merchant: Merchant | None = None) -> list[DueWebhook]:
    return claims.claim_due_webhooks(busy or {}, room=room, limit=100, merchant=merchant)


def claimed(**values: Any) -> set[UUID]:
    return {one.id for one in claim(**values)}


# --- which are leased -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [timedelta(0), 5 * HOUR, -5 * HOUR])
def test_a_delivery_is_due_by_its_merchants_clock(shop: Shop, offset: timedelta) -> None:
    set_clock(shop, offset)
    row = make_endpoint(shop)
    past, _later = make_delivery(row), make_delivery(row, HOUR)
    assert claimed() == {past.pk}
    assert claimed() == set(), "it is leased"


@pytest.mark.parametrize("offset", [timedelta(0), 5 * HOUR, -5 * HOUR])
@pytest.mark.parametrize(("probe", "number"), [(-SECOND, 1), (HOUR, 0), (None, 0)])
def test_a_paused_endpoint_is_probed_by_one_when_its_probe_is_due(
    shop: Shop, offset: timedelta, probe: timedelta | None, number: int
) -> None:
    set_clock(shop, offset)
    at = clock.merchant_now(shop.merchant) + probe if probe is not None else None
    row = make_endpoint(shop, state="paused", probe_at=at)
    for _ in range(3):
        make_delivery(row)
    assert len(claimed()) == number


@pytest.mark.parametrize("state", ["inactive", "off"])
def test_an_endpoint_that_receives_nothing_is_sent_nothing(shop: Shop, state: str) -> None:
    make_delivery(make_endpoint(shop, state=state))
    assert claimed() == set()


@pytest.mark.parametrize(
    ("failures", "mode", "number"),
    [
        (claims.MAX_HEALTHY_FAILURES - 1, "encrypted", 4),
        (claims.MAX_HEALTHY_FAILURES, "encrypted", 1),
        (claims.MAX_HEALTHY_FAILURES, "signed", 1),
        (claims.MAX_HEALTHY_FAILURES, "return", 4),
    ],
)
def test_an_endpoint_that_fails_gets_one_at_a_time(shop: Shop, failures: int, mode: str, number: int) -> None:
    row = make_endpoint(shop, failures=failures, mode=mode)
    for _ in range(4):
        make_delivery(row)
    assert len(claimed()) == number


@pytest.mark.parametrize(("busy", "number"), [(0, 3), (1, 2), (2, 1), (3, 0), (9, 0)])
def test_what_a_process_holds_already_takes_room(shop: Shop, busy: int, number: int) -> None:
    row = make_endpoint(shop)
    for _ in range(4):
        make_delivery(row)
    assert len(claimed(room=3, busy={row.pk: busy})) == number


def test_one_that_fails_and_is_busy_gets_no_second(shop: Shop) -> None:
    row = make_endpoint(shop, failures=claims.MAX_HEALTHY_FAILURES)
    make_delivery(row)
    assert claimed(busy={row.pk: 1}) == set()


@pytest.mark.parametrize(("share", "numbers"), [(9, [1, 2, 4]), (2, [1, 1]), (0, [])])
def test_a_merchant_gets_its_share_and_leaves_the_others_theirs(
    shop: Shop, stranger: Shop, share: int, numbers: list[int]
) -> None:
    """docs/decisions/0168: each endpoint has one, the first half of the rest, the next one a quarter."""
    for row in [make_endpoint(shop) for _ in range(3)] + [make_endpoint(stranger)]:
        for _ in range(10):
            make_delivery(row)
    shares = MerchantShares(other=16, known={shop.merchant.pk: share})
    found = claims.claim_due_webhooks({}, room=100, limit=100, shares=shares)
    counted = Counter((one.merchant, one.endpoint) for one in found)
    assert sorted(number for (whose, _), number in counted.items() if whose == shop.merchant.pk) == numbers
    assert sum(one.merchant == stranger.merchant.pk for one in found) == 8


def test_a_merchant_with_many_endpoints_gets_no_more_than_its_share_and_each_has_its_turn(shop: Shop) -> None:
    """One of each, whatever the share, was more than all that was free: three merchants with fifty had everything."""
    rows = [make_endpoint(shop) for _ in range(12)]
    for row in rows:
        make_delivery(row)
        make_delivery(row)
    found = claims.claim_due_webhooks({}, room=100, limit=100, shares=MerchantShares(other=13))
    assert Counter(Counter(one.endpoint for one in found).values()) == {1: 12}
    busy = {row.pk: 100 for row in rows[:6]}
    turns = [claims.claim_due_webhooks(busy, room=100, limit=100, shares=MerchantShares(other=4)) for _ in range(2)]
    assert [len({one.endpoint for one in turn}) for turn in turns] == [4, 2]
    assert {one.endpoint for turn in turns for one in turn} == {row.pk for row in rows[6:]}, (
        "the busy ones have no turn"
    )


def test_the_earliest_ones_come_first(shop: Shop) -> None:
    row = make_endpoint(shop)
    rows = {back: make_delivery(row, -HOUR * back) for back in (1, 3, 2, 5, 4)}
    assert claimed(room=2) == {rows[5].pk, rows[4].pk}
    assert claimed(room=2) == {rows[3].pk, rows[2].pk}


def test_of_one_merchant_only_its_own_are_leased(shop: Shop, stranger: Shop) -> None:
    mine, theirs = make_delivery(make_endpoint(shop)), make_delivery(make_endpoint(stranger))
    assert claimed(merchant=shop.merchant) == {mine.pk}
    assert claimed() == {theirs.pk}


def test_a_delivery_with_its_own_address_goes_there(shop: Shop) -> None:
    row = make_endpoint(shop, mode="return")
    make_delivery(row, url="https://shop.example/own?id=1")
    plain = make_endpoint(shop)
    make_delivery(plain)
    assert {one.url for one in claim()} == {"https://shop.example/own?id=1", plain.url}


@pytest.mark.parametrize(("until", "honoured"), [(HOUR, True), (-SECOND, False)])
def test_the_previous_secret_is_used_until_its_overlap_ends(shop: Shop, until: timedelta, honoured: bool) -> None:
    """In real time, whatever the merchant's clock says."""
    set_clock(shop, 5 * HOUR)
    row = make_endpoint(shop, previous_until=clock.real_now() + until)
    WebhookEndpoint.objects.filter(pk=row.pk).update(previous_sealed=current_vault().seal(Secret("22" * 32), row.pk))
    make_delivery(row)
    (due,) = claim()
    assert due.keys is not None
    assert (due.keys.previous is not None) is honoured
    assert due.keys.current.reveal() == bytes.fromhex("11" * 32)


# --- what a result changes --------------------------------------------------------------------------------------------


def record(*results: tuple[DueWebhook, CallOutcome | None]) -> int:
    now = clock.real_now()
    return claims.record_webhook_attempts(
        [
            WebhookAttemptResult(due=due, at=now + SECOND * at, outcome=outcome)
            for at, (due, outcome) in enumerate(results)
        ]
    )


def test_a_result_of_a_lease_that_was_lost_changes_nothing_but_is_kept(shop: Shop) -> None:
    row = make_delivery(make_endpoint(shop))
    (lost,) = claim()
    WebhookDelivery.objects.filter(pk=row.pk).update(lease=None, lease_until=None)
    (due,) = claim()
    assert record((lost, WELL)) == 0
    row.refresh_from_db()
    assert (row.state, row.lease) == ("waiting", due.lease)
    assert WebhookAttempt.objects.filter(delivery=row).count() == 1


def test_a_result_of_a_delivery_that_was_cancelled_meanwhile_leaves_it_cancelled(shop: Shop) -> None:
    row = make_delivery(make_endpoint(shop))
    (due,) = claim()
    WebhookDelivery.objects.filter(pk=row.pk).update(state="cancelled")
    assert record((due, WELL)) == 0
    row.refresh_from_db()
    assert row.state == "cancelled"


@pytest.mark.parametrize("offset", [timedelta(0), 5 * HOUR, -5 * HOUR])
@pytest.mark.parametrize(
    ("outcome", "state", "attempts", "kept"),
    [(WELL, "delivered", 1, 1), (BAD, "waiting", 1, 1), (None, "waiting", 0, 0)],
)
def test_a_result_has_its_moment_on_the_merchants_clock(
    shop: Shop, offset: timedelta, outcome: CallOutcome | None, state: str, attempts: int, kept: int
) -> None:
    set_clock(shop, offset)
    row = make_delivery(make_endpoint(shop))
    before = clock.merchant_now(shop.merchant)
    (due,) = claim()
    assert record((due, outcome)) == 1
    row.refresh_from_db()
    assert (row.state, row.attempts, row.lease, row.lease_until) == (state, attempts, None, None)
    tried = list(WebhookAttempt.objects.filter(delivery=row))
    assert len(tried) == kept
    assert all(before <= one.at < before + HOUR for one in tried)
    assert (row.ended_at is not None) == (state == "delivered")
    if row.ended_at is not None:
        assert before <= row.ended_at < before + HOUR
    if outcome is BAD:
        assert row.due_at == tried[0].at + retry_schedule.WEBHOOK_RETRY_DELAYS[0]


@pytest.mark.parametrize(("kind", "status", "state"), [
    ("PAYMENT", 410, "cancelled"), ("test", 500, "cancelled"), ("test", 200, "delivered"), ("PAYMENT", 404, "waiting"),
])  # fmt: skip
def test_a_test_message_is_never_tried_again_nor_what_is_gone(shop: Shop, kind: str, status: int, state: str) -> None:
    row = make_delivery(make_endpoint(shop), kind=kind)
    (due,) = claim()
    record((due, CallOutcome(status=status, body=b"")))
    row.refresh_from_db()
    assert row.state == state


@pytest.mark.parametrize(("left", "state"), [(timedelta(0), "waiting"), (-timedelta(microseconds=1), "given_up")])
def test_the_last_attempt_may_be_at_the_very_end(left: timedelta, state: str, shop: Shop) -> None:
    row = make_delivery(make_endpoint(shop))
    (due,) = claim()
    at = clock.real_now()
    again = retry_schedule.next_attempt_at(1, at, at + HOUR)
    assert again is not None
    end = again + left
    assert (retry_schedule.next_attempt_at(1, at, end) is not None) == (state == "waiting")
    moved = DueWebhook(**{name: getattr(due, name) for name in due.__slots__} | {"give_up_at": end})
    claims.record_webhook_attempts([WebhookAttemptResult(due=moved, at=at, outcome=BAD)])
    row.refresh_from_db()
    assert row.state == state


@pytest.mark.parametrize("attempt", range(1, 12))
def test_delays_are_the_tables_and_then_a_day(attempt: int) -> None:
    at = clock.real_now()
    table = [1, 2, 4, 8, 15, 30, 60]
    minutes = table[attempt - 1] if attempt <= len(table) else 24 * 60
    assert retry_schedule.next_attempt_at(attempt, at, at + 9 * 24 * HOUR) == at + timedelta(minutes=minutes)


# --- an endpoint's health ---------------------------------------------------------------------------------------------


def results_of(row: WebhookEndpoint, *outcomes: CallOutcome, **values: Any) -> WebhookEndpoint:
    for _ in outcomes:
        make_delivery(row, **values)
    record(*zip(claim(), outcomes, strict=True))
    row.refresh_from_db()
    return row


@pytest.mark.parametrize(
    ("before", "outcomes", "failures"),
    [
        (0, [BAD], 1),
        (2, [BAD, BAD], 4),
        (2, [WELL], 0),
        (2, [BAD, WELL], 0),
        (2, [WELL, BAD], 1),
        (0, [WELL, BAD, BAD], 2),
        (0, [BAD, WELL, BAD], 1),
        (0, [WELL], 0),
    ],
)
def test_failures_are_counted_since_the_last_success(
    shop: Shop, before: int, outcomes: list[CallOutcome], failures: int
) -> None:
    since = clock.real_now() - HOUR if before else None
    row = results_of(make_endpoint(shop, failures=before, failing_since=since), *outcomes)
    assert row.failures == failures
    assert (row.failing_since is None) == (failures == 0)
    if failures:
        kept = before > 0 and WELL not in outcomes
        assert row.failing_since is not None
        assert (row.failing_since == since) is kept
        if not kept:
            first = WebhookAttempt.objects.filter(delivery__endpoint=row).order_by("-at")[failures - 1]
            assert row.failing_since == first.at


@pytest.mark.parametrize("outcomes", [[WELL, BAD], [BAD, WELL, BAD]])
def test_a_success_ends_failures_that_were_counted_after_the_lease(shop: Shop, outcomes: list[CallOutcome]) -> None:
    """Another process counted them, and paused the endpoint."""
    row = make_endpoint(shop)
    for _ in outcomes:
        make_delivery(row)
    leased, before = claim(), clock.real_now() - HOUR
    WebhookEndpoint.objects.filter(pk=row.pk).update(
        failures=7, failing_since=before, state="paused", probe_at=before, probes=2
    )
    record(*zip(leased, outcomes, strict=True))
    row.refresh_from_db()
    assert (row.state, row.failures, row.probes, row.probe_at) == ("active", 1, 0, None)
    assert row.failing_since is not None
    assert row.failing_since > before


def test_results_are_weighed_by_their_time_and_not_by_their_place(shop: Shop) -> None:
    row = make_endpoint(shop)
    make_delivery(row)
    make_delivery(row)
    now, (one, other) = clock.real_now(), claim()
    claims.record_webhook_attempts(
        [
            WebhookAttemptResult(due=one, at=now + SECOND, outcome=BAD),
            WebhookAttemptResult(due=other, at=now, outcome=WELL),
        ]
    )
    row.refresh_from_db()
    assert (row.failures, row.failing_since) == (1, now + SECOND)


@pytest.mark.parametrize("values", [{"kind": "test"}])
def test_a_test_message_says_nothing_of_an_endpoints_health(shop: Shop, values: dict[str, str]) -> None:
    row = results_of(make_endpoint(shop, failures=1), BAD, **values)
    assert row.failures == 1


def test_addresses_that_payments_bring_have_no_health(shop: Shop) -> None:
    row = results_of(make_endpoint(shop, mode="return"), BAD, url="https://shop.example/own")
    assert (row.failures, row.failing_since) == (0, None)


def test_a_probe_that_is_answered_takes_up_the_endpoint_with_all_that_waits(shop: Shop) -> None:
    now = clock.merchant_now(shop.merchant)
    row = make_endpoint(
        shop, state="paused", probe_at=now - SECOND, probes=3, failures=12, failing_since=now - HOUR, reason="failing"
    )
    first, later = make_delivery(row, -HOUR), make_delivery(row, HOUR)
    ended = make_delivery(row, HOUR, state="delivered")
    other = make_delivery(make_endpoint(shop), HOUR)
    (due,) = claim()
    assert due.id == first.pk
    record((due, WELL))
    row.refresh_from_db()
    assert (row.state, row.reason, row.failures, row.failing_since) == ("active", "", 0, None)
    assert (row.probes, row.probe_at) == (0, None)
    was = {one.pk: one.due_at for one in (later, ended, other)}
    for one in (later, ended, other):
        one.refresh_from_db()
    assert later.due_at < now + HOUR / 2
    assert (ended.due_at, other.due_at) == (was[ended.pk], was[other.pk])


def test_what_is_due_already_keeps_its_place_when_an_endpoint_is_taken_up(shop: Shop) -> None:
    row = make_endpoint(shop)
    early = make_delivery(row, -5 * HOUR)
    claims.make_waiting_webhooks_due(row.pk, clock.merchant_now(shop.merchant))
    assert WebhookDelivery.objects.get(pk=early.pk).due_at == early.due_at


def test_a_success_does_not_take_up_what_a_user_paused(shop: Shop) -> None:
    row = make_endpoint(shop, failures=1)
    make_delivery(row)
    (due,) = claim()
    WebhookEndpoint.objects.filter(pk=row.pk).update(state="paused", reason="paused by Jane")
    record((due, WELL))
    row.refresh_from_db()
    assert (row.state, row.reason, row.failures) == ("paused", "paused by Jane", 0)


def test_switching_off_cancels_what_waits_and_leaves_what_ended(shop: Shop) -> None:
    row = make_endpoint(shop)
    waiting, done = make_delivery(row), make_delivery(row, state="delivered")
    other = make_delivery(make_endpoint(shop))
    claims.disable_endpoint(row.pk, "gone", clock.real_now())
    found = dict(WebhookDelivery.objects.values_list("pk", "state"))
    assert found == {waiting.pk: "cancelled", done.pk: "delivered", other.pk: "waiting"}


def test_a_card_number_at_the_cut_of_an_answer_is_masked(shop: Shop) -> None:
    """It is masked before the answer is cut: half of it would look like no card."""
    row = make_delivery(make_endpoint(shop))
    (due,) = claim()
    start = "x" * (claims.MAX_ANSWER_CHARS - 13) + " "
    record((due, CallOutcome(status=500, body=f"{start}4200000000000000".encode())))
    kept = WebhookAttempt.objects.get(delivery=row).answer
    assert kept == f"{start}420000******"


# --- when the next is due ---------------------------------------------------------------------------------------------


def find_earliest() -> datetime | None:
    found: datetime | None = execute_sql(claims.EARLIEST_DUE_WEBHOOK, {})[0][0]
    return found


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ({}, 1),
        ({"state": "paused", "probe_at": 3}, 3),
        ({"state": "paused", "probe_at": -3}, 1),
        ({"state": "paused"}, None),
        ({"state": "off"}, None),
    ],
)
def test_the_next_delivery_is_the_first_that_waits_but_not_before_its_probe(
    shop: Shop, endpoint: dict[str, Any], expected: int | None
) -> None:
    now = clock.merchant_now(shop.merchant)
    if "probe_at" in endpoint:
        endpoint = endpoint | {"probe_at": now + HOUR * endpoint["probe_at"]}
    row = make_endpoint(shop, **endpoint)
    for hours in (4, 1, 2):
        make_delivery(row, due_at=now + HOUR * hours)
    make_delivery(row, due_at=now - HOUR, state="delivered")
    at = now + HOUR * expected if expected is not None else None
    assert delivery.next_webhook_at(shop.merchant) == at
    assert find_earliest() == at


# --- what is given up and forgotten -----------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [timedelta(0), 5 * HOUR, -5 * HOUR])
def test_what_waited_too_long_is_given_up_by_the_merchants_clock(shop: Shop, offset: timedelta) -> None:
    set_clock(shop, offset)
    row, now = make_endpoint(shop, state="paused"), clock.merchant_now(shop.merchant)
    make_delivery(row, give_up_at=now + HOUR)
    assert due_times.find_due_timers({SWEEP_TIMER.name}) == set() or offset < timedelta(0)
    old = make_delivery(row, give_up_at=now - SECOND)
    assert due_times.find_due_timers({SWEEP_TIMER.name}) == {SWEEP_TIMER.name}
    done = make_delivery(row, give_up_at=now - SECOND, state="cancelled", ended_at=now - HOUR)
    held = make_delivery(row, give_up_at=now - SECOND, lease_until=clock.real_now() + HOUR, lease=identifiers.row_id())
    retention.purge_webhook_deliveries(clock.real_now())
    states = dict(WebhookDelivery.objects.values_list("pk", "state"))
    assert [pk for pk, state in states.items() if state == "given_up"] == [old.pk]
    assert (states[done.pk], states[held.pk]) == ("cancelled", "waiting")
    ended = WebhookDelivery.objects.get(pk=old.pk).ended_at
    assert ended is not None
    assert now <= ended < now + HOUR


def test_a_delivery_is_forgotten_when_both_its_event_and_its_end_are_old(shop: Shop) -> None:
    row, now = make_endpoint(shop), clock.real_now()
    past, lately = now - timedelta(days=settings.GATEWAY_WEBHOOK_DAYS) - HOUR, now - HOUR
    made = UUID(int=identifiers.row_id().int - (int((now - past).total_seconds() * 1000) << 80))
    make_delivery(row, created_at=lately, ended_at=lately, state="delivered")
    assert due_times.find_due_timers({SWEEP_TIMER.name}) == set()
    make_delivery(row, id=made, created_at=past, ended_at=past, state="delivered")
    assert due_times.find_due_timers({SWEEP_TIMER.name}) == {SWEEP_TIMER.name}
    WebhookDelivery.objects.filter(created_at=lately).delete()
    kept = {
        make_delivery(row, created_at=past, ended_at=lately, state="delivered").pk,
        make_delivery(row, created_at=lately, ended_at=past, state="delivered").pk,
        make_delivery(row, created_at=past).pk,
    }
    assert retention.purge_webhook_deliveries(now) == 1
    assert set(WebhookDelivery.objects.values_list("pk", flat=True)) == kept


# --- replay -----------------------------------------------------------------------------------------------------------


def test_a_replay_is_of_its_merchant_its_endpoints_and_its_times_both_ends_included(shop: Shop, stranger: Shop) -> None:
    now = clock.merchant_now(shop.merchant)
    row, paused, off = (make_endpoint(shop, state=state) for state in ("active", "paused", "off"))
    times = [now - HOUR * back for back in range(5)]
    for at in times:
        make_delivery(row, created_at=at, state="delivered", ended_at=at)
    make_delivery(row, created_at=times[2], state="delivered", kind="test", ended_at=now)
    make_delivery(paused, created_at=times[2], state="given_up", ended_at=now)
    make_delivery(off, created_at=times[2], state="cancelled", ended_at=now)
    make_delivery(make_endpoint(stranger), created_at=times[2], state="delivered", ended_at=now)

    def count(**values: Any) -> tuple[int, int]:
        found = replay.preview_replay(ReplaySelection(merchant=shop.merchant, **values))
        return found.events, found.off

    assert count() == (6, 1)
    assert count(since=times[2], until=times[1]) == (3, 1)
    assert count(since=times[2] + SECOND, until=times[1] - SECOND) == (0, 0)
    assert count(among=[row.pk]) == (5, 0)
    assert count(among=[]) == (0, 0), "a user who may use none replays none"
    assert count(among=[paused.pk, off.pk]) == (1, 1)


def test_a_replayed_delivery_begins_anew(shop: Shop) -> None:
    row, now = make_endpoint(shop), clock.merchant_now(shop.merchant)
    one = make_delivery(row, created_at=now - HOUR, state="given_up", ended_at=now - HOUR, give_up_at=now - HOUR)
    assert list(replay.replay_deliveries(ReplaySelection(merchant=shop.merchant))) == [1]
    one.refresh_from_db()
    assert (one.state, one.ended_at, one.lease) == ("waiting", None, None)
    assert one.due_at >= now
    assert one.give_up_at == one.due_at + retry_schedule.WEBHOOK_GIVE_UP_AFTER


def test_deliveries_of_one_moment_are_all_replayed_in_batches(shop: Shop) -> None:
    row, now = make_endpoint(shop), clock.merchant_now(shop.merchant)
    for _ in range(5):
        make_delivery(row, created_at=now - HOUR, state="delivered", ended_at=now)
    assert sum(replay.replay_deliveries(ReplaySelection(merchant=shop.merchant), batch=2)) == 5
    assert not WebhookDelivery.objects.exclude(state="waiting").exists()


def test_what_waits_for_later_is_made_due_and_what_is_due_stays(shop: Shop) -> None:
    row, now = make_endpoint(shop), clock.merchant_now(shop.merchant)
    due, later = make_delivery(row, -HOUR), make_delivery(row, HOUR)
    ended = make_delivery(row, -HOUR, state="delivered", ended_at=now)
    states = ("waiting", "delivered")
    assert sum(replay.replay_deliveries(ReplaySelection(merchant=shop.merchant, states=states))) == 2
    found = dict(WebhookDelivery.objects.values_list("pk", "due_at"))
    assert found[due.pk] == due.due_at
    assert found[later.pk] < later.due_at
    assert found[ended.pk] >= now


# --- the inspector ----------------------------------------------------------------------------------------------------


def test_the_inspector_keeps_the_newest_of_each_endpoint(shop: Shop) -> None:
    one, other = make_endpoint(shop), make_endpoint(shop)
    at = clock.real_now()

    def message(endpoint: WebhookEndpoint, number: int) -> InspectedMessage:
        ident = identifiers.row_id()
        return InspectedMessage(endpoint=endpoint.pk, delivery=ident, attempt=number, at=at, headers={}, body=b"{}")

    inspector.store_inspected_messages([message(other, 1)])
    most = inspector.MAX_INSPECTED_MESSAGES
    inspector.store_inspected_messages([message(one, number) for number in range(1, most + 1)])
    assert InspectedWebhook.objects.filter(endpoint=one).count() == most
    inspector.store_inspected_messages([message(one, most + 1)])
    kept = InspectedWebhook.objects.filter(endpoint=one).order_by("id")
    assert [row.attempt for row in kept] == list(range(2, most + 2))
    assert InspectedWebhook.objects.filter(endpoint=other).count() == 1


def test_the_inspector_answers_in_the_test_environment_only() -> None:
    assert inspector.build_inspector_answer().is_success
    with override_settings(IS_LIVE=True):
        assert inspector.build_inspector_answer().failure == CallFailure.FORBIDDEN
