"""Races with real threads, each with a database connection of its own, let go at the same moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

T = TypeVar("T")
PATIENCE_S = 60


def at_once(*calls: Callable[[], T]) -> list[T]:
    """Run ``calls`` in one thread each and return their results in the same order; an exception is raised here."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        try:
            connection.ensure_connection()
            gate.wait(PATIENCE_S)
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=len(calls)) as pool:
        futures = [pool.submit(run, call) for call in calls]
        return [future.result(PATIENCE_S) for future in futures]


class InThread(threading.Thread):
    """A call on another connection, begun by ``start``."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self._found: object = None

    def run(self) -> None:
        try:
            self._found = self._call()
        except Exception as fault:
            self._found = fault
        finally:
            connection.close()

    def end(self) -> object:
        """What the call returned or raised, once it has ended."""
        self.join(PATIENCE_S)
        assert not self.is_alive()
        return self._found


def run_coroutine(coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end, in a thread of its own: a browser of another test may keep a loop running in this
    one, and ``asyncio.run`` refuses to start a second there."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def in_another_process(step: Callable[[], object]) -> Callable[[], None]:
    """``step`` on a connection of its own, to its end: what another worker does in the middle of a payment."""

    def run() -> None:
        def body() -> None:
            step()
            connection.close()

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()

    return run


def times(number: int, call: Callable[[], T]) -> Sequence[Callable[[], T]]:
    return [call] * number
