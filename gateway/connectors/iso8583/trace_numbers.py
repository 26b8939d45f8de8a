"""Trace numbers (DE11): each is used once on a terminal in any 999,998 messages, and so once a day.

A process takes a block of numbers with one statement and hands them out one by one; within a transaction, whose
numbers come back with its rollback, those of one payment. A payment takes two: its message
has the first, the reversal of that message (0420) the second, so that another process can build it a day later. What
a process does not use in TRACE_BLOCK_LIFETIME_S is dropped: no old number comes up when others have gone round.
Source: First Data Rapid Connect, STAN: "must be unique within a day per Merchant ID and Terminal ID", quoted by
https://cdn.nsoftware.com/help/BC6/cs/FDMSRcRetail_p_STAN.htm; docs/decisions/0094.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from typing import Final

from django.db import connection

from gateway.db.statement import execute_sql

NUMBERS_PER_PAYMENT: Final = 2
TRACE_BLOCK_PAYMENTS: Final = 50
"""Payments whose numbers are reserved by one statement."""
TRACE_BLOCK_LIFETIME_S: Final = 3_600.0
MAX_TRACE_NUMBER: Final = 999_900
"""A whole number of blocks; DE11 has six digits."""

_RESERVE: Final = """
INSERT INTO gateway_tracesequence AS t (terminal, last) VALUES (%(terminal)s, %(size)s::int)
ON CONFLICT (terminal) DO UPDATE
    SET last = CASE WHEN t.last + %(size)s::int > %(most)s::int THEN %(size)s::int ELSE t.last + %(size)s::int END
RETURNING last
"""


@dataclass(slots=True)
class _Block:
    next: int
    last: int
    until: float


_blocks: dict[str, _Block] = {}
_lock = threading.Lock()


def take_trace_number(terminal: str) -> int:
    """The next number of ``terminal`` (the merchant's id and the terminal's); the one after it is taken with it.

    Within a transaction nothing is kept of what it reserves: after its rollback another process reserves the same.
    No SQL runs under the lock: who holds the row would wait for it, unseen by PostgreSQL."""
    with _lock:
        block = _blocks.get(terminal)
        if block is not None and block.next <= block.last and block.until >= time.monotonic():
            return _take_next(block)
    if connection.in_atomic_block:
        return _reserve_block(terminal, payments=1).next
    block = _reserve_block(terminal, payments=TRACE_BLOCK_PAYMENTS)
    with _lock:
        _blocks[terminal] = block  # of two threads that reserved at once, the numbers of one are left over
        return _take_next(block)


def _take_next(block: _Block) -> int:
    number, block.next = block.next, block.next + NUMBERS_PER_PAYMENT
    return number


def _reserve_block(terminal: str, *, payments: int) -> _Block:
    size = payments * NUMBERS_PER_PAYMENT
    last = execute_sql(_RESERVE, {"terminal": terminal, "size": size, "most": MAX_TRACE_NUMBER})[0][0]
    return _Block(last - size + 1, last, time.monotonic() + TRACE_BLOCK_LIFETIME_S)


def forget_trace_blocks() -> None:
    """Drop this process's numbers: after a fork both would use them."""
    global _lock
    _lock = threading.Lock()
    _blocks.clear()


os.register_at_fork(after_in_child=forget_trace_blocks)
