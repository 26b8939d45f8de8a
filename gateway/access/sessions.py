"""Session engine: a database row for visitors who have shown a password, a signed cookie for everyone else.

Anyone may open the sign-in page, request a passkey challenge or start single sign-on, as often as they like. The state
of such a visit is small and stays in the visitor's browser, so that visitors write no rows. With the right password,
passkey or identity it moves to a row, which can be ended from here. Source: docs/decisions/0051.
"""

from __future__ import annotations

from typing import Any, Final

from allauth.account.internal.stagekit import LOGIN_SESSION_KEY
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.contrib.sessions.serializers import JSONSerializer
from django.core import signing

COOKIE_S: Final = 1800
"""Lifetime of a visitor's cookie: time to sign in at an identity provider and come back."""
MAX_COOKIE_CHARS: Final = 3_800
"""Browsers drop cookies above 4,096 bytes. A visit with more state starts over."""
_SALT: Final = "gateway.access.sessions"


class SessionStore(db.SessionStore):
    """One browser's session. Its key is the key of a row, or the signed cookie itself."""

    def load(self) -> dict[str, Any]:
        if not _is_cookie(self.session_key):
            return super().load()
        try:
            data = signing.loads(str(self.session_key), salt=_SALT, serializer=JSONSerializer, max_age=COOKIE_S)
        except (signing.BadSignature, ValueError):
            self._session_key = None
            return {}
        # Only visitors have cookies: one with a signed-in user was not made here.
        return data if isinstance(data, dict) and not _needs_row(data) else {}

    def create(self) -> None:
        """Start a session with a new key. A visitor's key is made when the session is saved."""
        if _needs_row(self._get_session(no_load=True)):  # type: ignore[attr-defined]  # not in django-stubs
            super().create()
            return
        self._session_key = None
        self.modified = True

    def save(self, must_create: bool = False) -> None:
        has_row = self.session_key is not None and not _is_cookie(self.session_key)
        if has_row or must_create:
            super().save(must_create)
            return
        data = self._get_session()  # type: ignore[attr-defined]  # not in django-stubs
        if _needs_row(data):
            super().create()
            return
        self._session_key = _cookie_of(data)

    def exists(self, session_key: str) -> bool:
        return not _is_cookie(session_key) and super().exists(session_key)

    def delete(self, session_key: str | None = None) -> None:
        if not _is_cookie(session_key or self.session_key):
            super().delete(session_key)


def _is_cookie(key: str | None) -> bool:
    """True for a signed cookie: it has a colon before its signature. Keys of rows are 32 letters and digits."""
    return ":" in (key or "")


def _needs_row(data: dict[str, Any]) -> bool:
    """True if a user is signed in, or has shown a password and is asked for a second factor."""
    return SESSION_KEY in data or LOGIN_SESSION_KEY in data


def _cookie_of(data: dict[str, Any]) -> str:
    made: str = signing.dumps(data, salt=_SALT, serializer=JSONSerializer, compress=True)
    return made if len(made) <= MAX_COOKIE_CHARS else signing.dumps({}, salt=_SALT, serializer=JSONSerializer)
