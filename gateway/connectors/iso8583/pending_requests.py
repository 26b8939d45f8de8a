"""Requests in flight on one link, what becomes of their late answers, and the accounting of stray ones."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from gateway.connectors.iso8583 import link_metrics
from gateway.connectors.iso8583.codec import IsoMessage
from gateway.connectors.iso8583.late_answers import LateAnswerTaker, hand_on

MAX_REMEMBERED_QUESTIONS: Final = 4_096
"""Ended requests that are remembered, so that a duplicate or late answer is recognised."""

log = structlog.get_logger(__name__)

MessageKey = tuple[str, str, str, str]
"""The answer's type, DE11, DE37 and DE41."""


class LinkFullError(Exception):
    """The request was not admitted; nothing was sent."""


@dataclass(slots=True)
class PendingRequest:
    """A request in flight. ``done`` is set once there is an ``answer``, or a reason (``why``) that none will come;
    ``late``: makes what takes an answer that comes after that."""

    late: Callable[[], LateAnswerTaker] | None = None
    done: threading.Event = field(default_factory=threading.Event)
    answer: IsoMessage | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Ended:
    """What a further answer to an ended request is, and what takes it, if anything does."""

    kind: str
    take: LateAnswerTaker | None = None


_DUPLICATE: Final = _Ended("duplicate")
_UNKNOWN: Final = _Ended("unknown")


class PendingRequestTable:
    """The requests in flight of one link. ``label``: the link's, for metrics and logs."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._lock = threading.Lock()
        self._waiting: dict[MessageKey, PendingRequest] = {}
        self._remembered: OrderedDict[MessageKey, _Ended] = OrderedDict()
        self._strays: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def strays(self) -> Mapping[str, int]:
        """Counts of late, duplicate, unknown and unreadable answers."""
        with self._lock:
            return dict(self._strays)

    def register(self, key: MessageKey, most: int, late: Callable[[], LateAnswerTaker] | None = None) -> PendingRequest:
        """Register a request for the answer ``key``. ``late``: makes what takes that answer if it comes too late.
        Raises LinkFullError beyond ``most`` requests, and for a key in use."""
        with self._lock:
            if len(self._waiting) >= most:
                raise LinkFullError("too many questions are open on the link")
            if key in self._waiting:
                raise LinkFullError("a question with the same numbers is open on the link")
            waiting = self._waiting[key] = PendingRequest(late=late)
        return waiting

    def unregister(self, key: MessageKey) -> None:
        """Stop waiting; a later answer counts as late."""
        with self._lock:
            if (waiting := self._waiting.pop(key, None)) is not None:
                self._remember_unanswered(key, waiting)

    def deliver(self, key: MessageKey, message: IsoMessage) -> None:
        """Deliver an answer to its request. One that comes too late is counted, and taken by what its request said;
        any other is counted and dropped."""
        with self._lock:
            waiting = self._waiting.pop(key, None)
            before = self._remembered.get(key, _UNKNOWN)
            if waiting is not None:
                waiting.answer = message
            if waiting is not None or before.kind == "late":
                self._remember(key, _DUPLICATE)
        if waiting is not None:
            waiting.done.set()
            return
        self.stray(before.kind, message["t"])
        if before.take is not None:
            hand_on(before.take, message)

    def fail_all(self, why: str) -> None:
        """End all requests in flight with the reason ``why``."""
        with self._lock:
            broken, self._waiting = self._waiting, {}
            for key, waiting in broken.items():
                self._remember_unanswered(key, waiting)
        for waiting in broken.values():
            waiting.why = why
            waiting.done.set()

    def stray(self, kind: str, what: str) -> None:
        """Count an answer that no request waits for."""
        with self._lock:
            self._strays[kind] += 1
        link_metrics.count_unmatched_response(self._label, kind)
        log.warning("unmatched_response", link=self._label, kind=kind, what=what)

    def _remember_unanswered(self, key: MessageKey, waiting: PendingRequest) -> None:
        """Remember a request that ended without an answer. Needs the lock."""
        self._remember(key, _Ended("late", waiting.late() if waiting.late is not None else None))

    def _remember(self, key: MessageKey, ended: _Ended) -> None:
        """Remember how a request ended. Needs the lock."""
        self._remembered[key] = ended
        self._remembered.move_to_end(key)
        while len(self._remembered) > MAX_REMEMBERED_QUESTIONS:
            self._remembered.popitem(last=False)
