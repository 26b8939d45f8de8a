"""Where settlement files are fetched: one SFTP server an institute, and the files that were seen there; and what they
have not told of in time. Columns and constraints; verbs live in reporting.settlement.sftp_fetch and
reporting.settlement.unsettled_reminders. Source: decisions 0032, 0042."""

from __future__ import annotations

from django.db import models

from gateway.core import identifiers
from gateway.models import Merchant
from reporting.models import ClearingInstitute, SettlementFile


class SftpSource(models.Model):
    """The server on which an institute leaves its files. ``host_key`` and ``secret_sealed``: as of an SftpTarget.

    ``pattern``: which names are files of settlement (``*`` and ``?``). ``then``: what becomes of a file there that was
    taken in; ``moved_to``: below ``folder``, for those that are moved. ``every_s``: between two looks. ``due_at``,
    ``lease_until``, ``looked_at``: real time. ``failures``: how many looks in a row have failed; ``why``: the last one.
    """

    class Secrets(models.TextChoices):
        PASSWORD = "password"  # noqa: S105 - the kind of secret, not one
        KEY = "key", "private key"

    class Then(models.TextChoices):
        LEAVE = "leave", "leave it there"
        MOVE = "move", "move it to another folder"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    institute = models.OneToOneField(ClearingInstitute, on_delete=models.PROTECT, related_name="sftp_source")
    host = models.CharField(max_length=255)
    port = models.PositiveIntegerField(default=22)
    username = models.CharField(max_length=64)
    secret_kind = models.CharField(max_length=8, choices=Secrets)
    secret_sealed = models.BinaryField()
    host_key = models.CharField(max_length=1024)
    folder = models.CharField(max_length=255, default=".")
    pattern = models.CharField(max_length=64, default="*")
    then = models.CharField(max_length=5, choices=Then, default=Then.LEAVE)
    moved_to = models.CharField(max_length=64, default="done")
    every_s = models.PositiveIntegerField(default=300)
    active = models.BooleanField(default=True)
    due_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(null=True)
    failures = models.IntegerField(default=0)
    why = models.CharField(max_length=500, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "reporting"
        verbose_name = "SFTP source"
        indexes = [models.Index(fields=["due_at"], name="sftp_source_due", condition=models.Q(active=True))]

    def __str__(self) -> str:
        return f"sftp://{self.username}@{self.host}:{self.port}/{self.folder}"


class RemoteFile(models.Model):
    """A file that was seen at a source, by its name. ``size`` and ``modified`` (its server's clock, seconds): as last
    seen; it is whole when a later look finds both the same. ``seen_at``: when they were seen first. ``file``: what it
    became here; ``moved_at``: when it was moved away there. ``why``: what keeps it from being taken in, or moved."""

    class State(models.TextChoices):
        SEEN = "SEEN", "waits until it is whole"
        TAKEN = "TAKEN", "taken in"
        REFUSED = "REFUSED"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    source = models.ForeignKey(SftpSource, on_delete=models.PROTECT, related_name="files", db_index=False)
    name = models.CharField(max_length=255)
    size = models.BigIntegerField()
    modified = models.BigIntegerField()
    seen_at = models.DateTimeField()
    state = models.CharField(max_length=7, choices=State, default=State.SEEN)
    why = models.CharField(max_length=500, default="")
    file = models.ForeignKey(SettlementFile, on_delete=models.PROTECT, null=True, db_index=False)
    moved_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "reporting"
        ordering = ["-seen_at"]
        constraints = [models.UniqueConstraint(fields=["source", "name"], name="remote_file_once")]
        indexes = [models.Index(fields=["source", "-seen_at"], name="remote_file_time")]

    def __str__(self) -> str:
        return self.name


class Owed(models.Model):
    """Payments of a merchant that an institute should have settled, and no line tells of: one row a day, while there
    are any. ``day``: the merchant's, in the institute's time zone. ``payments``: how many, when it was last looked; of
    days before the last one: 0. ``sums``: currency → amount, a text. ``lease_until``, ``looked_at``, ``sent_at``: real
    time. ``sent_to``: who was told, empty where nobody wants to be."""

    id = models.BigAutoField(primary_key=True)
    institute = models.ForeignKey(ClearingInstitute, on_delete=models.PROTECT, db_index=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    day = models.DateField()
    payments = models.IntegerField()
    sums = models.JSONField(default=dict)
    looked_at = models.DateTimeField()
    tries = models.SmallIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    sent_to = models.CharField(max_length=1000, default="")

    class Meta:
        app_label = "reporting"
        verbose_name_plural = "owed"
        constraints = [models.UniqueConstraint(fields=["institute", "merchant", "day"], name="owed_once_a_day")]
        indexes = [models.Index(fields=["merchant"], name="owed_now", condition=models.Q(payments__gt=0))]

    def __str__(self) -> str:
        return f"{self.payments} on {self.day}"
