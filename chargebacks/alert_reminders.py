"""Mails about alerts and inquiries, to those who are reminded of disputes: when one is recorded, and a day before its
deadline, while it waits for a decision.

Rows with due times, sent by lease, like the reminders of disputes; mails name ids, amounts and the deadline, and no
card data. Source: docs/decisions/0088.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from django.db.models.functions import Now

from chargebacks.evidence_checklist import describe_reason
from chargebacks.models import DisputeAlert
from chargebacks.reminders import MAX_REMINDER_TRIES, claim_reminders, mail_contacts
from gateway.core import clock
from gateway.core.money import format_amount
from gateway.models import Merchant
from gateway.timers.merchant_clocks import due_sql, find_earliest

LAST_ALERT_REMINDER: Final = timedelta(hours=24)
"""How long before its deadline an alert is reminded of; not sent where the alert came later than that."""

_CLAIM: Final = f"""
WITH due AS MATERIALIZED (
    SELECT a.id FROM chargebacks_disputealert a JOIN gateway_merchant m ON m.id = a.merchant_id
    WHERE a.state = 'OPEN' AND {due_sql("a.remind_at")} AND a.remind_tries < %(tries)s
        AND (a.remind_lease IS NULL OR a.remind_lease <= statement_timestamp())
    ORDER BY a.remind_at LIMIT %(limit)s FOR UPDATE OF a SKIP LOCKED
)
UPDATE chargebacks_disputealert a
SET remind_lease = clock_timestamp() + %(lease)s::interval, remind_tries = a.remind_tries + 1
FROM due WHERE a.id = due.id
RETURNING a.id"""  # noqa: S608 - a constant
EARLIEST_ALERT_REMINDER: Final = f"""
SELECT min(remind_at) FROM chargebacks_disputealert
WHERE state = 'OPEN' AND remind_tries < {MAX_REMINDER_TRIES}"""  # noqa: S608 - constants of this module


def send_due_alert_reminders(merchant: Merchant | None = None) -> int:
    """Send the mails that are due. Returns how many alerts were handled."""
    done = 0
    for ident in claim_reminders(_CLAIM, merchant):
        alert = DisputeAlert.objects.select_related("merchant").get(pk=ident)
        at = clock.merchant_now(alert.merchant)
        if at >= alert.due_at or _send(alert, at):
            last = alert.due_at - LAST_ALERT_REMINDER
            mine = DisputeAlert.objects.filter(pk=ident, remind_at=alert.remind_at, remind_lease__gt=Now())
            done += mine.update(remind_at=last if at < last else None, remind_lease=None, remind_tries=0)
    return done


def next_alert_reminder(merchant: Merchant) -> datetime | None:
    """When this merchant's next mail is due, by the merchant's clock."""
    waiting = DisputeAlert.objects.filter(
        merchant=merchant, state=DisputeAlert.State.OPEN, remind_tries__lt=MAX_REMINDER_TRIES
    )
    return find_earliest(waiting, "remind_at")


def _send(alert: DisputeAlert, at: datetime) -> bool:
    """Send the mail. False if it could not be sent; True also where the merchant has no contacts."""
    logged = {"alert": alert.pk.hex, "tries": alert.remind_tries}
    return mail_contacts(alert.merchant, lambda: compose_alert_mail(alert, at), **logged) is not None


def compose_alert_mail(alert: DisputeAlert, at: datetime) -> tuple[str, str]:
    """Subject and text, with times in the merchant's time zone."""
    zone = ZoneInfo(alert.merchant.time_zone)
    hours = round((alert.due_at - at) / timedelta(hours=1))
    inquiry = alert.kind == DisputeAlert.Kind.INQUIRY
    amount = f"{format_amount(alert.amount)} {alert.currency}"
    left = "less than an hour left" if hours < 1 else "1 hour left" if hours == 1 else f"{hours} hours left"
    subject = f"{'Inquiry' if inquiry else 'Alert'} about {amount}: {left}"
    what = (
        "Send the documents that the issuer asks for to your provider, and note it in the back office."
        if inquiry
        else "A refund in time ends it, and no chargeback comes. Without one, a dispute may follow."
    )
    body = (
        f"An issuer asks about a payment of {alert.merchant.name}. No money has moved.\n\n"
        f"  Amount    {amount}\n"
        f"  Reason    {alert.reason_code}, {describe_reason(alert.reason_code)}\n"
        f"  Payment   {alert.disputed.hex}\n"
        f"  Provider  {alert.provider}, {alert.reference}\n"
        f"  Answer by {alert.due_at.astimezone(zone):%Y-%m-%d %H:%M} ({alert.merchant.time_zone})\n\n"
        f"{what}\n"
    )
    return subject, body
