"""Looking things up at the processor, for whoever was told of something and wants to know it from the processor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.connectors.port import Account, Silence
from gateway.connectors.stripe.account import SIGNING, Unusable, setup_of
from gateway.connectors.stripe.mapping import text_of
from gateway.connectors.stripe.question import INTENTS, REFUNDS, SETUPS
from gateway.connectors.stripe.wire import Kind, Talk
from gateway.secret import Secret

MOST_LISTED: Final = 100


NOT_FOUND: Final = 404


class NotThere(Exception):
    """The processor knows no such object. ``status``: of its answer."""

    def __init__(self, path: str, status: int = 0) -> None:
        super().__init__(path)
        self.status = status


def look(account: Account, path: str, fields: Sequence[tuple[str, str]] = ()) -> Mapping[str, Any]:
    """The object at ``path``. Raises Silence when the processor cannot be asked, NotThere when it knows none."""
    try:
        found = Talk(setup_of(account)).get(path, fields)
    except Unusable as fault:
        raise Silence(str(fault), {"get": path}) from None
    if found.kind is Kind.REFUSED:
        raise NotThere(path, found.status)
    if found.kind is not Kind.DONE:
        raise Silence(f"the processor could not be asked: {found.why}", {"get": path})
    return found.body


_HOMES: Final[Mapping[str, str]] = {"pi": INTENTS, "seti": SETUPS, "re": REFUNDS, "ch": "/v1/charges"}
"""The beginning of an id → where such objects lie."""


def sees(account: Account, ident: str) -> bool | None:
    """Whether the account's key sees an object. None for no answer, no key, or an id that is no object's."""
    home = _HOMES.get(ident.partition("_")[0])
    if home is None or not text_of(ident):
        return None
    try:
        look(account, f"{home}/{ident}")
    except NotThere as fault:
        return False if fault.status == NOT_FOUND else None
    except Silence:
        return None
    return True


def listed(account: Account, path: str, fields: Sequence[tuple[str, str]]) -> list[Mapping[str, Any]]:
    """The newest MOST_LISTED objects of a list."""
    page = look(account, path, [*fields, ("limit", str(MOST_LISTED))]).get("data")
    return [one for one in page if isinstance(one, dict)] if isinstance(page, list) else []


def signing_secrets(secrets: Mapping[str, Secret]) -> list[Secret]:
    """What the account's webhooks are signed with."""
    kept = secrets.get(SIGNING)
    return [Secret(text) for text in kept.reveal().split()] if kept else []
