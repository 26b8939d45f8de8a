"""A merchant's webhook endpoints, deliveries to each, and every attempt.

Columns and constraints; functions are in gateway.notifications. Source: Part A, Events; rulings, section 6.
"""

from __future__ import annotations

from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from gateway.core import identifiers
from gateway.models.entities import Channel, Merchant

WEBHOOK_KINDS: Final = ("PAYMENT", "REGISTRATION", "SCHEDULE", "RISK", "ALERT")
DEFAULT_WEBHOOK_KINDS: Final = tuple(kind for kind in WEBHOOK_KINDS if kind != "ALERT")
"""What an endpoint gets unless it asks for more: clients written for the specification know no other type."""
"""Event types that an endpoint may subscribe to."""
INSPECTOR_URL_PREFIX: Final = "inspector:"
"""The address of an endpoint that is the back office's own inspector: nothing leaves the installation."""


class WebhookEndpoint(models.Model):
    """A webhook address for a merchant's events; ``channel`` None means all of the merchant's channels. A
    merchant's one RETURN endpoint represents the addresses that payments bring themselves (notificationUrl).

    - ``secret_sealed``: 64 hex digits, 32 bytes.
    - ``previous_sealed`` is valid as well until ``previous_until`` (real time), where secrets were rotated.
    - ``failures``: failed attempts in a row, 0 after a success.
    - ``failing_since``: the first of them (the merchant's clock).
    - ``probe_at``: when a PAUSED endpoint is probed next (the merchant's clock), after ``probes`` that failed. Without
      it the endpoint was paused by hand: nothing is sent until a user resumes it.
    - ``reason``: why it is in its state, for people.
    - ``untested``: its address or form was changed, and no test message has been answered there since; only such an
      answer ends that pause.
    """

    class Mode(models.TextChoices):
        ENCRYPTED = "encrypted", "encrypted (AES-256-GCM)"
        SIGNED = "signed", "signed (Standard Webhooks)"
        RETURN = "return", "the notificationUrl of each payment"

    class Wrapper(models.TextChoices):
        NONE = "none", "the body is the text in hex"
        JSON = "json", '{"encryptedBody": …}'

    class State(models.TextChoices):
        INACTIVE = "inactive", "not activated yet"
        ACTIVE = "active", "active"
        PAUSED = "paused", "paused: it fails wholly and is probed"
        OFF = "off", "off"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="webhook_endpoints")
    channel = models.ForeignKey(
        Channel, on_delete=models.PROTECT, null=True, blank=True, related_name="webhook_endpoints"
    )
    url = models.CharField(max_length=2048)
    kinds = ArrayField(models.CharField(max_length=12), default=list)
    mode = models.CharField(max_length=9, choices=Mode, default=Mode.ENCRYPTED)
    wrapper = models.CharField(max_length=4, choices=Wrapper, default=Wrapper.NONE)
    secret_sealed = models.BinaryField(null=True)
    previous_sealed = models.BinaryField(null=True)
    previous_until = models.DateTimeField(null=True)
    state = models.CharField(max_length=8, choices=State, default=State.INACTIVE)
    reason = models.CharField(max_length=255, default="", blank=True)
    failures = models.IntegerField(default=0, editable=False)
    failing_since = models.DateTimeField(null=True, editable=False)
    probes = models.SmallIntegerField(default=0, editable=False)
    untested = models.BooleanField(default=False, db_default=False, editable=False)
    probe_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["merchant_id", "created_at"]
        constraints = [
            models.UniqueConstraint(fields=["merchant"], name="webhook_one_return", condition=models.Q(mode="return")),
            models.UniqueConstraint(
                fields=["merchant", "channel", "mode"],
                name="webhook_one_inspector",
                nulls_distinct=False,
                condition=models.Q(url=INSPECTOR_URL_PREFIX),
            ),
            models.CheckConstraint(
                condition=models.Q(mode="return") | models.Q(secret_sealed__isnull=False),
                name="webhook_endpoint_has_a_secret",
            ),
        ]

    def __str__(self) -> str:
        return self.url or self.mode

    @property
    def is_inspector(self) -> bool:
        return self.url == INSPECTOR_URL_PREFIX

    @property
    def is_held(self) -> bool:
        """True if paused by hand, or until a new address has answered."""
        return self.state == self.State.PAUSED and self.probe_at is None


class WebhookDelivery(models.Model):
    """One event for one endpoint, until it is delivered or given up.

    ``notification``: the row of the outbox, None for a test message. ``body``: the plain text, generated once, so that
    every attempt sends the same. ``url``: the target, if not the endpoint's. ``due_at``, ``give_up_at`` and
    ``created_at`` are the merchant's clock; ``lease_until`` is the database's, while a worker sends. ``lease``:
    identifies the sender's turn: only that sender may record the result.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        DELIVERED = "delivered", "delivered"
        GIVEN_UP = "given_up", "given up after 30 days"
        CANCELLED = "cancelled", "cancelled: the endpoint is off"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.PROTECT, related_name="deliveries", db_index=False, db_constraint=False
    )
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    notification = models.BigIntegerField(null=True)
    kind = models.CharField(max_length=12)
    action = models.CharField(max_length=32)
    payment = models.UUIDField(null=True)
    sequence = models.SmallIntegerField(default=0)
    body = models.TextField()
    url = models.CharField(max_length=2600, default="")
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    attempts = models.SmallIntegerField(default=0)
    due_at = models.DateTimeField()
    give_up_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)
    lease = models.UUIDField(null=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "webhook deliveries"
        constraints = [
            # The merchant's events of one endpoint, each once; replay finds them by this, too.
            models.UniqueConstraint(fields=["endpoint", "notification"], name="webhook_delivery_once"),
        ]
        indexes = [
            models.Index(fields=["endpoint", "due_at"], name="webhook_due", condition=models.Q(state="waiting")),
            models.Index(fields=["give_up_at"], name="webhook_give_up", condition=models.Q(state="waiting")),
            models.Index(fields=["payment"], name="webhook_payment", condition=models.Q(payment__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.action}"


class WebhookAttempt(models.Model):
    """One delivery attempt: ``status`` of the answer and its first bytes, or the ``failure`` and why. ``at``: the
    merchant's clock; ``tried_at``: real time, for figures by hour, which a moved clock does not change."""

    id = models.BigAutoField(primary_key=True)
    delivery = models.ForeignKey(
        WebhookDelivery, on_delete=models.PROTECT, related_name="tried", db_constraint=False, db_index=True
    )
    number = models.SmallIntegerField()
    at = models.DateTimeField()
    tried_at = models.DateTimeField(db_default=Now(), editable=False)
    status = models.SmallIntegerField(null=True)
    failure = models.CharField(max_length=12, default="")
    answer = models.CharField(max_length=512, default="")
    duration_ms = models.IntegerField()

    class Meta:
        ordering = ["delivery_id", "id"]

    def __str__(self) -> str:
        return f"{self.number}: {self.status or self.failure}"


class InspectedWebhook(models.Model):
    """A message received by an inspector endpoint, as it would have been sent: ``headers`` {name: value} and ``body``.
    ``at``: real time. The newest gateway.notifications.inspector.MAX_INSPECTED_MESSAGES per endpoint are retained."""

    id = models.BigAutoField(primary_key=True)
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.PROTECT, related_name="inspected", db_index=False, db_constraint=False
    )
    delivery = models.UUIDField()
    attempt = models.SmallIntegerField()
    at = models.DateTimeField()
    headers = models.JSONField()
    body = models.TextField()

    class Meta:
        indexes = [models.Index(fields=["endpoint", "-id"], name="inspected_newest")]

    def __str__(self) -> str:
        return f"{self.delivery.hex} {self.attempt}"


class FanOutPosition(models.Model):
    """How far the outbox has been fanned out to endpoints: one row.

    Every notification up to ``position`` was fanned out, except those in ``gaps``: numbers that were not visible when
    their neighbours were, because their transaction was open or was rolled back.
    gaps: [{first, last, xid, at}]; ``xid``: transactions below it are older than the gap; ``at``: real time, ISO 8601.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    position = models.BigIntegerField()
    gaps = models.JSONField(default=list)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="fan_out_position_is_one_row")]
