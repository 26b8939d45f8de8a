"""What runs, read from /proc: who is whose child, by which command, in which state. Linux only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process. ``state`` is the kernel's letter (T stopped, Z ended); ``started`` tells two of one pid apart."""

    pid: int
    parent: int
    state: str
    started: int
    command: str


def processes() -> dict[int, Process]:
    """Everything that runs now, by pid; what ended and only waits to be collected is left out."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        process = read(int(entry.name))
        if process is not None and process.state not in "ZX":
            found[process.pid] = process
    return found


def read(pid: int) -> Process | None:
    """One process, ended ones too; None when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return None
    return Process(pid=pid, parent=int(fields[1]), state=fields[0], started=int(fields[19]), command=command)


def children(pid: int) -> list[Process]:
    """The processes whose parent is ``pid``, oldest first."""
    return sorted((one for one in processes().values() if one.parent == pid), key=lambda one: (one.started, one.pid))


def descendants(pid: int) -> list[Process]:
    """Everything below ``pid``, itself left out."""
    running = processes()
    found: dict[int, Process] = {}
    layer = {pid}
    while layer:
        below = {one.pid for one in running.values() if one.parent in layer} - found.keys()
        found |= {one: running[one] for one in below}
        layer = below
    return list(found.values())


def is_alive(process: Process) -> bool:
    """Whether this very process still runs, not another one with its number."""
    now = read(process.pid)
    return now is not None and now.started == process.started and now.state not in "ZX"


def all_gone(family: Iterable[Process]) -> bool:
    return not any(is_alive(one) for one in family)


def eventually(holds: Callable[[], bool], within_s: float, every_s: float = 0.02) -> bool:
    """Poll until it holds; whether it ever did."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True
