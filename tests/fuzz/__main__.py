"""`make fuzz`: a million requests to every route there is, in several processes, on a PostgreSQL of its own.

python -m tests.fuzz --number 1000000 --seconds 7200 --processes 2 --table docs/fuzz.md
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from config.launcher.postgres import Postgres
from tests.fuzz.process import one

if TYPE_CHECKING:
    from tests.fuzz.run import Found

MB: Final = 1_000_000


def main() -> int:
    asked = _arguments()
    var = Path(tempfile.mkdtemp(prefix="tollhouse-fuzz-"))
    var.chmod(0o711)
    postgres = Postgres(var, durable=False)
    os.environ.update(_environment(var, postgres.start()))
    try:
        _migrate()
        found = _run(asked)
    finally:
        postgres.stop()
        shutil.rmtree(var, ignore_errors=True)
    text = _table(found, asked)
    sys.stdout.write(f"{text}\n")
    if asked.table:
        _write(Path(asked.table), text)
    for fault in sorted(set(found.faults))[:200]:
        sys.stderr.write(f"✗ {fault}\n")
    return 1 if found.faults else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--number", type=int, default=1_000_000, help="requests in all")
    parser.add_argument("--seconds", type=float, default=6 * 3600, help="the longest it may take")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--table", help="the document whose table is written anew")
    return parser.parse_args()


def _environment(var: Path, address: str) -> dict[str, str]:
    return {
        "DATABASE_URL": address,
        "CELERY_BROKER_URL": "memory://",
        "GATEWAY_ENVIRONMENT": "test",
        "DJANGO_SECRET_KEY": "only-for-the-fuzz-" + "0123456789" * 4,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "GATEWAY_BASE_URL": "http://testserver",
        "GATEWAY_VAULT_KEYSET_FILE": str(var / "vault.json"),
        "DJANGO_ALLOWED_HOSTS": "testserver",
        "GATEWAY_WORK_DIR": str(var / "work"),
        "TMPDIR": str(var),
        "GATEWAY_OUTBOX": str(var / "outbox"),
        "GATEWAY_SEPA_OUTBOX": str(var / "sepa"),
        "GATEWAY_LOG_LEVEL": "CRITICAL",
    }


def _migrate() -> None:
    import django
    from django.core.management import call_command
    from django.db import connections

    django.setup()
    call_command("migrate", verbosity=0)
    from gateway.vault.sealing import current_vault

    current_vault()
    connections.close_all()


def _run(asked: argparse.Namespace) -> Found:
    from tests.fuzz.run import Found

    context = multiprocessing.get_context("spawn")
    share = -(-asked.number // asked.processes)
    each = [(asked.seed + at, share, asked.seconds) for at in range(asked.processes)]
    whole = Found()
    with context.Pool(asked.processes) as pool:
        for found in pool.imap_unordered(one, each):
            whole.add(found)
    return whole


def _table(found: Found, asked: argparse.Namespace) -> str:
    from tests.fuzz.run import ADMITTED, REFUSED

    statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(found.statuses.items()))
    lines = [
        f"{found.number:,} requests (seed {asked.seed}) to {len(found.touched)} routes in {found.seconds / 60:.0f} "
        f"minutes on {asked.processes} processes; {len(found.faults)} of them a server error or above the bound.",
        "",
        f"Answers by status: {statuses}.",
        "",
        "| caller, answer | requests | CPU at most | allowed | memory at most (of so many) | allowed | wrote a file |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in sorted(found.rows.items()):
        bound = REFUSED if name == "stranger: turned away" else ADMITTED
        lines.append(
            f"| {name} | {row.number:,} | {row.cpu_s * 1000:.1f} ms | {bound.cpu_s * 1000:.0f} ms "
            f"| {row.memory / MB:.2f} MB ({row.exact:,}) | {bound.memory / MB:.0f} MB | {row.files:,} |"
        )
    lines += ["", "The dearest of each:", ""]
    for name, row in sorted(found.rows.items()):
        lines += [f"- {name}: CPU by `{row.cpu_of}`; memory by `{row.memory_of}`"]
    return "\n".join(lines)


def _write(path: Path, text: str) -> None:
    head, _, _ = path.read_text().partition("<!-- table -->")
    path.write_text(f"{head}<!-- table -->\n\n{text}\n")


if __name__ == "__main__":
    sys.exit(main())
