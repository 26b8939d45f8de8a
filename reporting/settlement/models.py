"""Settlement tables: clearing institutes, their files and records, matches, findings, and where files are fetched.

Columns and constraints only; verbs live in modules named after their noun. What a report of a past day was made from
never changes afterwards: records are written once, matches are closed and not deleted, and both carry real times.
Source: Part B, Reconciliation file; Part A, States; decisions, section 8; decisions 0032, 0042.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MinLengthValidator
from django.db import models

from gateway.core import identifiers
from gateway.models import Merchant
from reporting.sftp_server import SftpServer

IS_ACTIVE_MATCH: Final = models.Q(undone_at__isnull=True)


def validate_time_zone(name: Any) -> None:
    """Raise ValidationError unless ``name`` is an IANA time zone."""
    if name not in available_timezones():
        raise ValidationError(f"{name!r} is no time zone of the IANA list, e.g. Europe/Berlin.")


class RecordType(models.TextChoices):
    """Kind of a settlement record: ReconciliationType in the CSV file, recordType in the API."""

    SETTLED = "SETTLED"
    CHARGEBACK = "CHARGEBACK"
    CHARGEBACK_REVERSAL = "CHARGEBACK REVERSAL"
    FEE = "FEE"


class TransactionType(models.TextChoices):
    """PaymentType in the CSV file, transactionType in the API: three of payments, eight of fees."""

    DEBIT = "DEBIT"
    CREDIT = "CREDIT"
    REFUND = "REFUND"
    BATCH = "BATCH"
    MONTHLY = "MONTHLY"
    SUBMERCHANT = "SUBMERCHANT"
    PAYMENT_FACILITATOR = "PAYMENT_FACILITATOR"
    AUTH_FEE = "AUTH_FEE"
    CAPTURE_FEE = "CAPTURE_FEE"
    CANCEL_FEE = "CANCEL_FEE"
    REFUND_FEE = "REFUND_FEE"


class Cashflow(models.TextChoices):
    """Direction of the money: POS to the merchant, NEG from the merchant."""

    POS = "POS"
    NEG = "NEG"


class MatchState(models.TextChoices):
    """Matching status of a record, MatchingStatus in the CSV file. Source: Part A, States."""

    MATCHED = "MATCHED"
    MULTIPLE_MATCHES = "MULTIPLE_MATCHES"
    NOT_MATCHED = "NOT_MATCHED"


class ClearingInstitute(models.Model):
    """An acquirer or a bank that settles payments and sends settlement files.

    - ``key``: its folder and its name on the command line.
    - ``connectors``: whose payments it settles.
    - ``format``: of its files (reporting.settlement.formats); empty: detected from each file's beginning.
    - ``time_zone``: of the dates and times in them.
    - ``fee_percent`` and ``fee_fixed`` (in the settlement currency): the agreed fee of a settled payment, if there is
      one to check against.
    - ``settles_within_days``: after so many days a payment without a record is missing.
    - ``expects_files_on``: ISO weekdays (1 = Monday) on which a file is expected.
    - ``reason_codes``: its own chargeback reason codes → result code 000.100.2nn; those of the schemes are known
      (chargebacks.stages).
    """

    id = models.UUIDField(primary_key=True, default=identifiers.entity_id, editable=False)
    key = models.SlugField(max_length=32, unique=True)
    name = models.CharField(max_length=64, unique=True)
    connectors = ArrayField(models.CharField(max_length=32), default=list, blank=True)
    format = models.CharField(max_length=32, default="", blank=True)
    time_zone = models.CharField(max_length=64, default="UTC", validators=[validate_time_zone])
    fee_percent = models.DecimalField(max_digits=7, decimal_places=4, null=True, blank=True)
    fee_fixed = models.DecimalField(max_digits=10, decimal_places=4, null=True, blank=True)
    settles_within_days = models.PositiveSmallIntegerField(default=5)
    reason_codes = models.JSONField(default=dict, blank=True)
    expects_files_on = ArrayField(models.PositiveSmallIntegerField(), default=list, blank=True)
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)


class SettlementFile(models.Model):
    """One file of an institute, identified by the SHA-256 of its bytes.

    All times are real; but for ``received_at`` they are the database's clock.

    - ``lines``: data lines read so far, faulty ones included.
    - ``position``: bytes read so far; both move with the records of a batch in one transaction, so a killed run resumes
      after the last batch.
    - ``records``, ``faults`` and the counts by matching status count what was written.
    - ``match_line``: the second pass of matching is done up to this line.
    - ``book_line``: chargebacks up to it are in the ledger.
    - ``tries``: how often it was begun since it last got further.
    - ``time_zone``: the institute's when the file came.
    - ``first_settled``, ``last_settled``: the settlement dates in it.
    - ``totals``: the control totals the file itself declares (counts and sums).
    - ``lease_until``: while a worker holds it.
    """

    class State(models.TextChoices):
        RECEIVED = "RECEIVED", "waits to be read"
        READING = "READING", "is being read and matched"
        MATCHING = "MATCHING", "is being matched by other than ids"
        BOOKING = "BOOKING", "its chargebacks are being entered"
        DONE = "DONE"
        FAILED = "FAILED", "cannot be read"

    class Source(models.TextChoices):
        UPLOAD = "upload"
        COMMAND = "command"
        FOLDER = "folder"
        SFTP = "sftp"
        LEDGER = "ledger", "chargebacks that no file has told of"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    institute = models.ForeignKey(ClearingInstitute, on_delete=models.PROTECT, related_name="files", db_index=False)
    name = models.CharField(max_length=255)
    sha256 = models.CharField(max_length=64)
    size = models.BigIntegerField()
    format = models.CharField(max_length=32)
    time_zone = models.CharField(max_length=64)
    source = models.CharField(max_length=8, choices=Source)
    received_by = models.CharField(max_length=150)
    received_at = models.DateTimeField()
    state = models.CharField(max_length=8, choices=State, default=State.RECEIVED)
    why = models.CharField(max_length=500, default="", blank=True)
    position = models.BigIntegerField(default=0)
    lines = models.IntegerField(default=0)
    records = models.IntegerField(default=0)
    faults = models.IntegerField(default=0)
    matched = models.IntegerField(default=0)
    multiple = models.IntegerField(default=0)
    unmatched = models.IntegerField(default=0)
    match_line = models.IntegerField(default=0)
    book_line = models.IntegerField(default=0)
    tries = models.SmallIntegerField(default=0)
    first_settled = models.DateField(null=True)
    last_settled = models.DateField(null=True)
    totals = models.JSONField(default=dict)
    lease_until = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-received_at"]
        indexes = [
            models.Index(fields=["institute", "-received_at"], name="file_institute_time"),
            models.Index(
                fields=["received_at"],
                name="file_open",
                condition=models.Q(state__in=["RECEIVED", "READING", "MATCHING", "BOOKING"]),
            ),
        ]
        constraints = [models.UniqueConstraint(fields=["institute", "sha256"], name="file_once")]

    def __str__(self) -> str:
        return self.name


class FilePiece(models.Model):
    """A sealed piece of a file that is not completely read yet. Acquirers write card numbers into files, so the bytes
    are sealed, and deleted when the file is done."""

    id = models.UUIDField(primary_key=True, default=identifiers.row_id)
    file = models.ForeignKey(SettlementFile, on_delete=models.CASCADE, related_name="pieces", db_index=False)
    number = models.IntegerField()
    sealed = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["file", "number"], name="file_piece_number")]


class Settlement(models.Model):
    """One payout: the records of one reference, merchant account, date and currency.

    Its sums are always computed from its records; they are stored nowhere. ``reference``: the institute's name of the
    payout or batch, empty where it gives none.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    institute = models.ForeignKey(ClearingInstitute, on_delete=models.PROTECT, db_index=False)
    institute_merchant_id = models.CharField(max_length=64)
    reference = models.CharField(max_length=64)
    date = models.DateField()
    currency = models.CharField(max_length=3)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, null=True, db_index=False)
    account = models.UUIDField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = "payout"
        indexes = [models.Index(fields=["merchant", "date"], name="settlement_merchant_date")]
        constraints = [
            models.UniqueConstraint(
                fields=["institute", "institute_merchant_id", "reference", "date", "currency"], name="settlement_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.reference or self.id.hex} {self.date}"


_CENT: Final = Decimal("0.01")


class SettlementAmountField(models.DecimalField):  # type: ignore[type-arg]  # not generic at run time
    """An amount with up to three decimals, as institutes pay out in currencies of three (KWD); read with two where the
    third is zero. Payments have two (ruling D26)."""

    def from_db_value(self, value: Decimal | None, *_: object) -> Decimal | None:
        if value is None:
            return None
        short = value.quantize(_CENT)
        return short if short == value else value


class SettlementRecord(models.Model):
    """One line of a settlement file: the data behind the 38 columns of the reconciliation table. Written once, together
    with what it refers to, so that the database need not look that up.

    - ``institute_merchant_id``: ClearingInstituteMerchantId, as in the file.
    - ``account``: the merchant account it names: an AcquirerAccount, or the channel itself for payments of the
      simulator, which has no accounts; null if unknown.
    - ``merchant``: its merchant, by the account, else by the payment; null if neither is known.
    - ``settlement_tx_id``: SettlementTxId.
    - ``our_id``: our payment's id, where the institute sends it back (UniqueID).
    - ``amount`` and ``currency``: of the payment, never signed: ``cashflow`` is the direction.
    - ``settlement_amount``: what is paid out for the line, less the fee (of what flows away: more the fee).
    - ``presented_at``: TxRequestTime; without one in the file, when the file was received (``presented_at_known``
      false).
    - ``respond_by``: the institute's own deadline of a chargeback.
    - ``state``: '' for fees, which have no payment.
    - ``without_payment``: a clerk marked it as having no payment.
    - ``chargeback``: the CB or CR payment it led to.
    - ``assigned_at``: real time, when a clerk's link determined the merchant; null if it was known from the beginning.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    file = models.ForeignKey(SettlementFile, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    line = models.IntegerField()
    settlement = models.ForeignKey(
        Settlement, on_delete=models.PROTECT, related_name="records", db_index=False, db_constraint=False
    )
    institute = models.ForeignKey(ClearingInstitute, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, null=True, db_index=False, db_constraint=False)
    account = models.UUIDField(null=True)
    institute_merchant_id = models.CharField(max_length=64, validators=[MinLengthValidator(5)])
    record_type = models.CharField(max_length=19, choices=RecordType)
    transaction_type = models.CharField(max_length=20, choices=TransactionType)
    cashflow = models.CharField(max_length=3, choices=Cashflow)
    settlement_tx_id = models.CharField(max_length=64, default="")
    our_id = models.UUIDField(null=True)
    tx_id1 = models.CharField(max_length=64, default="")
    tx_id2 = models.CharField(max_length=64, default="")
    tx_id3 = models.CharField(max_length=64, default="")
    merchant_transaction_id = models.CharField(max_length=255, default="")
    merchant_invoice_id = models.CharField(max_length=255, default="")
    amount = SettlementAmountField(max_digits=17, decimal_places=3)
    currency = models.CharField(max_length=3)
    brand = models.CharField(max_length=16, default="")
    presented_at = models.DateTimeField()
    presented_at_known = models.BooleanField()
    settlement_amount = SettlementAmountField(max_digits=17, decimal_places=3)
    settlement_currency = models.CharField(max_length=3)
    settlement_fee = models.DecimalField(max_digits=16, decimal_places=4, null=True)
    fx_rate = models.DecimalField(max_digits=20, decimal_places=10)
    settlement_date = models.DateField()
    settlement_status = models.CharField(max_length=7)
    descriptor = models.CharField(max_length=128, default="")
    last4 = models.CharField(max_length=4, default="")
    bank_code = models.CharField(max_length=12, default="")
    account_holder = models.CharField(max_length=128, default="")
    reason_code = models.CharField(max_length=11, default="")
    reason_text = models.CharField(max_length=128, default="")
    respond_by = models.DateField(null=True)
    scheme_reason = models.CharField(max_length=16, default="", db_default="")
    scheme_case = models.CharField(max_length=64, default="", db_default="")
    arn = models.CharField(max_length=24, default="", db_default="")
    dispute_stage = models.CharField(max_length=15, default="", db_default="")
    state = models.CharField(max_length=16, choices=MatchState, default="")
    without_payment = models.BooleanField(default=False)
    version = models.IntegerField(default=1)
    chargeback = models.UUIDField(null=True)
    chargeback_at = models.DateTimeField(null=True)
    recorded_at = models.DateTimeField()
    assigned_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "exceptions"  # the title of its page, the exception queue
        indexes = [
            models.Index(
                fields=["merchant", "assigned_at"],
                name="record_assigned",
                condition=models.Q(assigned_at__isnull=False),
            ),
            models.Index(fields=["settlement", "line"], name="record_settlement"),
            models.Index(
                fields=["institute", "settlement_tx_id", "transaction_type", "amount", "recorded_at", "line"],
                name="record_fee_id",
                condition=models.Q(record_type="FEE") & ~models.Q(settlement_tx_id=""),
            ),
            models.Index(
                fields=["settlement", "transaction_type", "amount", "recorded_at", "line"],
                name="record_fee_plain",
                condition=models.Q(record_type="FEE", settlement_tx_id=""),
            ),
            models.Index(fields=["merchant", "recorded_at", "id"], name="record_merchant_recorded"),
            # For the search of the back office: what an acquirer's or bank's letter names.
            models.Index(fields=["arn"], name="record_arn", condition=~models.Q(arn="")),
            models.Index(fields=["tx_id1"], name="record_tx_id", condition=~models.Q(tx_id1="")),
            models.Index(
                fields=["merchant", "id"],
                name="record_open",
                condition=models.Q(state__in=["NOT_MATCHED", "MULTIPLE_MATCHES"], without_payment=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["file", "line"], name="record_line"),
            models.CheckConstraint(condition=models.Q(record_type__in=RecordType.values), name="record_type_known"),
            models.CheckConstraint(
                condition=models.Q(transaction_type__in=TransactionType.values), name="record_transaction_type_known"
            ),
            models.CheckConstraint(condition=models.Q(cashflow__in=Cashflow.values), name="record_cashflow_known"),
            models.CheckConstraint(
                condition=models.Q(settlement_status__in=["SUCCESS", "FAILED"]), name="record_status_known"
            ),
            models.CheckConstraint(
                condition=models.Q(record_type="FEE", state="")
                | (~models.Q(record_type="FEE") & models.Q(state__in=MatchState.values)),
                name="record_only_fees_have_no_matching",
            ),
            models.CheckConstraint(condition=models.Q(amount__gte=0), name="record_amount_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.record_type} {self.amount} {self.currency}"


class Match(models.Model):
    """A record and a payment it may be about. Closed, never deleted.

    ``chosen``: this is the payment; else it is one of several candidates. ``rule``: the matching rule
    (reporting.settlement.matching), or "clerk". ``by``: the user, empty for automatic matching. A record with an active
    chosen match is MATCHED, one with active candidates and none chosen is MULTIPLE_MATCHES, any other NOT_MATCHED; and
    so at any past moment. ``record_type`` is repeated here so that two records for one payment are found with one
    index.
    """

    id = models.BigAutoField(primary_key=True)
    record = models.ForeignKey(
        SettlementRecord, on_delete=models.PROTECT, related_name="matches", db_index=False, db_constraint=False
    )
    payment = models.UUIDField()
    record_type = models.CharField(max_length=19, choices=RecordType)
    chosen = models.BooleanField()
    rule = models.CharField(max_length=12)
    by = models.CharField(max_length=150, default="")
    note = models.CharField(max_length=500, default="")
    made_at = models.DateTimeField()
    undone_at = models.DateTimeField(null=True)
    undone_by = models.CharField(max_length=150, default="")

    class Meta:
        verbose_name_plural = "matches"
        indexes = [
            models.Index(fields=["record"], name="match_record"),
            models.Index(fields=["payment"], name="match_payment"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["record"], name="match_one_chosen", condition=models.Q(chosen=True, undone_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return f"{self.record_id.hex} ↔ {self.payment.hex}"


class Finding(models.Model):
    """Something wrong with a record or its payment (reporting.settlement.findings). ``expected`` and ``found`` are
    short texts.

    ``closed_at``: when a clerk closed it, with the explanation in ``note``. ``payment``: the payment it concerns, if
    known.
    """

    id = models.BigAutoField(primary_key=True)
    record = models.ForeignKey(SettlementRecord, on_delete=models.PROTECT, related_name="findings", db_index=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, null=True, db_index=False)
    payment = models.UUIDField(null=True)
    kind = models.CharField(max_length=24)
    expected = models.CharField(max_length=128, default="")
    found = models.CharField(max_length=128, default="")
    made_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    closed_by = models.CharField(max_length=150, default="")
    note = models.CharField(max_length=500, default="")

    class Meta:
        indexes = [
            models.Index(fields=["record"], name="finding_record"),
            models.Index(fields=["merchant", "id"], name="finding_open", condition=models.Q(closed_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return self.kind


class LineError(models.Model):
    """A line of a file that could not become a record. ``value``: the faulty value, masked and shortened. The first
    reporting.settlement.intake.MAX_LINE_ERRORS of a file are stored; all are counted (SettlementFile.faults)."""

    id = models.BigAutoField(primary_key=True)
    file = models.ForeignKey(SettlementFile, on_delete=models.PROTECT, related_name="errors", db_index=False)
    line = models.IntegerField()
    column = models.CharField(max_length=64)
    value = models.CharField(max_length=64, default="")
    message = models.CharField(max_length=255)

    class Meta:
        indexes = [models.Index(fields=["file", "line"], name="line_error_line")]

    def __str__(self) -> str:
        return f"{self.line}: {self.column} {self.message}"


class SftpSource(SftpServer):
    """The SFTP server from which an institute's files are fetched, in ``folder``.

    - ``pattern``: names of settlement files (``*`` and ``?``).
    - ``after_download``: what to do with a file on the server after it was taken in.
    - ``moved_to``: the folder below ``folder`` for those that are moved.
    - ``every_s``: seconds between two fetches.
    - ``due_at``, ``lease_until``, ``polled_at``: real time.
    - ``failures``: how many fetches in a row failed.
    - ``why``: the last failure.
    """

    class AfterDownload(models.TextChoices):
        LEAVE = "leave", "leave it there"
        MOVE = "move", "move it to another folder"

    institute = models.OneToOneField(ClearingInstitute, on_delete=models.PROTECT, related_name="sftp_source")
    pattern = models.CharField(max_length=64, default="*")
    after_download = models.CharField(max_length=5, choices=AfterDownload, default=AfterDownload.LEAVE)
    moved_to = models.CharField(max_length=64, default="done")
    every_s = models.PositiveIntegerField(default=300)
    due_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)
    polled_at = models.DateTimeField(null=True)
    failures = models.IntegerField(default=0)
    why = models.CharField(max_length=500, default="")

    class Meta:
        app_label = "reporting"
        verbose_name = "SFTP source"
        indexes = [models.Index(fields=["due_at"], name="sftp_source_due", condition=models.Q(active=True))]


class RemoteFile(models.Model):
    """A file seen at a source, by its name. ``size`` and ``modified`` (its server's clock, seconds): as last seen; the
    file is complete when a later fetch finds both unchanged. ``seen_at``: when they were seen first. ``file``: the
    settlement file it became; ``moved_at``: when it was moved away on the server. ``why``: what prevents it from being
    taken in, or moved."""

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


class MissingSettlement(models.Model):
    """Missing settlements: approved payments of a merchant that an institute should have settled by now, one row a day
    as long as there are any.

    ``day``: the merchant's, in the institute's time zone. ``payments``: how many at the last count; 0 for days before
    the last one. ``sums``: currency → amount, a text. ``lease_until``, ``counted_at``, ``sent_at``: real time.
    ``sent_to``: who got the mail, empty if the merchant has no contact.
    """

    id = models.BigAutoField(primary_key=True)
    institute = models.ForeignKey(ClearingInstitute, on_delete=models.PROTECT, db_index=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    day = models.DateField()
    payments = models.IntegerField()
    sums = models.JSONField(default=dict)
    counted_at = models.DateTimeField()
    tries = models.SmallIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    sent_to = models.CharField(max_length=1000, default="")

    class Meta:
        app_label = "reporting"
        verbose_name_plural = "missing settlements"
        constraints = [
            models.UniqueConstraint(fields=["institute", "merchant", "day"], name="missing_settlement_once_a_day")
        ]
        indexes = [models.Index(fields=["merchant"], name="missing_settlement_now", condition=models.Q(payments__gt=0))]

    def __str__(self) -> str:
        return f"{self.payments} on {self.day}"
