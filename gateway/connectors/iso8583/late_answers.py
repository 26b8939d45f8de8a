"""Answers that came after the caller had given up: handed on by a thread of their own, which lives while there are any.

Whoever takes one writes to the database, and a link's thread must go on reading. Source: docs/decisions/0148.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

import structlog
from django.db import DatabaseError, InterfaceError, connection

from gateway.connectors.iso8583.codec import IsoMessage

LATE_ANSWER_PAUSES_S: Final = (1.0, 5.0, 25.0)
"""Pauses between tries while the database does not take an answer; after them it is only logged."""

LateAnswerTaker = Callable[[IsoMessage], None]

log = structlog.get_logger(__name__)

_waiting: deque[tuple[LateAnswerTaker, IsoMessage]] = deque()
"""Bounded by what the links remember: each of their questions is handed on once."""
_lock = threading.Lock()
_thread: threading.Thread | None = None


def hand_on(take: LateAnswerTaker, answer: IsoMessage) -> None:
    """Have ``take`` called with a late answer, soon."""
    global _thread
    with _lock:
        _waiting.append((take, answer))
        if _thread is None:
            # No daemon: what a host has said is not lost with the end of the process.
            _thread = threading.Thread(target=_run, name="late answers")
            _thread.start()


def _run() -> None:
    global _thread
    try:
        while True:
            with _lock:
                if not _waiting:
                    _thread = None
                    return
                take, answer = _waiting.popleft()
            _take(take, answer)
    finally:
        connection.close()


def _take(take: LateAnswerTaker, answer: IsoMessage) -> None:
    for pause_s in (*LATE_ANSWER_PAUSES_S, None):
        try:
            take(answer)
            return
        except Exception as fault:
            again = pause_s is not None and isinstance(fault, DatabaseError | InterfaceError)
            log.exception("late_answer_not_taken", what=answer["t"], again=again)
            if pause_s is None or not again:
                return
        connection.close()
        time.sleep(pause_s)


def _forget_after_fork() -> None:
    """The thread, and what waits for it, are the parent's."""
    global _lock, _thread
    _lock, _thread = threading.Lock(), None
    _waiting.clear()


os.register_at_fork(after_in_child=_forget_after_fork)
