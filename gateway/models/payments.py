"""Payments, their events, and the messages exchanged with acquirers. Functions on them are in gateway.payments."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex, GinIndex
from django.db import models
from django.utils.translation import gettext_lazy as _

from gateway.catalogue.errors import ParameterError
from gateway.core import identifiers
from gateway.core.clock import Deadline
from gateway.core.money import Money
from gateway.db import guards
from gateway.models.entities import Channel, Merchant


class Status(models.TextChoices):
    """The state of one payment. Captured and refunded are properties of its chain (gateway.payments.chain_amounts)."""

    STARTED = "STARTED"
    PENDING = "PENDING"
    APPROVED = "APPROVED"
    DECLINED = "DECLINED"
    IN_DOUBT = "IN_DOUBT"


class Payment(models.Model):
    """One money transaction. Source: Part A, Basic payment; Part B, Payment response.

    Times are the merchant's clock.

    - ``chain``: the id of the first payment of the chain (its own for a first payment).
    - ``referenced``: the payment a follow-up refers to.
    - ``amount``: requested.
    - ``approved_amount``: granted.
    - ``request``: the accepted parameters as they are echoed, without secrets.
    - ``answer``: fields the answer adds (card facts, resultDetails, AVS, CVV …).
    - ``duplicate_guard``: the merchantTransactionId, where the channel refuses a second payment with the same.
    - ``means``: which means was used (gateway.connectors.means); its account is sealed, and fingerprinted to compare.
    - ``email_key``, ``last4_key``, ``name_keys``: on a first payment, search keys for clerks
      (gateway.payments.search_keys).
    - ``registration``: the stored means this payment used or made.
    - ``agreement``: the standing instruction whose limits this payment counts towards, also when it was declined.
    - ``acquirer_merchant_id``: as of the AcquirerAccount.
    - ``route``: of a first payment sent to an acquirer, why this one was chosen (gateway.connectors.routing); else
      null.
    - ``resource_path``: where the merchant fetches the result, when not under /v1/payments.
    - ``practice``: INCREMENTAL_AUTH or REAUTHORIZATION of a PA that follows a PA.
    - ``authorization_kind``: ESTIMATED or FINAL of a PA, also of what raises or renews it.
    - ``expires_at``: of an approved PA or renewal, until when it may be captured.
    - ``expired_at``: of a first PA, when that time was found to have passed.
    - ``returned_at``: of a transfer to a shopper (RF, CD, or an RV that is one at the processor), when it was found to
      have come back or failed; it moves no money then.
    - ``reopens_authorization``: of an approved reversal of a capture, that the acquirer goes on holding what was
      captured.
    - ``sequence``: number of the last event.
    - ``follow_ups``: on a first payment, how many follow-ups were begun; each begins by raising it, so that two that
      read the same chain cannot both begin.
    """

    send_by: Deadline | None = None
    """Set by gateway.payments.store with a new OpenPayment row, not stored: until when its acquirer may be called."""
    trace_number: int = 0
    """As of the OpenPayment row, set with it."""
    called_at: datetime | None = None
    """Set with them, not stored, by the merchant's clock: when the present authorization attempt began, if later than
    the payment; the payment's last calling event has it."""
    archived_at: datetime | None = None
    """Set by gateway.payments.payment_archive, not stored: real time when the payment left for the archive."""
    refusals: tuple[ParameterError, ...] = ()
    """Set as a first payment begins, not stored: why it is declined at once; the response has them."""

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    number = models.BigIntegerField(db_default=models.Func(models.Value("gateway_payment_number"), function="nextval"))
    # Merchants and channels are never deleted (enforced by a trigger), so payments need no foreign-key check on them.
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    chain = models.UUIDField()
    referenced = models.UUIDField(null=True)
    payment_type = models.CharField(max_length=2)
    brand = models.CharField(max_length=32)
    method = models.CharField(max_length=2)
    status = models.CharField(max_length=8, choices=Status)
    # Two digits more than one request may ask for: the rest of a chain may be the sum of several.
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    currency = models.CharField(max_length=3)
    approved_amount = models.DecimalField(max_digits=14, decimal_places=2, null=True)
    result_code = models.CharField(max_length=11, default="")
    test_mode = models.CharField(max_length=8, default="")
    merchant_transaction_id = models.CharField(max_length=255, default="")
    duplicate_guard = models.CharField(max_length=255, null=True)
    merchant_invoice_id = models.CharField(max_length=255, default="")
    merchant_memo = models.CharField(max_length=255, default="")
    request = models.JSONField(default=dict)
    answer = models.JSONField(default=dict)
    means = models.CharField(max_length=16, default="")
    means_sealed = models.BinaryField(null=True)
    means_fingerprint = models.BinaryField(null=True)
    email_key = models.IntegerField(null=True)
    last4_key = models.IntegerField(null=True)
    name_keys = ArrayField(models.IntegerField(), null=True)
    registration = models.UUIDField(null=True)
    agreement = models.UUIDField(null=True)
    connector = models.CharField(max_length=32, default="")
    connector_tx_id = models.CharField(max_length=64, default="")
    acquirer_merchant_id = models.CharField(max_length=64, default="")
    route = models.JSONField(null=True)
    resource_path = models.CharField(max_length=128, default="")
    max_captures = models.SmallIntegerField(null=True)
    final = models.BooleanField(default=False)
    practice = models.CharField(max_length=16, default="")
    authorization_kind = models.CharField(max_length=9, default="", db_default="")
    expires_at = models.DateTimeField(null=True)
    expired_at = models.DateTimeField(null=True)
    returned_at = models.DateTimeField(null=True)
    reopens_authorization = models.BooleanField(default=False, db_default=False)
    sequence = models.SmallIntegerField(default=1)
    follow_ups = models.IntegerField(default=0)
    request_id = models.UUIDField()
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            # Ascending, in insertion order: pages of a descending index would be split in halves.
            models.Index(fields=["merchant", "created_at"], name="payment_merchant_made"),
            models.Index(fields=["chain"], name="payment_chain"),
            models.Index(
                fields=["merchant", "merchant_transaction_id"],
                name="payment_merchant_tx",
                condition=~models.Q(merchant_transaction_id=""),
            ),
            # Queries scan these in time order; DB, PA, CP and CC are most rows, and are found by the first of them.
            models.Index(fields=["channel", "created_at"], name="payment_channel_time"),
            models.Index(
                fields=["channel", "payment_type", "created_at"],
                name="payment_channel_type",
                condition=~models.Q(payment_type__in=["DB", "PA", "CP"]),
            ),
            models.Index(
                fields=["channel", "method", "created_at"],
                name="payment_channel_method",
                condition=~models.Q(method="CC"),
            ),
            models.Index(
                fields=["merchant", "merchant_invoice_id"],
                name="payment_merchant_invoice",
                condition=~models.Q(merchant_invoice_id=""),
            ),
            models.Index(
                fields=["email_key"],
                name="payment_email",
                condition=models.Q(email_key__isnull=False),
            ),
            models.Index(
                fields=["last4_key"],
                name="payment_last4",
                condition=models.Q(last4_key__isnull=False),
            ),
            GinIndex(
                fields=["name_keys"],
                name="payment_name",
                condition=models.Q(name_keys__isnull=False),
            ),
            # Summaries of the amounts of each 32 pages: a byte or two per payment, none of it touched when one ends.
            BrinIndex(
                fields=["amount", "created_at"],
                name="payment_amount",
                pages_per_range=32,
                autosummarize=True,
                opclasses=["numeric_bloom_ops(n_distinct_per_range=320)", "timestamptz_minmax_ops"],
            ),
            # The few payments that are chargebacks; neither column ever changes, so that no other payment pays for it.
            models.Index(fields=["id"], name="payment_chargeback", condition=models.Q(payment_type__in=["CB", "CR"])),
            models.Index(
                fields=["agreement"],
                name="payment_agreement",
                condition=models.Q(agreement__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["number"], name="payment_number"),
            models.UniqueConstraint(
                fields=["channel", "duplicate_guard"],
                name="payment_duplicate",
                condition=models.Q(duplicate_guard__isnull=False),
            ),
            models.CheckConstraint(condition=models.Q(status__in=Status.values), name="payment_status_known"),
            models.CheckConstraint(condition=models.Q(amount__gte=0), name="payment_amount_not_negative"),
            models.CheckConstraint(
                condition=models.Q(status="STARTED") | ~models.Q(result_code=""), name="payment_answered_has_a_code"
            ),
            models.CheckConstraint(
                condition=~models.Q(status="APPROVED") | models.Q(approved_amount__isnull=False),
                name="payment_approved_has_amount",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.payment_type} {self.amount} {self.currency} ({self.status})"

    @property
    def money(self) -> Money:
        """The requested amount."""
        return Money(self.amount, self.currency)


class OpenPayment(models.Model):
    """A payment whose outcome is not known yet. Recovery looks at it at ``recover_at`` (real time;
    gateway.payments.recovery); ``inquiries``: how often the acquirer was asked about it.

    ``void_attempted``: a void may have been sent. Until it is answered it may still take effect, so that no answer
    but a decline is final. ``trace_number``: of its message at the acquirer, from before it was sent; 0 for none.

    The row exists from a payment's beginning until its outcome; of a DECLINED payment, from an approval that came too
    late until that is voided. It is separate from the payment so that no index of
    the large table has to follow a time that is set and cleared within milliseconds.
    """

    payment = models.OneToOneField(
        Payment, on_delete=models.PROTECT, primary_key=True, related_name="open", db_constraint=False
    )
    recover_at = models.DateTimeField(db_index=True)
    inquiries = models.SmallIntegerField(default=0)
    void_attempted = models.BooleanField(default=False, db_default=False)
    trace_number = models.IntegerField(default=0, db_default=0)


class ChainState(models.Model):
    """The state of a chain as it stands, for lists and filters: one row per authorization of an amount and per chain
    with an approved follow-up. A first payment without one is in the state that its own type and status say
    (gateway.payments.chain_states).

    ``state``: never written by a program: the database derives it whenever the row changes, from the approved payments
    of the chain and from ``disputed`` and ``expired`` (function gateway_chain_state, migration 0002). A trigger touches
    the row with each approval, in the statement that makes it. ``disputed``: a dispute of the chain is open;
    ``expired``: its authorization has ended without being used up. ``created_at``: of the first payment.
    Source: docs/decisions/0076.
    """

    class State(models.TextChoices):
        AUTHORIZED = "authorized"
        PARTLY_CAPTURED = "partly_captured"
        CAPTURED = "captured"
        PARTLY_REFUNDED = "partly_refunded"
        REFUNDED = "refunded"
        VOIDED = "voided"
        EXPIRED = "expired"
        DISPUTED = "disputed"
        CHARGED_BACK = "charged_back"
        WON_BACK = "won_back"
        PAID_OUT = "paid_out"

    chain = models.OneToOneField(
        Payment, on_delete=models.PROTECT, primary_key=True, related_name="standing", db_constraint=False
    )
    merchant = models.ForeignKey(
        Merchant, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    state = models.CharField(max_length=16, choices=State)
    disputed = models.BooleanField(default=False, db_default=False)
    expired = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["merchant", "state", "created_at", "chain"], name="chain_state_merchant_time"),
            models.Index(fields=["state", "chain"], name="chain_state_newest"),
        ]

    def __str__(self) -> str:
        return self.state


class AuthorizationExpiry(models.Model):
    """An authorization, or its renewal, whose end is to be looked at (gateway.payments.authorization_expiry).

    ``authorization``: the id of the chain's first payment, in one row more for each renewal and for each reversal of a
    capture that reopened it; ``due_at``: the merchant's clock. The row goes when the authorization has expired or
    nothing of it was left.
    """

    authorization = models.UUIDField()
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    due_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], name="authorization_expiry_due"),
            models.Index(fields=["merchant", "due_at"], name="authorization_expiry_merchant"),
        ]


class AuthorizationRelease(models.Model):
    """What is left of an authorization is to be released at the acquirer, after a FINAL follow-up, its expiry or, where
    the acquirer holds both, its renewal.

    - ``authorization``: the id of the chain's first payment, in more than one row where several follow-ups were FINAL:
      an approval must never fail on it.
    - ``due_at``: the database's clock, also a lease; None once it has ended.
    - ``tries``: reversals sent.
    - ``result_code``, ``payment``: of the last one (of cause RENEWAL: the renewal).
    - ``amount``: what it released.
    - ``created_at``: the merchant's clock.
    - ``ended_at``: real time (gateway.payments.authorization_releases).
    """

    class Cause(models.TextChoices):
        FINAL = "FINAL", _("a follow-up with sequence=FINAL")
        EXPIRY = "EXPIRY", _("expired")
        RENEWAL = "RENEWAL", _("replaced by a renewal")

    class State(models.TextChoices):
        OPEN = "OPEN", _("to be released")
        RELEASED = "RELEASED", _("released")
        NOTHING_LEFT = "NOTHING", _("nothing was left")
        GIVEN_UP = "GIVEN_UP", _("given up")

    authorization = models.UUIDField(db_index=True)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, db_index=False, db_constraint=False)
    cause = models.CharField(max_length=7, choices=Cause)
    state = models.CharField(max_length=8, choices=State, default=State.OPEN, db_default=State.OPEN)
    amount = models.DecimalField(max_digits=14, decimal_places=2, null=True)
    currency = models.CharField(max_length=3)
    payment = models.UUIDField(null=True)
    result_code = models.CharField(max_length=11, default="", db_default="")
    due_at = models.DateTimeField(null=True)
    tries = models.SmallIntegerField(default=0, db_default=0)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("released authorization")
        verbose_name_plural = _("released authorizations")
        indexes = [
            models.Index(fields=["due_at"], name="authorization_release_due", condition=models.Q(due_at__isnull=False)),
            models.Index(
                fields=["ended_at"], name="authorization_release_ended", condition=models.Q(ended_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.authorization.hex} ({self.state})"


class Suspension(models.Model):
    """A PENDING payment that waits for its shopper, who was sent away to authenticate or to a bank or wallet, or has to
    pay the rest of an amount that was approved in part.

    ``deadline``: the merchant's clock; when it passes, the bank, wallet or directory is asked for the last time, and a
    part is given back.
    ``secrets_sealed``: the CVV (or another one-time secret) that the acquirer will need, sealed; deleted with the row
    when the payment leaves PENDING. ``lease_until``: real time, while a worker asks.
    """

    class Stage(models.TextChoices):
        AUTHENTICATE = "authenticate", "the shopper authenticates"
        REDIRECT = "redirect", "the shopper is at a bank or wallet"
        PART = "part", "a part is held until the rest is paid"

    payment = models.OneToOneField(
        Payment, on_delete=models.PROTECT, primary_key=True, related_name="suspension", db_constraint=False
    )
    stage = models.CharField(max_length=12, choices=Stage)
    deadline = models.DateTimeField(db_index=True)
    secrets_sealed = models.BinaryField(null=True)
    lease_until = models.DateTimeField(null=True)


class PaymentEvent(models.Model):
    """One state change of one payment, written in the transaction that made it. Append-only (enforced by the database):
    rows leave with their payment, once the archive has it.

    The statement that writes an event writes its payment, or updates it, so the database need not look that up. The
    key is what events are found by, and the only index: each payment has two of them.
    """

    pk = models.CompositePrimaryKey("payment_id", "sequence")
    payment = models.ForeignKey(
        Payment, on_delete=models.PROTECT, related_name="events", db_index=False, db_constraint=False
    )
    sequence = models.SmallIntegerField()
    event = models.CharField(max_length=16)
    status = models.CharField(max_length=8, choices=Status)
    result_code = models.CharField(max_length=11, default="")
    at = models.DateTimeField()

    class Meta:
        triggers = guards.leaves_for("gateway_archivedpayment", "id = OLD.payment_id")

    def __str__(self) -> str:
        return f"{self.sequence}: {self.event}"


UNDECIDED: Final = "undecided"
"""Key of AcquirerExchange.received: why the answer stored with it is inconclusive."""
MANY_REFUSALS: Final = 10
"""Answers that decide nothing, to voids or to repeats, after which a person has to ask the acquirer (PERSON_TYPES)."""
GIVING_TYPES: Final = frozenset({"RF", "CD", "RV"})
"""Payments that give money, or give it back; no network takes back by itself what it has given."""
PERSON_TYPES: Final = GIVING_TYPES | {"CP"}
"""Payments in doubt whose outcome a person may enter (docs/decisions/0138, 0166)."""
ASKING_KINDS: Final = frozenset({"void", "inquire"})
"""Kinds of exchanges by which recovery asks about a payment, or takes it back."""


class AcquirerExchange(models.Model):
    """One message to an acquirer and its answer, both masked. ``sent`` is stored as a patch against the payment's row:
    see gateway.payments.acquirer_message_store, which rebuilds the message. ``id`` rises with time; the key is what
    exchanges are found by, and the only index. Partitioned by month of ``payment_id`` (gateway.db.partitions)."""

    pk = models.CompositePrimaryKey("payment_id", "id")
    payment = models.ForeignKey(
        Payment, on_delete=models.PROTECT, related_name="exchanges", db_index=False, db_constraint=False
    )
    id = models.BigIntegerField(
        db_default=models.Func(models.Value("gateway_acquirer_exchange_id"), function="nextval"), editable=False
    )
    connector = models.CharField(max_length=32)
    kind = models.CharField(max_length=8)
    sent = models.JSONField()
    received = models.JSONField(null=True)
    duration_ms = models.IntegerField()
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.kind} at {self.connector}"

    @classmethod
    def count_undecided(cls, payments: Iterable[UUID]) -> dict[UUID, int]:
        """Payment → how often its acquirer has answered a void without taking it back, or a repeat without a verdict;
        none for those without."""
        undecided = cls.objects.filter(payment__in=payments, kind__in=ASKING_KINDS, received__has_key=UNDECIDED)
        return dict(undecided.values_list("payment_id").annotate(count=models.Count("id")).order_by())
