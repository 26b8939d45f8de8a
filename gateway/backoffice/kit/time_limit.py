"""Limits for the statements of a page: a proxy gives up on an answer, while its transaction would go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import OperationalError, connection, connections, transaction
from psycopg.errors import QueryCanceled

from gateway.db.standby import choose_read_alias

SEARCH_TIMEOUT_MS: Final = 3_000
"""Statement timeout of a search, in milliseconds."""
MIN_STATEMENT_TIMEOUT_MS = 100
"""A shorter one would cancel the statements that end a savepoint, too, and leave the transaction of no use."""
_TRANSACTION_WORDS = ("SAVEPOINT", "RELEASE", "ROLLBACK")


class PageTooSlowError(Exception):
    """The work of a page takes longer than a page may. All of it was rolled back."""


@contextmanager
def limit_page_time(seconds: float) -> Iterator[None]:
    """A transaction that is rolled back if it takes longer: no statement starts after ``seconds``, and none takes
    longer than that. Within another such limit it is a part, which may be given up alone. Raises PageTooSlowError."""
    until = time.monotonic() + seconds

    def check(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        if time.monotonic() >= until and not str(sql).startswith(_TRANSACTION_WORDS):
            raise PageTooSlowError
        return execute(sql, params, many, context)

    try:
        with transaction.atomic():
            before = _limit_statements(str(max(MIN_STATEMENT_TIMEOUT_MS, int(seconds * 1000))))
            with connection.execute_wrapper(check):
                yield
            _limit_statements(before)
    except OperationalError as fault:
        if isinstance(fault.__cause__, QueryCanceled):
            raise PageTooSlowError from None
        raise


class SearchTooBroadError(Exception):
    """The query ran into SEARCH_TIMEOUT_MS; the dates have to be narrowed."""


@contextmanager
def limit_search_time() -> Iterator[None]:
    """Context in which statements are cancelled after SEARCH_TIMEOUT_MS. Raises SearchTooBroadError."""
    alias = choose_read_alias()
    try:
        with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {SEARCH_TIMEOUT_MS}")
            yield
            cursor.execute("SET LOCAL statement_timeout = DEFAULT")
    except OperationalError as fault:
        if isinstance(fault.__cause__, QueryCanceled):
            raise SearchTooBroadError from None
        raise


def _limit_statements(timeout: str) -> str:
    """Set the timeout of the transaction's statements; returns the one before."""
    with connection.cursor() as cursor:
        # Materialized: the timeout is read before it is set.
        cursor.execute(
            "WITH old AS MATERIALIZED (SELECT current_setting('statement_timeout') AS timeout) "
            "SELECT timeout, set_config('statement_timeout', %s, TRUE) FROM old",
            [timeout],
        )
        before: str = cursor.fetchone()[0]
    return before
