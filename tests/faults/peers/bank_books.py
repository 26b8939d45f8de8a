"""What the bank collected, booked and paid out, by its own lists, held against our payments and orders. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from tests.faults.books import Payment
from tests.faults.finding import DOUBLED, LOST, NO_EVIDENCE, Finding

WITHDRAWN: Final = "WITHDRAWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class BankBooks:
    """``collections`` and ``payouts`` as the bank lists them; ``moved``: how far the creditor's balance went, minor
    units."""

    collections: Sequence[Mapping[str, Any]]
    payouts: Sequence[Mapping[str, Any]]
    moved: int


def compare(payments: Mapping[str, Payment], orders: Mapping[str, str], theirs: BankBooks) -> list[Finding]:
    """``payments``: all of the channel; ``orders``: payment → the state of its order. What the bank booked is approved
    here and nothing else is; nothing was ordered twice; what was taken out never reached the bank."""
    found = []
    for rows, kind in ((theirs.collections, "DB"), (theirs.payouts, "RF")):
        counted = Counter(row["end_to_end_id"] for row in rows if not _repeated(row))
        found += [
            Finding(kind=DOUBLED, what=f"the bank was told {count} times to move it", payment=ident)
            for ident, count in counted.items()
            if count > 1
        ]
        by_id = {row["end_to_end_id"]: row for row in rows if not _repeated(row)}
        found += [
            Finding(kind=LOST, what="the bank has an order, we know nothing of it", payment=ident)
            for ident in by_id
            if ident not in payments
        ]
        for payment in payments.values():
            if payment.kind == kind:
                found += _of_payment(payment, orders.get(payment.id, ""), by_id.get(payment.id))
    booked = sum(_units(payments.values(), kind) * sign for kind, sign in (("DB", 1), ("RF", -1), ("CB", -1)))
    if booked != theirs.moved:
        found.append(Finding(kind=LOST, what=f"the bank moved {theirs.moved} minor units, by our books {booked}"))
    return found


def _repeated(row: Mapping[str, Any]) -> bool:
    """A file that the bank had seen before, and refused: it moves nothing."""
    return str(row.get("reason") or "") in ("DUPL", "AM05")


def _units(payments: Iterable[Payment], kind: str) -> int:
    return sum(int((one.approved or 0) * 100) for one in payments if one.kind == kind and one.status == "APPROVED")


def _of_payment(payment: Payment, order: str, row: Mapping[str, Any] | None) -> Iterable[Finding]:
    def fault(kind: str, what: str) -> Finding:
        return Finding(kind=kind, what=f"{payment.kind} {payment.status} {payment.code}: {what}", payment=payment.id)

    booked = row is not None and bool(row["booked_at"])
    if booked != (payment.status == "APPROVED"):
        yield fault(LOST, f"the bank says {'booked' if booked else row and row['status']}, our order is {order}")
    if row is not None and Decimal(row["amount"]).scaleb(-2) != payment.amount:
        yield fault(LOST, f"the bank has {row['amount']} minor units, here it is {payment.amount}")
    if row is not None and order == WITHDRAWN:
        yield fault(LOST, "it was taken out, and the bank has it")
    if payment.status == "DECLINED" and row is None and order not in (WITHDRAWN, ""):
        yield fault(NO_EVIDENCE, "the bank knows nothing of it")
