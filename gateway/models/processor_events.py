"""Processors' webhook events, each stored once, and the payments recorded because of them."""

from __future__ import annotations

from django.db import models

from gateway.core import identifiers
from gateway.models.entities import AcquirerAccount


class ProcessorEvent(models.Model):
    """One event of a processor's webhook. Its body is not stored: the processor is asked about the object it names.

    ``kind`` and ``object_id``: what the event says happened, and to which object there. ``payment``: our payment that
    it was about, once that is known; ``recorded``: the payment that was recorded because of it. ``due_at``: when it is
    processed, real time; a lease while a worker does. ``why``: why nothing was done, or a person has to look.
    """

    class State(models.TextChoices):
        NEW = "new", "waits to be acted on"
        DONE = "done", "done"
        IGNORED = "ignored", "concerns nothing of ours"
        FLAGGED = "flagged", "a person has to look"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    account = models.ForeignKey(AcquirerAccount, on_delete=models.PROTECT, related_name="processor_events")
    event_id = models.CharField(max_length=255)
    kind = models.CharField(max_length=64)
    object_id = models.CharField(max_length=255)
    state = models.CharField(max_length=8, choices=State, default=State.NEW)
    why = models.CharField(max_length=255, default="", blank=True)
    payment = models.UUIDField(null=True)
    recorded = models.UUIDField(null=True)
    attempts = models.SmallIntegerField(default=0)
    due_at = models.DateTimeField()
    created_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], name="processor_event_due", condition=models.Q(state="new")),
            models.Index(fields=["done_at"], name="processor_event_done", condition=models.Q(done_at__isnull=False)),
        ]
        constraints = [models.UniqueConstraint(fields=["account", "event_id"], name="processor_event_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_id}"


class ProcessorReportedPayment(models.Model):
    """What was recorded because of a processor's events, by the processor's own name for it: once, however many events
    report it, and whatever workers process them at the same time."""

    id = models.BigAutoField(primary_key=True)
    account = models.ForeignKey(AcquirerAccount, on_delete=models.PROTECT)
    reference = models.CharField(max_length=255)
    payment = models.UUIDField()
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["account", "reference"], name="processor_reported_payment_once")]

    def __str__(self) -> str:
        return self.reference
