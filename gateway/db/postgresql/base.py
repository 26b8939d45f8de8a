"""Django's connection to PostgreSQL, for the setting ``ENGINE``; Django asks for this module and this name.

In a thread that shares sessions (gateway.db.sessions) a connection is opened only where no session is idle.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import PurePath
from typing import Any

from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus

from gateway.db.sessions import SessionPool, SharedSession, enter_pool


@cache
def name_process() -> str:
    """`tollhouse web`, `tollhouse worker`, `tollhouse beat` or `tollhouse <command>`: what this process is called in
    pg_stat_activity and in the log of PostgreSQL."""
    return _name_command(sys.argv)


def _name_command(command: Sequence[str]) -> str:
    program, arguments = PurePath(command[0] if command else ""), command[1:]
    known = {program.name, program.parent.name}  # a script, or a package that `python -m` runs
    if "gunicorn" in known:
        return "tollhouse web"
    if "celery" in known:
        return " ".join(["tollhouse", *(one for one in arguments if one in {"worker", "beat"})])
    named = [one for one in arguments[:2] if one != "manage"][:1] if known & {"manage.py", "tollhouse"} else []
    return " ".join(["tollhouse", *named])


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's, which takes a session of its process and gives it back."""

    _pool: SessionPool | None = None
    """Where the present session is counted; None: nowhere."""
    _generation = 0
    _has_named_cursor = False

    def get_connection_params(self) -> dict[str, Any]:
        """Django's, with the name of the process; one in DATABASE_URL or PGAPPNAME wins."""
        return {"fallback_application_name": name_process()} | super().get_connection_params()

    def connect(self) -> None:
        """Take an idle session, or open one."""
        pool = enter_pool(self.alias)
        if pool is None:
            super().connect()
            return
        found = pool.take()
        if found is not None:
            self._use(found, pool)
            return
        self._generation = pool.generation
        try:
            super().connect()
        except BaseException:
            if self.connection is None:
                pool.forget()
            else:
                self._pool = pool  # counted until it is closed
            raise
        self._pool = pool

    def create_cursor(self, name: str | None = None) -> Any:
        """A named cursor lives in its session until the request ends: the session is not given back before."""
        self._has_named_cursor = self._has_named_cursor or name is not None
        return super().create_cursor(name)

    def _use(self, session: SharedSession, pool: SessionPool) -> None:
        """What Django sets at a new connection; the session's own state is that of one which was just opened."""
        self.in_atomic_block, self.needs_rollback = False, False
        self.savepoint_ids, self.atomic_blocks, self.run_on_commit = [], [], []
        self.closed_in_transaction, self.errors_occurred = False, False
        self.health_check_enabled, self.health_check_done = self.settings_dict["CONN_HEALTH_CHECKS"], False
        self.autocommit = True
        self.close_at, self.connection = session.close_at, session.line
        self._pool, self._generation = pool, session.generation

    def give_back(self, *, at_end: bool = False) -> bool:
        """Let another thread have the session, unless it is in a transaction or something went wrong in it: then the
        end of the request decides. Returns whether this thread has none now."""
        line, pool = self.connection, self._pool
        if at_end:
            self._has_named_cursor = False
        if line is None:
            return True
        if pool is None or self.in_atomic_block or self.errors_occurred or not self.autocommit:
            return False
        if self._has_named_cursor or line.pgconn.transaction_status != TransactionStatus.IDLE:
            return False
        self.connection, self._pool = None, None
        pool.give(SharedSession(line, self.close_at, self._generation))
        return True

    def _close(self) -> Any:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.forget()
            if self.errors_occurred:
                pool.close_idle()  # it broke, and so may the others have: a server that went away
        return super()._close()  # type: ignore[misc]  # the stubs do not have it
