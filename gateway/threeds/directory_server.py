"""The directory server of this environment. One is bundled: the simulated one of the test environment.

A real one would implement the same protocol. Source: Part A, What the service does, 5 (test modes).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from django.conf import settings

from gateway.core.secret import Secret
from gateway.threeds import acs
from gateway.threeds.messages import ThreeDSMessage


class DirectoryUnreachableError(Exception):
    """The directory server did not answer in time, or not in its protocol."""


class DirectoryServer(Protocol):
    """Interface of a directory server. ``look_up`` and ``authenticate`` raise DirectoryUnreachableError."""

    name: str

    def look_up(self, number: Secret, steering: Mapping[str, str]) -> tuple[str, acs.CardRange | None]:
        """(scenario, card range) of a card; the range is None if no issuer authenticates it."""
        ...

    def authenticate(self, areq: ThreeDSMessage, scenario: str, network: str) -> ThreeDSMessage:
        """Send an AReq, return the ARes."""
        ...


class SimulatedDirectory:
    """Answers from the table of test cards, in this process."""

    name = "simulator"

    def look_up(self, number: Secret, steering: Mapping[str, str]) -> tuple[str, acs.CardRange | None]:
        scenario = acs.choose_scenario(number, steering)
        return scenario, acs.find_card_range(scenario)

    def authenticate(self, areq: ThreeDSMessage, scenario: str, network: str) -> ThreeDSMessage:
        return acs.build_ares(areq, scenario, network)


SIMULATED_DIRECTORY: Final = SimulatedDirectory()


def get_directory_server() -> DirectoryServer | None:
    """The directory server of this environment; None in live, where authentication is not available."""
    return None if settings.IS_LIVE else SIMULATED_DIRECTORY
