"""The card networks' 3-D Secure programmes: brands, keys, and the e-commerce indicator (ECI) per outcome.

Source: Part B, 3D Secure (threeDSecure.v2.<net>, eci); ruling D35.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from gateway.catalogue.structures import NETWORK_KEYS

THREEDS_VERSION: Final = "2.2.0"
"""The protocol version that this server speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeDSNetwork:
    """A network. ``key``: its part of ``threeDSecure.v2.<net>``; ``eci``: transStatus → ECI, where there is one, and
    EXEMPTED → that of an accepted exemption, RECURRING → that of an authenticated payment of an agreement, where it is
    one of its own; ``informed``: transStatus → the transStatusReason with which it says what others say by I: that it
    accepts an exemption (N), as it does where the protocol is 2.1, which has no I, or that it only took data (U)."""

    key: str
    title: str
    brands: tuple[str, ...]
    eci: Mapping[str, str]
    informed: Mapping[str, str] = field(default_factory=dict, hash=False)


EXEMPTED: Final = "exempted"
RECURRING: Final = "recurring"
"""Keys of ThreeDSNetwork.eci."""
MASTERCARD_EXEMPT_REASON: Final = "81"
"""Mastercard, Identity Check: the acquirer's exemption was accepted. Not read in the original; with the ECI 06 and 07
quoted by https://developer.cybersource.com/docs/nab/en-us/payer-auth/developer/all/rest/payer-auth/pa-testing-intro/
pa-testing-3ds-2x-intro/pa-testing-3ds-2x-tra-lv-mc.html and …-visa.html."""
MASTERCARD_DATA_ONLY_REASON: Final = "80"
"""Mastercard, Identity Check Insights: data were shared, and nobody was to be authenticated; with the ECI 04. Quoted by
https://docs.apis-fiserv.com/latam/docs/brazil-online-payments-3ds-server-data-only."""
_COMMON: Final = MappingProxyType({"Y": "05", "A": "06", "U": "07", "N": "07", "I": "07", EXEMPTED: "07"})
_MASTERCARD: Final = MappingProxyType({"Y": "02", "A": "01", "I": "04", EXEMPTED: "06", RECURRING: "07"})
"""07: https://www.checkout.com/docs/developer-resources/codes/eci-values; of 3RI, and of the shopper's authentication
that begins an agreement, https://developer.cybersource.com/docs/barclays/en-us/payer-authentication/developer/all/rest/
payer-auth/pa-testing-intro/pa-testing-exemption-test-intro/pa-testing-3ds-2x-initial-first-recurring-trans.html."""
_TABLE: Final = (
    ("Visa", ("VISA", "VISADEBIT", "VISAELECTRON", "VPAY"), _COMMON),
    ("Mastercard", ("MASTER", "MASTERDEBIT", "MAESTRO"), _MASTERCARD),
    ("American Express", ("AMEX",), _COMMON),
    ("Diners Club", ("DINERS", "DISCOVER"), _COMMON),
    ("JCB", ("JCB",), _COMMON),
    ("Carte Bancaire", ("CARTEBANCAIRE",), _COMMON),
)

# The order of the keys is that of the setting (D35).
THREEDS_NETWORKS: Final[tuple[ThreeDSNetwork, ...]] = tuple(
    ThreeDSNetwork(
        key=key,
        title=title,
        brands=brands,
        eci=eci,
        informed={"N": MASTERCARD_EXEMPT_REASON, "U": MASTERCARD_DATA_ONLY_REASON} if title == "Mastercard" else {},
    )
    for key, (title, brands, eci) in zip(NETWORK_KEYS, _TABLE, strict=True)
)
_BY_BRAND: Final = {brand: network for network in THREEDS_NETWORKS for brand in network.brands}
THREEDS_NETWORK_BY_KEY: Final[Mapping[str, ThreeDSNetwork]] = MappingProxyType(
    {network.key: network for network in THREEDS_NETWORKS}
)


def find_threeds_network(brand: str) -> ThreeDSNetwork | None:
    """The network that authenticates cards of ``brand``; None without 3-D Secure."""
    return _BY_BRAND.get(brand)


def find_network_eci(key: str, trans_status: str) -> str:
    """A network's ECI for a transStatus; '' for none."""
    network = THREEDS_NETWORK_BY_KEY.get(key)
    return network.eci.get(trans_status, "") if network is not None else ""


def list_informed_reasons(key: str) -> Mapping[str, str]:
    """A network's transStatus and reason of an accepted exemption and of shared data (:class:`ThreeDSNetwork`)."""
    network = THREEDS_NETWORK_BY_KEY.get(key)
    return network.informed if network is not None else {}
