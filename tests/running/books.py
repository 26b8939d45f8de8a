"""Compares our payments with the answers that clients got, and with the acquirer's own log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from tests.running.clients import Acknowledged
from tests.running.servers import DATABASE, eventually
from tests.support.stub_control import StubControl

PAYMENTS = "SELECT replace(id::text, '-', ''), merchant_transaction_id, status, connector FROM gateway_payment"
OPEN = "SELECT count(*) FROM gateway_payment WHERE status IN ('STARTED', 'IN_DOUBT')"
UNLOGGED = "SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r' ORDER BY 1"


class Books(Protocol):
    """What takes a statement and gives its rows: a server, or a cluster that asks whichever is its primary."""

    def ask(self, sql: str, *, database: str) -> list[tuple[Any, ...]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """``lost``: acknowledged and not (or not so) in the books; ``doubled``: keys with more than one payment;
    ``apart``: payments that the acquirer took and we have not approved, or the other way round."""

    payments: int
    lost: int
    doubled: int
    apart: int
    settled_after_s: float

    @property
    def fine(self) -> bool:
        return not (self.lost or self.doubled or self.apart)

    def __str__(self) -> str:
        return f"{self.lost} lost, {self.doubled} doubled, {self.apart} apart from the acquirer's log"


def compare(primary: Books, acknowledged: Iterable[Acknowledged], acquirer: str) -> Comparison:
    """Wait until nothing is open any more, then lay the books side by side."""
    settled = eventually("every payment settled", lambda: _open(primary) == 0)
    rows = primary.ask(PAYMENTS, database=DATABASE)
    ours = {payment: (key, status) for payment, key, status, _ in rows}
    lost = 0
    for told in acknowledged:
        key, status = ours.get(told.payment, ("", ""))
        succeeded = told.code.startswith("000.100.")
        lost += key != told.key or (succeeded and status != "APPROVED")
    keys = Counter(key for key, _ in ours.values() if key)
    took = {key for key, row in StubControl(acquirer).transactions().items() if row["outcome"] == "approved"}
    approved = {payment for payment, _, status, connector in rows if status == "APPROVED" and connector == "stub"}
    return Comparison(
        payments=len(ours),
        lost=lost,
        doubled=sum(count > 1 for count in keys.values()),
        apart=len(took ^ approved),
        settled_after_s=settled,
    )


def _open(primary: Books) -> int:
    return int(primary.ask(OPEN, database=DATABASE)[0][0])
