"""Receives a processor's webhook: checks its signature and stores the event once.

Of its content only the kind and the object's id are used; everything else is fetched from the processor later.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from gateway.connectors.accounts import open_connector_secrets
from gateway.connectors.card_api import client, mapping, webhook_signature
from gateway.core import clock
from gateway.core.peer_json import parse_peer_json
from gateway.models import AcquirerAccount, ProcessorEvent
from gateway.timers import wakeup

MAX_EVENT_BYTES: Final = 1024 * 1024
PROCESSOR_EVENT_TIMER: Final = "processor events"
_EVENT_ID: Final = re.compile(r"evt_[A-Za-z0-9_]{1,250}")
HANDLED_EVENT_PATTERN: Final = re.compile(
    r"(payment_intent|setup_intent)\.(succeeded|payment_failed|canceled|amount_capturable_updated|setup_failed)"
    r"|charge\.refunded|charge\.refund\.updated|refund\.(created|updated|failed)"
    r"|charge\.dispute\.(created|updated|closed|funds_withdrawn|funds_reinstated)"
)


class UnacceptableEventError(Exception):
    """The webhook has no valid signature or is malformed. The text says why, for the person who set it up."""


def receive_event(account: AcquirerAccount, header: str, body: bytes) -> bool:
    """Check and store an event; False if it was stored before or is not handled. ``header``: the signature header.
    Raises UnacceptableEventError, and VaultError."""
    secrets = client.parse_signing_secrets(open_connector_secrets(account))
    if not secrets:
        raise UnacceptableEventError("the account has no webhook_secrets")
    if why := webhook_signature.explain_bad_signature(header, body, secrets, time.time()):
        raise UnacceptableEventError(why)
    try:
        event = parse_peer_json(body)
    except ValueError:
        raise UnacceptableEventError("the body is no JSON") from None
    return store_event(account, event, clock.real_now())


def store_event(account: AcquirerAccount, event: object, now: datetime) -> bool:
    """Store an event once by its id and wake the timer; False if it was stored before. Kinds without a handler are
    acknowledged and not stored. Raises UnacceptableEventError."""
    object_id = _extract_object_id(event)
    if not isinstance(event, dict) or object_id is None:
        raise UnacceptableEventError("the body is no event: it needs id, type and data.object with an id")
    if not HANDLED_EVENT_PATTERN.fullmatch(event["type"]):
        return False
    row = ProcessorEvent(
        account=account, event_id=event["id"], kind=event["type"], object_id=object_id, due_at=now, created_at=now
    )
    before = ProcessorEvent.objects.filter(account=account, event_id=event["id"]).exists()
    ProcessorEvent.objects.bulk_create([row], ignore_conflicts=True)
    wakeup.notify_timer(PROCESSOR_EVENT_TIMER)
    return not before


def _extract_object_id(event: object) -> str | None:
    """The id of the object an event is about; None for a malformed event."""
    if not isinstance(event, dict) or not isinstance(event.get("type"), str) or not isinstance(event.get("id"), str):
        return None
    if not _EVENT_ID.fullmatch(event["id"]):
        return None
    data: Mapping[str, Any] = event["data"] if isinstance(event.get("data"), dict) else {}
    subject = data.get("object")
    return mapping.parse_object_id(subject.get("id")) or None if isinstance(subject, dict) else None
