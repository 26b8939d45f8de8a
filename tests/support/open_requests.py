"""Requests that a live server still answers when its test has ended: emptying the tables waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

PATIENCE_S: Final = 30
"""How long the emptying waits for them. Their transactions' locks are waited for after that, too."""

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class OpenRequests:
    """Counts the requests of an application between the call and the close of its answer.

    A page that is closed while it asks, or that asks again by itself, leaves a request behind. What that request
    writes after the tables were emptied is met by the next test; what it locks while they are emptied is a deadlock.
    """

    def __init__(self) -> None:
        self._open = 0
        self._changed = threading.Condition()

    def counting(self, application: Application) -> Application:
        """The same application, counted."""

        def counted(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            self._add(1)
            try:
                return _Answer(application(environ, start_response), lambda: self._add(-1))
            except BaseException:
                self._add(-1)
                raise

        return counted

    def wait(self, patience_s: float = PATIENCE_S) -> bool:
        """Until none is open: whether that came about in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._open == 0, patience_s)

    def _add(self, number: int) -> None:
        with self._changed:
            self._open += number
            self._changed.notify_all()


class _Answer:
    def __init__(self, answer: Iterable[bytes], ended: Callable[[], None]) -> None:
        self._answer = answer
        self._ended = ended

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._answer)

    def close(self) -> None:
        try:
            getattr(self._answer, "close", lambda: None)()
        finally:
            self._ended()


open_requests: Final = OpenRequests()
"""Those of this process's live server."""
