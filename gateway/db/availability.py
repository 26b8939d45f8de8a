"""Tells faults of a database that is away from all others: what failed so may be sent again, and succeeds after a
fail-over.

A server that has become a standby answers, and refuses what writes. Its connection is in order to Django, which would
keep it, so it is closed here. docs/decisions/0124.
"""

from __future__ import annotations

from django.db import InterfaceError, OperationalError, connection
from psycopg.errors import ReadOnlySqlTransaction


def is_database_away(fault: BaseException | None) -> bool:
    """Whether no server that takes writes answered, or it could not do it now (a timeout, a deadlock): the same may
    succeed later. A connection to one that refuses writes is closed: the next statement looks for the primary."""
    if fault is not None and isinstance(fault.__cause__, ReadOnlySqlTransaction):
        close_broken_connection()
        return True
    return isinstance(fault, OperationalError | InterfaceError)


def close_broken_connection() -> None:
    """Close this thread's connection, which is of no use; the idle ones of its process may be as it is, and go too."""
    connection.errors_occurred = True
    connection.close()
