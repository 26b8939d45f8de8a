"""The sections a configuration document may have. A topic adds its own here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.configuration.acquirers import ACQUIRERS
from gateway.configuration.channel import CHANNEL, LIMITS
from gateway.configuration.risk import CARD_TESTING, RISK
from gateway.configuration.routing import ROUTING
from gateway.configuration.section import Section
from gateway.configuration.threeds import THREE_D_SECURE
from gateway.configuration.wallets import WALLET_KEYS

_SECTIONS: Final = {
    section.name: section
    for section in (CHANNEL, LIMITS, THREE_D_SECURE, WALLET_KEYS, ACQUIRERS, ROUTING, CARD_TESTING, RISK)
}
SECTIONS: Final[Mapping[str, Section]] = MappingProxyType(_SECTIONS)


def add(section: Section) -> None:
    """A section of an app above this one; it says so when it is loaded."""
    _SECTIONS[section.name] = section
