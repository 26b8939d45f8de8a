"""Recovery as it runs in the product, with time moved instead of waited for."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F

from gateway.models import OpenPayment, Payment
from gateway.payments.recovery import RecoverySummary, claim_due_inquiries, recover_due_payments


def recover_after(seconds: float) -> RecoverySummary:
    """A tick of recovery ``seconds`` from now: what is due by then is made due now."""
    OpenPayment.objects.update(recover_at=F("recover_at") - timedelta(seconds=seconds))
    return recover_due_payments()


def claim_after(seconds: float, limit: int = 10) -> list[Payment]:
    """The claim of a tick ``seconds`` from now."""
    OpenPayment.objects.update(recover_at=F("recover_at") - timedelta(seconds=seconds))
    return claim_due_inquiries(limit)
