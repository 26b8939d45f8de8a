"""Addenda of a message: a transfer's parties (DE104), level 3 data (DE120), a flight (DE121).

Elements and part numbers are our dialect's: each network and acquirer has places of its own (Visa field 104, Mastercard
DE108 and DE48, clearing addenda). A part has two digits of number, two of length, and its text. Texts are cut to the
room of their part, account numbers and codes never. Source: Part B, Sender, Recipient, Cart items, Airline;
docs/connectors/iso8583.md; docs/decisions/0070.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.connectors.capabilities import PARTY_ACCOUNTS, SentParameter
from gateway.connectors.iso8583.exemptions import NETWORK_BY_BRAND
from gateway.connectors.iso8583.private_field import encode_part, transliterate
from gateway.connectors.point_of_service import REPEATED_PARAMETERS
from gateway.connectors.port import AcquirerRequest
from gateway.core.secret import RedactedDict, Secret

ADDENDA_OPERATIONS: Final = frozenset({"PA", "DB", "RB", "CD", "CP"})
PARTIES_ELEMENT: Final = "104"
LEVEL_3_ELEMENT: Final = "120"
FLIGHT_ELEMENT: Final = "121"
ADDENDA_ELEMENTS: Final = (PARTIES_ELEMENT, LEVEL_3_ELEMENT, FLIGHT_ELEMENT)
MAX_CART_LINES: Final = 9
"""Items of a cart that fit into DE120."""
MAX_FLIGHT_LEGS: Final = 4
_HIDDEN: Final = "***"
_NAMES: Final = (".name", ".givenName", ".surname")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddendumPart:
    """One parameter's part. ``number``: of ``element``; ``max_chars``: its room; ``whole``: a longer value is left out
    instead of cut; ``network``: the only one that has it."""

    element: str
    number: str
    parameter: str
    max_chars: int
    whole: bool = False
    network: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddendumLine:
    """A list's line, one part for each item from ``number`` on. ``columns``: the item's parameters and their widths."""

    element: str
    number: int
    prefix: str
    max_items: int
    columns: tuple[tuple[str, int], ...]


def _party(prefix: str, start: int, fields: tuple[tuple[str, int], ...]) -> Iterator[AddendumPart]:
    for at, (name, room) in enumerate(fields):
        whole = f"{prefix}.{name}" in PARTY_ACCOUNTS
        number = f"{start + at:02}"
        yield AddendumPart(
            element=PARTIES_ELEMENT, number=number, parameter=f"{prefix}.{name}", max_chars=room, whole=whole
        )


def _flight(fields: tuple[tuple[str, int], ...]) -> Iterator[AddendumPart]:
    for at, (name, room) in enumerate(fields, start=1):
        yield AddendumPart(element=FLIGHT_ELEMENT, number=f"{at:02}", parameter=f"airline.{name}", max_chars=room)


_PLACE_OF_PARTY: Final = (("street", 35), ("city", 25), ("state", 25), ("country", 3), ("postcode", 10))
ADDENDUM_PARTS: Final = (
    AddendumPart(
        element=PARTIES_ELEMENT, number="01", parameter="transactionBai", max_chars=2, whole=True, network="Visa"
    ),
    AddendumPart(
        element=PARTIES_ELEMENT, number="02", parameter="transactionTti", max_chars=3, whole=True, network="Mastercard"
    ),
    AddendumPart(element=PARTIES_ELEMENT, number="03", parameter="transactionPurposeCode", max_chars=12, whole=True),
    *_party("sender", 10, (
        ("name", 30), ("givenName", 30), ("middleName", 30), ("surname", 30), ("birthDate", 10), ("accountNumber", 32),
        *_PLACE_OF_PARTY, ("accountNumberType", 20), ("sourceOfFunds", 2), ("entityType", 10), ("nationality", 20),
        ("occupation", 20), ("birthCountry", 3),
    )),
    *_party("recipient", 40, (
        ("givenName", 30), ("middleName", 30), ("surname", 30), ("birthDate", 10), ("accountNumber", 32),
        *_PLACE_OF_PARTY, ("accountNumberType", 20), ("phone", 25), ("entityType", 10), ("nationality", 20),
        ("occupation", 20), ("birthCountry", 3), ("identificationType", 20), ("identificationValue", 50),
        ("relationship", 20),
    )),
    AddendumPart(element=LEVEL_3_ELEMENT, number="91", parameter="taxAmount", max_chars=13),
    AddendumPart(element=LEVEL_3_ELEMENT, number="92", parameter="discountAmount", max_chars=13),
    *_flight((
        ("passengers[0].name", 25), ("passengers[0].ticketNumber", 15), ("passengers[0].ticketRestricted", 5),
        ("bookingRefNum", 15), ("ticketIssueDate", 10), ("ticketIssueAddress", 25), ("agentCode", 8), ("agentName", 25),
        ("totalFareAmount", 13), ("totalTaxAmount", 13), ("totalFeesAmount", 13),
    )),
)  # fmt: skip
ADDENDUM_LINES: Final = (
    AddendumLine(
        element=LEVEL_3_ELEMENT, number=1, prefix="cart.items", max_items=MAX_CART_LINES,
        columns=(
            ("commodityCode", 8), ("productCode", 12), ("name", 22), ("quantity", 16), ("quantityUnit", 5),
            ("price", 13), ("totalAmount", 13), ("tax", 6), ("taxCategory", 2),
        ),
    ),
    AddendumLine(
        element=FLIGHT_ELEMENT, number=21, prefix="airline.passengers[0].legs", max_items=MAX_FLIGHT_LEGS,
        columns=(
            ("departureDate", 10), ("departureAirport", 5), ("arrivalAirport", 5), ("carrierCode", 4),
            ("flightNumber", 8), ("classOfService", 2), ("stopOverAllowed", 5), ("fareBasis", 15), ("fareAmount", 13),
            ("taxAmount", 13), ("feesAmount", 13),
        ),
    ),
)  # fmt: skip
_PARTS_BY_ELEMENT: Final[Mapping[str, tuple[AddendumPart, ...]]] = {
    element: tuple(part for part in ADDENDUM_PARTS if part.element == element) for element in ADDENDA_ELEMENTS
}


def _list_capabilities() -> Iterator[SentParameter]:
    for part in ADDENDUM_PARTS:
        brands = frozenset(brand for brand, network in NETWORK_BY_BRAND.items() if network == part.network)
        yield SentParameter(
            name=part.parameter.replace("[0]", "[n]"),
            place=f"DE{part.element} part {part.number}",
            brands=brands,
            operations=ADDENDA_OPERATIONS,
            max_chars=part.max_chars if part.whole else 0,
            max_items=(1,) if "[0]" in part.parameter else (),
        )
    for line in ADDENDUM_LINES:
        for column, _ in line.columns:
            yield SentParameter(
                name=f"{line.prefix.replace('[0]', '[n]')}[n].{column}",
                place=f"DE{line.element} part {line.number:02} and following",
                operations=ADDENDA_OPERATIONS,
                max_items=(1, line.max_items) if "[0]" in line.prefix else (line.max_items,),
            )


ADDENDA_CAPABILITIES: Final = tuple(_list_capabilities())


def build_addenda(request: AcquirerRequest) -> dict[str, RedactedDict]:
    """Element → name of each part → its text; elements without any part are left out. Raises ValueError for a name of
    which nothing can be sent."""
    if request.operation not in ADDENDA_OPERATIONS:
        return {}
    found = {element: RedactedDict(_build_parts(request, element)) for element in ADDENDA_ELEMENTS}
    return {element: parts for element, parts in found.items() if parts}


def write_addendum(element: str, parts: Mapping[str, str]) -> str:
    """Encode an element's parts."""
    numbers = {part.parameter: part.number for part in _PARTS_BY_ELEMENT[element]}
    rows = [(numbers.get(name) or name.rpartition(" ")[2], text) for name, text in parts.items()]
    return "".join(encode_part(number, text) for number, text in sorted(rows))


def mask_addendum(parts: Mapping[str, str]) -> dict[str, str]:
    """The parts for storage: account and document numbers only as being there."""
    return {name: _HIDDEN if name in PARTY_ACCOUNTS else text for name, text in parts.items()}


def _build_parts(request: AcquirerRequest, element: str) -> Iterator[tuple[str, str]]:
    network = NETWORK_BY_BRAND.get(request.network_brand, "")
    for part in _PARTS_BY_ELEMENT[element]:
        if part.network in ("", network) and (text := _read(request, part.parameter)):
            shown = transliterate(text)
            if not shown and part.parameter.endswith(_NAMES):
                raise ValueError(f"{part.parameter} has no letter that can be sent")
            if shown and (not part.whole or len(shown) <= part.max_chars):
                yield part.parameter, shown[: part.max_chars]
    for line in ADDENDUM_LINES:
        if line.element == element:
            yield from _build_lines(request, line)


def _build_lines(request: AcquirerRequest, line: AddendumLine) -> Iterator[tuple[str, str]]:
    for index in range(line.max_items):
        texts = [request.parameters.get(f"{line.prefix}[{index}].{name}", "") for name, _ in line.columns]
        if any(texts):
            rooms = (room for _, room in line.columns)
            written = "".join(f"{transliterate(text)[:room]:{room}}" for text, room in zip(texts, rooms, strict=True))
            yield f"line {line.number + index:02}", written.rstrip()


def _read(request: AcquirerRequest, name: str) -> str:
    if name in PARTY_ACCOUNTS:
        return request.party_accounts.get(name, Secret("")).reveal()
    return request.get_repeated(name) if name in REPEATED_PARAMETERS else request.parameters.get(name, "")
