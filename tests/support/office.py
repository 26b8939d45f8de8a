"""Users of the back office, for tests: signed in, with a role on a node of the entity tree."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

from allauth.account.internal.flows.login import (
    _AUTHENTICATION_METHODS_USER_SESSION_KEY,
    AUTHENTICATION_METHODS_SESSION_KEY,
)
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from django.contrib.auth.models import User
from django.test import Client

from gateway.models import Channel, Division, Grant, Merchant, Psp, Role

Node = Psp | Division | Merchant | Channel


def person(name: str, role: Role | str, *nodes: Node, **limits: Any) -> User:
    """A user with one role on some nodes."""
    user = User.objects.create_user(name, is_staff=True)
    for node in nodes:
        Grant.objects.create(user=user, role=role, **{type(node).__name__.lower(): node}, **limits)
    return user


def signed_in(user: User, *, fresh: bool = True) -> Client:
    """A browser in which ``user`` has signed in, a moment ago or (not ``fresh``) longer."""
    client = Client(raise_request_exception=False)
    client.force_login(user)
    if fresh:
        prove(client, user)
    return client


def prove(client: Client, user: User) -> None:
    """``user`` has shown in this browser, just now, who they are."""
    session = client.session
    session[AUTHENTICATION_METHODS_SESSION_KEY] = [{"method": "password", "at": time.time(), "reauthenticated": True}]
    session[_AUTHENTICATION_METHODS_USER_SESSION_KEY] = str(user.pk)
    session.save()


def app_of(user: User) -> str:
    """The key of an authenticator app that ``user`` has set up, with recovery codes."""
    secret = totp.generate_totp_secret()
    totp.TOTP.activate(user, secret)
    RecoveryCodes.activate(user)
    return str(secret)


def code_of(secret: str, ahead: int = 0) -> str:
    """What an app with this key shows now, or some steps ahead."""
    step = int(time.time()) // 30 + ahead
    return str(totp.format_hotp_value(totp.hotp_value(secret, step)))


def recovery_codes_of(user: User) -> list[str]:
    return list(Authenticator.objects.get(user=user, type="recovery_codes").wrap().get_unused_codes())


class Moving:
    """Real time, held still and moved by hand."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def shift(self, by: timedelta) -> None:
        self.at += by

    def real(self) -> datetime:
        return self.at
