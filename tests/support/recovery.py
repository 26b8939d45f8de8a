"""Recovery as it runs in the product, with time moved instead of waited for."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F

from gateway.models import OpenPayment
from gateway.payments.recovery import RecoverySummary, recover_due_payments


def recover_after(seconds: float) -> RecoverySummary:
    """A tick of recovery ``seconds`` from now: what is due by then is made due now."""
    OpenPayment.objects.update(recover_at=F("recover_at") - timedelta(seconds=seconds))
    return recover_due_payments()
