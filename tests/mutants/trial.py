"""A copy of the sources, a PostgreSQL with a migrated template, and a fork of this warmed process for every run of
tests: what a run costs is the tests and our own imports, not the libraries' and the migrations."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from config.launcher.postgres import Postgres
from tests.mutants.mutant import Mutant
from tests.mutants.places import stages
from tests.mutants.ready import DATABASE

OURS = ("chargebacks", "checkout", "config", "gateway", "reporting", "tests")
LIBRARIES = (
    "celery", "cryptography.x509", "django.contrib.admin", "django.contrib.auth", "django.db.backends.postgresql.base",
    "django.db.migrations.executor", "django.test", "hypothesis", "jwcrypto.jwt", "kombu", "lxml.etree", "paramiko",
    "psycopg", "pycountry", "pytest_django.plugin", "redis", "requests", "schwifty", "structlog", "tink.aead",
)  # fmt: skip
"""What our modules import, as far as it needs no settings; a library that is missing only makes runs slower."""
SMALL = "tests/gateway/payments/test_store.py"
"""Any tests that want a database."""
LIMIT_S = 900
"""A run of tests that is not done by then is stopped; what it would have found is not known."""
LIMIT_CPU_S = 300
"""A mutant that makes the tests compute for longer than this died: they hang."""
OK, NO_TESTS = 0, 5
KILLER = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``killer``: the test that failed first; empty: they did not even load, or computed for ever. ``finished``: no
    test was left out for want of time."""

    died: bool
    killer: str
    seconds: float
    finished: bool = True


class Trials:
    """Use as a context; ``root`` is the tree that is copied, and stays as it is."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder = Path(tempfile.mkdtemp(prefix="tollhouse-mutants-"))
        self.copy = self._folder / "copy"
        self.output = self._folder / "output"
        self._temporary = self._folder / "tmp"
        self._postgres = Postgres(self._folder, url=os.environ.get("TEST_DATABASE_URL") or None, durable=False)

    def __enter__(self) -> Trials:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing stays behind
        try:
            self._folder.chmod(0o711)  # under root the database server is another user and has to pass through
            self._temporary.mkdir(mode=0o711)
            self._copy_sources()
            self._warm()
            self._url = self._postgres.start()
            self._make_template()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._postgres.stop()
        data = self._folder / "postgres"
        if data.is_symlink():
            shutil.rmtree(data.resolve(), ignore_errors=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def try_mutant(self, mutant: Mutant) -> Outcome:
        started = time.monotonic()
        code: int | None = OK
        with _written(self.copy / mutant.module, mutant.after):
            for tests in stages(self.copy, mutant.module):
                code = self.run(["-x", *tests])
                if code not in (OK, NO_TESTS):
                    break
        killer = KILLER.search(self.output.read_text(errors="replace"))
        return Outcome(
            died=code not in (OK, NO_TESTS, None), killer=killer[1] if killer else "",
            seconds=time.monotonic() - started, finished=code is not None,
        )  # fmt: skip

    def failing_without(self, tests: Sequence[str]) -> set[str]:
        """Those of ``tests`` that fail although nothing is changed: they killed no mutant."""
        if not tests or self.run(list(tests)) == OK:
            return set()
        return set(KILLER.findall(self.output.read_text(errors="replace")))

    def run(self, arguments: list[str], database: str = "mutant") -> int | None:
        """pytest's exit code; None when it had to be stopped."""
        if database == "mutant":
            self._fresh_database(database)
        child = os.fork()
        if not child:
            self._become_pytest(arguments, database)
        until, status = time.monotonic() + LIMIT_S, None
        try:
            while status is None and time.monotonic() < until:
                time.sleep(0.05)
                done, found = os.waitpid(child, os.WNOHANG)
                status = os.waitstatus_to_exitcode(found) if done else None
        finally:
            _end_group(child)
        if status is None:
            os.waitpid(child, 0)
        return status

    def _become_pytest(self, arguments: list[str], database: str) -> None:
        """Never returns. Nothing of ours was imported from the copy before: the mutant is read from the disk."""
        code = 3
        try:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            output = os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for descriptor in (1, 2):
                os.dup2(output, descriptor)
            os.chdir(self.copy)
            for name in [one for one in sys.modules if one.split(".")[0] in OURS]:
                del sys.modules[name]
            sys.path[:] = [str(self.copy), *(one for one in sys.path if one not in ("", str(self.root)))]
            importlib.invalidate_caches()
            resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_CPU_S, LIMIT_CPU_S))
            os.environ.update(
                {
                    "TEST_DATABASE_URL": self._url, "TMPDIR": str(self._temporary),
                    DATABASE: database,
                }
            )  # fmt: skip
            if database == "template":
                del os.environ[DATABASE]
            tempfile.tempdir = None
            os.environ.pop("DJANGO_SETTINGS_MODULE", None)
            import pytest

            options = ["-p", "tests.mutants.ready", "-p", "no:cacheprovider", "-p", "no:xdist", "-rfE", "--tb=line"]
            code = int(pytest.main([*options, *arguments]))
        finally:
            sys.stdout.flush()
            os._exit(code)

    def _copy_sources(self) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.root, capture_output=True, text=True, check=True,
        )  # fmt: skip
        for name in filter(None, listed.stdout.split("\0")):
            if (self.root / name).is_file():
                (self.copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.root / name, self.copy / name)
        # Compiled once: a mutant's own module is the only one that is compiled again.
        command = [sys.executable, "-m", "compileall", "-q", "-j", "1", str(self.copy)]
        subprocess.run(command, check=False, capture_output=True)

    def _warm(self) -> None:
        for name in LIBRARIES:
            with contextlib.suppress(Exception):
                importlib.import_module(name)

    def _make_template(self) -> None:
        code = self.run(["--reuse-db", SMALL], "template")
        if code != OK:
            raise RuntimeError(f"The tests do not pass as they are:\n{self.output.read_text(errors='replace')[-2000:]}")

    def _fresh_database(self, name: str) -> None:
        main = urlsplit(self._url).path.lstrip("/")
        with psycopg.connect(urlunsplit(urlsplit(self._url)._replace(path="/postgres")), autocommit=True) as server:
            server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')  # type: ignore[arg-type]
            server.execute(f'CREATE DATABASE "{name}" TEMPLATE "test_{main}"')  # type: ignore[arg-type]


@contextlib.contextmanager
def _written(target: Path, text: str) -> Iterator[None]:
    kept = target.with_suffix(".kept")
    shutil.copy2(target, kept)
    try:
        target.write_text(text)
        yield
    finally:
        shutil.move(kept, target)


def _end_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
