"""`make fuzz`: a million requests to every route there is, in several processes, on a PostgreSQL of its own.

nice python -m tests.fuzz --number 1000000 --seconds 7200 --processes 2 --table docs/fuzz.md

Each process has a seed of its own: --seed and the numbers after it. It says how far it is once a minute. SIGTERM or
Ctrl-C ends it early: the table of what was sent so far is printed and written.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from config.launcher.postgres import Postgres
from tests.fuzz.process import fuzz_in_process

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess
    from multiprocessing.queues import Queue

    from tests.fuzz.run import Found

MB: Final = 1_000_000
PROGRESS_EVERY_S: Final = 60.0


def main() -> int:
    asked = _arguments()
    # Before the requests begin: the database is stopped and its files are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    var = Path(tempfile.mkdtemp(prefix="tollhouse-fuzz-"))
    var.chmod(0o711)
    postgres = Postgres(var, durable=False)
    os.environ.update(_environment(var, postgres.start()))
    try:
        _migrate()
        found, finished = _run(asked)
    finally:
        postgres.stop()
        shutil.rmtree(var, ignore_errors=True)
    text = _table(found, asked)
    sys.stdout.write(f"{text}\n")
    if asked.table:
        _write(Path(asked.table), text)
    return 1 if found.faults or not finished else 0


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


def _run(asked: argparse.Namespace) -> tuple[Found, bool]:
    """What was found, and whether each process came to its end."""
    from tests.fuzz.run import Found

    context = multiprocessing.get_context("spawn")
    results: Queue[tuple[int, Found]] = context.Queue()
    share = -(-asked.number // asked.processes)
    seeds = range(asked.seed, asked.seed + asked.processes)
    workers = [
        context.Process(target=fuzz_in_process, args=(seed, share, asked.seconds, results), daemon=True)
        for seed in seeds
    ]
    for worker in workers:
        worker.start()
    for wanted in (signal.SIGTERM, signal.SIGINT):
        signal.signal(wanted, lambda *_: _stop(workers))
    latest: dict[int, Found] = {}
    told, shown = time.monotonic(), Counter[int]()
    while True:
        running = any(worker.is_alive() for worker in workers)
        try:
            seed, found = results.get(timeout=1)
        except queue.Empty:
            if not running:
                break
            continue
        latest[seed] = found
        for fault in found.faults[shown[seed] :]:
            sys.stderr.write(f"✗ {fault}\n")
        shown[seed] = len(found.faults)
        if time.monotonic() - told > PROGRESS_EVERY_S:
            told = time.monotonic()
            sent, faults = (
                sum(each) for each in zip(*((f.number, len(f.faults)) for f in latest.values()), strict=True)
            )
            sys.stderr.write(f"{sent:,} of {asked.number:,} requests, {faults} above a bound or answered 5xx\n")
    whole = Found()
    for found in latest.values():
        whole.add(found)
    return whole, all(worker.exitcode == 0 for worker in workers)


def _stop(workers: list[SpawnProcess]) -> None:
    for worker in workers:
        if worker.is_alive():
            worker.terminate()


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
    lines += ["", *_kept(found), "The dearest of each:", ""]
    for name, row in sorted(found.rows.items()):
        lines += [f"- {name}: CPU by `{row.cpu_of}`; memory by `{row.memory_of}`"]
    return "\n".join(lines)


def _kept(found: Found) -> list[str]:
    """What a process holds over its requests: each of its looks."""
    if not found.kept:
        return []
    head = ["What a process holds:", "", "| after requests | blocks of Python's memory | resident |", "|---|---|---|"]
    return [*head, *(f"| {k.number:,} | {k.blocks:,} | {k.resident / MB:.0f} MB |" for k in found.kept), ""]


def _write(path: Path, text: str) -> None:
    head, _, _ = path.read_text().partition("<!-- table -->")
    path.write_text(f"{head}<!-- table -->\n\n{text}\n")


if __name__ == "__main__":
    sys.exit(main())
