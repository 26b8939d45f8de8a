"""Finality without a statement: collections count as paid after the account's number of days.

Not those that the bank was asked to cancel, nor those that it called pending in a batch that it rejected.
Source: docs/connectors/sepa.md (finalAfter).
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from gateway.connectors.sepa import order_records
from gateway.db.statement import execute_sql
from gateway.models import BankFile, BankOrder, Merchant
from gateway.timers.merchant_clocks import bind_run, due_sql, find_earliest

MAX_FINALIZED_PER_RUN: Final = 500


_DUE: Final = f"""
SELECT o.payment FROM gateway_bankorder o JOIN gateway_merchant m ON m.id = o.merchant_id
JOIN gateway_bankfile f ON f.id = o.file_id
WHERE o.state = 'FILED' AND f.state = 'DELIVERED' AND {due_sql("o.final_at")} AND o.undecided_at IS NULL
    AND NOT EXISTS (SELECT FROM gateway_bankorder c
        WHERE c.original_payment = o.payment AND c.kind = 'CANCEL' AND c.state IN ('WAITING', 'FILED'))
ORDER BY o.final_at LIMIT %(limit)s
"""  # noqa: S608 - a constant


def finalize_due_collections(merchant: Merchant | None = None) -> int:
    """Book the collections that were not rejected in time. Returns how many."""
    due = execute_sql(_DUE, bind_run(merchant, limit=MAX_FINALIZED_PER_RUN))
    return sum(_finalize_collection(payment) for (payment,) in due)


@transaction.atomic
def _finalize_collection(payment: UUID) -> bool:
    """Book a collection. False if the bank's answer, or a request to cancel it, came first."""
    order = order_records.lock_bank_order(payment)
    if (
        order is None
        or order.state != BankOrder.State.FILED
        or order.undecided_at is not None
        or _list_open_cancellations().filter(original_payment=payment).exists()
    ):
        return False
    order_records.move_bank_order(order, BankOrder.State.BOOKED)
    return True


def _list_open_cancellations() -> QuerySet[BankOrder]:
    """Requests to cancel a collection that wait for the bank: it may have agreed, so its silence says nothing."""
    return BankOrder.objects.filter(
        kind=BankFile.Kind.CANCEL, state__in=(BankOrder.State.WAITING, BankOrder.State.FILED)
    )


def next_collection_finality(merchant: Merchant) -> datetime | None:
    """When this merchant's next collection becomes final, by the merchant's clock."""
    rows = BankOrder.objects.filter(
        merchant=merchant,
        state=BankOrder.State.FILED,
        undecided_at=None,
        file__state=BankFile.State.DELIVERED,
    ).exclude(Exists(_list_open_cancellations().filter(original_payment=OuterRef("pk"))))
    return find_earliest(rows, "final_at")
