"""An upgrade to the release after this one and the way back, node by node, under load. docs/running.md, Deploy."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from config.launcher.var_folder import PROJECT_ROOT
from tests.running.books import compare
from tests.running.servers import DATABASE, eventually
from tests.running.site import PATIENCE_S, Process, Site
from tests.running.trials import Row, Stage, told

NOT_COPIED: Final = (".git", ".venv*", "var", "node_modules", "__pycache__", "dist", ".*_cache")
COLUMN: Final = "later_note"
MIGRATION: Final = f'''"""What a later release may add: a column that may be null."""

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    dependencies: ClassVar = [("gateway", "{{last}}")]
    operations: ClassVar = [
        migrations.RunSQL(
            "ALTER TABLE gateway_payment ADD COLUMN {COLUMN} varchar(8)",
            "ALTER TABLE gateway_payment DROP COLUMN {COLUMN}",
        )
    ]
'''
COLUMNS: Final = "SELECT count(*) FROM information_schema.columns WHERE column_name = %s"


def write_later_release(folder: Path) -> Path:
    """The sources of this tree as the release after it: its version is one minor more, and it brings a migration."""
    later = folder / "later"
    shutil.copytree(PROJECT_ROOT, later, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
    project = later / "pyproject.toml"
    text, found = re.subn(
        r'^version = "(\d+)\.(\d+)\.\d+"$',
        lambda version: f'version = "{version[1]}.{int(version[2]) + 1}.0"',
        project.read_text(),
        flags=re.MULTILINE,
    )
    assert found == 1
    project.write_text(text)
    migrations = later / "gateway" / "migrations"
    last = max(path.stem for path in migrations.glob("[0-9]*.py"))
    (migrations / f"{int(last[:4]) + 1:04}_later.py").write_text(MIGRATION.format(last=last))
    return later


def an_upgrade(stage: Stage) -> Iterator[Row]:
    """Sources, migration, worker and beat, the other node; then the older sources on the newer database."""
    site = stage.site
    first, second = site.nodes
    port, other = site.ports
    later = write_later_release(site.folder)
    load = stage.load()
    load.start()
    time.sleep(stage.seconds)
    _restart(first, later)
    eventually("the newer node asks for its migration", lambda: site.health(port) == 503, PATIENCE_S)
    time.sleep(stage.seconds)
    too_early = site.health(port) != 503
    site.manage("migrate", "--verbosity", "0", sources=later)
    there = stage.primary.ask(COLUMNS, [COLUMN], database=DATABASE)[0][0]
    for process in (site.worker, site.beat):
        _restart(process, later)
    _wait_until_ready(site, port)
    _restart(second, later)
    _wait_until_ready(site, other)
    time.sleep(stage.seconds)
    upgraded = len(load.acknowledged)
    are_newer = all(node.sources == later for node in site.nodes)
    for node, its_port in ((second, other), (first, port)):
        _restart(node, PROJECT_ROOT)
        _wait_until_ready(site, its_port)
    for process in (site.beat, site.worker):
        _restart(process, PROJECT_ROOT)
    time.sleep(stage.seconds)
    load.finish()
    stage.acknowledged += load.acknowledged
    books = compare(stage.primary, stage.acknowledged, stage.acquirer)
    alive = all(process.lives for process in (site.worker, site.beat))
    back = len(load.acknowledged) - upgraded
    yield Row(
        trial="an upgrade and the way back",
        done="six clients paying; the release after this one, with a migration of the payments' table: one node, "
        "migrate, worker and beat, the other node; then all of it back, on the newer database",
        seen=f"{told(load)}, {upgraded} of them until the end of the upgrade, {back} after it; the newer node before "
        f"the migration: {'answered' if too_early else '503, no requests'}; {books}",
        fine=books.fine and not load.unanswered and not too_early and there == 1 and are_newer and back > 0 and alive,
    )


def _wait_until_ready(site: Site, port: int) -> None:
    eventually(f"the node on {port} is ready", lambda: site.health(port) == 200, PATIENCE_S)


def _restart(process: Process, sources: Path) -> None:
    """As systemd does: an orderly end, then started again, with these sources."""
    process.stop()
    process.sources = sources
    process.start()
    running = os.readlink(f"/proc/{process.pid}/cwd")
    assert running == str(sources), running
