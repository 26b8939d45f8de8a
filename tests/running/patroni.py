"""PostgreSQL by Patroni as docs/running has it: three machines, each with etcd, Patroni and its PostgreSQL."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psycopg

from config.launcher.process import SystemUser, find_unprivileged_user
from tests.running.files import copy_scripts, rendered
from tests.running.machines import Machine
from tests.running.servers import DATABASE, NAMES, eventually
from tests.running.site import Process

PROGRAMS: Final = ("etcd", "haproxy")
PATRONI: Final = Path(__file__).parents[2] / "docs/running/patroni.txt"
PYTHON: Final = "/usr/bin/python3"
"""Debian's: the account that PostgreSQL runs as may not be able to read another."""
DEBIAN_BINARIES: Final = Path("/usr/lib/postgresql")
STREAMING: Final = (
    "SELECT count(*), count(*) FILTER (WHERE sync_state = 'sync') FROM pg_stat_replication"
    " WHERE state = 'streaming' AND application_name LIKE 'pg_'"
)
START_S: Final = 300.0


class DatabaseMachine:
    """pg1, pg2 or pg3: ``etcd`` and ``patroni`` are its processes; PostgreSQL is Patroni's own."""

    def __init__(self, number: int, cluster: PatroniCluster) -> None:
        self.name = NAMES[number]
        self.cluster = cluster
        self.address = f"10.0.0.2{number + 1}"
        self.folder = cluster.folder / self.name
        self.folder.mkdir(mode=0o700)
        cluster.give(self.folder)
        self.machine = Machine(self.name, self.address, self.folder / "machine.log")
        self.configuration = self.folder / "patroni.yml"
        cluster.write(self.configuration, self._patroni_file())
        environment = cluster.environment | self._etcd_environment()
        self.etcd = Process("etcd", self.as_account("etcd"), self.folder, environment)
        self.patroni = Process(
            "patroni", self.as_account("patroni", str(self.configuration)), self.folder, cluster.environment
        )

    @property
    def postgres(self) -> str:
        """What stands in the command line of its postmaster."""
        return f"{self.cluster.bin}/postgres"

    def start(self) -> None:
        self.etcd.start()
        self.patroni.start()

    def kill_postgres(self) -> None:
        """kill -9 of the postmaster and all of its processes; Patroni lives."""
        for pid in self.machine.processes():
            if Path(f"/proc/{pid}/comm").read_text().strip() == "postgres":
                os.kill(pid, 9)

    def lose_power(self) -> None:
        """Silence first, then nothing runs any more."""
        self.machine.pull_link()
        self.machine.kill()
        for process in (self.patroni, self.etcd):
            process.kill()

    def get_power(self) -> None:
        self.machine.plug_in()
        self.start()

    def run(self, *command: str, directory: Path | None = None) -> str:
        """A program on this machine, as PostgreSQL's account; what it prints."""
        done = subprocess.run(
            self.as_account(*command),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=directory or self.folder,
            env=self.cluster.environment,
            check=False,
            timeout=120,
        )
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stdout}")
        return done.stdout

    def status(self, path: str) -> int:
        """HTTP status of Patroni's REST API; 0 when it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{self.address}:8008{path}", timeout=1) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refusal:
            return refusal.code
        except OSError:
            return 0

    def ask(
        self, sql: str, values: Sequence[Any] = (), *, database: str = "postgres", port: int = 5432
    ) -> list[tuple[Any, ...]]:
        """Rows of one statement, asked of this server as its superuser."""
        with psycopg.connect(
            host=self.address,
            port=port,
            user="postgres",
            password=self.cluster.passwords["postgres"],
            dbname=database,
            autocommit=True,
            connect_timeout=2,
        ) as line:
            cursor = line.execute(sql.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def as_account(self, *command: str) -> list[str]:
        """A command that runs on this machine as PostgreSQL's account."""
        account = self.cluster.account
        assert account is not None, "only root has machines"
        own = ["setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", *command]
        return self.machine.on(*own)

    def _patroni_file(self) -> str:
        cluster = self.cluster
        text = rendered(
            "patroni.yml",
            {
                "/usr/lib/postgresql/18/bin": str(cluster.bin),
                "/var/lib/postgresql/18/tollhouse": str(self.folder / "data"),
                "/var/lib/postgresql/patroni.pgpass": str(self.folder / "pgpass"),
                "/var/run/postgresql": str(self.folder),
                "/usr/local/lib/tollhouse": str(cluster.folder),
                "/var/lib/tollhouse-archive": str(cluster.archive),
                "shared_buffers: 1GB": "shared_buffers: 64MB",
                # The account is not called postgres here.
                "local all postgres peer": "local all postgres trust",
                "POSTGRES-PASSWORD": cluster.passwords["postgres"],
                "REPLICATOR-PASSWORD": cluster.passwords["replicator"],
                "PATRONI-PASSWORD": cluster.passwords["patroni"],
                "ttl: 7": f"ttl: {cluster.ttl_s}",
            },
        )
        return self._own(text)

    def _etcd_environment(self) -> dict[str, str]:
        text = rendered("etcd.env", {"/var/lib/etcd/tollhouse": str(self.folder / "etcd")})
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        own = {line.partition("=")[0]: self._own(line).partition("=")[2] for line in lines if "CLUSTER=" not in line}
        return own | dict(line.split("=", 1) for line in lines if "CLUSTER=" in line)

    def _own(self, text: str) -> str:
        return own_lines(text, self.name, self.address)


def own_lines(text: str, name: str, address: str) -> str:
    """An example for pg1 with another machine's name and addresses; lists of all three stay."""
    text = re.sub(r"^(name: |ETCD_NAME=)pg1$", rf"\g<1>{name}", text, flags=re.MULTILINE)
    named = r"^(.*(?:listen: |connect_address: |_URLS=http://))10\.0\.0\.21:"
    return re.sub(named, rf"\g<1>{address}:", text, flags=re.MULTILINE)


class PatroniCluster:
    """The three of them. ``patroni``: the folder of its programs. What :meth:`ask` is told goes to the primary."""

    def __init__(self, folder: Path, ttl_s: int, patroni: Path) -> None:
        self.account: SystemUser | None = find_unprivileged_user()
        self.folder = folder / "database"
        self.ttl_s = ttl_s
        self.passwords = {name: secrets.token_hex(16) for name in ("postgres", "tollhouse", "replicator", "patroni")}
        self.environment = {
            "PATH": f"{patroni}:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
        }
        found = newest_binaries()
        assert found is not None, "PostgreSQL is not installed"
        self.bin = found
        for path in (self.folder, self.archive):
            path.mkdir(mode=0o711)
            self.give(path)
        copy_scripts(self.folder)
        self.machines = [DatabaseMachine(number, self) for number in range(3)]

    @property
    def archive(self) -> Path:
        return self.folder / "archive"

    def url(self, port: int = 5000, options: str = "target_session_attrs=read-write") -> str:
        """DATABASE_URL of a node: the HAProxy on its own machine."""
        return f"postgresql://tollhouse:{self.passwords['tollhouse']}@127.0.0.1:{port}/{DATABASE}?{options}"

    def start(self) -> None:
        """All three up, the role and the empty database made, both standbys following."""
        for machine in self.machines:
            machine.etcd.start()
        for machine in self.machines:
            machine.patroni.start()
        eventually("a primary", lambda: self.primary() is not None, START_S)
        eventually("two standbys", self.is_whole, START_S)
        self.ask(f"CREATE ROLE tollhouse LOGIN PASSWORD '{self.passwords['tollhouse']}'")
        self.ask(f"CREATE DATABASE {DATABASE} OWNER tollhouse")

    def primary(self) -> DatabaseMachine | None:
        """The machine whose Patroni says that it is the primary."""
        return next((machine for machine in self.machines if machine.status("/primary") == 200), None)

    def synchronous(self) -> DatabaseMachine | None:
        """The standby that commits wait for."""
        return next((machine for machine in self.machines if machine.status("/sync") == 200), None)

    def is_whole(self) -> bool:
        """Whether there is one primary with two standbys that stream from it, one of them synchronous."""
        primaries = [machine for machine in self.machines if machine.status("/primary") == 200]
        if len(primaries) != 1:
            return False
        try:
            return primaries[0].ask(STREAMING) == [(2, 1)]
        except psycopg.OperationalError:
            return False

    def ask(self, sql: str, values: Sequence[Any] = (), *, database: str = "postgres") -> list[tuple[Any, ...]]:
        primary = self.primary()
        assert primary is not None, "there is no primary"
        return primary.ask(sql, values, database=database)

    def control(self, *arguments: str) -> str:
        """patronictl, as root on pg1's machine; its output."""
        one = self.machines[0]
        command = one.machine.on("patronictl", "-c", str(one.configuration), *arguments)
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment, timeout=60, check=False)
        if done.returncode != 0:
            raise AssertionError(f"patronictl {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def wait_whole(self) -> float:
        """Wait until all three are there again; how long it took, seconds."""
        started = time.monotonic()
        eventually("three servers in step", self.is_whole, START_S)
        return time.monotonic() - started

    def stop(self) -> None:
        for machine in self.machines:
            machine.patroni.stop()
        for machine in self.machines:
            machine.etcd.stop()

    def write(self, path: Path, text: str) -> None:
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        self.give(path)

    def give(self, path: Path) -> None:
        if self.account is not None:
            os.chown(path, self.account.uid, self.account.gid)


def install_patroni(folder: Path) -> Path:
    """Installs the Patroni that docs/running names into ``folder`` and returns the folder of its programs."""
    for command in (
        [PYTHON, "-m", "venv", str(folder)],
        [f"{folder}/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", str(PATRONI)],
    ):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stdout}\n--patroni takes a folder of others.")
    return folder / "bin"


def newest_binaries() -> Path | None:
    """The programs of the newest PostgreSQL of the system: a Debian's Patroni knows that Debian's PostgreSQL."""
    found = [path.parent for path in DEBIAN_BINARIES.glob("*/bin/postgres") if path.parts[-3].isdecimal()]
    return max(found, key=lambda path: int(path.parts[-2]), default=None)
