"""The gateway's own processes: web nodes behind a proxy, worker, beat, broker, stub acquirer."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from config.launcher.broker import Broker
from config.launcher.process import spawn_process, stop_process, wait_until
from config.launcher.programs import WebServer, build_acquirer_command, build_beat_command, build_worker_command
from config.launcher.var_folder import PROJECT_ROOT
from tests.running.clients import Speaker
from tests.running.files import make_certificate, rendered
from tests.support.ports import free_port

OURS: Final = ("DATABASE_URL", "CELERY_BROKER_URL", "DJANGO_", "GATEWAY_", "TOLLHOUSE_", "PG", "PROMETHEUS_")
PROXIES: Final = ("haproxy", "nginx", "own")
PATIENCE_S: Final = 600.0
MANAGE_TIMEOUT_S: Final = 600.0
"""For one command: on a machine with other work loading the code alone has taken two minutes."""
# Shorter than the default 10 s, so that a trial need not wait long for payments in doubt.
ACQUIRER_TIMEOUT_S: Final = 2
FROM_SNAPSHOT: Final = """
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from config.launcher.schema_snapshot import apply_snapshot
apply_snapshot(MigrationExecutor(connection))
"""
"""The tables at once: one migration after the other takes minutes on a busy machine."""


class Process:
    """A program that is started, killed (with what it forked), or stopped in order. ``sources``: where it runs."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.sources = PROJECT_ROOT
        self.log = folder / f"{name}.log"
        self._command = command
        self._environment = environment
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._child = spawn_process(self._command, log=self.log, env=self._environment, directory=self.sources)

    def kill(self) -> None:
        """kill -9. Its own children die with it (config.launcher.child)."""
        assert self._child is not None
        self._child.kill()
        self._child.wait()

    def stop(self) -> None:
        if self._child is not None:
            stop_process(self._child, (signal.SIGTERM, 25.0))
            self._child = None

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @property
    def lives(self) -> bool:
        return self._child is not None and self._child.poll() is None


def program(module: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "tests.running.hardened", *module]


class Site:
    """Two nodes behind a proxy with TLS. ``environment`` is what all of its processes run in."""

    def __init__(self, name: str, folder: Path, database_url: str, *, live: bool, proxy: str) -> None:
        self.folder = folder / name
        self.folder.mkdir(mode=0o711)
        self.live = live
        self.ports = [free_port(), free_port()]
        self.tls, self.plain = free_port(), free_port()
        self.certificate = make_certificate(self.folder)
        self.broker = Broker(self.folder)
        acquirer = f"127.0.0.1:{free_port()}"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        self.environment = inherited | {
            "GATEWAY_ENVIRONMENT": "live" if live else "test",
            "GATEWAY_BASE_URL": f"https://localhost:{self.tls}",
            "DJANGO_ALLOWED_HOSTS": "localhost",
            "DJANGO_SECRET_KEY": secrets.token_urlsafe(48),
            "GATEWAY_BEHIND_PROXY": "true",
            "GATEWAY_VAULT_KEYSET_FILE": str(self.folder / "vault.json"),
            "GATEWAY_METRICS_TOKEN": secrets.token_urlsafe(24),
            "GATEWAY_ACQUIRER_TIMEOUT_S": str(ACQUIRER_TIMEOUT_S),
            # Every payment is one account's here, and more arrive at once than half of the threads take.
            "GATEWAY_ACQUIRER_MAX_IN_FLIGHT": "64",
            "DATABASE_URL": database_url,
            "PYTHONUNBUFFERED": "1",
        }
        if not live:
            self.environment["GATEWAY_STUB_ACQUIRER"] = acquirer
        self.acquirer = self._process("acquirer", program(build_acquirer_command(self.folder, acquirer)))
        self.nodes = [self._node(index) for index in (0, 1)]
        self.worker = self._process("worker", program(build_worker_command()))
        self.beat = self._process("beat", program(build_beat_command()))
        self.proxy = self._process("proxy", self._proxy(proxy))
        self._started: list[Process] = []

    # --- starting and stopping ------------------------------------------------------------------------------------

    def migrate(self) -> None:
        self.manage("shell", "--no-imports", "-c", FROM_SNAPSHOT)
        self.manage("migrate", "--verbosity", "0")

    def start_web(self) -> None:
        for process in (*self.nodes, self.proxy):
            self._up(process)
        for port in self.ports:
            self._wait(lambda port=port: self.health(port) == 200, f"node on {port}")  # type: ignore[misc]
        self._wait(lambda: self.speaker().status("/health/ready") == 200, "proxy")

    def start_background(self) -> None:
        """Broker, stub acquirer, Celery's worker and beat."""
        self.environment["CELERY_BROKER_URL"] = self.broker.start()
        for process in (self.acquirer, self.worker, self.beat):
            self._up(process)

    def stop(self) -> None:
        for process in reversed(self._started):
            process.stop()
        self.broker.stop()

    # --- asking it ------------------------------------------------------------------------------------------------

    def manage(
        self, *arguments: str, check: bool = True, sources: Path = PROJECT_ROOT, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """manage.py of these sources in this site's environment."""
        done = subprocess.run(
            self._command([sys.executable, "manage.py", *arguments]),
            cwd=sources,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=MANAGE_TIMEOUT_S,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"manage.py {arguments[0]} failed:\n{done.stdout}{done.stderr}"[-3000:])
        return done

    def seed(self) -> dict[str, Any]:
        """The demo merchant's facts."""
        file = self.folder / "demo.json"
        self.manage("seed_demo", "--out", str(file))
        facts: dict[str, Any] = json.loads(file.read_text())
        return facts

    def speaker(self, token: str = "", entity: str = "") -> Speaker:
        """A client of the proxy, over TLS."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        return Speaker(host="localhost", port=self.tls, context=context, token=token, entity=entity)

    def in_clear(self, port: int, token: str = "", entity: str = "", *, host: str = "localhost") -> Speaker:
        """A client of the proxy or of a node, without TLS."""
        return Speaker(host=host, port=port, context=None, token=token, entity=entity)

    def health(self, port: int) -> int:
        return self.in_clear(port).status("/health/ready")

    # --- making it ------------------------------------------------------------------------------------------------

    def _command(self, command: list[str]) -> list[str]:
        """How a command is run on the machine of the first node."""
        return command

    def _nodes(self) -> dict[str, str]:
        """The nodes' addresses in the examples, and where they are here."""
        return {f"10.0.0.1{index + 1}:8000": f"127.0.0.1:{port}" for index, port in enumerate(self.ports)}

    def _process(self, name: str, command: Sequence[str]) -> Process:
        return Process(name, command, self.folder, self.environment)

    def _node(self, index: int) -> Process:
        web = WebServer(host="127.0.0.1", port=self.ports[index], workers=2, threads=8, timeout_s=60)
        return self._process(f"node{index + 1}", program(web.command()))

    def _up(self, process: Process) -> None:
        process.start()
        self._started.append(process)

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        if not wait_until(ready, PATIENCE_S, 0.1):
            logs = "".join(f"\n{path}:\n{path.read_text()[-1500:]}" for path in sorted(self.folder.glob("**/*.log")))
            raise AssertionError(f"{what} does not get ready{logs}")

    def _proxy(self, kind: str) -> list[str]:
        """The proxy's command line, with the example of docs/running as its configuration."""
        nodes = self._nodes()
        if kind == "haproxy":
            text = rendered(
                "haproxy.cfg",
                nodes
                | {
                    "bind :443": f"bind 127.0.0.1:{self.tls}",
                    "bind :80": f"bind 127.0.0.1:{self.plain}",
                    "/etc/haproxy/tollhouse.pem": str(self.certificate),
                },
            )
            (self.folder / "haproxy.cfg").write_text(text)
            return [found_proxy(kind), "-db", "-f", str(self.folder / "haproxy.cfg")]
        if kind == "nginx":
            text = rendered(
                "nginx.conf",
                nodes
                | {
                    "listen 443 ssl": f"listen 127.0.0.1:{self.tls} ssl",
                    "listen 80;": f"listen 127.0.0.1:{self.plain};",
                    "/etc/nginx/tollhouse.crt": str(self.certificate),
                    "/etc/nginx/tollhouse.key": str(self.certificate),
                    "/run/nginx-bodies": str(self.folder / "bodies"),
                    "/var/log/nginx": str(self.folder),
                    "http {": f"pid {self.folder}/nginx.pid;\nhttp {{",
                },
            )
            (self.folder / "nginx.conf").write_text(text)
            options = ["-p", str(self.folder), "-e", "stderr", "-g", "daemon off;"]
            return [found_proxy(kind), "-c", str(self.folder / "nginx.conf"), *options]
        ports = ["--tls", str(self.tls), "--plain", str(self.plain), "--certificate", str(self.certificate)]
        return program(["tests.running.proxy", *ports, *nodes.values()])


def found_proxy(kind: str) -> str:
    return shutil.which(kind, path=f"{os.environ.get('PATH', '')}:/usr/sbin") or ""


def chosen_proxy(wanted: str | None) -> str:
    """The proxy asked for, else the first that is installed."""
    return wanted or next(kind for kind in PROXIES if kind == "own" or found_proxy(kind))
