"""Tables of checkouts: checkouts, payment links, result calls, offer rules, wallet providers, page snapshots and policy
violations.

Columns and constraints only; verbs live elsewhere. Source: Part A, What the service does, 8; States and transitions;
Events, 2; decisions, section 7.
"""

from __future__ import annotations

import secrets
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext as _

from checkout import offer_rules
from gateway.core import identifiers
from gateway.db import guards
from gateway.models import Channel, Merchant, Payment, WalletKey


def random_id() -> UUID:
    """A new id of a checkout or payment link. It is a capability: 128 random bits (D14)."""
    return UUID(bytes=secrets.token_bytes(16))


def node() -> str:
    """The node's name, the suffix of public ids (D14)."""
    return str(settings.GATEWAY_NODE)


class PaymentLink(models.Model):
    """An address at which shoppers pay a merchant on the hosted payment page. Times are the merchant's clock.

    Its id is its capability. Only ``deactivated_at`` and ``version`` change after it was made. ``request``: the
    parameters of the payments that it makes, by full name, none of them secret. ``amount``: None for an open amount,
    which the shopper chooses from ``min_amount`` to ``max_amount``. ``max_payments``: how often it is paid at most, 1
    for a single-use link, None without a limit. ``version`` is incremented by each payment that a link with a limit
    begins, so of two that count the same others one begins (checkout.payment_links). ``created_by``: the user, '' for
    the API.
    Source: docs/decisions/0083.
    """

    id = models.UUIDField(primary_key=True, default=random_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False)
    description = models.CharField(max_length=200, default="", blank=True)
    request = models.JSONField(default=dict)
    amount = models.DecimalField(max_digits=18, decimal_places=2, null=True)
    currency = models.CharField(max_length=3)
    min_amount = models.DecimalField(max_digits=18, decimal_places=2, null=True)
    max_amount = models.DecimalField(max_digits=18, decimal_places=2, null=True)
    max_payments = models.IntegerField(null=True)
    expires_at = models.DateTimeField(null=True)
    deactivated_at = models.DateTimeField(null=True)
    version = models.IntegerField(default=1)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150, default="", blank=True)

    class Meta:
        indexes = [models.Index(fields=["merchant", "-created_at"], name="payment_link_merchant_time")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(amount__gt=0, min_amount=None, max_amount=None)
                | models.Q(amount=None, min_amount__gt=0, max_amount__gte=models.F("min_amount")),
                name="payment_link_amount",
            ),
            models.CheckConstraint(
                condition=models.Q(max_payments=None) | models.Q(max_payments__gte=1), name="payment_link_max_payments"
            ),
        ]
        triggers = guards.never_deleted()

    def __str__(self) -> str:
        """Without the id, by which anybody can pay."""
        return self.description or f"{self.created_at:%Y-%m-%d %H:%M:%S}"

    @property
    def public_id(self) -> str:
        """32 lower-case hex digits."""
        return self.id.hex


class Checkout(models.Model):
    """A payment or registration prepared by a merchant for one shopper. Times are the merchant's clock.

    - ``request``: the merchant's parameters by full name; secret ones are in ``request_sealed`` (JSON), if any.
    - ``payment``: the payment of the last attempt, which alone determines if another may follow.
    - ``version`` is incremented by every change, so of two requests that read the same checkout only one changes it: an
      attempt begins in the statement that increments it.
    - ``hidden_brands``: those that were not offered, code → why.
    - ``fetched_at``: when the merchant read the result of the last attempt.
    - ``link``: the payment link that it was opened by.
    - ``parts``: the payments before the last one that hold parts of the amount (checkout.parts).
    - ``rest``: what the last one was begun for, None for the whole amount.
    """

    class Kind(models.TextChoices):
        PAYMENT = "payment"
        REGISTRATION = "registration"

    id = models.UUIDField(primary_key=True, default=random_id, editable=False)
    node = models.CharField(max_length=15, default=node, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False)
    link = models.ForeignKey(PaymentLink, on_delete=models.PROTECT, null=True, related_name="checkouts", db_index=False)
    kind = models.CharField(max_length=12, choices=Kind)
    request = models.JSONField(default=dict)
    request_sealed = models.BinaryField(null=True)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, null=True, db_constraint=False)
    attempts = models.SmallIntegerField(default=0)
    version = models.IntegerField(default=1)
    hidden_brands = models.JSONField(default=dict)
    parts = ArrayField(models.UUIDField(), default=list, db_default=[])
    rest = models.DecimalField(max_digits=18, decimal_places=2, null=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    fetched_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["merchant", "-created_at"], name="checkout_merchant_time"),
            models.Index(
                fields=["expires_at"], name="checkout_sealed", condition=models.Q(request_sealed__isnull=False)
            ),
            models.Index(fields=["link", "payment"], name="checkout_of_link", condition=models.Q(link__isnull=False)),
            models.Index(
                fields=["expires_at"],
                name="checkout_unused_of_link",
                condition=models.Q(link__isnull=False, attempts=0),
            ),
            models.Index(
                fields=["expires_at"], name="checkout_unused", condition=models.Q(link__isnull=True, attempts=0)
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(rest=None) | models.Q(rest__gt=0), name="checkout_rest_positive")
        ]

    def __str__(self) -> str:
        """Without the id, which grants access to the checkout."""
        return _("Checkout of %(at)s") % {"at": f"{self.created_at:%Y-%m-%d %H:%M:%S}"}

    @property
    def public_id(self) -> str:
        """32 upper-case hex digits, a hyphen, the node (D14)."""
        return f"{self.id.hex.upper()}-{self.node}"


class ResultCall(models.Model):
    """A due call to a merchant who has not fetched the result of a started payment.

    The row is written with the payment and deleted when the merchant fetches the result, was reached, or the checkout
    has ended; a later attempt of the same checkout replaces it, so a checkout has one at most. ``due_at`` and
    ``called_at`` (the last attempt) are the merchant's clock, ``lease_until`` is real time, while the call is being
    made. Source: Part A, Events, 2.
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
    """One GET to a merchant's shopperResultUrl. ``at``: its end, by the merchant's clock; ``status``: of the answer, or
    None with the reason in ``failure``."""

    id = models.BigAutoField(primary_key=True)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="call_attempts", db_constraint=False)
    checkout = models.ForeignKey(Checkout, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    number = models.SmallIntegerField()
    at = models.DateTimeField()
    status = models.SmallIntegerField(null=True)
    duration_ms = models.IntegerField()
    failure = models.CharField(max_length=200, default="", blank=True)


def validate_offer_conditions(value: Any) -> None:
    """Raise ValidationError unless ``value`` is a list of offer conditions."""
    if faults := offer_rules.check_offer_conditions(value):
        raise ValidationError("; ".join(faults))


class OfferRule(models.Model):
    """A rule that hides or shows brands in a checkout: the first rule by ``position`` that names a brand and holds
    decides.

    ``conditions``: all of them must hold (checkout.offer_rules). ``brands``: empty means every brand. ``reason``: shown
    to a clerk on the checkout's page. Without a channel it is for all channels of the merchant. Source: Part A, What
    the service does, 8 (Active Payment Method Selection).
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
    conditions = models.JSONField(default=dict, blank=True, validators=[validate_offer_conditions])
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
    """The provider of one wallet of a channel: with it a page opens the provider's own sheet instead of the simulated
    one.

    ``settings``: what a page may know of it (checkout.wallet_providers), and ``domains`` and ``validationHosts``
    (wallet 1). ``identity_sealed``: JSON with ``certificate`` and ``key`` (PEM), which identify the merchant to the
    provider. Source: Part A, What the service does, 8 and 9.
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


_COLOUR = RegexValidator("^#[0-9a-fA-F]{6}$", "Give a colour as #rrggbb, such as #0f766e.")


class PaymentPageStyle(models.Model):
    """How the hosted payment page of a channel looks. Colours are #rrggbb, '' for the page's own; ``logo``: a PNG that
    was drawn anew from the uploaded picture (checkout.page_style)."""

    channel = models.OneToOneField(Channel, on_delete=models.CASCADE, primary_key=True, related_name="+")
    accent = models.CharField(
        max_length=7, default="", blank=True, validators=[_COLOUR], help_text="Buttons, such as #0f766e."
    )
    header = models.CharField(
        max_length=7,
        default="",
        blank=True,
        validators=[_COLOUR],
        help_text="The ground of name and logo, such as #ffffff.",
    )
    logo = models.BinaryField(null=True)

    def __str__(self) -> str:
        return str(self.channel)


class ReceiptMail(models.Model):
    """A receipt that a shopper had mailed from the hosted payment page. ``due_at``, ``lease_until``: real time.
    ``to`` is emptied once the mail was sent or given up."""

    class State(models.TextChoices):
        DUE = "DUE", "to be sent"
        SENT = "SENT", "sent"
        GIVEN_UP = "GIVEN_UP", "given up"

    id = models.BigAutoField(primary_key=True)
    checkout = models.ForeignKey(Checkout, on_delete=models.CASCADE, related_name="receipt_mails", db_constraint=False)
    to = models.CharField(max_length=254, blank=True)
    language = models.CharField(max_length=2)
    due_at = models.DateTimeField()
    state = models.CharField(max_length=8, choices=State, default=State.DUE, db_default=State.DUE)
    tries = models.SmallIntegerField(default=0, db_default=0)
    lease_until = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["due_at"], condition=models.Q(state="DUE"), name="receipt_mail_due")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["DUE", "SENT", "GIVEN_UP"]), name="receipt_mail_state_known"
            )
        ]


class PageSnapshot(models.Model):
    """What the payment page loads and sends, stored whenever it has changed (PCI DSS 11.6.1).

    ``channel``: the channel whose wallet scripts it lists; None: the installation's own scripts and headers. ``facts``:
    name → hash, address or header; ``changes``: differences from the previous snapshot, as [{"name", "before",
    "after"}], None for what did not exist.
    """

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, null=True, related_name="+")
    facts = models.JSONField()
    changes = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S}"


class PageReview(models.Model):
    """A user's review of a snapshot's changes. ``merchant``: for which merchant; None: for the whole installation."""

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
    """A content security policy violation reported by browsers, counted.

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
