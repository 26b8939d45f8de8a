"""A worker whose broker was away takes tasks again; one that takes none any more ends, to be started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from celery import current_app
from kombu import Connection

from config.launcher.broker import Broker
from config.worker import WorkerLiveness

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0


@pytest.fixture
def broker(var: Path) -> Iterator[Broker]:
    started = Broker(var)
    yield started
    started.stop()


@contextmanager
def worker(url: str, log: Path, pool: str = "prefork", **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    command = ["celery", "-A", "tests.support.worker_app", "worker", "--pool", pool, "--concurrency", "1"]
    env = {**os.environ, "CELERY_BROKER_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings", **environment}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", *command, "--without-mingle", "--without-gossip", "--loglevel", "INFO"],
            cwd=ROOT,
            env=env,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def eventually(what: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def send(url: str, name: str, *args: str) -> None:
    with Connection(url) as line:
        current_app.send_task(name, args=args, connection=line)


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_tasks_are_taken_again_when_the_broker_went_away_under_one_that_ran(
    broker: Broker, tmp_path: Path, pool: str
) -> None:
    """Its acknowledgement fails, and with it must go the slot that it took."""
    url, started, until, after = broker.start(), tmp_path / "started", tmp_path / "until", tmp_path / "after"
    with worker(url, tmp_path / "log", pool, GATEWAY_WORKER_STALLED_S="0"):
        send(url, "tests.hold", str(started), str(until))
        assert eventually(started.exists), (tmp_path / "log").read_text()
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGKILL)
        until.touch()
        assert eventually(lambda: "not_acknowledged" in (tmp_path / "log").read_text())
        broker.start()
        send(url, "tests.note", str(after))
        assert eventually(after.exists), (tmp_path / "log").read_text()


def test_a_worker_that_takes_no_more_tasks_ends(broker: Broker, tmp_path: Path) -> None:
    url, never = broker.start(), tmp_path / "never"
    with worker(url, tmp_path / "log", GATEWAY_WORKER_STALLED_S="3", TESTS_STOPS_TAKING="yes") as process:
        send(url, "tests.note", str(never))
        assert eventually(lambda: process.poll() is not None), (tmp_path / "log").read_text()
    assert "worker_stalled" in (tmp_path / "log").read_text()


def test_a_worker_with_threads_ends_when_a_task_runs_for_longer_than_it_may(broker: Broker, tmp_path: Path) -> None:
    """No thread can be ended alone; what was claimed is leased, and the supervisor starts the worker again."""
    url, started = broker.start(), tmp_path / "started"
    with worker(url, tmp_path / "log", "threads", GATEWAY_TIMER_LIMIT_S="3", GATEWAY_WORKER_STALLED_S="0") as process:
        send(url, "tests.hold", str(started), str(tmp_path / "never"))
        assert eventually(started.exists), (tmp_path / "log").read_text()
        assert eventually(lambda: process.poll() is not None), (tmp_path / "log").read_text()
    assert "task_over_time_limit" in (tmp_path / "log").read_text()


def test_who_is_busy_or_has_nothing_to_take_is_not_deaf() -> None:
    """Neither long tasks nor a quiet night end a worker."""
    hearing = WorkerLiveness(15, 0)
    assert not any(hearing.is_stalled(at, taken=3, waiting=9, is_free=False) for at in range(0, 900, 3))
    assert not any(hearing.is_stalled(at, taken=3, waiting=0, is_free=True) for at in range(900, 1800, 3))
    assert not any(hearing.is_stalled(at, taken=at, waiting=9, is_free=True) for at in range(1800, 2700, 3))


def test_one_look_at_which_it_was_busy_starts_the_patience_anew() -> None:
    hearing = WorkerLiveness(15, 0)
    told = [hearing.is_stalled(at, taken=0, waiting=1, is_free=at != 9) for at in (3, 6, 9, 12, 15, 18, 21, 24)]
    assert told == [False] * 7 + [True]
