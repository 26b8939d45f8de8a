"""Unused accounts are deactivated. Source: PCI DSS 4.0.1, 8.2.6; docs/decisions/0051."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from config.timers import TIMERS
from gateway.access import unused_accounts
from gateway.access.unused_accounts import disable_unused
from gateway.core import clock
from gateway.models import AuditEntry, Role, SignIn
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery 7"


def ago(days: float) -> datetime:
    return clock.real_now() - timedelta(days=days)


def aged(user: User, *, joined: float, login: float | None = None, **more: Any) -> User:
    """``user``, made and last signed in so many days ago."""
    at = None if login is None else ago(login)
    User.objects.filter(pk=user.pk).update(date_joined=ago(joined), last_login=at, **more)
    user.refresh_from_db()
    return user


def root(name: str, *, login: float, password: str | None = PASSWORD) -> User:
    return aged(User.objects.create_superuser(name, password=password), joined=400, login=login)


def active() -> set[str]:
    return set(User.objects.filter(is_active=True).values_list("username", flat=True))


def test_it_is_one_of_the_timers() -> None:
    assert "unused accounts" in {timer.name for timer in TIMERS}


def test_who_did_not_come_for_ninety_days_is_switched_off(shop: Shop) -> None:
    """With a row in the trail; who was only made, and who came or was made lately, are treated likewise."""
    gone = aged(person("gone", Role.CLERK, shop.merchant), joined=400, login=90.1)
    aged(person("never came", Role.CLERK, shop.merchant), joined=91)
    aged(person("came", Role.CLERK, shop.merchant), joined=400, login=89.9)
    aged(person("new", Role.CLERK, shop.merchant), joined=89)
    busy = aged(person("busy", Role.CLERK, shop.merchant), joined=400, login=91)
    SignIn.objects.create(user=busy, at=ago(91), last_seen_at=ago(89))
    assert disable_unused() == 2
    assert active() == {"came", "new", "busy"}
    entry = AuditEntry.objects.get(action="disable", subject_id=str(gone.pk))
    assert (entry.actor, entry.before) == ("unused accounts", {"is_active": True})
    assert entry.after == {"is_active": False, "not used for": "90 days"}
    assert disable_unused() == 0


def test_their_sessions_end(shop: Shop) -> None:
    """A browser's session that never asked for a page since."""
    gone = aged(person("gone", Role.CLERK, shop.merchant), joined=400, login=100)
    SignIn.objects.create(user=gone, at=ago(100), last_seen_at=ago(100))
    disable_unused()
    assert SignIn.objects.get().ended_by == "unused accounts"


def test_superusers_too_but_for_the_last_who_can_sign_in(shop: Shop) -> None:
    """Of those who can, the one who came last stays: nobody else could switch the others on again."""
    root("older", login=200)
    root("newer", login=150)
    root("without a password", login=120, password=None)
    disable_unused()
    assert active() == {"newer"}
    root("in use", login=1)
    disable_unused()
    assert active() == {"in use"}


def test_a_superuser_without_the_right_to_enter_is_not_the_last_one(shop: Shop) -> None:
    """Who is no staff cannot enter the back office, however lately the account was used."""
    root("older", login=200)
    aged(root("no staff", login=120), joined=400, login=120, is_staff=False)
    disable_unused()
    assert active() == {"older"}


def test_who_signs_in_at_this_moment_is_left_alone(shop: Shop) -> None:
    """The account was read as unused, and its user came before it was switched off."""
    read = aged(person("late", Role.CLERK, shop.merchant), joined=400, login=100)
    User.objects.filter(pk=read.pk).update(last_login=ago(0))
    assert not unused_accounts._disable(read, 90)
    assert active() == {"late"}
    assert not AuditEntry.objects.filter(action="disable").exists()


def test_who_is_switched_on_again_has_ninety_days_more(shop: Shop) -> None:
    """Else the next hour would take them out again."""
    gone = aged(person("gone", Role.CLERK, shop.merchant), joined=400, login=100)
    disable_unused()
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant))
    address = f"/admin/auth/user/{gone.pk}/change/"
    page = boss.get(address).content.decode()
    assert "it was not used. Switch it on" in page
    form = {
        "username": "gone",
        "first_name": "",
        "last_name": "",
        "email": "",
        "is_active": "on",
        "grants-TOTAL_FORMS": "0",
        "grants-INITIAL_FORMS": "0",
    }
    assert boss.post(address, form).status_code == 302
    assert disable_unused() == 0
    assert "gone" in active()
    page = boss.get(address).content.decode()
    assert f"Is switched off on {clock.real_now() + timedelta(days=90):%Y-%m-%d}" in page


def test_who_was_switched_off_by_a_manager_is_not_said_to_be_unused(shop: Shop) -> None:
    gone = aged(person("gone", Role.CLERK, shop.merchant), joined=400, login=100)
    AuditEntry.objects.create(
        actor="boss",
        action="change",
        subject="user",
        subject_id=str(gone.pk),
        before={"is_active": True},
        after={"is_active": False},
    )
    User.objects.filter(pk=gone.pk).update(is_active=False)
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant))
    assert "it was not used" not in boss.get(f"/admin/auth/user/{gone.pk}/change/").content.decode()


@pytest.mark.parametrize(("days", "left"), [(0, {"gone"}), (101, {"gone"}), (99, set())])
def test_the_days_are_the_operators(shop: Shop, settings: Any, days: int, left: set[str]) -> None:
    """GATEWAY_UNUSED_ACCOUNT_DAYS; 0: never, which live refuses (config.checks)."""
    settings.GATEWAY_UNUSED_ACCOUNT_DAYS = days
    aged(person("gone", Role.CLERK, shop.merchant), joined=400, login=100)
    disable_unused()
    assert active() == left


def test_who_is_switched_on_by_a_shell_has_ninety_days_more(shop: Shop) -> None:
    """It leaves no entry in the trail: the timer writes it, and switches them off only later."""
    gone = aged(person("gone", Role.CLERK, shop.merchant), joined=400, login=100)
    assert disable_unused() == 1
    User.objects.filter(pk=gone.pk).update(is_active=True)
    assert (disable_unused(), disable_unused()) == (0, 0)
    entry = AuditEntry.objects.filter(subject_id=str(gone.pk)).latest("id")
    assert (entry.actor, entry.before, entry.after["is_active"]) == ("unused accounts", {"is_active": False}, True)
    assert active() == {"gone"}
