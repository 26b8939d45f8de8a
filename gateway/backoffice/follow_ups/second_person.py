"""Requests other than follow-ups that wait for a second person: each kind registers a source, and the page of approvals
lists them all as one queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

MAX_SHOWN_OF_A_KIND: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRequest:
    """One request of another user. ``address``: the page that decides it. ``is_late``: it has waited too long
    for what it is."""

    kind: str
    subject: str
    merchant: str
    asked_by: str
    asked_at: datetime
    address: str
    is_late: bool = False


RequestSource = Callable[[Any], Iterable[WaitingRequest]]
"""The requests that a user may decide, at most MAX_SHOWN_OF_A_KIND, the oldest first."""
_SOURCES: Final[dict[str, RequestSource]] = {}


def register_request_source(name: str, source: RequestSource) -> None:
    """Add a kind of request; other apps call it when their pages are loaded."""
    _SOURCES[name] = source


def list_waiting_requests(user: Any) -> list[WaitingRequest]:
    """Requests of all kinds that the user may decide, the oldest first."""
    found = [one for source in _SOURCES.values() for one in source(user)]
    return sorted(found, key=lambda one: one.asked_at)
