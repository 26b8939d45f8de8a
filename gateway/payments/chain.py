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

COUNTED = frozenset({Status.STARTED, Status.PENDING, Status.IN_DOUBT, Status.APPROVED})
OPEN = frozenset({Status.STARTED, Status.PENDING, Status.IN_DOUBT})
ZERO = Decimal(0)
INCREMENTAL = "INCREMENTAL_AUTH"


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


def authorisations(chain: Chain) -> list[Payment]:
    """The preauthorization and those that raised or renewed it: to follow-ups they are one."""
    return [member for member in chain.members if member.payment_type == "PA"]


def authorised(chain: Chain) -> Decimal:
    """The first authorization and every incremental one that was granted; a renewal raises nothing."""
    raises = (
        worth(member)
        for member in authorisations(chain)
        if member.practice == INCREMENTAL and member.status == Status.APPROVED
    )
    return sum(raises, worth(chain.first))


def capturable(chain: Chain, authorisation: Payment) -> Decimal:
    """What a PA still has to give: authorised less captured, received and reversed; nothing once FINAL closed it."""
    if is_closed(chain, authorisation):
        return ZERO
    return authorised(chain) - sum((chain.sum_of(member, "CP", "RV", "RC") for member in authorisations(chain)), ZERO)


def refundable(chain: Chain, payment: Payment) -> Decimal:
    """What of a payment can still be given back, whichever way: refunded, reversed, charged back.

    A receipt (RC) tells that the money of a DB or CP has come in. Refunds of the receipt are refunds of that payment,
    so neither can be used to give the same money back twice.
    """
    own = worth(payment) - given_back(chain, payment)
    if payment.payment_type == "RC" and payment.referenced is not None:
        behind = chain.find(payment.referenced)
        if behind is not None and behind.payment_type != "PA":
            return min(own, refundable(chain, behind))
    return own - sum((given_back(chain, receipt) for receipt in chain.followers(payment, "RC")), ZERO)


def given_back(chain: Chain, payment: Payment) -> Decimal:
    """Refunds and reversals of a payment, and chargebacks that stand."""
    disputes = chain.followers(payment, "CB")
    return chain.sum_of(payment, "RF", "RV") + sum((standing(chain, dispute) for dispute in disputes), ZERO)


def standing(chain: Chain, dispute: Payment) -> Decimal:
    """What a chargeback still takes: less what its reversals (CR) won back, plus second chargebacks of those."""
    won = [member for member in chain.followers(dispute, "CR") if member.status == Status.APPROVED]
    return worth(dispute) - total(won) + sum((chain.sum_of(member, "CB") for member in won), ZERO)


def reversible(chain: Chain, payment: Payment) -> Decimal:
    """What a reversal can still take back: the uncaptured rest of a PA, the rest of anything else."""
    return capturable(chain, payment) if payment.payment_type == "PA" else refundable(chain, payment)


def receivable(chain: Chain, payment: Payment) -> Decimal:
    """What receipts can still tell of: the open rest of a PA, the amount of a DB or CP that none has told of yet."""
    if payment.payment_type == "PA":
        return capturable(chain, payment)
    return min(worth(payment) - chain.sum_of(payment, "RC"), refundable(chain, payment))


def disputable(chain: Chain, payment: Payment) -> Decimal:
    """What a chargeback can still take: the unreturned rest of a payment, or again what a representment won."""
    if payment.payment_type != "CR":
        return refundable(chain, payment)
    return min(worth(payment) - chain.sum_of(payment, "CB"), refundable(chain, _disputed(chain, payment)))


def _disputed(chain: Chain, payment: Payment) -> Payment:
    """The payment that a chargeback or a representment is about."""
    while payment.payment_type in ("CB", "CR") and payment.referenced is not None:
        behind = chain.find(payment.referenced)
        if behind is None:
            break
        payment = behind
    return payment


def representable(chain: Chain, dispute: Payment) -> Decimal:
    """What of a chargeback is not yet reversed."""
    return worth(dispute) - chain.sum_of(dispute, "CR")


def is_disputed(chain: Chain, payment: Payment) -> bool:
    """A chargeback takes money of this payment, or of the one whose receipt it is."""
    return any(
        standing(chain, dispute) > 0 for one in _money_of(chain, payment) for dispute in chain.followers(one, "CB")
    )


def is_closed(chain: Chain, payment: Payment) -> bool:
    """A follow-up marked sequence=FINAL ends what may follow (A13.15). A PA is one with those that raised it, a receipt
    one with the payment it tells of."""
    ended = authorisations(chain) if payment.payment_type == "PA" else _money_of(chain, payment)
    return any(member.final for one in ended for member in chain.followers(one, "CP", "RV", "RF"))


def is_being_raised(chain: Chain) -> bool:
    """An increment or a renewal of the authorization has no answer yet."""
    return any(member.practice and member.status in OPEN for member in authorisations(chain))


def is_used_up(chain: Chain, authorisation: Payment) -> bool:
    """An authorization that was captured, received or reversed as far as it went, or captured as often as it may be.
    One for 0.00 was not."""
    left = captures_left(chain, authorisation)
    if left is not None and left <= 0:
        return True
    taken = any(True for member in authorisations(chain) for _ in chain.followers(member, "CP", "RV", "RC"))
    return taken and capturable(chain, authorisation) <= 0


def _money_of(chain: Chain, payment: Payment) -> list[Payment]:
    """The payment, and for a receipt the DB or CP behind it: a refund of one is a refund of the other."""
    behind = chain.find(payment.referenced) if payment.payment_type == "RC" and payment.referenced else None
    return [payment] if behind is None or behind.payment_type == "PA" else [payment, behind]


def captures_left(chain: Chain, authorisation: Payment) -> int | None:
    """How many more captures numberOfCaptures allows; None when it was not sent."""
    most = chain.first.max_captures
    if most is None:
        return None
    return most - sum(1 for member in authorisations(chain) for _ in chain.followers(member, "CP"))
