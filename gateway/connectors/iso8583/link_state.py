"""A link's state as a value, and the two errors of an exchange on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


class LinkUnreachableError(Exception):
    """There is no link; nothing was sent."""


class LinkUnansweredError(Exception):
    """The message may have been sent, and no answer came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """``state``: up, connecting, down or idle. ``since``: real time. ``strays``: counts of late, duplicate, unknown and
    unreadable answers."""

    label: str
    merchant: str
    state: str
    since: datetime
    why: str
    in_flight: int
    strays: Mapping[str, int]
