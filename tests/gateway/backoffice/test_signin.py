"""The records of sign-ins that users are shown: their own, and no other user's.

Source: docs/decisions/0051; PCI DSS 4.0.1, 8.2.
"""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from allauth.account.internal.flows.login import (
    _AUTHENTICATION_METHODS_USER_SESSION_KEY,
    AUTHENTICATION_METHODS_SESSION_KEY,
)
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.test import RequestFactory
from pytest_django.fixtures import Settings

from gateway.access import signin
from gateway.access.sessions import SessionStore
from gateway.backoffice.sign_in import session
from gateway.core import clock
from gateway.models import Role, SignIn
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=2)
"""More than the steps of a test take."""


def test_a_sign_in_is_recorded_with_its_address_its_browser_and_its_factor(shop: Shop) -> None:
    clara = person("clara", Role.CLERK, shop.merchant)
    made = signin.begin_session(clara, ip="198.51.100.7", agent="b" * 1_000, second_factor=True)
    made.refresh_from_db()
    assert (made.user, made.ip, made.second_factor) == (clara, "198.51.100.7", True)
    assert made.agent == "b" * signin.MAX_USER_AGENT_CHARS
    assert made.at == made.last_seen_at


def test_the_sign_in_before_is_the_users_own_and_the_newest_of_them(shop: Shop) -> None:
    clara, other = (person(name, Role.CLERK, shop.merchant) for name in ("clara", "other"))
    now = clock.real_now()

    def sign_in(user: object, hours: int) -> SignIn:
        at = now - timedelta(hours=hours)
        return SignIn.objects.create(user=user, at=at, last_seen_at=at)

    sign_in(clara, 9)
    before = sign_in(clara, 5)
    first_of_other = sign_in(other, 3)
    here = sign_in(clara, 1)
    sign_in(clara, 0)
    assert signin.find_previous_sign_in(here) == before
    assert signin.find_previous_sign_in(first_of_other) is None


def test_open_sessions_are_the_users_own_the_newest_first(shop: Shop) -> None:
    clara, other = (person(name, Role.CLERK, shop.merchant) for name in ("clara", "other"))
    mine = [signin.begin_session(clara, ip=None, agent="", second_factor=False) for _ in range(2)]
    signin.begin_session(other, ip=None, agent="", second_factor=False)
    assert signin.list_open_sessions(clara) == mine[::-1]
    signin.end_sessions(SignIn.objects.filter(pk=mine[1].pk), by="clara")
    assert signin.list_open_sessions(clara) == mine[:1]


@pytest.mark.parametrize(
    ("begun", "seen", "still"),
    [
        (timedelta(0), timedelta(0), True),
        (timedelta(hours=12) - SECOND, timedelta(0), True),
        (timedelta(hours=12) + SECOND, timedelta(0), False),
        (timedelta(hours=1), timedelta(minutes=15) - SECOND, True),
        (timedelta(hours=1), timedelta(minutes=15) + SECOND, False),
    ],
)
def test_a_session_is_open_until_its_hours_or_its_idle_minutes_have_passed(
    shop: Shop, settings: Settings, begun: timedelta, seen: timedelta, still: bool
) -> None:
    """The page's list and the check of each request say the same. PCI DSS 4.0.1, 8.2.8."""
    settings.GATEWAY_SESSION_HOURS, settings.GATEWAY_SESSION_IDLE_MINUTES = 12, 15
    clara = person("clara", Role.CLERK, shop.merchant)
    now = clock.real_now()
    row = SignIn.objects.create(user=clara, at=now - begun, last_seen_at=now - seen)
    assert bool(signin.list_open_sessions(clara)) is still
    assert signin.touch_session(row) is still
    row.refresh_from_db()
    assert (row.ended_at is None, row.ended_by) == (still, "" if still else "age")


def test_a_page_within_the_minute_writes_no_row_and_one_after_it_does(shop: Shop) -> None:
    clara = person("clara", Role.CLERK, shop.merchant)
    now = clock.real_now()
    for ago, used, written in ((30, True, False), (90, True, True), (90, False, False)):
        seen = now - timedelta(seconds=ago)
        row = SignIn.objects.create(user=clara, at=seen, last_seen_at=seen)
        with statements() as asked:
            assert signin.touch_session(row, used=used)
        assert bool(asked) is written
        row.refresh_from_db()
        assert (row.last_seen_at > seen) is written


# --- the session of a request ---------------------------------------------------------------------------------------


def asked_by(user: User, row: SignIn | None) -> HttpRequest:
    """A request in the session of that row."""
    request = RequestFactory().get("/admin/")
    request.user, request.session = user, SessionStore()
    if row is not None:
        request.session[session.SIGN_IN_SESSION_KEY] = str(row.pk)
    return request


@pytest.fixture
def users(shop: Shop) -> tuple[User, User]:
    return person("clara", Role.CLERK, shop.merchant), person("other", Role.CLERK, shop.merchant)


def begin(user: User, *, second_factor: bool = False) -> SignIn:
    return signin.begin_session(user, ip=None, agent="", second_factor=second_factor)


def list_open() -> set[SignIn]:
    return set(SignIn.objects.filter(ended_at=None))


def test_other_sessions_are_of_the_same_user_in_other_browsers(users: tuple[User, User]) -> None:
    clara, other = users
    here, elsewhere, _theirs = begin(clara), begin(clara), begin(other)
    assert list(session.list_other_sign_ins(asked_by(clara, here))) == [elsewhere]
    assert set(session.list_other_sign_ins(asked_by(clara, None))) == {here, elsewhere}


def test_signing_out_ends_this_session_alone(users: tuple[User, User]) -> None:
    clara, other = users
    here, elsewhere, theirs = begin(clara), begin(clara), begin(other)
    session.end_current_session(asked_by(clara, here))
    assert list_open() == {elsewhere, theirs}


def test_a_new_record_ends_the_one_that_the_session_had(users: tuple[User, User]) -> None:
    clara, other = users
    here, elsewhere, theirs = begin(clara), begin(clara), begin(other)
    made = session.start_session_record(asked_by(clara, here), second_factor=True)
    assert list_open() == {made, elsewhere, theirs}
    here.refresh_from_db()
    assert here.ended_by == "clara"


def test_a_new_factor_ends_the_users_other_sessions_that_have_none(users: tuple[User, User]) -> None:
    clara, other = users
    here, without, with_one, theirs = begin(clara), begin(clara), begin(clara, second_factor=True), begin(other)
    session.apply_new_factor(asked_by(clara, here))
    assert list_open() == {here, with_one, theirs}
    assert [SignIn.objects.get(pk=one.pk).second_factor for one in (here, without, theirs)] == [True, False, False]


@pytest.mark.parametrize(
    ("records", "asked_at", "recent"),
    [
        ([], None, False),
        ([("password", 0)], None, True),
        ([("password", 299)], None, True),
        ([("password", 301)], None, False),
        ([("password", -60)], None, False),
        ([("password", 900), ("mfa", 10)], None, True),
        ([("mfa", 10), ("password", 900)], None, True),
        ([("socialaccount", 10)], None, True),
        ([("socialaccount", 10)], 10, True),
        ([("socialaccount", 10)], 900, False),
        ([("socialaccount", 900)], 10, False),
        ([("socialaccount", 10), ("password", 10)], 900, True),
    ],
)
def test_who_has_shown_who_they_are_has_done_so_within_five_minutes(
    users: tuple[User, User], records: list[tuple[str, int]], asked_at: int | None, recent: bool
) -> None:
    """Seconds ago. Of single sign-on the earlier of the two moments counts: what the provider says, and our own. A
    moment ahead is none: a clock was put back."""
    request, now = asked_by(users[0], None), time.time()
    request.session[AUTHENTICATION_METHODS_SESSION_KEY] = [{"method": how, "at": now - ago} for how, ago in records]
    request.session[_AUTHENTICATION_METHODS_USER_SESSION_KEY] = str(users[0].pk)
    if asked_at is not None:
        request.session[session.PROVIDER_AUTHENTICATED_AT_KEY] = now - asked_at
    assert session.is_recently_authenticated(request) is recent


def test_a_row_of_another_user_is_no_session_of_this_one(users: tuple[User, User]) -> None:
    """A browser with the session of another user."""
    clara, other = users
    client = signed_in(clara)
    assert client.get("/admin/").status_code == 200
    kept = client.session
    kept[session.SIGN_IN_SESSION_KEY] = str(begin(other, second_factor=True).pk)
    kept.save()
    client.get("/admin/")
    begun = SignIn.objects.get(pk=client.session[session.SIGN_IN_SESSION_KEY])
    assert begun.user == clara


def test_a_session_that_the_rules_ended_says_so(users: tuple[User, User]) -> None:
    clara, _ = users
    client = signed_in(clara)
    assert client.get("/admin/").status_code == 200
    User.objects.filter(pk=clara.pk).update(is_staff=False)
    assert client.get("/admin/").status_code == 302
    assert [row.ended_by for row in SignIn.objects.filter(user=clara)] == [session.RULES]
    User.objects.filter(pk=clara.pk).update(is_staff=True)
    assert client.get("/admin/").status_code == 302
