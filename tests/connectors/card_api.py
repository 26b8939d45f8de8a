"""The card API as a rig of the kit: the connector, with a small processor of the test's own behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.test import override_settings

from gateway.connectors.card_api.connector import CARD_API
from gateway.connectors.port import ConnectorAccount
from gateway.core.money import Money
from gateway.core.secret import Secret
from tests.connectors.rig import Processor, Rig
from tests.connectors.stub import card
from tests.support.card_api import KEY, CardApi, card_api


class _Running:
    def __init__(self, api: CardApi) -> None:
        self._api = api
        self.account = ConnectorAccount(merchant="acct_1", settings={"url": api.url}, secrets={"api_key": Secret(KEY)})

    def inject_fault(self, fault: str) -> None:
        self._api.fault(fault)

    def booked_amount(self, payment: UUID) -> Decimal:
        return Decimal(self._api.stands(payment.hex)).scaleb(-2)

    def booked_amounts(self) -> dict[str, Decimal]:
        marks = {thing["metadata"].get("tollhouse_payment", "") for thing in self._api.of("payment_intent")}
        return {mark: Decimal(self._api.stands(mark)).scaleb(-2) for mark in marks}

    def go_down(self) -> None:
        self._api.vanish()


@contextmanager
def _running() -> Iterator[Processor]:
    with override_settings(GATEWAY_OUTBOUND_LOOPBACK=True), card_api() as api:
        yield _Running(api)


CARD_API_RIG: Final = Rig(
    connector=CARD_API,
    start=_running,
    brand="VISA",
    means=card("4242424242424242"),
    money=Money.parse("10.00", "EUR"),
    declined=(card("4000000000009995"), "800.100.155"),
    secrets=("4242424242424242", "987"),
)
