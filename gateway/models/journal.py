"""The notification outbox, the request log, the audit log and idempotency keys."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from gateway.core import identifiers
from gateway.db import guards
from gateway.models.entities import Channel, Merchant
from gateway.models.payments import Payment


class Notification(models.Model):
    """Outbox row: an event for a merchant's webhook endpoints, written in the transaction of the state change.

    ``sequence`` is the payment's event number, so that receivers can put notifications in order. ``subject``: what it
    is about instead of a payment (a dispute alert). Its references are
    written by the statement that writes what they refer to, so the database need not look them up.
    """

    id = models.BigAutoField(primary_key=True)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    kind = models.CharField(max_length=12)
    action = models.CharField(max_length=12)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, null=True, db_index=False, db_constraint=False)
    registration = models.UUIDField(null=True)
    subject = models.UUIDField(null=True)
    sequence = models.SmallIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["payment", "sequence", "kind"], name="notification_sequence")]


class RequestLog(models.Model):
    """One API request, found by its ``ndc``. ``parameters``: what was sent, masked, if no payment stores it.

    Partitioned by month of ``id`` (gateway.db.partitions): who asks for a time asks for ids, too.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id)
    at = models.DateTimeField()
    method = models.CharField(max_length=8)
    path = models.CharField(max_length=200)
    status = models.SmallIntegerField()
    result_code = models.CharField(max_length=11)
    entity_id = models.UUIDField(null=True)
    token = models.UUIDField(null=True)
    ip = models.GenericIPAddressField(null=True)
    duration_ms = models.IntegerField()
    payment = models.UUIDField(null=True)
    parameters = models.JSONField(null=True)

    class Meta:
        verbose_name = "request"
        verbose_name_plural = "request log"
        indexes = [models.Index(fields=["entity_id", "id"], name="request_entity_id")]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def ndc(self) -> str:
        return identifiers.format_ndc(self.id, self.entity_id.hex if self.entity_id else "")


class AuditEntry(models.Model):
    """Audit log entry: who changed what in the back office or by a command, or looked at sensitive data. Append-only
    (enforced by the database). ``merchant``: the owner; None for what belongs to the installation."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(auto_now_add=True)
    actor = models.CharField(max_length=150)
    ip = models.GenericIPAddressField(null=True)
    action = models.CharField(max_length=32)
    subject = models.CharField(max_length=64)
    subject_id = models.CharField(max_length=64)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    merchant = models.UUIDField(null=True)

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit trail")
        triggers = guards.append_only()
        indexes = [
            models.Index(fields=["subject", "subject_id"], name="audit_subject"),
            models.Index(fields=["merchant", "-id"], name="audit_merchant", condition=models.Q(merchant__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.subject} {self.subject_id}"


class IdempotencyKey(models.Model):
    """One ``Idempotency-Key`` of one token, method and path (D20), claimed in the transaction that begins its payment.

    ``fingerprint``: the vault's keyed fingerprint of the body without the CVV. ``answer``: the stored answer, None
    while the payment is being made. Keys use real time and are deleted after 24 hours.
    """

    pk = models.CompositePrimaryKey("token", "method", "path", "key")
    token = models.UUIDField()
    method = models.CharField(max_length=8)
    path = models.CharField(max_length=64)
    key = models.CharField(max_length=255)
    fingerprint = models.BinaryField(max_length=16)
    payment = models.UUIDField()
    status = models.SmallIntegerField(null=True)
    answer = models.TextField(null=True)
    created_at = models.DateTimeField(db_index=True)


class AuditSeal(models.Model):
    """The place of an audit entry in the hash chain: ``digest`` is the SHA-256 of the seal before it and the entry.

    ``number``: its place, from 1 without gaps. ``entry``: the entry's key. Entries are sealed in the order in which
    they were committed, which need not be that of their keys. Verbs: gateway.backoffice.access.audit_seals.
    """

    number = models.BigIntegerField(primary_key=True)
    entry = models.BigIntegerField(unique=True)
    digest = models.CharField(max_length=64)
    sealed_at = models.DateTimeField()

    class Meta:
        triggers = guards.append_only()
        constraints = [models.CheckConstraint(condition=models.Q(number__gte=1), name="audit_seal_from_one")]

    def __str__(self) -> str:
        return f"{self.number}: {self.digest[:16]}"


class SigningKey(models.Model):
    """The installation's Ed25519 key that signs exports of the audit trail. ``public``: 32 bytes as hex;
    ``private_sealed``: the private half, sealed for this row."""

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    public = models.CharField(max_length=64)
    private_sealed = models.BinaryField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.public[:16]
