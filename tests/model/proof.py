"""The long proof: ``python -m tests.model --sequences 10000``. Prints progress, the rate and what was reached."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from config.launcher.postgres import Postgres

BATCH = 250
TELL_EVERY_S = 5.0


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    options.add_argument("--sequences", type=int, default=10_000)
    options.add_argument("--steps", type=int, default=15, help="operations in a sequence, at most")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--of", choices=("chain", "parts"), default="chain", help="follow-ups, or parts of a checkout")
    chosen = options.parse_args()
    var = Path(tempfile.mkdtemp(prefix="tollhouse-model-"))
    var.chmod(0o711)
    postgres = Postgres(var, durable=False)
    try:
        url = postgres.start()
        return prove(chosen.sequences, chosen.steps, chosen.processes, url, var, of=chosen.of)
    finally:
        postgres.stop()
        data = var / "postgres"
        if data.is_symlink():
            shutil.rmtree(data.resolve(), ignore_errors=True)
        shutil.rmtree(var, ignore_errors=True)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def prove(sequences: int, steps: int, processes: int, url: str, var: Path, *, of: str) -> int:
    context = multiprocessing.get_context("spawn")
    done: Any = context.Queue()
    share = [sequences // processes + (number < sequences % processes) for number in range(processes)]
    workers = [
        context.Process(target=work, args=(number, share[number], steps, url, str(var), of, done), daemon=True)
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    total: Counter[str] = Counter()
    started = told = time.monotonic()
    failures: list[str] = []
    ended = 0
    while ended < processes:
        try:
            kind, content = done.get(timeout=TELL_EVERY_S)
        except queue.Empty:
            if not any(worker.is_alive() for worker in workers):
                failures.append("A process ended without a word.")
                break
            continue
        if kind == "tally":
            total.update(content)
        else:
            ended += 1
            failures += [content] if content else []
        if time.monotonic() - told > TELL_EVERY_S or ended == processes:
            told = time.monotonic()
            rate = total["sequences"] / (told - started)
            say(f"{total['sequences']:>7,} sequences, {total['steps']:>8,} steps, {rate:,.0f} sequences/s")
    for worker in workers:
        worker.join()
    say("\nAnswers that were reached:")
    for what, number in sorted(total.items()):
        if what not in ("sequences", "steps"):
            say(f"  {what:<16} {number:>8,}")
    for failure in failures:
        say(f"\nDISAGREEMENT\n{failure}")
    say(f"\n{'not clean' if failures else 'clean'}: {total['sequences']:,} sequences, {total['steps']:,} steps")
    return 1 if failures else 0


def work(number: int, sequences: int, steps: int, url: str, var: str, of: str, done: Any) -> None:
    """One process: a database of its own, batches of sequences, what it found told to ``done``."""
    os.environ.update(
        {
            "DATABASE_URL": url,
            "TEST_DATABASE_NAME": f"model_{number}",
            "CELERY_BROKER_URL": "memory://",
            "DJANGO_SECRET_KEY": "only-for-tests-" + "0123456789" * 4,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "GATEWAY_BASE_URL": "http://testserver",
            "GATEWAY_ENVIRONMENT": "test",
            "GATEWAY_LOG_LEVEL": "WARNING",
            "GATEWAY_VAULT_KEYSET_FILE": f"{var}/vault-{number}.json",
            "DJANGO_ALLOWED_HOSTS": "testserver",
        }
    )
    failure = ""
    try:
        import django

        django.setup()
        from django.db import connection

        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        run(sequences, steps, of, done)
    except Exception:
        failure = traceback.format_exc()
    done.put(("end", failure))


def run(sequences: int, steps: int, of: str, done: Any) -> None:
    from hypothesis import HealthCheck, settings
    from hypothesis.stateful import run_state_machine_as_test

    from gateway.models import Channel, Division, Psp
    from tests.model.machine import ChainMachine
    from tests.model.parts import PartMachine
    from tests.support.fixtures import open_shop

    shop = open_shop(Division.objects.create(name="Model", psp=Psp.objects.create(name="Model")), "Model shop")
    chosen: type[ChainMachine | PartMachine] = ChainMachine
    if of == "parts":
        chosen = PartMachine
        Channel.objects.update(partial_approvals=Channel.PartialApprovals.COLLECT)
    machine: Any = type("Machine", (chosen,), {"api": shop.api, "tally": Counter()})
    while (left := sequences - machine.tally["sequences"]) > 0:
        told: Counter[str] = Counter(machine.tally)
        try:
            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=min(BATCH, left),
                    stateful_step_count=steps,
                    deadline=None,
                    database=None,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            done.put(("tally", machine.tally - told))
