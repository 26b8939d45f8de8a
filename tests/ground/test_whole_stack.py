"""`make run` as a whole, on a fresh folder. Source: the ground."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.ground.conftest import Launch, Stack, alive, descendants, eventually, read_until

pytestmark = [pytest.mark.xdist_group("whole-stack"), pytest.mark.timeout(900)]


def status(url: str) -> int:
    with urllib.request.urlopen(url, timeout=300) as answer:
        return int(answer.status)


def pasted(said: str) -> str:
    """The commands of the first payment."""
    return said[said.index("\n. ") :]


def test_everything_comes_up_and_the_payment_that_is_printed_works_when_pasted(stack: Stack) -> None:
    """One command: steps, addresses, a curl."""
    for step in ("PostgreSQL", "Broker", "Migrations", "Demo merchant", "Web server", "Celery worker, beat"):
        assert f"✓ {step}" in stack.said
    demo = json.loads((stack.var / "demo.json").read_text())
    assert (stack.var / "demo.json").stat().st_mode & 0o777 == 0o600
    assert demo["base_url"] == stack.base
    for fact in ("base_url", "entity_id", "access_token", "admin_user", "admin_password"):
        assert demo[fact] in stack.said
    assert status(f"{stack.base}/health/live") == 200
    assert status(f"{stack.base}/health/ready") == 200
    answer = subprocess.run(["bash", "-c", pasted(stack.said)], capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout)["result"]["code"].startswith("000.")
    assert json.loads((stack.var / "run.json").read_text())["pid"] == stack.process.pid


def test_it_survives_a_killed_server_and_goes_down_in_order(launch: Launch, var: Path) -> None:
    """Payments go on by themselves; SIGTERM (twice) ends all with code 0."""
    process = launch()
    said = read_until(process, "card.cvv")
    server = int((var / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(server, signal.SIGKILL)
    assert "PostgreSQL stopped" in read_until(process, "starting it again")

    def pays_again() -> bool:
        again = subprocess.run(["bash", "-c", pasted(said)], capture_output=True, text=True, check=False)
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


SHOW = ("exec", "--", "printenv", "DATABASE_URL")


def test_a_command_runs_in_the_environment_of_the_run(launch: Launch, stack: Stack) -> None:
    """`make manage` and `make shell` while `make run` is up."""
    shared = launch(*SHOW, TOLLHOUSE_VAR=str(stack.var))
    facts = json.loads((stack.var / "run.json").read_text())
    assert shared.communicate(timeout=300)[0].strip() == facts["environment"]["DATABASE_URL"]


def test_a_command_without_a_run_has_a_ground_of_its_own(launch: Launch, var: Path) -> None:
    """`make manage` and `make shell` alone."""
    own = launch(*SHOW)
    out, err = own.communicate(timeout=300)
    assert own.returncode == 0, err
    assert out.startswith("postgresql://")
    assert not (var / "run.json").exists()


def test_a_command_waits_for_a_run_that_is_starting(launch: Launch, var: Path) -> None:
    """However long its database takes: the run's own process is looked at, not a clock."""
    run = launch()
    assert eventually(lambda: (var / "run.lock").exists() and (var / "run.lock").read_text() == str(run.pid))
    out, err = launch(*SHOW).communicate(timeout=300)
    assert out.startswith("postgresql://"), err
    assert json.loads((var / "run.json").read_text())["environment"]["DATABASE_URL"] == out.strip()
