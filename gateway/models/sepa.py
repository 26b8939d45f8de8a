"""Orders to banks: SEPA direct debits to collect, transfers to pay, their files, and the banks' messages.

Read only by the connector "sepa" and the timers that update payments from it (docs/decisions/0035).
"""

from __future__ import annotations

from django.db import models

from gateway.core import identifiers
from gateway.models.entities import Channel, Merchant


class SepaMandate(models.Model):
    """A mandate as a creditor has used it.

    - ``creditor``: the creditor identifier.
    - ``creditor_name``: as it stood in the account's settings when it was last used.
    - ``instrument``: the scheme it was given for.
    - ``named_by_merchant``: the merchant gave its id; else we did, for one payment or (``recurring``) for a stored
      account.
    - ``first_payment``: the payment whose collection was the first to be filed, so that later ones recur; empty again
      if the bank rejected that one.
    - ``used_on``: the day of its last collection.
    - ``state_reason``: why it is not ACTIVE: the bank's external code, or a value of StateReason.
    - ``amendment``: what changed since its last collection, for the next one (gateway.connectors.sepa.mandates).
    - ``address``: of a debtor whose bank is outside the EEA.
    """

    class State(models.TextChoices):
        ACTIVE = "ACTIVE", "active"
        BLOCKED = "BLOCKED", "blocked"
        ENDED = "ENDED", "ended"

    class StateReason(models.TextChoices):
        MERCHANT = "MERCHANT", "ended by the merchant"
        DELETED = "DELETED", "the stored account was deleted"
        FINAL = "FINAL", "its last collection was presented"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    creditor = models.CharField(max_length=35)
    mandate = models.CharField(max_length=35)
    named_by_merchant = models.BooleanField()
    recurring = models.BooleanField()
    signed_on = models.DateField()
    iban_sealed = models.BinaryField(null=True)
    iban_fingerprint = models.BinaryField()
    first_payment = models.UUIDField(null=True)
    used_on = models.DateField(null=True)
    state = models.CharField(max_length=7, choices=State, default=State.ACTIVE)
    state_reason = models.CharField(max_length=35, default="", blank=True)
    state_at = models.DateTimeField(null=True)
    creditor_name = models.CharField(max_length=70, default="", blank=True)
    instrument = models.CharField(max_length=4, default="", blank=True)
    amendment = models.JSONField(default=dict, blank=True)
    address = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name = "mandate"
        constraints = [
            models.UniqueConstraint(fields=["merchant", "creditor", "mandate"], name="sepa_mandate_once"),
        ]
        indexes = [models.Index(fields=["iban_fingerprint"], name="sepa_mandate_account")]

    def __str__(self) -> str:
        return self.mandate


class BankFile(models.Model):
    """One file to one bank: decided here first, and generated again byte for byte until it is delivered.
    WRITTEN: it is in the folder under a temporary name; DELIVERED: it was renamed, or the bank took it.

    - ``creditor``: the account's settings used in the file, as of when it was decided.
    - ``stamped_at``: the merchant's clock, as in the file.
    - ``sha256``, ``size``: of its bytes, once generated.
    - ``written_try``: the try whose temporary name that is.
    - ``bank_status``: of the last status report about the whole file.
    - ``due_at``, ``lease_until``, ``removed_at``: real time.
    """

    class Kind(models.TextChoices):
        COLLECT = "COLLECT", "direct debits (pain.008)"
        PAY = "PAY", "credit transfers (pain.001)"
        REVERSE = "REVERSE", "reversals of collections (pain.007)"
        CANCEL = "CANCEL", "cancellation requests (camt.055)"
        RECALL = "RECALL", "recalls of credit transfers (camt.055)"

    class State(models.TextChoices):
        DECIDED = "DECIDED", "decided"
        WRITTEN = "WRITTEN", "written"
        DELIVERED = "DELIVERED", "delivered"
        FAILED = "FAILED", "not delivered"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT)
    acquirer_merchant_id = models.CharField(max_length=64)
    kind = models.CharField(max_length=7, choices=Kind)
    message_id = models.CharField(max_length=35, unique=True)
    state = models.CharField(max_length=9, choices=State, default=State.DECIDED)
    creditor = models.JSONField()
    orders_count = models.IntegerField()
    total = models.DecimalField(max_digits=18, decimal_places=2)
    stamped_at = models.DateTimeField()
    sha256 = models.CharField(max_length=64, default="")
    size = models.BigIntegerField(null=True)
    tries = models.SmallIntegerField(default=0)
    written_try = models.SmallIntegerField(null=True)
    due_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    failure = models.CharField(max_length=255, default="")
    bank_status = models.CharField(max_length=4, default="")
    delivered_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], name="bank_file_due", condition=models.Q(state__in=["DECIDED", "WRITTEN"])),
            models.Index(
                fields=["delivered_at"],
                name="bank_file_lies",
                condition=models.Q(state="DELIVERED", removed_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return self.message_id

    @property
    def name(self) -> str:
        return f"{self.message_id}.xml"


class BankOrder(models.Model):
    """One order to a bank: money to collect under a mandate, to pay out, or to give back by a reversal; or the request
    to cancel a collection that it has not settled yet, or to recall a transfer. CONFIRMED is of cancellation requests
    and recalls alone; a collection is WITHDRAWN then.

    - ``payment``: the gateway's id of the message, which is the order's EndToEndId (RvslId of a reversal). A recall has
      no payment: the id is its own (CxlId).
    - ``original_payment``: for a refund or a cancellation request, the collection it gives back or cancels; for a
      recall, the transfer.
    - ``recall_reason``: why a transfer is recalled.
    - ``name``, ``iban_sealed``, ``bic``: the other party's.
    - ``text``: what they read.
    - ``due_on``: the bank's day.
    - ``file_at``: when it goes into a file, by the merchant's clock.
    - ``final_at``: when it counts as booked even though no statement said so, by the merchant's clock.
    - ``sequence``: FRST, RCUR or OOFF, decided with the file.
    - ``batch``: the PmtInfId it is listed under.
    - ``mandate_reference``, ``amendment``: of its mandate, as in the file.
    - ``last``: the mandate is not used again after it.
    - ``notice``: who is notified before its day: mail, webhook, or empty where the merchant does it.
    - ``address``: of a debtor whose bank is outside the EEA.
    - ``reason``: the bank's last one, an ISO 20022 external code.
    - ``undecided_at``: when the bank called it pending in a batch or file that it rejected, so that its silence says
      nothing; by the message's own time.
    """

    class State(models.TextChoices):
        WAITING = "WAITING", "waits for a file"
        FILED = "FILED", "in a file"
        BOOKED = "BOOKED", "booked"
        RETURNED = "RETURNED", "returned"
        WON_BACK = "WON_BACK", "return reversed"
        REJECTED = "REJECTED", "rejected"
        WITHDRAWN = "WITHDRAWN", "taken back"
        CONFIRMED = "CONFIRMED", "agreed to by the bank"

    payment = models.UUIDField(primary_key=True)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False)
    acquirer_merchant_id = models.CharField(max_length=64)
    kind = models.CharField(max_length=7, choices=BankFile.Kind)
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    original_payment = models.UUIDField(null=True)
    mandate = models.ForeignKey(SepaMandate, on_delete=models.PROTECT, null=True, related_name="orders")
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    name = models.CharField(max_length=140)
    iban_sealed = models.BinaryField(null=True)
    iban_shown = models.CharField(max_length=34)
    bic = models.CharField(max_length=11, default="")
    text = models.CharField(max_length=140)
    due_on = models.DateField(null=True)
    file_at = models.DateTimeField(null=True)
    final_at = models.DateTimeField(null=True)
    file = models.ForeignKey(BankFile, on_delete=models.PROTECT, null=True, related_name="orders")
    sequence = models.CharField(max_length=4, default="")
    batch = models.CharField(max_length=35, default="")
    mandate_reference = models.CharField(max_length=35, default="")
    amendment = models.JSONField(default=dict, blank=True)
    address = models.JSONField(default=dict, blank=True)
    last = models.BooleanField(default=False)
    notice = models.CharField(max_length=7, default="", blank=True)
    recall_reason = models.CharField(max_length=4, default="", blank=True)
    reason = models.CharField(max_length=35, default="")
    undecided_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(
                fields=["merchant", "file_at"], name="bank_order_to_file", condition=models.Q(state="WAITING")
            ),
            models.Index(
                fields=["merchant", "final_at"],
                name="bank_order_to_finish",
                condition=models.Q(state="FILED", final_at__isnull=False),
            ),
            models.Index(fields=["merchant", "-created_at"], name="bank_order_time"),
            models.Index(
                fields=["original_payment"],
                name="bank_order_original",
                condition=models.Q(original_payment__isnull=False),
            ),
        ]
        constraints = [models.CheckConstraint(condition=models.Q(amount__gte=0), name="bank_order_not_negative")]

    def __str__(self) -> str:
        return f"{self.kind} {self.amount} {self.currency} ({self.state})"


class BankMessage(models.Model):
    """A file that a bank sent: a status report, a notification, a statement, a return. The same bytes are processed
    once. ``findings``: what in it could not be used, as text; ``orders_changed``: number of orders that it changed."""

    class Source(models.TextChoices):
        FOLDER = "FOLDER", "folder"
        COMMAND = "COMMAND", "command"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    name = models.CharField(max_length=255)
    kind = models.CharField(max_length=8)
    message_id = models.CharField(max_length=35, default="")
    source = models.CharField(max_length=7, choices=Source)
    sha256 = models.CharField(max_length=64, unique=True)
    size = models.BigIntegerField()
    orders_changed = models.IntegerField(default=0)
    findings = models.JSONField(default=list)
    received_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["-received_at"], name="bank_message_time")]

    def __str__(self) -> str:
        return f"{self.kind} {self.message_id}"


class BankOrderEvent(models.Model):
    """One state change of one order. ``on``: the bank's day, where it gave one. ``charges``: what the bank took in the
    same booking. ``applied``: the event has been applied to the payment, or did not need to be."""

    id = models.BigAutoField(primary_key=True)
    order = models.ForeignKey(BankOrder, on_delete=models.PROTECT, related_name="events")
    state = models.CharField(max_length=9, choices=BankOrder.State)
    reason = models.CharField(max_length=35, default="")
    on = models.DateField(null=True)
    charges = models.DecimalField(max_digits=14, decimal_places=2, null=True)
    message = models.ForeignKey(BankMessage, on_delete=models.PROTECT, null=True, related_name="events")
    at = models.DateTimeField()
    applied = models.BooleanField(default=False)

    class Meta:
        indexes = [models.Index(fields=["id"], name="bank_order_event_unapplied", condition=models.Q(applied=False))]

    def __str__(self) -> str:
        return f"{self.state} {self.reason}".strip()


class BankOrderFollowUp(models.Model):
    """Which event made which payment (a chargeback, its reversal): at most one per event, so that nothing is recorded
    twice."""

    event = models.OneToOneField(BankOrderEvent, on_delete=models.PROTECT, primary_key=True, related_name="follow_up")
    payment = models.UUIDField(unique=True)
