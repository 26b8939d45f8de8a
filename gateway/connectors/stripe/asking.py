"""Looking things up at the processor, for whoever was told of something and wants to know it from the processor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.connectors.port import Account, Silence
from gateway.connectors.stripe.account import SIGNING, Unusable, setup_of
from gateway.connectors.stripe.wire import Kind, Talk
from gateway.secret import Secret

MOST_LISTED: Final = 100


class NotThere(Exception):
    """The processor knows no such object."""


def look(account: Account, path: str, fields: Sequence[tuple[str, str]] = ()) -> Mapping[str, Any]:
    """The object at ``path``. Raises Silence when the processor cannot be asked, NotThere when it knows none."""
    try:
        found = Talk(setup_of(account)).get(path, fields)
    except Unusable as fault:
        raise Silence(str(fault), {"get": path}) from None
    if found.kind is Kind.REFUSED:
        raise NotThere(path)
    if found.kind is not Kind.DONE:
        raise Silence(f"the processor could not be asked: {found.why}", {"get": path})
    return found.body


def listed(account: Account, path: str, fields: Sequence[tuple[str, str]]) -> list[Mapping[str, Any]]:
    """The newest MOST_LISTED objects of a list."""
    page = look(account, path, [*fields, ("limit", str(MOST_LISTED))]).get("data")
    return [one for one in page if isinstance(one, dict)] if isinstance(page, list) else []


def signing_secrets(secrets: Mapping[str, Secret]) -> list[Secret]:
    """What the account's webhooks are signed with."""
    kept = secrets.get(SIGNING)
    return [Secret(text) for text in kept.reveal().split()] if kept else []
