"""Acquirers in this process, each a connector of its own name with books of its own: for routing and failover."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import pytest

from gateway.connectors import routing
from gateway.connectors.acquirer_message import mask_request
from gateway.connectors.circuit import ACQUIRER_UNREACHABLE, guard_connector
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ConnectorSetting,
    NotFoundAtAcquirer,
    OutcomeUnknownError,
)
from gateway.connectors.simulator.connector import SimulatorConnector
from gateway.models import AcquirerAccount, Channel
from gateway.payments import follow_ups, recovery, shopper_return

APPROVED = "000.100.112"
DECLINED = "800.100.155"
REVERSED = "900.100.301"


class Killed(BaseException):
    """The worker is gone: nothing of ours runs after this."""


class Acquirer(SimulatorConnector):
    """``behaviour``: approves, declines, "down" (nobody is reached), "silent" (before it books) or "silent after".
    ``decline_code``, ``decline_details``: of a decline. ``before``, ``after``: what a test does when a payment arrives,
    and when it is booked."""

    redirects = False

    def __init__(self, name: str, behaviour: str = "approves", settings: tuple[ConnectorSetting, ...] = ()) -> None:
        self.name, self.behaviour, self.settings = name, behaviour, settings
        self.decline_code, self.decline_details = DECLINED, {"AcquirerResponse": "51"}
        self.booked: dict[str, AcquirerReply] = {}
        self.asked: list[tuple[str, str]] = []
        self.requests: list[AcquirerRequest] = []
        self.before: Callable[[], object] = lambda: None
        self.after: Callable[[], object] = lambda: None

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        sent = mask_request(request)
        self.asked.append(("submit", request.account.merchant))
        self.requests.append(request)
        self.before()
        if self.behaviour == "down":
            return AcquirerReply(
                code=ACQUIRER_UNREACHABLE, sent=sent, received={"unreachable": "no line"}, retryable_elsewhere=True
            )
        if self.behaviour == "silent":
            raise OutcomeUnknownError("no answer", sent)
        if self.behaviour == "declines":
            return AcquirerReply(
                code=self.decline_code, sent=sent, received={"outcome": "declined"}, details=self.decline_details
            )
        reply = AcquirerReply(
            code=APPROVED,
            approved=request.money,
            connector_tx_id=f"{self.name}-{len(self.booked)}",
            sent=sent,
            received={"outcome": "approved"},
            avs="N" if self.behaviour == "wrong address" else "",
        )
        self.booked[request.payment.hex] = reply
        self.after()
        if self.behaviour == "silent after":
            raise OutcomeUnknownError("no answer", sent)
        return reply

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        self.asked.append(("inquire", request.account.merchant))
        return self.booked.get(request.payment.hex) or NotFoundAtAcquirer(received={"outcome": "unknown"})

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        self.asked.append(("void", request.account.merchant))
        self.booked.pop(request.payment.hex, None)
        return AcquirerReply(code=REVERSED, received={"outcome": "voided"})

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.asked]


def known(monkeypatch: pytest.MonkeyPatch, *acquirers: Acquirer, guard: bool = False) -> None:
    """Register connectors of a test in addition to those of the product."""
    more = {one.name: guard_connector(one) if guard else one for one in acquirers}
    connectors: Mapping[str, object] = MappingProxyType({**routing.CONNECTORS, **more})
    for module in (routing, follow_ups, recovery, shopper_return):
        monkeypatch.setattr(module, "CONNECTORS", connectors)


def account(channel: Channel, connector: str, merchant: str = "", **values: object) -> AcquirerAccount:
    return AcquirerAccount.objects.create(
        channel=channel, connector=connector, acquirer_merchant_id=merchant or f"at {connector}", **values
    )
