"""Exemptions from strong customer authentication that channels' rules asked for, and what cards used of the limits."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from gateway.models.entities import Channel, Merchant
from gateway.models.payments import Payment


class ExemptionCount(models.Model):
    """What a card has used at a merchant of the limits of EU 2018/389, article 16, since its last strong
    authentication here. ``key``: the vault's keyed fingerprint of the card; ``amount``: EUR; ``authentications``: how
    often it was authenticated, which tells an older use from a newer one; ``used_at``: when it was counted or
    authenticated last, by the database's clock. Source: docs/decisions/0105."""

    pk = models.CompositePrimaryKey("merchant_id", "key")
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    key = models.BinaryField(max_length=16)
    payments = models.SmallIntegerField()
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    authentications = models.IntegerField()
    used_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["used_at"], name="exemption_count_used")]


class ExemptionRequest(models.Model):
    """An exemption that the rules of its channel asked for a payment, and why. ``stage``: of gateway.threeds.
    exemption_rules, ``stage_why`` as of StageChoice; ``euros``: the amount that ``amount_limit`` (EUR) was compared
    with; ``payments``, ``amount``: of ExemptionCount with this payment, None where it is not counted;
    ``authentications``: of the card when it was counted."""

    payment = models.OneToOneField(
        Payment, on_delete=models.PROTECT, primary_key=True, related_name="exemption_request", db_constraint=False
    )
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    exemption = models.CharField(max_length=16)
    stage = models.CharField(max_length=14)
    stage_why = models.CharField(max_length=12)
    euros = models.DecimalField(max_digits=14, decimal_places=2, null=True)
    amount_limit = models.DecimalField(max_digits=14, decimal_places=2, null=True)
    score = models.IntegerField(null=True)
    payments = models.SmallIntegerField(null=True)
    amount = models.DecimalField(max_digits=14, decimal_places=2, null=True)
    authentications = models.IntegerField(null=True)
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["channel", "exemption", "stage", "at"], name="exemption_outcome")]

    def __str__(self) -> str:
        return f"{self.exemption} {self.stage}"
