"""Waiting for a part: as long as something goes forward, and not longer. The clock is the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from config.launcher.errors import LaunchError, find_fault_line
from config.launcher.process import OutputLines, measure_process_work
from config.launcher.start_wait import MAX_STANDSTILL_S, REPORT_INTERVAL_S, StartWait
from tests.ground.conftest import eventually

HOUR_S = 3600.0


class FakePart:
    """A part whose time is the test's: it is ready, ends, or works, when the test says so."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.log_start = 0
        self.now = 0.0
        self.code: int | None = None
        self.said: list[str] = []
        self.works: Callable[[float], float | None] = lambda now: 0.0

    def exit_code(self) -> int | None:
        return self.code

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def waiting(self) -> StartWait:
        return StartWait(
            "Web server",
            {"The web server": self},
            lambda: self.works(self.now),
            now=lambda: self.now,
            sleep=self.pause,
            report=lambda step, since_s, what: self.said.append(f"{step} {since_s:.0f} {what}".strip()),
        )


@pytest.fixture
def part(tmp_path: Path) -> FakePart:
    return FakePart(tmp_path / "web.log")


def test_a_part_that_goes_forward_slowly_is_waited_for_however_long_it_takes(part: FakePart) -> None:
    """A slow machine, a cold disk: one unit of work in a hundred seconds is enough."""
    part.works = lambda now: now // 100
    part.waiting().until(lambda: part.now >= HOUR_S, poll_s=1)
    assert part.now >= HOUR_S


def test_the_name_of_what_is_done_now_is_a_move_too(part: FakePart) -> None:
    """Migrations: each is named as it begins, whatever its work can be seen to be."""
    part.waiting().until(lambda: part.now >= HOUR_S, lambda: f"migration {part.now // 100:.0f}", poll_s=1)
    assert "Web server 1000 migration 10" in part.said


def test_every_ten_seconds_a_line_says_what_is_waited_for_and_since_when(part: FakePart) -> None:
    """And for how long nothing has moved, once it is that long."""
    part.works = lambda now: min(now, 20)
    part.waiting().until(lambda: part.now >= 45, lambda: "no answer so far", poll_s=1)
    still = f"of at most {MAX_STANDSTILL_S:.0f}"
    assert part.said == [
        "Web server 10 no answer so far",
        "Web server 20 no answer so far",
        f"Web server 30 no answer so far; nothing moved for 10 s {still}",
        f"Web server 40 no answer so far; nothing moved for 20 s {still}",
    ]
    assert REPORT_INTERVAL_S == 10


def test_a_part_that_hangs_ends_the_wait_after_two_minutes_and_its_log_tells_why(part: FakePart) -> None:
    """What an idle server does is no move: a little work in all that time."""
    part.log.write_text("[12:00] [INFO] Booting\n[12:00] [ERROR] the first fault\n[12:01] [ERROR] what came of it\n")
    part.works = lambda now: 300 + now / 1000
    with pytest.raises(LaunchError) as fault:
        part.waiting().until(lambda: False, lambda: "no answer so far", poll_s=1)
    assert MAX_STANDSTILL_S == 120
    assert part.now == pytest.approx(MAX_STANDSTILL_S, abs=2)
    assert str(fault.value) == (
        "Web server: nothing moved for 120 s, 120 s after its start (no answer so far): "
        f"[ERROR] the first fault (more in {part.log})"
    )


def test_the_two_minutes_begin_anew_with_every_move(part: FakePart) -> None:
    """It moved for 1,000 seconds, and then never again."""
    part.works = lambda now: min(now, 1000) // 100
    with pytest.raises(LaunchError, match=r"nothing moved for 120 s, 112\d s after its start"):
        part.waiting().until(lambda: False, poll_s=1)


def test_a_part_that_ended_ends_the_wait_at_once_with_the_line_of_this_start(part: FakePart) -> None:
    """The log of an earlier start counts for nothing."""
    earlier = "[ERROR] of yesterday\n"
    part.log.write_text(earlier + "starting\n[ERROR] no such setting\n")
    part.log_start = len(earlier)

    def ends() -> bool:
        part.code = 3 if part.now >= 5 else None
        return False

    with pytest.raises(LaunchError, match=r"The web server did not start, exit code 3: \[ERROR\] no such setting"):
        part.waiting().until(ends, poll_s=1)
    assert part.now == 5


def test_work_that_cannot_be_seen_is_waited_for_without_an_end(part: FakePart) -> None:
    """A database of another machine may build an index for an hour; every ten seconds a line says so."""
    part.works = lambda now: None
    part.waiting().until(lambda: part.now >= HOUR_S, poll_s=1)
    assert len(part.said) == pytest.approx(HOUR_S / REPORT_INTERVAL_S, abs=2)
    assert not any("nothing moved" in line for line in part.said)


BUSY = "import os, subprocess, sys\nprint('up', flush=True)\nwhile True: sum(range(10_000))"
PARENT = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])"
IDLE = "import time\nprint('up', flush=True)\ntime.sleep(600)"


@pytest.mark.parametrize("source", [BUSY, PARENT])
def test_the_work_of_a_process_and_of_all_below_it_grows_as_they_compute(source: str) -> None:
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, start_new_session=True) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            before = measure_process_work(child.pid)
            assert before is not None
            assert eventually(lambda: (measure_process_work(child.pid) or 0) >= before + 1)
        finally:
            os.killpg(child.pid, 9)


def test_the_work_of_a_process_that_sleeps_stays_as_it_is() -> None:
    with subprocess.Popen([sys.executable, "-c", IDLE], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            readings = [measure_process_work(child.pid) for _ in range(5)]
            known = [reading for reading in readings if reading is not None]
            assert len(known) == len(readings)
            assert max(known) - min(known) < 0.1
        finally:
            child.kill()


def test_lines_are_read_whole_and_without_waiting_for_the_next() -> None:
    """A step that is half written is not shown; what was written last is not lost."""
    source = "import sys; print('one\\ntw', end='', flush=True); sys.stdin.readline(); print('o\\nthree')"
    with subprocess.Popen([sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        lines = OutputLines(os.dup(child.stdout.fileno()))
        seen: list[str] = []

        def has_read() -> bool:
            seen.extend(lines.read())
            return bool(seen)

        assert eventually(has_read)
        assert seen == ["one"]
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.close()
        assert eventually(lambda: has_read() and lines.ended)
        assert seen == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", "it said nothing"),
        ("starting\nstill starting", "still starting"),
        ("12:00 [7] LOG:  x\n12:00 [7] FATAL:  one\n12:00 [7] FATAL:  two", "FATAL:  one"),
        ("12:00 ERROR:  first\n12:00 PANIC:  could not write", "PANIC:  could not write"),
        ("cp: error: ENOSPC\nwrite: No space left on device", "write: No space left on device"),
        (
            "[ERROR] Exception in worker process\nTraceback (most recent call last):\n  File x\nKeyError: 'A'\n\n"
            "During handling of the above exception, another exception occurred:\n\n"
            "Traceback (most recent call last):\n  File y\nImproperlyConfigured: Set A\n"
            "[INFO] Worker exiting\n[ERROR] Reason: Worker failed to boot.\n"
            "Traceback (most recent call last):\n  File z\nHaltServer: 3",
            "ImproperlyConfigured: Set A",
        ),
        ("Traceback (most recent call last):\n  File x", "File x"),
    ],
)
def test_the_line_that_is_told_is_the_first_that_names_the_fault(said: str, told: str) -> None:
    assert find_fault_line([line for line in said.splitlines() if line.strip()]) == told
