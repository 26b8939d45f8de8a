"""The connector of what asks no acquirer: standalone risk checks.

A payment whose worker died is asked about like any other; here the answer is always that nothing was ever asked.
"""

from __future__ import annotations

from typing import Final

from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ConnectorSetting,
    NotFoundAtAcquirer,
    OutcomeUnknownError,
)
from gateway.connectors.reply_codes import REVERSED


class NullConnector:
    """Takes no payments at all."""

    name = "nobody"
    operations: frozenset[str] = frozenset()
    takes: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    redirects = False
    settings: tuple[ConnectorSetting, ...] = ()
    asks_with_means = False

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        raise OutcomeUnknownError("nobody is there to be asked", {})

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        return NotFoundAtAcquirer(received={"outcome": "unknown"})

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        return AcquirerReply(code=REVERSED, received={"outcome": "nothing to reverse"})


NO_ACQUIRER: Final = NullConnector()
