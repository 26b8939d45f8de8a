"""The table of month closings: who prepared, signed and reopened a merchant's month, with the figures signed.

Verbs live in reporting.month_end.closing. Source: decision 0091.
"""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from gateway.core import identifiers
from gateway.db import guards
from gateway.models import Merchant

MAX_CLOSING_NOTE_CHARS: Final = 500


class MonthClosing(models.Model):
    """One attempt to close a merchant's month. Times are real time.

    ``month``: its first day. ``figures``: the statement as it was prepared and signed (amounts are texts), and
    ``digest`` its SHA-256. ``prepared_by``/``signed_by``/``reopened_by``: users' keys; the names next to them stay when
    a user is deleted. ``note``: of the first person; ``answer``: why the second person returned it; ``reason``: why it
    was reopened.
    """

    class State(models.TextChoices):
        PREPARED = "PREPARED", _("waits for a second person")
        SIGNED = "SIGNED", _("closed")
        RETURNED = "RETURNED", _("returned")
        WITHDRAWN = "WITHDRAWN", _("withdrawn")
        REOPENED = "REOPENED", _("reopened")

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    month = models.DateField()
    state = models.CharField(max_length=9, choices=State, default=State.PREPARED)
    figures = models.JSONField()
    digest = models.CharField(max_length=64)
    note = models.CharField(max_length=MAX_CLOSING_NOTE_CHARS, default="", blank=True)
    answer = models.CharField(max_length=MAX_CLOSING_NOTE_CHARS, default="", blank=True)
    reason = models.CharField(max_length=MAX_CLOSING_NOTE_CHARS, default="", blank=True)
    prepared_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    prepared_by_name = models.CharField(max_length=150)
    prepared_at = models.DateTimeField()
    signed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, db_index=False
    )
    signed_by_name = models.CharField(max_length=150, default="")
    signed_at = models.DateTimeField(null=True)
    reopened_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, db_index=False
    )
    reopened_by_name = models.CharField(max_length=150, default="")
    reopened_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "reporting"
        verbose_name = "month"
        verbose_name_plural = "months"
        triggers = guards.never_deleted()
        constraints = [
            models.UniqueConstraint(
                fields=["merchant", "month"],
                name="month_closing_once",
                condition=models.Q(state__in=["PREPARED", "SIGNED"]),
            ),
            models.CheckConstraint(
                condition=models.Q(signed_by=None) | ~models.Q(signed_by=models.F("prepared_by")),
                name="month_closing_two_people",
            ),
            models.CheckConstraint(condition=models.Q(month__day=1), name="month_closing_first_day"),
        ]
        indexes = [models.Index(fields=["merchant", "-month", "-prepared_at"], name="month_closing_merchant")]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}"
