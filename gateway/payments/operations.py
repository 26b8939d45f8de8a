"""What may follow what, up to which amount, and which code says no: one table (decisions, section 4).

A row is a payment type, a column a state of the chain; the cell is the code. ``evaluate_operation`` answers for one
follow-up on one chain; the order of its questions is the order of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from gateway.models import Payment, Status
from gateway.payments.chain import (
    OPEN_STATUSES,
    Chain,
    compute_capturable_amount,
    compute_disputable_amount,
    compute_receivable_amount,
    compute_refundable_amount,
    compute_representable_amount,
    compute_reversible_amount,
    count_remaining_captures,
    has_pending_increment,
    is_closed,
    is_disputed,
    is_exhausted,
)

AmountCeiling = Callable[[Chain, Payment], Decimal]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentOperation:
    """One payment type. ``follows``: the types it may refer to; empty for first payments.

    The columns, each with the code that refuses: ``unknown``: the id in the path names nothing (404).
    ``wrong_type``: the payment behind it is of another type. ``undecided``: that payment is still open, or would be
    ended while it is raised or renewed. ``failed``: it did not succeed. ``other_currency``. ``closed``: a FINAL
    follow-up ended it. ``disputed``: a chargeback stands.
    ``used_up``: captured or reversed as far as it went. ``over``: above the ceiling, or nothing left. ``second``: the
    chargeback is a second one.

    ``ceiling``: the most it may move (None: no bound). ``rest``: without an amount it takes all that remains.
    ``counts_captures``: numberOfCaptures bounds it. ``needs_card``: the acquirer needs the card again.
    ``test_only``: by API in the test environment only; live answers 700.400.402.
    """

    code: str
    title: str
    follows: frozenset[str] = frozenset()
    unknown: str = ""
    wrong_type: str = "700.300.100"
    undecided: str = "700.400.570"
    failed: str = ""
    other_currency: str = "700.100.500"
    closed: str = ""
    disputed: str = ""
    used_up: str = ""
    over: str = ""
    second: str = ""
    ceiling: AmountCeiling | None = None
    rest: bool = False
    counts_captures: bool = False
    needs_card: bool = False
    test_only: bool = False


def _types(text: str) -> frozenset[str]:
    return frozenset(text.split())


# An incremental or renewed authorization is a PA that follows a PA (Part A, referenceUuid): see
# INDUSTRY_PRACTICE_OPERATIONS.
_TABLE: Final = (
    PaymentOperation(code="PA", title="Preauthorization"),
    PaymentOperation(code="DB", title="Debit"),
    PaymentOperation(code="CD", title="Credit"),
    PaymentOperation(
        code="CP",
        title="Capture",
        follows=_types("PA"),
        ceiling=compute_capturable_amount,
        counts_captures=True,
        unknown="700.400.510",
        failed="700.400.510",
        closed="700.400.100",
        over="700.400.100",
    ),
    PaymentOperation(
        code="RF",
        title="Refund",
        follows=_types("DB CP RB RC"),
        ceiling=compute_refundable_amount,
        unknown="600.200.500",
        failed="700.400.520",
        closed="700.400.200",
        disputed="700.300.600",
        over="700.400.200",
    ),
    PaymentOperation(
        code="RV",
        title="Reversal",
        follows=_types("PA DB CP RB CD"),
        ceiling=compute_reversible_amount,
        rest=True,
        unknown="700.400.530",
        failed="700.400.530",
        closed="700.400.300",
        disputed="700.300.600",
        over="700.400.300",
    ),
    PaymentOperation(
        code="RB",
        title="Rebill",
        follows=_types("DB CP"),
        needs_card=True,
        unknown="700.400.580",
        failed="700.300.200",
        disputed="700.300.600",
    ),
    PaymentOperation(
        code="RC",
        title="Receipt",
        follows=_types("PA DB CP"),
        ceiling=compute_receivable_amount,
        unknown="700.400.560",
        failed="700.400.560",
        closed="700.400.560",
        over="700.100.300",
    ),
    PaymentOperation(
        code="CB",
        title="Chargeback",
        follows=_types("DB CP RB CR"),
        ceiling=compute_disputable_amount,
        test_only=True,
        unknown="700.400.550",
        failed="700.400.550",
        over="700.400.400",
    ),
    PaymentOperation(
        code="CR",
        title="Chargeback reversal",
        follows=_types("CB"),
        ceiling=compute_representable_amount,
        test_only=True,
        unknown="700.400.420",
        wrong_type="700.400.420",
        failed="700.400.420",
        over="700.400.410",
        second="700.400.411",
    ),
)

OPERATIONS: Mapping[str, PaymentOperation] = MappingProxyType({operation.code: operation for operation in _TABLE})

INCREMENT_OPERATION: Final = PaymentOperation(
    code="PA",
    title="Incremental authorization",
    follows=_types("PA"),
    needs_card=True,
    unknown="700.400.510",
    failed="700.400.510",
    closed="700.400.100",
    used_up="700.400.510",
)
REAUTHORIZATION_OPERATION: Final = PaymentOperation(
    code="PA",
    title="Renewed authorization",
    follows=_types("PA"),
    needs_card=True,
    ceiling=compute_capturable_amount,
    unknown="700.400.510",
    failed="700.400.510",
    closed="700.400.100",
    used_up="700.400.100",
    over="700.400.100",
)
INDUSTRY_PRACTICE_OPERATIONS: Mapping[str, PaymentOperation] = MappingProxyType(
    {"INCREMENTAL_AUTH": INCREMENT_OPERATION, "REAUTHORIZATION": REAUTHORIZATION_OPERATION}
)
"""By standingInstruction.industryPractice."""

LOCALLY_QUEUED_TYPES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {"sepa": _types("DB RB CD RF"), "iso8583": _types("CP")}
)
"""Connector → the payment types that wait in our own books before anybody else hears of them: an RV may follow one that
is PENDING, and ends it (docs/connectors/sepa.md, docs/connectors/iso8583.md)."""


def is_locally_queued(payment: Payment) -> bool:
    """Whether a pending payment of this kind waits in our own books, and not for its shopper."""
    return payment.payment_type in LOCALLY_QUEUED_TYPES.get(payment.connector, ())


CHAIN_START_TYPES: Final = frozenset(operation.code for operation in _TABLE if not operation.follows) | {"RI"}
"""What a chain may begin with; RI is a standalone risk check, which nothing follows."""
CHAIN_FOLLOW_UP_TYPES: Final = frozenset(operation.code for operation in _TABLE if operation.follows)
PLATFORM_ONLY_CODE: Final = "700.400.402"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUpDecision:
    """``code`` is empty when the follow-up may go ahead with ``amount``; else it says why not."""

    amount: Decimal
    code: str = ""


def evaluate_operation(
    operation: PaymentOperation,
    chain: Chain,
    target: Payment,
    amount: Decimal | None,
    currency: str | None,
    *,
    final: bool = False,
) -> FollowUpDecision:
    """May ``operation`` follow ``target`` with ``amount``? The same answer for an API call and a clerk's click.
    ``final``: it is marked sequence=FINAL."""
    asked = amount if amount is not None else Decimal(0)
    if code := _find_refusal_code(operation, chain, target, currency):
        return FollowUpDecision(amount=asked, code=code)
    if operation.ceiling is None:
        return FollowUpDecision(amount=asked)
    remaining = operation.ceiling(chain, target)
    if amount is None and operation.rest:
        asked = max(remaining, Decimal(0))
    if asked > remaining or asked <= 0:
        return FollowUpDecision(amount=asked, code=operation.over)
    ends = final or (operation.code == "RV" and asked == remaining)
    if ends and target.payment_type == "PA" and has_pending_increment(chain):
        # What is granted after the end would be held at the issuer, and come to life here.
        return FollowUpDecision(amount=asked, code=operation.undecided)
    return FollowUpDecision(amount=asked)


def _find_refusal_code(operation: PaymentOperation, chain: Chain, target: Payment, currency: str | None) -> str:
    """The code that refuses whatever the amount is, or ''."""
    if target.payment_type not in operation.follows:
        return operation.wrong_type
    waits = operation.code == "RV" and target.status == Status.PENDING and is_locally_queued(target)
    if target.status in OPEN_STATUSES and not waits:
        return operation.undecided
    if target.status != Status.APPROVED and not waits:
        return operation.failed
    if currency is not None and currency != target.currency:
        return operation.other_currency
    if operation.closed and is_closed(chain, target):
        return operation.closed
    if operation.used_up and is_exhausted(chain, target):
        return operation.used_up
    if operation.disputed and is_disputed(chain, target):
        return operation.disputed
    if operation.second and _is_second_chargeback(chain, target):
        return operation.second
    left = count_remaining_captures(chain, target) if operation.counts_captures else None
    return operation.over if left is not None and left <= 0 else ""


def _is_second_chargeback(chain: Chain, dispute: Payment) -> bool:
    """A chargeback that follows a representment is the second one, and final."""
    behind = chain.find(dispute.referenced) if dispute.referenced is not None else None
    return behind is not None and behind.payment_type == "CR"
