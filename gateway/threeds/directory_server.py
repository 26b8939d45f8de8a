"""The directory servers an installation can ask. One is bundled: the simulator's, for the test environment.

A real directory takes the same three questions. Source: Part A, What the service does, 5 (test modes).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from django.conf import settings

from gateway.core.secret import Secret
from gateway.threeds import acs
from gateway.threeds.messages import ThreeDSMessage


class DirectoryUnreachableError(Exception):
    """The directory did not answer in time, or not in its protocol."""


class DirectoryServer(Protocol):
    """``name`` of the directory; ``look_up`` and ``authenticate`` raise DirectoryUnreachableError."""

    name: str

    def look_up(self, number: Secret, steering: Mapping[str, str]) -> tuple[str, acs.CardRange | None]:
        """(scenario, card range): the range is None for a card that no issuer authenticates."""
        ...

    def authenticate(self, areq: ThreeDSMessage, scenario: str, network: str) -> ThreeDSMessage:
        """Send an AReq, return the ARes."""
        ...


class SimulatedDirectory:
    """Answers by the table of test cards, in this process."""

    name = "simulator"

    def look_up(self, number: Secret, steering: Mapping[str, str]) -> tuple[str, acs.CardRange | None]:
        scenario = acs.choose_scenario(number, steering)
        return scenario, acs.find_card_range(scenario)

    def authenticate(self, areq: ThreeDSMessage, scenario: str, network: str) -> ThreeDSMessage:
        return acs.build_ares(areq, scenario, network)


SIMULATED_DIRECTORY: Final = SimulatedDirectory()


def get_directory_server() -> DirectoryServer | None:
    """The directory of this environment. Live has none until one is built in: authentication is not available then."""
    return None if settings.IS_LIVE else SIMULATED_DIRECTORY
