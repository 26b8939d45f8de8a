"""Django's preparations before the web server starts, in one process: checks, migrations, demo merchant.

Prints one line per step: its name, a tab, what was done. A failed start-up check is a line "fault", the current
activity a line "doing".
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path
from typing import Any, Final

import django

NOTHING_TO_MIGRATE: Final = "nothing to do"


def main() -> int:
    """Run the steps; exit code 0, or 1 when a start-up check refuses. Tracebacks go to the log."""
    parser = argparse.ArgumentParser(prog="python -m config.launcher.prepare")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--demo-file", type=Path, help="seed the demo merchant and write its facts here")
    parser.add_argument("--migrated", action="store_true", help="all migrations are known to be applied")
    options = parser.parse_args()
    _report("doing", "reading the sources")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    if not _run_checks() or not _check_database():
        return 1
    _report("Migrations", NOTHING_TO_MIGRATE if options.migrated else _migrate())
    if options.demo_file is not None:
        _report("Demo merchant", _seed(options.base_url, options.demo_file))
    return 0


def _run_checks() -> bool:
    from django.core.checks import ERROR, run_checks

    faults = [message for message in run_checks() if message.is_serious(ERROR) and not message.is_silenced()]
    for fault in faults:
        _report("fault", f"{fault.msg} {fault.hint or ''}".strip())
    return not faults


def _check_database() -> bool:
    """Checked before anything is written: a database that is not ours is left as it is."""
    from django.core.exceptions import ImproperlyConfigured

    from gateway.db.environment import require_usable_database

    try:
        require_usable_database()
    except ImproperlyConfigured as fault:
        _report("fault", str(fault))
        return False
    return True


def _migrate() -> str:
    from django.core.management import call_command
    from django.core.management.commands.migrate import Command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    from config.launcher.schema_snapshot import apply_snapshot

    _report("doing", "reading the migrations")
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not plan:
        return NOTHING_TO_MIGRATE
    if apply_snapshot(executor):
        _report("doing", "the rights of the tables")
        call_command("migrate", interactive=False, verbosity=0)
        return f"{len(plan)} applied"
    numbers = {str(migration): number for number, (migration, _) in enumerate(plan, start=1)}

    class Migrate(Command):
        """Django's own command; each migration is named before it begins."""

        def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:
            if action == "apply_start":
                _report("doing", f"migration {numbers.get(str(migration), '?')} of {len(plan)}, {migration}")
            elif action == "apply_success" and numbers.get(str(migration)) == len(plan):
                _report("doing", "the rights of the tables")

    call_command(Migrate(), interactive=False, verbosity=0)
    return f"{len(plan)} applied"


def _seed(base_url: str, file: Path) -> str:
    from django.core.management import call_command

    _report("doing", "merchants, channels, tokens")
    call_command("seed_demo", base_url=base_url, out=file, stdout=io.StringIO())
    return str(file)


def _report(step: str, what: str) -> None:
    sys.stdout.write(f"{step}\t{' '.join(what.split())}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
