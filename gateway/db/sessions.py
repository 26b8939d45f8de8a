"""Sessions of PostgreSQL that the threads of a web process share.

A thread has a session while its request works, and gives it back while it waits for an acquirer, a 3-D Secure server or
a wallet, and when the request ends. So many requests may wait without a session each (a session is a process of
PostgreSQL with 5 to 20 MB), and no more of them work at a time than there are sessions. The session that came back last
is taken first: its caches are warm.

Only threads that call :func:`share_sessions` take part; every other thread keeps a session of its own, as Django does.
What belongs to a session, such as a lock that outlives its transaction, is used within :func:`keep_session`.
Source: docs/decisions/0161.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from django.db import connections

TAKE_PATIENCE_S: Final = 5.0
"""How long a thread waits for a session before it opens one beyond the bound: then something hangs, and PostgreSQL's
``max_connections`` decides."""


@dataclass(frozen=True, slots=True)
class IdleSession:
    """A session that nobody uses. ``close_at``: the monotonic time at which it is too old, None for never."""

    line: Any
    close_at: float | None


class SessionPool:
    """One process's sessions with one database: at most ``most``, the one that became idle last first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._idle: list[IdleSession] = []
        self._open = 0
        self._changed = threading.Condition(threading.Lock())

    def take(self) -> IdleSession | None:
        """An idle session, once there is one; None: the caller opens one, which is counted from now on."""
        with self._changed:
            if not self._idle and self._open >= self._most:
                self._changed.wait_for(lambda: self._idle or self._open < self._most, TAKE_PATIENCE_S)
            if self._idle:
                return self._idle.pop()
            self._open += 1
            return None

    def give(self, session: IdleSession) -> None:
        """Let another thread take the session."""
        with self._changed:
            self._idle.append(session)
            self._changed.notify()

    def forget(self) -> None:
        """One session was closed, or could not be opened."""
        with self._changed:
            self._open -= 1
            self._changed.notify()

    def close_idle(self) -> None:
        """Close all idle sessions: another one was found broken, and so may they be."""
        with self._changed:
            found, self._idle = self._idle, []
            self._open -= len(found)
            self._changed.notify(len(found))
        for one in found:
            one.line.close()

    @property
    def open(self) -> int:
        """How many there are, idle or not."""
        return self._open


class _Here(threading.local):
    """This thread's part. ``most``: sessions of each database that all threads share, 0 where it takes no part;
    ``kept``: how many blocks need its session."""

    most = 0
    kept = 0


_here: Final = _Here()
_pools: Final[dict[str, SessionPool]] = {}
_pools_lock: Final = threading.Lock()


def share_sessions(most: int) -> None:
    """From now on this thread shares ``most`` sessions of each database with the threads that called this, too."""
    _here.most = most


def find_pool(alias: str) -> SessionPool | None:
    """The pool of a database; None for a thread that takes no part."""
    if not _here.most:
        return None
    with _pools_lock:
        return _pools.setdefault(alias, SessionPool(_here.most))


def give_back_sessions() -> None:
    """Let other threads have this thread's sessions, before it waits for somebody else and at the end of its request.
    The next statement takes one again. A session in a transaction, or kept, stays."""
    if not _here.most or _here.kept:
        return
    for own in connections.all(initialized_only=True):
        own.give_back()  # type: ignore[attr-defined]  # gateway.db.postgresql


@contextmanager
def keep_session() -> Iterator[None]:
    """This thread's session stays its own for the time of the block: something that belongs to the session is in it."""
    _here.kept += 1
    try:
        yield
    finally:
        _here.kept -= 1


def is_too_old(close_at: float | None) -> bool:
    """Whether a session's time is over."""
    return close_at is not None and time.monotonic() >= close_at
