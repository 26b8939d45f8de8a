"""Tables of disputes: cases, their events, evidence, reminders and contacts. Columns only.

The money is in the ledger: every case has the id of its CB payment, and a won one has CR payments. Times are the
merchant's clock. Source: Part B, Chargeback; decisions, section 8.
"""

from __future__ import annotations

from django.db import models

from gateway.core import identifiers
from gateway.db import guards
from gateway.models import Channel, Merchant


class Chargeback(models.Model):
    """One dispute case. Its id is that of its CB payment (chargebackTransaction.id).

    - ``disputed``: the payment that is charged back.
    - ``previous``: the case before this one: a second chargeback follows a representment.
    - ``recovered``: what CR payments returned.
    - ``refunded_before``: what refunds and reversals, pending ones too, had returned of the payment when the chargeback
      came.
    - ``due_at``: until when evidence may be submitted; it keeps its value when the case is closed, and is ``opened_at``
      where nothing is answered.
    - ``note``: why it was closed, in plain words.
    - ``reference``: the acquirer's name of the dispute.
    - ``stage``: what the issuer has opened last (chargebacks.stages).
    - ``scheme_reason``, ``scheme_case``, ``arn``: the scheme's reason code and case id, and the acquirer reference
      number of the disputed transaction, as the acquirer sent them.
    - ``stops_pending``: its reason ends the use of stored credentials, and that is not done yet
      (chargebacks.revocations).
    - ``version`` is incremented by every move.
    """

    class State(models.TextChoices):
        OPEN = "OPEN", "waits for evidence"
        SUBMITTED = "SUBMITTED", "evidence was submitted"
        WON = "WON", "the money came back"
        LOST = "LOST", "the money is gone"
        ACCEPTED = "ACCEPTED", "the merchant did not contest it"
        RETURNED = "RETURNED", "returned by the debtor's bank, which cannot be contested"

    class Stage(models.TextChoices):
        FIRST = "FIRST", "first chargeback"
        PRE_ARBITRATION = "PRE_ARBITRATION", "pre-arbitration"
        ARBITRATION = "ARBITRATION", "arbitration"

    class Source(models.TextChoices):
        FILE = "file", "settlement file"
        HAND = "hand", "entered by hand"
        API = "api", "by API, test environment"

    id = models.UUIDField(primary_key=True, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False)
    disputed = models.UUIDField()
    chain = models.UUIDField()
    previous = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="next", db_index=False)
    state = models.CharField(max_length=9, choices=State)
    source = models.CharField(max_length=4, choices=Source)
    reason_code = models.CharField(max_length=11)
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    recovered = models.DecimalField(max_digits=14, decimal_places=2, default=0)
    refunded_before = models.DecimalField(max_digits=14, decimal_places=2, default=0, db_default=0)
    brand = models.CharField(max_length=32)
    test_mode = models.CharField(max_length=8, default="")
    reference = models.CharField(max_length=64, default="")
    opened_at = models.DateTimeField()
    due_at = models.DateTimeField()
    submitted_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    note = models.CharField(max_length=500, default="")
    stage = models.CharField(max_length=15, choices=Stage, default=Stage.FIRST, db_default=Stage.FIRST)
    scheme_reason = models.CharField(max_length=16, default="", db_default="")
    scheme_case = models.CharField(max_length=64, default="", db_default="")
    arn = models.CharField(max_length=64, default="", db_default="")
    stops_pending = models.BooleanField(default=False, db_default=False)
    version = models.IntegerField(default=1)

    class Meta:
        verbose_name = "dispute"
        indexes = [
            models.Index(fields=["merchant", "-opened_at"], name="chargeback_merchant_time"),
            models.Index(fields=["chain"], name="chargeback_chain"),
            models.Index(fields=["id"], name="chargeback_stops", condition=models.Q(stops_pending=True)),
            models.Index(fields=["due_at"], name="chargeback_due", condition=models.Q(state="OPEN")),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["OPEN", "SUBMITTED", "WON", "LOST", "ACCEPTED", "RETURNED"]),
                name="chargeback_state_known",
            ),
            models.CheckConstraint(condition=models.Q(amount__gt=0), name="chargeback_amount_above_zero"),
            models.CheckConstraint(
                condition=models.Q(recovered__gte=0) & models.Q(recovered__lte=models.F("amount")),
                name="chargeback_recovered_within_amount",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}"


class CaseEvent(models.Model):
    """One move of one case, written with it. Append-only, enforced by the database. ``payment``: the CB or CR that
    caused the move."""

    id = models.BigAutoField(primary_key=True)
    case = models.ForeignKey(
        Chargeback, on_delete=models.PROTECT, related_name="events", db_index=False, db_constraint=False
    )
    sequence = models.IntegerField()
    event = models.CharField(max_length=8)
    state = models.CharField(max_length=9, choices=Chargeback.State)
    payment = models.UUIDField(null=True, unique=True)
    by = models.CharField(max_length=150, default="")
    note = models.CharField(max_length=500, default="")
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["case", "sequence"], name="case_event_sequence")]
        triggers = guards.append_only()

    def __str__(self) -> str:
        return f"{self.sequence}: {self.event}"


class AcquirerNotice(models.Model):
    """A notice of an acquirer, by its ``reference``, and the payment that was recorded for it.

    A line of a settlement file inserts three: its own id, the key shared by all lines about the same chargeback, and
    the payment. So the same line again, the same chargeback in another file, and two lines for one payment all hit a
    unique key, however many are read at once.
    """

    reference = models.UUIDField(primary_key=True)
    payment = models.UUIDField(db_index=True)


class Evidence(models.Model):
    """One file of evidence. ``item``: the checklist item it proves (chargebacks.evidence_checklist). Its bytes are
    sealed, in pieces, under meaningless names; they are never served as a page."""

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    case = models.ForeignKey(Chargeback, on_delete=models.PROTECT, related_name="evidence")
    item = models.CharField(max_length=32)
    name = models.CharField(max_length=128)
    content_type = models.CharField(max_length=32)
    size = models.IntegerField()
    sha256 = models.CharField(max_length=64)
    by = models.CharField(max_length=150)
    added_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "evidence"
        constraints = [models.UniqueConstraint(fields=["case", "sha256"], name="evidence_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_picture(self) -> bool:
        return self.content_type.startswith("image/")

    @property
    def is_erased(self) -> bool:
        """Whether the shopper's data was erased: the name was blanked then, and no piece is left."""
        return not self.name


class EvidencePiece(models.Model):
    """A sealed piece of a file's bytes; number -1 is the thumbnail."""

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    evidence = models.ForeignKey(Evidence, on_delete=models.CASCADE, related_name="pieces", db_index=False)
    number = models.IntegerField()
    sealed = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evidence", "number"], name="evidence_piece_number")]


class Reminder(models.Model):
    """A reminder mail, due so many days before a case's deadline. ``lease_until``: real time, while a worker sends it.
    Reminders of a case that is no longer open are never sent. ``tries``: attempts, since mail servers may be down."""

    id = models.BigAutoField(primary_key=True)
    case = models.ForeignKey(Chargeback, on_delete=models.CASCADE, related_name="reminders", db_constraint=False)
    days = models.SmallIntegerField()
    due_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)
    tries = models.SmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    sent_to = models.CharField(max_length=1000, default="")

    class Meta:
        indexes = [models.Index(fields=["due_at"], name="reminder_due", condition=models.Q(sent_at__isnull=True))]
        constraints = [models.UniqueConstraint(fields=["case", "days"], name="reminder_once")]


class Contact(models.Model):
    """An address that receives a merchant's dispute reminders."""

    id = models.BigAutoField(primary_key=True)
    merchant = models.ForeignKey(Merchant, on_delete=models.CASCADE, related_name="dispute_contacts")
    email = models.EmailField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["merchant", "email"], name="dispute_contact_once")]

    def __str__(self) -> str:
        return self.email


class DisputeAlert(models.Model):
    """What an issuer or its alert service tells before a chargeback: an alert, which a refund can end, or an inquiry
    (retrieval request), which asks for documents. No money has moved.

    - ``disputed``: the payment.
    - ``reference``: the alert's id at its ``provider``, recorded once.
    - ``refund``: the id of the refund that answers it, given before it is sent and kept until that refund is declined,
      so that there is one however often it is sent.
    - ``refund_by``: who asked for it.
    - ``chargeback``: the case that came nevertheless.
    - ``opened_at``, ``due_at``, ``closed_at``: the merchant's clock.
    - ``moved_at``: the database's, of the last move.
    - ``version`` is incremented by every move of its own.
    - ``remind_at``: when those who are reminded get the next mail, the merchant's clock.
    - ``remind_lease``, ``remind_tries``: of that mail.
    """

    class Kind(models.TextChoices):
        ALERT = "ALERT", "alert before a dispute"
        INQUIRY = "INQUIRY", "inquiry (retrieval request)"

    class State(models.TextChoices):
        OPEN = "OPEN", "waits for a decision"
        REFUNDING = "REFUNDING", "the refund is being sent"
        REFUNDED = "REFUNDED", "refunded"
        LET_GO = "LET_GO", "let go"
        ANSWERED = "ANSWERED", "documents were sent"
        EXPIRED = "EXPIRED", "not answered in time"
        DISPUTED = "DISPUTED", "a chargeback came"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False)
    disputed = models.UUIDField(db_index=True)
    chain = models.UUIDField()
    kind = models.CharField(max_length=7, choices=Kind)
    state = models.CharField(max_length=9, choices=State)
    provider = models.CharField(max_length=32)
    reference = models.CharField(max_length=64)
    reason_code = models.CharField(max_length=11)
    scheme_reason = models.CharField(max_length=16, default="")
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    opened_at = models.DateTimeField()
    due_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    moved_at = models.DateTimeField()
    refund = models.UUIDField(null=True)
    refund_by = models.CharField(max_length=150, default="")
    chargeback = models.UUIDField(null=True)
    note = models.CharField(max_length=500, default="")
    version = models.IntegerField(default=1)
    remind_at = models.DateTimeField(null=True)
    remind_lease = models.DateTimeField(null=True)
    remind_tries = models.SmallIntegerField(default=0)

    class Meta:
        verbose_name = "alert"
        indexes = [
            models.Index(fields=["merchant", "-opened_at"], name="alert_merchant_time"),
            models.Index(
                fields=["remind_at"],
                name="alert_reminder_due",
                condition=models.Q(state="OPEN", remind_at__isnull=False),
            ),
            models.Index(fields=["due_at"], name="alert_open", condition=models.Q(state__in=["OPEN", "REFUNDING"])),
        ]
        constraints = [
            models.UniqueConstraint(fields=["merchant", "provider", "reference"], name="alert_once"),
            models.CheckConstraint(condition=models.Q(amount__gt=0), name="alert_amount_above_zero"),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}"
