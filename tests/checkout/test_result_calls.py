"""The call of a merchant who has not fetched a result. Source: Part A, States and transitions; Events, 2."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import pytest

from checkout import result_calls
from checkout.models import CallAttempt, Checkout, ResultCall
from gateway.core import clock
from gateway.models import Merchant, Notification
from gateway.timers import registry
from tests.support.client import Answer, Api
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.receivers import Receiver, answering, receiving
from tests.support.shopper import DECLINED, Browser, open_checkout, result_of
from tests.support.threads import at_once, times

pytestmark = pytest.mark.django_db
MINUTE = 60


@pytest.fixture
def shop_page() -> Iterator[Receiver]:
    """The merchant's result page."""
    with receiving(answering()) as receiver:
        yield receiver


def start(api: Api, page: str, **fields: str) -> Browser:
    """A checkout whose payment was started, and nobody has asked how it went."""
    browser = open_checkout(api, shopperResultUrl=page, **fields)
    assert browser.pay().status == 200
    return browser


def advance(api: Api, seconds: int) -> Answer:
    moved = api.post("/v1/test/clock", {"advance": str(seconds)})
    assert (moved.status, moved.body["complete"]) == (200, True), moved
    return moved


def asked(receiver: Receiver) -> list[str]:
    """What was asked for, as it stands in the request lines."""
    return [re.match(r"GET (\S+) HTTP/1\.1\r\n", request.decode())[1] for request in receiver.requests]  # type: ignore[index]


def test_no_call_before_29_00_and_one_before_30_00(shop: Shop, shop_page: Receiver) -> None:
    """A26.3, A27.15, A29.2, A31.2:
    by the merchant's clock, with id and resourcePath; the result can still be fetched."""
    browser = start(shop.api, f"http://127.0.0.1:{shop_page.port}/result?order=7")
    moved = advance(shop.api, 28 * MINUTE)
    assert ("result calls" in moved.body["ran"], asked(shop_page)) == (False, [])
    moved = advance(shop.api, MINUTE)
    assert moved.body["ran"]["result calls"] == 1
    (path,) = asked(shop_page)
    assert urlsplit(path).path == "/result"
    resource = f"/v1/checkouts/{browser.checkout}/payment"
    assert parse_qs(urlsplit(path).query) == {"order": ["7"], "id": [browser.checkout], "resourcePath": [resource]}
    row = Checkout.objects.get()
    attempt = CallAttempt.objects.get()
    assert timedelta(minutes=29) <= attempt.at - row.created_at < timedelta(minutes=30)
    assert (attempt.number, attempt.status, attempt.failure, attempt.payment_id) == (1, 200, "", row.payment_id)
    assert result_of(shop.api, browser).code == "000.100.110"
    advance(shop.api, 10 * MINUTE)
    assert len(asked(shop_page)) == 1
    assert not ResultCall.objects.exists()


def test_a_call_is_due_at_29_00_to_the_second(shop: Shop) -> None:
    """A29.2: no call at 28:59."""
    start(shop.api, "https://shop.example/result")
    created = Checkout.objects.get().created_at
    assert result_calls.claim_due_result_calls(created + timedelta(minutes=29, microseconds=-1)) == []
    assert len(result_calls.claim_due_result_calls(created + timedelta(minutes=29))) == 1


def test_merchants_take_turns(shop: Shop, stranger: Shop) -> None:
    """One with many pages that hang does not push another one's call past the end of its checkout."""
    for _ in range(3):
        start(shop.api, "https://slow.example/result")
    start(stranger.api, "https://shop.example/result")
    late = clock.real_now() + timedelta(minutes=30)
    claimed = result_calls.claim_due_result_calls(late, limit=2)
    of = dict(Checkout.objects.values_list("pk", "merchant_id"))
    assert {of[one.checkout] for one in claimed} == {shop.merchant.pk, stranger.merchant.pk}
    assert len(result_calls.claim_due_result_calls(late)) == 2


def test_nobody_is_called_who_fetched_the_result(shop: Shop, shop_page: Receiver) -> None:
    """A29.2: not if fetched."""
    browser = start(shop.api, shop_page.url)
    result_of(shop.api, browser)
    advance(shop.api, 40 * MINUTE)
    assert not shop_page.requests


def test_a_checkout_that_was_never_started_tells_nobody_anything(shop: Shop, shop_page: Receiver) -> None:
    """A29.4: a notification is sent only after the pay-now button was clicked."""
    open_checkout(shop.api, shopperResultUrl=shop_page.url)
    advance(shop.api, 40 * MINUTE)
    assert not shop_page.requests
    assert not Notification.objects.exists()


def test_a_registration_is_called_for_like_a_payment(shop: Shop, shop_page: Receiver) -> None:
    """A29.3."""
    browser = open_checkout(
        shop.api,
        amount=None,
        currency=None,
        paymentType=None,
        createRegistration="true",
        shopperResultUrl=shop_page.url,
    )
    browser = Browser(browser.checkout, kind="registration")
    assert browser.pay().status == 200
    advance(shop.api, 29 * MINUTE)
    (path,) = asked(shop_page)
    assert parse_qs(urlsplit(path).query)["resourcePath"] == [f"/v1/checkouts/{browser.checkout}/registration"]


def test_a_payment_started_in_the_last_minute_is_called_for_ten_seconds_later(shop: Shop, shop_page: Receiver) -> None:
    """Decisions, section 6."""
    browser = open_checkout(shop.api, shopperResultUrl=shop_page.url)
    jump(29 * MINUTE + 20)
    browser.pay()
    call = ResultCall.objects.get()
    assert call.due_at - call.payment.created_at == timedelta(seconds=10)
    advance(shop.api, 10)
    assert len(shop_page.requests) == 1
    assert CallAttempt.objects.get().at >= call.due_at


def test_a_payment_started_in_the_last_seconds_is_called_for_while_its_result_can_be_fetched(
    shop: Shop, shop_page: Receiver
) -> None:
    """docs/decisions/0023: ten seconds later would be too late."""
    browser = open_checkout(shop.api, shopperResultUrl=shop_page.url)
    jump(29 * MINUTE + 52)
    browser.pay()
    call = ResultCall.objects.select_related("checkout").get()
    assert call.checkout.expires_at - call.due_at == timedelta(seconds=3)


def test_only_the_last_attempt_of_a_checkout_is_called_for(shop: Shop, shop_page: Receiver) -> None:
    """Decisions, section 6: once per checkout."""
    browser = open_checkout(shop.api, shopperResultUrl=shop_page.url)
    browser.pay(card__number=DECLINED)
    browser.pay()
    advance(shop.api, 29 * MINUTE)
    assert len(shop_page.requests) == 1
    assert CallAttempt.objects.get().payment_id == Checkout.objects.get().payment_id


def test_a_call_that_fails_is_repeated_in_the_last_minute_and_every_try_is_kept(shop: Shop) -> None:
    """Issue: retried within the last minute."""
    with receiving(answering(503)) as receiver:
        start(shop.api, receiver.url)
        advance(shop.api, 60 * MINUTE)
        assert len(receiver.requests) == 4
    tries = list(CallAttempt.objects.order_by("number"))
    assert [(one.number, one.status) for one in tries] == [(1, 503), (2, 503), (3, 503), (4, 503)]
    gaps = [(b.at - a.at).total_seconds() for a, b in pairwise(tries)]
    assert [round(gap) for gap in gaps] == [5, 10, 20]
    assert tries[-1].at < Checkout.objects.get().expires_at
    assert not ResultCall.objects.exists()


def test_a_page_that_recovers_is_called_no_more(shop: Shop) -> None:
    answers = iter([500, 302])

    def behave(line: socket.socket, request: bytes) -> None:
        answering(next(answers), b"", "Location: /elsewhere")(line, request)

    with receiving(behave) as receiver:
        start(shop.api, receiver.url)
        advance(shop.api, 60 * MINUTE)
        assert [urlsplit(path).path for path in asked(receiver)] == ["/hook", "/hook"]
    assert [one.status for one in CallAttempt.objects.order_by("number")] == [500, 302]


@pytest.mark.parametrize(
    "url",
    [
        "http://10.1.2.3/result",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]:22/",
        "http://localhost:22/",
        "http://user:pass@shop.example/result",
    ],
)
def test_an_address_that_nobody_may_send_us_to_is_not_called(shop: Shop, url: str) -> None:
    """R10: through the outbound guard, and why is kept."""
    start(shop.api, url)
    advance(shop.api, 29 * MINUTE)
    attempt = CallAttempt.objects.order_by("number").first()
    assert attempt is not None
    assert attempt.status is None
    assert attempt.failure


def test_an_apps_address_is_never_called(shop: Shop) -> None:
    """Decisions, section 7."""
    start(shop.api, "com.shop.app://result")
    assert "result calls" not in advance(shop.api, 40 * MINUTE).body["ran"]
    assert not CallAttempt.objects.exists()


def test_a_worker_that_dies_between_claim_and_call_is_followed_by_one_call(shop: Shop, shop_page: Receiver) -> None:
    """R1: the lease runs out, and the call is made; nobody calls while it lasts."""
    start(shop.api, shop_page.url)
    jump(29 * MINUTE)
    (owed,) = result_calls.claim_due_result_calls(clock.real_now())
    assert owed.attempt == 1
    assert result_calls.make_due_result_calls(None) == 0
    ResultCall.objects.update(lease_until=clock.real_now())
    assert result_calls.make_due_result_calls(None) == 1
    assert len(shop_page.requests) == 1
    assert CallAttempt.objects.get().number == 2


def test_what_was_due_while_nothing_ran_is_called_once_and_not_after_a_day(shop: Shop) -> None:
    """docs/decisions/0023: an outage."""
    with receiving(answering(503)) as receiver:
        start(shop.api, receiver.url)
        jump(2 * 60 * MINUTE)
        registry.run_all_timers()
        registry.run_all_timers()
        assert len(receiver.requests) == 1
        start(shop.api, receiver.url)
        jump(25 * 60 * MINUTE)
        registry.run_all_timers()
        assert len(receiver.requests) == 1
    assert not ResultCall.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_four_workers_at_once_call_each_merchant_once(committed: Shop) -> None:
    """R1, issue: once, whatever dies."""
    gate = threading.Event()

    def behave(line: socket.socket, request: bytes) -> None:
        gate.wait(10)  # the others look for work meanwhile
        answering()(line, request)

    with receiving(behave) as receiver:
        for _ in range(3):
            start(committed.api, receiver.url)
        Merchant.objects.update(clock_offset=timedelta(minutes=29))
        threading.Timer(0.5, gate.set).start()
        made = at_once(*times(4, lambda: result_calls.make_due_result_calls(None)))
        assert sum(made) == 3
        assert len(receiver.requests) == 3
    assert CallAttempt.objects.count() == 3
