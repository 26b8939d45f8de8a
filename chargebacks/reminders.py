"""Reminder mails 7, 3 and 1 days before a dispute's deadline, to the merchant's contacts. Rows with due times, sent by
lease.

Retried while the mail server is down; not sent if the case was answered meanwhile. Mails name ids, amounts and the
deadline, and no card data.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import structlog
from django.conf import settings
from django.core.mail import EmailMessage

from chargebacks.deadlines import count_days_left
from chargebacks.evidence import list_case_items
from chargebacks.evidence_checklist import describe_reason
from chargebacks.models import Chargeback, Contact, Reminder
from gateway.core import clock
from gateway.core.money import format_amount
from gateway.db.statement import execute_sql
from gateway.models import Merchant
from gateway.timers.merchant_clocks import bind_run, due_sql, find_earliest

REMINDER_LEASE: Final = timedelta(minutes=2)
MAX_REMINDER_TRIES: Final = 50
"""Two minutes apart; then the reminder is given up and logged."""
MAX_REMINDERS_PER_RUN: Final = 100

log = structlog.get_logger(__name__)

_CLAIM: Final = f"""
WITH due AS MATERIALIZED (
    SELECT r.id FROM chargebacks_reminder r JOIN chargebacks_chargeback c ON c.id = r.case_id
    JOIN gateway_merchant m ON m.id = c.merchant_id
    WHERE r.sent_at IS NULL AND c.state = 'OPEN' AND r.tries < %(tries)s
        AND {due_sql("r.due_at")} AND (r.lease_until IS NULL OR r.lease_until <= statement_timestamp())
    ORDER BY r.due_at LIMIT %(limit)s FOR UPDATE OF r SKIP LOCKED
)
UPDATE chargebacks_reminder r SET lease_until = clock_timestamp() + %(lease)s::interval, tries = r.tries + 1
FROM due WHERE r.id = due.id
RETURNING r.id"""  # noqa: S608 - a constant


EARLIEST_DUE_REMINDER: Final = f"""
SELECT min(r.due_at) FROM chargebacks_reminder r JOIN chargebacks_chargeback c ON c.id = r.case_id
WHERE r.sent_at IS NULL AND c.state = 'OPEN' AND r.tries < {MAX_REMINDER_TRIES}"""  # noqa: S608 - constants of this module


def claim_reminders(statement: str, merchant: Merchant | None) -> list[Any]:
    """Lease the mails that are due, of ``merchant`` or of all, by ``statement``; returns the ids of their rows."""
    values = bind_run(merchant, lease=REMINDER_LEASE, limit=MAX_REMINDERS_PER_RUN, tries=MAX_REMINDER_TRIES)
    return [ident for (ident,) in execute_sql(statement, values)]


def send_due_reminders(merchant: Merchant | None = None) -> int:
    """Send due reminders. Returns how many were handled. Without contacts a reminder is marked as sent to nobody, and
    the back office shows the case."""
    done = 0
    for ident in claim_reminders(_CLAIM, merchant):
        row = Reminder.objects.select_related("case__merchant").get(pk=ident)
        at = clock.merchant_now(row.case.merchant)
        if at >= row.case.due_at:
            to: list[str] | None = []  # too late to be of use: the deadline is over
        else:
            to = _send_reminder(row)
        if to is not None:
            done += Reminder.objects.filter(pk=ident, sent_at=None).update(sent_at=at, sent_to=", ".join(to)[:1000])
    return done


def _send_reminder(row: Reminder) -> list[str] | None:
    """Send the mail. Returns its recipients; None if it could not be sent."""
    at = clock.merchant_now(row.case.merchant)
    return mail_contacts(
        row.case.merchant, lambda: compose_reminder_mail(row.case, at), case=row.case_id.hex, tries=row.tries
    )


def mail_contacts(merchant: Merchant, compose: Callable[[], tuple[str, str]], **logged: Any) -> list[str] | None:
    """Send one mail to the merchant's contacts. ``compose`` gives subject and text; ``logged``: fields of the log line
    if it fails. Returns the recipients, [] without contacts, None if the mail could not be sent."""
    to = list(Contact.objects.filter(merchant=merchant).order_by("email").values_list("email", flat=True))
    if not to:
        return []
    subject, body = compose()
    try:
        EmailMessage(subject, body, settings.GATEWAY_MAIL_FROM, bcc=to).send()
    except Exception as fault:  # any error of the mail server: the mail is due again when the lease ends
        log.warning("dispute_reminder_not_sent", **logged, why=type(fault).__name__)
        return None
    return to


def compose_reminder_mail(case: Chargeback, at: datetime) -> tuple[str, str]:
    """Subject and text, with times in the merchant's time zone."""
    zone = ZoneInfo(case.merchant.time_zone)
    due = case.due_at.astimezone(zone)
    left = count_days_left(case, at)
    days = "the last day" if left < 1 else "1 day left" if left == 1 else f"{left} days left"
    amount = f"{format_amount(case.amount)} {case.currency}"
    subject = f"Dispute of {amount}: {days} to answer"
    shown = "\n".join(f"  - {item.text}" for item in list_case_items(case))
    body = (
        f"A payment of {case.merchant.name} is disputed.\n\n"
        f"  Amount    {amount}\n"
        f"  Reason    {case.reason_code}, {describe_reason(case.reason_code)}\n"
        f"  Payment   {case.disputed.hex}\n"
        f"  Dispute   {case.id.hex}\n"
        f"  Answer by {due:%Y-%m-%d %H:%M} ({case.merchant.time_zone})\n\n"
        f"What helps:\n{shown}\n\n"
        "Evidence can be submitted once. Without any, the dispute is lost at the deadline.\n"
    )
    return subject, body


def next_reminder_at(merchant: Merchant) -> datetime | None:
    """When this merchant's next reminder is due, by the merchant's clock."""
    waiting = Reminder.objects.filter(
        case__merchant=merchant, case__state="OPEN", sent_at=None, tries__lt=MAX_REMINDER_TRIES
    )
    return find_earliest(waiting, "due_at")
