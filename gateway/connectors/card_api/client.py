"""Reads objects from the processor, for webhook handling and account checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.connectors.account_settings import AccountSettingError
from gateway.connectors.card_api.account import WEBHOOK_SECRETS_SETTING, parse_card_api_setup
from gateway.connectors.card_api.mapping import parse_object_id
from gateway.connectors.card_api.operation import INTENTS_PATH, REFUNDS_PATH, SETUPS_PATH
from gateway.connectors.card_api.transport import CallVerdict, CardApiSession
from gateway.connectors.port import ConnectorAccount, OutcomeUnknownError
from gateway.core.secret import Secret

MAX_LISTED_OBJECTS: Final = 100


HTTP_NOT_FOUND: Final = 404


class ObjectNotFoundError(Exception):
    """The processor does not know the object. ``status``: of its answer."""

    def __init__(self, path: str, status: int = 0) -> None:
        super().__init__(path)
        self.status = status


def fetch_object(account: ConnectorAccount, path: str, fields: Sequence[tuple[str, str]] = ()) -> Mapping[str, Any]:
    """The object at ``path``. Raises OutcomeUnknownError if the processor cannot be asked, and ObjectNotFoundError."""
    try:
        found = CardApiSession(parse_card_api_setup(account)).get(path, fields)
    except AccountSettingError as fault:
        raise OutcomeUnknownError(str(fault), {"get": path}) from None
    if found.kind is CallVerdict.REFUSED:
        raise ObjectNotFoundError(path, found.status)
    if found.kind is not CallVerdict.DONE:
        raise OutcomeUnknownError(f"the processor could not be asked: {found.why}", {"get": path})
    return found.body


_HOMES: Final[Mapping[str, str]] = {"pi": INTENTS_PATH, "seti": SETUPS_PATH, "re": REFUNDS_PATH, "ch": "/v1/charges"}
"""Prefix of an id → path of such objects."""


def owns_object(account: ConnectorAccount, ident: str) -> bool | None:
    """True if the account's key can read an object. None without an answer or key, or for an id of another form."""
    home = _HOMES.get(ident.partition("_")[0])
    if home is None or not parse_object_id(ident):
        return None
    try:
        fetch_object(account, f"{home}/{ident}")
    except ObjectNotFoundError as fault:
        return False if fault.status == HTTP_NOT_FOUND else None
    except OutcomeUnknownError:
        return None
    return True


def list_objects(account: ConnectorAccount, path: str, fields: Sequence[tuple[str, str]]) -> list[Mapping[str, Any]]:
    """The newest MAX_LISTED_OBJECTS objects of a list."""
    page = fetch_object(account, path, [*fields, ("limit", str(MAX_LISTED_OBJECTS))]).get("data")
    return [one for one in page if isinstance(one, dict)] if isinstance(page, list) else []


def parse_signing_secrets(secrets: Mapping[str, Secret]) -> list[Secret]:
    """The secrets that sign the account's webhooks."""
    kept = secrets.get(WEBHOOK_SECRETS_SETTING)
    return [Secret(text) for text in kept.reveal().split()] if kept else []
