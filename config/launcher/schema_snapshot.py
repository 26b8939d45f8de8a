"""The schema as one list of SQL statements: an empty database is made from it in a second rather than by 75 migrations.

The statements are those that Django's migrations sent to an empty database, in their order; `schema.sql` beside this
module holds them with the fingerprint of the migrations they come from. Where the fingerprint differs, or the database
has any table, nothing is done and the migrations run. tests/ground/test_schema_snapshot.py compares both schemas, and
writes the file anew with UPDATE_SNAPSHOTS=1. docs/decisions/0074.
"""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from typing import Any, Final

from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from config.launcher.var_folder import PROJECT_ROOT

SNAPSHOT_FILE: Final = Path(__file__).with_name("schema.sql")
SEPARATOR: Final = "\n-- next\n"
FINGERPRINT_LINE: Final = "-- migrations "
ENVIRONMENT_FUNCTION: Final = "CREATE FUNCTION gateway_environment()"
"""The one statement that depends on the installation: it is left out, and its migration's own function is called."""
NOT_RECORDED: Final = ("SELECT", "SAVEPOINT", "RELEASE SAVEPOINT")
"""Statements that change no schema; a savepoint's name is another in each run."""


def fingerprint_migrations(executor: MigrationExecutor) -> str:
    """A hash of all migrations: names of all, contents of ours."""
    sums = [hashlib.sha256("\n".join(sorted(".".join(key) for key in executor.loader.disk_migrations)).encode())]
    for file in sorted(PROJECT_ROOT.glob("*/migrations/0*.py")) + sorted(PROJECT_ROOT.glob("*/*/migrations/0*.py")):
        sums.append(hashlib.sha256(file.read_bytes()))
    return hashlib.sha256(b"".join(one.digest() for one in sums)).hexdigest()


def record_snapshot() -> str:
    """Migrate the empty database of the default connection; returns the content of the snapshot's file."""
    executor = MigrationExecutor(connection)
    written: list[str] = []

    def record(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        words = sql.lstrip().upper()
        if "DJANGO_MIGRATIONS" not in words and not words.startswith(NOT_RECORDED) and ENVIRONMENT_FUNCTION not in sql:
            written.append(_compose(sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record):
        executor.migrate(executor.loader.graph.leaf_nodes())
    return SEPARATOR.join([FINGERPRINT_LINE + fingerprint_migrations(executor), *written]) + "\n"


def _compose(sql: str, params: Any) -> str:
    with connection.cursor() as cursor:
        return str(cursor.mogrify(sql, params) if params else sql).strip()


def apply_snapshot(executor: MigrationExecutor) -> bool:
    """Make the schema in the empty database of the default connection, with all migrations recorded as applied; False
    if the snapshot is of other migrations or the database has any table."""
    first, *statements = SNAPSHOT_FILE.read_text(encoding="utf-8").rstrip("\n").split(SEPARATOR)
    if first != FINGERPRINT_LINE + fingerprint_migrations(executor) or connection.introspection.table_names():
        return False
    safeguards = importlib.import_module("gateway.migrations.0002_safeguards")
    with transaction.atomic(), connection.schema_editor(atomic=False) as editor, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        safeguards.remember_environment(None, editor)
        recorder = MigrationRecorder(connection)
        recorder.ensure_schema()
        recorder.migration_qs.bulk_create(
            recorder.Migration(app=app, name=name) for app, name in executor.loader.graph.nodes
        )
    return True
