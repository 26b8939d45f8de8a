"""What is read off at one moment: processes by their roles, PostgreSQL, files. Linux only."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.benchmarks.meter import TICK_S
from tests.faults.processes import Process, children, descendants, read
from tests.faults.stack import Stack

LAUNCHER, CODE_HOST, WEB, POSTGRES, STUB = "launcher", "code host", "web arbiter", "PostgreSQL", "stub acquirer"
LOAD: Final = "the load itself"
TEMPORARY: Final = "temporary folder"
SORTING: Final = "postgres, temporary"
"""What PostgreSQL writes beside its tables for sorts that are larger than work_mem."""
TABLES_FROM_BYTES: Final = 128 * 1024
_SESSIONS: Final = """
SELECT coalesce(state, 'none'), count(*), coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float
FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() GROUP BY 1
"""
_NAMES: Final = """
SELECT application_name, count(*) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() GROUP BY 1
"""
_TABLES: Final = """
SELECT relname, pg_total_relation_size(relid), n_live_tup, n_dead_tup FROM pg_stat_user_tables
WHERE pg_total_relation_size(relid) >= %s ORDER BY 2 DESC
"""
_DATABASE: Final = """
SELECT pg_database_size(datname), temp_files, temp_bytes, deadlocks, (SELECT count(*) FROM gateway_payment)
FROM pg_stat_database WHERE datname = current_database()
"""


@dataclass(slots=True, kw_only=True)
class Usage:
    """What one role has: of PostgreSQL the server and all sessions together. ``memory_kib``: what is not in a file and
    not in shared memory, pages that several processes share being divided among them; ``pss_kib``: with both."""

    pids: list[int]
    memory_kib: int = 0
    pss_kib: int = 0
    threads: int = 0
    descriptors: int = 0
    cpu_s: float = 0.0


def read_roles(stack: Stack) -> dict[str, dict[str, Any]]:
    """Role → its Usage as a plain value."""
    return {role: asdict(measure(family)) for role, family in list_roles(stack).items() if family}


def list_roles(stack: Stack) -> dict[str, list[Process]]:
    """Role → its processes."""
    found = {LAUNCHER: [one for one in [read(stack.launcher)] if one is not None]}
    found[CODE_HOST] = [one for one in children(stack.launcher) if "config.launcher.preloaded" in one.command]
    names = {"web": WEB, "worker": "worker", "beat": "beat", "broker": "broker", "postgres": POSTGRES, "acquirer": STUB}
    for known, role in names.items():
        one = stack.find(known)
        if one is None:
            continue
        below = descendants(one.pid)
        if known == "web":
            workers = sorted((each for each in below if each.parent == one.pid), key=lambda each: each.started)
            found |= {f"web worker {number}": [each] for number, each in enumerate(workers, 1)}
            below = []
        found[role] = [one, *below]
    return found | {LOAD: [one for one in [read(os.getpid())] if one is not None]}


def measure(family: Sequence[Process]) -> Usage:
    """The sum over ``family``; a process that ends meanwhile is left out."""
    usage = Usage(pids=[one.pid for one in family])
    for one in family:
        folder = Path(f"/proc/{one.pid}")
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(") ")[2].split()
            memory_kib, pss_kib = read_memory(folder)
            usage.descriptors += len(os.listdir(folder / "fd"))
            usage.memory_kib += memory_kib
            usage.pss_kib += pss_kib
            usage.threads += int(fields[17])
            usage.cpu_s += (int(fields[11]) + int(fields[12])) * TICK_S
    usage.cpu_s = round(usage.cpu_s, 2)
    return usage


def read_memory(folder: Path) -> tuple[int, int]:
    """Memory that is in no file, and the whole, in KiB: proportional parts, or what is resident where those are not
    told. Raises OSError."""
    try:
        names = _read_fields(folder / "smaps_rollup")
        return names["Pss_Anon"], names["Pss"]
    except (PermissionError, FileNotFoundError, KeyError):
        names = _read_fields(folder / "status")
        return names.get("RssAnon", 0), names.get("VmRSS", 0)


def _read_fields(path: Path) -> dict[str, int]:
    rows = (line.split() for line in path.read_text().splitlines())
    return {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) == 3 and row[2] == "kB"}


def read_database(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    """Sessions by state, the oldest transaction, tables with their indexes, and what was written to temporary files."""
    sessions = connection.execute(_SESSIONS).fetchall()
    tables = connection.execute(_TABLES, (TABLES_FROM_BYTES,)).fetchall()
    row = connection.execute(_DATABASE).fetchone()
    assert row is not None
    size, temp_files, temp_bytes, deadlocks, payments = row
    return {
        "connections": {state: count for state, count, _ in sessions},
        "sessions_of": dict(connection.execute(_NAMES).fetchall()),
        "oldest_transaction_s": round(max((oldest for _, _, oldest in sessions), default=0.0), 2),
        "tables": {name: [total, live, dead] for name, total, live, dead in tables},
        "database_bytes": size,
        "temp_files": temp_files,
        "temp_bytes": temp_bytes,
        "deadlocks": deadlocks,
        "payments": payments,
    }


def read_files(var: Path, temporary: Path) -> dict[str, list[int]]:
    """Folder of `var/` → number of files and bytes in it; of PostgreSQL's the temporary ones apart."""
    found = {TEMPORARY: count_files(temporary), "var itself": [0, 0], SORTING: [0, 0]}
    for entry in sorted(var.iterdir()):
        if entry.is_dir():
            found[entry.name] = count_files(entry.resolve(), found[SORTING])
            continue
        with contextlib.suppress(OSError):
            found["var itself"][1] += entry.lstat().st_size
            found["var itself"][0] += 1
    return found


def count_files(folder: Path, sorting: list[int] | None = None) -> list[int]:
    """Files below ``folder`` and their bytes; those of PostgreSQL's sorts are added to ``sorting`` instead."""
    own = [0, 0]
    for place, _, names in os.walk(folder):
        into = sorting if sorting is not None and place.endswith("pgsql_tmp") else own
        for name in names:
            with contextlib.suppress(OSError):
                into[1] += os.lstat(os.path.join(place, name)).st_size
                into[0] += 1
    return own


def count_5xx(metrics: str) -> int:
    """API requests that the product says it answered with a 5xx, out of its Prometheus figures."""
    lines = (line for line in metrics.splitlines() if line.startswith("tollhouse_requests_total{"))
    return sum(int(float(line.rpartition(" ")[2])) for line in lines if 'status="5' in line)
