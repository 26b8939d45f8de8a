"""Routing rules with their targets, and state changes of circuit breakers. Columns and constraints; functions are in
gateway.connectors."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy

from gateway.core import identifiers
from gateway.core.bin_table import MAX_BIN_TEXT_CHARS
from gateway.models.entities import AcquirerAccount, Channel

MAX_RULE_CASCADES: Final = 2
"""Most further accounts that a rule may name for a declined payment."""
MAX_RATE_LOSS: Final = 20
MIN_RATE_LOSS: Final = Decimal("0.01")
"""Of a rule that chooses the cheapest: with 0 no account but the best could be certain not to be worse."""
MAX_EXPLORED_PERCENT: Final = 20


class RoutingRule(models.Model):
    """One rule of a channel: the first that matches a payment, by ``position``, decides which accounts may take it.

    Empty conditions always match. ``bins``: ranges of leading digits, ``from-to``, both with 6 to 11 digits and both
    included. ``amount_from`` and ``amount_to`` are included, and apply to payments in ``amount_currency`` only.
    ``countries``: of billing.country. ``issuer_countries``, ``card_types``, ``card_levels``: by the table of BINs
    (gateway.core.bin_table). ``max_cascades``: to how many further accounts a declined payment may go on
    (gateway.payments.cascade); 0 to none. ``choose_by``, ``max_rate_loss``, ``explored_percent``: how its accounts are
    chosen (gateway.connectors.account_choice); empty: drawn by weight.
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
    issuer_countries = ArrayField(models.CharField(max_length=2), default=list, db_default=[], blank=True)
    card_types = ArrayField(models.CharField(max_length=7), default=list, db_default=[], blank=True)
    card_levels = ArrayField(models.CharField(max_length=MAX_BIN_TEXT_CHARS), default=list, db_default=[], blank=True)
    max_cascades = models.PositiveSmallIntegerField(default=0, db_default=0)

    class ChooseBy(models.TextChoices):
        """How a rule chooses among its accounts."""

        WEIGHT = "", gettext_lazy("their weights")
        CHEAPEST = "cheapest", gettext_lazy("the cheapest whose approval rate is not worse")
        RATE = "rate", gettext_lazy("the best approval rate")

    choose_by = models.CharField(max_length=8, choices=ChooseBy, default=ChooseBy.WEIGHT, db_default="", blank=True)
    max_rate_loss = models.DecimalField(max_digits=4, decimal_places=2, default=0, db_default=0)
    explored_percent = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        ordering = ["channel_id", "position", "id"]
        indexes = [models.Index(fields=["channel", "position"], name="routing_channel_position")]
        constraints = [
            models.UniqueConstraint(fields=["channel", "name"], name="routing_rule_name"),
            models.CheckConstraint(
                condition=models.Q(max_cascades__lte=MAX_RULE_CASCADES), name="routing_rule_max_cascades"
            ),
            models.CheckConstraint(condition=Q(choose_by__in=["", "cheapest", "rate"]), name="routing_rule_choose_by"),
            models.CheckConstraint(
                condition=Q(max_rate_loss__gte=0, max_rate_loss__lte=MAX_RATE_LOSS), name="routing_rule_rate_loss"
            ),
            models.CheckConstraint(
                condition=Q(explored_percent__lte=MAX_EXPLORED_PERCENT), name="routing_rule_explored"
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


class AcquirerCost(models.Model):
    """What payments cost at an acquirer account from a day on (UTC), until a row with the same conditions and a later
    day. Empty conditions match every payment; ``region``: the issuer's country, EEA or NON-EEA; ``level``: the card's
    type or level in the table of BINs; ``currency``: of the payment and of the fixed parts. Blended: ``percent`` and
    ``fixed`` are all that is paid; interchange-plus: they are the acquirer's margin."""

    class Pricing(models.TextChoices):
        """How an acquirer charges."""

        BLENDED = "BLENDED", gettext_lazy("blended")
        INTERCHANGE_PLUS = "PLUS", gettext_lazy("interchange-plus")

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    account = models.ForeignKey(AcquirerAccount, on_delete=models.PROTECT, related_name="costs", db_index=False)
    pricing = models.CharField(max_length=7, choices=Pricing, default=Pricing.BLENDED)
    brand = models.CharField(max_length=32, default="", blank=True)
    region = models.CharField(max_length=7, default="", blank=True)
    level = models.CharField(max_length=16, default="", blank=True)
    currency = models.CharField(max_length=3, default="", blank=True)
    percent = models.DecimalField(max_digits=7, decimal_places=4, default=0)
    fixed = models.DecimalField(max_digits=12, decimal_places=4, default=0)
    interchange_percent = models.DecimalField(max_digits=7, decimal_places=4, default=0)
    interchange_fixed = models.DecimalField(max_digits=12, decimal_places=4, default=0)
    scheme_percent = models.DecimalField(max_digits=7, decimal_places=4, default=0)
    scheme_fixed = models.DecimalField(max_digits=12, decimal_places=4, default=0)
    valid_from = models.DateField()

    class Meta:
        ordering = ["account_id", "brand", "region", "level", "currency", "-valid_from"]
        constraints = [
            models.UniqueConstraint(
                fields=["account", "brand", "region", "level", "currency", "valid_from"], name="acquirer_cost_once"
            ),
            models.CheckConstraint(
                condition=Q(fixed=0, interchange_fixed=0, scheme_fixed=0) | ~Q(currency=""),
                name="acquirer_cost_fixed_has_currency",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.account} {self.valid_from}"


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
