"""Access tokens and the counters of throttling. Source: Part A, Authentication; Limits."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from gateway.core import identifiers
from gateway.models.entities import Channel, Merchant

TOKEN_SCOPES = ("payments", "read", "test")
"""payments: POST of payments and follow-ups; read: GET; test: the test environment's own endpoints."""


def all_scopes() -> list[str]:
    """Every scope a token can have: the default of the column."""
    return list(TOKEN_SCOPES)


class AccessToken(models.Model):
    """A bearer token. Only its SHA-256 is stored: it has 256 random bits, so a plain hash cannot be reversed.

    - ``channel``: None lets it act for every channel of the merchant.
    - ``ends_at``: expiry, or the end of the overlap after a rotation.
    - ``hint``: the last characters, to tell tokens apart in a list.
    - ``approved_at``: until then the API refuses it.
    - ``requested_by``: the user who created it, None for a command.
    - ``max_amount``: of one payment; None: no limit.
    - ``max_day_amount``: of all payments within 24 hours in one currency; None: no limit.
    - ``operations``: payment types it may make; empty: all.
    - ``lent``: of one call that this process makes itself; deleted afterwards.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    hint = models.CharField(max_length=4, editable=False)
    name = models.CharField(max_length=128)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="access_tokens")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, null=True, blank=True, related_name="access_tokens")
    scopes = ArrayField(models.CharField(max_length=16), default=all_scopes)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150, editable=False)
    ends_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, editable=False, related_name="+", db_index=False
    )
    approved_at = models.DateTimeField(null=True, editable=False)
    approved_by = models.CharField(max_length=150, default="", editable=False)
    max_amount = models.DecimalField(
        _("at most, one payment"),
        max_digits=14,
        decimal_places=2,
        null=True,
        blank=True,
        help_text=_("In the payment's own currency. Empty: no limit."),
    )
    max_day_amount = models.DecimalField(
        _("at most, in 24 hours"),
        max_digits=14,
        decimal_places=2,
        null=True,
        blank=True,
        help_text=_("All that the token moves in one currency within 24 hours. Empty: no limit."),
    )
    operations = ArrayField(models.CharField(max_length=2), default=list, blank=True)
    replaces = models.ForeignKey("self", on_delete=models.PROTECT, null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_ip = models.GenericIPAddressField(null=True, blank=True, editable=False)
    lent = models.BooleanField(default=False, db_default=False, editable=False)

    class Meta:
        ordering = ["-created_at"]
        permissions = [("issue_accesstoken", "Can issue, rotate and revoke access tokens")]
        indexes = [models.Index(fields=["ends_at"], condition=models.Q(lent=True), name="token_lent")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(max_amount__isnull=True) | models.Q(max_amount__gt=0),
                name="token_max_amount_positive",
            ),
            models.CheckConstraint(
                condition=models.Q(max_day_amount__isnull=True) | models.Q(max_day_amount__gt=0),
                name="token_max_day_amount_positive",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} (…{self.hint})"


class TokenLimitUsage(models.Model):
    """Usage of a token's 24-hour limit: one payment, written before the payment begins.

    ``payment``: None until the payment has begun; if the worker dies in between it stays None, and the amount counts.
    ``at``: real time. Rows older than the limit's period are deleted (gateway.payments.token_limits).
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    token = models.ForeignKey(AccessToken, on_delete=models.PROTECT, related_name="+", db_index=False)
    payment = models.UUIDField(null=True)
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["token", "currency", "at"], name="token_limit_usage_time")]


class ThrottleWindow(models.Model):
    """Number of requests of one entity and operation in one window; the window is its number since the epoch."""

    pk = models.CompositePrimaryKey("entity_id", "operation", "window_s", "window")
    entity_id = models.UUIDField()
    operation = models.CharField(max_length=16)
    window_s = models.IntegerField()
    window = models.BigIntegerField()
    count = models.IntegerField()
