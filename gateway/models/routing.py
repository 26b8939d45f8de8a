"""Routing rules with their targets, and state changes of circuit breakers. Columns and constraints; functions are in
gateway.connectors."""

from __future__ import annotations

from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db import models

from gateway.core import identifiers
from gateway.models.entities import AcquirerAccount, Channel

MAX_RULE_CASCADES: Final = 2
"""Most further accounts that a rule may name for a declined payment."""


class RoutingRule(models.Model):
    """One rule of a channel: the first that matches a payment, by ``position``, decides which accounts may take it.

    Empty conditions always match. ``bins``: ranges of leading digits, ``from-to``, both with 6 to 11 digits and both
    included. ``amount_from`` and ``amount_to`` are included, and apply to payments in ``amount_currency`` only.
    ``countries``: of billing.country. ``max_cascades``: to how many further accounts a declined payment may go on
    (gateway.payments.cascade); 0 to none.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="routing_rules", db_index=False)
    position = models.PositiveSmallIntegerField(default=100, help_text="The first rule that fits decides.")
    name = models.CharField(max_length=64)
    active = models.BooleanField(default=True)
    brands = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    bins = ArrayField(models.CharField(max_length=23), default=list, blank=True)
    currencies = ArrayField(models.CharField(max_length=3), default=list, blank=True)
    amount_from = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)
    amount_to = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)
    amount_currency = models.CharField(max_length=3, default="", blank=True)
    countries = ArrayField(models.CharField(max_length=2), default=list, blank=True)
    payment_types = ArrayField(models.CharField(max_length=2), default=list, blank=True)
    max_cascades = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        ordering = ["channel_id", "position", "id"]
        indexes = [models.Index(fields=["channel", "position"], name="routing_channel_position")]
        constraints = [
            models.UniqueConstraint(fields=["channel", "name"], name="routing_rule_name"),
            models.CheckConstraint(
                condition=models.Q(max_cascades__lte=MAX_RULE_CASCADES), name="routing_rule_max_cascades"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class RoutingTarget(models.Model):
    """An account that a rule sends payments to. ``weight``: its share among the rule's accounts; 0: only when no other
    can take the payment."""

    rule = models.ForeignKey(RoutingRule, on_delete=models.CASCADE, related_name="targets")
    account = models.ForeignKey(AcquirerAccount, on_delete=models.PROTECT, related_name="routing_targets")
    weight = models.PositiveSmallIntegerField(default=1)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["position", "id"]
        constraints = [models.UniqueConstraint(fields=["rule", "account"], name="routing_target_once")]

    def __str__(self) -> str:
        return f"{self.account} ({self.weight})"


class BreakerChange(models.Model):
    """A circuit breaker of one process changed its state. ``process``: host and pid. Written on change only, and
    retained for a few days (gateway.connectors.circuit)."""

    id = models.BigAutoField(primary_key=True)
    process = models.CharField(max_length=96)
    connector = models.CharField(max_length=32)
    channel = models.UUIDField(null=True)
    acquirer_merchant_id = models.CharField(max_length=64, default="")
    state = models.CharField(max_length=9)
    since = models.DateTimeField(db_index=True)
    why = models.CharField(max_length=200, default="")

    def __str__(self) -> str:
        return f"{self.connector} {self.acquirer_merchant_id}: {self.state}"
