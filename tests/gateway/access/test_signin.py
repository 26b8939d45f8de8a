"""What a second factor is kept as, used up and counted by, and when a session is touched or swept.

Source: docs/decisions/0051; RFC 6238, 5.2; PCI DSS 4.0.1, 8.2.8, 8.3.4.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from pytest_django.fixtures import Settings

from gateway.access import audit_log, signin
from gateway.core import clock
from gateway.models import AuditEntry, FactorSecret, SignIn
from gateway.vault.sealing import VaultError
from tests.support.database import places_of
from tests.support.office import Moving, app_of, code_of, recovery_codes_of

pytestmark = pytest.mark.django_db
BY = audit_log.Actor(name="boss", ip="198.51.100.7")
SECRET = "JBSWY3DPEHPK3PXP"
SECOND = timedelta(seconds=1)


@pytest.fixture
def clara() -> User:
    return User.objects.create_user("clara", is_staff=True)


@pytest.fixture
def other() -> User:
    return User.objects.create_user("other", is_staff=True)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Moving:
    """Real time for us, and for the columns that Django fills."""
    moving = Moving(datetime(2027, 3, 1, 10, 5, tzinfo=UTC))
    for place in (f"{clock.__name__}.real_now", "django.utils.timezone.now"):
        monkeypatch.setattr(place, moving.real)
    return moving


def factor_of(user: User, kind: str, **values: Any) -> Authenticator:
    return Authenticator.objects.create(user=user, type=kind, **{"data": {}, **values})


# --- secrets --------------------------------------------------------------------------------------------------------


def test_a_factors_secret_is_sealed_in_a_row_of_its_own() -> None:
    first, second = (signin.seal_factor_secret(text) for text in (SECRET, "another"))
    assert (signin.open_factor_secret(first), signin.open_factor_secret(second)) == (SECRET, "another")
    assert {str(key) for key in FactorSecret.objects.values_list("pk", flat=True)} == {first, second}
    assert places_of(SECRET) == set()
    with pytest.raises(FactorSecret.DoesNotExist):
        signin.open_factor_secret(str(uuid.uuid4()))
    FactorSecret.objects.filter(pk=first).update(sealed=FactorSecret.objects.get(pk=second).sealed)
    with pytest.raises(VaultError):
        signin.open_factor_secret(first)


def test_the_key_of_an_app_that_is_being_set_up_is_sealed_for_its_session() -> None:
    first, second = (signin.seal_pending_factor(text) for text in (SECRET, "another"))
    assert (signin.open_pending_factor(first), signin.open_pending_factor(second)) == (SECRET, "another")
    assert SECRET not in first
    with pytest.raises(VaultError):
        signin.open_pending_factor(f"{first.partition('.')[0]}.{second.partition('.')[2]}")
    assert not FactorSecret.objects.exists()


def test_the_secrets_of_a_factor_go_with_it_and_no_others(clara: User) -> None:
    secret, seed, kept = (signin.seal_factor_secret(text) for text in ("a", "b", "c"))
    app = factor_of(clara, "totp", data={"secret": secret})
    codes = factor_of(clara, "recovery_codes", data={"seed": seed})
    passkey = factor_of(clara, "webauthn")

    def left() -> set[str]:
        return {str(key) for key in FactorSecret.objects.values_list("pk", flat=True)}

    passkey.delete()
    assert left() == {secret, seed, kept}
    app.delete()
    assert left() == {seed, kept}
    codes.delete()
    assert left() == {kept}


# --- which factors a user has ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "required"), [("required", True), ("optional", False), ("a", False), ("z", False), ("", False)]
)
def test_all_users_need_a_factor_only_where_the_setting_says_so(
    settings: Settings, setting: str, required: bool
) -> None:
    settings.GATEWAY_TOTP = setting
    assert signin.is_second_factor_required() is required


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([], []),
        (["recovery_codes"], []),
        (["totp"], ["totp"]),
        (["webauthn", "recovery_codes", "totp", "webauthn"], ["webauthn", "totp", "webauthn"]),
    ],
)
def test_a_second_factor_is_an_app_or_a_passkey_of_the_users_own(
    clara: User, other: User, kinds: list[str], expected: list[str]
) -> None:
    for kind in ("totp", "webauthn", "recovery_codes"):
        factor_of(other, kind)
    for kind in kinds:
        factor_of(clara, kind)
    assert [one.type for one in signin.list_second_factors(clara)] == expected
    assert all(one.user_id == clara.pk for one in signin.list_second_factors(clara))
    assert signin.has_second_factor(clara) is bool(expected)


def test_recovery_codes_are_counted_until_they_are_used(clara: User, other: User) -> None:
    app_of(other)
    factor_of(clara, "webauthn")
    assert signin.count_recovery_codes(clara) == 0
    app_of(clara)
    assert signin.count_recovery_codes(clara) == 10
    row = Authenticator.objects.get(user=clara, type="recovery_codes")
    assert row.wrap().validate_code(recovery_codes_of(clara)[0])
    assert (signin.count_recovery_codes(clara), signin.count_recovery_codes(other)) == (9, 10)


def test_removing_the_factors_is_in_the_trail_and_of_nothing_is_not(clara: User, other: User) -> None:
    app_of(clara)
    app_of(other)
    assert signin.remove_second_factors(clara, by=BY) is True
    assert set(Authenticator.objects.values_list("user", flat=True)) == {other.pk}
    assert signin.remove_second_factors(clara, by=BY) is False
    (entry,) = AuditEntry.objects.all()
    assert (entry.actor, entry.ip, entry.action, entry.subject, entry.subject_id, entry.after) == (
        "boss", "198.51.100.7", "second factor", "user", str(clara.pk), {"second factor": "removed"},
    )  # fmt: skip


# --- codes and answers that are used up -----------------------------------------------------------------------------


def test_a_code_is_used_up_with_all_before_it_and_those_of_others_are_not(clara: User, other: User) -> None:
    key = app_of(clara)
    app_of(other)
    row, beside = (Authenticator.objects.get(user=user, type="totp") for user in (clara, other))
    wrong = "000000" if code_of(key) != "000000" else "111111"
    assert not signin.consume_totp_step(row, wrong)
    now, next_one = code_of(key), code_of(key, 1)
    assert signin.consume_totp_step(row, now)
    assert not signin.consume_totp_step(row, now), "once"
    assert signin.consume_totp_step(row, next_one)
    assert not signin.consume_totp_step(row, now), "it is before the last one"
    beside.refresh_from_db()
    row.refresh_from_db()
    assert ("step" in row.data, "step" in beside.data) == (True, False)
    assert "secret" in row.data


def test_an_answer_is_used_up_with_all_before_it_and_those_of_others_are_not(clara: User, other: User) -> None:
    row, beside = (factor_of(user, "webauthn", data={"credential": 1}) for user in (clara, other))
    asked = (100.5, 100.5, 100.25, 100.75, 100.5)
    assert [signin.take_answer(row, at) for at in asked] == [True, False, False, True, False]
    row.refresh_from_db()
    beside.refresh_from_db()
    assert (row.data, beside.data) == ({"credential": 1, "asked_at": 100.75}, {"credential": 1})


# --- wrong codes ----------------------------------------------------------------------------------------------------


def refuse(user: User, action: str = "refused", **after: str) -> None:
    audit_log.record_audit_entry(BY, action, user, after=after or {"with": "code"})


def test_of_a_user_without_a_factor_no_wrong_code_is_counted(clara: User, other: User) -> None:
    factor_of(other, "totp")
    refuse(clara)
    assert signin.count_wrong_codes(clara) == 0


@pytest.mark.parametrize(
    ("factors", "counted"),
    [
        # (kind, made, last used) in seconds of a minute with a wrong code at 10, 20 and 30.
        ([("totp", 0, None)], 3),
        ([("webauthn", 15, None)], 2),
        ([("totp", 0, 15)], 2),
        ([("totp", 0, 25), ("webauthn", 15, None)], 1),
        ([("totp", 0, 15), ("webauthn", 25, None)], 1),
        ([("totp", 0, None), ("recovery_codes", 25, None)], 3),
        ([("totp", 0, None), ("recovery_codes", 5, 25)], 1),
        ([("totp", 0, 40)], 0),
        # A wrong code of the same moment was before it.
        ([("totp", 0, 20)], 1),
    ],
)
def test_wrong_codes_count_since_a_factor_was_last_used_or_set_up(
    clara: User, other: User, time: Moving, factors: list[tuple[str, int, int | None]], counted: int
) -> None:
    """New recovery codes set nothing back, used ones do."""
    start = time.at
    factor_of(other, "totp", created_at=start + 35 * SECOND, last_used_at=start + 35 * SECOND)
    for kind, made, used in factors:
        last = None if used is None else start + used * SECOND
        factor_of(clara, kind, created_at=start + made * SECOND, last_used_at=last)
    for _ in range(3):
        time.shift(10 * SECOND)
        refuse(clara)
        refuse(other)
        refuse(clara, **{"with": "password"})
        refuse(clara, action="signed in")
        audit_log.record_audit_entry_for(BY, "refused", "merchant", str(clara.pk), after={"with": "code"})
    assert signin.count_wrong_codes(clara) == counted


def test_wrong_codes_are_counted_up_to_one_more_than_there_may_be(clara: User) -> None:
    factor_of(clara, "totp", created_at=clock.real_now() - timedelta(days=1))
    AuditEntry.objects.bulk_create(
        AuditEntry(actor="x", action="refused", subject="user", subject_id=str(clara.pk), after={"with": "code"})
        for _ in range(signin.MAX_WRONG_CODES + 3)
    )
    assert signin.count_wrong_codes(clara) == signin.MAX_WRONG_CODES + 1


# --- sessions -------------------------------------------------------------------------------------------------------


def session_of(user: User, at: datetime, seen: datetime | None = None) -> SignIn:
    return SignIn.objects.create(user=user, at=at, last_seen_at=seen or at)


@pytest.mark.parametrize("used", [True, False, None])
def test_a_session_is_touched_when_its_minute_has_passed_if_it_is_used(
    clara: User, time: Moving, used: bool | None
) -> None:
    """Which a request is unless it is said not to be."""
    row, beside = (session_of(clara, time.at) for _ in range(2))
    chosen = {} if used is None else {"used": used}
    for later, written in ((signin.LAST_SEEN_INTERVAL, False), (timedelta(milliseconds=1), used is not False)):
        time.shift(later)
        assert signin.touch_session(row, **chosen) is True
        kept = SignIn.objects.get(pk=row.pk)
        assert kept.last_seen_at == (time.at if written else row.last_seen_at)
        assert kept.ended_at is None
    beside.refresh_from_db()
    assert beside.last_seen_at == row.at


@pytest.mark.parametrize("limit", ["hours", "idle minutes"])
def test_a_session_ends_a_moment_after_its_limit(clara: User, time: Moving, settings: Settings, limit: str) -> None:
    settings.GATEWAY_SESSION_HOURS, settings.GATEWAY_SESSION_IDLE_MINUTES = 2, 15
    begun = time.at
    row, beside = (session_of(clara, begun) for _ in range(2))
    time.shift(timedelta(hours=2) if limit == "hours" else timedelta(minutes=15))
    if limit == "hours":
        row.last_seen_at = time.at
    assert signin.touch_session(row, used=False) is True
    time.shift(timedelta(milliseconds=1))
    assert signin.touch_session(row, used=False) is False
    row.refresh_from_db()
    beside.refresh_from_db()
    assert (row.ended_at, row.ended_by, beside.ended_at) == (time.at, "age", None)


def test_a_session_is_ended_once_and_says_by_whom(clara: User, time: Moving) -> None:
    rows = [session_of(clara, time.at) for _ in range(3)]
    first = time.at
    assert signin.end_sessions(SignIn.objects.filter(pk=rows[0].pk), by="b" * 200) == 1
    time.shift(SECOND)
    assert signin.end_sessions(SignIn.objects.all(), by="again") == 2
    ended = SignIn.objects.order_by("pk").values_list("ended_at", "ended_by")
    assert sorted(ended) == sorted([(first, "b" * 150), (time.at, "again"), (time.at, "again")])
    rows[0].refresh_from_db()
    assert signin.touch_session(rows[0]) is False


def test_the_newest_hundred_open_sessions_are_listed(clara: User, time: Moving) -> None:
    SignIn.objects.bulk_create(
        SignIn(user=clara, at=time.at - number * SECOND, last_seen_at=time.at) for number in range(101)
    )
    listed = signin.list_open_sessions(clara)
    assert [one.at for one in listed] == [time.at - number * SECOND for number in range(100)]


def test_browsers_sessions_that_have_had_their_time_are_deleted_and_counted(time: Moving) -> None:
    for key, seconds in (("a", -2), ("b", -1), ("c", 0), ("d", 1)):
        Session.objects.create(session_key=key, session_data="", expire_date=time.at + seconds * SECOND)
    assert signin.delete_expired_sessions() == 2
    assert set(Session.objects.values_list("session_key", flat=True)) == {"c", "d"}
    assert signin.delete_expired_sessions() == 0
    assert signin.TIMER.run is signin.delete_expired_sessions
