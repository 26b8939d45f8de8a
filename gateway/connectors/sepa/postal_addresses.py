"""Postal addresses of debtors in the forms that banks accept: structured, or hybrid.

Since 15 November 2026 the schemes reject an address that is in lines alone: town and country stand in elements of
their own (EPC 153-22, 2.1, https://www.europeanpaymentscouncil.eu/node/23566). Hybrid: beside those, at most two lines
of 70 characters that repeat none of the elements. Not every bank takes hybrid ones, so an address is structured where
its parts fit
(https://www.betaalvereniging.nl/en/knowledge-base/standards-in-payments/iso-20022/structured-iso-20022-address/).
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any, Final

from gateway.connectors.sepa.bank_text import convert_to_bank_chars

ADDRESS_PARAMETERS: Final[Mapping[str, tuple[str, str]]] = {
    "street": ("billing.street1", "100.800.100"),
    "city": ("billing.city", "100.800.300"),
    "country": ("billing.country", "100.800.500"),
}
"""Required part of an address → the parameter that it came with, and the result code if it is missing."""
_STREET_TOO_LONG: Final = "100.800.101"
_CITY_TOO_LONG: Final = "100.800.301"
_MAX_STREET_CHARS: Final = 70
_MAX_NUMBER_CHARS: Final = 16
_MAX_POSTCODE_CHARS: Final = 16
_MAX_CITY_CHARS: Final = 35
_MAX_ADDRESS_LINES: Final = 2
_MAX_LINE_CHARS: Final = 70


class UnwritableAddressError(Exception):
    """Banks would reject the address. ``code``: result code; the text names the parameter and says why."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


def build_postal_address(address: Mapping[str, str]) -> dict[str, Any]:
    """A debtor's address as sepaxml takes it; the same in all versions of pain.008 that are written here.

    ``address``: street, city and country, perhaps number and postcode, as the merchant sent them. Street and number go
    into lines if one is too long for its element. Raises UnwritableAddressError.
    """
    plain = {name: convert_to_bank_chars(text) for name, text in address.items() if isinstance(text, str)}
    for part, (parameter, code) in ADDRESS_PARAMETERS.items():
        if not plain.get(part):
            why = "has no character that banks accept" if address.get(part) else "is required"
            raise UnwritableAddressError(code, f"{parameter} {why}")
    if len(plain["city"]) > _MAX_CITY_CHARS:
        raise UnwritableAddressError(_CITY_TOO_LONG, f"billing.city is longer than {_MAX_CITY_CHARS} characters")
    place = {"postcode": plain.get("postcode", "")[:_MAX_POSTCODE_CHARS], "town": plain["city"]}
    return _build_street(plain["street"], plain.get("number", "")) | place | {"country": plain["country"]}


def is_writable_address(address: Mapping[str, str]) -> bool:
    """True if a file can carry the address."""
    try:
        return bool(build_postal_address(address))
    except UnwritableAddressError:
        return False


def _build_street(street: str, number: str) -> dict[str, Any]:
    if len(street) <= _MAX_STREET_CHARS and len(number) <= _MAX_NUMBER_CHARS:
        return {"street_name": street, "building_number": number}
    lines = textwrap.wrap(f"{street} {number}", _MAX_LINE_CHARS)
    if len(lines) > _MAX_ADDRESS_LINES:
        why = f"does not fit into {_MAX_ADDRESS_LINES} lines of {_MAX_LINE_CHARS} characters with its house number"
        raise UnwritableAddressError(_STREET_TOO_LONG, f"billing.street1 {why}")
    return {"lines": lines}
