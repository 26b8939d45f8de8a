"""A chain: a first payment and everything that followed it. What was captured, refunded, reversed is computed here.

Follow-ups count while they are STARTED, PENDING, IN_DOUBT or APPROVED, so that two at once can never both pass a
ceiling; what raises a ceiling (an incremental authorization, a representment) counts only once it is APPROVED.
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
INCREMENTAL_AUTHORIZATION = "INCREMENTAL_AUTH"


@dataclass(frozen=True, slots=True)
class Chain:
    """All payments of one chain, oldest first. ``version`` is the number of follow-ups begun when it was read."""

    members: Sequence[Payment]

    @property
    def first(self) -> Payment:
        return next(member for member in self.members if member.id == member.chain)

    @property
    def version(self) -> int:
        return self.first.follow_ups

    def find(self, payment: UUID) -> Payment | None:
        return next((member for member in self.members if member.id == payment), None)

    def followers(self, payment: Payment, *types: str) -> Iterator[Payment]:
        """The follow-ups of ``payment`` of the given types that count."""
        for member in self.members:
            if member.referenced == payment.id and member.payment_type in types and member.status in COUNTED_STATUSES:
                yield member

    def sum_of(self, payment: Payment, *types: str) -> Decimal:
        return sum_payment_amounts(self.followers(payment, *types))


def resolve_payment_amount(payment: Payment) -> Decimal:
    """What a payment moves, or may still move: what was approved, else what was asked for."""
    if payment.status == Status.APPROVED and payment.approved is not None:
        return payment.approved
    return payment.amount


def sum_payment_amounts(payments: Iterable[Payment]) -> Decimal:
    return sum((resolve_payment_amount(payment) for payment in payments), ZERO_AMOUNT)


def list_authorizations(chain: Chain) -> list[Payment]:
    """The preauthorization and those that raised or renewed it: to follow-ups they are one."""
    return [member for member in chain.members if member.payment_type == "PA"]


def compute_authorized_amount(chain: Chain) -> Decimal:
    """The first authorization and every incremental one that was granted; a renewal raises nothing."""
    raises = (
        resolve_payment_amount(member)
        for member in list_authorizations(chain)
        if member.practice == INCREMENTAL_AUTHORIZATION and member.status == Status.APPROVED
    )
    return sum(raises, resolve_payment_amount(chain.first))


def compute_capturable_amount(chain: Chain, authorization: Payment) -> Decimal:
    """What a PA still has to give: authorised less captured, received and reversed; nothing once FINAL closed it."""
    if is_closed(chain, authorization):
        return ZERO_AMOUNT
    return compute_authorized_amount(chain) - sum(
        (chain.sum_of(member, "CP", "RV", "RC") for member in list_authorizations(chain)), ZERO_AMOUNT
    )


def compute_refundable_amount(chain: Chain, payment: Payment) -> Decimal:
    """What of a payment can still be given back, whichever way: refunded, reversed, charged back.

    A receipt (RC) tells that the money of a DB or CP has come in. Refunds of the receipt are refunds of that payment,
    so neither can be used to give the same money back twice.
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
    """Refunds and reversals of a payment, and chargebacks that stand."""
    disputes = chain.followers(payment, "CB")
    return chain.sum_of(payment, "RF", "RV") + sum(
        (compute_disputed_amount(chain, dispute) for dispute in disputes), ZERO_AMOUNT
    )


def compute_disputed_amount(chain: Chain, dispute: Payment) -> Decimal:
    """What a chargeback still takes: less what its reversals (CR) won back, plus second chargebacks of those."""
    won = [member for member in chain.followers(dispute, "CR") if member.status == Status.APPROVED]
    return (
        resolve_payment_amount(dispute)
        - sum_payment_amounts(won)
        + sum((chain.sum_of(member, "CB") for member in won), ZERO_AMOUNT)
    )


def compute_reversible_amount(chain: Chain, payment: Payment) -> Decimal:
    """What a reversal can still take back: the uncaptured rest of a PA, the rest of anything else."""
    return (
        compute_capturable_amount(chain, payment)
        if payment.payment_type == "PA"
        else compute_refundable_amount(chain, payment)
    )


def compute_receivable_amount(chain: Chain, payment: Payment) -> Decimal:
    """What receipts can still tell of: the open rest of a PA, the amount of a DB or CP that none has told of yet."""
    if payment.payment_type == "PA":
        return compute_capturable_amount(chain, payment)
    return min(resolve_payment_amount(payment) - chain.sum_of(payment, "RC"), compute_refundable_amount(chain, payment))


def compute_disputable_amount(chain: Chain, payment: Payment) -> Decimal:
    """What a chargeback can still take: the unreturned rest of a payment, or again what a representment won."""
    if payment.payment_type != "CR":
        return compute_refundable_amount(chain, payment)
    return min(
        resolve_payment_amount(payment) - chain.sum_of(payment, "CB"),
        compute_refundable_amount(chain, _resolve_disputed_payment(chain, payment)),
    )


def _resolve_disputed_payment(chain: Chain, payment: Payment) -> Payment:
    """The payment that a chargeback or a representment is about."""
    while payment.payment_type in ("CB", "CR") and payment.referenced is not None:
        behind = chain.find(payment.referenced)
        if behind is None:
            break
        payment = behind
    return payment


def compute_representable_amount(chain: Chain, dispute: Payment) -> Decimal:
    """What of a chargeback is not yet reversed."""
    return resolve_payment_amount(dispute) - chain.sum_of(dispute, "CR")


def is_disputed(chain: Chain, payment: Payment) -> bool:
    """A chargeback takes money of this payment, or of the one whose receipt it is."""
    return any(
        compute_disputed_amount(chain, dispute) > 0
        for one in _list_same_money_payments(chain, payment)
        for dispute in chain.followers(one, "CB")
    )


def is_closed(chain: Chain, payment: Payment) -> bool:
    """A follow-up marked sequence=FINAL ends what may follow (A13.15). A PA is one with those that raised it, a receipt
    one with the payment it tells of."""
    ended = list_authorizations(chain) if payment.payment_type == "PA" else _list_same_money_payments(chain, payment)
    return any(member.final for one in ended for member in chain.followers(one, "CP", "RV", "RF"))


def has_pending_increment(chain: Chain) -> bool:
    """An increment or a renewal of the authorization has no answer yet."""
    return any(member.practice and member.status in OPEN_STATUSES for member in list_authorizations(chain))


def is_exhausted(chain: Chain, authorization: Payment) -> bool:
    """An authorization that was captured, received or reversed as far as it went, or captured as often as it may be.
    One for 0.00 was not."""
    left = count_remaining_captures(chain, authorization)
    if left is not None and left <= 0:
        return True
    taken = any(True for member in list_authorizations(chain) for _ in chain.followers(member, "CP", "RV", "RC"))
    return taken and compute_capturable_amount(chain, authorization) <= 0


def _list_same_money_payments(chain: Chain, payment: Payment) -> list[Payment]:
    """The payment, and for a receipt the DB or CP behind it: a refund of one is a refund of the other."""
    behind = chain.find(payment.referenced) if payment.payment_type == "RC" and payment.referenced else None
    return [payment] if behind is None or behind.payment_type == "PA" else [payment, behind]


def count_remaining_captures(chain: Chain, authorization: Payment) -> int | None:
    """How many more captures numberOfCaptures allows; None when it was not sent."""
    most = chain.first.max_captures
    if most is None:
        return None
    return most - sum(1 for member in list_authorizations(chain) for _ in chain.followers(member, "CP"))
