"""The simulator's data: orders that a bank, a wallet or a shopper decides about, and results of the self-test.

They represent another party's memory: only the simulator reads the orders (docs/decisions/0014).
"""

from __future__ import annotations

import uuid

from django.db import models


class SimulatedOrder(models.Model):
    """One order that a shopper was sent to decide about, or a transfer that is awaited.

    ``payment``: the gateway's id of the message, not a reference to its tables. ``handle``: the secret part of the
    page's address. ``kind``: a row of gateway.connectors.simulator.orders. ``reference`` and ``descriptor``: what the
    merchant sent, shown on the page. ``language``: two letters. ``decided_at``: real time.
    """

    class State(models.TextChoices):
        OPEN = "OPEN"
        APPROVED = "APPROVED"
        DECLINED = "DECLINED"
        CANCELLED = "CANCELLED"
        EXPIRED = "EXPIRED"

    payment = models.UUIDField(primary_key=True)
    handle = models.UUIDField(default=uuid.uuid4, unique=True)
    kind = models.CharField(max_length=16)
    state = models.CharField(max_length=9, choices=State, default=State.OPEN)
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    brand = models.CharField(max_length=32)
    reference = models.CharField(max_length=255, default="")
    descriptor = models.CharField(max_length=127, default="")
    language = models.CharField(max_length=2, default="en")
    return_url = models.CharField(max_length=2048, default="")
    opened_at = models.DateTimeField(auto_now_add=True)
    decided_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(amount__gte=0), name="order_amount_not_negative")]

    def __str__(self) -> str:
        return f"{self.kind} {self.amount} {self.currency} ({self.state})"


class SelfTest(models.Model):
    """Result of the last self-test of one row of the published test data. Test environment only.

    ``row``: its key (gateway.portal.self_test_checks). ``fault``: the actual result where it differs from the
    documented one, '' if it does not. ``at``: real time.
    """

    row = models.CharField(max_length=120, primary_key=True)
    fault = models.CharField(max_length=500, default="")
    at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.row
