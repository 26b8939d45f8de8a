"""An empty database made from the snapshot of the schema is the one that the migrations make."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from config.launcher import schema_snapshot
from config.launcher.postgres import Postgres
from tests.ground.conftest import ROOT

pytestmark = [pytest.mark.xdist_group("schema-snapshot"), pytest.mark.timeout(900)]

RECORD = """
import sys, django; django.setup()
from config.launcher import schema_snapshot
from pathlib import Path
Path(sys.argv[1]).write_text(schema_snapshot.record_snapshot(), encoding="utf-8")
"""
APPLY = """
import django; django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from config.launcher.schema_snapshot import apply_snapshot
assert apply_snapshot(MigrationExecutor(connection))
executor = MigrationExecutor(connection)
assert not executor.migration_plan(executor.loader.graph.leaf_nodes())
assert not apply_snapshot(executor), "a database with tables is left to the migrations"
"""
# Everything that a schema is made of, as text; names of constraints and indexes among them.
SCHEMA = {
    "columns": """
        SELECT table_name || '.' || column_name, ordinal_position, data_type, udt_name, is_nullable, column_default,
            character_maximum_length, numeric_precision, numeric_scale, is_identity, identity_generation
        FROM information_schema.columns WHERE table_schema = 'public'""",
    "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "constraints": "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE connamespace = 'public'::regnamespace",
    "triggers": "SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid), obj_description(oid) FROM pg_trigger "
    "WHERE NOT tgisinternal",
    "functions": "SELECT proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    "tables": "SELECT relname, relkind, relpersistence, reloptions FROM pg_class "
    "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S', 'v', 'm', 'p')",
    "sequences": "SELECT sequencename, start_value, increment_by, max_value, cycle, cache_size, last_value "
    "FROM pg_sequences WHERE sequencename NOT LIKE 'django_migrations%%'",
    "migrations": "SELECT app, name FROM django_migrations",
    "outbox": "SELECT * FROM gateway_fanoutposition",
}


def run(source: str, url: str, *arguments: str) -> None:
    environment = {**os.environ, "DATABASE_URL": url, "GATEWAY_ENVIRONMENT": "test"}
    subprocess.run([sys.executable, "-c", source, *arguments], cwd=ROOT, env=environment, check=True)


def schema(url: str) -> dict[str, list[str]]:
    with psycopg.connect(url) as connection:
        return {what: sorted(str(row) for row in connection.execute(query)) for what, query in SCHEMA.items()}


def test_the_snapshot_makes_the_schema_that_the_migrations_make(var: Path, tmp_path: Path) -> None:
    """UPDATE_SNAPSHOTS=1 writes it anew after a change of migrations."""
    server = Postgres(var, durable=False)
    try:
        migrated = server.start()
        recorded = tmp_path / "schema.sql"
        run(RECORD, migrated, str(recorded))
        if os.environ.get("UPDATE_SNAPSHOTS"):
            schema_snapshot.SNAPSHOT_FILE.write_text(recorded.read_text())
        # Not the whole text: Django sends some statements of one migration in an order of chance.
        made, kept = (file.read_text().splitlines() for file in (recorded, schema_snapshot.SNAPSHOT_FILE))
        assert made[0] == kept[0], (
            "The migrations have changed: UPDATE_SNAPSHOTS=1 python -m pytest tests/ground/test_schema_snapshot.py"
        )
        with psycopg.connect(migrated, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier("replayed")))
        replayed = migrated.rpartition("/")[0] + "/replayed"
        run(APPLY, replayed)
        there, here = schema(replayed), schema(migrated)
        for what in SCHEMA:
            assert there[what] == here[what], what
        assert len(here["tables"]) > 100
    finally:
        server.stop()
