"""Tells whether a transaction is open, for work that must not be undone with its caller's."""

from __future__ import annotations

from typing import Any, Final

from django.db import connection

_connection: Final[Any] = connection  # the stubs do not have what it keeps of its blocks


def is_in_transaction() -> bool:
    """Whether this thread is within `transaction.atomic`, so that a rollback may undo what it writes. As for Django's
    ``durable``, the transaction around a test is none."""
    blocks = _connection.atomic_blocks
    return bool(blocks) and not blocks[-1]._from_testcase
