"""Builds dispute packets as background work, with limits on memory and CPU.

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

from chargebacks import packet_pdf
from chargebacks.models import Chargeback
from gateway.access import permissions
from gateway.background import queue
from gateway.background.files import AttemptFolder
from gateway.models import BackgroundWork

VIEW_CHARGEBACK_PERMISSION: Final = "chargebacks.view_chargeback"
PACKET_FILE_NAME: Final = "packet.pdf"
MAX_PACKET_MEMORY_BYTES: Final = 512 * 1024**2
"""In addition to what the worker uses when it begins."""
MAX_PACKET_CPU_S: Final = 40.0
"""Below the lease of a slice, 60 s."""
PACKET_TOO_LARGE: Final = "The files of evidence take too much to be put together: make the largest one smaller."


class CpuTimeExceededError(BaseException):
    """The CPU limit is reached. Not an Exception: the code that opens uploaded files treats every Exception as a fault
    of the file."""


def build_packet_slice(row: BackgroundWork, folder: AttemptFolder, _alive: Callable[[], None]) -> queue.SliceResult:
    """The whole packet in one slice."""
    case = Chargeback.objects.select_related("merchant", "channel").filter(pk=row.parameters["case"]).first()
    if case is None or not permissions.has_permission(row.owner, VIEW_CHARGEBACK_PERMISSION, case):
        raise queue.WorkFailedError("You do not see this dispute any more.")
    try:
        with limit_resources(memory=MAX_PACKET_MEMORY_BYTES, cpu_s=MAX_PACKET_CPU_S):
            made = packet_pdf.build_packet(case)
    except (MemoryError, CpuTimeExceededError):
        raise queue.WorkFailedError(PACKET_TOO_LARGE) from None
    own = folder.own(PACKET_FILE_NAME)
    (folder.path / own).write_bytes(made)
    scopes = [permissions.serialize_access_scope(permissions.find_access_scope(row.owner, VIEW_CHARGEBACK_PERMISSION))]
    return queue.SliceResult(done=1, total=1, cursor={"scopes": scopes}, finished=True, file=own)


@contextmanager
def limit_resources(*, memory: int, cpu_s: float) -> Iterator[None]:
    """Limit additional memory in bytes and CPU seconds within the block. Raises MemoryError and CpuTimeExceededError.
    Only a main thread gets signals: elsewhere the CPU is not limited."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    own = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    timed = threading.current_thread() is threading.main_thread()
    resource.setrlimit(resource.RLIMIT_AS, (own + memory, before[1]))
    if timed:
        signal.signal(signal.SIGPROF, _raise_cpu_time_exceeded)
        # Repeated: an exception raised inside a destructor is lost.
        signal.setitimer(signal.ITIMER_PROF, cpu_s, 1.0)
    try:
        yield
    finally:
        # A last signal may arrive while the timer is being stopped, so the memory limit is lifted first.
        resource.setrlimit(resource.RLIMIT_AS, before)
        if timed:
            signal.setitimer(signal.ITIMER_PROF, 0)


def _raise_cpu_time_exceeded(*_: object) -> None:
    raise CpuTimeExceededError


PACKET_JOB_KIND: Final = queue.register_work_kind(
    queue.WorkKind(
        name="dispute packet",
        about="the packet of a dispute as PDF",
        right=VIEW_CHARGEBACK_PERMISSION,
        step=build_packet_slice,
    )
)
