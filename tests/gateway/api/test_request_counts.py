"""What is counted together and what apart, and when a window begins anew: by moments that the tests choose."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.test import override_settings

from gateway.access import rate_limits
from gateway.api import token_admission
from gateway.api.errors import ApiError
from gateway.core import clock
from gateway.models import Channel, ThrottleWindow

pytestmark = pytest.mark.django_db
START = datetime(2036, 5, 14, 12, 0, tzinfo=UTC)
"""Windows of 60 s and of an hour begin here."""
ONE, TWO = UUID(int=1), UUID(int=2)
HERE, THERE = "203.0.113.7", "198.51.100.9"
Counted = Callable[[datetime], object]


def channel_with(**limits: tuple[int, int] | None) -> Channel:
    return Channel(
        limits={
            name.replace("all_", "*"): None if limit is None else {"limit": limit[0], "window_s": limit[1]}
            for name, limit in limits.items()
        }
    )


def is_refused(call: Counted, at: datetime) -> bool:
    try:
        call(at)
    except ApiError as fault:
        return (fault.status, fault.code) == (429, "800.120.100")
    return False


@pytest.mark.parametrize(
    ("second", "remaining", "reset"),
    [(0, "2", "60"), (0.5, "2", "60"), (1, "2", "59"), (59, "2", "1"), (59.9, "2", "1")],
)
def test_the_headers_tell_the_seconds_until_the_window_ends(second: float, remaining: str, reset: str) -> None:
    channel = channel_with(all_=(3, 60))
    headers = token_admission.throttle_request(ONE, channel, "payment", START + timedelta(seconds=second))
    assert headers == {"RateLimit-Limit": "3", "RateLimit-Remaining": remaining, "RateLimit-Reset": reset}


def test_a_window_ends_at_its_last_second_and_not_before() -> None:
    channel = channel_with(all_=(2, 60))

    def call(at: datetime) -> object:
        return token_admission.throttle_request(ONE, channel, "payment", at)

    last, following = START + timedelta(seconds=59.999), START + timedelta(seconds=60)
    assert [is_refused(call, at) for at in (START, START, START, last)] == [False, False, True, True]
    with pytest.raises(ApiError) as refused:
        call(START + timedelta(seconds=45))
    assert refused.value.headers["Retry-After"] == refused.value.headers["RateLimit-Reset"] == "15"
    assert (refused.value.headers["RateLimit-Limit"], refused.value.headers["RateLimit-Remaining"]) == ("2", "0")
    assert (refused.value.more, len(UUID(refused.value.fields["id"]).hex)) == ("2 per 60 s", 32)
    assert [is_refused(call, at) for at in (following, following, following)] == [False, False, True]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"payment": (5, 10), "all_": (7, 20)}, (5, 10)),
        ({"status": (5, 10), "all_": (7, 20)}, (7, 20)),
        ({"payment": None, "all_": (7, 20)}, None),
        ({"payment": (5, 10), "all_": None}, (5, 10)),
        ({"status": (5, 10), "all_": None}, None),
        ({"status": (5, 10)}, (40, 30)),
        ({}, (40, 30)),
    ],
)
def test_an_operations_own_limit_goes_before_that_of_all_and_this_before_the_settings(
    limits: dict[str, tuple[int, int] | None], expected: tuple[int, int] | None
) -> None:
    with override_settings(GATEWAY_THROTTLE_LIMIT=40, GATEWAY_THROTTLE_WINDOW_S=30):
        assert rate_limits.resolve_rate_limit(channel_with(**limits), "payment") == expected
        assert rate_limits.resolve_rate_limit(None, "payment") == (40, 30)
    with override_settings(GATEWAY_THROTTLE_LIMIT=0):
        assert rate_limits.resolve_rate_limit(None, "payment") is None


CHANNEL = channel_with(all_=(1, 3600))


def shopper(checkout: UUID, ip: str | None, operation: str) -> Counted:
    return lambda at: token_admission.throttle_shopper_request(checkout, CHANNEL, ip, operation, at)


def opening(link: UUID, ip: str | None) -> Counted:
    return lambda at: token_admission.throttle_link_opening(link, ip, at)


def sample(user: int) -> Counted:
    return lambda at: token_admission.throttle_sample_run(user, at)


def question(source: UUID, ip: str | None) -> Counted:
    return lambda at: token_admission.throttle_card_brand_question(source, ip, at)


@pytest.mark.parametrize(
    ("one", "same", "others"),
    [
        (
            shopper(ONE, HERE, "payment"),
            shopper(ONE, HERE, "payment"),
            (
                shopper(TWO, HERE, "payment"),
                shopper(ONE, THERE, "payment"),
                shopper(ONE, HERE, "widget"),
                shopper(ONE, None, "payment"),
                lambda at: token_admission.throttle_request(ONE, CHANNEL, "payment", at),
                lambda at: token_admission.throttle_request(ONE, CHANNEL, "shopper", at),
            ),
        ),
        (shopper(ONE, "2001:db8:1:2::1", "widget"), shopper(ONE, "2001:db8:1:2:3:4:5:6", "widget"), ()),
        (opening(ONE, HERE), opening(ONE, HERE), (opening(TWO, HERE), opening(ONE, THERE))),
        (opening(ONE, None), opening(ONE, None), (opening(ONE, HERE), sample(1))),
        (sample(1), sample(1), (sample(2), sample(11), opening(ONE, HERE), question(ONE, HERE))),
        (question(ONE, HERE), question(ONE, HERE), (question(TWO, HERE), question(ONE, THERE), opening(ONE, HERE))),
        (question(ONE, None), question(ONE, None), (question(ONE, HERE),)),
        (question(ONE, "2001:db8:1:2::1"), question(ONE, "2001:db8:1:2::9"), (question(ONE, "2001:db8:1:3::1"),)),
    ],
)
def test_what_counts_together_and_what_apart(
    monkeypatch: pytest.MonkeyPatch, one: Counted, same: Counted, others: tuple[Counted, ...]
) -> None:
    monkeypatch.setattr(token_admission, "MAX_LINK_OPENINGS", (1, 3600))
    monkeypatch.setattr(token_admission, "MAX_SAMPLE_RUNS", (1, 3600))
    monkeypatch.setattr(token_admission, "MAX_CARD_BRAND_QUESTIONS", (1, 3600))
    assert [is_refused(one, START), is_refused(same, START)] == [False, True]
    for number, other in enumerate(others):
        assert not is_refused(other, START), number


def test_only_windows_that_ended_ten_minutes_ago_are_forgotten() -> None:
    """A window of eleven days is kept while it lasts: its counter is what refuses."""
    now = int(clock.real_now().timestamp())
    rows = {
        "ended long ago": (60, (now - 60 - 602) // 60 - 1),
        "ended just now": (60, now // 60 - 5),
        "lasts": (1_000_000, now // 1_000_000),
        "is next": (60, now // 60 + 1),
    }
    for name, (window_s, window) in rows.items():
        ThrottleWindow.objects.create(entity_id=ONE, operation=name, window_s=window_s, window=window, count=9)
    assert rate_limits.TIMER.run() == 1
    assert set(ThrottleWindow.objects.values_list("operation", flat=True)) == set(rows) - {"ended long ago"}
