"""Bank direct debits as a rig: orders are stored in our own tables and sent to the bank later, in files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Final
from uuid import UUID

from gateway.connectors.means import BankAccount
from gateway.connectors.port import AcquirerRequest, ConnectorAccount
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import BankOrder, Channel, Division, Merchant, Payment, Psp, Status
from tests.connectors.rig import Processor, Rig
from tests.support import sepa

_STANDING: Final = (BankOrder.State.WAITING, BankOrder.State.FILED, BankOrder.State.BOOKED)


class _Books:
    """The books, with a merchant whose payments are asked about."""

    account = ConnectorAccount(merchant="shop-bank", settings=sepa.SETTINGS)

    def inject_fault(self, fault: str) -> None:
        raise AssertionError(f"{fault}: there is no line between us and our own books")

    def booked_amount(self, payment: UUID) -> Decimal:
        order = BankOrder.objects.filter(pk=payment, state__in=_STANDING).first()
        return order.amount if order is not None else Decimal(0)

    def booked_amounts(self) -> dict[str, Decimal]:
        return {order.pk.hex: order.amount for order in BankOrder.objects.filter(state__in=_STANDING)}

    def go_down(self) -> None:
        raise AssertionError("our own books do not go away")


def _insert_payment(request: AcquirerRequest) -> None:
    """Insert the payment of an order: orders of one merchant are filed together, so its merchant is read."""
    Payment.objects.create(
        id=request.payment,
        merchant=Merchant.objects.get(),
        channel=Channel.objects.get(),
        chain=request.payment,
        payment_type=request.operation,
        brand=request.brand,
        method="DD",
        status=Status.STARTED,
        amount=request.money.amount,
        currency=request.money.currency,
        connector="sepa",
        acquirer_merchant_id="shop-bank",
        request_id=identifiers.row_id(),
        created_at=clock.real_now(),
    )


@contextmanager
def _running() -> Iterator[Processor]:
    division = Division.objects.create(name="Division", psp=Psp.objects.create(name="PSP"))
    Channel.objects.create(name="main", merchant=Merchant.objects.create(name="Shop", division=division))
    yield _Books()


SEPA_RIG: Final = Rig(
    connector=CONNECTORS["sepa"],
    start=_running,
    brand="DIRECTDEBIT_SEPA",
    means=BankAccount(
        account=Secret(sepa.DEBTOR),
        is_iban=True,
        holder="Jane Jones",
        bic="COBADEFFXXX",
        country="DE",
        mandate_id="MANDATE-A",
        mandate_signed="2026-01-15",
    ),
    money=Money.parse("10.00", "EUR"),
    declined=(Money.parse("10.00", "USD"), "800.100.173"),
    secrets=(sepa.DEBTOR,),
    faults=(),
    answers_later=True,
    insert_payment=_insert_payment,
)
