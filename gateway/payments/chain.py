"""Payment chains: a first payment with its follow-ups, and what of it can still be captured, refunded, reversed.

Nothing of this is stored. Follow-ups count while they are STARTED, PENDING, IN_DOUBT or APPROVED, so that two at once
can never both pass a ceiling; what raises a ceiling (an incremental authorization, a representment) counts only once it
is APPROVED.
Source: decisions, section 4; Part A, Basic payment (sequence, numberOfCaptures, referenceUuid).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from gateway.models import Payment, Status

COUNTED_STATUSES = frozenset({Status.STARTED, Status.PENDING, Status.IN_DOUBT, Status.APPROVED})
OPEN_STATUSES = frozenset({Status.STARTED, Status.PENDING, Status.IN_DOUBT})
ZERO_AMOUNT = Decimal(0)
DEBIT_TYPES = frozenset({"DB", "CP", "RB"})
INCREMENTAL_AUTHORIZATION = "INCREMENTAL_AUTH"
CLOSING_TYPES = ("CP", "RV", "RF")
"""Follow-ups that end what they refer to when they are sent with sequence=FINAL."""


@dataclass(frozen=True, slots=True)
class Chain:
    """All payments of one chain, oldest first."""

    members: Sequence[Payment]

    @property
    def first(self) -> Payment:
        """The payment the chain began with."""
        return next(member for member in self.members if member.id == member.chain)

    def find(self, payment: UUID) -> Payment | None:
        """The member with this id, or None."""
        return next((member for member in self.members if member.id == payment), None)

    def followers(self, payment: Payment, *types: str) -> Iterator[Payment]:
        """The follow-ups of ``payment`` of the given types, without declined ones (COUNTED_STATUSES)."""
        for member in self.members:
            if member.referenced == payment.id and member.payment_type in types and member.status in COUNTED_STATUSES:
                yield member

    def sum_of(self, payment: Payment, *types: str) -> Decimal:
        """The total amount of :meth:`followers`."""
        return sum_payment_amounts(self.followers(payment, *types))


def resolve_payment_amount(payment: Payment) -> Decimal:
    """The amount a payment moves: the approved amount, else the requested one."""
    if payment.status == Status.APPROVED and payment.approved is not None:
        return payment.approved
    return payment.amount


def sum_payment_amounts(payments: Iterable[Payment]) -> Decimal:
    """The total of :func:`resolve_payment_amount`."""
    return sum((resolve_payment_amount(payment) for payment in payments), ZERO_AMOUNT)


def list_authorizations(chain: Chain) -> list[Payment]:
    """The preauthorization with its increments and renewals: follow-ups treat them as one authorization."""
    return [member for member in chain.members if member.payment_type == "PA"]


def compute_authorized_amount(chain: Chain) -> Decimal:
    """The amount of the first authorization plus its approved increments; a renewal adds nothing."""
    raises = (
        resolve_payment_amount(member)
        for member in list_authorizations(chain)
        if member.practice == INCREMENTAL_AUTHORIZATION and member.status == Status.APPROVED
    )
    return sum(raises, resolve_payment_amount(chain.first))


def compute_capturable_amount(chain: Chain, authorization: Payment) -> Decimal:
    """What of a PA can still be captured: authorized less captured, received (RC) and reversed; 0 once it is closed."""
    return ZERO_AMOUNT if is_closed(chain, authorization) else compute_uncaptured_amount(chain)


def compute_uncaptured_amount(chain: Chain) -> Decimal:
    """What the acquirer still holds of a chain's authorization: the same, whether or not it is closed."""
    return compute_authorized_amount(chain) - sum(
        (chain.sum_of(member, "CP", "RV", "RC") for member in list_authorizations(chain)), ZERO_AMOUNT
    )


def compute_refundable_amount(chain: Chain, payment: Payment) -> Decimal:
    """What of a payment can still be returned by a refund, a reversal or a chargeback.

    A receipt (RC) records that the money of a DB or CP arrived. Refunds of the receipt count as refunds of that payment
    and the other way round, so the same money cannot be returned twice.
    """
    own = resolve_payment_amount(payment) - compute_returned_amount(chain, payment)
    if payment.payment_type == "RC" and payment.referenced is not None:
        behind = chain.find(payment.referenced)
        if behind is not None and behind.payment_type != "PA":
            return min(own, compute_refundable_amount(chain, behind))
    return own - sum(
        (compute_returned_amount(chain, receipt) for receipt in chain.followers(payment, "RC")), ZERO_AMOUNT
    )


def compute_returned_amount(chain: Chain, payment: Payment) -> Decimal:
    """The total of a payment's refunds, reversals and chargebacks, less what chargeback reversals won back."""
    disputes = chain.followers(payment, "CB")
    return chain.sum_of(payment, "RF", "RV") + sum(
        (compute_disputed_amount(chain, dispute) for dispute in disputes), ZERO_AMOUNT
    )


def compute_refunded_amount(chain: Chain, payment: Payment) -> Decimal:
    """The total of a payment's refunds and reversals, of its receipts too, without chargebacks. Pending ones count."""
    receipts = chain.followers(payment, "RC")
    return chain.sum_of(payment, "RF", "RV") + sum((chain.sum_of(one, "RF") for one in receipts), ZERO_AMOUNT)


def compute_overdrawn_amount(chain: Chain) -> Decimal:
    """What was returned above what was paid: a chargeback of refunded money, or one above the amount by exchange
    rates of the scheme. It is lost until a chargeback reversal returns it."""
    paid = (member for member in chain.members if member.payment_type in DEBIT_TYPES)
    return sum(
        (max(-compute_refundable_amount(chain, one), ZERO_AMOUNT) for one in paid if one.status == Status.APPROVED),
        ZERO_AMOUNT,
    )


def compute_disputed_amount(chain: Chain, dispute: Payment) -> Decimal:
    """The amount a chargeback still takes: less what its reversals (CR) won back, plus second chargebacks of those."""
    won = [member for member in chain.followers(dispute, "CR") if member.status == Status.APPROVED]
    return (
        resolve_payment_amount(dispute)
        - sum_payment_amounts(won)
        + sum((chain.sum_of(member, "CB") for member in won), ZERO_AMOUNT)
    )


def compute_reversible_amount(chain: Chain, payment: Payment) -> Decimal:
    """What can still be reversed: the uncaptured part of a PA, the unreturned part of any other payment."""
    return (
        compute_capturable_amount(chain, payment)
        if payment.payment_type == "PA"
        else compute_refundable_amount(chain, payment)
    )


def compute_receivable_amount(chain: Chain, payment: Payment) -> Decimal:
    """What receipts (RC) can still record: the capturable part of a PA, the unreceived amount of a DB or CP."""
    if payment.payment_type == "PA":
        return compute_capturable_amount(chain, payment)
    return min(resolve_payment_amount(payment) - chain.sum_of(payment, "RC"), compute_refundable_amount(chain, payment))


def compute_disputable_amount(chain: Chain, payment: Payment) -> Decimal:
    """What a chargeback can still take: the unreturned part of a payment, or what a chargeback reversal won back."""
    if payment.payment_type != "CR":
        return compute_refundable_amount(chain, payment)
    return min(
        resolve_payment_amount(payment) - chain.sum_of(payment, "CB"),
        compute_refundable_amount(chain, _resolve_disputed_payment(chain, payment)),
    )


def _resolve_disputed_payment(chain: Chain, payment: Payment) -> Payment:
    """The payment whose money a chargeback or a chargeback reversal is about."""
    while payment.payment_type in ("CB", "CR") and payment.referenced is not None:
        behind = chain.find(payment.referenced)
        if behind is None:
            break
        payment = behind
    return payment


def compute_representable_amount(chain: Chain, dispute: Payment) -> Decimal:
    """The part of a chargeback that is not reversed yet."""
    return resolve_payment_amount(dispute) - chain.sum_of(dispute, "CR")


def compute_standing_amount(chain: Chain, payment: Payment) -> Decimal:
    """What unreversed chargebacks take of this payment, or, for a receipt, of the payment it records."""
    return sum(
        (
            compute_disputed_amount(chain, dispute)
            for member in _list_same_money_payments(chain, payment)
            for dispute in chain.followers(member, "CB")
        ),
        ZERO_AMOUNT,
    )


def can_be_charged_back(chain: Chain, payment: Payment) -> bool:
    """Whether an acquirer's report of a chargeback of this payment can be true, whatever was refunded and whatever its
    amount: not when chargebacks take all of it already, and a reversal (CR) is not charged back twice in full."""
    taken = chain.sum_of(payment, "CB") if payment.payment_type == "CR" else compute_standing_amount(chain, payment)
    return taken < resolve_payment_amount(payment)


def is_closed(chain: Chain, payment: Payment) -> bool:
    """Whether a follow-up marked sequence=FINAL ended what may follow (A13.15): of a PA or its increments together, of
    a receipt or the payment it records together."""
    same = list_authorizations(chain) if payment.payment_type == "PA" else _list_same_money_payments(chain, payment)
    return any(follow_up.final for member in same for follow_up in chain.followers(member, *CLOSING_TYPES))


def compute_reversed_amount(chain: Chain, payment: Payment) -> Decimal:
    """The total of a payment's reversals; of a PA, of those of its increments and renewals as well."""
    same = list_authorizations(chain) if payment.payment_type == "PA" else [payment]
    return sum((chain.sum_of(member, "RV") for member in same), ZERO_AMOUNT)


def has_open_reversal(chain: Chain, payment: Payment) -> bool:
    """Whether a reversal of the payment (of a PA: of the whole authorization) has no final result yet."""
    same = list_authorizations(chain) if payment.payment_type == "PA" else [payment]
    return any(reversal.status in OPEN_STATUSES for member in same for reversal in chain.followers(member, "RV"))


def has_pending_increment(chain: Chain) -> bool:
    """Whether an increment or a renewal of the authorization has no final result yet."""
    return any(member.practice and member.status in OPEN_STATUSES for member in list_authorizations(chain))


def is_exhausted(chain: Chain, authorization: Payment) -> bool:
    """Whether an authorization is fully captured, received or reversed, or captured as often as numberOfCaptures
    allows. An authorization of 0.00 without follow-ups is not."""
    left = count_remaining_captures(chain)
    if left is not None and left <= 0:
        return True
    taken = any(True for member in list_authorizations(chain) for _ in chain.followers(member, "CP", "RV", "RC"))
    return taken and compute_capturable_amount(chain, authorization) <= 0


def _list_same_money_payments(chain: Chain, payment: Payment) -> list[Payment]:
    """The payment, and for a receipt also the DB or CP it records: a refund of one is a refund of the other."""
    behind = chain.find(payment.referenced) if payment.payment_type == "RC" and payment.referenced else None
    return [payment] if behind is None or behind.payment_type == "PA" else [payment, behind]


def count_remaining_captures(chain: Chain) -> int | None:
    """How many more captures numberOfCaptures allows; None when it was not sent."""
    most = chain.first.max_captures
    if most is None:
        return None
    return most - sum(1 for member in list_authorizations(chain) for _ in chain.followers(member, "CP"))
