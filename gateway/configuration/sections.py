"""The sections that a configuration document may have."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.configuration.acquirers import ACQUIRERS_SECTION
from gateway.configuration.channel import CHANNEL_SECTION, LIMITS_SECTION
from gateway.configuration.exemptions import EXEMPTIONS_SECTION
from gateway.configuration.risk import CARD_TESTING_SECTION, RISK_SECTION
from gateway.configuration.routing import ROUTING_SECTION
from gateway.configuration.section import ConfigurationSection
from gateway.configuration.threeds import THREE_D_SECURE_SECTION
from gateway.configuration.wallets import WALLETS_SECTION

_SECTIONS: Final = {
    section.name: section
    for section in (
        CHANNEL_SECTION,
        LIMITS_SECTION,
        THREE_D_SECURE_SECTION,
        EXEMPTIONS_SECTION,
        WALLETS_SECTION,
        ACQUIRERS_SECTION,
        ROUTING_SECTION,
        CARD_TESTING_SECTION,
        RISK_SECTION,
    )
}
CONFIGURATION_SECTIONS: Final[Mapping[str, ConfigurationSection]] = MappingProxyType(_SECTIONS)


def register_configuration_section(section: ConfigurationSection) -> None:
    """Add a section of an app above this one; the app calls this when it is loaded."""
    _SECTIONS[section.name] = section
