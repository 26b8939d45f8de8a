"""A copy of the sources, a PostgreSQL with a migrated template, and two ways to try a mutant: in a fork of a process
that has imported everything (quick), and in a process of its own (for what lived there, or cannot be tried there)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from config.launcher.postgres import Postgres
from tests.mutants.mutant import Mutant
from tests.mutants.places import stages
from tests.mutants.ready import DATABASE
from tests.mutants.warm import LIMIT_CPU_S, LIMIT_S, OPTIONS, Answer, Request

SMALL = "tests/gateway/payments/test_store.py"
"""Any tests that want a database."""
OK, NO_TESTS = 0, 5
KILLER = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)
_TRIED = "mutant"
NEAR_LIMIT_S = 60.0
"""Most mutants die within seconds. One that lives so long is left to the far pass: the whole sample is looked at before
the longest of its tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``killer``: the test that failed first; empty: they did not even load, or computed for ever. ``finished``: no
    test was left out for want of time. ``was_cut``: near tests were stopped by NEAR_LIMIT_S."""

    died: bool
    killer: str
    seconds: float
    finished: bool = True
    was_cut: bool = False


class Trials:
    """Use as a context; ``root`` is the tree that is copied, and stays as it is. ``url``, ``imports``: for a short try
    of tests that want no database: a server that is there, and the only modules that are imported beforehand."""

    def __init__(self, root: Path, *, url: str | None = None, imports: Sequence[str] = ()) -> None:
        self.root = root
        self._imports, self._with_database = imports, url is None
        self._folder = Path(tempfile.mkdtemp(prefix="tollhouse-mutants-"))
        self.copy = self._folder / "copy"
        self.output = self._folder / "output"
        self._temporary = self._folder / "tmp"
        self._postgres = Postgres(self._folder, url=url, durable=False)
        self._warm: subprocess.Popen[str] | None = None

    def __enter__(self) -> Trials:
        with contextlib.suppress(ValueError):  # not in a thread
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing stays behind
        try:
            self._folder.chmod(0o711)  # under root the database server is another user and has to pass through
            self._temporary.mkdir(mode=0o711)
            self._copy_sources()
            self._url = self._postgres.start()
            if self._with_database:
                self._make_template()
            self._warm_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._warm is not None:
            self._warm.terminate()  # it stops its fork, which holds the same pipe
            self._warm.communicate()
        self._postgres.stop()
        data = self._folder / "postgres"
        if data.is_symlink():
            shutil.rmtree(data.resolve(), ignore_errors=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def try_near(self, mutant: Mutant) -> Outcome:
        """Most mutants die by a test that is near, in seconds; what lives is not done (``finished``)."""
        near, _ = stages(self.copy, mutant.module)
        outcome = self.try_source(mutant.module, mutant.after, near, limit_s=NEAR_LIMIT_S)
        return outcome if outcome.died else replace(outcome, finished=False, was_cut=not outcome.finished)

    def try_far(self, mutant: Mutant, near_outcome: Outcome) -> Outcome:
        """What lived through the near tests: minutes. ``near_outcome``: what try_near said of it."""
        near, far = stages(self.copy, mutant.module)
        # The stories nearest to a module are shorter than what was cut.
        tests = [*far[:1], *near, *far[1:]] if near_outcome.was_cut else far
        return self.try_source(mutant.module, mutant.after, tests, alone=near[0])

    def try_source(
        self,
        module: str,
        after: str,
        tests: Sequence[list[str]],
        alone: Sequence[str] = (),
        limit_s: float = LIMIT_S,
    ) -> Outcome:
        """``tests``: one run after the other, until one fails. What lived in forks through all of them is tried with
        ``alone`` in a process of its own: there a change shows that acts when the module is imported."""
        started = time.monotonic()
        code: int | None = OK
        in_forks = True
        for each in tests:
            left_s = limit_s - (time.monotonic() - started) if limit_s < LIMIT_S else limit_s
            tried, code = self._in_fork(module, after, each, left_s) if in_forks else (False, None)
            in_forks = tried
            if not tried:
                code = self._alone(module, after, each, left_s)
            if code not in (OK, NO_TESTS):
                break
        else:
            code = self._alone(module, after, list(alone)) if in_forks and alone else code
        killer = KILLER.search(self.output.read_text(errors="replace"))
        return Outcome(
            died=code not in (OK, NO_TESTS, None),
            killer=killer[1] if killer else "",
            seconds=time.monotonic() - started,
            finished=code is not None,
        )

    def failing_without(self, tests: Sequence[str]) -> set[str]:
        """Those of ``tests`` that fail although nothing is changed: they killed no mutant."""
        if not tests or self._pytest(list(tests)) == OK:
            return set()
        return set(KILLER.findall(self.output.read_text(errors="replace")))

    def _in_fork(self, module: str, after: str, tests: list[str], limit_s: float) -> tuple[bool, int | None]:
        """Whether the mutant could be tried there, and pytest's status; None: it was stopped."""
        warm = self._warm
        assert warm is not None
        assert warm.stdin is not None
        assert warm.stdout is not None
        self._fresh_database()
        request: Request = {
            "module": module,
            "after": after,
            "arguments": ["-x", *tests],
            "output": str(self.output),
            "limit_s": limit_s,
        }
        print(json.dumps(request), file=warm.stdin, flush=True)
        answer: Answer = json.loads(warm.stdout.readline())
        return answer["tried"], answer["code"]

    def _alone(self, module: str, after: str, tests: list[str], limit_s: float = LIMIT_S) -> int | None:
        with _written(self.copy / module, after):
            return self._pytest(["-x", *tests], limit_s=limit_s)

    def _pytest(self, arguments: list[str], *, fresh: bool = True, limit_s: float = LIMIT_S) -> int | None:
        if fresh:
            self._fresh_database()
        limited = f'ulimit -t {LIMIT_CPU_S}; exec "$@"'
        command = ["bash", "-c", limited, "pytest", sys.executable, "-m", "pytest", *OPTIONS, *arguments]
        with self.output.open("w") as output:
            child = subprocess.Popen(
                command,
                cwd=self.copy,
                env=self._environment(fresh),
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                return child.wait(limit_s)
            except subprocess.TimeoutExpired:
                return None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()

    def _environment(self, copied: bool = True) -> dict[str, str]:
        own = {"TEST_DATABASE_URL": self._url, "TMPDIR": str(self._temporary), "PYTHONPATH": ""}
        named = {DATABASE: _TRIED} if copied else {}
        taken = ("PYTEST_", "DJANGO_", "GATEWAY_", "DATABASE_URL", DATABASE)
        return {name: value for name, value in os.environ.items() if not name.startswith(taken)} | own | named

    def _copy_sources(self) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.root,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (self.root / name).is_file():
                (self.copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.root / name, self.copy / name)

    def _warm_up(self) -> None:
        self._warm = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.warm", *self._imports],
            cwd=self.copy,
            env=self._environment(),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._warm.stdout is not None
        if self._warm.stdout.readline() != '"ready"\n':
            raise RuntimeError("The project cannot be imported as it is.")

    def _make_template(self) -> None:
        if self._pytest(["--reuse-db", SMALL], fresh=False) != OK:
            raise RuntimeError(f"The tests do not pass as they are:\n{self.output.read_text(errors='replace')[-2000:]}")

    def _fresh_database(self) -> None:
        if not self._with_database:
            return
        main = urlsplit(self._url).path.lstrip("/")
        server = urlsplit(self._url)._replace(path="/postgres").geturl()
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{_TRIED}" WITH (FORCE)')  # type: ignore[arg-type]
            connection.execute(f'CREATE DATABASE "{_TRIED}" TEMPLATE "test_{main}"')  # type: ignore[arg-type]


@contextlib.contextmanager
def _written(target: Path, text: str) -> Iterator[None]:
    kept = target.with_suffix(".kept")
    shutil.copy2(target, kept)
    try:
        target.write_text(text)
        yield
    finally:
        shutil.move(kept, target)
