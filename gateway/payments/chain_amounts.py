"""Amounts of a payment chain: what of a first payment and its follow-ups can be captured, refunded, reversed.

Nothing of this is stored. Follow-ups count while they are STARTED, PENDING, IN_DOUBT or APPROVED, so that two at once
can never both pass a ceiling; what raises a ceiling (an incremental authorization, a representment) counts only once it
is APPROVED. A refund that its bank returned counts no more.
Source: decisions, section 4; Part A, Basic payment (sequence, numberOfCaptures, referenceUuid).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from gateway.core.authorization_validity import INCREMENTED_AUTHORIZATION
from gateway.models import Payment, Status

COUNTED_STATUSES = frozenset({Status.STARTED, Status.PENDING, Status.IN_DOUBT, Status.APPROVED})
OPEN_STATUSES = frozenset({Status.STARTED, Status.PENDING, Status.IN_DOUBT})
ZERO_AMOUNT = Decimal(0)
DEBIT_TYPES = frozenset({"DB", "CP", "RB"})
INCREMENTAL_AUTHORIZATION = "INCREMENTAL_AUTH"
REAUTHORIZATION = "REAUTHORIZATION"
"""Values of ``Payment.practice``."""
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
        """The follow-ups of ``payment`` of the given types, without declined (COUNTED_STATUSES) and returned ones."""
        for member in self.members:
            if (
                member.referenced == payment.id
                and member.payment_type in types
                and member.status in COUNTED_STATUSES
                and member.returned_at is None
            ):
                yield member

    def sum_of(self, payment: Payment, *types: str) -> Decimal:
        """The total amount of :meth:`followers`."""
        return sum_payment_amounts(self.followers(payment, *types))

    @property
    def authorization(self) -> Authorization:
        """What it has authorized; nothing for a chain that began with another type than PA."""
        return Authorization(self)


def resolve_payment_amount(payment: Payment) -> Decimal:
    """The amount a payment moves: the approved amount, else the requested one."""
    if payment.status == Status.APPROVED and payment.approved_amount is not None:
        return payment.approved_amount
    return payment.amount


def sum_payment_amounts(payments: Iterable[Payment]) -> Decimal:
    """The total of :func:`resolve_payment_amount`."""
    return sum((resolve_payment_amount(payment) for payment in payments), ZERO_AMOUNT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What an acquirer has of one authorization message, where it keeps those of a chain apart."""

    authorized: Decimal
    captured: Decimal
    reversed: Decimal


@dataclass(frozen=True, slots=True)
class Authorization:
    """What a chain that began with a PA has authorized: the PA, its increments and renewals, as one authorization.

    Follow-ups of any of them draw from the same amount. Captures, receipts and reversals count while they have no final
    result, so that what is left never grows by more than is there; increments count once they are approved.
    """

    chain: Chain

    @property
    def members(self) -> list[Payment]:
        """The preauthorization with its increments and renewals, oldest first."""
        return [member for member in self.chain.members if member.payment_type == "PA"]

    @property
    def kind(self) -> str:
        """ESTIMATED, FINAL, or INCREMENTAL once it was raised (gateway.core.authorization_validity)."""
        return INCREMENTED_AUTHORIZATION if self.raised else self.chain.first.authorization_kind

    @property
    def granted(self) -> Decimal:
        """The amount of the first authorization, which may be less than was asked for."""
        return resolve_payment_amount(self.chain.first)

    @property
    def raised(self) -> Decimal:
        """The approved increments."""
        return sum_payment_amounts(self._approved(INCREMENTAL_AUTHORIZATION))

    @property
    def renewals(self) -> int:
        """How often it was renewed. A renewal adds no amount."""
        return len(self._approved(REAUTHORIZATION))

    @property
    def authorized(self) -> Decimal:
        """All that was authorized."""
        return self.granted + self.raised

    @property
    def captured(self) -> Decimal:
        """What was captured, or received otherwise (RC), less what reversals of captures gave back to the hold."""
        taken = [one for member in self.members for one in self.chain.followers(member, "CP", "RC")]
        return sum_payment_amounts(taken) - self._sum_reopened(taken)

    @property
    def released(self) -> Decimal:
        """What was reversed, by the merchant or by the gateway."""
        return self._sum_of("RV")

    @property
    def uncaptured(self) -> Decimal:
        """What the acquirer still holds: the same, whether or not it is closed or expired."""
        return self.authorized - self.captured - self.released

    @property
    def capturable(self) -> Decimal:
        """What can still be captured, before it expires; 0 once it is closed."""
        return ZERO_AMOUNT if self.is_closed else self.uncaptured

    @property
    def is_closed(self) -> bool:
        """Whether a FINAL follow-up ended it."""
        return _is_any_final(self.chain, self.members)

    @property
    def is_reopened(self) -> bool:
        """Whether its acquirer holds again what a capture took, since that was reversed."""
        captures = [one for member in self.members for one in self.chain.followers(member, "CP")]
        return self._sum_reopened(captures) > 0

    @property
    def expires_at(self) -> datetime | None:
        """The time until which it may be captured: the latest end of the authorization and its renewals. None: without
        an end."""
        ends = [member.expires_at for member in self.members if member.status == Status.APPROVED]
        return max((end for end in ends if end is not None), default=None)

    def is_expired(self, at: datetime) -> bool:
        """Whether it has expired at ``at``, or was found to have: a test clock may be put back."""
        end, found = self.expires_at, self.chain.first.expired_at
        return end is not None and (at >= end or (found is not None and found >= end))

    @property
    def remaining_captures(self) -> int | None:
        """How many more captures numberOfCaptures allows; None when it was not sent."""
        most = self.chain.first.max_captures
        if most is None:
            return None
        return most - sum(1 for member in self.members for _ in self.chain.followers(member, "CP"))

    @property
    def is_exhausted(self) -> bool:
        """Whether it is fully captured, received or reversed, or captured as often as numberOfCaptures allows. One of
        0.00 without follow-ups is not."""
        left = self.remaining_captures
        if left is not None and left <= 0:
            return True
        taken = any(True for member in self.members for _ in self.chain.followers(member, "CP", "RV", "RC"))
        return taken and self.capturable <= 0

    @property
    def has_pending_increment(self) -> bool:
        """Whether an increment or a renewal has no final result yet."""
        return any(member.practice and member.status in OPEN_STATUSES for member in self.members)

    @property
    def has_pending_renewal(self) -> bool:
        """Whether a renewal has no final result yet: a capture could name what it renews, or the renewal."""
        return any(member.practice == REAUTHORIZATION and member.status in OPEN_STATUSES for member in self.members)

    def find_current(self, before: Payment | None = None) -> Payment:
        """The authorization as it stands at the acquirer: the newest approved renewal, else the first. ``before``: as
        of when that stored payment of the chain began."""
        renewed = [one for one in self._approved(REAUTHORIZATION) if before is None or one.number < before.number]
        return renewed[-1] if renewed else self.chain.first

    def compute_hold(self, current: Payment, *, until: Payment | None = None) -> Hold:
        """What was authorized by ``current`` and the increments after it, and captured and reversed after it.
        ``until``: the renewal that replaced it."""

        def is_within(payment: Payment) -> bool:
            # By the order in which they began: the id of a late capture is older than that of its renewal.
            return payment.number > current.number and (until is None or payment.number < until.number)

        followers = [one for member in self.members for one in self.chain.followers(member, "CP", "RC", "RV")]
        raised = [one for one in self._approved(INCREMENTAL_AUTHORIZATION) if is_within(one)]
        counted = [one for one in followers if is_within(one)]
        taken = [one for one in counted if one.payment_type != "RV"]
        return Hold(
            authorized=resolve_payment_amount(current) + sum_payment_amounts(raised),
            captured=sum_payment_amounts(taken) - self._sum_reopened(taken),
            reversed=sum_payment_amounts(one for one in counted if one.payment_type == "RV"),
        )

    @property
    def has_pending_capture(self) -> bool:
        """Whether a capture has no final result yet: if it is declined, what it takes is left again."""
        return any(
            capture.status in OPEN_STATUSES
            for member in self.members
            for capture in self.chain.followers(member, "CP", "RC")
        )

    def number_capture(self, capture: UUID) -> tuple[int, int]:
        """(n, m): which of numberOfCaptures captures this is, whether it has begun or not; (0, 0) without that number.
        Captures that an acquirer declined have used up their number, so that a repeat has the same one."""
        most = self.chain.first.max_captures
        if most is None:
            return 0, 0
        held = {member.id for member in self.members}
        before = sum(
            1
            for member in self.chain.members
            if member.payment_type == "CP"
            and member.referenced in held
            and member.id < capture
            and not (member.status == Status.DECLINED and member.sequence == 1)
        )
        return min(before + 1, most), most

    def _sum_reopened(self, captures: Iterable[Payment]) -> Decimal:
        """What the acquirer holds again since these captures were reversed, where it says so (docs/decisions/0096)."""
        return sum_payment_amounts(
            one for capture in captures for one in self.chain.followers(capture, "RV") if one.reopens_authorization
        )

    def _approved(self, practice: str) -> list[Payment]:
        return [one for one in self.members if one.practice == practice and one.status == Status.APPROVED]

    def _sum_of(self, *types: str) -> Decimal:
        return sum((self.chain.sum_of(member, *types) for member in self.members), ZERO_AMOUNT)


def compute_capturable_amount(chain: Chain, _authorization: Payment) -> Decimal:
    """What of a PA can still be captured, by :class:`Authorization`."""
    return chain.authorization.capturable


def compute_refundable_amount(chain: Chain, payment: Payment) -> Decimal:
    """What of a payment can still be returned by a refund, a reversal or a chargeback.

    A receipt (RC) records that the money of a DB or CP arrived. Refunds of the receipt count as refunds of that payment
    and the other way round, so the same money cannot be returned twice. Of a transfer that its bank returned: nothing.
    """
    if payment.returned_at is not None:
        return ZERO_AMOUNT
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
        compute_refundable_amount(chain, find_charged_back_payment(chain, payment)),
    )


def find_charged_back_payment(chain: Chain, payment: Payment) -> Payment:
    """The payment whose money a chargeback or a chargeback reversal is about: they follow one another."""
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
    if payment.payment_type == "PA":
        return chain.authorization.is_closed
    return _is_any_final(chain, _list_same_money_payments(chain, payment))


def _is_any_final(chain: Chain, payments: Iterable[Payment]) -> bool:
    return any(follow_up.final for payment in payments for follow_up in chain.followers(payment, *CLOSING_TYPES))


def compute_reversed_amount(chain: Chain, payment: Payment) -> Decimal:
    """The total of a payment's reversals; of a PA, of those of its increments and renewals as well."""
    return chain.authorization.released if payment.payment_type == "PA" else chain.sum_of(payment, "RV")


def has_open_reversal(chain: Chain, payment: Payment) -> bool:
    """Whether a reversal of the payment (of a PA: of the whole authorization) has no final result yet."""
    same = chain.authorization.members if payment.payment_type == "PA" else [payment]
    return any(reversal.status in OPEN_STATUSES for member in same for reversal in chain.followers(member, "RV"))


def _list_same_money_payments(chain: Chain, payment: Payment) -> list[Payment]:
    """The payment, and for a receipt also the DB or CP it records: a refund of one is a refund of the other."""
    behind = chain.find(payment.referenced) if payment.payment_type == "RC" and payment.referenced else None
    return [payment] if behind is None or behind.payment_type == "PA" else [payment, behind]
