"""The entity tree: PSP → division → merchant → channel, and the acquirer accounts of a channel.

An ``entityId`` is a channel's id, or a merchant's where channel dispatching is active. Source: Part A, Authentication.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from gateway.core import identifiers
from gateway.core.authorization_validity import (
    ESTIMATED_AUTHORIZATION,
    EVERY_OTHER_BRAND,
    FINAL_AUTHORIZATION,
    MAX_AUTHORIZATION_DAYS,
)
from gateway.core.brands import PAYMENT_BRANDS
from gateway.db import guards

MAX_CLOCK_OFFSET = timedelta(days=366 * 50)


class Entity(models.Model):
    """Base of every node of the tree."""

    id = models.UUIDField(primary_key=True, default=identifiers.entity_id, editable=False)
    name = models.CharField(max_length=128)
    active = models.BooleanField(default=True, help_text="An inactive entity is refused like an unknown one.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name

    @property
    def entity_id(self) -> str:
        """The id as the API writes it: 32 lower-case hex digits."""
        return self.id.hex


class Psp(Entity):
    """The payment service provider that runs the gateway."""

    class Meta:
        verbose_name = "PSP"
        verbose_name_plural = "PSPs"


class Division(Entity):
    """A part of the provider that has merchants of its own."""

    psp = models.ForeignKey(Psp, on_delete=models.PROTECT, related_name="divisions")


class Merchant(Entity):
    """A merchant. ``dispatching``: the merchant's own id is accepted as entityId and a channel is chosen by brand and
    currency. ``clock_offset``: how far the test environment has moved this merchant's clock."""

    division = models.ForeignKey(Division, on_delete=models.PROTECT, related_name="merchants")
    dispatching = models.BooleanField(
        default=False, help_text="Accept the merchant's id as entityId; the channel is chosen by brand and currency."
    )
    time_zone = models.CharField(max_length=64, default="UTC")
    clock_offset = models.DurationField(default=timedelta(0), editable=False)

    class Meta:
        triggers = guards.never_deleted()

    @property
    def works(self) -> bool:
        """True unless the merchant or a node above it is switched off."""
        return self.active and self.division.active and self.division.psp.active


def validate_throttle_limits(value: Any) -> None:
    """Raise ValidationError unless ``value`` gives a request limit for each operation it names."""
    if not isinstance(value, dict):
        raise ValidationError("Give an object: operation → {limit, window_s}.")
    for operation, limit in value.items():
        if operation not in THROTTLED_OPERATIONS:
            raise ValidationError(f"{operation} is not one of {', '.join(THROTTLED_OPERATIONS)}.")
        if limit is None:
            continue
        if (
            not isinstance(limit, dict)
            or set(limit) != {"limit", "window_s"}
            or not all(isinstance(n, int) and 0 < n <= 1_000_000 for n in limit.values())
        ):
            raise ValidationError(f"{operation}: give limit (requests) and window_s (seconds), or null for no limit.")


CARD_TESTING_SETTINGS = {"failures": (0, 10_000), "binFailures": (0, 100_000), "windowSeconds": (60, 3600)}
"""Keys of ``Channel.card_testing`` besides ``enabled`` → least and greatest value."""


def validate_card_testing(value: Any) -> None:
    """Raise ValidationError unless ``value`` holds settings of the card-testing guard."""
    if not isinstance(value, dict):
        raise ValidationError("Give an object: enabled, failures, binFailures, windowSeconds.")
    for name, own in value.items():
        if name == "enabled":
            if not isinstance(own, bool):
                raise ValidationError("enabled: give true or false.")
        elif name not in CARD_TESTING_SETTINGS:
            raise ValidationError(f"{name} is not one of enabled, {', '.join(CARD_TESTING_SETTINGS)}.")
        else:
            least, most = CARD_TESTING_SETTINGS[name]
            if not isinstance(own, int) or isinstance(own, bool) or not least <= own <= most:
                raise ValidationError(f"{name}: give a whole number from {least} to {most}.")


MAX_REVERSAL_HOURS: Final = 8_760
DEFAULT_REVERSAL_HOURS: Final = 24
"""Acquirers clear once a day."""
MAX_DESCRIPTOR_CHARS: Final = 127
"""Characters of a descriptor. Source: Part A, Basic payment."""


THROTTLED_OPERATIONS = (
    "*", "payment", "follow-up", "registration", "status", "checkout", "widget", "query", "report", "test",
)  # fmt: skip
"""Keys of ``Channel.limits``: an operation, or ``*`` for every operation that is not listed."""


def validate_authorization_days(value: Any) -> None:
    """Raise ValidationError unless ``value`` gives the days of each brand that it names."""
    if not isinstance(value, dict):
        raise ValidationError("Give an object: brand → days.")
    for brand, days in value.items():
        if brand != EVERY_OTHER_BRAND and brand not in PAYMENT_BRANDS:
            raise ValidationError(f"{brand} is not a brand of this gateway, nor * for every other one.")
        whole = isinstance(days, int) and not isinstance(days, bool) and 1 <= days <= MAX_AUTHORIZATION_DAYS
        if days is not None and not whole:
            raise ValidationError(f"{brand}: give 1 to {MAX_AUTHORIZATION_DAYS} days, or null for no end.")


class Channel(Entity):
    """One integration of a merchant: what it accepts, and how strictly requests are read.

    - ``brands``/``currencies``: empty means all.
    - ``brand_order``: which brand of a co-badged card goes first; brands that it lacks come after.
    - ``limits``: operation → {limit, window_s}, null = unlimited; an operation that is not listed follows ``*``, then
      the settings' default.
    - ``descriptor``: statement descriptor of payments that are sent without one; empty: the merchant's name
      (gateway.payments.descriptors).
    - ``authorization_days``: brand → days that an authorization is valid, null = without an end, ``*`` = every other
      brand; else by gateway.core.authorization_validity.
    - ``reversal_hours``: how long a debit may be reversed; 0 = until it is settled.
    - ``exemptions``: which exemptions from strong authentication are asked for, as the section ``exemptions`` of the
      configuration has them; empty: none (gateway.threeds.exemption_rules).
    - ``network_tokens``: docs/decisions/0126.
    - ``account_updater``: docs/decisions/0135.
    """

    class Parameters(models.TextChoices):
        NORMAL = "normal", "unknown names are ignored and reported, near misses are errors"
        STRICT = "strict", "every unknown name is an error"
        LENIENT = "lenient", "no unknown name is an error"

    class AgreementIds(models.TextChoices):
        """Card on file: by which ids merchant-initiated payments name their agreement. Source: Part B, Card on file."""

        NONE = "none", "initialTransactionId; an agreementId goes along when it is sent"
        BOTH = "both", "transition: initialTransactionId and agreementId, both returned and both expected"
        ONLY = "only", "agreementId alone"

    class AuthorizationKind(models.TextChoices):
        """What a PA says of its amount."""

        ESTIMATED = ESTIMATED_AUTHORIZATION, _("preauthorization: the amount may change")
        FINAL = FINAL_AUTHORIZATION, _("final authorization: it will be captured as it is")

    class ExpiredCaptures(models.TextChoices):
        """What becomes of a capture after its authorization has expired."""

        REFUSE = "refuse", _("refused; the rest is released at expiry")
        RENEW = "renew", _("the authorization is renewed first; nothing is released at expiry")

    class PartialApprovals(models.TextChoices):
        """What becomes of a payment that is approved for less than was asked for."""

        REQUEST = "request", _("asked for: the issuer is told that a part will do")
        ACCEPT = "accept", _("accepted: the payment is approved with what was granted")
        COLLECT = "collect", _("held in a form: the shopper pays the rest, or has it given back")
        DECLINE = "decline", _("reversed at once: the payment is declined")

    class RetryTiming(models.TextChoices):
        """What chooses the time of a declined subscription charge's next try."""

        TABLE = "table", _("by the table: after 3, 5 and 7 days")
        OUTCOMES = "outcomes", _("by the outcomes of earlier retries")

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="channels")
    position = models.PositiveSmallIntegerField(default=100, help_text="Dispatching takes the lowest that fits.")
    brands = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    currencies = ArrayField(models.CharField(max_length=3), default=list, blank=True)
    brand_order = ArrayField(models.CharField(max_length=32), default=list, db_default=[], blank=True)
    parameters = models.CharField(max_length=8, choices=Parameters, default=Parameters.NORMAL)
    three_d_secure = models.BooleanField("3-D Secure", default=False)
    cvv_required = models.BooleanField("CVV required", default=False)
    refuse_duplicates = models.BooleanField(
        default=False, help_text="Refuse a second payment with the same merchantTransactionId."
    )
    mask_card_data = models.BooleanField(
        "mask card data",
        default=True,
        db_default=True,
        help_text="Card numbers and security codes in free text are masked before they are stored.",
    )
    agreement_ids = models.CharField(max_length=4, choices=AgreementIds, default=AgreementIds.NONE)
    external_references = models.BooleanField(
        default=False,
        help_text="Accept an initialTransactionId that is not of this gateway: agreements made at another processor.",
    )
    network_tokens = models.BooleanField(default=False, db_default=False)
    account_updater = models.BooleanField(default=False, db_default=False)
    registration_days = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="How long a registration is kept; empty keeps it until it is deleted."
    )
    time_zone = models.CharField(
        max_length=64,
        default="",
        db_default="",
        blank=True,
        help_text="The zone of subscription jobs, e.g. Europe/Berlin; empty: the merchant's.",
    )
    descriptor = models.CharField(
        max_length=MAX_DESCRIPTOR_CHARS,
        default="",
        db_default="",
        blank=True,
        help_text="The statement text of payments that are sent without one; empty: the merchant's name.",
    )
    authorization_kind = models.CharField(
        max_length=9,
        choices=AuthorizationKind,
        default=AuthorizationKind.ESTIMATED,
        db_default=AuthorizationKind.ESTIMATED,
    )
    authorization_days = models.JSONField(
        default=dict, db_default={}, blank=True, validators=[validate_authorization_days]
    )
    expired_captures = models.CharField(
        max_length=6, choices=ExpiredCaptures, default=ExpiredCaptures.REFUSE, db_default=ExpiredCaptures.REFUSE
    )
    partial_approvals = models.CharField(
        max_length=7, choices=PartialApprovals, default=PartialApprovals.ACCEPT, db_default=PartialApprovals.ACCEPT
    )
    retry_timing = models.CharField(
        max_length=8, choices=RetryTiming, default=RetryTiming.TABLE, db_default=RetryTiming.TABLE
    )
    reversal_hours = models.PositiveSmallIntegerField(
        default=DEFAULT_REVERSAL_HOURS,
        db_default=DEFAULT_REVERSAL_HOURS,
        validators=[MaxValueValidator(MAX_REVERSAL_HOURS)],
    )
    limits = models.JSONField(default=dict, blank=True, validators=[validate_throttle_limits])
    risk_set = models.CharField(
        max_length=255, default="", blank=True, help_text="Key of the rule set that screens; risk.channelId goes first."
    )
    card_testing = models.JSONField(
        default=dict,
        blank=True,
        validators=[validate_card_testing],
        help_text="The guard against card testing, where it differs from the settings.",
    )
    exemptions = models.JSONField(default=dict, db_default={}, blank=True)

    class Meta:
        ordering = ["merchant_id", "position", "created_at"]
        triggers = guards.never_deleted()

    @property
    def accepted_brand_order(self) -> list[str]:
        """``brand_order`` without the brands that the channel does not take."""
        return [code for code in self.brand_order if not self.brands or code in self.brands]


class AcquirerAccount(models.Model):
    """A merchant's account at a processor. ``connector``: a connector of gateway.connectors; ``settings``: values of
    the connector's settings; ``secrets_sealed``: those that are secret, a JSON object, sealed for this row.
    ``secrets_set``: name of each secret → when it was set, ISO 8601.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="acquirer_accounts")
    connector = models.CharField(max_length=32)
    name = models.CharField(max_length=128, blank=True)
    acquirer_merchant_id = models.CharField(max_length=64)
    brands = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    currencies = ArrayField(models.CharField(max_length=3), default=list, blank=True)
    settings = models.JSONField(default=dict, blank=True)
    secrets_sealed = models.BinaryField(null=True, editable=False)
    secrets_set = models.JSONField(default=dict, blank=True, editable=False, db_default={})
    active = models.BooleanField(default=True)

    class Meta:
        ordering = ["channel_id", "id"]
        constraints = [
            # Payments refer to their account by these.
            models.UniqueConstraint(
                fields=["channel", "connector", "acquirer_merchant_id"], name="acquirer_account_once"
            )
        ]

    def __str__(self) -> str:
        return self.name or f"{self.connector} {self.acquirer_merchant_id}"
