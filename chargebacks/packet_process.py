"""`python -m chargebacks.packet_process CASE FILE`: build the packet of one dispute in a process of its own.

Limits of memory and CPU time hold for a whole process, and only a main thread gets the signal of the second, so a
worker with threads has packets built here. What opens uploaded files is loaded in this process alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

TOO_LARGE_EXIT_CODE: Final = 3
MAX_PACKET_WAIT_S: Final = 55.0
"""Below the lease of a slice, 60 s."""


class PacketProcessError(Exception):
    """The process ended without a packet; its log says why."""


def build_packet_in_process(case: str, file: Path) -> bool:
    """Build the packet of the dispute ``case`` into ``file``; False when it takes too much. Raises
    PacketProcessError."""
    command = [sys.executable, "-m", "chargebacks.packet_process", case, str(file)]
    try:
        code = subprocess.run(command, check=False, timeout=MAX_PACKET_WAIT_S).returncode  # noqa: S603
    except subprocess.TimeoutExpired:
        return False
    if code not in (0, TOO_LARGE_EXIT_CODE):
        raise PacketProcessError(f"exit code {code}")
    return code == 0


def main(case: str, file: str) -> int:
    """Exit code 0, or TOO_LARGE_EXIT_CODE."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from chargebacks import packet_job
    from chargebacks.models import Chargeback

    row = Chargeback.objects.select_related("merchant", "channel").get(pk=case)
    try:
        made = packet_job.build_limited_packet(row)
    except (MemoryError, packet_job.CpuTimeExceededError):
        return TOO_LARGE_EXIT_CODE
    Path(file).write_bytes(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
