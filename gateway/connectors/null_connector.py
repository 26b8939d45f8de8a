"""Connector for operations without an acquirer: standalone risk checks.

If the worker of such a check died, recovery inquires as usual; the answer is always that nothing was sent.
"""

from __future__ import annotations

from typing import Final

from gateway.connectors.capabilities import SENDS_EVERYTHING
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ConnectorSetting,
    NotFoundAtAcquirer,
    OutcomeUnknownError,
)
from gateway.core.result_codes import TIMEOUT_REVERSED_CODE


class NullConnector:
    """Sends nothing and accepts no payment."""

    name = "nobody"
    operations: frozenset[str] = frozenset()
    takes: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    sends = SENDS_EVERYTHING
    redirects = False
    settings: tuple[ConnectorSetting, ...] = ()
    asks_with_means = False

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        """Never reached by a payment; raises OutcomeUnknownError."""
        raise OutcomeUnknownError("there is no acquirer to ask", {})

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        """Nothing was ever sent."""
        return NotFoundAtAcquirer(received={"outcome": "unknown"})

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        """There is nothing to void."""
        return AcquirerReply(code=TIMEOUT_REVERSED_CODE, received={"outcome": "nothing to reverse"})


NO_ACQUIRER: Final = NullConnector()
