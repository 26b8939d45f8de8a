"""The movable clock: what falls due on the way is done in the order of its time, by one mover, within bounds."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from checkout.models import Checkout
from gateway.api import clock as clock_view
from gateway.catalogue.errors import InvalidParametersError
from gateway.catalogue.parse import Parameters
from gateway.core import clock
from gateway.models import Merchant
from gateway.models.entities import MAX_CLOCK_OFFSET
from gateway.timers import registry, time_travel
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop
from tests.support.shopper import open_checkout

pytestmark = pytest.mark.django_db
CLOCK = "/v1/test/clock"
DAY = 86_400


@dataclass(slots=True)
class Diary:
    """Timers made for a test: rows in memory, by merchant. ``done``: (timer, when it was due, what the clock said)."""

    rows: dict[str, list[datetime]] = field(default_factory=dict)
    done: list[tuple[str, datetime, datetime]] = field(default_factory=list)
    stubborn: set[str] = field(default_factory=set)
    nagging: set[str] = field(default_factory=set)
    then: Callable[[str, Merchant], None] | None = None

    def timer(self, name: str) -> registry.MerchantTimer:
        self.rows[name] = []
        return registry.MerchantTimer(
            name=name,
            about="Of a test.",
            run=lambda merchant=None: self._run(name, merchant),
            next_at=lambda one: clock.merchant_now(one) if name in self.nagging else min(self.rows[name], default=None),
        )

    def _run(self, name: str, merchant: Merchant | None) -> int:
        assert merchant is not None
        if self.then is not None:
            self.then(name, merchant)
        if name in self.stubborn:
            return 0
        now = clock.merchant_now(Merchant.objects.get(pk=merchant.pk))
        ripe = sorted(at for at in self.rows[name] if at <= now)
        self.rows[name] = [at for at in self.rows[name] if at > now]
        self.done += [(name, at, now) for at in ripe]
        return len(ripe)


@pytest.fixture
def diary() -> Iterator[Diary]:
    """Two timers beside the product's own."""
    diary = Diary()
    for name in ("tea", "post"):
        registry.register_timer(diary.timer(name))
    yield diary
    for name in ("tea", "post"):
        del registry._TIMERS[name]


def move(api: Api, seconds: int) -> Answer:
    answer = api.post(CLOCK, {"advance": str(seconds)})
    assert answer.status == 200, answer
    return answer


def test_everything_that_falls_due_on_the_way_is_done_at_its_time_and_in_its_order(api: Api, diary: Diary) -> None:
    """Issue: POST /v1/test/clock answers when everything that fell due has run."""
    now = clock.real_now()
    diary.rows["tea"] = [now + timedelta(days=day) for day in (3, 1)]
    diary.rows["post"] = [now + timedelta(days=day) for day in (2, 400)]
    answer = move(api, 10 * DAY)
    assert (answer.body["ran"], answer.body["complete"], answer.body["waiting"]) == ({"tea": 2, "post": 1}, True, [])
    assert (answer.body["offsetSeconds"], answer.body["remainingSeconds"]) == (10 * DAY, 0)
    assert [(name, (at - now).days) for name, at, _ in diary.done] == [("tea", 1), ("post", 2), ("tea", 3)]
    for _, at, told in diary.done:
        assert timedelta(0) <= told - at < timedelta(minutes=1)
    assert diary.rows["post"] == [now + timedelta(days=400)]


def test_what_becomes_due_by_what_was_done_is_done_too(api: Api, diary: Diary) -> None:
    """A year of a monthly subscription makes twelve payments."""
    now = clock.real_now()
    diary.rows["tea"] = [now + timedelta(days=30)]

    def again(name: str, merchant: Merchant) -> None:
        if len(diary.done) < 20 and name == "tea":
            diary.rows["tea"].append(min(diary.rows["tea"]) + timedelta(days=30))

    diary.then = again
    assert move(api, 365 * DAY).body["ran"] == {"tea": 12}


def test_an_empty_way_is_just_moved(api: Api, diary: Diary) -> None:
    answer = move(api, DAY)
    assert (answer.body["ran"], answer.body["complete"]) == ({}, True)
    assert "ran" not in api.get(CLOCK).body
    assert "ran" not in api.delete(CLOCK).body


@pytest.mark.parametrize(
    ("milliseconds", "moved"), [(0, True), (60_000, True), (-1_000, True), (-1_001, False), (-86_400_000, False)]
)
def test_the_clock_moves_to_a_moment_that_is_not_before_the_merchants_present(
    monkeypatch: pytest.MonkeyPatch, milliseconds: int, moved: bool
) -> None:
    """A second is let pass: the moment was read before it was sent."""
    real = clock.real_now()
    monkeypatch.setattr(clock, "real_now", lambda: real)
    ahead, step = timedelta(days=3), timedelta(milliseconds=milliseconds)
    asked: Any = {"now": (real + ahead + step).isoformat()}
    if moved:
        assert clock_view._parse_offset(Merchant(clock_offset=ahead), asked) == ahead + step
        return
    with pytest.raises(InvalidParametersError) as refused:
        clock_view._parse_offset(Merchant(clock_offset=ahead), asked)
    assert [one.name for one in refused.value.errors] == ["now"]


def test_a_long_way_is_bounded_and_tells_how_far_it_came(
    shop: Shop, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The web server's patience is longer: complete=false, and the caller sends the rest."""
    now = clock.real_now()
    diary.rows["tea"] = [now + timedelta(days=day) for day in range(1, 6)]
    moved = time_travel.advance_clock(shop.merchant, timedelta(days=10), within_s=-1)
    assert not moved.complete
    assert (moved.remaining, dict(moved.ran)) == (timedelta(days=10), {})
    monkeypatch.setattr(time_travel, "MAX_ADVANCE_S", 20.0)
    answer = move(shop.api, 10 * DAY)
    assert (answer.body["complete"], answer.body["ran"]) == (True, {"tea": 5})


def test_what_nobody_can_do_yet_is_waited_for_and_then_told(
    api: Api, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker has it, or a bank is silent: the clock goes on without it."""
    monkeypatch.setattr(time_travel, "MAX_BLOCKED_TIMER_WAIT_S", 0.2)
    now = clock.real_now()
    diary.stubborn = {"tea"}
    diary.rows["tea"] = [now + timedelta(days=1)]
    diary.rows["post"] = [now + timedelta(days=2)]
    answer = move(api, 3 * DAY)
    assert (answer.body["complete"], answer.body["ran"], answer.body["waiting"]) == (True, {"post": 1}, ["tea"])


def test_what_is_always_due_and_never_done_does_not_hold_the_clock(
    api: Api, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer that says "now" each time it is asked."""
    monkeypatch.setattr(time_travel, "MAX_BLOCKED_TIMER_WAIT_S", 0.2)
    diary.nagging = {"tea"}
    diary.rows["post"] = [clock.real_now() + timedelta(days=day) for day in (1, 2, 3)]
    answer = move(api, 4 * DAY)
    assert (answer.body["complete"], answer.body["ran"], answer.body["waiting"]) == (True, {"post": 3}, ["tea"])


def test_a_timer_that_breaks_stops_neither_the_clock_nor_the_others(
    api: Api, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_travel, "MAX_BLOCKED_TIMER_WAIT_S", 0.2)
    now = clock.real_now()
    diary.rows["tea"] = diary.rows["post"] = [now + timedelta(days=1)]

    def breaks(name: str, merchant: Merchant) -> None:
        if name == "tea":
            raise RuntimeError("no water")

    diary.then = breaks
    answer = move(api, 2 * DAY)
    assert (answer.body["ran"], answer.body["waiting"]) == ({"post": 1}, ["tea"])


@pytest.mark.django_db(transaction=True)
def test_a_second_mover_of_one_merchants_clock_is_refused(committed: Shop, diary: Diary) -> None:
    """One mover per merchant; the other one learns it at once."""
    inside, go_on = threading.Event(), threading.Event()

    def waits(name: str, merchant: Merchant) -> None:
        inside.set()
        assert go_on.wait(30)

    diary.then = waits
    diary.rows["tea"] = [clock.real_now() + timedelta(days=1)]
    first: list[Answer] = []

    def begin() -> None:
        from django.db import connection

        first.append(committed.api.post(CLOCK, {"advance": str(2 * DAY)}))
        connection.close()

    mover = threading.Thread(target=begin)
    mover.start()
    assert inside.wait(30)
    for refused in (committed.api.post(CLOCK, {"advance": "60"}), committed.api.delete(CLOCK)):
        assert (refused.status, refused.code) == (409, "800.120.402")
        assert "moved by another request" in refused.description
    go_on.set()
    mover.join(30)
    assert first[0].body["offsetSeconds"] == 2 * DAY
    assert move(committed.api, 60).body["offsetSeconds"] == 2 * DAY + 60


def test_only_this_merchants_rows_are_done(shop: Shop, stranger: Shop) -> None:
    """Goals: one merchant's tests do not move another's time."""
    for one in (shop, stranger):
        open_checkout(one.api, customer__givenName="Jane", customer__surname="Jones", customer__birthDate="1990-01-01")
    Checkout.objects.update(request_sealed=b"sealed")
    assert move(shop.api, 31 * 60).body["ran"] == {"checkout expiry": 1}
    left = Checkout.objects.get(request_sealed__isnull=False)
    assert left.merchant_id == stranger.merchant.pk


def test_after_a_reset_what_is_due_later_stays_due_at_its_time(api: Api, diary: Diary) -> None:
    """docs/time.md: DELETE moves no rows."""
    move(api, 10 * DAY)
    diary.rows["tea"] = [clock.real_now() + timedelta(days=11)]
    api.delete(CLOCK)
    assert move(api, 10 * DAY).body["ran"] == {}
    assert move(api, 2 * DAY).body["ran"] == {"tea": 1}


# --- what is asked and told -----------------------------------------------------------------------------------------


def errors_of(merchant: Merchant, asked: dict[str, str]) -> list[tuple[str, str | None, str]]:
    with pytest.raises(InvalidParametersError) as refused:
        clock_view._parse_target_offset(merchant, Parameters(asked))
    return [(one.name, one.value, one.message) for one in refused.value.errors]


def test_the_clock_moves_by_seconds_on_top_of_what_it_is_ahead() -> None:
    ahead = Merchant(clock_offset=timedelta(days=3))
    assert clock_view._parse_target_offset(ahead, Parameters({"advance": "60"})) == timedelta(days=3, seconds=60)


def test_the_clock_moves_by_fifty_years_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    at_most = int(MAX_CLOCK_OFFSET.total_seconds())
    fresh = Merchant(clock_offset=timedelta(0))
    assert clock_view._parse_target_offset(fresh, Parameters({"advance": str(at_most)})) == MAX_CLOCK_OFFSET
    message = "moves the clock on by more than 50 years"
    assert errors_of(fresh, {"advance": str(at_most + 1)}) == [("advance", str(at_most + 1), message)]
    real = clock.real_now()
    monkeypatch.setattr(clock, "real_now", lambda: real)
    last, late = ((real + MAX_CLOCK_OFFSET + timedelta(seconds=more)).isoformat() for more in (0, 1))
    assert clock_view._parse_target_offset(fresh, Parameters({"now": last})) == MAX_CLOCK_OFFSET
    assert errors_of(fresh, {"now": late}) == [("now", late, message)]


@pytest.mark.parametrize("text", ["2027-02-30T00:00:00Z", "2027-01-01T24:01:00Z", "2027-13-01T00:00:00Z"])
def test_a_moment_that_is_none_is_refused_by_name(text: str) -> None:
    merchant = Merchant(clock_offset=timedelta(0))
    assert errors_of(merchant, {"now": text}) == [("now", text, "is not a date of the calendar")]
    past = "2020-01-01T00:00:00Z"
    said = "lies before the merchant's present: DELETE resets the clock"
    assert errors_of(merchant, {"now": past}) == [("now", past, said)]


def test_each_answer_tells_the_time_its_rate_and_what_was_ignored(shop: Shop) -> None:
    api = shop.api_of(shop.open_channel(limits={"*": {"limit": 50, "window_s": 1_000_000}}))
    ignored = {"colour": "red"}
    moved = api.post(CLOCK, {"advance": "3600", **ignored})
    read = api.get(CLOCK, ignored)
    reset = api.delete(CLOCK, ignored)
    for answer, offset in ((moved, 3600), (read, 3600), (reset, 0)):
        assert (answer.status, answer.code, answer.body["offsetSeconds"]) == (200, "000.000.100", offset)
        assert answer.body["ignoredParameters"] == ["colour"]
        assert answer.headers["RateLimit-Limit"] == "50"
        told = datetime.strptime(answer.body["now"], "%Y-%m-%d %H:%M:%S%z") - timedelta(seconds=offset)
        assert abs(told - clock.real_now()) < timedelta(minutes=5)
    assert (moved.body["complete"], moved.body["remainingSeconds"], moved.body["waiting"]) == (True, 0, [])
    assert not {"complete", "remainingSeconds", "waiting", "ran"} & (read.body.keys() | reset.body.keys())


def test_what_is_left_of_the_way_is_told_in_whole_seconds_upwards(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def advance(merchant: Merchant, target: timedelta) -> time_travel.ClockAdvance:
        return time_travel.ClockAdvance(
            remaining=timedelta(seconds=7, milliseconds=1), ran=Counter({"tea": 2}), waiting={"b", "a"}
        )

    monkeypatch.setattr(time_travel, "advance_clock", advance)
    body = api.post(CLOCK, {"advance": "60"}).body
    assert [body[name] for name in ("complete", "remainingSeconds", "ran", "waiting")] == [
        False, 8, {"tea": 2}, ["a", "b"],
    ]  # fmt: skip
