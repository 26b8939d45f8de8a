"""How a link is, as values; and the two ways in which a question on it stays without an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


class LinkUnreachableError(Exception):
    """There is no link; nothing was sent."""


class LinkUnansweredError(Exception):
    """The question went out, perhaps, and no answer to it came back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """``state``: up, connecting, down or idle. ``since``: real time. ``strays``: late, duplicate, unknown, unreadable
    → how many."""

    label: str
    merchant: str
    state: str
    since: datetime
    why: str
    in_flight: int
    strays: Mapping[str, int]
