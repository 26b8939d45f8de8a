"""Exemptions from strong customer authentication, in the networks' codes (part 34 of the private field).

An acquirer's dialect may have other places for them; the codes are the networks' own. ``uncertain`` marks codes that
were not read in the network's manual, only in what acquirers publish of it.
Source: EU 2018/389 (RTS on SCA), articles 13 to 18; Visa field 34, dataset 02 (tags 84 to 8A); Mastercard DE48,
subelement 22, subfield 1; docs/decisions/0067.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gateway.core.brands import MASTERCARD_BRANDS


@dataclass(frozen=True, slots=True, kw_only=True)
class ExemptionCode:
    """``code``: what the network calls the exemption."""

    network: str
    exemption: str
    code: str
    uncertain: bool = False


EXEMPTION_CODES: Final = (
    ExemptionCode(network="Visa", exemption="TRUSTED_MERCHANT", code="84"),
    ExemptionCode(network="Visa", exemption="LOW_VALUE", code="87"),
    ExemptionCode(network="Visa", exemption="SECURE_CORPORATE", code="88"),
    ExemptionCode(network="Visa", exemption="LOW_RISK", code="89"),
    ExemptionCode(network="Visa", exemption="DELEGATED", code="8A", uncertain=True),
    ExemptionCode(network="Mastercard", exemption="LOW_RISK", code="02"),
    ExemptionCode(network="Mastercard", exemption="LOW_VALUE", code="04"),
    ExemptionCode(network="Mastercard", exemption="DELEGATED", code="05"),
    ExemptionCode(network="Mastercard", exemption="SECURE_CORPORATE", code="06"),
    ExemptionCode(network="others", exemption="LOW_VALUE", code="01", uncertain=True),
    ExemptionCode(network="others", exemption="LOW_RISK", code="02", uncertain=True),
    ExemptionCode(network="others", exemption="TRUSTED_MERCHANT", code="03", uncertain=True),
    ExemptionCode(network="others", exemption="SECURE_CORPORATE", code="04", uncertain=True),
)
"""Mastercard has no code for a trusted merchant: its issuers see that in the authentication."""
NETWORK_BY_BRAND: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(("VISA", "VISADEBIT", "VISAELECTRON", "VPAY"), "Visa")
    | dict.fromkeys(MASTERCARD_BRANDS, "Mastercard")
)
_CODES: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {(row.network, row.exemption): row.code for row in EXEMPTION_CODES}
)


def map_exemption(exemption: str, brand: str) -> str:
    """The code of ``exemption`` in the brand's network; '' for none."""
    return _CODES.get((NETWORK_BY_BRAND.get(brand, "others"), exemption), "")
