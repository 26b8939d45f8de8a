"""A server of the test's own: PostgreSQL, migrations, demo merchant, gunicorn; and a client that sends any bytes."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg

from config.launcher.postgres import Postgres
from config.launcher.postgres_files import find_postgres_binaries
from config.launcher.process import spawn_process
from config.launcher.programs import WebServer
from tests.canary.watchers import Watchers
from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
OWN = ("DATABASE_URL", "CELERY_BROKER_URL", "DJANGO_", "GATEWAY_", "TOLLHOUSE_", "HOST", "PORT", "PYTEST_", "TEST_")
FORM = "application/x-www-form-urlencoded"
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    text: str

    @property
    def body(self) -> dict[str, Any]:
        found = json.loads(self.text)
        assert isinstance(found, dict)
        return found

    @property
    def id(self) -> str:
        return str(self.body["id"])

    @property
    def code(self) -> str:
        return str(self.body["result"]["code"])


@dataclass(slots=True)
class Site:
    """``replies``: (label, everything that was answered)."""

    var: Path
    replies: list[tuple[str, Reply]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    _web: subprocess.Popen[bytes] | None = None
    _postgres: Postgres | None = None
    port: int = 0
    watchers: Watchers = field(default_factory=Watchers)

    @property
    def web_log(self) -> Path:
        return self.var / "web.log"

    @property
    def postgres_log(self) -> Path:
        assert self._postgres is not None
        return self._postgres.log

    @property
    def data(self) -> Path:
        return (self.var / "postgres").resolve() / "data"

    def start(self) -> None:
        self._postgres = Postgres(self.var, durable=False)
        self._postgres.start()
        self.port = free_port()
        file = self.var / "demo.json"
        self.run(
            "-m", "config.launcher.prepare", "--base-url", f"http://127.0.0.1:{self.port}", "--demo-file", str(file)
        )
        self.facts = json.loads(file.read_text())
        web = WebServer(host="127.0.0.1", port=self.port, workers=1, threads=4, timeout_s=60)
        arguments = [part.replace("config.wsgi:", "tests.canary.application:") for part in web.command()[1:]]
        command = [sys.executable, "-m", "gunicorn", *arguments]
        self._web = spawn_process(command, log=self.web_log, env=self.environment())
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                if self.send("starting", "GET", "/health/ready").status == 200:
                    return
            except OSError:
                pass
            assert time.monotonic() < deadline, self.web_log.read_text()
            assert self._web.poll() is None, self.web_log.read_text()
            time.sleep(0.1)

    def stop_web(self) -> None:
        if self._web is not None:
            self._web.terminate()
            self._web.wait(PATIENCE_S)
            self._web = None

    def stop(self) -> None:
        self.stop_web()
        self.watchers.close()
        if self._postgres is not None:
            self._postgres.stop()

    def environment(self) -> dict[str, str]:
        assert self._postgres is not None
        assert self._postgres.url is not None
        bare = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
        return {
            **bare,
            "DATABASE_URL": self._postgres.url,
            "CELERY_BROKER_URL": "memory://",
            "DJANGO_SECRET_KEY": "only-for-tests-" + "0123456789" * 4,
            "GATEWAY_ENVIRONMENT": "test",
            **self.watchers.settings(),
            "GATEWAY_BASE_URL": f"http://127.0.0.1:{self.port}",
            "GATEWAY_VAULT_KEYSET_FILE": str(self.var / "vault.json"),
            "GATEWAY_LOG_LEVEL": "DEBUG",
            "PYTHONUNBUFFERED": "1",
        }

    def run(self, *arguments: str) -> str:
        """Run Python in the site's environment; everything it printed."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def connect(self) -> psycopg.Connection[Any]:
        assert self._postgres is not None
        assert self._postgres.url is not None
        return psycopg.connect(self._postgres.url, autocommit=True)

    def dump(self) -> str:
        assert self._postgres is not None
        assert self._postgres.url is not None
        program = find_postgres_binaries().bin / "pg_dump"
        done = subprocess.run([program, self._postgres.url], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    # --- the client ---------------------------------------------------------------------------------------------------

    def send(
        self, label: str, method: str, path: str, body: bytes | None = None, *, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """One request with exactly these headers."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            line.request(method, path, body=body, headers=dict(headers or {}))
            answer = line.getresponse()
            text = answer.read().decode("utf-8", "replace")
            told = "".join(f"{name}: {value}\n" for name, value in answer.getheaders())
            reply = Reply(status=answer.status, text=text)
        finally:
            line.close()
        self.replies.append((label, Reply(status=answer.status, text=f"{told}\n{text}")))
        return reply

    def raw(self, label: str, octets: bytes) -> str:
        """Bytes that need be no HTTP."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as line:
            line.sendall(octets)
            line.shutdown(socket.SHUT_WR)
            said = b""
            while more := line.recv(65536):
                said += more
        text = said.decode("utf-8", "replace")
        self.replies.append((label, Reply(status=0, text=text)))
        return text

    def post(self, label: str, path: str, fields: Mapping[str, str] | list[tuple[str, str]], **headers: str) -> Reply:
        pairs = list(fields.items()) if isinstance(fields, Mapping) else fields
        if not any(name == "entityId" for name, _ in pairs):
            pairs = [("entityId", self.facts["entity_id"]), *pairs]
        return self.send(
            label, "POST", path, urlencode(pairs).encode(), headers=self.own({"Content-Type": FORM}, headers)
        )

    def get(self, label: str, path: str, fields: Mapping[str, str] | None = None, **headers: str) -> Reply:
        query = urlencode({"entityId": self.facts["entity_id"], **(fields or {})})
        return self.send(label, "GET", f"{path}?{query}", headers=self.own({}, headers))

    def own(self, base: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return {"Authorization": f"Bearer {self.facts['access_token']}", **base, **named}
