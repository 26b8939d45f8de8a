"""A fault of ours in a connector, card in hand: the traceback with every local variable holds no number and no code.

Source: PCI DSS 4.0.1, 3.3.1; docs/adding-a-connector.md.
"""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings

from gateway.connectors.card_api.connector import CARD_API
from gateway.connectors.iso8583.connector import ISO8583
from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerRequest, Connector, ConnectorAccount
from gateway.connectors.simulator.connector import SIMULATOR
from gateway.connectors.stub.connector import STUB
from gateway.core.luhn import compute_check_digit
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.outbound import connections, parse_target
from gateway.outbound.connections import OutboundConnection
from tests.support.chance import strip_values_by_chance

NUMBER = "491612345678901"
NUMBER += compute_check_digit(NUMBER)
CODE, CRYPTOGRAM = "9731", "QUFBQ0FnU1JCa2xtUUNGZ01wRUdBQUFBQUFBPQ=="[:28]
KEY = "sk_test_1234567890abcdef"
HOST = {"host": "127.0.0.1", "port": "9", "terminal": "TERM0001"}
API: dict[str, str] = {}
REQUEST = AcquirerRequest(
    payment=UUID(int=7),
    trace_number=4711,
    operation="DB",
    money=Money.parse("92.00", "EUR"),
    brand="VISA",
    at=datetime(2026, 3, 1, 12, tzinfo=UTC),
    cryptogram=Secret(CRYPTOGRAM),
    parameters={"threeDSecure.eci": "05", "threeDSecure.dsTransactionId": "c75f23af-9454-43f6-ba17-130ed529507e"},
    means=Card(number=Secret(NUMBER), expiry_month="05", expiry_year="2034", holder="Jane Jones", cvv=Secret(CODE)),
)
WHERE: dict[str, tuple[Connector, dict[str, str], str]] = {
    "simulator": (SIMULATOR, {}, "gateway.connectors.simulator.connector._reply"),
    "simulator, answering": (SIMULATOR, {}, "gateway.connectors.simulator.cards.simulate_avs"),
    "stub, connecting": (STUB, {}, "gateway.connectors.stub.connections.StubConnection.__init__"),
    "stub, writing": (STUB, {}, "gateway.connectors.stub.connections.StubConnectionPool._quiet_line"),
    "card API, sending": (CARD_API, API, "gateway.outbound.connections._DeadlineMixin.send_secret"),
    "card API, connecting": (CARD_API, API, "gateway.outbound.connections.ConnectionPool.take"),
    "card API, mapping": (CARD_API, API, "gateway.connectors.card_api.mapping._initiator"),
    "ISO 8583, mapping": (ISO8583, HOST, "gateway.connectors.iso8583.connector.mask_iso_message"),
    "ISO 8583, elements": (ISO8583, HOST, "gateway.connectors.iso8583.data_elements.currency_number"),
    "ISO 8583, connecting": (ISO8583, HOST, "gateway.connectors.iso8583.link.HostLink._wait_for_connection"),
    "ISO 8583, sending": (ISO8583, HOST, "gateway.connectors.iso8583.pending_requests.PendingRequestTable.register"),
}


def broken(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("a fault of ours")


@pytest.mark.parametrize(("connector", "settings", "where"), WHERE.values(), ids=WHERE)
def test_a_fault_in_a_connector_tells_no_card(
    monkeypatch: pytest.MonkeyPatch, connector: Connector, settings: dict[str, str], where: str
) -> None:
    """PCI DSS 4.0.1, 3.3.1."""
    monkeypatch.setattr(where, broken)
    if where.endswith("send_secret"):
        target = parse_target("https://api.stripe.com/")
        connected = OutboundConnection(target, time.monotonic() + 10)
        connected.sock = connections._Socket()
        monkeypatch.setattr("gateway.outbound.connections.ConnectionPool.take", lambda *_: (connected, False))
    if where.endswith("PendingRequestTable.register"):
        monkeypatch.setattr("gateway.connectors.iso8583.link.HostLink._wait_for_connection", lambda *_: object())
    account = ConnectorAccount(merchant="M-1", settings=settings, secrets={"api_key": Secret(KEY)})
    asked: Callable[[AcquirerRequest], object] = connector.submit
    request = AcquirerRequest(**{name: getattr(REQUEST, name) for name in REQUEST.__slots__} | {"account": account})
    with override_settings(GATEWAY_STUB_ACQUIRER="127.0.0.1:9"), pytest.raises(ZeroDivisionError) as caught:
        asked(request)
    text = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert NUMBER not in text
    assert NUMBER[6:-4] not in text
    assert not re.search(rf"(?<![0-9A-Za-z.]){CODE}(?![0-9A-Za-z])", strip_values_by_chance(text))
    assert CRYPTOGRAM not in text
    assert KEY not in text
