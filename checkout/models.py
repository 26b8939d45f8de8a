"""Checkouts, the calls they owe, and which brands they offer. Columns and constraints; verbs live elsewhere.

Source: Part A, What the service does, 8; States and transitions; Events, 2; decisions, section 7.
"""

from __future__ import annotations

import secrets
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models

from checkout import offer_rules
from gateway.core import identifiers
from gateway.models import Channel, Merchant, Payment, WalletKey


def random_id() -> UUID:
    """A checkout's id is a capability: 128 random bits (D14)."""
    return UUID(bytes=secrets.token_bytes(16))


def node() -> str:
    return str(settings.GATEWAY_NODE)


class Checkout(models.Model):
    """What a merchant prepared and a shopper pays. Times are the merchant's clock.

    ``request``: the merchant's parameters by full name; those that are secret are in ``request_sealed`` (JSON), if any.
    ``payment``: the payment of the last attempt; whether another may follow is told by that payment alone.
    ``version`` is raised by every change, so that of two that read the same checkout one changes it: an attempt
    begins in the statement that raises it. ``hidden``: brands that were not offered, code → why. ``fetched_at``: when
    the merchant read the result of the last attempt.
    """

    class Kind(models.TextChoices):
        PAYMENT = "payment"
        REGISTRATION = "registration"

    id = models.UUIDField(primary_key=True, default=random_id, editable=False)
    node = models.CharField(max_length=15, default=node, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False)
    kind = models.CharField(max_length=12, choices=Kind)
    request = models.JSONField(default=dict)
    request_sealed = models.BinaryField(null=True)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, null=True, db_constraint=False)
    attempts = models.SmallIntegerField(default=0)
    version = models.IntegerField(default=1)
    hidden = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    fetched_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["merchant", "-created_at"], name="checkout_merchant_time"),
            models.Index(
                fields=["expires_at"], name="checkout_sealed", condition=models.Q(request_sealed__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        """Without the id, which is a key to the checkout."""
        return f"checkout of {self.created_at:%Y-%m-%d %H:%M:%S}"

    @property
    def public_id(self) -> str:
        """32 upper-case hex digits, a hyphen, the node (D14)."""
        return f"{self.id.hex.upper()}-{self.node}"


class ResultCall(models.Model):
    """A merchant has to be called: a payment was started and its result was not fetched.

    The row is written with the payment it speaks of and goes when the merchant fetches the result, was reached, or the
    checkout has ended; a later attempt of the same checkout replaces it, so a checkout owes one call at most.
    ``due_at`` and ``called_at`` (the last try) are the merchant's clock, ``lease_until`` is real time: until then the
    call is being made. Source: Part A, Events, 2.
    """

    payment = models.OneToOneField(
        Payment, on_delete=models.PROTECT, primary_key=True, related_name="result_call", db_constraint=False
    )
    checkout = models.ForeignKey(Checkout, on_delete=models.CASCADE, related_name="result_calls", db_constraint=False)
    due_at = models.DateTimeField(db_index=True)
    called_at = models.DateTimeField(null=True)
    attempts = models.SmallIntegerField(default=0, db_default=0)
    lease_until = models.DateTimeField(null=True)


class CallAttempt(models.Model):
    """One GET to a merchant's shopperResultUrl. ``at``: when it was over, the merchant's clock; ``status``: what was
    answered, or None and in ``failure`` why there was no answer."""

    id = models.BigAutoField(primary_key=True)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="call_attempts", db_constraint=False)
    checkout = models.ForeignKey(Checkout, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    number = models.SmallIntegerField()
    at = models.DateTimeField()
    status = models.SmallIntegerField(null=True)
    duration_ms = models.IntegerField()
    failure = models.CharField(max_length=200, default="", blank=True)


def _conditions(value: Any) -> None:
    if faults := offer_rules.check_offer_conditions(value):
        raise ValidationError("; ".join(faults))


class OfferRule(models.Model):
    """When which brands are offered in a checkout: the first rule by ``position`` that speaks of a brand decides.

    ``conditions``: all of them must hold (checkout.offer_rules). ``brands``: empty means every brand. ``reason`` is
    what a clerk reads beside the checkout. Without a channel it is for all channels of the merchant.
    Source: Part A, What the service does, 8 (Active Payment Method Selection).
    """

    class Action(models.TextChoices):
        HIDE = "hide", "do not offer"
        SHOW = "show", "offer"

    merchant = models.ForeignKey(Merchant, on_delete=models.CASCADE, related_name="offer_rules")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, null=True, blank=True, related_name="offer_rules")
    position = models.PositiveSmallIntegerField(default=100)
    name = models.CharField(max_length=64)
    action = models.CharField(max_length=4, choices=Action, default=Action.HIDE)
    brands = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    conditions = models.JSONField(default=dict, blank=True, validators=[_conditions])
    reason = models.CharField(max_length=200, blank=True)
    active = models.BooleanField(default=True)

    class Meta:
        ordering = ["merchant_id", "position", "id"]
        constraints = [
            models.UniqueConstraint(fields=["merchant", "name"], name="offer_rule_name"),
            models.CheckConstraint(condition=models.Q(action__in=["hide", "show"]), name="offer_rule_action_known"),
        ]

    def __str__(self) -> str:
        return self.name


class WalletProvider(models.Model):
    """The provider behind one wallet of a channel: with it a page opens the provider's own sheet instead of ours.

    ``settings``: what a page may know of it (checkout.wallet_providers), and ``domains`` and ``validationHosts``
    (wallet 1). ``identity_sealed``: JSON with ``certificate`` and ``key`` (PEM), by which the provider knows the
    merchant. Source: Part A, What the service does, 8 and 9.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="wallet_providers", db_index=False)
    wallet = models.CharField(max_length=7, choices=WalletKey.Wallet)
    settings = models.JSONField(default=dict)
    identity_sealed = models.BinaryField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "wallet"], name="wallet_provider_once"),
            models.CheckConstraint(
                condition=models.Q(wallet__in=["wallet1", "wallet2", "wallet3"]), name="wallet_provider_wallet_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.wallet} of {self.channel_id}"


class PageSnapshot(models.Model):
    """What the payment page loads and sends, kept whenever it has changed (PCI DSS 11.6.1).

    ``channel``: the channel whose wallet scripts it tells of; None: the installation's own scripts and headers.
    ``facts``: name → hash, address or header; ``changes``: what is different from the one before, as
    [{"name", "before", "after"}], None for what was not there.
    """

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, null=True, related_name="+")
    facts = models.JSONField()
    changes = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S}"


class PageReview(models.Model):
    """Who looked at a snapshot's changes, and when. ``merchant``: for which; None: for the whole installation."""

    id = models.BigAutoField(primary_key=True)
    snapshot = models.ForeignKey(PageSnapshot, on_delete=models.CASCADE, related_name="reviews", db_index=False)
    merchant = models.UUIDField(null=True)
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["snapshot", "merchant"], name="page_review_once", nulls_distinct=False)
        ]


class PolicyViolation(models.Model):
    """What browsers reported that a content security policy stopped, added up.

    ``page``: origin and path without anything that could identify a shopper; ``blocked``: an origin or a keyword such
    as "inline". ``reporter``: a digest of the day and network that reported it last (checkout.csp_reports).
    """

    id = models.BigAutoField(primary_key=True)
    page = models.CharField(max_length=300)
    directive = models.CharField(max_length=40)
    blocked = models.CharField(max_length=300)
    count = models.BigIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField(db_index=True)
    reporter = models.CharField(max_length=16, default="", editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["page", "directive", "blocked"], name="policy_violation_once"),
        ]
