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

from chargebacks import packet_process
from chargebacks.models import Chargeback
from gateway.access import permissions
from gateway.background import queue
from gateway.background.files import AttemptFolder
from gateway.models import BackgroundWork

VIEW_CHARGEBACK_PERMISSION: Final = "chargebacks.view_chargeback"
PACKET_FILE_NAME: Final = "packet.pdf"
MAX_PACKET_MEMORY_BYTES: Final = 512 * 1024**2
"""Memory of a packet's process, in addition to what it uses when it begins."""
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
    own = folder.own(PACKET_FILE_NAME)
    if not _write_packet(case, folder.path / own):
        raise queue.WorkFailedError(PACKET_TOO_LARGE)
    scopes = [permissions.serialize_access_scope(permissions.find_access_scope(row.owner, VIEW_CHARGEBACK_PERMISSION))]
    return queue.SliceResult(done=1, total=1, cursor={"scopes": scopes}, finished=True, file=own)


def _write_packet(case: Chargeback, file: Path) -> bool:
    """Write the packet into ``file``; False when it takes too much. In a thread beside others it is made in a process
    of its own, since the limits hold for the whole process."""
    if threading.current_thread() is not threading.main_thread():
        return packet_process.build_packet_in_process(case.pk.hex, file)
    try:
        file.write_bytes(build_limited_packet(case))
    except (MemoryError, CpuTimeExceededError):
        return False
    return True


def build_limited_packet(case: Chargeback) -> bytes:
    """The packet, in a process with one thread. Raises MemoryError and CpuTimeExceededError."""
    from chargebacks import packet_pdf  # a hundred modules that nothing else needs

    with limit_resources(memory=MAX_PACKET_MEMORY_BYTES, cpu_s=MAX_PACKET_CPU_S):
        return packet_pdf.build_packet(case)


@contextmanager
def limit_resources(*, memory: int, cpu_s: float) -> Iterator[None]:
    """Limit additional memory in bytes and CPU seconds within the block, in a main thread: no other gets signals.
    Raises MemoryError and CpuTimeExceededError."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    own = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (own + memory, before[1]))
    signal.signal(signal.SIGPROF, _raise_cpu_time_exceeded)
    # Repeated: an exception raised inside a destructor is lost.
    signal.setitimer(signal.ITIMER_PROF, cpu_s, 1.0)
    try:
        yield
    finally:
        # A last signal may arrive while the timer is being stopped, so the memory limit is lifted first.
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.setitimer(signal.ITIMER_PROF, 0)


def _raise_cpu_time_exceeded(*_: object) -> None:
    raise CpuTimeExceededError


PACKET_JOB_KIND: Final = queue.WorkKind(
    name="dispute packet",
    about="the packet of a dispute as PDF",
    right=VIEW_CHARGEBACK_PERMISSION,
    step=build_packet_slice,
)
