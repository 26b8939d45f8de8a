"""What of settlement falls due (gateway.due)."""

from __future__ import annotations

from typing import Final

from gateway.due import Timer
from reporting import folders, intake

TIMERS: Final = (
    Timer(name="settlement folder", about="files that lie in the watched folder are taken in", run=folders.look,
          every_s=10.0),
    Timer(name="settlement files", about="files that wait are read, matched and booked", run=intake.run_due,
          every_s=2.0),
)  # fmt: skip
