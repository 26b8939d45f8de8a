"""The timers of disputes (gateway.timers.registry)."""

from __future__ import annotations

from typing import Final

from chargebacks import alert_reminders, alerts, cases, reminders, revocations
from gateway.timers.registry import MerchantTimer, Timer

TIMERS: Final = (
    MerchantTimer(name="dispute reminders", about="Mail 7, 3 and 1 days before a dispute's deadline.",
          run=reminders.send_due_reminders, next_at=reminders.next_reminder_at, every_s=5.0,
          earliest_due=reminders.EARLIEST_DUE_REMINDER),
    MerchantTimer(name="dispute deadlines", about="End disputes that nobody answered in time as lost.",
          run=cases.expire_overdue_cases, next_at=cases.next_response_deadline, every_s=5.0,
          earliest_due="SELECT min(due_at) FROM chargebacks_chargeback WHERE state = 'OPEN'"),
    MerchantTimer(name="dispute alerts",
          about="Close alerts that were refunded or not answered in time; send refunds anew.",
          run=alerts.work_on_alerts, next_at=alerts.next_alert_deadline, every_s=5.0,
          earliest_due=alerts.EARLIEST_OPEN_ALERT),
    MerchantTimer(name="alert reminders", about="Mail of alerts: when one comes, and a day before its deadline.",
          run=alert_reminders.send_due_alert_reminders, next_at=alert_reminders.next_alert_reminder, every_s=5.0,
          earliest_due=alert_reminders.EARLIEST_ALERT_REMINDER),
    MerchantTimer(name="dispute cases", about="Make cases of chargebacks that came by API.",
          run=cases.adopt_recent_payments, next_at=cases.next_payment_without_case, every_s=1.0,
          earliest_due=cases.EARLIEST_PAYMENT_WITHOUT_CASE),
    Timer(name="dispute cases, all", about="Make cases of chargebacks whose payments were in doubt for days.",
          run=cases.adopt_all_payments, every_s=3600.0),
    Timer(name="dispute stops", about="Stop jobs and stored cards after a chargeback that ends their use.",
          run=revocations.stop_pending_credentials, every_s=5.0,
          earliest_due="SELECT statement_timestamp() FROM chargebacks_chargeback WHERE stops_pending LIMIT 1"),
)  # fmt: skip
