"""Mails to shoppers about mandates and collections (SEPA direct debit). Written with the payment's state, sent by a
timer."""

from __future__ import annotations

from django.db import models

from gateway.models.entities import Merchant
from gateway.models.payments import Payment


class MandateMail(models.Model):
    """The mail about a mandate, caused by the approved direct debit that first used the mandate, or the notice of a
    later collection.

    ``due_at``, ``sent_at``: the merchant's clock; ``lease_until``: real time, when it is tried next. ``failure``: why
    the last try failed. The sent text is stored as sent, because it is a merchant's evidence.
    Source: Part A, Customer (email), Bank account.
    """

    class Kind(models.TextChoices):
        MANDATE = "MANDATE", "mandate"
        NOTICE = "NOTICE", "pre-notification"

    class State(models.TextChoices):
        DUE = "DUE", "to be sent"
        SENT = "SENT", "sent"
        KNOWN = "KNOWN", "not needed: the shopper knows, or the merchant notifies"
        GIVEN_UP = "GIVEN_UP", "given up"

    payment = models.OneToOneField(
        Payment, on_delete=models.PROTECT, primary_key=True, related_name="mandate_mail", db_constraint=False
    )
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    kind = models.CharField(max_length=7, choices=Kind, default=Kind.MANDATE, db_default=Kind.MANDATE)
    mandate = models.CharField(max_length=256)
    due_at = models.DateTimeField()
    state = models.CharField(max_length=8, choices=State, default=State.DUE, db_default=State.DUE)
    tries = models.SmallIntegerField(default=0, db_default=0)
    lease_until = models.DateTimeField(null=True)
    failure = models.CharField(max_length=200, default="", db_default="", blank=True)
    sent_at = models.DateTimeField(null=True)
    sent_to = models.CharField(max_length=128, default="", db_default="", blank=True)
    language = models.CharField(max_length=2, default="", db_default="", blank=True)
    subject = models.CharField(max_length=400, default="", db_default="", blank=True)
    body = models.TextField(default="", db_default="", blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(state="DUE"), name="mandate_mail_due"),
            models.Index(fields=["merchant", "mandate"], name="mandate_mail_mandate"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["DUE", "SENT", "KNOWN", "GIVEN_UP"]), name="mandate_mail_state_known"
            )
        ]

    def __str__(self) -> str:
        return f"{self.mandate} {self.state}"
