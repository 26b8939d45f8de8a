"""Captures that wait for their acquirer's batch, and the batches (docs/decisions/0040).

Read only by the connector "iso8583", the timer that updates payments from it, and the back office.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from gateway.core import identifiers
from gateway.models.entities import Channel, Merchant


class CaptureBatch(models.Model):
    """One capture batch of one account and currency: decided here first, and sent until the host agrees with its sums.

    - ``number``: counts the batches of the acquirer account, and stays however often the batch is sent.
    - ``count`` and ``total``: of the captures that the host has granted, set once its sums were requested.
    - ``round``: how often the captures were uploaded after sums that differed.
    - ``asked``: the sums of this round may have been sent, with ``trace_number`` in DE11.
    - ``answer``: the host's last answer about sums.
    - ``findings``: notes for an operator.
    - ``opened_at``: the merchant's clock.
    - ``due_at`` (None: an operator has to look), ``lease_until``, ``closed_at``: real time.
    - ``tries``: distinguishes one sender from the next.
    - ``failures``: in a row, each with a longer pause.
    """

    class State(models.TextChoices):
        PRESENTING = "PRESENTING", _("captures are sent")
        CLOSING = "CLOSING", _("sums are compared")
        UPLOADING = "UPLOADING", _("captures are sent again")
        BALANCED = "BALANCED", _("in balance")
        DIFFERS = "DIFFERS", _("sums differ")

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False)
    acquirer_merchant_id = models.CharField(max_length=64)
    number = models.IntegerField()
    currency = models.CharField(max_length=3)
    state = models.CharField(max_length=10, choices=State, default=State.PRESENTING)
    count = models.IntegerField()
    total = models.DecimalField(max_digits=18, decimal_places=2)
    round = models.SmallIntegerField(default=0)
    asked = models.BooleanField(default=False)
    trace_number = models.IntegerField(default=0)
    answer = models.JSONField(default=dict)
    findings = models.JSONField(default=list)
    tries = models.IntegerField(default=0)
    failures = models.IntegerField(default=0)
    failure = models.CharField(max_length=255, default="")
    opened_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("capture batch")
        verbose_name_plural = _("capture batches")
        constraints = [
            models.UniqueConstraint(fields=["channel", "acquirer_merchant_id", "number"], name="capture_batch_number"),
        ]
        indexes = [
            models.Index(
                fields=["due_at"],
                name="capture_batch_due",
                condition=models.Q(state__in=["PRESENTING", "CLOSING", "UPLOADING"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.acquirer_merchant_id} {self.number}"


class BatchedCapture(models.Model):
    """One capture that is sent to its host by batch.

    - ``payment``: the gateway's id of it.
    - ``message_sealed``: the message to send, account included; erased once the capture has ended.
    - ``reference``: the message as later ones refer to it, with what the host added.
    - ``present_at``: when it goes into a batch, by the merchant's clock.
    - ``sends``: how often it was sent in this round.
    - ``uploaded``: the round in which the host took it again.
    - ``code``: the host's DE39.
    - ``answer``: the fields of the host's answer, masked.
    - ``applied``: the result has been applied to the payment, or did not need to be.
    """

    class State(models.TextChoices):
        WAITING = "WAITING", _("waits for a batch")
        IN_BATCH = "IN_BATCH", _("in a batch")
        TAKEN = "TAKEN", _("captured")
        REFUSED = "REFUSED", _("refused")
        WITHDRAWN = "WITHDRAWN", _("taken back")

    payment = models.UUIDField(primary_key=True)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False)
    acquirer_merchant_id = models.CharField(max_length=64)
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    message_sealed = models.BinaryField(null=True)
    reference = models.CharField(max_length=64, default="")
    present_at = models.DateTimeField(null=True)
    batch = models.ForeignKey(CaptureBatch, on_delete=models.PROTECT, null=True, related_name="captures")
    sends = models.IntegerField(default=0)
    uploaded = models.SmallIntegerField(default=0)
    code = models.CharField(max_length=3, default="")
    answer = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    applied = models.BooleanField(default=False)

    class Meta:
        verbose_name = _("capture by batch")
        verbose_name_plural = _("captures by batch")
        indexes = [
            models.Index(
                fields=["merchant", "present_at"], name="capture_to_present", condition=models.Q(state="WAITING")
            ),
            models.Index(
                fields=["payment"],
                name="capture_unapplied",
                condition=models.Q(applied=False, state__in=["TAKEN", "REFUSED", "WITHDRAWN"]),
            ),
            models.Index(fields=["merchant", "-created_at"], name="capture_time"),
        ]
        constraints = [models.CheckConstraint(condition=models.Q(amount__gt=0), name="batched_capture_positive")]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} ({self.state})"


class TraceSequence(models.Model):
    """The last trace number (DE11) that a process has reserved for a terminal
    (gateway.connectors.iso8583.trace_numbers). ``terminal``: the merchant's id at the acquirer and the terminal's."""

    terminal = models.CharField(max_length=80, primary_key=True)
    last = models.IntegerField()

    def __str__(self) -> str:
        return f"{self.terminal} {self.last}"
