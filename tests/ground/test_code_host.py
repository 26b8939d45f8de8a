"""The code is loaded once: programs are forked from it, as the launcher's own children, and load nothing heavy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.launcher.code_host import AdoptedProcess, CodeHost, collect_orphans
from config.launcher.preloaded import PRELOADED_MODULES
from config.launcher.programs import PythonProgram
from tests.ground.conftest import ROOT, alive, descendants, eventually

pytestmark = [pytest.mark.xdist_group("code-host"), pytest.mark.timeout(600)]

RARELY_USED = {
    "paramiko", "fpdf", "fontTools", "pypdf", "zxcvbn", "invoke", "unittest.mock",
    "matplotlib", "numpy", "pandas", "prompt_toolkit", "PIL", "qrcode",
}  # fmt: skip
"""Loaded where they are used: SFTP, packets of disputes, the estimator of passwords, pictures; Celery's shell never."""
OWN_PACKAGES = {"config", "gateway", "checkout", "reporting", "scheduling", "chargebacks"}
OPTIONAL = {"opentelemetry"}
"""Loaded by redis where it is installed, as it is for tests."""
MAX_FOREIGN_MODULES = 2_150
SHOW_MODULES = """
import gc, json, sys
from config.launcher.preloaded import _load_code
_load_code()
counts = {"frozen": gc.get_freeze_count(), "left": len(gc.get_objects())}
from celery.bin.base import LEXER
print(json.dumps({"modules": sorted(sys.modules), "colours": LEXER, **counts}))
"""


@pytest.fixture
def environment() -> dict[str, str]:
    """Settings of no database: nothing is connected to while the code is loaded."""
    own = {"DATABASE_URL": "postgresql://none@127.0.0.1:1/none", "CELERY_BROKER_URL": "redis://127.0.0.1:1/0"}
    return {**os.environ, **own, "CELERY_SKIP_CHECKS": "1", "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def host(var: Path, environment: dict[str, str]) -> Iterator[CodeHost]:
    made = CodeHost(var)
    made.launch(environment)
    yield made
    made.stop()


def loaded(host: CodeHost) -> CodeHost:
    assert eventually(host.is_loaded)
    assert host.exit_code() is None, host.log.read_text()
    return host


def test_what_is_loaded_is_bounded_frozen_and_without_what_is_rarely_used(environment: dict[str, str]) -> None:
    """Memory of every program, counted in modules of others: what a new import costs is seen here."""
    asked = subprocess.run(
        [sys.executable, "-c", SHOW_MODULES], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    found = json.loads(asked.stdout.splitlines()[-1])
    assert found["colours"] is None
    modules = set(found["modules"])
    assert modules >= {*PRELOADED_MODULES, "gateway.payments.process", "config.urls"}
    assert modules & RARELY_USED == set()
    assert len([name for name in modules if name.split(".")[0] not in OWN_PACKAGES | OPTIONAL]) <= MAX_FOREIGN_MODULES
    assert found["frozen"] > 100_000
    assert found["left"] < 5_000


def test_a_forked_program_is_our_child_and_shows_its_own_command(host: CodeHost, var: Path) -> None:
    """It is supervised like any other, and outlives the host."""
    program = PythonProgram("web", ["tests.ground.forks"], var=var, environment=host.environment, host=loaded(host))
    program.start()
    try:
        assert eventually(lambda: "forked" in (var / "log" / "web.log").read_text())
        assert program.pid is not None
        status = Path(f"/proc/{program.pid}/status").read_text()
        assert f"PPid:\t{os.getpid()}\n" in status
        assert "tests.ground.forks" in Path(f"/proc/{program.pid}/cmdline").read_text()
        assert isinstance(program._child, AdoptedProcess)
        host.stop()
        assert program.exit_code() is None
        forked = descendants(program.pid)
        assert forked
        os.kill(program.pid, signal.SIGKILL)
        assert eventually(lambda: program.exit_code() == -signal.SIGKILL)
        assert eventually(lambda: not alive(forked))
    finally:
        program.stop()


def test_the_output_of_a_forked_program_is_read_and_its_exit_code_known(host: CodeHost, var: Path) -> None:
    program = PythonProgram(
        "it", ["json.tool", "--help"], var=var, environment=host.environment, host=loaded(host), piped=True
    )
    program.start()
    seen: list[str] = []

    def has_ended() -> bool:
        assert program.lines is not None
        seen.extend(program.lines.read())
        return program.lines.ended

    assert eventually(has_ended)
    assert eventually(lambda: program.exit_code() is not None)
    assert program.exit_code() == 0
    assert any("usage" in line for line in seen)
    assert isinstance(program._child, AdoptedProcess)


def test_without_a_host_or_with_other_variables_a_program_is_started_on_its_own(host: CodeHost, var: Path) -> None:
    """A host that died costs memory and nothing else."""
    other = {**host.environment, "GATEWAY_NODE": "node02"}
    program = PythonProgram("web", ["tests.ground.forks"], var=var, environment=other, host=loaded(host))
    program.start()
    assert isinstance(program._child, subprocess.Popen)
    program.stop()
    assert host.pid is not None
    os.kill(host.pid, signal.SIGKILL)
    assert eventually(lambda: host.exit_code() is not None)
    program = PythonProgram("web", ["tests.ground.forks"], var=var, environment=host.environment, host=host)
    program.start()
    assert isinstance(program._child, subprocess.Popen)
    program.stop()


def test_orphans_are_collected_and_our_own_children_left(host: CodeHost, var: Path) -> None:
    """What a killed program had forked becomes ours when it ends."""
    program = PythonProgram("web", ["tests.ground.forks"], var=var, environment=host.environment, host=loaded(host))
    program.start()
    assert eventually(lambda: "forked" in (var / "log" / "web.log").read_text())
    assert program.pid is not None
    forked = descendants(program.pid)
    os.kill(program.pid, signal.SIGKILL)
    assert eventually(lambda: program.exit_code() is not None)

    def is_collected() -> bool:
        collect_orphans({host.pid} if host.pid is not None else set())
        return not any(Path(f"/proc/{pid}").exists() for pid in forked)

    assert eventually(is_collected)
