"""Subscription jobs and their runs: columns and constraints only. What changes them is in job_runs and schedules."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from gateway.core import identifiers
from gateway.models import Channel, Merchant


class Job(models.Model):
    """A subscription: a plan by which a stored means is charged. Its id is that of the SD payment that created it.
    Source: Part B, Scheduling.

    Times are the merchant's clock, but for ``lease_until``.

    - ``agreement``: the agreement its charges count towards (None: the request names one of another processor).
    - ``request``: the echo of the schedule's parameters without amount, currency and paymentType, which are columns;
      each run sends all of them again.
    - ``expression``: cron, in ``zone``.
    - ``starts_at``: no run before.
    - ``ends_at``: no run then or later; None: no end yet.
    - ``next_at``: the next run or the end (None while SUSPENDED or ENDED).
    - ``reason``: why it is not ACTIVE.
    - ``declined``: declines in a row.
    - ``late``: late runs made up for in a row.
    - ``lease_until``: real time, while a worker processes it.
    - ``sequence``: counts changes and runs, for optimistic locking.
    """

    class State(models.TextChoices):
        ACTIVE = "ACTIVE"
        ENDING = "ENDING", "notice was given: it runs until ends_at"
        SUSPENDED = "SUSPENDED", "it waits for the merchant: reschedule takes it up again"
        ENDED = "ENDED"

    class Reason(models.TextChoices):
        NONE = ""
        NOTICE = "NOTICE", "notice was given"
        COMPLETED = "COMPLETED", "its time was over"
        DECLINED = "DECLINED", "it was declined too often"
        DO_NOT_RETRY = "DO_NOT_RETRY", "the issuer or the bank forbids another try"
        AUTHENTICATION_NEEDED = "AUTHENTICATION_NEEDED", "the issuer wants the shopper to confirm"
        CARD_EXPIRED = "CARD_EXPIRED"
        REGISTRATION_GONE = "REGISTRATION_GONE", "the registration was deleted or is past its retention period"
        AGREEMENT_ENDED = "AGREEMENT_ENDED", "the standing instruction allows no further payment"
        PAUSED = "PAUSED", "somebody paused it"
        NOT_SET_UP = "NOT_SET_UP", "the channel does not take this payment any more"

    class Callable(models.TextChoices):
        AT_ONCE = "", "no notice period"
        ANYTIME = "ANYTIME"
        DURATION_END = "DURATION_END"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, related_name="jobs")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False, related_name="jobs")
    registration = models.UUIDField()
    agreement = models.UUIDField(null=True)
    state = models.CharField(max_length=9, choices=State, default=State.ACTIVE)
    reason = models.CharField(max_length=24, choices=Reason, default=Reason.NONE, blank=True)
    name = models.CharField(max_length=64, default="", blank=True)
    payment_type = models.CharField(max_length=2)
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    test_mode = models.CharField(max_length=8, default="", blank=True)
    request = models.JSONField(default=dict)
    merchant_memo = models.CharField(max_length=255, default="", blank=True)
    expression = models.CharField(max_length=256)
    zone = models.CharField(max_length=64)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True)
    duration_unit = models.CharField(max_length=6, default="", blank=True)
    duration_number = models.BigIntegerField(default=0)
    notice_unit = models.CharField(max_length=6, default="", blank=True)
    notice_number = models.BigIntegerField(default=0)
    notice_callable = models.CharField(max_length=12, choices=Callable, default=Callable.AT_ONCE, blank=True)
    next_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    declined = models.SmallIntegerField(default=0)
    late = models.SmallIntegerField(default=0)
    sequence = models.IntegerField(default=1)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["next_at"], name="job_due", condition=models.Q(next_at__isnull=False)),
            models.Index(
                fields=["merchant", "next_at"], name="job_merchant_due", condition=models.Q(next_at__isnull=False)
            ),
            models.Index(fields=["merchant", "-created_at"], name="job_merchant_time"),
            models.Index(fields=["registration"], name="job_registration"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=("ACTIVE", "ENDING"), next_at__isnull=False)
                | models.Q(state__in=("SUSPENDED", "ENDED"), next_at__isnull=True),
                name="job_live_has_next",
            ),
            models.CheckConstraint(condition=models.Q(amount__gt=0), name="job_amount_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.name or self.expression} {self.amount} {self.currency} ({self.state})"


class JobRun(models.Model):
    """One due time of a job and its outcome: one row per due time, at most one open payment at a time.

    Times are the merchant's clock, but for ``lease_until``.

    - ``payment``: the latest try.
    - ``earlier``: the payments before it.
    - ``attempt``: its number.
    - ``code``: the result code of the latest try, or of the refusal without a payment.
    - ``next_at``: while OPEN the next recheck, while RETRYING the next try.
    - ``missed_until``: the last due time that a MISSED row covers.
    - ``retry_choices``: of each retry why it is made when it is (gateway.scheduling.retry_choice).
    """

    class State(models.TextChoices):
        OPEN = "OPEN", "paying, or its outcome is not known yet"
        PAID = "PAID"
        RETRYING = "RETRYING", "declined: it is tried again"
        FAILED = "FAILED"
        SKIPPED = "SKIPPED", "the channel was switched off"
        MISSED = "MISSED", "too late to be made up for"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="runs", db_index=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, related_name="+")
    due_at = models.DateTimeField()
    state = models.CharField(max_length=8, choices=State)
    attempt = models.SmallIntegerField(default=1)
    payment = models.UUIDField(null=True)
    earlier = ArrayField(models.UUIDField(), default=list, blank=True)
    code = models.CharField(max_length=11, default="", blank=True)
    next_at = models.DateTimeField(null=True)
    missed_until = models.DateTimeField(null=True)
    retry_choices = models.JSONField(default=list, db_default=[], blank=True)
    lease_until = models.DateTimeField(null=True)
    at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(
                fields=["merchant", "next_at"], name="run_merchant_due", condition=models.Q(next_at__isnull=False)
            ),
            models.Index(fields=["next_at"], name="run_due", condition=models.Q(next_at__isnull=False)),
            models.Index(fields=["payment"], name="run_payment", condition=models.Q(payment__isnull=False)),
        ]
        constraints = [models.UniqueConstraint(fields=["job", "due_at"], name="run_once")]

    def __str__(self) -> str:
        return f"{self.due_at:%Y-%m-%d %H:%M} ({self.state})"


class RetryRate(models.Model):
    """Outcomes of this installation's retries in one cell (gateway.scheduling.retry_rates), counted anew each day.

    ``cell``: rate, day, weekday or hour. ``code``, ``advice``: result code and merchant advice code of the decline
    before; ``issuer``: the bank of the table of BINs, else six digits; '' each: all. ``value``: the day, day of the
    week or hour. ``expected``: approvals that the wider cells let expect. ``counted_at``: real time.
    """

    id = models.BigAutoField(primary_key=True)
    cell = models.CharField(max_length=7)
    code = models.CharField(max_length=11, default="", blank=True)
    advice = models.CharField(max_length=2, default="", blank=True)
    issuer = models.CharField(max_length=128, default="", blank=True)
    value = models.SmallIntegerField(default=0)
    tries = models.IntegerField()
    approved = models.IntegerField()
    expected = models.FloatField()
    counted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["issuer", "cell", "code", "advice", "value"], name="retry_rate_once")
        ]

    def __str__(self) -> str:
        return f"{self.cell} {self.code} {self.issuer} {self.value}: {self.approved} of {self.tries}"
