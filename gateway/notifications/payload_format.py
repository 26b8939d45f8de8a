"""What is said: the plain text of a notification, made once and never changed.

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
    """``text``: what endpoints are told, '' when nobody was to be; ``return_url``: where the shop asked to be called
    with the final result of this one payment (notificationUrl), '' when it did not."""

    text: str = ""
    return_url: str = ""


PayloadBuilder = Callable[[Sequence[Notification], Collection[int]], Mapping[int, WebhookPayload]]
"""Puts notifications into words: those whose ids are in the second argument have endpoints, the others may still have a
``return_url``. One that has neither is left out."""


def serialize_payload(kind: str, action: str, payload: Mapping[str, Any]) -> str:
    """The JSON text, compact, in UTF-8 without escapes."""
    return _encode({"type": kind, "action": action, "payload": payload})
