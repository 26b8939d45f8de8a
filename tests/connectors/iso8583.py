"""A host of ours that speaks ISO 8583, as the kit's rig."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Final
from uuid import UUID

from gateway.connectors.iso8583 import link
from gateway.connectors.iso8583.connector import ISO8583
from gateway.connectors.port import Account
from gateway.money import Money
from tests.connectors.rig import Processor, Rig
from tests.connectors.stub import card
from tests.support.iso_host import IsoHost, settings_for

_FAULTS: Final = {
    "silent_before": ("lost", False), "silent_after": ("lost", True), "hangs_up_before": ("hung up", False),
    "hangs_up_after": ("hung up", True), "garbled": ("garbage alone", True),
}  # fmt: skip


class _Host:
    def __init__(self, host: IsoHost) -> None:
        self._host = host
        # Many hosts answer a request they know as they did before; ours also can say 94, which is tried elsewhere.
        host.duplicate = ""
        self.account = Account(merchant="MERCHANT1", settings=settings_for(host))

    def misbehave(self, fault: str) -> None:
        how, arrives = _FAULTS[fault]
        self._host.next("0200", how, arrives=arrives)

    def stands(self, payment: UUID) -> Decimal:
        rows = [row.left for row in self._host.booked.values() if row.payment == payment.hex and row.mti != "0420"]
        return Decimal(sum(rows)) / 100

    def vanish(self) -> None:
        self._host.stop()


@contextmanager
def _running() -> Iterator[Processor]:
    host = IsoHost()
    host.declines = {5100: "51"}
    yield _Host(host)
    link.close_all()
    host.stop()


ISO8583_RIG: Final = Rig(
    connector=ISO8583,
    start=_running,
    brand="VISA",
    means=card("4200000000000000"),
    money=Money.parse("10.00", "EUR"),
    declined=(Money.parse("51.00", "EUR"), "800.100.155"),
    secrets=("4200000000000000", "987"),
)
