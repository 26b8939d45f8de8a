"""Too many requests of one entity and operation in one window are refused, exactly.

Source: Part A, Limits; ruling D11.
"""

from __future__ import annotations

import time

import pytest
from django.test import override_settings

from gateway.models import Channel, Payment, ThrottleWindow
from tests.support.client import Api, payment
from tests.support.fixtures import Shop
from tests.support.threads import at_once, times

LONG = 1_000_000
"""Seconds; a window of eleven days ends in no test."""


@pytest.fixture
def limited(shop: Shop) -> Api:
    return shop.api_of(shop.open_channel(limits={"*": {"limit": 3, "window_s": LONG}}))


@pytest.mark.django_db
def test_what_is_above_the_limit_is_refused_in_its_own_body_shape(limited: Api) -> None:
    """A30.8; Part A, Limits: 800.120.100; D11: 429 and Retry-After."""
    for _ in range(3):
        assert limited.pay().status == 200
    answer = limited.pay()
    assert (answer.status, answer.code) == (429, "800.120.100")
    assert "too many requests" in answer.description
    assert len(answer.id) == 32
    assert 1 <= int(answer.headers["Retry-After"]) <= LONG
    assert Payment.objects.count() == 3


@pytest.mark.django_db
def test_the_next_window_takes_requests_again(shop: Shop) -> None:
    """A31.3: refused beyond the limit of a window, and not for longer."""
    brief = shop.api_of(shop.open_channel(limits={"*": {"limit": 1, "window_s": 1}}))

    def status_other_than(status: int) -> int:
        deadline = time.monotonic() + 60
        while (found := brief.read("0" * 32).status) == status and time.monotonic() < deadline:
            pass
        return found

    assert status_other_than(404) == 429
    assert status_other_than(429) == 404


@pytest.mark.django_db
def test_an_answer_tells_the_limit_what_remains_and_when_it_starts_anew(limited: Api) -> None:
    """D11."""
    remaining = []
    for _ in range(4):
        headers = limited.pay(amount="92.1").headers
        assert headers["RateLimit-Limit"] == "3"
        assert 1 <= int(headers["RateLimit-Reset"]) <= LONG
        remaining.append(headers["RateLimit-Remaining"])
    assert remaining == ["2", "1", "0", "0"]


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["entityId", "authentication.entityId", "authentication%2EentityId"])
def test_an_entity_in_another_spelling_is_counted_all_the_same(limited: Api, name: str) -> None:
    """D11: percent-encoded, it is known only once the form is decoded."""
    assert limited.entity
    spelt = f"%{ord(limited.entity[0]):x}{limited.entity[1:]}"
    fields = "&".join(f"{key}={value}" for key, value in payment().items())
    answers = [limited.send("/v1/payments", f"{name}={spelt}&{fields}".encode()) for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert [answer.headers["RateLimit-Remaining"] for answer in answers] == ["2", "1", "0", "0"]
    assert limited.pay().status == 429


@pytest.mark.django_db
def test_a_success_and_a_read_tell_the_limit_too(limited: Api) -> None:
    """D11."""
    paid = limited.pay()
    assert paid.headers["RateLimit-Remaining"] == "2"
    assert limited.read(paid.id).headers["RateLimit-Remaining"] == "2"


@pytest.mark.django_db
def test_operations_and_entities_are_counted_apart(shop: Shop) -> None:
    """A31.3; Part A, Limits: per entity and operation."""
    limits = {"payment": {"limit": 1, "window_s": LONG}, "status": {"limit": 2, "window_s": LONG}, "*": None}
    one, two = (shop.api_of(shop.open_channel(name, limits=limits)) for name in ("one", "two"))
    paid = one.pay()
    assert one.pay().status == 429
    assert two.pay().status == 200
    assert [one.read(paid.id).status for _ in range(3)] == [200, 200, 429]
    assert [one.follow(paid.id, "RF", "1.00").status for _ in range(3)] == [200, 200, 200]


@pytest.mark.django_db
def test_a_channel_without_a_limit_is_counted_by_nobody(api: Api) -> None:
    """Part A, Limits."""
    answer = api.pay()
    assert not any(name.startswith("RateLimit") for name in answer.headers)
    assert ThrottleWindow.objects.count() == 0


@pytest.mark.django_db
def test_a_channel_that_says_nothing_follows_the_settings(shop: Shop) -> None:
    """A31.3; Part A, Limits."""
    channel = shop.api_of(shop.open_channel(limits={}))
    with override_settings(GATEWAY_THROTTLE_LIMIT=2, GATEWAY_THROTTLE_WINDOW_S=LONG):
        assert [channel.pay().status for _ in range(3)] == [200, 200, 429]
    with override_settings(GATEWAY_THROTTLE_LIMIT=0):
        assert "RateLimit-Limit" not in channel.pay().headers


@pytest.mark.django_db
def test_requests_that_name_no_entity_count_for_their_merchant(shop: Shop) -> None:
    """Decision 0050: throttled before they are decoded; each costs up to 4 MiB of decoding, and a row of the log."""
    silent, named = shop.api_of(shop.open_channel(limits={})), shop.api_of(shop.open_channel("two", limits={}))
    with override_settings(GATEWAY_THROTTLE_LIMIT=2, GATEWAY_THROTTLE_WINDOW_S=LONG):
        assert [silent.send("/v1/payments", b"amount=92.00").status for _ in range(3)] == [400, 400, 429]
        assert named.pay().status == 200


@pytest.mark.django_db
def test_the_status_of_a_throttled_request_is_a_setting(limited: Api) -> None:
    """D11."""
    with override_settings(GATEWAY_THROTTLE_STATUS=400):
        assert [limited.pay().status for _ in range(4)] == [200, 200, 200, 400]


@pytest.mark.django_db
def test_the_merchants_own_id_is_counted_as_an_entity_of_its_own(shop: Shop) -> None:
    """Part A, Limits; Authentication, 4."""
    shop.merchant.dispatching = True
    shop.merchant.save()
    merchant = shop.api.as_entity(shop.merchant.entity_id)
    with override_settings(GATEWAY_THROTTLE_LIMIT=2, GATEWAY_THROTTLE_WINDOW_S=LONG):
        assert [merchant.pay().status for _ in range(3)] == [200, 200, 429]
    assert shop.api.pay().status == 200


def test_exactly_n_of_4n_requests_at_once_come_through(committed: Shop) -> None:
    """Part A, Limits; goals: exact under threads and processes."""
    limit = 5
    Channel.objects.update(limits={"*": {"limit": limit, "window_s": LONG}})

    def read() -> int:
        # A client of its own for each thread; every request has its own connection to the database.
        return Api(token=committed.api.token, entity=committed.api.entity).read("0" * 32).status

    statuses = at_once(*times(4 * limit, read))
    assert sorted(statuses) == [404] * limit + [429] * (3 * limit)
