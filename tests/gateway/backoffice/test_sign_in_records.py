"""The records of sign-ins that users are shown: their own, and no other user's.

Source: docs/decisions/0051; PCI DSS 4.0.1, 8.2.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.access import signin
from gateway.core import clock
from gateway.models import Role, SignIn
from tests.support.fixtures import Shop
from tests.support.office import person

pytestmark = pytest.mark.django_db


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
