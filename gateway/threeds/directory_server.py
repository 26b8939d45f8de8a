"""The port to a directory server: the simulated one of the test environment, or a channel's external 3DS server.

Source: Part A, What the service does, 5 (test modes); docs/decisions/0066.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from uuid import UUID

from django.conf import settings

from gateway.connectors.simulator.acs import SIMULATED_DIRECTORY
from gateway.core.result_codes import EXTERNAL_TEST_MODE
from gateway.core.secret import Secret
from gateway.models import ThreeDSecureConfiguration
from gateway.threeds.external_server import ExternalThreeDSServer
from gateway.threeds.server_setup import has_threeds_server, open_threeds_server
from gateway.threeds_protocol.messages import CardRange, ThreeDSMessage


class DirectoryServer(Protocol):
    """Interface of a directory server. ``look_up`` and ``authenticate`` raise DirectoryUnreachableError, the latter
    IncompleteAReqError, too. ``url``: empty for the simulated one."""

    name: str
    url: str

    def look_up(self, number: Secret, steering: Mapping[str, str], ident: UUID) -> tuple[str, CardRange | None]:
        """(scenario, card range) of a card; the range is None if no issuer authenticates it. ``ident``: the
        threeDSServerTransID."""
        ...

    def authenticate(self, areq: ThreeDSMessage, scenario: str, network: str) -> ThreeDSMessage:
        """Send an AReq, return the ARes."""
        ...


def is_server_external(configuration: ThreeDSecureConfiguration, test_mode: str) -> bool:
    """Whether an authentication is an external 3DS server's, and not the simulated directory's."""
    return settings.IS_LIVE or (test_mode == EXTERNAL_TEST_MODE and has_threeds_server(configuration))


def get_directory_server(configuration: ThreeDSecureConfiguration, test_mode: str) -> DirectoryServer | None:
    """The directory server of an authentication. Live, and testMode EXTERNAL where one is configured: the channel's
    external 3DS server, None if there is none or its secret does not open. Otherwise the simulated one."""
    if is_server_external(configuration, test_mode):
        access = open_threeds_server(configuration)
        return ExternalThreeDSServer(access) if access is not None else None
    return SIMULATED_DIRECTORY
