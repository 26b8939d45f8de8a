"""Migrations of a release lock no table that payments write for longer than an instant. docs/upgrading.md.

Those of the first release make the tables, on an empty database, so they may do anything; each later one is asked of
django-migration-linter and of two rules that it does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
from django.contrib.postgres.indexes import HashIndex
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from django.db.models import Q
from django_migration_linter.sql_analyser import analyse_sql_statements, get_sql_analyser_class

ROOT: Final = Path(__file__).parents[2]
APPS: Final = ("gateway", "scheduling", "checkout", "reporting", "chargebacks")
FIRST_RELEASE: Final = ROOT / "tests/ground/migrations_of_the_first_release.txt"
"""app.migration, a line each, written when 0.1.0 is made (docs/upgrading.md); until then all are of that release."""
_CHECKED: Final = re.compile(r"^ALTER TABLE (\S+) ADD CONSTRAINT \S+ (CHECK|FOREIGN KEY)(?!.*NOT VALID)", re.DOTALL)


def find_lock_hazards(statements: list[str]) -> list[str]:
    """Codes of what would lock a table that was there before, or break the sources of the release before."""
    found = analyse_sql_statements(get_sql_analyser_class("postgresql"), statements)
    codes = [one.code for several in found for one in several if one.code not in _HARMLESS]
    made = {name for text in statements for name in re.findall(r"^CREATE TABLE (\S+)", text)}
    scans = {kind for text in statements for name, kind in _CHECKED.findall(text) if name not in made}
    return sorted({*codes, *(f"{kind} SCANS THE TABLE" for kind in scans)})


_HARMLESS: Final = frozenset({"CREATE_INDEX_EXCLUSIVE"})
"""It says of every migration with a table and an index what CREATE_INDEX says of those that matter."""


def sql_of(migration: migrations.Migration, state: ProjectState) -> list[str]:
    with connection.schema_editor(collect_sql=True, atomic=migration.atomic) as editor:
        migration.apply(state, editor, collect_sql=True)
    return [text for text in editor.collected_sql if not text.startswith("--")]


def later_migrations() -> Iterator[tuple[str, migrations.Migration, ProjectState]]:
    if not FIRST_RELEASE.exists():
        return
    first = set(FIRST_RELEASE.read_text().split())
    loader = MigrationLoader(connection)
    for app, name in sorted(key for key in loader.disk_migrations if key[0] in APPS):
        if f"{app}.{name}" not in first:
            yield f"{app}.{name}", loader.disk_migrations[app, name], loader.project_state((app, name), at_end=False)


def test_no_later_migration_locks_a_table(db: None) -> None:
    assert {
        name: codes for name, one, state in later_migrations() if (codes := find_lock_hazards(sql_of(one, state)))
    } == {}


def test_the_list_of_the_first_release_stands_once_it_is_out() -> None:
    """A changelog with a section 0.1.0 and no list: nothing would be linted ever after."""
    released = "\n## 0.1.0" in (ROOT / "CHANGELOG.md").read_text()
    assert released == FIRST_RELEASE.exists()


def operation(*several: Any, atomic: bool = True) -> list[str]:
    """The SQL of a migration of our own that does this."""
    loader = MigrationLoader(connection)
    made = migrations.Migration("9999_trial", "gateway")
    made.operations, made.atomic = list(several), atomic
    (leaf,) = loader.graph.leaf_nodes("gateway")
    return sql_of(made, loader.project_state(leaf))


@pytest.mark.parametrize(
    "change, code",
    [
        (lambda: migrations.AddField("payment", "x", models.IntegerField(default=1)), "NOT_NULL"),
        (lambda: migrations.RemoveField("payment", "currency"), "DROP_COLUMN"),
        (lambda: migrations.RenameField("payment", "currency", "money"), "RENAME_COLUMN"),
        (lambda: migrations.AlterField("payment", "currency", models.CharField(max_length=2)), "ALTER_COLUMN"),
        (lambda: migrations.AddIndex("payment", models.Index(fields=["currency"], name="x")), "CREATE_INDEX"),
        (lambda: migrations.RemoveIndex("webhookdelivery", "webhook_due"), "DROP_INDEX"),
        (lambda: migrations.DeleteModel("TimerRun"), "DROP_TABLE"),
        (
            lambda: migrations.AddConstraint("payment", models.CheckConstraint(condition=Q(currency="EUR"), name="x")),
            "CHECK SCANS THE TABLE",
        ),
    ],
)
def test_what_locks_or_breaks_the_release_before_is_found(db: None, change: Any, code: str) -> None:
    assert code in find_lock_hazards(operation(change()))


def test_what_only_adds_is_let_through(transactional_db: None) -> None:
    assert find_lock_hazards(operation(migrations.AddField("payment", "x", models.IntegerField(null=True)))) == []
    assert find_lock_hazards(operation(migrations.AddField("payment", "x", models.IntegerField(db_default=1)))) == []
    fields = [("id", models.BigAutoField(primary_key=True)), ("a", models.IntegerField(db_index=True))]
    model = migrations.CreateModel("Trial", fields)
    assert find_lock_hazards(operation(model)) == []
    index = AddIndexConcurrently("payment", HashIndex(fields=["currency"], name="x"))
    assert find_lock_hazards(operation(index, atomic=False)) == []


def test_every_app_of_ours_is_linted() -> None:
    assert all(import_module(f"{app if app != 'scheduling' else 'gateway.scheduling'}.migrations") for app in APPS)
