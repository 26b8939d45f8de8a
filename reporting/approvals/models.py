"""Tables of approval rates: the alarms."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from gateway.models import Merchant


class RateAlarm(models.Model):
    """The approval rate of a segment of one merchant's payments fell, and not by chance (reporting.approvals.alarms).

    - ``kind``: all, brand, acquirer or bin.
    - ``segment``: which.
    - ``since``, ``until``: the hours that are compared, of the last run that saw the fall, on the merchant's clock.
    - ``attempts``, ``approved``: in them.
    - ``before_attempts``, ``before_approved``: in the same hours of the days before.
    - ``chance``: how probable so deep a fall is by chance.
    - ``found_at``, ``ended_at``: real time; None while it lasts.
    """

    id = models.BigAutoField(primary_key=True)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    kind = models.CharField(max_length=8)
    segment = models.CharField(max_length=100)
    since = models.DateTimeField()
    until = models.DateTimeField()
    attempts = models.IntegerField()
    approved = models.IntegerField()
    before_attempts = models.IntegerField()
    before_approved = models.IntegerField()
    chance = models.FloatField()
    found_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "reporting"
        verbose_name = _("alarm of the approval rate")
        verbose_name_plural = _("alarms of the approval rate")
        constraints = [
            models.UniqueConstraint(
                fields=["merchant", "kind", "segment"],
                name="rate_alarm_open_once",
                condition=models.Q(ended_at__isnull=True),
            )
        ]
        indexes = [models.Index(fields=["merchant", "-found_at"], name="rate_alarm_merchant")]

    def __str__(self) -> str:
        return f"{self.kind} {self.segment}"
