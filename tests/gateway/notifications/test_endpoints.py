"""Endpoints by their changes, events that they missed, and a replay that is kept as work.

Source: decisions, section 6; docs/webhooks.md; docs/decisions/0029.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User

from gateway.background.queue import WorkFailedError
from gateway.core import clock
from gateway.models import BackgroundWork, Grant, Notification, Payment, Role, WebhookDelivery, WebhookEndpoint
from gateway.models.webhooks import INSPECTOR_URL_PREFIX
from gateway.notifications import bulk_replay, claims, delivery, endpoints, replay
from gateway.notifications.bulk_replay import parse_selection, serialize_selection
from gateway.notifications.endpoints import InvalidEndpointError
from gateway.notifications.payload_format import WebhookPayload
from gateway.notifications.replay import MAX_PAYMENT_AGE, ReplaySelection
from gateway.outbound import CallOutcome
from gateway.outbound.page_calls import TooManyPageCallsError, count_page_call
from tests.gateway.notifications.test_claims import HOUR, SECOND, make_delivery, make_endpoint
from tests.support.fixtures import BY, Shop
from tests.support.office import person
from tests.support.threads import at_once
from tests.support.webhooks import hooked

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 5, 14, 12, 0, tzinfo=UTC)
URL = "https://shop.example/hooks"
State = WebhookEndpoint.State


# --- made and changed -------------------------------------------------------------------------------------------------


def made(shop: Shop, url: str = URL, **values: Any) -> WebhookEndpoint:
    return endpoints.create_endpoint(shop.merchant, url, by=BY, **values)[0]


def test_a_merchant_has_so_many_endpoints_and_no_more(shop: Shop, stranger: Shop, monkeypatch: Any) -> None:
    monkeypatch.setattr(endpoints, "MAX_ENDPOINTS", 2)
    made(stranger)
    for number in range(2):
        made(shop, f"{URL}/{number}")
    with pytest.raises(InvalidEndpointError, match="at most 2"):
        made(shop)
    assert WebhookEndpoint.objects.filter(merchant=shop.merchant).count() == 2


def test_few_test_messages_of_a_merchant_are_sent_at_a_time(shop: Shop, stranger: Shop) -> None:
    """docs/decisions/0168: each keeps a thread of the web server waiting for as long as its receiver likes."""
    with hooked() as hook:
        mine, theirs = made(shop, hook.url), made(stranger, hook.url)
        with count_page_call(shop.merchant.pk), count_page_call(shop.merchant.pk):
            with pytest.raises(TooManyPageCallsError):
                endpoints.activate_endpoint(mine, by=BY)
            assert (hook.told, WebhookDelivery.objects.count()) == ([], 0)
            assert endpoints.activate_endpoint(theirs, by=BY).active
            assert endpoints.activate_endpoint(made(shop, INSPECTOR_URL_PREFIX), by=BY).active
        assert endpoints.activate_endpoint(mine, by=BY).active


@pytest.mark.django_db(transaction=True)
def test_of_many_endpoints_made_at_once_the_last_places_alone_are_taken(committed: Shop, monkeypatch: Any) -> None:
    """Who counts second counts the first one's too."""
    monkeypatch.setattr(endpoints, "MAX_ENDPOINTS", 2)

    def make(number: int) -> bool:
        try:
            made(committed, f"{URL}/{number}")
        except InvalidEndpointError:
            return False
        return True

    assert sorted(at_once(*(partial(make, number) for number in range(6)))) == [False] * 4 + [True] * 2
    assert WebhookEndpoint.objects.filter(merchant=committed.merchant).count() == 2


def test_a_kind_that_is_named_twice_counts_once(shop: Shop) -> None:
    assert made(shop, kinds=["RISK", "PAYMENT", "RISK"]).kinds == ["RISK", "PAYMENT"]


@pytest.mark.parametrize(("more", "taken"), [(0, True), (1, False)])
def test_an_address_has_its_longest(shop: Shop, more: int, taken: bool) -> None:
    url = URL + "/" + "x" * (endpoints.MAX_ENDPOINT_URL_CHARS - len(URL) - 1 + more)
    if taken:
        assert made(shop, url).url == url
    else:
        with pytest.raises(InvalidEndpointError, match="at most 2,048 characters"):
            made(shop, url)


@pytest.mark.parametrize(
    ("changes", "anew"),
    [
        ({}, None),
        ({"kinds": ["RISK"]}, False),
        ({"url": f"{URL}/new"}, True),
        ({"mode": "signed", "wrapper": "none"}, True),
        ({"wrapper": "json"}, True),
    ],
)
@pytest.mark.parametrize(
    ("state", "works"), [("active", True), ("paused", True), ("inactive", False), ("off", False)]
)  # fmt: skip
def test_a_new_address_or_form_waits_for_its_test_message(
    shop: Shop, changes: dict[str, Any], anew: bool | None, state: str, works: bool
) -> None:
    """One that works is held until it has answered; one that does not is told by its activation anyway."""
    row = made(shop)
    probe = clock.real_now() if state == "paused" else None
    WebhookEndpoint.objects.update(state=state, reason="as it was", probe_at=probe, probes=3)
    row.refresh_from_db()
    sent = {"url": row.url, "mode": row.mode, "wrapper": row.wrapper, "kinds": row.kinds, **changes}
    assert endpoints.update_endpoint(row, by=BY, **sent) == (anew is not None)
    row.refresh_from_db()
    assert (row.url, row.mode, row.wrapper, row.kinds) == (sent["url"], sent["mode"], sent["wrapper"], sent["kinds"])
    held = bool(anew) and works
    assert (row.untested, row.is_held, row.reason == "as it was") == (held, held, not held)
    if not held:
        assert (row.state, row.probe_at, row.probes) == (state, probe, 3)
    assert endpoints.resume_endpoint(row, by=BY) == (not held and state == "paused")


def answering(monkeypatch: pytest.MonkeyPatch, status: int = 200) -> list[claims.DueWebhook]:
    """What is sent is kept, and answered with ``status``."""
    sent: list[claims.DueWebhook] = []

    def attempt(due: claims.DueWebhook) -> claims.WebhookAttemptResult:
        sent.append(due)
        return claims.WebhookAttemptResult(due=due, at=clock.real_now(), outcome=CallOutcome(status=status))

    monkeypatch.setattr(delivery, "attempt_webhook", attempt)
    return sent


@pytest.mark.parametrize("status", [200, 500])
def test_an_answered_test_message_ends_every_pause(shop: Shop, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    row = made(shop)
    WebhookEndpoint.objects.update(
        state="paused", reason="why", untested=True, failures=12, failing_since=NOON, probes=3, probe_at=NOON
    )
    row.refresh_from_db()
    answering(monkeypatch, status)
    assert endpoints.activate_endpoint(row, by=BY).active == (status == 200)
    row.refresh_from_db()
    told = (row.state, row.reason, row.untested, row.failures, row.failing_since, row.probes, row.probe_at)
    assert told == (("active", "", False, 0, None, 0, None) if status == 200
                    else ("paused", "why", True, 12, NOON, 3, NOON))  # fmt: skip


@pytest.mark.parametrize("of_channel", [True, False])
def test_a_test_message_names_the_endpoint_and_the_entity_that_it_is_of(
    shop: Shop, of_channel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = made(shop, channel=shop.channel if of_channel else None)
    sent = answering(monkeypatch)
    endpoints.send_test_message(row)
    entity = shop.channel.pk if of_channel else shop.merchant.pk
    assert f'"entityId":"{entity.hex}"' in sent[0].body.replace(" ", "")
    assert row.pk.hex in sent[0].body


@pytest.mark.parametrize(("overlap", "honoured"), [(HOUR, True), (timedelta(0), False)])
def test_a_rotated_secret_goes_with_the_one_before_for_the_overlap_only(
    shop: Shop, overlap: timedelta, honoured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, before = endpoints.create_endpoint(shop.merchant, URL, by=BY)
    after = endpoints.rotate_secret(row, by=BY, overlap=overlap)
    sent = answering(monkeypatch)
    endpoints.send_test_message(row)
    keys = sent[0].keys
    assert keys is not None
    assert keys.current.reveal().hex() == after.reveal()
    assert (keys.previous.reveal().hex() if keys.previous else None) == (before.reveal() if honoured else None)
    row.refresh_from_db()
    assert (row.previous_sealed is not None, row.previous_until is not None) == (honoured, honoured)
    WebhookEndpoint.objects.update(previous_until=clock.real_now() - SECOND)
    row.refresh_from_db()
    endpoints.send_test_message(row)
    assert sent[1].keys is not None
    assert sent[1].keys.previous is None


def test_a_pause_by_hand_is_made_once_and_its_end_sends_all_that_waits(shop: Shop) -> None:
    row, other = make_endpoint(shop), make_endpoint(shop)
    due, later = make_delivery(row, -HOUR), make_delivery(row, HOUR)
    theirs = make_delivery(other, HOUR)
    assert [endpoints.pause_endpoint(row, by=BY) for _ in range(2)] == [True, False]
    assert delivery.next_webhook_at(shop.merchant) == theirs.due_at
    assert [endpoints.resume_endpoint(row, by=BY) for _ in range(2)] == [True, False]
    found = dict(WebhookDelivery.objects.values_list("pk", "due_at"))
    assert (found[due.pk], found[theirs.pk]) == (due.due_at, theirs.due_at)
    assert found[later.pk] <= clock.merchant_now(shop.merchant)


def test_a_pause_after_failures_becomes_one_by_hand(shop: Shop) -> None:
    """Nothing is probed any more, until somebody resumes it."""
    row = make_endpoint(shop, state="paused", probe_at=NOON, probes=2)
    assert endpoints.pause_endpoint(row, by=BY)
    row.refresh_from_db()
    assert (row.is_held, row.probe_at, row.probes) == (True, None, 0)


@pytest.mark.parametrize("state", ["inactive", "off", "paused", "active"])
def test_the_inspector_of_an_entity_is_one_and_is_opened_again(shop: Shop, state: str) -> None:
    first = endpoints.open_inspector(shop.merchant, None, "signed", by=BY)
    assert first.state == State.ACTIVE
    WebhookEndpoint.objects.update(state=state)
    again = endpoints.open_inspector(shop.merchant, None, "signed", by=BY)
    assert (again.pk, again.state) == (first.pk, "paused" if state == "paused" else "active")
    others = [
        endpoints.open_inspector(shop.merchant, shop.channel, "signed", by=BY),
        endpoints.open_inspector(shop.merchant, None, "encrypted", by=BY),
    ]
    assert len({first.pk, *(one.pk for one in others)}) == 3
    assert {one.url for one in others} == {INSPECTOR_URL_PREFIX}


# --- missed events ----------------------------------------------------------------------------------------------------


def happened(of: Payment, at: datetime, **values: Any) -> int:
    """An event of this payment's channel, told of at that moment."""
    standard = {"kind": "PAYMENT", "action": "CREATED", "merchant": of.merchant, "channel": of.channel, "payment": of}
    sequence = 100 + Notification.objects.count()
    return Notification.objects.create(**{**standard, "sequence": sequence, "created_at": at, **values}).pk


def told(notifications: Sequence[Notification], wanted: Collection[int]) -> Mapping[int, WebhookPayload]:
    return {one.pk: WebhookPayload(text=f"text {one.pk}") for one in notifications if one.pk in wanted}


def test_missed_events_are_of_the_endpoints_entity_kinds_and_times_both_ends_included(
    shop: Shop, stranger: Shop
) -> None:
    other = shop.api_of(elsewhere := shop.open_channel()).pay()
    paid, theirs = (Payment.objects.get(pk=one.api.pay().id) for one in (shop, stranger))
    Payment.objects.update(created_at=NOON - MAX_PAYMENT_AGE)
    Notification.objects.all().delete()
    until = NOON + HOUR
    wanted = [happened(paid, at) for at in (NOON, NOON + SECOND, until)]
    of_other = happened(Payment.objects.get(pk=other.id), NOON, channel=elsewhere)
    for at in (NOON - SECOND, until + SECOND):
        happened(paid, at)
    happened(paid, NOON, kind="RISK")
    happened(theirs, NOON)
    already = happened(paid, NOON)
    row, neighbour = make_endpoint(shop, channel=shop.channel), make_endpoint(shop)
    make_delivery(row, notification=already)
    make_delivery(neighbour, notification=wanted[0])
    assert replay._list_missed_ids(row, NOON, until, 100) == wanted
    assert replay._list_missed_ids(neighbour, NOON, until, 100) == [wanted[1], wanted[2], of_other, already]
    assert replay.count_missed_events(row, NOON, until) == 3
    assert list(replay.deliver_missed_events(row, NOON, until, told, batch=2)) == [2, 1]
    bodies = WebhookDelivery.objects.filter(endpoint=row, notification__in=wanted)
    assert sorted(bodies.values_list("notification", "body")) == [(one, f"text {one}") for one in wanted]
    assert replay.count_missed_events(row, NOON, until) == 0


def test_missed_alerts_are_found_though_they_are_of_no_payment(shop: Shop, stranger: Shop) -> None:
    """A dispute alert has hours to be answered: one that an endpoint was off for is not lost in silence."""
    paid, theirs = (Payment.objects.get(pk=one.api.pay().id) for one in (shop, stranger))
    Notification.objects.all().delete()
    alert = {"kind": "ALERT", "payment": None, "subject": uuid4()}
    wanted = happened(paid, NOON, **alert)
    elsewhere = happened(paid, NOON, **alert, channel=shop.open_channel())
    happened(paid, NOON - SECOND, **alert)
    happened(paid, NOON + HOUR + SECOND, **alert)
    happened(theirs, NOON, **alert)
    row = make_endpoint(shop, kinds=["PAYMENT", "ALERT"], channel=shop.channel)
    assert replay._list_missed_ids(row, NOON, NOON + HOUR, 100) == [wanted]
    whole = make_endpoint(shop, kinds=["ALERT"])
    assert replay._list_missed_ids(whole, NOON, NOON + HOUR, 100) == [wanted, elsewhere]
    assert replay._list_missed_ids(make_endpoint(shop), NOON, NOON + HOUR, 100) == []
    make_delivery(row, notification=wanted)
    assert replay.count_missed_events(row, NOON, NOON + HOUR) == 0


def test_a_missed_event_that_cannot_be_told_ends_the_replay(shop: Shop) -> None:
    """It would be found again for ever."""
    paid = Payment.objects.get(pk=shop.api.pay().id)
    Payment.objects.update(created_at=NOON)
    Notification.objects.all().delete()
    silent, loud = happened(paid, NOON), happened(paid, NOON)
    row = make_endpoint(shop)

    def tell(notifications: Sequence[Notification], _wanted: Collection[int]) -> Mapping[int, WebhookPayload]:
        return {one.pk: WebhookPayload(text="" if one.pk == silent else "loud") for one in notifications}

    assert list(replay.deliver_missed_events(row, NOON, NOON, tell)) == [1, 0]
    assert list(WebhookDelivery.objects.values_list("notification", flat=True)) == [loud]


# --- a replay as work -------------------------------------------------------------------------------------------------


def test_a_selection_that_is_kept_with_its_work_comes_back_as_it_was(shop: Shop) -> None:
    row = make_endpoint(shop)
    whole = ReplaySelection(
        merchant=shop.merchant, endpoint=row, among=[row.pk], payment=uuid4(), kinds=["RISK"], states=["given_up"],
        since=NOON, until=NOON + HOUR,
    )  # fmt: skip
    assert parse_selection(serialize_selection(whole)) == whole
    least = ReplaySelection(merchant=shop.merchant, among=[row.pk], until=NOON)
    found = parse_selection(serialize_selection(least))
    assert (found.endpoint, found.payment, found.since, list(found.kinds)) == (None, None, None, [])
    assert (found.among, list(found.states), found.until) == ([row.pk], list(least.states), NOON)


def test_a_replay_counts_payments_once_however_many_events_they_have(shop: Shop) -> None:
    row, one, other = make_endpoint(shop), uuid4(), uuid4()
    now = clock.merchant_now(shop.merchant)
    for payment in (one, one, other):
        make_delivery(row, payment=payment, state="delivered", ended_at=now)
    found = replay.preview_replay(ReplaySelection(merchant=shop.merchant))
    assert (found.events, found.payments) == (3, 2)


def test_work_replays_what_it_was_asked_for_slice_by_slice(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_replay, "REPLAY_SLICE_SIZE", 2)
    row, now = make_endpoint(shop), clock.merchant_now(shop.merchant)
    for number in range(3):
        make_delivery(row, created_at=now - HOUR * (number + 1), state="given_up", ended_at=now)
    make_delivery(row, created_at=now - HOUR, state="delivered", ended_at=now)
    asked = ReplaySelection(merchant=shop.merchant, among=[row.pk], states=["given_up"], until=now)
    dora = person("dora", Role.DEVELOPER, shop.merchant)
    work = BackgroundWork(owner=dora, parameters={"selection": serialize_selection(asked)}, cursor={}, done=0)
    alive: list[UUID] = []
    steps = []
    while True:
        result = bulk_replay.replay_slice(work, None, lambda: alive.append(row.pk))  # type: ignore[arg-type]
        steps.append((result.done, result.total, result.finished))
        if result.finished:
            break
        work.cursor, work.done, work.total = dict(result.cursor or {}), result.done or 0, result.total
    assert steps == [(2, 3, False), (3, 3, False), (3, 3, True)]
    assert len(alive) == 3
    states = list(WebhookDelivery.objects.order_by("state").values_list("state", flat=True))
    assert states == ["delivered", "waiting", "waiting", "waiting"]


@pytest.mark.parametrize("lost", ["right", "one endpoint", "user"])
def test_work_replays_nothing_more_once_its_owner_may_not(shop: Shop, lost: str) -> None:
    """They left, or changed to another task, while the work waited."""
    dora, now = person("dora", Role.DEVELOPER, shop.merchant), clock.merchant_now(shop.merchant)
    row, other = make_endpoint(shop), make_endpoint(shop, url="https://hooks.example/other")
    make_delivery(row, created_at=now - HOUR, state="given_up", ended_at=now)
    asked = ReplaySelection(merchant=shop.merchant, among=[row.pk, other.pk], states=["given_up"], until=now)
    work = BackgroundWork(owner=dora, parameters={"selection": serialize_selection(asked)}, cursor={}, done=0)
    if lost == "right":
        Grant.objects.filter(user=dora).update(role=Role.AUDITOR)
    elif lost == "user":
        User.objects.filter(pk=dora.pk).update(is_active=False)
    else:
        Grant.objects.filter(user=dora).update(merchant=None, channel=shop.channel)
        WebhookEndpoint.objects.filter(pk=row.pk).update(channel=shop.channel)
    with pytest.raises(WorkFailedError, match="taken away"):
        bulk_replay.replay_slice(work, None, lambda: None)  # type: ignore[arg-type]
    assert not WebhookDelivery.objects.exclude(state="given_up").exists()
