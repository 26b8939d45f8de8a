"""Deletes what a test has committed, on a connection of its own that stays for the whole run."""

from __future__ import annotations

import os
from typing import Final

import psycopg
from django.db import connection

from tests.support.open_requests import open_requests

STAYING: Final = frozenset({"django_migrations", "django_content_type", "auth_permission"})
"""Tables that migrating fills, and that no test changes."""
NAME: Final = "emptying of tests"
"""This connection's application_name: for a test that looks at all sessions of its database."""
LOCKS_S: Final = 60
"""A transaction that a test left open is an error then, and not a run that stands."""
TABLES: Final = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"


class Emptying:
    """Deletes the rows of all tables that have any.

    Django would truncate all hundred tables and make their permissions anew, which takes a third of a second, most of
    what such a test takes. To ask 150 tables costs PostgreSQL 4 ms, and 18 on a new connection, which is what a test
    that commits leaves; a statement that is planned once, on a connection that knows the tables, a fifth of one. Only a
    superuser may delete past triggers and foreign keys.
    """

    def __init__(self) -> None:
        self._connection: psycopg.Connection[tuple[str]] | None = None
        self._tables: list[str] = []
        self._look = ""

    def empty(self) -> None:
        """After a test that commits, and after all its requests."""
        open_requests.wait()
        try:
            self._empty()
        except psycopg.errors.DeadlockDetected:  # with a request that came when its page was closed already
            open_requests.wait()
            self._empty()
        except psycopg.OperationalError:  # a test has ended all sessions, or the server
            if self._connection is None or not self._connection.closed:
                raise
            self.close()
            self._empty()

    def close(self) -> None:
        """So that the database can be dropped."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _empty(self) -> None:
        session = self._connection = self._connection or _connect()
        tables = [name for (name,) in session.execute(TABLES, prepare=True) if name not in STAYING]
        if tables != self._tables:  # a test may make some, and drop them
            self._tables = tables
            looks = (f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM \"{table}\")" for table in tables)
            self._look = " UNION ALL ".join(looks)
        written = [name for (name,) in session.execute(self._look, prepare=True)]
        if written:
            session.execute("; ".join(f'DELETE FROM "{table}"' for table in written))


def _connect() -> psycopg.Connection[tuple[str]]:
    settings = f"-c session_replication_role=replica -c plan_cache_mode=force_generic_plan -c lock_timeout={LOCKS_S}s"
    return psycopg.connect(
        os.environ["DATABASE_URL"],
        dbname=connection.settings_dict["NAME"],
        application_name=NAME,
        options=settings,
        autocommit=True,
    )
