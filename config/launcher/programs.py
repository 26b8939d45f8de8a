"""The long-running programs of a run besides PostgreSQL and the broker: web server, Celery worker, beat."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from config.launcher.code_host import AdoptedProcess, CodeHost
from config.launcher.errors import LaunchError
from config.launcher.process import OutputLines, log_size_bytes, measure_process_work, spawn_process, stop_process
from config.launcher.var_folder import PROJECT_ROOT

WEB_WORKERS = 2
WEB_THREADS = 64
"""Of a web process. Most of them wait for an acquirer, which needs no session of the database."""
WEB_SESSIONS = 8
"""Sessions of the database that the threads of a web process share: so many requests work at a time."""
WEB_TIMEOUT_S = 60
WEB_KEEP_ALIVE_S = 65
WORKER_PROCESSES = 1
WORKER_THREADS = 12
"""Timers that wait for others (acquirers, banks, merchants) occupy a thread each; the quick ones need one."""
SPARE_CONNECTIONS = 40
"""Connections for beat, lanes of subscription jobs, threads of recovery, and people."""
PROGRAM_STOP_GRACE_S = 20
SHARED_MEMORY_FOLDER = "/dev/shm"  # noqa: S108 - the web server's heartbeat files, opened and unlinked at once


class PythonProgram:
    """A Python program as a child process: `start()`, `exit_code()`, `stop()`. It is forked from `host` where that
    can be, else started on its own. `piped`: its standard output is read here and not written to its log."""

    def __init__(
        self,
        name: str,
        module: Sequence[str],
        *,
        var: Path,
        environment: Mapping[str, str],
        host: CodeHost | None = None,
        piped: bool = False,
    ) -> None:
        self.log = var / "log" / f"{name}.log"
        self.log_start = 0
        self.lines: OutputLines | None = None
        """Its standard output, if that is a pipe and not the log."""
        self._module = tuple(module)
        self._environment = environment
        self._host = host
        self._piped = piped
        self._child: subprocess.Popen[bytes] | AdoptedProcess | None = None

    @property
    def pid(self) -> int | None:
        """Its process id; None while it is not started."""
        return self._child.pid if self._child else None

    def start(self) -> None:
        """Start it; whether it works is checked later."""
        self.log_start = log_size_bytes(self.log)
        reading, writing = os.pipe() if self._piped else (None, None)
        host = self._host
        self._child = (
            host.fork(self._module, self._environment, log=self.log, stdout=writing) if host else None
        ) or spawn_process(
            [sys.executable, "-m", "config.launcher.child", *self._module],
            log=self.log,
            env=self._environment,
            directory=PROJECT_ROOT,
            stdout=writing,
        )
        if reading is not None and writing is not None:
            os.close(writing)
            self.lines = OutputLines(reading)

    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._child.poll() if self._child else None

    def work(self) -> float | None:
        """Its `measure_process_work` so far."""
        return measure_process_work(self.pid)

    def ask_to_stop(self) -> None:
        """Ask for an orderly end without waiting."""
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Stop in order: running work is finished, within limits."""
        if self._child is not None:
            stop_process(self._child, (signal.SIGTERM, PROGRAM_STOP_GRACE_S + 2.0), (signal.SIGQUIT, 3.0))
            self._child = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebServer:
    """Address and size of the web server; read from the environment."""

    host: str
    port: int
    workers: int
    threads: int
    timeout_s: int

    @classmethod
    def from_environment(cls) -> WebServer:
        """HOST, PORT, GATEWAY_WEB_WORKERS, GATEWAY_WEB_THREADS, GATEWAY_WEB_TIMEOUT_S."""
        return cls(
            host=os.environ.get("HOST", "").strip("[] ") or "127.0.0.1",
            port=_read_number("PORT", 8000, most=65_535),
            workers=_read_number("GATEWAY_WEB_WORKERS", WEB_WORKERS),
            threads=read_web_threads(),
            timeout_s=_read_number("GATEWAY_WEB_TIMEOUT_S", WEB_TIMEOUT_S, most=3_600),
        )

    @property
    def address(self) -> str:
        """`host:port` to listen on."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def reachable_host(self) -> str:
        """A host that reaches it from this machine; the wildcard addresses do not."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - compared, not bound

    @property
    def url(self) -> str:
        """Its address for a client on this machine."""
        host = self.reachable_host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def command(self) -> list[str]:
        """gunicorn's command line. Without --reuse-port keep-alive clients can all land on one worker."""
        options = [
            *("--bind", self.address, "--reuse-port", "--no-control-socket"),
            *("--worker-class", "config.web_worker.Worker"),
            *("--workers", str(self.workers), "--threads", str(self.threads)),
            *("--timeout", str(self.timeout_s), "--graceful-timeout", str(PROGRAM_STOP_GRACE_S)),
            *("--keep-alive", str(WEB_KEEP_ALIVE_S), "--log-level", "warning"),
        ]
        if os.access(SHARED_MEMORY_FOLDER, os.W_OK):
            options += ["--worker-tmp-dir", SHARED_MEMORY_FOLDER]  # a slow disk must not look like a hanging worker
        return ["gunicorn", "config.wsgi:application", *options]


def read_web_threads() -> int:
    """GATEWAY_WEB_THREADS, the threads of one web process."""
    return _read_number("GATEWAY_WEB_THREADS", WEB_THREADS)


def read_web_sessions() -> int:
    """GATEWAY_WEB_SESSIONS, the sessions of the database that the threads of one web process share; not more than there
    are threads."""
    return min(_read_number("GATEWAY_WEB_SESSIONS", WEB_SESSIONS), read_web_threads())


def max_threads_per_account() -> int:
    """How many threads of a web process may wait for one acquirer account if GATEWAY_ACQUIRER_MAX_IN_FLIGHT is not set:
    half of them, so that a slow acquirer leaves the others free."""
    return max(1, read_web_threads() // 2)


def count_database_connections() -> int:
    """Most connections to the database that the programs of one run open: the web processes' sessions, one for each
    thread of a worker, and some beside."""
    web = WebServer.from_environment()
    processes = _read_number("GATEWAY_WORKER_PROCESSES", WORKER_PROCESSES)
    threads = _read_number("GATEWAY_WORKER_THREADS", WORKER_THREADS)
    return web.workers * read_web_sessions() + (processes if processes > 1 else threads) + SPARE_CONNECTIONS


def build_worker_command() -> list[str]:
    """Celery's worker: one process with threads, or GATEWAY_WORKER_PROCESSES with one each. It talks to no other
    worker: mingle and gossip only cost a second at start, and nothing listens to its heartbeat, a message every two
    seconds."""
    processes = _read_number("GATEWAY_WORKER_PROCESSES", WORKER_PROCESSES)
    threads = _read_number("GATEWAY_WORKER_THREADS", WORKER_THREADS)
    pool = ("prefork", processes) if processes > 1 else ("threads", threads)
    options = [
        *("--pool", pool[0], "--concurrency", str(pool[1])),
        "--without-mingle",
        "--without-gossip",
        "--without-heartbeat",
        "--loglevel",
        "INFO",
    ]
    return ["celery", "-A", "config.celery", "worker", *options]


def build_beat_command() -> list[str]:
    """Celery's beat, with its schedule in the database."""
    options = ["--scheduler", "config.beat:TimerScheduler", "--pidfile=", "--loglevel", "INFO"]
    return ["celery", "-A", "config.celery", "beat", *options]


def build_acquirer_command(var: Path, address: str) -> list[str]:
    """The stub acquirer of the test environment; its state is its log in `var/acquirer/`."""
    port = address.rpartition(":")[2]
    log = var / "acquirer" / "acquirer.jsonl"
    return ["gateway.connectors.stub.acquirer", "--port", port, "--log", str(log)]


def _read_number(name: str, default: int, most: int = 1_000) -> int:
    text = os.environ.get(name, "").strip() or str(default)
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= most:
        raise LaunchError(f"{name} must be a number from 1 to {most}, not {text!r}.")
    return int(text)
