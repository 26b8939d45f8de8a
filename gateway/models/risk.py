"""Risk rule sets, lists, decisions, rule trials, and the counts behind velocities and the card-testing guard."""

from __future__ import annotations

from datetime import timedelta

from django.db import models

from gateway.core import identifiers
from gateway.models.approvals import BackgroundWork
from gateway.models.entities import Merchant
from gateway.models.payments import Payment


class RiskSet(models.Model):
    """A merchant's rule set. ``key``: the value of risk.channelId that selects it; ``document``: as written
    (gateway.risk.rule_sets), validated when saved; ``version``: raised by every change. Source: Part B, Risk."""

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="risk_sets", db_index=False)
    key = models.CharField(max_length=255)
    document = models.JSONField()
    active = models.BooleanField(default=True)
    version = models.IntegerField(default=1)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["key"]
        constraints = [models.UniqueConstraint(fields=["merchant", "key"], name="risk_set_key")]

    def __str__(self) -> str:
        return self.key


class RiskList(models.Model):
    """A merchant's list of values of one field, used by rules."""

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="risk_lists", db_index=False)
    name = models.CharField(max_length=64)
    field = models.CharField(max_length=80)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["merchant", "name"], name="risk_list_name")]

    def __str__(self) -> str:
        return self.name


class RiskListEntry(models.Model):
    """One value of a list. A card or an account is named by a payment made with it (``value`` is that payment's id):
    its number is sealed, so that its fingerprint can follow the vault's keys."""

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    list = models.ForeignKey(RiskList, on_delete=models.CASCADE, related_name="entries", db_index=False)
    value = models.CharField(max_length=512)
    account_sealed = models.BinaryField(null=True)
    fingerprint = models.BinaryField(null=True)

    class Meta:
        ordering = ["value"]
        verbose_name_plural = "risk list entries"
        constraints = [models.UniqueConstraint(fields=["list", "value"], name="risk_list_entry")]
        indexes = [
            models.Index(
                fields=["fingerprint"], name="risk_list_account", condition=models.Q(fingerprint__isnull=False)
            )
        ]

    def __str__(self) -> str:
        return self.value


class RiskDecision(models.Model):
    """The risk decision on a payment: by which version of which set ('' for the card-testing guard), and why.

    ``reasons``: [{rule, why, score or verdict}]; they contain limits and counts, never what the shopper sent.
    """

    payment = models.OneToOneField(
        Payment, on_delete=models.PROTECT, primary_key=True, related_name="risk_decision", db_constraint=False
    )
    set_key = models.CharField(max_length=255, default="")
    version = models.IntegerField(default=0)
    outcome = models.CharField(max_length=8)
    code = models.CharField(max_length=11, default="")
    score = models.IntegerField(null=True)
    reasons = models.JSONField(default=list)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.outcome} {self.code}"


class RiskObservation(models.Model):
    """A payment counted by velocities under one field. ``key`` is the vault's keyed fingerprint of the value, so the
    table reveals no e-mail or address; ``at`` is the merchant's clock. Retained for the longest window."""

    id = models.BigAutoField(primary_key=True)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    key = models.BinaryField(max_length=16)
    at = models.DateTimeField()
    payment = models.UUIDField()
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)

    class Meta:
        indexes = [models.Index(fields=["merchant", "key", "at"], name="risk_observation")]


class CardTestingCount(models.Model):
    """Failed card payments of one address, device or BIN in one time slice, and approved ones while the guard was
    counting. Several ``shard`` rows, so that concurrent payments do not wait for each other. ``bucket``: the slice's
    number on the merchant's clock; ``at``: real time, for deletion. Unlogged: not worth a write-ahead log."""

    pk = models.CompositePrimaryKey("merchant_id", "kind", "key", "bucket", "shard")
    merchant_id = models.UUIDField()
    kind = models.CharField(max_length=8)
    key = models.BinaryField(max_length=16)
    bucket = models.BigIntegerField()
    shard = models.SmallIntegerField()
    failed = models.IntegerField()
    passed = models.IntegerField()
    at = models.DateTimeField()


class CardDecline(models.Model):
    """A decline that an issuer gave a card at a merchant, for the schemes' retry rules (gateway.risk.retry_rules).

    ``key``: the vault's keyed fingerprint of the card; ``at``: the merchant's clock; ``stops``: 'card' after which it
    is not sent again, 'merchant' not by the merchant, or ''; ``retry_after``: until when, None for the rule's days.
    Retained for the longest rule.
    """

    id = models.BigAutoField(primary_key=True)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    key = models.BinaryField(max_length=16)
    at = models.DateTimeField()
    payment = models.UUIDField()
    stops = models.CharField(max_length=8, default="")
    retry_after = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["merchant", "key", "at"], name="card_decline")]


class RiskTrial(models.Model):
    """A trial of a rule set on past payments; the payments are not changed (gateway.backoffice.risk.rule_trials).

    ``document``: the set as tried, saved or not; ``lists``: lists as tried, where they differ from the saved ones:
    name → {field, entries}. ``whole``: all of the merchant's payments, else those that the set screens.
    ``since``/``until``: the merchant's clock. ``figures``: the results, once it is finished.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="risk_trials")
    set_key = models.CharField(max_length=255)
    document = models.JSONField()
    lists = models.JSONField(default=dict)
    whole = models.BooleanField(default=False)
    since = models.DateTimeField()
    until = models.DateTimeField()
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    work = models.ForeignKey(BackgroundWork, on_delete=models.SET_NULL, null=True, related_name="+")
    figures = models.JSONField(default=dict)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-asked_at"]

    def __str__(self) -> str:
        return f"{self.set_key}, {self.since:%Y-%m-%d} – {self.until - timedelta(days=1):%Y-%m-%d}"


class RiskTrialPayment(models.Model):
    """A payment matched by the rules of a trial. ``original_outcome``: what risk decided of it,
    ``trial_outcome``: what the trial's rules would decide (gateway.risk.evaluation); ``matching_rules``: positions of
    the rules that match; ``undecided_rules``: [position, field or check] that stored data cannot decide."""

    id = models.BigAutoField(primary_key=True)
    trial = models.ForeignKey(RiskTrial, on_delete=models.CASCADE, related_name="payments", db_index=False)
    payment = models.UUIDField()
    at = models.DateTimeField()
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    status = models.CharField(max_length=8)
    original_outcome = models.CharField(max_length=8)
    trial_outcome = models.CharField(max_length=8)
    code = models.CharField(max_length=11, default="")
    score = models.IntegerField(null=True)
    matching_rules = models.JSONField(default=list)
    undecided_rules = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "payment"], name="risk_trial_payment")]


class RiskTrialObservation(models.Model):
    """What a trial's velocities count, like RiskObservation; deleted when the trial ends."""

    id = models.BigAutoField(primary_key=True)
    trial = models.ForeignKey(RiskTrial, on_delete=models.CASCADE, related_name="observations", db_index=False)
    key = models.BinaryField(max_length=16)
    at = models.DateTimeField()
    payment = models.UUIDField()
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "key", "at", "payment"], name="risk_trial_observation")]
