"""Packets of disputes as background work, with a bound on memory and CPU.

A PDF of a few hundred KB may unpack to gigabytes. Source: docs/decisions/0050, docs/background-work.md.
"""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from chargebacks import packet
from chargebacks.models import Chargeback
from gateway import rights, work
from gateway.models import BackgroundWork
from gateway.work_files import Folder

RIGHT: Final = "chargebacks.view_chargeback"
NAME: Final = "packet.pdf"
MAX_MEMORY_BYTES: Final = 512 * 1024**2
"""Above what the worker has when it begins."""
MAX_CPU_S: Final = 40.0
"""Below the lease of a slice, 60 s."""
TOO_MUCH: Final = "The files of evidence take too much to be put together: make the largest one smaller."


class TooLongError(BaseException):
    """The CPU's time is over. No Exception: what opens somebody's file takes each of those for a fault of the file."""


def step(row: BackgroundWork, folder: Folder, alive: Callable[[], None]) -> work.Slice:
    """The whole packet in one slice."""
    case = Chargeback.objects.select_related("merchant", "channel").filter(pk=row.parameters["case"]).first()
    if case is None or not rights.allowed(row.owner, RIGHT, case):
        raise work.GivenUp("You do not see this dispute any more.")
    try:
        with bounded(memory=MAX_MEMORY_BYTES, cpu_s=MAX_CPU_S):
            made = packet.of(case)
    except (MemoryError, TooLongError):
        raise work.GivenUp(TOO_MUCH) from None
    own = folder.own(NAME)
    (folder.path / own).write_bytes(made)
    scopes = [rights.told(rights.scope(row.owner, RIGHT))]
    return work.Slice(done=1, total=1, cursor={"scopes": scopes}, finished=True, file=own)


@contextmanager
def bounded(*, memory: int, cpu_s: float) -> Iterator[None]:
    """Run with so many bytes more than now, and so much CPU. Raises MemoryError and TooLongError. Only a main thread
    gets signals: elsewhere the CPU has no bound."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    own = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    timed = threading.current_thread() is threading.main_thread()
    resource.setrlimit(resource.RLIMIT_AS, (own + memory, before[1]))
    if timed:
        signal.signal(signal.SIGPROF, _over)
        # Again and again: one that falls into a destructor is lost.
        signal.setitimer(signal.ITIMER_PROF, cpu_s, 1.0)
    try:
        yield
    finally:
        # A last signal may come while the timer is stopped: the memory's bound goes first.
        resource.setrlimit(resource.RLIMIT_AS, before)
        if timed:
            signal.setitimer(signal.ITIMER_PROF, 0)


def _over(*_: object) -> None:
    raise TooLongError


KIND: Final = work.add(work.Kind(name="dispute packet", about="the packet of a dispute as PDF", right=RIGHT, step=step))
