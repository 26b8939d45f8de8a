"""What of settlement falls due (gateway.due)."""

from __future__ import annotations

from typing import Final

from gateway.due import Timer
from reporting import booking, days, deliveries, entered, fetching, folders, intake, owed

TIMERS: Final = (
    Timer(name="settlement folder", about="Take in files that lie in the watched folder.", run=folders.look,
          every_s=10.0),
    Timer(name="settlement sources", about="Fetch files from institutes' SFTP servers.", run=fetching.run,
          every_s=5.0),
    Timer(name="settlement files", about="Read, match and book files that wait.", run=intake.run_due,
          every_s=2.0),
    Timer(name="settlement lines", about="Enter chargebacks and reversals that could not be entered when they came.",
          run=booking.try_again, every_s=30.0),
    Timer(name="chargebacks entered", about="Write what no file has told of into the books.", run=entered.run,
          next_at=entered.next_at, every_s=2.0),
    Timer(name="chargebacks entered, all", about="The same, of institutes that came later.", run=entered.run_all,
          every_s=3600.0),
    Timer(name="settlement missing", about="Count payments that no line settled in time, and mail it once a day.",
          run=owed.run, every_s=3600.0),
    Timer(name="reconciliation files", about="Write each merchant's file of the day that is over.", run=days.run,
          next_at=days.next_at, every_s=60.0),
    Timer(name="reconciliation deliveries", about="Send written files by SFTP, again where it failed.",
          run=deliveries.run, next_at=deliveries.next_at, every_s=10.0),
)  # fmt: skip
