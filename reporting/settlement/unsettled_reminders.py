"""Counts missing settlements every hour, and mails them to their merchant once a day.

A row for each institute, merchant and day is inserted by the first worker that counts; its mail is sent by lease, and
retried while the mail server is down. Source: decision 0042.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import Sum
from django.urls import reverse

from chargebacks.models import Contact
from gateway.access.permissions import AccessScope
from gateway.core import clock
from gateway.core.money import format_amount
from gateway.db.statement import execute_sql
from reporting.settlement import missing_settlements
from reporting.settlement.models import ClearingInstitute, MissingSettlement

UNSETTLED_ROW_RETENTION: Final = timedelta(days=92)
UNSETTLED_MAIL_LEASE: Final = timedelta(minutes=5)
MAX_UNSETTLED_MAIL_TRIES: Final = 30
"""An hour apart; after the day its mail is given up, and the next day's includes its payments."""
MAX_UNSETTLED_MAILS_PER_RUN: Final = 500
"""Mails sent by one run."""
_TELL: Final = """
WITH due AS MATERIALIZED (
    SELECT id FROM reporting_missingsettlement
    WHERE payments > 0 AND sent_at IS NULL AND tries < %(tries)s
        AND (lease_until IS NULL OR lease_until <= statement_timestamp())
    ORDER BY id LIMIT %(most)s FOR UPDATE SKIP LOCKED
)
UPDATE reporting_missingsettlement m SET lease_until = clock_timestamp() + %(lease)s::interval, tries = tries + 1
FROM due WHERE m.id = due.id RETURNING m.id"""

log = structlog.get_logger(__name__)


def remind_of_unsettled_payments() -> int:
    """Count for every institute, and mail what was not mailed today. Returns how many mails were handled."""
    for institute in ClearingInstitute.objects.filter(active=True):
        _count_institute(institute)
    return _send_mails()


def count_unsettled_payments(scope: AccessScope) -> int:
    """Missing settlements of the user's merchants, as of the last count."""
    rows = MissingSettlement.objects.filter(scope.where("merchant", None), payments__gt=0, institute__active=True)
    return rows.aggregate(payments=Sum("payments"))["payments"] or 0


def _count_institute(institute: ClearingInstitute) -> None:
    """Update the rows of an institute: today's to the current count, all others to zero."""
    now = clock.real_now()
    found: dict[tuple[UUID, date], dict[str, Any]] = {}
    for merchant, day, currency, many, amount in missing_settlements.count_overdue_payments(institute, now):
        one = found.setdefault((merchant, day), {"payments": 0, "sums": {}})
        one["payments"] += many
        one["sums"][currency] = str(amount)
    MissingSettlement.objects.bulk_create(
        [
            MissingSettlement(institute=institute, merchant_id=merchant, day=day, counted_at=now, **values)
            for (merchant, day), values in found.items()
        ],
        batch_size=1_000,
        update_conflicts=True,
        unique_fields=["institute", "merchant", "day"],
        update_fields=["payments", "sums", "counted_at"],
    )
    MissingSettlement.objects.filter(institute=institute, counted_at__lt=now, payments__gt=0).update(payments=0)
    MissingSettlement.objects.filter(institute=institute, counted_at__lt=now - UNSETTLED_ROW_RETENTION).delete()


def _send_mails() -> int:
    values = {
        "lease": UNSETTLED_MAIL_LEASE,
        "tries": MAX_UNSETTLED_MAIL_TRIES,
        "most": MAX_UNSETTLED_MAILS_PER_RUN,
    }
    claimed = [ident for (ident,) in execute_sql(_TELL, values)]
    sent = 0
    for row in MissingSettlement.objects.filter(pk__in=claimed).select_related("merchant", "institute").order_by("id"):
        if (to := _send_mail(row)) is not None:
            sent += MissingSettlement.objects.filter(pk=row.pk, sent_at=None).update(
                sent_at=clock.real_now(), sent_to=", ".join(to)[:1000]
            )
    return sent


def _send_mail(row: MissingSettlement) -> list[str] | None:
    """Send the mail. Returns its recipients; None if it could not be sent."""
    to = list(Contact.objects.filter(merchant=row.merchant_id).order_by("email").values_list("email", flat=True))
    if not to:
        return []
    subject, body = compose_unsettled_mail(row)
    try:
        EmailMessage(subject, body, settings.GATEWAY_MAIL_FROM, bcc=to).send()
    except Exception as fault:  # any error of the mail server: the mail is due again when the lease ends
        log.warning("missing_settlements_mail_failed", owed=row.pk, tries=row.tries, why=type(fault).__name__)
        return None
    return to


def compose_unsettled_mail(row: MissingSettlement) -> tuple[str, str]:
    """Subject and text: how many, how much, and where they are listed."""
    payments = "1 payment" if row.payments == 1 else f"{row.payments:,} payments"
    sums = "\n".join(f"  {format_amount(Decimal(amount))} {currency}" for currency, amount in sorted(row.sums.items()))
    listed = f"{settings.GATEWAY_BASE_URL}{reverse('admin:reporting_settlementrecord_changelist')}?list=missing"
    subject = f"{payments} not settled by {row.institute.name}"
    body = (
        f"{row.institute.name} settles payments of {row.merchant.name} within {row.institute.settles_within_days} days."
        f" No line of a settlement file tells of {payments} that should have been settled by now."
        f" Together they add to the payout (refunds and credits take away):\n\n{sums}\n\n"
        f"They are listed under Exceptions:\n{listed}\n"
    )
    return subject, body
