"""The stub acquirer as the kit's first rig, and the example for others."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Final
from uuid import UUID

from django.test import override_settings

from gateway.connectors.means import Card
from gateway.connectors.port import ConnectorAccount
from gateway.connectors.stub.connector import STUB
from gateway.core.money import Money
from gateway.core.secret import Secret
from tests.connectors.rig import Processor, Rig
from tests.support.stub import StubProcess

_NAMES: Final = {
    "silent_before": "silent_before", "silent_after": "silent_after", "hangs_up_before": "disconnect_before",
    "hangs_up_after": "disconnect_after", "garbled": "nonsense",
}  # fmt: skip


class _Stub:
    account = ConnectorAccount(merchant="M-1")

    def __init__(self, process: StubProcess) -> None:
        self._process = process

    def inject_fault(self, fault: str) -> None:
        self._process.control.steer(next=1, kinds=["submit"], **{_NAMES[fault]: 1})

    def booked_amount(self, payment: UUID) -> Decimal:
        return self.booked_amounts().get(payment.hex, Decimal(0))

    def booked_amounts(self) -> dict[str, Decimal]:
        rows = self._process.control.transactions()
        return {key: Decimal(row["approved"] or 0) for key, row in rows.items() if row["outcome"] == "approved"}

    def go_down(self) -> None:
        self._process.kill()


@contextmanager
def _running() -> Iterator[Processor]:
    with tempfile.TemporaryDirectory() as folder:
        process = StubProcess(Path(folder))
        process.start()
        with override_settings(GATEWAY_STUB_ACQUIRER=process.address):
            yield _Stub(process)
        process.stop()


def card(number: str) -> Card:
    """A card with every secret a card can have."""
    return Card(number=Secret(number), expiry_month="05", expiry_year="2034", holder="Jane Jones", cvv=Secret("987"))


STUB_RIG: Final = Rig(
    connector=STUB,
    start=_running,
    brand="VISA",
    means=card("4200000000000000"),
    money=Money.parse("10.00", "EUR"),
    declined=(card("4000015500000005"), "800.100.155"),
    secrets=("4200000000000000", "987"),
)
