"""Which connector takes a payment. INTERNAL goes to the simulator; EXTERNAL and live need an acquirer account.

Source: Part A, What the service does, 5.
"""

from __future__ import annotations

from gateway.connectors.port import Connector
from gateway.connectors.simulator.connector import SIMULATOR

INTERNAL = "INTERNAL"

CONNECTORS: dict[str, Connector] = {SIMULATOR.name: SIMULATOR}


class NoRoute(Exception):
    """No connector is configured for this mode."""


def route(test_mode: str) -> Connector:
    """The connector for a payment in ``test_mode`` ('' in the live environment). Raises NoRoute."""
    if test_mode == INTERNAL:
        return SIMULATOR
    raise NoRoute(test_mode)
