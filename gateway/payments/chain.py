"""A chain: a first payment and everything that followed it. What was captured, refunded, reversed is computed here.

Follow-ups count while they are STARTED, PENDING, IN_DOUBT or APPROVED, so that two at once can never both pass a
ceiling (decisions, section 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from gateway.models import Payment, Status

COUNTED = frozenset({Status.STARTED, Status.PENDING, Status.IN_DOUBT, Status.APPROVED})
OPEN = frozenset({Status.STARTED, Status.PENDING, Status.IN_DOUBT})
ZERO = Decimal(0)


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
            if member.referenced == payment.id and member.payment_type in types and member.status in COUNTED:
                yield member

    def sum_of(self, payment: Payment, *types: str) -> Decimal:
        return total(self.followers(payment, *types))


def worth(payment: Payment) -> Decimal:
    """What a payment moves, or may still move: what was approved, else what was asked for."""
    if payment.status == Status.APPROVED and payment.approved is not None:
        return payment.approved
    return payment.amount


def total(payments: Iterable[Payment]) -> Decimal:
    return sum((worth(payment) for payment in payments), ZERO)


def capturable(chain: Chain, authorisation: Payment) -> Decimal:
    """What a PA still has to give: authorised less captured less reversed; nothing once a FINAL capture closed it."""
    if is_closed(chain, authorisation):
        return ZERO
    return worth(authorisation) - chain.sum_of(authorisation, "CP") - chain.sum_of(authorisation, "RV")


def refundable(chain: Chain, payment: Payment) -> Decimal:
    """What of a DB or CP can still be given back."""
    return worth(payment) - chain.sum_of(payment, "RF", "RV", "CB") + _represented(chain, payment)


def reversible(chain: Chain, payment: Payment) -> Decimal:
    """What a reversal can still take back: the uncaptured rest of a PA, the unrefunded rest of anything else."""
    return capturable(chain, payment) if payment.payment_type == "PA" else refundable(chain, payment)


def is_closed(chain: Chain, payment: Payment) -> bool:
    """A follow-up marked sequence=FINAL ends what may follow (A13.15)."""
    return any(member.final for member in chain.followers(payment, "CP", "RV", "RF"))


def captures_left(chain: Chain, authorisation: Payment) -> int | None:
    """How many more captures numberOfCaptures allows; None when it was not sent."""
    if authorisation.max_captures is None:
        return None
    return authorisation.max_captures - sum(1 for _ in chain.followers(authorisation, "CP"))


def _represented(chain: Chain, payment: Payment) -> Decimal:
    """Chargebacks that were reversed give the money back to the merchant."""
    return sum((chain.sum_of(dispute, "CR") for dispute in chain.followers(payment, "CB")), ZERO)
