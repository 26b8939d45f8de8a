"""One queue of approvals: the page lists tokens, months and shoppers' data, too, to those who may
decide them and did not ask themselves."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.contrib.auth.models import User

from gateway.access import tokens
from gateway.access.audit_log import Actor
from gateway.core import clock
from gateway.models import AccessToken, ErasureRequest, Role
from reporting.models import MonthClosing
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
QUEUE = "/admin/gateway/approval/"


@pytest.fixture
def asker(shop: Shop) -> User:
    """Asked for one of each: a token a day ago, a month two days ago, an erasure three days ago."""
    user, now = person("asker", Role.MANAGER, shop.merchant), clock.real_now()
    token, _text = tokens.issue_token(
        shop.merchant,
        name="for the till",
        by=Actor(name="asker"),
        requested_by=user.pk,
        approved=False,
    )
    AccessToken.objects.filter(pk=token.pk).update(created_at=now - timedelta(days=1))
    MonthClosing.objects.create(
        merchant=shop.merchant,
        month=date(2026, 3, 1),
        figures={},
        digest="0" * 64,
        prepared_by=user,
        prepared_by_name="asker",
        prepared_at=now - timedelta(days=2),
    )
    ErasureRequest.objects.create(
        merchant=shop.merchant,
        kind=ErasureRequest.Kind.EMAIL,
        value="zoe@shop.example",
        shown="z…@shop.example",
        reason="her letter",
        asked_by=user,
        asked_by_name="asker",
        asked_at=now - timedelta(days=3),
    )
    return user


def queue_of(user: User) -> str:
    return signed_in(user).get(QUEUE).content.decode()


def test_who_may_decide_has_all_of_it_the_oldest_first(shop: Shop, asker: User) -> None:
    page = queue_of(person("second", Role.MANAGER, shop.merchant))
    assert "Also waiting for a second person" in page
    assert "Nothing waits for a decision" not in page
    places = [page.index(words) for words in ("z…@shop.example", "2026-03<", "for the till")]
    assert places == sorted(places)
    assert "zoe@shop.example" not in page


def test_nobody_has_their_own_requests_to_decide(asker: User) -> None:
    page = queue_of(asker)
    assert "Also waiting" not in page
    assert "Nothing waits for a decision" in page


def test_neither_a_stranger_nor_a_clerk_has_what_they_may_not_decide(shop: Shop, stranger: Shop, asker: User) -> None:
    elsewhere = queue_of(person("elsewhere", Role.MANAGER, stranger.merchant))
    clerk = signed_in(person("carla", Role.CLERK, shop.merchant)).get(f"{QUEUE}?list=waiting").content.decode()
    assert "Also waiting" not in elsewhere
    assert "for the till" not in clerk
    assert "2026-03<" not in clerk


def test_who_has_a_limit_is_not_offered_tokens_that_would_pass_it(shop: Shop, asker: User) -> None:
    page = queue_of(person("limited", Role.MANAGER, shop.merchant, four_eyes_above="100.00"))
    assert "2026-03<" in page
    assert "for the till" not in page


def test_what_is_decided_or_over_waits_no_more(shop: Shop, asker: User) -> None:
    AccessToken.objects.filter(name="for the till").update(ends_at=clock.real_now())
    MonthClosing.objects.update(state=MonthClosing.State.RETURNED)
    ErasureRequest.objects.update(state=ErasureRequest.State.REJECTED, value="")
    assert "Also waiting" not in queue_of(person("second", Role.MANAGER, shop.merchant))
