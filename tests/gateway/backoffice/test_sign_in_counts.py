"""What wrong tries are counted by, apart from forms: places, names, times; and the second factor's own counts.

Source: PCI DSS 4.0.1, 8.3.4; docs/decisions/0051.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.http import HttpRequest
from django.test import RequestFactory
from pytest_django.fixtures import Settings

from gateway.access import audit_log, signin
from gateway.backoffice.sign_in import lockout, password_budget
from gateway.core import clock
from gateway.models import AuditEntry, FactorSecret, Role, SignIn
from tests.support.fixtures import Shop
from tests.support.office import Moving, app_of, person

pytestmark = pytest.mark.django_db
HOME, AWAY = "198.51.100.7", "192.0.2.1"
BY = audit_log.Actor(name="tests")


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Moving:
    """Real time for us, for axes and for Django."""
    moving = Moving(datetime(2027, 3, 1, 10, 5, tzinfo=UTC))
    for place in (f"{clock.__name__}.real_now", "axes.handlers.proxy.now", "django.utils.timezone.now"):
        monkeypatch.setattr(place, moving.real)
    return moving


@pytest.fixture
def clara(shop: Shop) -> User:
    return person("clara", Role.CLERK, shop.merchant)


def asked_from(address: str) -> HttpRequest:
    request = RequestFactory().post("/admin/login/", REMOTE_ADDR=address)
    request.user = AnonymousUser()
    return request


def try_wrong(name: str, address: str, number: int = 1) -> None:
    for _ in range(number):
        lockout.record_failed_attempt(asked_from(address), name)


def is_locked(name: str, address: str) -> bool:
    return lockout.is_sign_in_locked(asked_from(address), name)


# --- places ---------------------------------------------------------------------------------------------------------


def test_a_place_is_known_to_its_user_alone_for_thirty_days(clara: User, shop: Shop, time: Moving) -> None:
    signin.begin_session(clara, ip=HOME, agent="", second_factor=False)
    signin.begin_session(person("Other", Role.CLERK, shop.merchant), ip=AWAY, agent="", second_factor=False)
    known = [(HOME, "clara"), (HOME, "CLARA"), (AWAY, "other")]
    assert [lockout.is_known_place(asked_from(place), name) for place, name in known] == [True] * 3
    assert not lockout.is_known_place(asked_from(AWAY), "clara"), "where another user signed in"
    time.shift(lockout.KNOWN_ADDRESS_RETENTION - timedelta(seconds=1))
    assert lockout.is_known_place(asked_from(HOME), "clara")
    time.shift(timedelta(seconds=1))
    assert not lockout.is_known_place(asked_from(HOME), "clara")


def test_the_newest_sign_ins_are_looked_at(clara: User, time: Moving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockout, "MAX_KNOWN_SIGN_INS", 2)
    for number in range(3):
        signin.begin_session(clara, ip=f"198.51.{number}.7", agent="", second_factor=False)
        time.shift(timedelta(minutes=1))
    known = [lockout.is_known_place(asked_from(f"198.51.{number}.7"), "clara") for number in range(3)]
    assert known == [False, True, True]


def test_an_address_that_tried_many_names_may_try_again_after_half_an_hour(time: Moving) -> None:
    for number in range(lockout.ADDRESS_LOCKOUT_FACTOR):
        try_wrong(f"name {number}", AWAY, 10)
    assert is_locked("another", AWAY)
    time.shift(timedelta(minutes=31))
    assert not is_locked("another", AWAY)


def test_an_unlocked_name_is_free_however_it_is_written(time: Moving) -> None:
    try_wrong("clara", AWAY, 10)
    try_wrong("other", AWAY, 10)
    assert lockout.unlock_sign_in("Clara")
    assert (is_locked("clara", AWAY), is_locked("other", AWAY)) == (False, True)
    assert not lockout.unlock_sign_in("clara"), "there was nothing to end"


@pytest.mark.django_db(transaction=True)
def test_a_strangers_attempt_that_is_running_holds_up_no_owner_at_a_known_place(committed: Shop) -> None:
    """Two attempts of one name and place wait for each other; the owner's, where they signed in before, does not."""
    owner = person("clara", Role.CLERK, committed.merchant)
    signin.begin_session(owner, ip=HOME, agent="", second_factor=False)
    refused: dict[str, object] = {}

    def attempt(address: str) -> None:
        try:
            with lockout.guard_attempt(asked_from(address), "clara"):
                refused[address] = None
        except lockout.SignInLockedError as fault:
            refused[address] = ("running", fault.until)
        finally:
            connection.close()

    with lockout.guard_attempt(asked_from(AWAY), "clara"):
        for address in (HOME, "203.0.113.9"):
            thread = Thread(target=attempt, args=(address,))
            thread.start()
            thread.join()
    assert refused == {HOME: None, "203.0.113.9": ("running", None)}


# --- the budget of passwords ----------------------------------------------------------------------------------------


def test_checks_come_at_once_up_to_the_budget_and_are_earned_again_over_a_minute(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """docs/decisions/0062. A refused check costs nothing of what was earned."""
    settings.GATEWAY_PASSWORD_CHECKS_PER_MINUTE = 3
    now = 1_000.0
    monkeypatch.setattr(password_budget.time, "monotonic", lambda: now)
    monkeypatch.setattr(password_budget, "_left", 0.0)
    monkeypatch.setattr(password_budget, "_counted_at", float("-inf"))

    def count_checks() -> int:
        done = 0
        while done < 10:
            try:
                password_budget.spend_password_check()
            except password_budget.PasswordBudgetSpentError:
                break
            done += 1
        return done

    found = []
    for seconds in (0, 10, 10, 19, 1, 40, 600):
        now += seconds
        found.append(count_checks())
    assert found == [3, 0, 1, 0, 1, 2, 3]


# --- second factors -------------------------------------------------------------------------------------------------


def test_recovery_codes_alone_are_no_second_factor(clara: User) -> None:
    app_of(clara)
    Authenticator.objects.get(user=clara, type="totp").delete()
    assert signin.count_recovery_codes(clara) == 10
    assert not signin.has_second_factor(clara)
    assert signin.list_second_factors(clara) == []


def test_whoever_loses_the_factors_loses_all_of_them_and_nobody_else_does(clara: User, shop: Shop) -> None:
    other = person("other", Role.CLERK, shop.merchant)
    for user in (clara, other):
        app_of(user)
        Authenticator.objects.create(user=user, type="webauthn", data={})
    assert signin.remove_second_factors(clara, by=BY)
    assert not Authenticator.objects.filter(user=clara).exists()
    assert Authenticator.objects.filter(user=other).count() == 3
    assert FactorSecret.objects.count() == 2, "those of the other's app and recovery codes"
    assert not signin.remove_second_factors(clara, by=BY)
    assert AuditEntry.objects.filter(action="second factor").count() == 1


def test_wrong_codes_are_counted_since_a_factor_was_used_or_set_up(clara: User, shop: Shop, time: Moving) -> None:
    """Not wrong passwords, not another user's; new recovery codes set nothing back."""
    other = person("other", Role.CLERK, shop.merchant)
    app_of(clara)

    def refuse(user: User, proof: str) -> None:
        time.shift(timedelta(seconds=1))
        audit_log.record_audit_entry(BY, "refused", user, after={"with": proof})

    for user, proof in ((clara, "code"), (clara, "password"), (other, "code"), (clara, "code")):
        refuse(user, proof)
    assert signin.count_wrong_codes(clara) == 2
    Authenticator.objects.filter(user=clara, type="recovery_codes").update(created_at=time.real())
    assert signin.count_wrong_codes(clara) == 2
    Authenticator.objects.filter(user=clara, type="totp").update(last_used_at=time.real())
    assert signin.count_wrong_codes(clara) == 0
    refuse(clara, "code")
    assert signin.count_wrong_codes(clara) == 1
    Authenticator.objects.create(user=clara, type="webauthn", data={}, created_at=time.real())
    assert signin.count_wrong_codes(clara) == 0


def test_a_session_that_has_ended_keeps_when_and_by_whom(clara: User, time: Moving) -> None:
    row = signin.begin_session(clara, ip=None, agent="", second_factor=False)
    mine, ended_at = SignIn.objects.filter(pk=row.pk), time.real()
    assert signin.end_sessions(mine, by="clara") == 1
    time.shift(timedelta(hours=1))
    assert signin.end_sessions(mine, by="somebody else") == 0
    row.refresh_from_db()
    assert (row.ended_at, row.ended_by) == (ended_at, "clara")
    assert not signin.touch_session(row)
