"""Who may call: access tokens, and the counters that throttle them. Source: Part A, Authentication; Limits."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from gateway import identifiers
from gateway.models.entities import Channel, Merchant

SCOPES = ("payments", "read", "test")
"""payments: POST of payments and follow-ups; read: GET; test: the test environment's own endpoints."""


def all_scopes() -> list[str]:
    return list(SCOPES)


class AccessToken(models.Model):
    """A bearer token. Only its SHA-256 is kept: it has 256 random bits, so a plain hash cannot be guessed back.

    ``channel``: None lets it speak for every channel of the merchant. ``ends_at``: expiry, or the end of the overlap
    after a rotation. ``hint``: the last characters, to tell tokens apart in a list.
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
    replaces = models.ForeignKey("self", on_delete=models.PROTECT, null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_ip = models.GenericIPAddressField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-created_at"]
        permissions = [("issue_accesstoken", "Can issue, rotate and revoke access tokens")]

    def __str__(self) -> str:
        return f"{self.name} (…{self.hint})"


class ThrottleWindow(models.Model):
    """Requests of one entity and operation in one window; the window is its number since the epoch."""

    pk = models.CompositePrimaryKey("entity_id", "operation", "window_s", "window")
    entity_id = models.UUIDField()
    operation = models.CharField(max_length=16)
    window_s = models.IntegerField()
    window = models.BigIntegerField()
    count = models.IntegerField()
