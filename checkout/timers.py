"""The checkouts' timers."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db.models import DateTimeField, ExpressionWrapper, F, Min, Value

from checkout import calls
from checkout.models import Checkout
from gateway import clock
from gateway.due import Timer
from gateway.models import Merchant

_BATCH: Final = 10_000


def _sealed(merchant: Merchant | None) -> int:
    """Erase what was sealed in checkouts that have ended, by their merchants' clocks."""
    there = ExpressionWrapper(
        Value(clock.real(), output_field=DateTimeField()) + F("merchant__clock_offset"), output_field=DateTimeField()
    )
    ended = Checkout.objects.filter(request_sealed__isnull=False, expires_at__lte=there)
    if merchant is not None:
        ended = ended.filter(merchant=merchant)
    return Checkout.objects.filter(pk__in=list(ended.values_list("pk", flat=True)[:_BATCH])).update(request_sealed=None)


def _next_sealed(merchant: Merchant) -> datetime | None:
    rows = Checkout.objects.filter(request_sealed__isnull=False, merchant=merchant)
    found: datetime | None = rows.aggregate(first=Min("expires_at"))["first"]
    return found


TIMERS: Final = (
    Timer(name="result calls", run=calls.run, next_at=calls.next_at,
          about="Call the shopperResultUrl of merchants who have not fetched a result after 29 minutes."),
    Timer(name="checkout expiry", run=_sealed, next_at=_next_sealed, every_s=60.0,
          about="Erase the secrets of checkouts that have ended."),
)  # fmt: skip
