"""The built-in webhook inspector: an endpoint whose messages are stored here, to be viewed exactly as they would be
sent.

Messages are made, sealed, signed and retried as for any endpoint; only the HTTP call is not made. Test environment
only. Source: docs/decisions/0029.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings

from gateway.models import InspectedWebhook
from gateway.outbound import CallFailure, CallOutcome

MAX_INSPECTED_MESSAGES: Final = 200
"""Messages stored for one endpoint, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedMessage:
    """A message as it would have been sent, ``at`` a real time."""

    endpoint: UUID
    delivery: UUID
    attempt: int
    at: datetime
    headers: Mapping[str, str]
    body: bytes


def build_inspector_answer() -> CallOutcome:
    """The inspector's answer to a delivery."""
    if settings.IS_LIVE:
        return CallOutcome(failure=CallFailure.FORBIDDEN, reason="the inspector is there in the test environment only")
    return CallOutcome(status=200, body=b"kept by the inspector")


def store_inspected_messages(several: Sequence[InspectedMessage]) -> None:
    """Store received messages, and delete the oldest above MAX_INSPECTED_MESSAGES."""
    if not several:
        return
    InspectedWebhook.objects.bulk_create(
        InspectedWebhook(
            endpoint_id=one.endpoint,
            delivery=one.delivery,
            attempt=one.attempt,
            at=one.at,
            headers=dict(one.headers),
            body=one.body.decode(),
        )
        for one in several
    )
    for endpoint in {one.endpoint for one in several}:
        mine = InspectedWebhook.objects.filter(endpoint=endpoint)
        oldest = (
            mine.order_by("-id")
            .values_list("pk", flat=True)[MAX_INSPECTED_MESSAGES - 1 : MAX_INSPECTED_MESSAGES]
            .first()
        )
        if oldest is not None:
            mine.filter(pk__lt=oldest).delete()
