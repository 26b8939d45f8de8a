"""Addresses in files: structured or hybrid in every version, never lines alone. `UPDATE_SNAPSHOTS=1` writes golden/.

Source: EPC 153-22, 2.1, https://www.europeanpaymentscouncil.eu/node/23566.
"""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from xml.dom import minidom
from xml.etree import ElementTree

import pytest
from sepaxml.validation import try_valid_xml

from gateway.connectors.sepa.creditor import COLLECTION_SCHEMAS, TRANSFER_SCHEMAS
from gateway.connectors.sepa.payment_files import render_payment_file
from gateway.connectors.sepa.postal_addresses import UnwritableAddressError, build_postal_address
from gateway.models import BankFile, BankOrder, SepaMandate

GOLDEN = Path(__file__).parent / "golden"
STRUCTURED = {"street": "Bahnhofstraße", "number": "12", "postcode": "8001", "city": "Zürich", "country": "CH"}
LONG = "Promenade der ehemaligen Bürgerinnen und Bürger von Sankt Margrethen am Rhein"
HYBRID = STRUCTURED | {"street": LONG, "number": "12a Hinterhaus, links"}
ADDRESSES: dict[str, dict[str, Any]] = {
    "Structured": STRUCTURED,
    "Least": {"street": "Casa 4", "city": "Andorra la Vella", "country": "AD"},
    "Hybrid": HYBRID,
    "Inside the EEA": {},
    # As other software keeps it: no file may have it, and a file with all others must not fail for it.
    "In lines": {"country": "CH", "lines": ["Bahnhofstrasse 12", "8001 Zurich"]},
    "Town too long": STRUCTURED | {"city": "Z" * 36},
}


def order(number: int, name: str, address: dict[str, Any]) -> BankOrder:
    return BankOrder(
        payment=UUID(int=number), kind="COLLECT", name=name, amount=Decimal("92.00"), currency="EUR", text="Order",
        due_on=date(2026, 11, 26), sequence="OOFF", batch="TH-1", bic="UBSWCHZH80A", address=address,
        mandate=SepaMandate(mandate=f"M-{number}", signed_on=date(2026, 11, 23)),
    )  # fmt: skip


def render(schema: str, kind: str) -> bytes:
    """A file with an order for each address."""
    creditor = {
        "name": "Shop Ltd", "id": "DE98ZZZ09999999999", "iban": "DE23100000001234567890", "bic": "MARKDEF1100",
        "instrument": "CORE", "schema": schema, "zone": "Europe/Berlin",
    }  # fmt: skip
    file = BankFile(message_id="TH1", kind=kind, creditor=creditor, stamped_at=datetime(2026, 11, 23, 9, tzinfo=UTC))
    orders = [order(number, name, address) for number, (name, address) in enumerate(ADDRESSES.items(), start=1)]
    return render_payment_file(file, orders, lambda _: "CH9300762011623852957")


def addresses_of(xml: bytes) -> dict[str, list[tuple[str, str]]]:
    """Name of a party → its address, elements with texts in order."""
    found = {}
    for party in ElementTree.fromstring(xml).iterfind(".//{*}PstlAdr/.."):
        lines = [(one.tag.rpartition("}")[2], one.text or "") for one in party.iterfind("{*}PstlAdr/*")]
        found[party.findtext("{*}Nm", "")] = lines
    return found


@pytest.mark.parametrize("schema", COLLECTION_SCHEMAS)
def test_a_collection_file_is_the_golden_one(schema: str) -> None:
    xml = render(schema, "COLLECT")
    try_valid_xml(xml, schema)
    page, told = GOLDEN / f"{schema}.xml", minidom.parseString(xml).toprettyxml(indent="  ")
    if os.environ.get("UPDATE_SNAPSHOTS"):
        page.write_text(told)
    assert page.read_text() == told


@pytest.mark.parametrize("schema", COLLECTION_SCHEMAS)
def test_every_address_in_a_collection_file_has_town_and_country_apart(schema: str) -> None:
    place = [("PstCd", "8001"), ("TwnNm", "Zurich"), ("Ctry", "CH")]
    assert addresses_of(render(schema, "COLLECT")) == {
        "Structured": [("StrtNm", "Bahnhofstrasse"), ("BldgNb", "12"), *place],
        "Least": [("StrtNm", "Casa 4"), ("TwnNm", "Andorra la Vella"), ("Ctry", "AD")],
        "Hybrid": [
            *place,
            ("AdrLine", "Promenade der ehemaligen Burgerinnen und Burger von Sankt Margrethen"),
            ("AdrLine", "am Rhein 12a Hinterhaus, links"),
        ],
    }


@pytest.mark.parametrize("schema", TRANSFER_SCHEMAS.values())
def test_a_transfer_file_has_no_address(schema: str) -> None:
    xml = render(schema, "PAY")
    try_valid_xml(xml, schema)
    assert addresses_of(xml) == {}


@pytest.mark.parametrize(
    ("more", "hybrid"),
    [
        ({"street": "S" * 70, "number": "1" * 16}, False),
        ({"street": "S" * 71, "number": "1" * 16}, True),
        ({"street": "S" * 70, "number": "1" * 17}, True),
        ({"street": "S" * 70, "number": "1" * 70}, True),
        ({"street": "Ж", "number": "Ж" * 8}, False),
        ({"street": "S", "number": "Ж" * 9}, True),
    ],
)
def test_street_and_number_go_into_lines_where_one_is_too_long(more: dict[str, str], hybrid: bool) -> None:
    found = build_postal_address(STRUCTURED | more)
    assert ("lines" in found, "street_name" in found) == (hybrid, not hybrid)
    assert all(len(line) <= 70 for line in found.get("lines", []))
    assert (found["town"], found["country"]) == ("Zurich", "CH")


@pytest.mark.parametrize(
    ("more", "code", "why"),
    [
        ({"street": ""}, "100.800.100", "billing.street1 is required"),
        ({"street": "☃"}, "100.800.100", "billing.street1 has no character that banks accept"),
        ({"city": ""}, "100.800.300", "billing.city is required"),
        ({"city": "☃"}, "100.800.300", "billing.city has no character that banks accept"),
        ({"city": "Z" * 36}, "100.800.301", "billing.city is longer than 35 characters"),
        ({"country": ""}, "100.800.500", "billing.country is required"),
        (
            {"street": "S" * 70, "number": "1" * 71},
            "100.800.101",
            "billing.street1 does not fit into 2 lines of 70 characters with its house number",
        ),
    ],
)
def test_an_address_that_fits_into_no_form_is_refused(more: dict[str, str], code: str, why: str) -> None:
    with pytest.raises(UnwritableAddressError) as caught:
        build_postal_address(STRUCTURED | more)
    assert (caught.value.code, str(caught.value)) == (code, why)
