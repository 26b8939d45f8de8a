"""A host of ours that speaks ISO 8583, as the kit's rigs: captures as advices, and by batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.db.models import F

from gateway.connectors import accounts
from gateway.connectors.iso8583 import batch_planning, batch_run, link_registry
from gateway.connectors.iso8583.connector import ISO8583
from gateway.connectors.port import AcquirerRequest, ConnectorAccount
from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.models import (
    AcquirerAccount,
    BatchedCapture,
    Channel,
    Division,
    Merchant,
    Payment,
    Psp,
    Status,
)
from tests.connectors.rig import Processor, Rig
from tests.connectors.stub import card
from tests.support.iso_host import IsoHost, settings_for

_FAULTS: Final = {
    "silent_before": ("lost", False), "silent_after": ("lost", True), "hangs_up_before": ("hung up", False),
    "hangs_up_after": ("hung up", True), "garbled": ("garbage alone", True),
}  # fmt: skip


class _Host:
    def __init__(self, host: IsoHost, **more: str) -> None:
        self._host = host
        # Many hosts answer a request they know as they did before; ours also can say 94, which is tried elsewhere.
        host.duplicate = ""
        self.account = ConnectorAccount(merchant="MERCHANT1", settings=settings_for(host, **more))

    def inject_fault(self, fault: str) -> None:
        how, arrives = _FAULTS[fault]
        self._host.next("0200", how, arrives=arrives)

    def booked_amount(self, payment: UUID) -> Decimal:
        rows = [row.left for row in self._host.booked.values() if row.payment == payment.hex and row.mti != "0420"]
        return Decimal(sum(rows)) / 100

    def booked_amounts(self) -> dict[str, Decimal]:
        found: dict[str, Decimal] = {}
        for row in self._host.booked.values():
            if row.mti != "0420":
                found[row.payment] = found.get(row.payment, Decimal(0)) + Decimal(row.left) / 100
        return found

    def go_down(self) -> None:
        self._host.stop()


@contextmanager
def _running() -> Iterator[Processor]:
    host = IsoHost()
    host.declines = {5100: "51"}
    yield _Host(host)
    link_registry.close_all_links()
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


def _insert_payment(request: AcquirerRequest) -> None:
    """Insert the payment of a capture, which waits in a batch under its merchant and channel."""
    Payment.objects.create(
        id=request.payment,
        merchant=Merchant.objects.get(),
        channel=Channel.objects.get(),
        chain=request.payment,
        payment_type=request.operation,
        brand=request.brand,
        method="CC",
        status=Status.STARTED,
        amount=request.money.amount,
        currency=request.money.currency,
        connector="iso8583",
        acquirer_merchant_id="MERCHANT1",
        request_id=identifiers.row_id(),
        created_at=clock.real_now(),
    )


def _present_capture(request: AcquirerRequest) -> None:
    """Store the pending answer of a capture, and send the batch that it is due in."""
    Payment.objects.filter(pk=request.payment).update(status=Status.PENDING, result_code="800.400.500")
    BatchedCapture.objects.filter(pk=request.payment).update(present_at=F("created_at"))
    assert batch_planning.plan_due_batches() == 1
    assert batch_run.send_due_batches(ISO8583) == 1


@contextmanager
def _by_batch() -> Iterator[Processor]:
    division = Division.objects.create(name="Division", psp=Psp.objects.create(name="PSP"))
    channel = Channel.objects.create(name="main", merchant=Merchant.objects.create(name="Shop", division=division))
    accounts.clear_account_cache()
    host = IsoHost()
    host.declines = {5100: "51"}
    processor = _Host(host, capture="batch")
    AcquirerAccount.objects.create(
        channel=channel, connector="iso8583", acquirer_merchant_id="MERCHANT1", settings=processor.account.settings
    )
    yield processor
    link_registry.close_all_links()
    host.stop()
    accounts.clear_account_cache()


ISO8583_BATCH_RIG: Final = replace(
    ISO8583_RIG, variant="batch", start=_by_batch, insert_payment=_insert_payment, present_capture=_present_capture
)
