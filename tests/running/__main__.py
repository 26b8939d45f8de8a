"""`python -m tests.running`: try all that docs/running.md says, with real processes on the loopback; prints a table.

With --cluster: docs/running.md, Fail-over by Patroni, on machines of a network of its own; five minutes and more.
With --units: the systemd units, started by systemd in a container; some minutes.
Without it takes some five minutes. Each stops everything that it started. Exit code 1 when something is not as
it must be.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.running.cluster_trials import CLUSTER_TRIALS, try_cluster
from tests.running.live import a_live_start
from tests.running.machines import is_inside, missing_tools, run_inside
from tests.running.patroni import PROGRAMS, install_patroni, newest_binaries
from tests.running.pgbackrest import BACKUPS
from tests.running.servers import Cluster
from tests.running.site import PROXIES, Site, chosen_proxy
from tests.running.trials import TRIALS, Row, Stage, Trial
from tests.running.units import missing_for_units, try_units
from tests.running.upgrade import an_upgrade


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.running", description=__doc__)
    parser.add_argument("--proxy", choices=PROXIES, help="default: the first that is installed")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long load runs before and after each fault")
    parser.add_argument("--web-only", action="store_true", help="only what concerns the proxy and its nodes")
    parser.add_argument("--cluster", action="store_true", help="a Patroni cluster that loses each part (root only)")
    parser.add_argument("--units", action="store_true", help="the systemd units, booted in a container (root only)")
    parser.add_argument("--only", default="", help="the trials in whose names this stands")
    parser.add_argument("--ttl", type=int, default=7, help="with --cluster: Patroni's ttl, seconds")
    parser.add_argument(
        "--patroni", type=Path, metavar="FOLDER", help="with --cluster: another Patroni than docs/running/patroni.txt's"
    )
    parser.add_argument("--markdown", action="store_true", help="print the table as docs/running.md has it")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    options = parser.parse_args()
    every = TRIALS[:1] if options.web_only else (TRIALS[0], an_upgrade, *TRIALS[1:])
    names = CLUSTER_TRIALS if options.cluster else [trial.__name__ for trial in (*every, a_live_start)]
    if not any(options.only in name for name in names):
        parser.error(f"--only {options.only}: no trial has this in its name. The trials: {', '.join(names)}")
    if options.units and (options.only or options.cluster):
        parser.error("--units stands alone: its trials build on each other.")
    if options.units and (why := missing_for_units()):
        sys.stdout.write(f"Skipped, systemd cannot be booted here: {why}\n")
        return 0
    if options.cluster:
        if why := missing_for_cluster(options.only):
            sys.stdout.write(f"Skipped, there can be no cluster here: {why}\n")
            return 0
        code = _run_cluster_inside(options.patroni)
        if code is not None:
            return code
    proxy = chosen_proxy(options.proxy)
    # Not in /tmp for the units: a container has its own.
    folder = Path(tempfile.mkdtemp(prefix="tollhouse-running-", dir="/srv" if options.units else None))
    folder.chmod(0o711)
    started = time.monotonic()
    rows: list[Row] = []
    try:
        trials = [trial for trial in every if options.only in trial.__name__]
        if options.units:
            found = try_units(folder)
        elif options.cluster:
            found = try_cluster(folder, options.seconds, options.ttl, options.only, options.patroni)
        else:
            found = _all(folder, proxy, options.seconds, trials, live=options.only in a_live_start.__name__)
        for row in found:
            rows.append(row)
            sys.stdout.write(_line(row, options.markdown) + "\n")
            sys.stdout.flush()
    finally:
        if options.keep:
            sys.stdout.write(f"Logs are in {folder}\n")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    wrong = [row.trial for row in rows if not row.fine]
    sys.stdout.write(f"\n{len(rows) - len(wrong)} of {len(rows)} as they must be, proxy {proxy}, ")
    sys.stdout.write(f"{time.monotonic() - started:.0f} s\n")
    return 1 if wrong else 0


def _all(folder: Path, proxy: str, seconds: float, trials: Sequence[Trial], *, live: bool) -> Iterator[Row]:
    cluster = Cluster(folder)
    site = Site("site", folder, cluster.url(), live=False, proxy=proxy)
    try:
        cluster.start()
        site.migrate()
        demo = site.seed()
        site.start_background()
        site.start_web()
        stage = Stage(cluster=cluster, site=site, demo=demo, seconds=seconds, primary=cluster.servers[0])
        for trial in trials:
            yield from trial(stage)
        site.stop()
        if live:
            yield from a_live_start(folder, cluster, proxy)
    finally:
        site.stop()
        cluster.stop()


def _run_cluster_inside(patroni: Path | None) -> int | None:
    """:func:`run_inside`, with Patroni installed before: inside there is no way to a package index."""
    if is_inside():
        return None
    with tempfile.TemporaryDirectory(prefix="tollhouse-patroni-") as made:
        Path(made).chmod(0o755)
        programs = patroni.resolve() if patroni else install_patroni(Path(made) / "venv")
        return run_inside("tests.running", [*sys.argv[1:], "--patroni", str(programs)])


def missing_for_cluster(only: str) -> str:
    """Why --cluster cannot run here; empty when it can. ``only``: of the option."""
    programs = (*PROGRAMS, "pgbackrest") if only in BACKUPS else PROGRAMS
    return missing_tools(programs) or ("" if newest_binaries() else "not installed: postgresql")


def _line(row: Row, markdown: bool) -> str:
    verdict = "yes" if row.fine else "**no**" if markdown else "NO"
    if markdown:
        return f"| {row.trial} | {row.done} | {row.seen} | {verdict} |"
    return f"{verdict:<4} {row.trial}\n       {row.done}\n       {row.seen}"


if __name__ == "__main__":
    sys.exit(main())
