"""`make run` as a whole, on a fresh folder. Source: the ground."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.ground.conftest import Launch, alive, descendants, eventually

pytestmark = [pytest.mark.xdist_group("whole-stack"), pytest.mark.timeout(900)]


def read_until(process: subprocess.Popen[str], mark: str) -> str:
    """The launcher's output up to the line that holds `mark`."""
    assert process.stdout is not None
    said = ""
    while mark not in said:
        line = process.stdout.readline()
        assert line, said + (process.stderr.read() if process.stderr else "")
        said += line
    return said


def status(url: str) -> int:
    with urllib.request.urlopen(url, timeout=300) as answer:
        return int(answer.status)


def test_everything_comes_up_survives_a_killed_server_and_goes_down_in_order(
    launch: Launch, var: Path, environment: dict[str, str]
) -> None:
    """One command: steps, addresses, a curl that works when pasted; SIGTERM (twice) ends all with code 0."""
    process = launch()
    said = read_until(process, "card.cvv")
    base = f"http://127.0.0.1:{environment['PORT']}"
    for step in ("PostgreSQL", "Broker", "Migrations", "Demo merchant", "Web server", "Celery worker, beat"):
        assert f"✓ {step}" in said
    demo = json.loads((var / "demo.json").read_text())
    assert (var / "demo.json").stat().st_mode & 0o777 == 0o600
    assert demo["base_url"] == base
    for fact in ("base_url", "entity_id", "access_token", "admin_user", "admin_password"):
        assert demo[fact] in said
    assert status(f"{base}/health/live") == 200
    assert status(f"{base}/health/ready") == 200

    pasted = said[said.index("curl ") :]
    answer = subprocess.run(["bash", "-c", pasted], capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout)["result"]["code"].startswith("000.")

    facts = json.loads((var / "run.json").read_text())
    assert facts["pid"] == process.pid
    server = int((var / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(server, signal.SIGKILL)
    assert "PostgreSQL stopped" in read_until(process, "starting it again")

    def pays_again() -> bool:
        again = subprocess.run(["bash", "-c", pasted], capture_output=True, text=True, check=False)
        return '"000.' in again.stdout

    assert eventually(pays_again)

    family = descendants(process.pid)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == 0
    assert eventually(lambda: not alive(family)), alive(family)
    assert not (var / "run.json").exists()


def test_kill_9_of_the_launcher_leaves_none_behind_and_the_next_start_works(launch: Launch) -> None:
    """PostgreSQL, broker, web server and its workers, Celery worker and its pool, beat."""
    process = launch()
    read_until(process, "card.cvv")
    assert eventually(lambda: len(descendants(process.pid)) >= 10)
    family = descendants(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert eventually(lambda: not alive(family)), alive(family)
    again = launch()
    assert "nothing to do" in read_until(again, "card.cvv")


def test_a_command_runs_in_the_environment_of_the_run_or_with_a_ground_of_its_own(launch: Launch, var: Path) -> None:
    """`make manage` and `make shell`."""
    show = ("exec", "--", "printenv", "DATABASE_URL")
    own = launch(*show)
    out, err = own.communicate(timeout=300)
    assert own.returncode == 0, err
    assert out.startswith("postgresql://")
    assert not (var / "run.json").exists()
    process = launch()
    read_until(process, "card.cvv")
    shared = launch(*show)
    assert shared.communicate(timeout=300)[0] == out
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == 0
