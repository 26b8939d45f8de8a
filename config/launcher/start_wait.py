"""Waiting for a service to come up: as long as there is progress, however slow the machine is.

There is no deadline. Every ten seconds a line says what is waited for, and since when. The wait ends with an error
only when a process ended, or when there was no progress for two minutes; the error names the log line with the cause.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from config.launcher.errors import LaunchError, find_failure_reason
from config.launcher.terminal import print_step_waiting

REPORT_INTERVAL_S: Final = 10.0
MAX_STANDSTILL_S: Final = 120.0
PROGRESS_SAMPLE_INTERVAL_S: Final = 1.0
START_POLL_S: Final = 0.02
MIN_PROGRESS: Final = 1.0
"""In the unit of `config.launcher.process.measure_process_work`. An idle server does less than this in two minutes."""


class AwaitedProcess(Protocol):
    """A process that is waited for: PostgreSQL, the broker, a program."""

    log: Path
    log_start: int
    """The byte of the log at which this start began."""

    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""


class StartWait:
    """The wait for one step of the start.

    `parts`: processes that must keep running meanwhile, by display name. `work`: a figure that grows with the work done
    for this step; None: it cannot be measured, and then no standstill is detected. `slow`: the process whose log
    explains a standstill; the first part if not given.
    """

    def __init__(
        self,
        step: str,
        parts: Mapping[str, AwaitedProcess],
        work: Callable[[], float | None],
        *,
        slow: AwaitedProcess | None = None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        report: Callable[[str, float, str], None] = print_step_waiting,
    ) -> None:
        self.step = step
        self._parts = parts
        self._work = work
        self._slow = slow or next(iter(parts.values()), None)
        self._now, self._sleep, self._report = now, sleep, report
        self.started_at = self._moved_at = self._reported_at = now()
        self._measured_at = float("-inf")
        self._work_then: float | None = 0.0
        self._doing = ""

    def until(self, ready: Callable[[], bool], doing: Callable[[], str] = str, poll_s: float = START_POLL_S) -> None:
        """Poll until `ready()`. `doing`: the current activity, for display. Raises LaunchError."""
        while not ready():
            self.look(doing())
            self._sleep(poll_s)

    def look(self, doing: str = "") -> None:
        """Check once per poll. Raises LaunchError when a part ended or there was no progress for MAX_STANDSTILL_S."""
        for name, part in self._parts.items():
            if (code := part.exit_code()) is not None:
                raise LaunchError(
                    f"{name} did not start, {describe_exit_code(code)}: {find_failure_reason(part.log, part.log_start)}"
                )
        now = self._now()
        if self._has_moved(now, doing):
            self._moved_at = now
        still_s = now - self._moved_at
        if still_s >= MAX_STANDSTILL_S:
            raise LaunchError(self._standstill(still_s, now - self.started_at))
        if now - self._reported_at >= REPORT_INTERVAL_S:
            self._reported_at = now
            still = f"nothing moved for {still_s:.0f} s of at most {MAX_STANDSTILL_S:.0f}"
            facts = [doing, still if still_s >= REPORT_INTERVAL_S else ""]
            self._report(self.step, now - self.started_at, "; ".join(fact for fact in facts if fact))

    def _has_moved(self, now: float, doing: str) -> bool:
        moved = doing != self._doing
        self._doing = doing
        if now - self._measured_at >= PROGRESS_SAMPLE_INTERVAL_S:
            self._measured_at = now
            work = self._work()
            # It shrinks when a child process ends and takes its figures along: that is progress, too.
            if work is None or self._work_then is None or abs(work - self._work_then) >= MIN_PROGRESS:
                self._work_then = work
                moved = True
        return moved

    def _standstill(self, still_s: float, waited_s: float) -> str:
        text = f"{self.step}: nothing moved for {still_s:.0f} s, {waited_s:.0f} s after its start"
        if self._doing:
            text += f" ({self._doing})"
        return text if self._slow is None else f"{text}: {find_failure_reason(self._slow.log, self._slow.log_start)}"


def describe_exit_code(code: int) -> str:
    """An exit code in words."""
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
