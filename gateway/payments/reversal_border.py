"""Until when a debit can be reversed: before its settlement, refunded after it.

A payment is beyond it when a settlement record tells of it, when its capture was sent in a batch, or when it is older
than the channel's ``reversal_hours``: its acquirer has cleared the day.
Source: rulings, section 4 (RV before settlement); docs/decisions/0069.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from gateway.models import BatchedCapture, Payment, Status
from gateway.payments.settlement_check import has_settlement_record


def is_beyond_reversal(payment: Payment, at: datetime) -> bool:
    """Whether an approved debit, capture, rebill or credit can no longer be reversed at ``at``, the merchant's clock.
    Never for an authorization, nor for what waits here to be sent."""
    if payment.payment_type == "PA" or payment.status != Status.APPROVED:
        return False
    hours = payment.channel.reversal_hours
    if hours and at - (payment.completed_at or payment.created_at) > timedelta(hours=hours):
        return True
    return _was_sent_in_batch(payment) or has_settlement_record(payment.id)


def _was_sent_in_batch(payment: Payment) -> bool:
    """Its acquirer compares the sums of the batch: a reversal would change them."""
    if payment.payment_type != "CP" or payment.connector != "iso8583":
        return False
    return BatchedCapture.objects.filter(pk=payment.id, batch__isnull=False).exists()
