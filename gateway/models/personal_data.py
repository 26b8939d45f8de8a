"""Requests to erase one person's data, and how far account numbers have left old payments."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from gateway.core import identifiers
from gateway.db import guards
from gateway.models.entities import Merchant


class ErasureRequest(models.Model):
    """A request to erase one shopper's data at one merchant, which a second user approves. Times are real time.

    ``kind`` and ``value``: by what the person is found (gateway.personal_data.people); ``value`` is emptied when the
    request ends, ``shown`` is its masked form. ``report``: what was erased and what stayed, as counts and reasons
    without the data (gateway.personal_data.erasure); its ids of payments let the same be erased again after an older
    backup was restored. APPROVED: it takes longer than a page may, so `manage.py forget_shopper --request` carries it
    out. Source: docs/decisions/0102 and 0110.
    """

    class Kind(models.TextChoices):
        EMAIL = "email", _("e-mail address")
        CUSTOMER = "customer", _("customer id")
        PHONE = "phone", _("telephone number")
        REGISTRATION = "registration", _("registration id")
        PAYMENT = "payment", _("payment id")

    class State(models.TextChoices):
        ASKED = "ASKED", _("waits for a second person")
        APPROVED = "APPROVED", _("approved, waits for the command")
        DONE = "DONE", _("erased")
        REJECTED = "REJECTED", _("rejected")
        WITHDRAWN = "WITHDRAWN", _("withdrawn")

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    kind = models.CharField(max_length=12, choices=Kind)
    value = models.CharField(max_length=255, default="")
    shown = models.CharField(max_length=255)
    reason = models.CharField(max_length=500)
    state = models.CharField(max_length=9, choices=State, default=State.ASKED)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, db_index=False
    )
    asked_by_name = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, db_index=False
    )
    decided_by_name = models.CharField(max_length=150, default="")
    decided_at = models.DateTimeField(null=True)
    report = models.JSONField(default=dict)

    class Meta:
        verbose_name = _("erasure request")
        verbose_name_plural = _("erasure requests")
        triggers = guards.never_deleted()
        indexes = [models.Index(fields=["merchant", "-asked_at"], name="erasure_merchant_time")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["ASKED", "APPROVED"]) | models.Q(value=""),
                name="erasure_ended_keeps_no_value",
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=["APPROVED", "DONE"])
                | models.Q(asked_by__isnull=True)
                | (models.Q(decided_by__isnull=False) & ~models.Q(decided_by=models.F("asked_by"))),
                name="erasure_by_two_people",
            ),
        ]

    def __str__(self) -> str:
        return self.shown


class AccountErasurePosition(models.Model):
    """How far account numbers have left old payments: one row. ``position``: the id of the last payment that was looked
    at; payments' ids rise with time (gateway.personal_data.account_retention)."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    position = models.UUIDField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="account_erasure_position_is_one_row")]
