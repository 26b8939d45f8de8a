"""Sessions of PostgreSQL that the threads of a web process share.

A thread has a session while its request works, and gives it back while it waits for an acquirer, a 3-D Secure server or
a wallet, and when the request ends. So many requests may wait without a session each (a session is a process of
PostgreSQL with 5 to 20 MB). How many work at a time, and so have a session, is the web server's to say (:class:`Gate`).
The session that came back last is taken first: its caches are warm.

Only threads that call :func:`share_sessions` take part; every other thread keeps a session of its own, as Django does.
What belongs to a session, such as a lock that outlives its transaction, is used within :func:`keep_session`.
Source: docs/decisions/0161.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from django.db import connections


class Gate(Protocol):
    """How many threads work at a time, ``most``. Each is inside while it has a session."""

    most: int

    def enter(self) -> None:
        """Wait until this thread may work; at once if it does already."""

    def leave(self) -> None:
        """Give this thread's place to another one, before it waits for an acquirer, a shopper's browser or a lock."""


@dataclass(frozen=True, slots=True)
class SharedSession:
    """A session of a pool. ``close_at``: the monotonic time at which it is too old, None for never; ``generation``: the
    pool's when it was opened."""

    line: Any
    close_at: float | None
    generation: int


class SessionPool:
    """One process's sessions with one database; above ``most`` they are closed as they come back."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._idle: list[SharedSession] = []
        self._lock = threading.Lock()
        self.open = 0
        """How many there are, idle or not."""
        self.generation = 0
        """Sessions of an earlier one may be broken."""

    def take(self) -> SharedSession | None:
        """The session that became idle last; None: the caller opens one, which is counted from now on."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            self.open += 1
            return None

    def give(self, session: SharedSession) -> None:
        """Let another thread take the session. It is closed where there are too many, or others of its time broke."""
        with self._lock:
            if self.open <= self._most and session.generation == self.generation:
                self._idle.append(session)
                return
            self.open -= 1
        session.line.close()

    def forget(self) -> None:
        """One session was closed, or could not be opened."""
        with self._lock:
            self.open -= 1

    def close_idle(self) -> None:
        """Close all idle sessions, and those in use as they come back: one was found broken, and so may they be."""
        with self._lock:
            found, self._idle = self._idle, []
            self.open -= len(found)
            self.generation += 1
        for one in found:
            one.line.close()


class _Here(threading.local):
    """This thread's part. ``gate``: None where it takes no part; ``kept``: how many blocks need its session."""

    gate: Gate | None = None
    kept = 0


_here: Final = _Here()
_pools: Final[dict[str, SessionPool]] = {}
_pools_lock: Final = threading.Lock()


def share_sessions(gate: Gate) -> None:
    """From now on this thread shares its sessions with the other threads that called this."""
    _here.gate = gate


def enter_pool(alias: str) -> SessionPool | None:
    """The sessions of a database, once this thread may work; None for a thread that takes no part."""
    if _here.gate is None:
        return None
    _here.gate.enter()
    if (pool := _pools.get(alias)) is None:
        with _pools_lock:
            pool = _pools.setdefault(alias, SessionPool(_here.gate.most))
    return pool


def pause_work() -> None:
    """Give back this thread's sessions and its place, before it waits for an acquirer or another system. Its next
    statement takes a session again, and waits for a place if all are taken. Where a session is in a transaction, kept,
    or has a named cursor, session and place stay."""
    if _here.gate is not None and not _here.kept and _give_back():
        _here.gate.leave()


def end_request() -> None:
    """The request of this thread has ended: other threads may have its sessions. It goes on with the next one."""
    if _here.gate is not None:
        _give_back(at_end=True)


def _give_back(*, at_end: bool = False) -> bool:
    mine: Any = connections.all(initialized_only=True)
    # A database of another backend keeps its session.
    given = [own.give_back(at_end=at_end) for own in mine if hasattr(own, "give_back")]
    return all(given)


@contextmanager
def keep_session() -> Iterator[None]:
    """This thread's session stays its own for the time of the block: something that belongs to the session is in it."""
    _here.kept += 1
    try:
        yield
    finally:
        _here.kept -= 1
