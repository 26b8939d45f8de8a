"""What is measured: a PostgreSQL of its own (fsync on), and web servers started with the product's own flags."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psycopg

from config.launcher import postgres as launcher
from config.launcher.postgres import Postgres
from config.launcher.programs import WEB_THREADS, WEB_TIMEOUT_S, WEB_WORKERS, PythonProgram, WebServer
from config.launcher.var_folder import PROJECT_ROOT
from tests.benchmarks.traffic import Shop
from tests.support.ports import free_port

OWN: Final = (
    "DATABASE_URL",
    "CELERY_BROKER_URL",
    "DJANGO_",
    "GATEWAY_",
    "TOLLHOUSE_",
    "PG",
    "PYTHONDONTWRITEBYTECODE",  # each program that is started would compile its modules anew: 2 s more
)
READY_TIMEOUT_S: Final = 120.0
OPEN_VAULT: Final = "import django; django.setup(); from gateway.vault.sealing import current_vault; current_vault()"
PRODUCT: Final = "config.wsgi:application"
BASELINE: Final = "tests.benchmarks.baseline.wsgi:application"


def bare_environment() -> dict[str, str]:
    """The caller's environment without what would change what is measured."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OWN)}


class NotReadyError(Exception):
    """Something that is to be measured does not come up."""


class Site:
    """A web server under gunicorn, as `make run` starts it."""

    def __init__(
        self,
        name: str,
        application: str,
        *,
        var: Path,
        environment: Mapping[str, str],
        workers: int = WEB_WORKERS,
        threads: int = WEB_THREADS,
    ) -> None:
        self.name = name
        self.port = free_port()
        web = WebServer(host="127.0.0.1", port=self.port, workers=workers, threads=threads, timeout_s=WEB_TIMEOUT_S)
        command = [application if part == PRODUCT else part for part in web.command()]
        self._program = PythonProgram(name, command, var=var, environment=environment)

    @property
    def pid(self) -> int:
        assert self._program.pid is not None
        return self._program.pid

    def start(self) -> None:
        self._program.start()
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline and self._program.exit_code() is None:
            line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            try:
                line.request("GET", "/")
                line.getresponse().read()
                return
            except OSError:
                time.sleep(0.05)
            finally:
                line.close()
        said = self._program.log.read_text(errors="replace")[-2_000:]
        raise NotReadyError(f"{self.name} does not answer:\n{said}")

    def stop(self) -> None:
        self._program.stop()


@dataclass(slots=True, kw_only=True)
class Ground:
    """A folder, a PostgreSQL in it, and everything started on it; all gone at the end."""

    var: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="tollhouse-bench-")))
    settings: dict[str, str] = field(default_factory=dict)
    _postgres: Postgres = field(init=False)
    _running: list[Any] = field(default_factory=list)
    _secret: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    def __enter__(self) -> Self:
        self.var.chmod(0o711)
        self._postgres = Postgres(self.var, durable=True)
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_sites()
        self._postgres.stop()
        data = self.var / "postgres"
        if data.is_symlink():
            shutil.rmtree(data.resolve(), ignore_errors=True)
        shutil.rmtree(self.var, ignore_errors=True)

    def _start(self) -> None:
        # The launcher sets it by what the programs may open.
        before = launcher.POSTGRES_SETTINGS
        chosen = {**dict(before), "max_connections": "100", **self.settings}
        launcher.POSTGRES_SETTINGS = tuple(chosen.items())  # type: ignore[assignment]
        try:
            self._postgres.start()
        finally:
            launcher.POSTGRES_SETTINGS = before

    def restart(self, **settings: str) -> None:
        """Start PostgreSQL anew with other settings; the sites are stopped before."""
        self.stop_sites()
        self._postgres.stop()
        self.settings = settings
        self._start()

    @property
    def postgres_pid(self) -> int:
        assert self._postgres.pid is not None
        return self._postgres.pid

    @property
    def postgres_version(self) -> str:
        with self.connect("postgres") as connection:
            return str(connection.info.server_version // 10_000)

    def url(self, database: str) -> str:
        assert self._postgres.url is not None
        return self._postgres.url.rpartition("/")[0] + f"/{database}"

    def connect(self, database: str) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url(database), autocommit=True)

    def environment(self, database: str, **more: str) -> dict[str, str]:
        """A production-like environment: nothing of the caller's that would change what is measured."""
        return {
            **bare_environment(),
            "DATABASE_URL": self._postgres.local_url(self.url(database)),
            "DJANGO_SECRET_KEY": self._secret,
            "GATEWAY_ENVIRONMENT": "test",
            "GATEWAY_VAULT_KEYSET_FILE": str(self.var / "vault.json"),
            "GATEWAY_BUILD_NUMBER": f"{'0' * 40}@2000-01-01 00:00:00 +0000",
            "PYTHONUNBUFFERED": "1",
            **more,
        }

    def prepare_product(self, database: str) -> Shop:
        """Make the database, migrate it and seed the demo merchant, whose facts come back."""
        launcher.create_database(self.url(database))
        file = self.var / f"{database}.json"
        if not (self.var / "vault.json").exists():
            self.run(database, "-c", OPEN_VAULT, DJANGO_SETTINGS_MODULE="config.settings")
        self.run(database, "-m", "config.launcher.prepare", "--base-url", "http://127.0.0.1", "--demo-file", str(file))
        facts = json.loads(file.read_text())
        return Shop(entity=facts["entity_id"], token=facts["access_token"])

    def prepare_baseline(self, database: str) -> None:
        """Make the database and its one table."""
        launcher.create_database(self.url(database))
        settings = "tests.benchmarks.baseline.settings"
        self.run(database, "-m", "django", "migrate", "--run-syncdb", "-v", "0", "--settings", settings)

    def run(self, database: str, *arguments: str, **more: str) -> str:
        """Run Python with ``arguments`` in the environment of ``database``; what it printed."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=PROJECT_ROOT,
            env=self.environment(database, **more),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NotReadyError(f"{' '.join(arguments)}:\n{done.stdout[-1_000:]}{done.stderr[-2_000:]}")
        return done.stdout

    def open_site(self, name: str, application: str, database: str, *, threads: int = WEB_THREADS, **more: str) -> Site:
        """Start a web server on ``database``."""
        site = Site(name, application, var=self.var, environment=self.environment(database, **more), threads=threads)
        self._running.append(site)
        site.start()
        return site

    def keep(self, program: Any) -> None:
        """Stop ``program``, too, when the sites are stopped."""
        self._running.append(program)

    def stop_sites(self) -> None:
        while self._running:
            self._running.pop().stop()
