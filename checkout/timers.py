"""The timers of checkouts (gateway.timers.registry)."""

from __future__ import annotations

from typing import Final

from checkout import csp_reports, page_snapshots, receipts, result_calls
from checkout.expiry import CHECKOUT_EXPIRY_TIMER
from gateway.timers.registry import MerchantTimer, Timer

TIMERS: Final = (
    MerchantTimer(name="result calls", run=result_calls.make_due_result_calls, next_at=result_calls.next_result_call_at,
          earliest_due="SELECT min(due_at) FROM checkout_resultcall",
          about="Call the shopperResultUrl of merchants who have not fetched a result after 29 minutes."),
    CHECKOUT_EXPIRY_TIMER,
    receipts.RECEIPT_MAIL_TIMER,
    Timer(name="payment page", run=page_snapshots.refresh_page_snapshots, every_s=300.0,
          about="Keep what the payment page loads and sends whenever it has changed."),
    Timer(name="policy reports", run=csp_reports.purge_violations, every_s=60.0,
          earliest_due="SELECT statement_timestamp() FROM checkout_policyviolation ORDER BY id LIMIT 1",
          about="Forget violations that browsers reported last 90 days ago, and those that are too many."),
)  # fmt: skip
