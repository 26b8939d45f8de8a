"""Stored means of payment and the agreements under which merchants charge them. Columns and constraints."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from gateway.core import identifiers
from gateway.models.entities import Channel, Merchant
from gateway.models.payments import Payment


class Registration(models.Model):
    """A means of payment that a merchant may use again. Source: Part B, Tokenization and registration.

    Times are the merchant's clock.

    - ``means``: the kind (gateway.connectors.means); its account is sealed for this row, and erased with the
      registration.
    - ``details``: the non-secret data of the means, by structure, as in answers.
    - ``request``: other parameters of a direct registration.
    - ``payment``: the payment that made it (its own id for a direct one).
    - ``sequence`` counts its changes: each expects the number it read.
    - ``retain_until``: past it the registration cannot be used; None keeps it for good.
    - ``merchant_use_blocked_at``: since then merchant-initiated payments with it are declined with
      ``merchant_use_code``, until its holder makes a new agreement.
    - ``account_update``: the last thing that the account updater said of its card, since the merchant changed it.
    - ``account_updated_at``: when it said so.
    - ``account_update_due_at``: the account updater's files look at the card from then on, which is never later than it
      is due; None: since it was created.
    """

    class Status(models.TextChoices):
        ACTIVE = "ACTIVE"
        DELETED = "DELETED"

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False)
    status = models.CharField(max_length=8, choices=Status, default=Status.ACTIVE)
    brand = models.CharField(max_length=32)
    method = models.CharField(max_length=2)
    means = models.CharField(max_length=16)
    means_sealed = models.BinaryField(null=True)
    details = models.JSONField(default=dict)
    request = models.JSONField(default=dict)
    payment = models.UUIDField()
    test_mode = models.CharField(max_length=8, default="")
    sequence = models.IntegerField(default=1)
    retain_until = models.DateTimeField(null=True, db_index=True)
    merchant_use_blocked_at = models.DateTimeField(null=True)
    merchant_use_code = models.CharField(max_length=11, default="", db_default="")
    account_update = models.CharField(max_length=14, default="", db_default="")
    account_updated_at = models.DateTimeField(null=True)
    account_update_due_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["merchant", "-created_at"], name="registration_merchant_time"),
            models.Index(
                models.F("channel"),
                Coalesce("account_update_due_at", "created_at"),
                name="registration_account_update",
                condition=models.Q(status="ACTIVE", means="card"),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(status="DELETED") | models.Q(means_sealed__isnull=True),
                name="registration_deleted_holds_nothing",
            )
        ]

    def __str__(self) -> str:
        return f"{self.brand} ({self.status})"


class NetworkToken(models.Model):
    """The network token of a stored card, which the card network gives in place of its number.
    Source: docs/decisions/0126.

    - ``reference``: the token service's id of it, empty until it was given.
    - ``number_sealed``: the token, sealed for this row; None while there is none to pay with.
    - ``last4``: its last digits.
    - ``requestor``: token requestor id, eleven digits.
    - ``due_at``: real time, when the token service is called next, for what ``status`` says is wanted; None when
      nothing is.
    - ``tries``: calls without an answer since.
    - ``changed_at``: the merchant's clock.
    - ``history``: what the network gave and told, and what we had it delete, oldest first: objects of ``at`` (ISO
      8601), ``status``, ``expiry`` (MM/YYYY, or empty).
    """

    class Status(models.TextChoices):
        REQUESTED = "REQUESTED", _("asked for")
        ACTIVE = "ACTIVE", _("active")
        SUSPENDED = "SUSPENDED", _("suspended")
        REFUSED = "REFUSED", _("refused by the network")
        DELETED = "DELETED", _("deleted")

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    registration = models.OneToOneField(Registration, on_delete=models.PROTECT, related_name="network_token")
    status = models.CharField(max_length=9, choices=Status, default=Status.REQUESTED)
    reference = models.CharField(max_length=64, default="", db_default="")
    number_sealed = models.BinaryField(null=True)
    last4 = models.CharField(max_length=4, default="", db_default="")
    expiry_month = models.CharField(max_length=2, default="", db_default="")
    expiry_year = models.CharField(max_length=4, default="", db_default="")
    requestor = models.CharField(max_length=11, default="", db_default="")
    due_at = models.DateTimeField(null=True, db_index=True)
    tries = models.SmallIntegerField(default=0, db_default=0)
    changed_at = models.DateTimeField()
    history = models.JSONField(default=list, db_default=[])

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["reference"], name="network_token_reference", condition=~models.Q(reference="")
            )
        ]

    def __str__(self) -> str:
        return f"{self.reference} ({self.status})"


class AccountUpdateFile(models.Model):
    """A file of stored cards that the account updater is asked about, and what became of it.

    ``content``: the file as it is sent, encrypted with the key that the updater shares; None once it is answered or
    given up. ``due_at``: when it is sent, or its answer is asked for, next; None when nothing is waited for. ``tries``:
    to send it, without success. ``fault``: why its answer was refused, '' where none was. Times are real.
    Source: docs/decisions/0135.
    """

    class State(models.TextChoices):
        UNSENT = "UNSENT", _("not sent yet")
        SENT = "SENT", _("sent")
        ANSWERED = "ANSWERED", _("answered")
        GIVEN_UP = "GIVEN_UP", _("given up")

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    state = models.CharField(max_length=8, choices=State, default=State.UNSENT)
    cards = models.IntegerField()
    content = models.BinaryField(null=True)
    due_at = models.DateTimeField(null=True, db_index=True)
    tries = models.SmallIntegerField(default=0)
    fault = models.CharField(max_length=200, default="")
    created_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.id.hex} ({self.state})"


class AccountUpdate(models.Model):
    """One question to the account updater about a stored card, and its answer.

    ``file``: the file that asked; None for a question in real time. ``sequence``: the registration's as it was asked
    about: an answer is applied to no other. ``account_update`` of the registration takes the statuses that change it.
    Times are the merchant's clock. Source: docs/decisions/0135.
    """

    class Status(models.TextChoices):
        WAITING = "WAITING", _("waiting for an answer")
        NO_CHANGE = "NO_CHANGE", _("nothing has changed")
        NEW_NUMBER = "NEW_NUMBER", _("a new number")
        NEW_EXPIRY = "NEW_EXPIRY", _("a new expiry date")
        CLOSED = "CLOSED", _("the account is closed")
        CONTACT_HOLDER = "CONTACT_HOLDER", _("the holder has to be asked")
        UNKNOWN = "UNKNOWN", _("the card is not known")
        SUPERSEDED = "SUPERSEDED", _("the stored card was changed meanwhile")
        UNANSWERED = "UNANSWERED", _("no answer")

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    registration = models.ForeignKey(
        Registration, on_delete=models.PROTECT, db_index=False, related_name="account_updates"
    )
    file = models.ForeignKey(AccountUpdateFile, on_delete=models.PROTECT, null=True)
    sequence = models.IntegerField()
    status = models.CharField(max_length=14, choices=Status, default=Status.WAITING)
    asked_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["registration", "asked_at"], name="account_update_registration"),
            models.Index(fields=["asked_at"], name="account_update_asked"),
        ]

    def __str__(self) -> str:
        return f"{self.registration_id} ({self.status})"


class PaymentToken(models.Model):
    """The network token that a payment's present authorization attempt was sent with, for what follows it and for
    recovery; the payment's own row keeps the card number. Without a row the card number was sent.

    ``number_sealed``: sealed for the payment's id, erased with the payment's card number.
    """

    payment = models.OneToOneField(
        Payment, on_delete=models.PROTECT, primary_key=True, related_name="network_token", db_constraint=False
    )
    number_sealed = models.BinaryField()
    expiry_month = models.CharField(max_length=2)
    expiry_year = models.CharField(max_length=4)
    requestor = models.CharField(max_length=11, default="", db_default="")

    def __str__(self) -> str:
        return f"network token of {self.payment_id}"


class Agreement(models.Model):
    """A card-on-file agreement that began with an INITIAL payment; merchant-initiated payments refer to it. Its id is
    that payment's. Source: Part B, Card on file.

    - ``reference``: by which the merchant names the agreement: the processor's id of the initial transaction, or the
      one migrated from another processor.
    - ``network_reference``: the reference sent to processors: the card scheme's own id, or the migrated one unchanged;
      empty if there is neither.
    - ``agreement_id``: the id by which the merchant may name it instead, or empty.
    - ``transaction_link``: by which Mastercard links its payments: the first one's, or that of the first payment after
      it where none was told before.
    - ``registration``: the stored means it was made with.
    - ``brand``: of the card that it began with, whose network the references are of.
    - ``expiry``: no authorization after that day.
    - ``frequency``: fewest days between two.
    - ``max_payments``: of authorizations.
    - ``first_at``: when the initial payment took or reserved money (None: it did not, and does not count).
    - ``follow_ups``: how many payments were begun under it; each begins by raising it, so that two that read the same
      count cannot both begin.
    - ``merchant_use_blocked_at``, ``merchant_use_code``: as of Registration, also where no means are stored.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False)
    reference = models.CharField(max_length=255)
    network_reference = models.CharField(max_length=128, default="", db_default="")
    agreement_id = models.CharField(max_length=35, default="")
    transaction_link = models.CharField(max_length=22, default="", db_default="")
    registration = models.UUIDField(null=True)
    brand = models.CharField(max_length=32, default="", db_default="")
    type = models.CharField(max_length=11, default="")
    expiry = models.DateField(null=True)
    frequency = models.SmallIntegerField(null=True)
    max_payments = models.SmallIntegerField(null=True)
    first_at = models.DateTimeField(null=True)
    follow_ups = models.IntegerField(default=0)
    merchant_use_blocked_at = models.DateTimeField(null=True)
    merchant_use_code = models.CharField(max_length=11, default="", db_default="")
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["channel", "reference"], name="agreement_reference"),
            models.Index(
                fields=["channel", "agreement_id"],
                name="agreement_network_id",
                condition=~models.Q(agreement_id=""),
            ),
            models.Index(
                fields=["registration"],
                name="agreement_registration",
                condition=models.Q(registration__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type or 'agreement'} {self.reference}"
