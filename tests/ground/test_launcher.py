"""The launcher: one clear line for every fault, no child left behind. Source: the ground."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from config.launcher.build_number import compute_build_number
from config.launcher.errors import LaunchError
from config.launcher.programs import PythonProgram, WebServer
from config.launcher.supervise import MAX_QUICK_FAILURES, SupervisedService, restart_if_ended
from config.launcher.var_folder import acquire_file_lock
from tests.ground.conftest import ROOT, Launch, alive, descendants, eventually

PARENT = """
import sys, time
from pathlib import Path
from config.launcher.broker import Broker
from config.launcher.postgres import Postgres
from config.launcher.programs import PythonProgram
import os
var = Path(sys.argv[1])
postgres, broker = Postgres(var, durable=False), Broker(var)
postgres.start(), broker.start()
program = PythonProgram("web", ["tests.ground.forks"], var=var, environment=os.environ)
program.start()
print(postgres.pid, broker.pid, program.pid, flush=True)
time.sleep(600)
"""


def one_line(process: subprocess.Popen[str]) -> str:
    """What a launcher that gave up said: exactly one line, exit code 1, no traceback."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1, out + err
    lines = [line for line in err.splitlines() if line.strip()]
    assert len(lines) == 1, err
    return lines[0]


def test_a_busy_port_says_so_in_one_line_and_nothing_is_started(launch: Launch, var: Path) -> None:
    """A busy port says so in one clear line."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert f"127.0.0.1:{port} (Address already in use)" in one_line(launch(PORT=str(port)))
    assert not (var / "postgres").exists()


@pytest.mark.parametrize("port", ["no", "0", "70000", "-1", "٨٠٠٠"])
def test_a_port_that_is_none_says_so_in_one_line(launch: Launch, port: str) -> None:
    """PORT is honoured, and looked at."""
    assert "PORT must be a number from 1 to 65535" in one_line(launch(PORT=port))


def test_a_second_run_on_the_same_folder_says_so_in_one_line(launch: Launch, var: Path) -> None:
    """One run at a time on a var/."""
    lock = acquire_file_lock(var / "run.lock")
    assert lock is not None
    try:
        assert "already runs on" in one_line(launch())
    finally:
        os.close(lock)


def test_a_broken_database_url_says_so_in_one_line(launch: Launch) -> None:
    """A broken database says so in one clear line."""
    said = one_line(launch(DATABASE_URL="postgresql://user:topsecret@127.0.0.1:1/name"))
    assert "The database of DATABASE_URL does not answer" in said
    assert "topsecret" not in said


def test_kill_9_of_the_parent_leaves_no_child_and_no_grandchild(var: Path, environment: dict[str, str]) -> None:
    """PostgreSQL, which runs as another user under root, the broker, and what the web server forked."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(var)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        children = {int(pid) for pid in parent.stdout.readline().split()}
        assert len(children) == 3
        assert eventually(lambda: "forked" in (var / "log" / "web.log").read_text())
        family = descendants(parent.pid)
        assert children < family
        assert alive(family) == family
        parent.send_signal(signal.SIGKILL)
    assert eventually(lambda: not alive(family)), alive(family)


def test_kill_9_of_a_program_takes_what_it_forked_with_it(var: Path) -> None:
    """A killed web server leaves no worker that nobody watches."""
    program = PythonProgram("web", ["tests.ground.forks"], var=var, environment=os.environ)
    program.start()
    try:
        assert eventually(lambda: "forked" in (var / "log" / "web.log").read_text())
        assert program.pid is not None
        forked = descendants(program.pid)
        assert forked
        os.kill(program.pid, signal.SIGKILL)
        assert eventually(lambda: not alive(forked))
    finally:
        program.stop()


def test_a_child_that_ends_is_started_again_later_each_time_until_it_is_given_up(
    var: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Restart with back-off, said in one line each; several quick failures end the run."""
    program = PythonProgram("web", ["tests.ground.no_such_module"], var=var, environment=os.environ)
    watched = SupervisedService(name="The web server", service=program, started_at=0.0)
    clock = [0.0]
    pauses = []

    def fail_once_more() -> None:
        assert eventually(lambda: program.exit_code() is not None)
        restart_if_ended(watched, now=lambda: clock[0])
        assert watched.due_at is not None
        pauses.append(watched.due_at - clock[0])
        clock[0] = watched.due_at
        restart_if_ended(watched, now=lambda: clock[0])
        assert watched.due_at is None

    program.start()
    for _ in range(MAX_QUICK_FAILURES):
        fail_once_more()
    with pytest.raises(LaunchError, match="giving up") as fault:
        fail_once_more()
    assert len(pauses) == MAX_QUICK_FAILURES
    assert pauses == sorted(set(pauses))
    assert "no_such_module" in str(fault.value)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == MAX_QUICK_FAILURES
    assert all("The web server stopped (exit code 1); starting it again in" in line for line in said)


def test_a_child_that_ends_after_a_long_time_starts_a_new_count(var: Path) -> None:
    """Only failures soon after a start count together."""
    program = PythonProgram("web", ["tests.ground.no_such_module"], var=var, environment=os.environ)
    watched = SupervisedService(name="The web server", service=program, started_at=0.0, quick_failures=5)
    program.start()
    assert eventually(lambda: program.exit_code() is not None)
    restart_if_ended(watched, now=lambda: 3600.0)
    assert watched.quick_failures == 1


def test_the_build_number_is_forty_hex_digits_and_a_time() -> None:
    """`<40 hex>@yyyy-MM-dd HH:mm:ss +0000`."""
    form = r"[0-9a-f]{40}@[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} \+0000"
    assert re.fullmatch(form, compute_build_number(ROOT))


def test_without_a_repository_the_build_number_follows_the_sources(tmp_path: Path) -> None:
    """The same sources have the same number, a changed file another."""
    (tmp_path / "config").mkdir()
    source = tmp_path / "config" / "a.py"
    source.write_text("one")
    first = compute_build_number(tmp_path)
    assert compute_build_number(tmp_path) == first
    source.write_text("two")
    assert compute_build_number(tmp_path) != first


@pytest.mark.parametrize(
    ("host", "address", "url"),
    [
        ("127.0.0.1", "127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("0.0.0.0", "0.0.0.0:8000", "http://127.0.0.1:8000"),
        ("::1", "[::1]:8000", "http://[::1]:8000"),
        ("[::]", "[::]:8000", "http://[::1]:8000"),
    ],
)
def test_the_address_to_open_is_one_that_can_be_opened(
    monkeypatch: pytest.MonkeyPatch, host: str, address: str, url: str
) -> None:
    """HOST is honoured; a wildcard is no address to open."""
    monkeypatch.setenv("HOST", host)
    monkeypatch.delenv("PORT", raising=False)
    web = WebServer.from_environment()
    assert (web.address, web.url) == (address, url)
