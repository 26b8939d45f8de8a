"""The product's Celery application with two tasks of the tests, for a worker in a process of its own."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from celery.signals import worker_ready

from config.celery import app


@app.task(name="tests.note")  # type: ignore[untyped-decorator]
def note(path: str) -> None:
    Path(path).touch()


@app.task(name="tests.hold")  # type: ignore[untyped-decorator]
def hold(started: str, until: str) -> None:
    """Say that it has begun, and go on until a file appears."""
    Path(started).touch()
    while not Path(until).exists():
        time.sleep(0.05)


def stop_taking(sender: Any, **_: Any) -> None:
    """Stop consuming, with the connection still open."""
    sender.task_consumer.cancel()


if os.environ.get("TESTS_STOPS_TAKING"):
    worker_ready.connect(stop_taking)
