"""Users of the back office, for tests: signed in, with a role on a node of the entity tree."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from gateway import clock
from gateway.admin.session import FRESH_AT
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
        session = client.session
        session[FRESH_AT] = clock.real().timestamp()
        session.save()
    return client


class Moving:
    """Real time, held still and moved by hand."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def shift(self, by: timedelta) -> None:
        self.at += by

    def real(self) -> datetime:
        return self.at
