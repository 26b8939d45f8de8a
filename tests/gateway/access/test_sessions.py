"""Where the session of a browser is kept: a visitor's in a signed cookie, a user's in a row. docs/decisions/0051."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from allauth.account.internal.stagekit import LOGIN_SESSION_KEY
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.contrib.sessions.serializers import JSONSerializer
from django.core import signing

from gateway.access import sessions
from gateway.access.sessions import SessionStore

pytestmark = pytest.mark.django_db


def saved(**data: Any) -> SessionStore:
    store = SessionStore()
    store.update(data)
    store.save()
    return store


def read(key: str | None) -> dict[str, Any]:
    return dict(SessionStore(key).items())


def test_a_visitors_session_is_a_signed_cookie_and_writes_no_row() -> None:
    store = saved(challenge="abc")
    assert store.session_key is not None
    assert ":" in store.session_key
    assert read(store.session_key) == {"challenge": "abc"}
    assert not Session.objects.exists()
    assert not store.exists(store.session_key)
    store.delete()
    store.delete(store.session_key)
    assert read(store.session_key) == {"challenge": "abc"}, "a cookie is deleted in the browser"


@pytest.mark.parametrize("name", [SESSION_KEY, LOGIN_SESSION_KEY])
def test_who_has_shown_a_password_has_a_row_that_can_be_ended(name: str) -> None:
    store = saved(**{name: "7", "more": "x"})
    assert store.session_key is not None
    assert ":" not in store.session_key
    assert Session.objects.get().session_key == store.session_key
    assert store.exists(store.session_key)
    assert read(store.session_key) == {name: "7", "more": "x"}
    store["more"] = "y"
    store.save()
    assert (read(store.session_key)["more"], Session.objects.count()) == ("y", 1)
    store.delete()
    assert read(store.session_key) == {}


def test_a_visitor_who_signs_in_moves_to_a_row_under_another_key() -> None:
    store = saved(next="/admin/")
    before = store.session_key
    store = SessionStore(before)
    store[SESSION_KEY] = "7"
    store.save()
    assert (read(store.session_key), store.session_key != before) == ({"next": "/admin/", SESSION_KEY: "7"}, True)
    assert Session.objects.count() == 1


@pytest.mark.parametrize("name", [None, SESSION_KEY, LOGIN_SESSION_KEY])
def test_a_new_key_is_a_rows_for_users_and_is_made_on_saving_for_visitors(name: str | None) -> None:
    store = SessionStore()
    store["more"] = "x"
    if name:
        store[name] = "7"
    store.cycle_key()
    assert (store.session_key is None) is (name is None)
    assert store.modified
    assert Session.objects.count() == (0 if name is None else 1)
    assert store["more"] == "x"


def signed(data: Any, salt: str = sessions._SALT) -> str:
    return signing.dumps(data, salt=salt, serializer=JSONSerializer, compress=True)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (signed({"a": "b"}), {"a": "b"}),
        (signed({"a": "b"})[:-1] + "!", {}),
        (signed({"a": "b"}, salt="another"), {}),
        ("no:signature", {}),
        (":", {}),
        # Users have rows: nobody is signed in by a cookie, whoever signed it.
        (signed({SESSION_KEY: "1"}), {}),
        (signed({LOGIN_SESSION_KEY: "1"}), {}),
        (signed(["a"]), {}),
        (signed("text"), {}),
    ],
    ids=["whole", "changed", "of another salt", "no signature", "empty", "a user", "a login", "a list", "a text"],
)
def test_of_a_cookie_only_what_was_signed_for_a_visitor_is_read(key: str, expected: dict[str, str]) -> None:
    assert read(key) == expected


@pytest.mark.parametrize(("seconds", "left"), [(-5, True), (5, False)])
def test_a_visitors_cookie_ends_after_half_an_hour(monkeypatch: pytest.MonkeyPatch, seconds: int, left: bool) -> None:
    key = signed({"a": "b"})
    now = signing.time.time()
    monkeypatch.setattr(signing.time, "time", lambda: now + sessions.COOKIE_S + seconds)
    assert read(key) == ({"a": "b"} if left else {})


def test_a_visit_with_more_than_a_cookie_holds_starts_over() -> None:
    """A short one that is compressed well is kept."""
    state = "".join(hashlib.sha256(bytes([number])).hexdigest() for number in range(200))
    assert len(signed({"a": "b" * 10_000})) < sessions.MAX_COOKIE_CHARS < len(signed({"a": state}))
    assert read(saved(a="b" * 10_000).session_key) == {"a": "b" * 10_000}
    assert read(saved(a=state).session_key) == {}
