"""The archive of payments: chains that have left the tables of everyday work, without their shoppers' data."""

from __future__ import annotations

from django.db import models

from gateway.db import guards
from gateway.models.entities import Channel, Merchant


class ArchivedPayment(models.Model):
    """A payment that was moved here with its whole chain (gateway.personal_data.payment_archiving).

    ``row``: what its row in Payment was, by column, without what erasing a person erases and without the guard against
    duplicates; a chain that is brought back gets its rows from it. ``events``: its rows in PaymentEvent, oldest first.
    ``chain_expired``: as ChainState.expired, of a first payment. The columns before it are what it is found by;
    ``created_at``: the merchant's clock.
    ``archived_at``: real time. Partitioned by month of ``id`` (gateway.db.partitions), kept for good.
    Source: docs/decisions/0130.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    chain = models.UUIDField()
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    channel = models.ForeignKey(
        Channel, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    number = models.BigIntegerField()
    payment_type = models.CharField(max_length=2)
    method = models.CharField(max_length=2)
    merchant_transaction_id = models.CharField(max_length=255)
    merchant_invoice_id = models.CharField(max_length=255)
    created_at = models.DateTimeField()
    row = models.JSONField()
    events = models.JSONField()
    chain_expired = models.BooleanField()
    archived_at = models.DateTimeField()

    class Meta:
        triggers = guards.leaves_for("gateway_payment", "id = OLD.id")
        indexes = [
            models.Index(fields=["chain"], name="archived_payment_chain"),
            models.Index(fields=["number"], name="archived_payment_number"),
            models.Index(fields=["merchant_transaction_id", "merchant"], name="archived_payment_order"),
            models.Index(fields=["merchant_invoice_id", "merchant"], name="archived_payment_invoice"),
            models.Index(fields=["created_at", "merchant"], name="archived_payment_made"),
            # Queries walk these in time order, as they do among the other payments.
            models.Index(fields=["channel", "created_at"], name="archived_payment_time"),
            models.Index(
                fields=["channel", "payment_type", "created_at"],
                name="archived_payment_type",
                condition=~models.Q(payment_type__in=["DB", "PA", "CP"]),
            ),
            models.Index(
                fields=["channel", "method", "created_at"],
                name="archived_payment_method",
                condition=~models.Q(method="CC"),
            ),
        ]

    def __str__(self) -> str:
        return self.id.hex


class ArchivePosition(models.Model):
    """How far the present pass over old payments has come: one row. ``position``: the id of the last payment that was
    looked at. ``rest_until``: real time; after a pass, until the next one begins (gateway.personal_data.
    payment_archiving)."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    position = models.UUIDField()
    rest_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="archive_position_is_one_row")]
