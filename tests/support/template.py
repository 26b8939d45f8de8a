"""The database that the databases of the workers are copied from, so that each is there in a second.

The first worker that needs it makes it, from the launcher's snapshot of the schema. Where the snapshot is out of date
every worker migrates a database of its own.
"""

from __future__ import annotations

import os
from typing import Final

import psycopg
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from config.launcher.schema_snapshot import apply_snapshot

TEMPLATE: Final = "tests_template"
NO_TEMPLATE: Final = "tests_template_out_of_date"
"""Its name if the snapshot is out of date: for the workers that come later."""
_MAKING: Final = "tests_template_being_made"
_LOCK: Final = 0x7E57


def copy_test_database_from_template() -> None:
    """Have Django copy its test database from TEMPLATE. Called before it makes one; the server is this run's own."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        query = "SELECT datname FROM pg_database WHERE datname = ANY(%s)"
        found = server.execute(query, [[TEMPLATE, NO_TEMPLATE]]).fetchone()
        name = found[0] if found else _make_template(server)
    if name == TEMPLATE:
        # Without migrations Django makes only those tables that are missing: none.
        connection.settings_dict["TEST"] |= {"TEMPLATE": TEMPLATE, "MIGRATE": False}


def _make_template(server: psycopg.Connection) -> str:
    """It has its name when it is whole: a worker that fails here leaves nothing that another would copy."""
    server.execute(f"DROP DATABASE IF EXISTS {_MAKING}")
    server.execute(f"CREATE DATABASE {_MAKING}")
    usual, name = connection.settings_dict["NAME"], NO_TEMPLATE
    connection.close()
    connection.settings_dict["NAME"] = _MAKING
    try:
        if apply_snapshot(MigrationExecutor(connection)):
            emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)  # content types, permissions
            name = TEMPLATE
    finally:
        connection.close()
        connection.settings_dict["NAME"] = usual
    server.execute(f"ALTER DATABASE {_MAKING} RENAME TO {name}")
    return name
