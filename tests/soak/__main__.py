"""`python -m tests.soak [--minutes N] [--rate N] …`: hours of mixed load without faults; does anything grow? (R6)

Starts the product as `make run` does, in a folder and on ports of its own, and writes a line for each minute. Ctrl-C or
SIGTERM ends it early, with the table of what there is. `--report FILE` prints the table of a run, one that still runs
among them. Exit code 0: memory is flat, nothing is left, no 5xx, and the books agree; 1 otherwise.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg

from config.launcher.var_folder import PROJECT_ROOT
from tests.faults import audit, books, shoppers
from tests.faults.demo_shop import count_open, open_demo_shop
from tests.faults.faults_away import JOURNAL
from tests.faults.finding import Finding
from tests.faults.jobs import EVERY_S, PLANS, Jobs
from tests.faults.load import Load
from tests.faults.processes import eventually
from tests.faults.report import say
from tests.faults.result_calls import ResultCalls
from tests.faults.stack import Stack
from tests.faults.webhooks import Webhooks
from tests.soak import samples
from tests.soak.errands import Errands
from tests.soak.report import Verdict, judge
from tests.soak.traffic import PacedShop, Traffic

MINUTES: Final = 480.0
RATE: Final = 4.0
EVERY: Final = 60.0
CLIENTS, SHOPS = 3, 2
SLOWEST: Final = 0.2
"""Payments a second that are left for all others, however many the subscription jobs make."""
SETTLED_WITHIN_S: Final = 300.0
REST_SAMPLES, REST_S = 3, 5.0
MOST_TOLD: Final = 40


@dataclass(slots=True, kw_only=True)
class Run:
    """One run: what it starts, and the file that it writes."""

    stack: Stack
    output: Path
    rate: float
    seed: int
    ended: threading.Event
    began: float = 0.0
    lines: list[dict[str, Any]] = field(default_factory=list)
    payments: int = 0

    def write(self, **line: Any) -> None:
        """A line for the file, on the disk before the next."""
        self.lines.append(line)
        with self.output.open("a") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def go(self, minutes: float, every_s: float) -> None:
        """Start, load, sample, stop, compare."""
        self.stack.start()
        demo = open_demo_shop(self.stack)
        traffic = Traffic(max(self.rate - PLANS / EVERY_S, SLOWEST), self.seed)
        shop = PacedShop.of(demo, traffic)
        load = Load(
            self.stack.folder, shop=shop, seed=self.seed, clients=CLIENTS, shops=SHOPS, left_out=shoppers.CLOCK_MOVED
        )
        errands = Errands(self.stack, shop, self.seed, self.rate / RATE)
        duties = [duty(self.stack, shop, self.seed) for duty in (ResultCalls, Webhooks, Jobs)]
        say(f"seed {self.seed}; the product runs on port {self.stack.port}; samples go to {self.output}")
        self.write(kind="begin", at=time.time(), seed=self.seed, rate=self.rate, every_s=every_s, minutes=minutes)
        load.start()
        errands.start()
        for duty in duties:
            duty.start()
        self.began = time.time()
        self._sample_until(self.began + 60 * minutes, every_s, load, errands)
        traffic.lift()
        stopped = [load.stop(), errands.stop(), *(duty.stop() for duty in duties)]
        say("the load has stopped; waiting until no payment is open")
        shoppers.move_clock(demo.late_client())  # nobody comes to a challenge any more
        eventually(lambda: self._owed(duties) == 0, SETTLED_WITHIN_S, 1.0)
        for _ in range(REST_SAMPLES):
            time.sleep(min(REST_S, every_s))
            self._sample("rest", load, errands)
        journal = books.journal([*load.journals, self.stack.folder / JOURNAL, errands.journal])
        found = self._compare(journal)
        for duty in duties:
            found += duty.findings([])
        broken = [
            *load.broken,
            *errands.broken,
            *errands.odd,
            *traffic.odd,
            *(each for one in duties for each in one.broken),
        ]
        told = [f"{one.kind}: {one.what} {one.payment}".rstrip() for one in found]
        self.write(
            kind="end",
            at=time.time(),
            open=self._owed(duties),
            findings=[*told[:MOST_TOLD], *([f"{len(told)} findings in all"] if len(told) > MOST_TOLD else [])],
            broken=[*broken[:MOST_TOLD], *([] if all(stopped) else ["a client did not end"])],
            payments=self.lines[-1]["payments"],
            server_errors=self.lines[-1]["server_errors"],
            unanswered=self.lines[-1]["unanswered"],
            counts={
                **{duty.name: duty.told() for duty in duties},
                "requests sent twice": traffic.repeats,
                "beside payments": ", ".join(f"{name} {count}" for name, count in errands.counts.items()),
                "settlement": self._settlement(),
            },
        )  # fmt: skip

    def _sample_until(self, end: float, every_s: float, load: Load, errands: Errands) -> None:
        due = time.time()
        while not self.ended.is_set() and time.time() < end:
            try:
                self._sample("load", load, errands)
            except OSError as fault:  # of a process or file that was just going; the next sample has the others
                say(f"  no sample: {fault}")
            due = max(due + every_s, time.time())
            while not self.ended.is_set() and time.time() < min(due, end):
                self.ended.wait(min(1.0, max(0.0, min(due, end) - time.time())))
                if self.stack.has_ended():
                    raise RuntimeError("the product has ended by itself")

    def _sample(self, phase: str, load: Load, errands: Errands) -> None:
        database: dict[str, Any] | None = None
        try:
            with self.stack.connect() as connection:
                database = samples.read_database(connection)
        except psycopg.Error as fault:
            say(f"  no sample of PostgreSQL: {fault}"[:200])
        self.payments = database["payments"] if database else self.payments
        seen, told = load.server_errors + errands.server_errors, self._told_5xx()
        now = time.time()
        self.write(
            kind="sample",
            phase=phase,
            at=now,
            seconds=round(now - self.began, 1),
            roles=samples.read_roles(self.stack),
            database=database,
            files=samples.read_files(self.stack.var, temporary_of(self.stack)),
            payments=self.payments,
            server_errors=max(seen, told),
            unanswered=load.hurt - load.server_errors + errands.unanswered,
            odd=len(errands.odd) + len(errands.broken),
            load=os.getloadavg()[0],
        )

    def _told_5xx(self) -> int:
        """By the product's own figures; 0 where they cannot be read."""
        line = http.client.HTTPConnection("127.0.0.1", self.stack.port, timeout=10)
        try:
            line.request("GET", "/metrics")
            return samples.count_5xx(line.getresponse().read().decode())
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            line.close()

    def _owed(self, duties: Sequence[ResultCalls | Webhooks | Jobs]) -> int:
        return count_open(self.stack) + sum(duty.owed() for duty in duties)

    def _compare(self, journal: Sequence[dict[str, Any]]) -> list[Finding]:
        """The acquirer's books, ours and the clients' (tests.faults.audit)."""
        with self.stack.connect() as connection:
            payments, keys, aside = books.ours(connection), books.keys(connection), books.aside(connection)
        acquirer = books.acquirer(self.stack.acquirer_log())
        return audit.find_all(payments, acquirer, journal, keys, [], aside)

    def _settlement(self) -> str:
        with self.stack.connect() as connection:
            rows = connection.execute(
                "SELECT state, count(*), sum(records), sum(matched), sum(faults) FROM reporting_settlementfile"
                " GROUP BY 1"
            ).fetchall()
        return "; ".join(
            f"{count} files {state}, {records} records, {matched} matched, {faults} faulty"
            for state, count, records, matched, faults in rows
        )


def temporary_of(stack: Stack) -> Path:
    """The run's own folder for temporary files, so that what is left there is seen."""
    return stack.folder / "tmp"


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines that a run has written so far."""
    text = path.read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"of load, {MINUTES:g} unless told")
    parser.add_argument(
        "--rate", type=float, default=RATE, help=f"payments a second, {RATE:g} unless told; the rest follows"
    )
    parser.add_argument("--every", type=float, default=EVERY, help=f"seconds from sample to sample, {EVERY:g}")
    parser.add_argument("--seed", type=int, default=None, help="of the load; printed by each run")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the run")
    parser.add_argument("--folder", type=Path, help="an empty folder to run in; without it a temporary one")
    parser.add_argument("--output", type=Path, help="the file of samples; without it var/soak/<time>.jsonl")
    parser.add_argument("--report", type=Path, metavar="FILE", help="only print the table of a run's file")
    options = parser.parse_args(arguments)
    if options.report:
        return tell(judge(read_lines(options.report)))
    if options.folder and options.folder.exists() and any(options.folder.iterdir()):
        parser.error(f"{options.folder} is not empty")
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    run = Run(
        stack=open_stack(options.folder),
        output=options.output or choose_output(),
        rate=options.rate,
        seed=options.seed if options.seed is not None else secrets.randbelow(1_000_000),
        ended=ended,
    )
    verdict = Verdict()
    try:
        run.go(options.minutes, options.every)
    finally:
        run.stack.stop()
        verdict = judge(run.lines)
        code = tell(verdict)
        if options.keep or verdict.wrong:
            say(f"The folder of the run is kept: {run.stack.folder}")
        else:
            run.stack.remove()
    return code


def open_stack(folder: Path | None) -> Stack:
    """The product as `make run` has it, but for what the load needs (tests.faults)."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    stack = Stack(
        folder=(folder or Path(tempfile.mkdtemp(prefix="tollhouse-soak-"))).absolute(),
        # The load's declines come from few test cards: the guard would rightly stop them before the acquirer.
        GATEWAY_CARD_TESTING_GUARD="false",
        GATEWAY_SHOPPER_DEADLINE_S=str(shoppers.SHOPPER_DEADLINE_S),
    )
    temporary_of(stack).mkdir(mode=0o777)
    stack.environment["TMPDIR"] = str(temporary_of(stack))
    return stack


def choose_output() -> Path:
    """A new file of `var/soak`."""
    folder = PROJECT_ROOT / "var" / "soak"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl"


def tell(verdict: Verdict) -> int:
    """Print it; the exit code."""
    say("\n" + verdict.text())
    return 0 if verdict.is_flat else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
