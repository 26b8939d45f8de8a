"""Bounds the calls that somebody waits for at a page: test messages to webhook endpoints, trials of SFTP servers.

Each holds a thread of the web server for as long as the other side likes, and payments need the threads. Source:
docs/decisions/0168.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Final

MAX_PAGE_CALLS: Final = 4
"""Calls of this process at a time; further ones are refused."""
MAX_PAGE_CALLS_OF_ONE: Final = 2
"""Calls of one merchant, or of one institute."""

_lock: Final = threading.Lock()
_running: Final[Counter[Hashable]] = Counter()


class TooManyPageCallsError(Exception):
    """Enough such calls are running; nothing was called."""


@contextmanager
def count_page_call(owner: Hashable) -> Iterator[None]:
    """Count a call for the time of the block. Raises TooManyPageCallsError."""
    with _lock:
        if _running.total() >= MAX_PAGE_CALLS or _running[owner] >= MAX_PAGE_CALLS_OF_ONE:
            raise TooManyPageCallsError
        _running[owner] += 1
    try:
        yield
    finally:
        with _lock:
            _running[owner] -= 1
            if not _running[owner]:
                del _running[owner]
