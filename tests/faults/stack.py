"""The whole product as `make run` starts it, on a folder and a port of its own: found, killed, started again."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psycopg
import redis

from config.launcher.process import spawn_process
from config.launcher.var_folder import PROJECT_ROOT
from tests.faults.processes import Process, all_gone, children, descendants, eventually, read
from tests.support.ports import free_port
from tests.support.stub_control import StubControl, read_log_entries

OWN: Final = ("DATABASE_URL", "CELERY_BROKER_URL", "DJANGO_", "GATEWAY_", "TOLLHOUSE_", "HOST", "PORT", "PG", "PYTEST_")
UP_WITHIN_S: Final = 300.0
# Role → what the command line of the launcher's child holds.
ROLES: Final[Mapping[str, str]] = {
    "web": " gunicorn ", "worker": " worker ", "beat": " beat ", "broker": "valkey-server|redis-server",
    "postgres": "/postgres -D ", "acquirer": "gateway.connectors.stub.acquirer",
}  # fmt: skip


class NotUpError(Exception):
    """The product does not come up, or does not come back."""


class Stack:
    """One installation: `start()`, `kill()` (launcher and, with it, everything), `start()` again, `stop()`."""

    def __init__(
        self, *, broker: str = "", broker_pid: Path | None = None, folder: Path | None = None, **settings: str
    ) -> None:
        """``broker``: the URL of one that something else starts and starts again; ``broker_pid``: where it writes its
        process id. Without them it is the launcher's own. ``folder``: an empty one; without it one is made."""
        self.folder = folder or Path(tempfile.mkdtemp(prefix="tollhouse-faults-"))
        self.folder.chmod(0o711)  # under root the database server is another user and has to pass through
        self.var = self.folder / "var"
        self.port = free_port()
        bare = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
        # Every payment is one account's here, and more arrive at once than half of the threads take.
        room = {"GATEWAY_ACQUIRER_MAX_IN_FLIGHT": "64"}
        # Banks' messages are laid into a folder of the run, and files for them stay in it.
        banks = {"GATEWAY_SEPA_INBOX": str(self.var / "bank-inbox"), "GATEWAY_SEPA_OUTBOX": str(self.var / "sepa")}
        ours = {"TOLLHOUSE_VAR": str(self.var), "PORT": str(self.port)}
        self.environment = {**bare, **room, **banks, **ours, **settings}
        self._broker_pid = broker_pid
        self._own_roles = [role for role in ROLES if role != "broker" or not broker]
        if broker:
            self.environment["CELERY_BROKER_URL"] = broker
        self._launcher: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self.remove()

    # --- the whole ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it and wait until all of it runs. From the main thread only: it dies with the thread that starts it."""
        with (self.folder / "launcher.log").open("ab") as output:
            self._launcher = subprocess.Popen(
                [sys.executable, "-m", "config.launcher", "--with-parent"],
                cwd=PROJECT_ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a Ctrl-C is for us, who stop it in our order
            )
        if not eventually(lambda: self._is_up() or self.has_ended(), UP_WITHIN_S, 0.1) or self.has_ended():
            self.stop()
            raise NotUpError((self.folder / "launcher.log").read_text(errors="replace")[-3_000:])

    def stop(self) -> None:
        """Orderly end."""
        if self._launcher is None:
            return
        family = descendants(self._launcher.pid)
        if self._launcher.poll() is None:
            for one in family:  # whatever was stopped must hear that it is to end
                with contextlib.suppress(OSError):
                    os.kill(one.pid, signal.SIGCONT)
            self._launcher.send_signal(signal.SIGTERM)
        try:
            self._launcher.wait(60)
        except subprocess.TimeoutExpired:
            self._launcher.kill()
            self._launcher.wait()
        eventually(lambda: all_gone(family), 20)

    def kill(self) -> bool:
        """kill -9 of the launcher; whether everything below it went, too."""
        assert self._launcher is not None
        family = descendants(self._launcher.pid)
        self._launcher.kill()
        self._launcher.wait()
        return bool(family) and eventually(lambda: all_gone(family), 20)

    def remove(self) -> None:
        data = self.var / "postgres"
        if data.is_symlink():
            shutil.rmtree(data.resolve(), ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def has_ended(self) -> bool:
        """Whether the launcher ended by itself."""
        return self._launcher is not None and self._launcher.poll() is not None

    def _is_up(self) -> bool:
        if self._launcher is None or self.facts("run.json").get("pid") != self._launcher.pid:
            return False
        return all(self.find(role) is not None for role in self._own_roles) and self.is_ready()

    # --- its parts ----------------------------------------------------------------------------------------------

    @property
    def launcher(self) -> int:
        assert self._launcher is not None
        return self._launcher.pid

    def find(self, role: str) -> Process | None:
        """The launcher's child of that role; None while there is none."""
        if role not in self._own_roles:
            return self._other_broker()
        return next((one for one in children(self.launcher) if re.search(ROLES[role], one.command + " ")), None)

    def _other_broker(self) -> Process | None:
        if self._broker_pid is None:
            return None
        with contextlib.suppress(OSError, ValueError):
            found = read(int(self._broker_pid.read_text()))
            return found if found is not None and found.state not in "ZX" else None
        return None

    def must_find(self, role: str) -> Process:
        if not eventually(lambda: self.find(role) is not None, 30, 0.1):
            raise NotUpError(
                f"no process of {role}: {(self.folder / 'launcher.log').read_text(errors='replace')[-1_000:]}"
            )
        found = self.find(role)
        assert found is not None
        return found

    def below(self, role: str) -> list[Process]:
        """The children of that role: web workers, pool children, PostgreSQL's processes."""
        found = self.find(role)
        return children(found.pid) if found is not None else []

    def sessions(self) -> list[Process]:
        """PostgreSQL's processes of client connections, by TCP or by its socket, told by their process title."""
        return [one for one in self.below("postgres") if "127.0.0.1(" in one.command or "[local]" in one.command]

    def is_ready(self) -> bool:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            line.request("GET", "/health/ready")
            return line.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            line.close()

    # --- what it knows ------------------------------------------------------------------------------------------

    def facts(self, name: str) -> dict[str, Any]:
        """A JSON file of `var/`; empty while it is not there."""
        try:
            found = json.loads((self.var / name).read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def connect(self) -> psycopg.Connection[Any]:
        """Raises psycopg.OperationalError, also while a launcher that was killed is starting again."""
        environment = self.facts("run.json").get("environment")
        if environment is None:
            raise psycopg.OperationalError("the launcher has not written where its database is")
        return psycopg.connect(environment["DATABASE_URL"], autocommit=True, connect_timeout=5)

    def answers(self) -> bool:
        """Whether the database does."""
        try:
            with self.connect() as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except (psycopg.Error, KeyError):
            return False

    def configure(self, entity: str, document: Mapping[str, Any]) -> None:
        """Configure a channel by the product's own command. Raises NotUpError when it is refused."""
        self.command("configure", "--entity", entity, "-", text=json.dumps(document))

    def command(self, *arguments: str, text: str = "") -> str:
        """What a command of the product's writes, given ``text``. Raises NotUpError when it fails."""
        environment = self.environment | self.facts("run.json")["environment"]
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT_ROOT,
            env=environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NotUpError(done.stderr[-1_000:])
        return done.stdout

    def run_beside(self, log: str, module: Sequence[str]) -> subprocess.Popen[bytes]:
        """One more program of the product, in the environment of the run; it dies with us, or earlier."""
        environment = self.environment | self.facts("run.json")["environment"]
        return spawn_process(
            [sys.executable, "-m", *module], log=self.folder / log, env=environment, directory=PROJECT_ROOT
        )

    def log_has(self, log: str, words: str) -> bool:
        with contextlib.suppress(OSError):
            return words in (self.folder / log).read_text(errors="replace")
        return False

    def flush_broker(self) -> int:
        """Let the broker (Valkey, Redis) forget everything; how many keys it had."""
        with redis.Redis.from_url(self.facts("run.json")["environment"]["CELERY_BROKER_URL"]) as line:
            keys = int(line.dbsize())
            line.flushall()
        return keys

    @property
    def acquirer(self) -> StubControl:
        return StubControl(self.facts("run.json")["environment"]["GATEWAY_STUB_ACQUIRER"])

    def acquirer_log(self) -> list[dict[str, Any]]:
        return read_log_entries(self.var / "acquirer" / "acquirer.jsonl")


def stopped(family: list[Process]) -> bool:
    """Whether every one of them is held by SIGSTOP."""
    now = [read(one.pid) for one in family]
    return bool(family) and all(one is not None and one.state == "T" for one in now)
