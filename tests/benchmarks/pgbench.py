"""Baseline (a): pgbench writes the same rows in the same number of commits, with no application in between."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import psycopg

from config.launcher.errors import LaunchError
from config.launcher.postgres_files import find_postgres_binaries
from tests.benchmarks import load, traffic
from tests.benchmarks.ground import PRODUCT, Ground

_TPS: Final = re.compile(r"tps = ([0-9.]+)")
# What a payment writes before its acquirer is asked, and after; the values are those of a payment that was just made.
FIRST: Final = ("gateway_payment", "gateway_paymentevent")
SECOND: Final = ("gateway_paymentevent", "gateway_acquirerexchange", "gateway_notification", "gateway_requestlog")
MOVED: Final = ("status", "result_code", "approved_amount", "connector_tx_id", "answer")
FRESH: Final = frozenset({"id", "number", "chain", "payment_id", "request_id", "payment", "sequence"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """pgbench, and the script for it."""

    program: str
    script: Path
    url: str

    @classmethod
    def find(cls, ground: Ground, database: str) -> Self | None:
        """None without pgbench. Makes one payment, whose rows are the pattern of those that pgbench writes."""
        program = _program()
        if program is None:
            return None
        script = ground.var / "payment.sql"
        with ground.connect(database) as connection:
            script.write_text(_script(connection, ground, database))
        return cls(program=program, script=script, url=ground.url(database))

    def rate(self, seconds: float, clients: int) -> float:
        """Payments a second."""
        command = [
            self.program,
            "--no-vacuum",
            "--protocol=prepared",
            f"--client={clients}",
            "--jobs=1",
            f"--time={max(1, round(seconds))}",
            f"--file={self.script}",
            self.url,
        ]
        bare = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=bare)
        found = _TPS.search(done.stdout)
        if done.returncode != 0 or found is None:
            raise RuntimeError(f"pgbench failed: {done.stderr[-1_000:]}")
        return float(found[1])


def _program() -> str | None:
    try:
        beside = find_postgres_binaries().bin / "pgbench"
    except LaunchError:
        return shutil.which("pgbench")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("pgbench")


def _script(connection: psycopg.Connection[Any], ground: Ground, database: str) -> str:
    """Two transactions of one statement each, like a payment's own; the id goes from the first to the second.

    pgbench's prepared mode sends ``:id`` as a parameter and keeps the plans, as the product does.
    """
    identity = "uuidv7()" if connection.info.server_version >= 180_000 else "gen_random_uuid()"
    rows = _pattern(connection, ground, database)
    payment = rows["gateway_payment"]
    parts = [f"WITH n AS MATERIALIZED (SELECT {identity} AS id)"]
    parts += [_insert(table, rows[table], "id", 1, "n") for table in FIRST]
    parts += [
        "opened AS (INSERT INTO gateway_openpayment (payment_id, recover_at, inquiries)"
        " SELECT id, now() + interval '1 minute', 0 FROM n)"
    ]
    first = ",\n".join(parts) + "\nSELECT id FROM n \\gset\n"
    changes = ", ".join(f'"{name}" = {payment[name]}' for name in MOVED)
    parts = [
        f'WITH moved AS (UPDATE gateway_payment SET {changes}, "sequence" = 2, completed_at = now()'
        " WHERE id = :id::uuid AND status = 'STARTED' AND \"sequence\" = 1 RETURNING id)"
    ]
    parts += [_insert(table, rows[table], "id", 2, "moved") for table in SECOND]
    parts += ["closed AS (DELETE FROM gateway_openpayment WHERE payment_id = :id::uuid)"]
    return first + ",\n".join(parts) + "\nSELECT count(*) FROM moved;\n"


def _pattern(connection: psycopg.Connection[Any], ground: Ground, database: str) -> dict[str, dict[str, str]]:
    """The rows that one payment of the benchmark's traffic writes, each column as a literal."""
    shop = ground.prepare_product(database)
    site = ground.open_site("pattern", PRODUCT, database)
    load.closed(
        site.port, traffic.payments(shop, with_key=False), seconds=5, first=999_000_000_000, connections=1, most=1
    ).result()
    site.stop()
    found = {}
    for table in {*FIRST, *SECOND}:
        # Each column as PostgreSQL itself writes it: JSON has another form of arrays.
        names = [one.name for one in connection.execute(f"SELECT * FROM {table} LIMIT 0").description or ()]
        columns = ", ".join(f'quote_nullable("{name}"::text)' for name in names)
        newest = connection.execute(
            f"SELECT {columns} FROM {table}"
            f" ORDER BY {'payment_id' if table == 'gateway_paymentevent' else 'id'} DESC LIMIT 1"
        ).fetchone()
        assert newest is not None
        # pgbench reads ":name" as a variable of its own, even inside a literal.
        found[table] = {
            name: re.sub(r":(?=[A-Za-z0-9_])", ": ", value) for name, value in zip(names, newest, strict=True)
        }
    return found


def _insert(table: str, row: dict[str, str], identity: str, sequence: int, source: str) -> str:
    columns: dict[str, str] = {}
    for name, value in row.items():
        if name in ("created_at", "at", "completed_at"):
            columns[name] = "now()" if name != "completed_at" else "NULL"
        elif name not in FRESH:
            columns[name] = value
    if table == "gateway_payment":
        columns |= {"id": identity, "chain": identity, "request_id": identity, "status": "'STARTED'"}
        columns |= {"result_code": "''", "approved_amount": "NULL", "sequence": "1"}
    elif table == "gateway_requestlog":
        columns |= {"id": identity, "payment": identity}
    else:
        columns["payment_id"] = identity
        if "sequence" in row:
            columns["sequence"] = str(sequence)
    names = ", ".join(f'"{name}"' for name in columns)
    return f"{table}_{sequence} AS (INSERT INTO {table} ({names}) SELECT {', '.join(columns.values())} FROM {source})"
