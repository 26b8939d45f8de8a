"""The standby that lists, searches, reports and exports are read from (GATEWAY_STANDBY_URL).

Payments never wait for it: where it cannot be used the primary answers, and has the work. So its faults are warnings.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connections

from config.doctor.findings import DoctorQuestion, PartFinding, judge, ok, skipped, warning
from gateway.db.standby import STANDBY_ALIAS, has_standby

MAX_REPLAY_WAIT_S: Final = 15.0
"""How long the doctor waits for the standby to come as far as the primary was, however much lag is allowed."""
_POLL_S: Final = 0.05
_WRITTEN: Final = "pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint"
_REPLAYED: Final = "pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint"
_IDENTITY: Final = "SELECT (SELECT system_identifier FROM pg_control_system())::text, current_database()::text"
_STATE: Final = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')"
_REPLAY: Final = "SELECT pg_is_wal_replay_paused(), (SELECT count(*) FROM pg_stat_wal_receiver)"
_ADDRESS: Final = (
    "GATEWAY_STANDBY_URL: name a standby of DATABASE_URL's server, with target_session_attrs=standby (docs/running.md, "
    "Reading from a standby)."
)


def examine_standby(_question: DoctorQuestion) -> Iterator[PartFinding]:
    """Whether it answers, is a standby of this database, takes no writes and keeps up."""
    if not has_standby():
        yield skipped("Nothing is read from a standby: GATEWAY_STANDBY_URL is not set.")
        return
    try:
        is_standby, read_only = _ask(STANDBY_ALIAS, _STATE)
        identity = _ask(STANDBY_ALIAS, _IDENTITY)
    except (DatabaseError, InterfaceError) as fault:
        connections[STANDBY_ALIAS].close()
        about = f"The standby does not answer: {type(fault.__cause__ or fault).__name__}. The primary does its work."
        mend = "Start it, and let this machine in (pg_hba.conf); else correct GATEWAY_STANDBY_URL."
        yield warning(about, mend)
        return
    yield ok("The standby answers.")
    wrong = "GATEWAY_STANDBY_URL leads to a server that is no standby: nothing is read from it."
    yield judge(is_standby, "It is a standby.", warning(wrong, _ADDRESS))
    writes = warning("The server of GATEWAY_STANDBY_URL takes writes.", _ADDRESS)
    yield judge(read_only == "on", "It takes no writes.", writes)
    yield from _examine_origin(identity)
    if is_standby and identity == _ask(DEFAULT_DB_ALIAS, _IDENTITY):
        yield _judge_lag()


def _examine_origin(identity: tuple[Any, ...]) -> Iterator[PartFinding]:
    """Whether it follows the server of DATABASE_URL, and names the same database there."""
    system, database = _ask(DEFAULT_DB_ALIAS, _IDENTITY)
    if identity[0] != system:
        about = f"The standby is of another cluster (system identifier {identity[0]}, here {system})."
        yield warning(about, f"{_ADDRESS} A standby of this one is made by pg_basebackup -R.")
    elif identity[1] != database:
        about = f"GATEWAY_STANDBY_URL names the database {identity[1]}, DATABASE_URL {database}."
        yield warning(about, f"GATEWAY_STANDBY_URL: …/{database}")
    else:
        yield ok("It follows this database.")


def _judge_lag() -> PartFinding:
    """Whether it replays within the bound what the primary has written now."""
    bound = settings.GATEWAY_STANDBY_MAX_LAG_S
    (written,) = _ask(DEFAULT_DB_ALIAS, f"SELECT {_WRITTEN}")
    until = time.monotonic() + min(bound, MAX_REPLAY_WAIT_S)
    while True:
        (replayed,) = _ask(STANDBY_ALIAS, f"SELECT {_REPLAYED}")
        if replayed is not None and replayed >= written:
            return ok(f"It keeps up: at most {bound:g} s behind.")
        if time.monotonic() >= until:
            break
        time.sleep(_POLL_S)
    if bound > MAX_REPLAY_WAIT_S:
        about = f"The standby is more than {MAX_REPLAY_WAIT_S:g} s behind (GATEWAY_STANDBY_MAX_LAG_S is {bound:g})."
    else:
        about = f"The standby is more than {bound:g} s behind (GATEWAY_STANDBY_MAX_LAG_S): the primary does its work."
    return warning(about, _explain_lag())


def _explain_lag() -> str:
    paused, receivers = _ask(STANDBY_ALIAS, _REPLAY)
    if paused:
        return "On the standby: SELECT pg_wal_replay_resume()."
    if not receivers:
        return "It receives nothing from the primary: see its log, its primary_conninfo and the primary's pg_hba.conf."
    return (
        "On the standby: a long report holds its replay up (max_standby_streaming_delay), or its disk is slow; "
        "else raise GATEWAY_STANDBY_MAX_LAG_S."
    )


def _ask(alias: str, sql: str) -> tuple[Any, ...]:
    with connections[alias].cursor() as cursor:
        cursor.execute(sql)
        row: tuple[Any, ...] = cursor.fetchone()
    return row
