"""The checkouts' timers."""

from __future__ import annotations

from typing import Final

from checkout import calls, page_snapshots, policy_reports
from checkout.due import SECRETS
from gateway.due import Timer

TIMERS: Final = (
    Timer(name="result calls", run=calls.run, next_at=calls.next_at,
          about="Call the shopperResultUrl of merchants who have not fetched a result after 29 minutes."),
    SECRETS,
    Timer(name="payment page", run=page_snapshots.run, every_s=300.0,
          about="Keep what the payment page loads and sends whenever it has changed."),
    Timer(name="policy reports", run=policy_reports.forget, every_s=60.0,
          about="Forget violations that browsers reported last 90 days ago, and those that are too many."),
)  # fmt: skip
