"""The command: choose mutants by a seed, try them, as many at a time as there are processors, print what lived and a
table."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import TextIO

from tests.mutants.mutant import Mutant, choose
from tests.mutants.places import HEART, modules
from tests.mutants.trial import Outcome, Trials

ROOT = Path(__file__).parents[2]
SAMPLE = 40
MINUTES = 20.0
_SAID = re.compile(r"^(died |LIVED) +[\d.]+ s  (\S+ \S+)", re.MULTILINE)


def main(arguments: list[str], out: TextIO = sys.stdout) -> int:
    """Exit status 0: every mutant died; 1: some lived, and each has to be looked at."""
    parser = argparse.ArgumentParser(prog="make mutants ARGS=…", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="which sample (default: 1)")
    parser.add_argument("--sample", type=int, default=SAMPLE, help=f"how many mutants (default: {SAMPLE})")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"start no other after (default: {MINUTES:g})")
    parser.add_argument("--skip", type=int, default=0, help="leave out so many: an earlier run has tried them")
    parser.add_argument("--lived", type=Path, metavar="OUTPUT", help="only what lived by an earlier run's output")
    parser.add_argument("--only", nargs="*", metavar="PATTERN", help="other modules, e.g. 'gateway/backoffice/*.py'")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="how many at a time (default: cores)"
    )
    parser.add_argument("--list", action="store_true", help="show the sample, try nothing")
    options = parser.parse_args(arguments)
    parts = {"chosen": tuple(options.only)} if options.only else HEART
    chosen = choose(ROOT, modules(ROOT, parts), options.sample, options.seed)[options.skip :]
    if options.lived is not None:
        lived = list_lived(options.lived.read_text())
        chosen = [mutant for mutant in chosen if mutant.name in lived]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.name}\n{mutant.diff}\n", file=out)
        return 0
    if not chosen:
        parser.error("there is nothing to change in these modules")
    if options.processes < 1:
        parser.error("--processes: one or more")
    return report(_try_all(chosen, options.minutes * 60, options.processes, out), len(chosen), out)


def report(outcomes: dict[Mutant, Outcome], wanted: int, out: TextIO) -> int:
    """The table, and the exit status. ``wanted``: how many mutants the sample has."""
    print(f"\n{table(outcomes)}", file=out)
    if len(outcomes) < wanted:
        print(f"\n{wanted - len(outcomes)} of the sample were not tried, or their tests were of no use.", file=out)
    return 0 if all(outcome.died for outcome in outcomes.values()) else 1


def _try_all(chosen: list[Mutant], limit_s: float, processes: int, out: TextIO) -> dict[Mutant, Outcome]:
    outcomes: dict[Mutant, Outcome] = {}
    with ExitStack() as stack:
        idle: SimpleQueue[Trials] = SimpleQueue()
        for _ in range(min(processes, len(chosen))):
            idle.put(stack.enter_context(Trials(ROOT)))
        until = time.monotonic() + limit_s
        for mutant, outcome in _try_pass(idle, chosen, Trials.try_near, until):
            outcomes[mutant] = outcome
            _say(mutant, outcome, out)
        alive = [mutant for mutant in chosen if mutant in outcomes and not outcomes[mutant].died]
        for mutant, outcome in _try_pass(idle, alive, lambda one, it: one.try_far(it, outcomes[it]), until):
            outcomes[mutant] = outcome
            _say(mutant, outcome, out)
        killers = sorted({outcome.killer for outcome in outcomes.values() if "::" in outcome.killer})
        lame = idle.get().failing_without(killers)
    if lame:
        print(f"\nThese fail without any mutant, so theirs are left out: {', '.join(sorted(lame))}", file=out)
    return {mutant: outcome for mutant, outcome in outcomes.items() if outcome.killer not in lame}


def _try_pass(
    idle: SimpleQueue[Trials],
    mutants: list[Mutant],
    attempt: Callable[[Trials, Mutant], Outcome],
    until: float,
) -> Iterator[tuple[Mutant, Outcome]]:
    """One pass over ``mutants``, each by the first of ``idle`` that is free; none is started after ``until``."""

    def try_one(mutant: Mutant) -> Outcome | None:
        if time.monotonic() > until:
            return None
        trials = idle.get()
        try:
            return attempt(trials, mutant)
        finally:
            idle.put(trials)

    executor = ThreadPoolExecutor(max_workers=max(1, idle.qsize()))
    try:
        tried = {executor.submit(try_one, mutant): mutant for mutant in mutants}
        for future in as_completed(tried):
            if outcome := future.result():
                yield tried[future], outcome
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def _say(mutant: Mutant, outcome: Outcome, out: TextIO) -> None:
    word = "died " if outcome.died else "LIVED"
    print(f"{word} {outcome.seconds:5.1f} s  {mutant.name}  {outcome.killer}", file=out)
    if not outcome.died:
        print(mutant.diff + ("" if outcome.finished else "\n(not every test was tried)"), file=out)
    out.flush()


def list_lived(output: str) -> set[str]:
    """Names of the mutants that lived by what a run printed: what is said of one last counts."""
    last = {name: word for word, name in _SAID.findall(output)}
    return {name for name, word in last.items() if word == "LIVED"}


def table(outcomes: dict[Mutant, Outcome]) -> str:
    """By module, as it stands in docs/mutants.md."""
    tried = Counter(mutant.module for mutant in outcomes)
    died = Counter(mutant.module for mutant, outcome in outcomes.items() if outcome.died)
    part = {mutant.module: mutant.part for mutant in outcomes}
    lines = ["| part | module | mutants | died | lived |", "|---|---|---|---|---|"]
    for module in sorted(tried, key=lambda one: (part[one], one)):
        lived = tried[module] - died[module]
        lines.append(f"| {part[module]} | `{module}` | {tried[module]} | {died[module]} | {lived or ''} |")
    total, dead = sum(tried.values()), sum(died.values())
    lines.append(f"| | all | {total} | {dead} | {total - dead} |")
    return "\n".join(lines)
