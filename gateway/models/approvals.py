"""Approval requests that a second person decides, hand-made money moves, and background work of the back office.

Functions: gateway.backoffice.follow_ups.approvals, gateway.backoffice.follow_ups.bulk_follow_ups,
gateway.background.queue.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from gateway.core import identifiers
from gateway.models.entities import Merchant
from gateway.models.payments import Payment


class Approval(models.Model):
    """A follow-up payment that one user requested and another one decides. Times are real time.

    ``payment``: the payment that the follow-up refers to. ``follow_up``: the follow-up's id, given by the statement
    that approves, so that there is one however often it is carried out. ``asked_by``/``decided_by``: users' keys; the
    names next to them stay when a user is deleted. ``reason``: one of gateway.backoffice.follow_ups.reasons. ``over``:
    which limit of the requester was exceeded; ``over_limit`` its amount and ``moved`` what of it was used before.
    ``notice``: the mail that is still to be sent about it (gateway.backoffice.follow_ups.approval_notice), in
    ``language``, of the user who asked.
    """

    class Notice(models.TextChoices):
        REQUEST = "request", "to those who may decide"
        DECISION = "decision", "to the user who asked"

    class Over(models.TextChoices):
        PAYMENT = "payment", _("the limit for one payment")
        DAY = "day", _("the limit for 24 hours")

    class State(models.TextChoices):
        ASKED = "ASKED", "waits for a decision"
        APPROVED = "APPROVED", "approved, being carried out"
        DONE = "DONE", "carried out"
        FAILED = "FAILED", "approved, but refused"
        REJECTED = "REJECTED", "rejected"
        WITHDRAWN = "WITHDRAWN", "withdrawn"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="approvals")
    payment_type = models.CharField(max_length=2)
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    reason = models.CharField(max_length=9, blank=True, default="", db_default="")
    note = models.CharField(max_length=500, blank=True, default="")
    state = models.CharField(max_length=9, choices=State, default=State.ASKED)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    asked_by_name = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, db_index=False
    )
    decided_by_name = models.CharField(max_length=150, default="")
    decided_at = models.DateTimeField(null=True)
    decision_note = models.CharField(max_length=500, blank=True, default="")
    follow_up = models.UUIDField(null=True)
    result_code = models.CharField(max_length=11, default="")
    over = models.CharField(max_length=7, choices=Over, default=Over.PAYMENT, db_default=Over.PAYMENT)
    over_limit = models.DecimalField(max_digits=14, decimal_places=2, null=True)
    moved = models.DecimalField(max_digits=16, decimal_places=2, null=True)
    notice = models.CharField(max_length=8, choices=Notice, blank=True, default="", db_default="")
    language = models.CharField(max_length=8, blank=True, default="", db_default="")

    class Meta:
        indexes = [
            models.Index(fields=["merchant", "-asked_at"], name="approval_merchant_time"),
            models.Index(fields=["asked_at"], name="approval_to_mail", condition=~models.Q(notice="")),
            models.Index(fields=["decided_at"], name="approval_to_carry_out", condition=models.Q(state="APPROVED")),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(amount__gt=0), name="approval_amount_positive"),
            # Four eyes must be enforced even where the code forgets: the database refuses approving one's own request.
            models.CheckConstraint(
                condition=models.Q(state__in=["ASKED", "WITHDRAWN", "REJECTED"])
                | (models.Q(decided_by__isnull=False) & ~models.Q(decided_by=models.F("asked_by"))),
                name="approval_by_somebody_else",
            ),
            models.CheckConstraint(
                condition=~models.Q(state__in=["APPROVED", "DONE", "FAILED"]) | models.Q(follow_up__isnull=False),
                name="approval_names_its_follow_up",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.payment_type} {self.amount} {self.currency} ({self.state})"


class ClerkLimitUsage(models.Model):
    """Money that a user moved by hand: without a second person, or by approving another user's request.

    ``user``: the key of the responsible user. ``payment``: the follow-up, which is written later than this row when it
    was approved. ``at``: real time. Retained as long as limits look back (gateway.backoffice.follow_ups.clerk_limits).
    """

    payment = models.UUIDField(primary_key=True)
    user = models.BigIntegerField()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, related_name="+")
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["user", "merchant", "at"], name="clerk_limit_usage_time")]


class ClerkLimitCounter(models.Model):
    """How often a user moved money by hand in a merchant. Each move increments it by compare-and-set, so that of two
    that read the same sum one begins and the other one reads again."""

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    user = models.BigIntegerField()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, related_name="+")
    moves = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "merchant"], name="clerk_limit_counter_once")]


class BackgroundWork(models.Model):
    """A long task requested in the back office: an export, a bulk replay, an import (gateway.background.queue).

    ``kind``: a row of gateway.background.queue.WORK_KINDS. ``parameters``: its input. ``cursor``: where the next slice
    begins; it moves with ``done`` by compare-and-set on ``slices``. ``total`` is None until it is known. ``file``: path
    below GATEWAY_WORK_DIR, empty for none. ``lease_until``: real time, while a worker runs it.
    """

    class State(models.TextChoices):
        WAITING = "WAITING", "waits"
        RUNNING = "RUNNING", "runs"
        DONE = "DONE", "done"
        FAILED = "FAILED", "failed"
        CANCELLED = "CANCELLED", "cancelled"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    kind = models.CharField(max_length=32)
    title = models.CharField(max_length=200)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    parameters = models.JSONField(default=dict)
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(null=True)
    cursor = models.JSONField(default=dict)
    slices = models.IntegerField(default=0)
    failures = models.SmallIntegerField(default=0)
    file = models.CharField(max_length=200, default="")
    message = models.CharField(max_length=500, default="")
    lease_until = models.DateTimeField(null=True)
    asked_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "background work"
        verbose_name_plural = "background work"
        indexes = [
            models.Index(fields=["owner", "-asked_at"], name="work_owner_time"),
            models.Index(fields=["asked_at"], name="work_to_do", condition=models.Q(state__in=["WAITING", "RUNNING"])),
        ]

    def __str__(self) -> str:
        return self.title


class BulkAction(models.Model):
    """One kind of follow-up for many payments, which a user asked for (gateway.backoffice.follow_ups.bulk_follow_ups).

    ``code``: the payment type; ``selection``: payments by id or the filters of a list. Its items are first looked at
    and nothing is sent; the user then confirms. ``work``: the background work of the present step. ``undo_of``: the
    action whose captures this one takes back. Times are real time.
    """

    class State(models.TextChoices):
        CHECKING = "CHECKING", _("being checked")
        CHECKED = "CHECKED", _("checked, nothing sent")
        RUNNING = "RUNNING", _("being sent")
        DONE = "DONE", _("carried out")

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    code = models.CharField(max_length=2)
    reason = models.CharField(max_length=9, blank=True, default="")
    note = models.CharField(max_length=500, blank=True, default="")
    selection = models.JSONField(default=dict)
    state = models.CharField(max_length=8, choices=State, default=State.CHECKING)
    work = models.ForeignKey(BackgroundWork, on_delete=models.PROTECT, related_name="+", null=True, db_index=False)
    undo_of = models.ForeignKey("self", on_delete=models.PROTECT, related_name="+", null=True, db_index=False)
    asked_at = models.DateTimeField()
    checked_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("action on many payments")
        verbose_name_plural = _("actions on many payments")
        indexes = [models.Index(fields=["owner", "-asked_at"], name="bulk_action_owner_time")]

    def __str__(self) -> str:
        return f"{self.code} ({self.state})"


class BulkItem(models.Model):
    """What a bulk action does to one payment, or why it does nothing.

    ``payment``: the one that was chosen; ``target``: the member of its chain that the follow-up goes to. ``follow_up``:
    the follow-up's id, given when the item is checked, so that there is one however often it is carried out. An item
    that becomes a request for approval gives it its own id. ``why``: in the language of the owner.
    """

    class State(models.TextChoices):
        READY = "READY", _("will be sent")
        OVER_LIMIT = "OVER", _("needs approval")
        IMPOSSIBLE = "NOT", _("not possible")
        DONE = "DONE", _("accepted")
        OPEN = "OPEN", _("sent, no answer yet")
        DECLINED = "DECLINED", _("declined")
        ASKED = "ASKED", _("asked for approval")
        REFUSED = "REFUSED", _("not sent")

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    action = models.ForeignKey(BulkAction, on_delete=models.CASCADE, related_name="items", db_index=False)
    payment = models.UUIDField()
    target = models.UUIDField()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="+", db_index=False)
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    state = models.CharField(max_length=8, choices=State)
    why = models.CharField(max_length=500, default="")
    follow_up = models.UUIDField()

    class Meta:
        indexes = [models.Index(fields=["action", "state", "id"], name="bulk_item_action_state")]
        constraints = [models.UniqueConstraint(fields=["action", "target"], name="bulk_item_once")]
