"""What may follow what, up to which amount, and which code says no: one table (decisions, section 4).

``decide`` answers for one follow-up on one chain; the order of its questions is the order of the rulings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from gateway.models import Payment, Status
from gateway.payments.chain import OPEN, Chain, capturable, captures_left, is_closed, refundable, reversible

WRONG_TYPE: Final = "700.300.100"
STILL_OPEN: Final = "700.400.570"
OTHER_CURRENCY: Final = "700.100.500"

Ceiling = Callable[[Chain, Payment], Decimal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One payment type.

    ``follows``: the types it may refer to; empty for first payments. ``unknown``: the code when the id in the path
    names nothing. ``failed``: when the payment behind it did not succeed. ``over``: above the ceiling, or nothing
    left. ``rest``: without an amount it takes all that remains. ``closing``: it is refused once a FINAL follow-up
    ended the chain.
    """

    code: str
    title: str
    follows: frozenset[str] = frozenset()
    unknown: str = ""
    failed: str = ""
    over: str = ""
    ceiling: Ceiling | None = None
    rest: bool = False
    counted_captures: bool = False
    closing: bool = False


def _types(text: str) -> frozenset[str]:
    return frozenset(text.split())


OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        operation.code: operation
        for operation in (
            Operation(code="PA", title="Preauthorization"),
            Operation(code="DB", title="Debit"),
            Operation(code="CD", title="Credit"),
            Operation(
                code="CP", title="Capture", follows=_types("PA"), unknown="700.400.510", failed="700.400.510",
                over="700.400.100", ceiling=capturable, counted_captures=True, closing=True,
            ),
            Operation(
                code="RF", title="Refund", follows=_types("DB CP RB RC"), unknown="600.200.500", failed="700.400.520",
                over="700.400.200", ceiling=refundable, closing=True,
            ),
            Operation(
                code="RV", title="Reversal", follows=_types("PA DB CP RB CD"), unknown="700.400.530",
                failed="700.400.530", over="700.400.300", ceiling=reversible, rest=True, closing=True,
            ),
        )
    }
)  # fmt: skip

FIRST: Final = frozenset(code for code, operation in OPERATIONS.items() if not operation.follows)
FOLLOW_UPS: Final = frozenset(code for code, operation in OPERATIONS.items() if operation.follows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """``code`` is empty when the follow-up may go ahead with ``amount``; else it says why not."""

    amount: Decimal
    code: str = ""


def decide(
    operation: Operation, chain: Chain, target: Payment, amount: Decimal | None, currency: str | None
) -> Decision:
    """May ``operation`` follow ``target`` with ``amount``? The same answer for an API call and a clerk's click."""
    asked = amount if amount is not None else Decimal(0)
    if target.payment_type not in operation.follows:
        return Decision(amount=asked, code=WRONG_TYPE)
    if target.status in OPEN:
        return Decision(amount=asked, code=STILL_OPEN)
    if target.status != Status.APPROVED:
        return Decision(amount=asked, code=operation.failed)
    if currency is not None and currency != target.currency:
        return Decision(amount=asked, code=OTHER_CURRENCY)
    if operation.closing and is_closed(chain, target):
        return Decision(amount=asked, code=operation.over)
    left = captures_left(chain, target) if operation.counted_captures else None
    if left is not None and left <= 0:
        return Decision(amount=asked, code=operation.over)
    if operation.ceiling is None:
        return Decision(amount=asked)
    remaining = operation.ceiling(chain, target)
    if amount is None and operation.rest:
        asked = remaining
    if asked > remaining or remaining <= 0 or asked <= 0:
        return Decision(amount=max(asked, Decimal(0)), code=operation.over)
    return Decision(amount=asked)
