"""Back-ups by pgBackRest as docs/running has them, on a Patroni cluster: full, an increment, a restore to a moment."""

from __future__ import annotations

import re
import secrets
import time
from typing import Any, Final

import psycopg

from tests.running.clients import Speaker
from tests.running.files import rendered
from tests.running.patroni import DatabaseMachine, PatroniCluster
from tests.running.servers import DATABASE, eventually
from tests.running.site import Process
from tests.running.trials import Row

BACKUPS: Final = "back-ups by pgBackRest"
RESTORED_PORT: Final = 5433
PAYMENTS_SQL: Final = "SELECT replace(id::text, '-', '') FROM gateway_payment"


def try_backups(cluster: PatroniCluster, speaker: Speaker) -> Row:
    """A full back-up, a switch-over, an increment, a moment; restored to it. Payments are made between all of them."""
    repository = cluster.folder / "pgbackrest"
    repository.mkdir(mode=0o700)
    cluster.give(repository)
    passphrase = secrets.token_urlsafe(48)
    for machine in cluster.machines:
        _configure(cluster, machine, passphrase)
    # Every machine has its own file, and the command is one for all: it runs in the folder of the data.
    push = 'pgbackrest --config="$PWD/../pgbackrest.conf" --stanza=tollhouse archive-push %p'
    cluster.control("edit-config", "--force", "--set", f"postgresql.parameters.archive_command={push}")
    cluster.control("reload", "--force", "tollhouse")
    first = _primary(cluster)
    _run(first, "stanza-create")
    eventually("the command for the archive", lambda: _ask_setting(first, "archive_command") == push)
    _run(first, "check")
    _run(first, "--type=full", "backup")
    before = _pay(speaker, 5)
    cluster.control("switchover", "--force", "tollhouse")
    eventually("another primary", lambda: cluster.primary() not in (None, first))
    cluster.wait_whole()
    second = _primary(cluster)
    before += _pay(speaker, 5)
    _run(second, "--type=incr", "backup")
    before += _pay(speaker, 5)
    moment = str(second.ask("SELECT clock_timestamp()::text")[0][0])
    time.sleep(0.2)
    after = _pay(speaker, 5)
    second.ask("SELECT pg_switch_wal()")
    _run(second, "check")
    _run(second, "verify")
    kept = _run(second, "info").count(" backup: ")
    restored = second.folder / "restored"
    _run(
        second, f"--pg1-path={restored}", "--archive-mode=off", "--type=time", f"--target={moment}",
        "--target-action=pause", "restore",
    )  # fmt: skip
    own = {
        "port": RESTORED_PORT, "listen_addresses": second.address, "unix_socket_directories": "",
        "synchronous_standby_names": "", "primary_conninfo": "",
    }  # fmt: skip
    options = [word for name, value in own.items() for word in ("-c", f"{name}={value}")]
    command = second.as_account(second.postgres, "-D", str(restored), *options)
    server = Process("restored", command, second.folder, cluster.environment)
    server.start()
    try:
        eventually("the replay stops", lambda: _is_paused(second))
        there = {row[0] for row in second.ask(PAYMENTS_SQL, database=DATABASE, port=RESTORED_PORT)}
        live = {row[0] for row in second.ask(PAYMENTS_SQL, database=DATABASE)}
        second.ask("SELECT pg_wal_replay_resume()", port=RESTORED_PORT)
        eventually("it takes writes", lambda: not _ask(second, "SELECT pg_is_in_recovery()"))
    finally:
        server.stop()
    kept_files = [path for path in repository.rglob("*") if path.is_file() and not path.is_symlink()]
    in_clear = [path.name for path in kept_files if path.read_bytes()[:8] != b"Salted__"]
    return Row(
        trial=BACKUPS,
        done="stanza-create, check, full, a switch-over, incr on the new primary, verify, restore to a moment",
        seen=f"{kept} back-ups; {sum(row in there for row in before)} of the 15 payments before the moment, "
        f"{sum(row in there for row in after)} of the 5 after it, {len(live - there) - len(after)} of {len(live)} "
        f"missing, {len(there - live)} that never were; then it takes writes; "
        f"{len(in_clear)} of {len(kept_files)} files not encrypted",
        fine=kept == 2 and set(before) <= there and there == live - set(after) and not in_clear,
    )


def _configure(cluster: PatroniCluster, machine: DatabaseMachine, passphrase: str) -> None:
    text = rendered(
        "pgbackrest.conf",
        {
            "repo1-path=/var/lib/pgbackrest": f"repo1-path={cluster.folder / 'pgbackrest'}",
            "repo1-cipher-pass=": f"repo1-cipher-pass={passphrase}",
            "log-level-console=info": f"log-level-console=info\nlock-path={machine.folder / 'lock'}\n"
            f"spool-path={machine.folder / 'spool'}",
            "pg1-path=/var/lib/postgresql/18/main": f"pg1-path={machine.folder / 'data'}",
            "pg1-port=5432": f"pg1-port=5432\npg1-user=postgres\npg1-socket-path={machine.folder}",
        },
    )
    cluster.write(machine.folder / "pgbackrest.conf", text)
    get = 'pgbackrest --config="$PWD/../pgbackrest.conf" --stanza=tollhouse archive-get %f "%p"'
    own = machine.configuration.read_text(encoding="utf-8")
    cluster.write(machine.configuration, re.sub(r"restore_command: .*", lambda _: f"restore_command: {get}", own))


def _run(machine: DatabaseMachine, *words: str) -> str:
    return machine.run("pgbackrest", f"--config={machine.folder / 'pgbackrest.conf'}", "--stanza=tollhouse", *words)


def _primary(cluster: PatroniCluster) -> DatabaseMachine:
    found = cluster.primary()
    assert found is not None, "there is no primary"
    return found


def _pay(speaker: Speaker, count: int) -> list[str]:
    return [str(speaker.pay(secrets.token_hex(16)).json["id"]) for _ in range(count)]


def _ask_setting(machine: DatabaseMachine, name: str) -> Any:
    return machine.ask("SELECT current_setting(%s)", [name])[0][0]


def _ask(machine: DatabaseMachine, sql: str) -> Any:
    return machine.ask(sql, port=RESTORED_PORT)[0][0]


def _is_paused(machine: DatabaseMachine) -> bool:
    try:
        return bool(_ask(machine, "SELECT pg_get_wal_replay_pause_state()") == "paused")
    except psycopg.OperationalError:
        return False
