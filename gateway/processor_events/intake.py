"""A processor's webhook: its signature is checked, and what it names is kept once. Nothing is believed of it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from gateway import clock, wake
from gateway.connectors.accounts import opened_secrets
from gateway.connectors.stripe import asking, mapping, signature
from gateway.models import AcquirerAccount, ProcessorEvent

MOST_BYTES: Final = 1024 * 1024
TIMER: Final = "processor events"
_EVENT_ID: Final = re.compile(r"evt_[A-Za-z0-9_]{1,250}")
CONCERNS_US: Final = re.compile(
    r"(payment_intent|setup_intent)\.(succeeded|payment_failed|canceled|amount_capturable_updated|setup_failed)"
    r"|charge\.refunded|charge\.refund\.updated|refund\.(created|updated|failed)"
    r"|charge\.dispute\.(created|updated|closed|funds_withdrawn|funds_reinstated)"
)


class Unacceptable(Exception):
    """Not the processor's word, or none that can be read; the text says why to whoever set it up."""


def take_in(account: AcquirerAccount, header: str, body: bytes) -> bool:
    """Keep what an event names; whether it was new. Raises Unacceptable, and VaultError."""
    secrets = asking.signing_secrets(opened_secrets(account))
    if not secrets:
        raise Unacceptable("the account has no webhook_secrets")
    if why := signature.why_not(header, body, secrets, time.time()):
        raise Unacceptable(why)
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        raise Unacceptable("the body is no JSON") from None
    return keep(account, event, clock.real())


def keep(account: AcquirerAccount, event: object, now: datetime) -> bool:
    """One row for each event id; events that concern nothing of ours are acknowledged and forgotten."""
    about = _about(event)
    if not isinstance(event, dict) or about is None:
        raise Unacceptable("the body is no event: it needs id, type and data.object with an id")
    if not CONCERNS_US.fullmatch(event["type"]):
        return False
    row = ProcessorEvent(
        account=account, event_id=event["id"], kind=event["type"], object_id=about, due_at=now, created_at=now
    )
    before = ProcessorEvent.objects.filter(account=account, event_id=event["id"]).exists()
    ProcessorEvent.objects.bulk_create([row], ignore_conflicts=True)
    wake.wake(TIMER)
    return not before


def _about(event: object) -> str | None:
    """The id of the object an event is about; None for what is no event."""
    if not isinstance(event, dict) or not isinstance(event.get("type"), str) or not isinstance(event.get("id"), str):
        return None
    if not _EVENT_ID.fullmatch(event["id"]):
        return None
    data: Mapping[str, Any] = event["data"] if isinstance(event.get("data"), dict) else {}
    thing = data.get("object")
    return mapping.text_of(thing.get("id")) or None if isinstance(thing, dict) else None
