"""Tables of the reconciliation room: files written, the merchants' SFTP targets, deliveries and their attempts.

Columns and constraints only; verbs live in reporting.reconciliation.daily_files and deliveries. Source: Part B,
Reconciliation file.
"""

from __future__ import annotations

from django.db import models

from gateway.core import identifiers
from gateway.models import Merchant
from reporting.sftp_server import SftpServer


class ReconciliationFile(models.Model):
    """One merchant's file of one day, by their clock and time zone.

    ``begins_at`` and ``ends_at``: that day in real time; each day begins where the one before ended, so that every
    record is in exactly one file. ``names``: display names as of then
    (reporting.settlement.record_queries.DisplayNames), so that the same bytes can be written again. ``offset``: how far
    the merchant's clock was ahead. ``lines``, ``size``, ``sha256``: of the file, once it is written. ``lease_until``:
    real time, while a worker writes it.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="reconciliation_files")
    day = models.DateField()
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    names = models.JSONField()
    offset = models.DurationField()
    lines = models.IntegerField(null=True)
    size = models.BigIntegerField(null=True)
    sha256 = models.CharField(max_length=64, default="")
    written_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        app_label = "reporting"
        constraints = [models.UniqueConstraint(fields=["merchant", "day"], name="reconciliation_file_once")]
        indexes = [
            models.Index(fields=["day"], name="reconciliation_unwritten", condition=models.Q(written_at__isnull=True))
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return f"reconciliation_{self.merchant_id.hex}_{self.day:%Y-%m-%d}.csv"


class ReconciliationStart(models.Model):
    """The day, by the merchant's clock, of their first reconciliation file: the first on which something was settled
    for them. ``offset``: how far their clock was ahead then."""

    merchant = models.OneToOneField(Merchant, on_delete=models.PROTECT, primary_key=True, related_name="+")
    day = models.DateField()
    offset = models.DurationField()

    class Meta:
        app_label = "reporting"

    def __str__(self) -> str:
        return f"{self.merchant_id}: {self.day}"


class SftpTarget(SftpServer):
    """The SFTP server that receives a merchant's files, in ``folder``."""

    merchant = models.OneToOneField(Merchant, on_delete=models.PROTECT, related_name="sftp_target")

    class Meta:
        app_label = "reporting"
        verbose_name = "SFTP target"


class Delivery(models.Model):
    """The upload of one file to its target. ``due_at``: the merchant's clock; ``lease_until``: real time, while a
    worker sends it. ``attempts``: how many were made."""

    class State(models.TextChoices):
        WAITING = "WAITING"
        DONE = "DONE"
        FAILED = "FAILED", "given up"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    file = models.OneToOneField(ReconciliationFile, on_delete=models.PROTECT, related_name="delivery")
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    attempts = models.SmallIntegerField(default=0)
    due_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)

    class Meta:
        app_label = "reporting"
        verbose_name_plural = "deliveries"
        indexes = [models.Index(fields=["due_at"], name="delivery_due", condition=models.Q(state="WAITING"))]

    def __str__(self) -> str:
        return f"{self.file_id.hex} ({self.state})"


class DeliveryAttempt(models.Model):
    """One attempt. ``why``: the failure in words; '' when it succeeded."""

    id = models.BigAutoField(primary_key=True)
    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="tries")
    number = models.SmallIntegerField()
    target = models.CharField(max_length=400)
    at = models.DateTimeField()
    duration_ms = models.IntegerField()
    why = models.CharField(max_length=255, default="")

    class Meta:
        app_label = "reporting"
        ordering = ["number"]

    def __str__(self) -> str:
        return f"{self.number}: {self.why or 'sent'}"
