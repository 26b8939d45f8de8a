"""The backing services of a run: PostgreSQL, the broker, and the environment variables for programs that use them."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from urllib.parse import urlsplit

from config.launcher.broker import Broker
from config.launcher.build_number import compute_build_number
from config.launcher.code_host import CodeHost
from config.launcher.errors import LaunchError
from config.launcher.postgres import Postgres
from config.launcher.programs import WebServer, count_database_connections
from config.launcher.terminal import print_step_done
from config.launcher.var_folder import (
    PROJECT_ROOT,
    acquire_file_lock,
    load_or_choose_port,
    load_or_create_secret,
    write_private,
)


class BackingServices:
    """PostgreSQL and the broker of one `var/`, and the environment variables for programs that use them."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self.postgres = Postgres(
            var, url=os.environ.get("DATABASE_URL") or None, connections=count_database_connections()
        )
        self.broker = Broker(var, url=os.environ.get("CELERY_BROKER_URL") or None)
        self.code = CodeHost(var)
        self.environment: dict[str, str] = {}
        self._lock: int | None = None
        self._acquirer: str | None = None
        self._metrics_are_fresh = False

    def claim(self) -> None:
        """Lock the `var/`: LaunchError when there is another run on it."""
        self._lock = acquire_file_lock(self.var / "run.lock")
        if self._lock is None:
            raise LaunchError(f"Tollhouse already runs on {self.var}. Stop it first, or set TOLLHOUSE_VAR and PORT.")
        # A process that waits for this run to come up watches what it does.
        os.ftruncate(self._lock, 0)
        os.write(self._lock, str(os.getpid()).encode())
        (self.var / "run.json").unlink(missing_ok=True)  # of a run that was killed

    def start(self, web: WebServer, *, load_code: bool = False) -> None:
        """Start both in parallel; then build the environment. `load_code`: start the code host, too."""
        started = time.monotonic()
        self.broker.launch()
        # The code is loaded while the servers start. Their addresses are known before, but for a port that is lost.
        database_url, broker_url = self.postgres.predict_url(), self.broker.url
        if load_code and database_url is not None and broker_url is not None:
            self.code.launch(self._environment(web, database_url, broker_url))
        database_url = self.postgres.start()
        print_step_done("PostgreSQL", started, _describe_address(database_url))
        broker_url = self.broker.wait()
        print_step_done("Broker", started, _describe_address(broker_url))
        self.environment = self._environment(web, database_url, broker_url)
        facts = {"pid": os.getpid(), "url": web.url, "environment": self._own_variables(web, database_url, broker_url)}
        write_private(self.var / "run.json", json.dumps(facts, indent=2))
        if load_code and self.code.environment != self.environment:
            self.code.launch(self.environment)

    def _environment(self, web: WebServer, database_url: str, broker_url: str) -> dict[str, str]:
        return {**os.environ, **self._own_variables(web, database_url, broker_url)}

    def _own_variables(self, web: WebServer, database_url: str, broker_url: str) -> dict[str, str]:
        """The variables that we set. Variables of the caller take precedence over our defaults."""
        given = os.environ.get
        own = {
            "DATABASE_URL": self.postgres.local_url(database_url),
            "CELERY_BROKER_URL": broker_url,
            "DJANGO_SECRET_KEY": given("DJANGO_SECRET_KEY") or load_or_create_secret(self.var / "secret_key", 48),
            "GATEWAY_ENVIRONMENT": given("GATEWAY_ENVIRONMENT") or "test",
            "GATEWAY_BASE_URL": given("GATEWAY_BASE_URL") or web.url,
            "GATEWAY_VAULT_KEYSET_FILE": given("GATEWAY_VAULT_KEYSET_FILE") or str(self.var / "vault.json"),
            "GATEWAY_BUILD_NUMBER": given("GATEWAY_BUILD_NUMBER") or compute_build_number(PROJECT_ROOT),
            "PROMETHEUS_MULTIPROC_DIR": str(self._create_metrics_folder()),
            "PYTHONUNBUFFERED": "1",
            "MALLOC_ARENA_MAX": "2",  # memory that C code of one thread gave back is used by the next one
            "CELERY_SKIP_CHECKS": "1",  # config.launcher.prepare has made them
        }
        if own["GATEWAY_ENVIRONMENT"] == "test":
            own["GATEWAY_DEMO_FILE"] = given("GATEWAY_DEMO_FILE") or str(self.var / "demo.json")
            own["GATEWAY_STUB_ACQUIRER"] = given("GATEWAY_STUB_ACQUIRER") or self._acquirer_address()
        if not given("DJANGO_ALLOWED_HOSTS") and own["GATEWAY_ENVIRONMENT"] == "test":
            own["DJANGO_ALLOWED_HOSTS"] = _allowed_hosts(web, own["GATEWAY_BASE_URL"])
        return own

    def _create_metrics_folder(self) -> Path:
        """An empty folder, so that processes of an earlier run no longer count."""
        folder = self.var / "metrics"
        if not self._metrics_are_fresh:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            self._metrics_are_fresh = True
        return folder

    def _acquirer_address(self) -> str:
        """Address of the stub acquirer: the port is chosen once, since it looks taken while the stub itself listens."""
        if self._acquirer is None:
            (self.var / "acquirer").mkdir(mode=0o700, exist_ok=True)
            self._acquirer = f"127.0.0.1:{load_or_choose_port(self.var / 'acquirer' / 'port')}"
        return self._acquirer

    def stop(self) -> None:
        """Stop the broker, then PostgreSQL, which others depend on to the end."""
        self.code.stop()
        self.broker.stop()
        self.postgres.stop()
        if self._lock is not None:
            (self.var / "run.json").unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None


def _allowed_hosts(web: WebServer, base_url: str) -> str:
    """ALLOWED_HOSTS of the test environment: this machine's names, the base address, any name when all may connect."""
    if web.host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return "*"
    names = ["localhost", "127.0.0.1", "[::1]", urlsplit(base_url).hostname or "", web.host]
    names = [f"[{name}]" if ":" in name and name[0] != "[" else name for name in names if name]
    return ",".join(dict.fromkeys(names))


def _describe_address(url: str) -> str:
    """Host and port for display; a URL may name several hosts, and then no single port."""
    hosts = urlsplit(url).netloc.rpartition("@")[2]
    return hosts or url.partition(":")[0]
