"""Answers that came after the caller had given up: handed on by a thread of their own, which lives while there are any.

Whoever takes one writes to the database, and a link's thread must go on reading. Source: docs/decisions/0148.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog
from django.db import DatabaseError, InterfaceError, connection

from gateway.connectors.iso8583.codec import IsoMessage
from gateway.vault.sealing import VaultError

LATE_ANSWER_PAUSES_S: Final = (1.0, 5.0, 25.0)
"""Pauses between tries while the database, or the vault's key service, is away; the last repeats."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LateAnswerTaker:
    """What takes the late answer to a payment's message."""

    payment: UUID
    take: Callable[[IsoMessage], None]


_waiting: deque[tuple[LateAnswerTaker, IsoMessage]] = deque()
"""Bounded by what the links remember: each of their questions is handed on once."""
_lock = threading.Lock()
_thread: threading.Thread | None = None


def hand_on(taker: LateAnswerTaker, answer: IsoMessage) -> None:
    """Have a late answer taken, soon. Where no thread can be started it waits for the next one."""
    global _thread
    with _lock:
        _waiting.append((taker, answer))
        if _thread is not None:
            return
        # No daemon: a process that ends takes what its host has said first, unless it is killed, or is a forked child
        # that ends by os._exit.
        thread = threading.Thread(target=_run, name="late answers")
        try:
            thread.start()
        except RuntimeError:
            log.exception("late_answer_waits_for_a_thread", payment=taker.payment.hex)
            return
        _thread = thread


def _run() -> None:
    """The thread: take what waits. While something that is needed is away it goes on, until the process ends."""
    global _thread
    failures = 0
    try:
        while True:
            with _lock:
                if not _waiting:
                    _thread = None
                    return
                taker, answer = _waiting[0]
            if _take(taker, answer):
                failures = 0
                with _lock:
                    _waiting.popleft()
                continue
            with _lock:
                _waiting.rotate(-1)  # one that fails for a reason of its own holds up none of the others
            connection.close()
            if _ends_within(LATE_ANSWER_PAUSES_S[min(failures, len(LATE_ANSWER_PAUSES_S) - 1)]):
                with _lock:
                    lost = [waiting.payment.hex for waiting, _ in _waiting]
                log.error("late_answers_lost", payments=lost)
                return
            failures += 1
    finally:
        connection.close()


def _take(taker: LateAnswerTaker, answer: IsoMessage) -> bool:
    """Have an answer taken. False if it has to be tried again."""
    try:
        taker.take(answer)
    except Exception as fault:
        again = isinstance(fault, DatabaseError | InterfaceError | VaultError)
        log.exception("late_answer_not_taken", payment=taker.payment.hex, what=answer["t"], again=again)
        return not again
    return True


def _ends_within(pause_s: float) -> bool:
    """Wait, but not beyond the end of the process's main thread. Returns whether it has ended."""
    main = threading.main_thread()
    main.join(pause_s)
    return not main.is_alive()


def _forget_after_fork() -> None:
    """The thread, and what waits for it, are the parent's."""
    global _lock, _thread
    _lock, _thread = threading.Lock(), None
    _waiting.clear()


os.register_at_fork(after_in_child=_forget_after_fork)
