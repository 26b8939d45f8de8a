"""Fixtures for tests of the launcher on real processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
OWN = ("DATABASE_URL", "CELERY_BROKER_URL", "DJANGO_", "GATEWAY_", "TOLLHOUSE_", "HOST", "PORT", "PYTEST_")


@pytest.fixture
def var() -> Iterator[Path]:
    """An empty `var/` that an unprivileged server can reach."""
    with a_var() as folder:
        yield folder


@contextmanager
def a_var() -> Iterator[Path]:
    """A folder as `var` gives it."""
    folder = Path(tempfile.mkdtemp(prefix="tollhouse-ground-"))
    folder.chmod(0o711)
    yield folder
    data = folder / "postgres"
    if data.is_symlink():
        shutil.rmtree(data.resolve(), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def environment(var: Path) -> dict[str, str]:
    """The environment of someone who just typed `make run`, on a `var/` and a port of the test's own."""
    return an_environment(var)


def an_environment(var: Path) -> dict[str, str]:
    """An environment as `environment` gives it."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    return {**bare, "TOLLHOUSE_VAR": str(var), "PORT": str(free_port())}


Launch = Callable[..., "subprocess.Popen[str]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A product that runs, as `make run` starts it."""

    process: subprocess.Popen[str]
    said: str
    """What it printed, to the end of the first payment."""
    var: Path
    environment: dict[str, str]

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.environment['PORT']}"


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """One product for all tests that only ask it; their group is "whole-stack"."""
    with a_var() as var:
        environment = an_environment(var)
        with launching(environment) as start:
            process = start()
            said = read_until(process, "card.cvv")
            yield Stack(process=process, said=said, var=var, environment=environment)
            process.terminate()
            process.wait(timeout=300)


@pytest.fixture
def launch(environment: dict[str, str]) -> Iterator[Launch]:
    """Start `python -m config.launcher`; whatever still runs at the end is killed."""
    with launching(environment) as start:
        yield start


def read_until(process: subprocess.Popen[str], mark: str) -> str:
    """The launcher's output up to the line that holds `mark`."""
    assert process.stdout is not None
    said = ""
    while mark not in said:
        line = process.stdout.readline()
        assert line, said + (process.stderr.read() if process.stderr else "")
        said += line
    return said


@contextmanager
def launching(environment: dict[str, str]) -> Iterator[Launch]:
    """A launch as `launch` gives it."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **extra: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "config.launcher", *arguments],
            cwd=ROOT,
            env={**environment, **extra},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def descendants(pid: int) -> set[int]:
    """All processes below `pid`, itself left out."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(") ")[2].split()[1])
        except OSError:
            continue
    found: set[int] = set()
    layer = {pid}
    while layer:
        layer = {child for child, parent in parents.items() if parent in layer} - found
        found |= layer
    return found


def alive(pids: set[int]) -> set[int]:
    """Those that still run; one that only waits to be collected does not."""
    running = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            running.add(pid)
    return running


def eventually(holds: Callable[[], bool], within_s: float = 60.0) -> bool:
    """Poll until it holds; whether it ever did."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
