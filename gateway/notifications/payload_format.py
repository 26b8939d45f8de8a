"""The plain text of a notification, written once and never changed.

``{"type": …, "action": …, "payload": {…}}``. Source: decisions, section 6.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.models import Notification

TEST_TYPE: Final = "test"
ACTIVATION_ACTION: Final = "webhook activation"

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookPayload:
    """``text``: the message for endpoints, '' if none is subscribed; ``return_url``: the shop's address for the final
    result of this one payment (notificationUrl), or ''."""

    text: str = ""
    return_url: str = ""


PayloadBuilder = Callable[[Sequence[Notification], Collection[int]], Mapping[int, WebhookPayload]]
"""Builds the payloads of notifications. The second argument has the ids of those with endpoints; the others may still
have a ``return_url``. One that has neither is left out."""


def serialize_payload(kind: str, action: str, payload: Mapping[str, Any]) -> str:
    """The JSON text, compact, in UTF-8 without escapes."""
    return _encode({"type": kind, "action": action, "payload": payload})
