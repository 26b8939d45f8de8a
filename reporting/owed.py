"""Payments that an institute should have settled by now: counted every hour, told to their merchant once a day.

A row for each institute, merchant and day is made by whoever looks first; its mail is sent by lease, and tried again
when the mail server is away. Source: issue 8, the missing file; decision 0042.
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
from gateway import clock
from gateway.models import Merchant
from gateway.money import amount_text
from gateway.rights import Scope
from gateway.rows import execute
from reporting import missing
from reporting.incoming import Owed
from reporting.models import ClearingInstitute

KEPT: Final = timedelta(days=92)
LEASE: Final = timedelta(minutes=5)
MOST_TRIES: Final = 30
"""An hour apart; when the day is over its mail is given up, and the next day's tells more."""
AT_ONCE: Final = 500
"""Mails of one look."""
_TELL: Final = """
UPDATE reporting_owed SET lease_until = %(lease)s::timestamptz, tries = tries + 1 WHERE id IN (
    SELECT id FROM reporting_owed
    WHERE payments > 0 AND sent_at IS NULL AND tries < %(tries)s
        AND (lease_until IS NULL OR lease_until <= %(now)s::timestamptz)
    ORDER BY id LIMIT %(most)s FOR UPDATE SKIP LOCKED
) RETURNING id"""

log = structlog.get_logger(__name__)


def run(merchant: Merchant | None = None) -> int:
    """Look at every institute, and mail what nobody was told of today; how many mails were dealt with."""
    if merchant is not None:
        return 0
    for institute in ClearingInstitute.objects.filter(active=True):
        _look(institute)
    return _tell()


def now_owed(scope: Scope) -> int:
    """How many payments of the user's merchants are missed, as of the last look."""
    rows = Owed.objects.filter(scope.where("merchant", None), payments__gt=0, institute__active=True)
    return rows.aggregate(payments=Sum("payments"))["payments"] or 0


def _look(institute: ClearingInstitute) -> None:
    """Rows of today say what is missed now, all others that nothing is."""
    now = clock.real()
    found: dict[tuple[UUID, date], dict[str, Any]] = {}
    for merchant, day, currency, many, amount in missing.overdue_of_all(institute, now):
        one = found.setdefault((merchant, day), {"payments": 0, "sums": {}})
        one["payments"] += many
        one["sums"][currency] = str(amount)
    Owed.objects.bulk_create(
        [
            Owed(institute=institute, merchant_id=merchant, day=day, looked_at=now, **values)
            for (merchant, day), values in found.items()
        ],
        batch_size=1_000, update_conflicts=True, unique_fields=["institute", "merchant", "day"],
        update_fields=["payments", "sums", "looked_at"],
    )  # fmt: skip
    Owed.objects.filter(institute=institute, looked_at__lt=now, payments__gt=0).update(payments=0)
    Owed.objects.filter(institute=institute, looked_at__lt=now - KEPT).delete()


def _tell() -> int:
    now = clock.real()
    values = {"now": now, "lease": now + LEASE, "tries": MOST_TRIES, "most": AT_ONCE}
    claimed = [ident for (ident,) in execute(_TELL, values)]
    told = 0
    for row in Owed.objects.filter(pk__in=claimed).select_related("merchant", "institute").order_by("id"):
        if (to := _sent(row)) is not None:
            told += Owed.objects.filter(pk=row.pk, sent_at=None).update(
                sent_at=clock.real(), sent_to=", ".join(to)[:1000]
            )
    return told


def _sent(row: Owed) -> list[str] | None:
    """Who the mail went to; None when it could not be sent."""
    to = list(Contact.objects.filter(merchant=row.merchant_id).order_by("email").values_list("email", flat=True))
    if not to:
        return []
    subject, body = mail_of(row)
    try:
        EmailMessage(subject, body, settings.GATEWAY_MAIL_FROM, bcc=to).send()
    except Exception as fault:  # any mail server's fault: it is due again when the lease ends
        log.warning("owed_not_told", owed=row.pk, tries=row.tries, why=type(fault).__name__)
        return None
    return to


def mail_of(row: Owed) -> tuple[str, str]:
    """Subject and text: how many, how much, where they are listed."""
    payments = "1 payment" if row.payments == 1 else f"{row.payments:,} payments"
    sums = "\n".join(f"  {amount_text(Decimal(amount))} {currency}" for currency, amount in sorted(row.sums.items()))
    listed = f"{settings.GATEWAY_BASE_URL}{reverse('admin:reporting_settlementrecord_changelist')}?list=missing"
    subject = f"{payments} not settled by {row.institute.name}"
    body = (
        f"{row.institute.name} settles payments of {row.merchant.name} within {row.institute.settles_within_days} days."
        f" No line of a settlement file tells of {payments} that should have been settled by now:\n\n{sums}\n\n"
        f"They are listed under Exceptions:\n{listed}\n"
    )
    return subject, body
