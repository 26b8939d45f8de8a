"""Timer statistics, one row per timer, for the back office and metrics. No decision depends on these rows."""

from __future__ import annotations

from django.db import models


class TimerRun(models.Model):
    """Statistics of one timer's runs, on all machines together. Real time.

    ``last_at``: when the last recorded run began, ``last_ms`` how long it took; runs are recorded every few seconds
    (gateway.timers.registry.RUN_STATISTICS_INTERVAL). ``done``: things done; ``failures``: runs that ended with an
    error, ``last_failure`` its kind; ``busy``: wake-ups that found the timer running already.
    """

    name = models.CharField(max_length=40, primary_key=True)
    last_at = models.DateTimeField()
    last_ms = models.IntegerField()
    runs = models.BigIntegerField(default=0)
    done = models.BigIntegerField(default=0)
    failures = models.BigIntegerField(default=0)
    busy = models.BigIntegerField(default=0)
    failed_at = models.DateTimeField(null=True)
    last_failure = models.CharField(max_length=200, default="", blank=True)

    def __str__(self) -> str:
        return self.name
