"""A limit for all statements of a page together: a proxy gives up on an answer, while its transaction would go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

_TRANSACTION_WORDS = ("SAVEPOINT", "RELEASE", "ROLLBACK")


class PageTooSlowError(Exception):
    """The work of a page takes longer than a page may. All of it was rolled back."""


@contextmanager
def limit_page_time(seconds: float) -> Iterator[None]:
    """A transaction that is rolled back if it takes longer: no statement starts after ``seconds``, and none takes
    longer than that. Raises PageTooSlowError."""
    until = time.monotonic() + seconds

    def check(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        if time.monotonic() >= until and not str(sql).startswith(_TRANSACTION_WORDS):
            raise PageTooSlowError
        return execute(sql, params, many, context)

    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = {max(1, int(seconds * 1000))}")
            with connection.execute_wrapper(check):
                yield
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL statement_timeout = DEFAULT")
    except OperationalError as fault:
        if isinstance(fault.__cause__, QueryCanceled):
            raise PageTooSlowError from None
        raise
