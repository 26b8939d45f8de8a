"""The timers of reporting (gateway.timers.registry)."""

from __future__ import annotations

from typing import Final

from django.conf import settings

from gateway.timers.registry import MerchantTimer, Timer
from reporting.approvals import alarms
from reporting.reconciliation import daily_files, deliveries
from reporting.settlement import (
    chargeback_booking,
    intake,
    manual_chargebacks,
    sftp_fetch,
    unsettled_reminders,
    watched_folder,
)

TIMERS: Final = (
    Timer(
        name="settlement folder",
        about="Take in files that lie in the watched folder.",
        run=watched_folder.take_in_folder_files,
        is_off=lambda: not settings.GATEWAY_SETTLEMENT_FOLDER,
        every_s=10.0,
    ),
    Timer(
        name="settlement sources",
        about="Fetch files from institutes' SFTP servers.",
        run=sftp_fetch.fetch_due_sources,
        earliest_due="""
            SELECT min(s.due_at) FROM reporting_sftpsource s JOIN reporting_clearinginstitute i ON i.id = s.institute_id
            WHERE s.active AND i.active""",
        every_s=5.0,
    ),
    Timer(
        name="settlement files",
        about="Read, match and book files that wait.",
        run=intake.process_due_files,
        earliest_due="""
            SELECT min(received_at) FROM reporting_settlementfile
            WHERE state IN ('RECEIVED', 'READING', 'MATCHING', 'BOOKING')""",
        every_s=2.0,
    ),
    Timer(
        name="settlement lines",
        about="Enter chargebacks and reversals that could not be entered when they came.",
        run=chargeback_booking.retry_unbooked_records,
        # Due while any finding is open: those of one kind are in no index.
        earliest_due="""
            SELECT statement_timestamp() FROM reporting_finding WHERE closed_at IS NULL
            ORDER BY merchant_id, id LIMIT 1""",
        every_s=30.0,
    ),
    MerchantTimer(
        name="chargebacks entered",
        about="Write what no file has told of into the books.",
        run=manual_chargebacks.record_recent_chargebacks,
        next_at=manual_chargebacks.next_unrecorded_chargeback_at,
        earliest_due=manual_chargebacks.EARLIEST_UNRECORDED_CHARGEBACK,
        every_s=2.0,
    ),
    Timer(
        name="chargebacks entered, all",
        about="Write what no file of institutes that came later has told of into the books.",
        run=manual_chargebacks.record_all_chargebacks,
        every_s=3600.0,
    ),
    Timer(
        name="settlement missing",
        about="Count payments that no line settled in time, and mail it once a day.",
        run=unsettled_reminders.remind_of_unsettled_payments,
        every_s=3600.0,
    ),
    MerchantTimer(
        name="reconciliation files",
        about="Write each merchant's file of the day that is over.",
        run=daily_files.write_due_daily_files,
        next_at=daily_files.next_daily_file_at,
        every_s=60.0,
    ),
    MerchantTimer(
        name="reconciliation deliveries",
        about="Send written files by SFTP, again where it failed.",
        run=deliveries.send_due_deliveries,
        next_at=deliveries.next_delivery_at,
        earliest_due="SELECT min(due_at) FROM reporting_delivery WHERE state = 'WAITING'",
        every_s=10.0,
    ),
    alarms.RATE_TIMER,
)
