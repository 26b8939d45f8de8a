"""PostgreSQL servers as docs/running.md describes them: a primary, two standbys, an archive, all on the loopback."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psycopg

from config.launcher.postgres_files import can_read_file, find_postgres_binaries
from config.launcher.process import SystemUser, find_unprivileged_user, spawn_process, stop_process, wait_until
from tests.running.files import copy_scripts, rendered
from tests.support.ports import free_port

NAMES: Final = ("pg1", "pg2", "pg3")
DATABASE: Final = "tollhouse"
PATIENCE_S: Final = 60.0
URL_OPTIONS: Final = (
    "target_session_attrs=read-write&connect_timeout=2"
    "&keepalives_idle=5&keepalives_interval=2&keepalives_count=3&tcp_user_timeout=8000"
)


class Server:
    """One PostgreSQL server: ``start``, ``kill`` (kill -9 of all its processes), ``stop_process``, ``ask``."""

    def __init__(self, name: str, cluster: Cluster) -> None:
        self.name = name
        self.port = free_port()
        self.data = cluster.folder / name
        self.log = cluster.folder / f"{name}.log"
        self._cluster = cluster
        self._child: subprocess.Popen[bytes] | None = None

    def configure(self, **own: str) -> None:
        """The example's lines, and this server's own after them."""
        lines = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "cluster_name": self.name,
            "unix_socket_directories": "",
            "shared_buffers": "32MB",
            "primary_conninfo": self._cluster.conninfo("replicator", self.name),
            **own,
        }
        text = f"include '{self._cluster.example}'\n"
        text += "".join(f"{name} = '{value}'\n" for name, value in lines.items())
        self._cluster.write(self.data / "postgresql.conf", text)

    def start(self, *, ready: bool = True) -> None:
        account = self._cluster.account
        self._child = spawn_process(
            [self._cluster.bin / "postgres", "-D", self.data],
            log=self.log,
            env=self._cluster.environment,
            death_signal=signal.SIGQUIT,
            account=account,
            directory=Path("/"),
        )
        if ready and not wait_until(self.answers, PATIENCE_S, 0.1):
            raise AssertionError(f"{self.name} does not start:\n{self.log.read_text()[-2000:]}")

    def answers(self) -> bool:
        try:
            self.ask("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """kill -9 of the postmaster and all of its processes at once."""
        assert self._child is not None
        children = Path(f"/proc/{self._child.pid}/task/{self._child.pid}/children").read_text().split()
        for pid in (self._child.pid, *map(int, children)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._child.wait()
        self._child = None

    def stop(self) -> None:
        if self._child is not None:
            stop_process(self._child, (signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0))
            self._child = None

    def ask(self, sql: str, values: Sequence[Any] = (), *, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Rows of one statement, asked of this server as its superuser."""
        password = self._cluster.passwords["postgres"]
        with psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user="postgres",
            password=password,
            dbname=database,
            autocommit=True,
            connect_timeout=2,
        ) as line:
            cursor = line.execute(sql.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def received(self) -> int:
        """How far this standby has received, bytes of WAL."""
        return int(self.ask("SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')")[0][0])


class Cluster:
    """pg1 is primary, pg2 and pg3 are its standbys; commits wait for one of them."""

    def __init__(self, folder: Path, names: Sequence[str] = NAMES) -> None:
        self.account: SystemUser | None = find_unprivileged_user()
        self.folder = folder / "database"
        self.passwords = {name: secrets.token_urlsafe(24) for name in ("postgres", "tollhouse", "replicator")}
        self.environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"}
        for path in (self.folder, self.folder / "archive", self.folder / "backup"):
            path.mkdir(mode=0o700)
            self._give(path)
        copy_scripts(self.folder)
        self.bin = self._binaries()
        self.environment["PATH"] = f"{self.bin}:{self.environment['PATH']}"
        self.example = self.folder / "tollhouse.conf"
        replacements = {"/usr/local/lib/tollhouse": str(self.folder), "/var/lib/tollhouse-archive": str(self.archive)}
        self.write(self.example, rendered("postgresql.conf", replacements))
        self.servers = [Server(name, self) for name in names]
        self.extra: list[Server] = []

    @property
    def archive(self) -> Path:
        return self.folder / "archive"

    def url(self, database: str = DATABASE) -> str:
        """DATABASE_URL of every node: all servers, and the one that takes writes is used."""
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"postgresql://tollhouse:{self.passwords['tollhouse']}@{hosts}/{database}?{URL_OPTIONS}"

    def conninfo(self, user: str, name: str) -> str:
        """A libpq connection string for whichever server is the primary."""
        hosts = ",".join("127.0.0.1" for _ in self.servers)
        ports = ",".join(str(server.port) for server in self.servers)
        return (
            f"host={hosts} port={ports} user={user} password={self.passwords[user]} application_name={name}"
            " target_session_attrs=read-write connect_timeout=2"
        )

    def start(self) -> None:
        """All three up, the roles and the empty database made, one standby in step."""
        primary, *standbys = self.servers
        secret = self.folder / "password"
        self.write(secret, self.passwords["postgres"])
        self.run(
            "initdb",
            "-D",
            primary.data,
            "-U",
            "postgres",
            f"--pwfile={secret}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--no-instructions",
        )
        secret.unlink()
        # Until a standby is there nobody could answer for a commit.
        primary.configure(synchronous_standby_names="")
        primary.start()
        for role, right in (("tollhouse", "LOGIN"), ("replicator", "LOGIN REPLICATION")):
            primary.ask(f"CREATE ROLE {role} {right} PASSWORD '{self.passwords[role]}'")
        primary.ask(f"CREATE DATABASE {DATABASE} OWNER tollhouse")
        for standby in standbys:
            self.basebackup(standby)
            standby.start()
        primary.configure()
        primary.ask("SELECT pg_reload_conf()")
        wait_until(lambda: self.in_step(primary) == len(standbys), PATIENCE_S, 0.1)

    def basebackup(self, standby: Server) -> None:
        """A standby out of the running primary."""
        conninfo = self.conninfo("replicator", standby.name)
        self.run("pg_basebackup", f"--dbname={conninfo}", "-D", standby.data, "--checkpoint=fast", "--no-password")
        self.write(standby.data / "standby.signal", "")
        standby.configure()

    def in_step(self, primary: Server) -> int:
        """How many standbys may answer for its commits."""
        return int(primary.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'")[0][0])

    def fail_over(self) -> Server:
        """Promote the standby that has received most; the other one follows it."""
        best = max((server for server in self.servers if server.answers()), key=Server.received)
        best.ask("SELECT pg_promote(true, 30)")
        return best

    def rewind(self, old: Server) -> None:
        """A failed primary becomes a standby of the new one."""
        conninfo = self.conninfo("postgres", old.name) + " dbname=postgres"
        self.run("pg_rewind", f"--target-pgdata={old.data}", f"--source-server={conninfo}", "--restore-target-wal")
        self.write(old.data / "standby.signal", "")
        old.configure()
        old.start()

    def stop(self) -> None:
        for server in (*self.extra, *reversed(self.servers)):
            server.stop()

    def run(self, *command: str | Path, **environment: str) -> str:
        """One of PostgreSQL's programs or of our scripts, as PostgreSQL's user; its output."""
        program, *rest = (str(part) for part in command)
        path = self.bin / program if (self.bin / program).exists() else self.folder / program
        done = subprocess.run(
            [str(path), *rest],
            capture_output=True,
            text=True,
            cwd="/",
            env=self.environment | environment,
            user=self.account.uid if self.account else None,
            group=self.account.gid if self.account else None,
            extra_groups=[] if self.account else None,
            check=False,
            timeout=120,
        )
        if done.returncode != 0:
            raise AssertionError(f"{program} failed: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def write(self, path: Path, text: str) -> None:
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        self._give(path)

    def _give(self, path: Path) -> None:
        if self.account is not None:
            os.chown(path, self.account.uid, self.account.gid)

    def _binaries(self) -> Path:
        """The server's programs, copied where its user cannot read them."""
        found = find_postgres_binaries()
        if self.account is None or can_read_file(found.bin / "postgres", self.account) or found.site is None:
            return found.bin
        copy = self.folder / "binaries"
        relative = found.bin.relative_to(found.site)
        for part in (str(relative), *found.parts):
            shutil.copytree(found.site / part, copy / part)
        subprocess.run(["chmod", "-R", "go+rX", copy], check=True)
        return copy / relative


def eventually(what: str, ready: Any, timeout_s: float = PATIENCE_S) -> float:
    """Wait until ``ready()``; how long it took, seconds. AssertionError when it never is."""
    started = time.monotonic()
    if not wait_until(ready, timeout_s, 0.05):
        raise AssertionError(f"{what}: not within {timeout_s:.0f} s")
    return time.monotonic() - started
