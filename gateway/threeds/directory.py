"""The directory servers an installation can ask. One is bundled: the simulator's, for the test environment.

A real directory takes the same three questions. Source: Part A, What the service does, 5 (test modes).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from django.conf import settings

from gateway.secret import Secret
from gateway.threeds import acs
from gateway.threeds.messages import Message


class Unreachable(Exception):
    """The directory did not answer in time, or not in its protocol."""


class Directory(Protocol):
    """``name`` of the directory; ``look_up`` and ``authenticate`` raise Unreachable."""

    name: str

    def look_up(self, number: Secret, steering: Mapping[str, str]) -> tuple[str, acs.CardRange | None]:
        """(scenario, card range): the range is None for a card that no issuer authenticates."""
        ...

    def authenticate(self, areq: Message, scenario: str, network: str) -> Message:
        """Send an AReq, return the ARes."""
        ...


class SimulatedDirectory:
    """Answers by the table of test cards, in this process."""

    name = "simulator"

    def look_up(self, number: Secret, steering: Mapping[str, str]) -> tuple[str, acs.CardRange | None]:
        scenario = acs.scenario(number, steering)
        return scenario, acs.card_range(scenario)

    def authenticate(self, areq: Message, scenario: str, network: str) -> Message:
        return acs.ares(areq, scenario, network)


SIMULATED: Final = SimulatedDirectory()


def directory_of() -> Directory | None:
    """The directory of this environment. Live has none until one is built in: authentication is not available then."""
    return None if settings.IS_LIVE else SIMULATED
