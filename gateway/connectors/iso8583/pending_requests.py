"""Requests in flight on one link, and the accounting of stray answers."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from gateway.connectors.iso8583 import link_metrics
from gateway.connectors.iso8583.codec import IsoMessage

MAX_REMEMBERED_QUESTIONS: Final = 4_096
"""Ended requests that are remembered, so that a duplicate or late answer is recognised."""

log = structlog.get_logger(__name__)

MessageKey = tuple[str, str, str, str]
"""The answer's type, DE11, DE37 and DE41."""


class LinkFullError(Exception):
    """The request was not admitted; nothing was sent."""


@dataclass(slots=True)
class PendingRequest:
    """A request in flight. ``done`` is set once there is an ``answer``, or a reason (``why``) that none will come."""

    done: threading.Event = field(default_factory=threading.Event)
    answer: IsoMessage | None = None
    why: str = ""


class PendingRequestTable:
    """The requests in flight of one link. ``label``: the link's, for metrics and logs."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._lock = threading.Lock()
        self._waiting: dict[MessageKey, PendingRequest] = {}
        self._remembered: OrderedDict[MessageKey, str] = OrderedDict()
        self._strays: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def strays(self) -> Mapping[str, int]:
        """Counts of late, duplicate, unknown and unreadable answers."""
        with self._lock:
            return dict(self._strays)

    def register(self, key: MessageKey, most: int) -> PendingRequest:
        """Register a request for the answer ``key``. Raises LinkFullError beyond ``most`` requests, and for a key in
        use."""
        with self._lock:
            if len(self._waiting) >= most:
                raise LinkFullError("too many questions are open on the link")
            if key in self._waiting:
                raise LinkFullError("a question with the same numbers is open on the link")
            waiting = self._waiting[key] = PendingRequest()
        return waiting

    def unregister(self, key: MessageKey) -> None:
        """Stop waiting; a later answer counts as late."""
        with self._lock:
            if self._waiting.pop(key, None) is not None:
                self._remember(key, "late")

    def deliver(self, key: MessageKey, message: IsoMessage) -> None:
        """Deliver an answer to its request; count and drop it if there is none."""
        with self._lock:
            waiting = self._waiting.pop(key, None)
            before = self._remembered.get(key)
            if waiting is not None or before == "late":
                self._remember(key, "duplicate")
        if waiting is None:
            self.stray(before or "unknown", message["t"])
            return
        waiting.answer = message
        waiting.done.set()

    def fail_all(self, why: str) -> None:
        """End all requests in flight with the reason ``why``."""
        with self._lock:
            broken, self._waiting = self._waiting, {}
            for key in broken:
                self._remember(key, "late")
        for waiting in broken.values():
            waiting.why = why
            waiting.done.set()

    def stray(self, kind: str, what: str) -> None:
        """Count an answer that no request waits for."""
        with self._lock:
            self._strays[kind] += 1
        link_metrics.count_unmatched_response(self._label, kind)
        log.warning("unmatched_response", link=self._label, kind=kind, what=what)

    def _remember(self, key: MessageKey, kind: str) -> None:
        """Remember how a request ended. Needs the lock."""
        self._remembered[key] = kind
        self._remembered.move_to_end(key)
        while len(self._remembered) > MAX_REMEMBERED_QUESTIONS:
            self._remembered.popitem(last=False)
