"""What of disputes falls due (gateway.due)."""

from __future__ import annotations

from typing import Final

from chargebacks import cases, reminders
from gateway.due import Timer

TIMERS: Final = (
    Timer(name="dispute reminders", about="Mail 7, 3 and 1 days before a dispute's deadline.",
          run=reminders.send_due, next_at=reminders.next_reminder, every_s=5.0),
    Timer(name="dispute deadlines", about="End disputes that nobody answered in time as lost.",
          run=cases.expire_due, next_at=cases.next_deadline, every_s=5.0),
    Timer(name="dispute cases", about="Make cases of chargebacks that came by API.",
          run=cases.adopt_recent, next_at=cases.next_without_a_case, every_s=1.0),
    Timer(name="dispute cases, all", about="The same, of payments that were in doubt for days.",
          run=cases.adopt_all, every_s=3600.0),
)  # fmt: skip
