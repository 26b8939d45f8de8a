"""Golden messages: what each card connector sends in each situation (`UPDATE_SNAPSHOTS=1` writes the pages)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from gateway.catalogue.endpoints import PAYMENT_ENDPOINT
from gateway.connectors.capabilities import (
    PARTY_ACCOUNTS,
    SPECIAL_PARAMETERS,
    SentParameter,
    find_unsendable,
    list_unsent,
)
from gateway.connectors.card_api import mapping as card_api
from gateway.connectors.card_api.connector import CARD_API
from gateway.connectors.card_api.operation import INTENT_PAYMENT_TYPES
from gateway.connectors.iso8583.addenda import ADDENDA_OPERATIONS
from gateway.connectors.iso8583.connector import ISO8583
from gateway.connectors.iso8583.exemptions import NETWORK_BY_BRAND
from gateway.connectors.iso8583.iso_request import OriginalMessage, build_iso_request
from gateway.connectors.iso8583.mapping import build_iso_message, mask_iso_message
from gateway.connectors.iso8583.terminal import parse_terminal
from gateway.connectors.means import Card, TokenAccount
from gateway.connectors.point_of_service import PointOfService, build_point_of_service, continue_point_of_service
from gateway.connectors.port import AcquirerRequest, Connector, ConnectorAccount, ReversalReason
from gateway.connectors.sepa.connector import SEPA
from gateway.core.money import Money
from gateway.core.secret import Secret

DOCS = Path(__file__).parents[3] / "docs" / "connectors"
CARD = Card(number=Secret("4200000000000000"), expiry_month="05", expiry_year="2034", cvv=Secret("987"))
STORED = replace(CARD, cvv=None)
DEVICE = replace(STORED, number_type="DPAN", wallet="wallet1")
TOKEN = TokenAccount(
    account=Secret("4200000000000000"), type="NETWORK", expiry_month="05", expiry_year="2034",
    cryptogram=Secret("AgAAAAAAAIR8CQrXcIhbQAAAAAA="),
)  # fmt: skip
REFERENCE = OriginalMessage(
    operation="PA", stan="000042", sent_at="0301115959", rrn="606012345678", auth="A00042", amount=10_000,
    network="483296210004567",
)  # fmt: skip
RENEWAL = replace(REFERENCE, stan="000077", sent_at="0312100000", auth="B00077", network="589305122103482")
LATER = datetime(2026, 3, 12, 10, 30, tzinfo=UTC)
INSTRUCTION = "standingInstruction"
PROOF = {
    "threeDSecure.eci": "05",
    "threeDSecure.version": "2.2.0",
    "threeDSecure.authenticationStatus": "Y",
    "threeDSecure.dsTransactionId": "f25084f0-5b16-4c0a-ae5d-b24808a95e4b",
    "threeDSecure.challengeIndicator": "05",
}
ACCEPTED = PROOF | {"threeDSecure.eci": "07", "threeDSecure.authenticationStatus": "I"}
"""The issuer accepted the exemption that challengeIndicator asks for."""
CRYPTOGRAM = Secret("AAACAgSRBklmQCFgMpEGAAAAAAA=")
FIRST = {f"{INSTRUCTION}.initialTransactionId": "483296210004567"}
LINK = "Z0fE_2qV-3pWft4vHt7Ki6"


def merchants(**words: str) -> dict[str, str]:
    named = {f"{INSTRUCTION}.{name}": value for name, value in words.items()}
    return {f"{INSTRUCTION}.mode": "REPEATED", f"{INSTRUCTION}.source": "MIT", **named, **FIRST}


MASTER_CARD = replace(CARD, number=Secret("5400000000000005"))
FUNDING = {
    "transactionProcessingCode": "FUNDING", "transactionBai": "AA", "transactionTti": "F07",
    "sender.name": "Jane Jones", "sender.country": "DEU", "recipient.surname": "Mehta", "recipient.country": "IND",
    "transactionPurposeCode": "ISSUPP",
}  # fmt: skip
PAYOUT = FUNDING | {"transactionProcessingCode": "PAYMENT", "transactionTti": "C07"}
ACCOUNTS = {"sender.accountNumber": Secret("DE23100000001234567890"), "recipient.accountNumber": Secret("0011223344")}
FACILITATOR = {
    "merchant.payFacId": "12345678", "merchant.isoId": "87654321", "merchant.submerchantId": "SUB-1",
    "merchant.name": "Facilitator*Shop", "merchant.city": "Munich",
}  # fmt: skip
CART = {
    "taxAmount": "3.04", "cart.items[0].name": "Blue mug", "cart.items[0].commodityCode": "50202306",
    "cart.items[0].productCode": "MUG-1", "cart.items[0].quantity": "2", "cart.items[0].quantityUnit": "COUNT",
    "cart.items[0].price": "9.52", "cart.items[0].totalAmount": "19.04", "cart.items[0].tax": "19.00",
    "cart.items[0].taxCategory": "S",
}  # fmt: skip
_LEG = "airline.passengers[0].legs[0]"
FLIGHT = {
    "airline.bookingRefNum": "X7KQ2P", "airline.passengers[0].name": "Jane Jones",
    "airline.passengers[0].ticketNumber": "2201234567890", f"{_LEG}.departureDate": "2026-05-01",
    f"{_LEG}.departureAirport": "MUC", f"{_LEG}.arrivalAirport": "MAD", f"{_LEG}.carrierCode": "EX",
    f"{_LEG}.flightNumber": "EX123",
}  # fmt: skip


def mastercard(**more: Any) -> dict[str, Any]:
    return {"brand": "MASTER", "means": MASTER_CARD, **more}


CIT, MIT = PointOfService(), build_point_of_service(merchants(type="UNSCHEDULED"))
SITUATIONS: Mapping[str, Mapping[str, Any]] = {
    "cardholder pays": {},
    "cardholder pays, card is stored": {"stores": True},
    "cardholder pays with a stored card": {"stored": True, "means": STORED},
    "merchant: subscription": {"means": STORED, "parameters": merchants(type="RECURRING")},
    "merchant: subscription, sent with a security code": {"means": CARD, "parameters": merchants(type="RECURRING")},
    "merchant: instalment": {"means": STORED, "parameters": merchants(type="INSTALLMENT")},
    "merchant: unscheduled": {"means": STORED, "parameters": merchants(type="UNSCHEDULED")},
    "merchant: resubmission": {"means": STORED, "parameters": merchants(industryPractice="RESUBMISSION")},
    "merchant: delayed charge": {"means": STORED, "parameters": merchants(industryPractice="DELAYED_CHARGES")},
    "merchant: no-show": {"means": STORED, "parameters": merchants(industryPractice="NO_SHOW")},
    "merchant: subscription, Mastercard": mastercard(
        means=replace(MASTER_CARD, cvv=None), parameters=merchants(type="RECURRING", agreementId=LINK)
    ),
    "increment": {
        "operation": "PA", "means": STORED, "reference": REFERENCE.text(),
        "original": continue_point_of_service(CIT, "INCREMENTAL_AUTH"),
    },
    "renewal": {
        "operation": "PA", "means": STORED, "reference": REFERENCE.text(),
        "original": continue_point_of_service(CIT, "REAUTHORIZATION"),
    },
    "renewal of a final authorization, Mastercard": mastercard(
        operation="PA", means=replace(MASTER_CARD, cvv=None), reference=REFERENCE.text(), authorization_kind="FINAL",
        original=continue_point_of_service(PointOfService(link=LINK), "REAUTHORIZATION"),
    ),
    "increment, Mastercard": mastercard(
        operation="PA", means=replace(MASTER_CARD, cvv=None), reference=REFERENCE.text(),
        authorization_kind="ESTIMATED",
        original=continue_point_of_service(PointOfService(link=LINK), "INCREMENTAL_AUTH"),
    ),
    "charged again (rebill), Mastercard": mastercard(
        operation="RB", means=replace(MASTER_CARD, cvv=None), reference=REFERENCE.text(),
        original=replace(continue_point_of_service(PointOfService(), ""), related_link=LINK),
    ),
    "capture": {"operation": "CP", "means": STORED, "reference": REFERENCE.text(), "original": CIT},
    "capture, Mastercard": mastercard(
        operation="CP", means=replace(MASTER_CARD, cvv=None), reference=REFERENCE.text(),
        original=PointOfService(link=LINK),
    ),
    "capture after a renewal": {
        "operation": "CP", "means": STORED, "reference": RENEWAL.text(), "at": LATER,
        "original": continue_point_of_service(CIT, "REAUTHORIZATION"),
    },
    "reversal after a renewal, in part": {
        "operation": "RV", "means": STORED, "reference": RENEWAL.text(), "at": LATER,
        "original": continue_point_of_service(CIT, "REAUTHORIZATION"), "authorized_amount": Decimal(100),
    },
    "renewed authorization, where the host holds both": {
        "void": True, "operation": "PA", "amount": "100.00", "means": STORED, "known_transaction_id": REFERENCE.text(),
        "original": CIT, "kept_amount": Decimal(30), "at": LATER,
    },
    "capture, the last of three": {
        "operation": "CP", "means": STORED, "reference": REFERENCE.text(), "original": CIT, "clearing": (3, 3),
    },
    "final authorization, Mastercard": {
        "operation": "PA", "brand": "MASTER", "means": STORED, "authorization_kind": "FINAL",
    },
    "capture of a merchant's": {"operation": "CP", "means": STORED, "reference": REFERENCE.text(), "original": MIT},
    "refund": {"operation": "RF", "means": STORED, "reference": REFERENCE.text(), "original": CIT},
    "reversal in part": {"operation": "RV", "means": STORED, "reference": REFERENCE.text(), "original": CIT},
    "reversal in part of an authorization that was raised by 50.00": {
        "operation": "RV", "means": STORED, "reference": REFERENCE.text(), "original": CIT,
        "authorized_amount": Decimal(150),
    },
    "taken back: no answer": {"void": True, "reversal_reason": ReversalReason.TIMEOUT},
    "mail or telephone order": {"parameters": {"transactionCategory": "MO"}},
    "3-D Secure, authenticated though an exemption was asked for": {"parameters": PROOF, "cryptogram": CRYPTOGRAM},
    "3-D Secure, low-risk exemption accepted, Visa": {"parameters": ACCEPTED, "cryptogram": CRYPTOGRAM},
    "3-D Secure, low-risk exemption accepted, Mastercard": mastercard(
        parameters=ACCEPTED | {"threeDSecure.eci": "06"}, cryptogram=CRYPTOGRAM
    ),
    "3-D Secure, data shared only, Mastercard": mastercard(
        parameters=ACCEPTED | {"threeDSecure.eci": "04", "threeDSecure.challengeIndicator": "06"},
        cryptogram=CRYPTOGRAM,
    ),
    "wallet or network token": {"means": TOKEN, "parameters": {"threeDSecure.eci": "07"}},
    "wallet, a device's number (DPAN), Visa": {
        "means": DEVICE, "parameters": {"threeDSecure.eci": "05"}, "cryptogram": CRYPTOGRAM,
    },
    "wallet, a device's number (DPAN), Mastercard": mastercard(
        means=replace(DEVICE, number=MASTER_CARD.number), parameters={"threeDSecure.eci": "02"}, cryptogram=CRYPTOGRAM
    ),
    "capture of a wallet's, Mastercard": mastercard(
        operation="CP", means=replace(DEVICE, number=MASTER_CARD.number), reference=REFERENCE.text(),
        original=build_point_of_service({"threeDSecure.eci": "02"}),
    ),
    "wallet, the card's own number, Visa": {"means": replace(DEVICE, number_type="PAN")},
    "network token without 3-D Secure, Mastercard": {"means": TOKEN, "brand": "MASTER"},
    "capture of a network token's, Mastercard": {
        "operation": "CP", "brand": "MASTER", "means": replace(MASTER_CARD, cvv=None), "reference": REFERENCE.text(),
        "original": PointOfService(token=True),
    },
    "exemption without 3-D Secure, Mastercard": mastercard(parameters={"threeDSecure.exemptionFlag": "02"}),
    "preauthorization, Visa": {"operation": "PA", "authorization_kind": "ESTIMATED"},
    "preauthorization, Mastercard": mastercard(operation="PA", authorization_kind="ESTIMATED"),
    "a part will do, Visa": {"asks_for_part": True},
    "a part will do, Mastercard": mastercard(asks_for_part=True),
    "preauthorization, a part will do, Visa": {
        "operation": "PA", "authorization_kind": "ESTIMATED", "asks_for_part": True,
    },
    "final authorization, a part will do, Mastercard": mastercard(
        operation="PA", authorization_kind="FINAL", asks_for_part=True
    ),
    "refund, Mastercard": mastercard(operation="RF", reference=REFERENCE.text()),
    "account funding, Visa": {"parameters": FUNDING, "party_accounts": ACCOUNTS},
    "account funding, Mastercard": mastercard(parameters=FUNDING, party_accounts=ACCOUNTS),
    "capture of account funding": {
        "operation": "CP", "means": STORED, "reference": REFERENCE.text(),
        "original": build_point_of_service(FUNDING),
    },
    "unreferenced credit": {"operation": "CD"},
    "push to card, Visa": {"operation": "CD", "parameters": PAYOUT, "party_accounts": ACCOUNTS},
    "push to card, Mastercard": mastercard(operation="CD", parameters=PAYOUT, party_accounts=ACCOUNTS),
    "payment facilitator, Visa": {"parameters": FACILITATOR},
    "payment facilitator, Mastercard": mastercard(parameters=FACILITATOR),
    "level 3": {"parameters": CART},
    "flight": {"parameters": FLIGHT},
    "taken back: suspected fraud, half was approved": {
        "void": True, "reversal_reason": ReversalReason.SUSPECTED_FRAUD,
        "known_transaction_id": replace(REFERENCE, operation="DB", amount=2_000).text(),
    },
    "account verification": {"operation": "RG", "amount": "0.00", "stores": True},
    "account verification, Mastercard": mastercard(operation="RG", amount="0.00", stores=True),
    "taken back: an account verification without an answer": {
        "void": True, "operation": "RG", "amount": "0.00", "stores": True, "reversal_reason": ReversalReason.TIMEOUT,
    },
}  # fmt: skip


def build_request(*, void: bool = False, amount: str = "40.00", **changes: Any) -> AcquirerRequest:
    values: dict[str, Any] = {
        "payment": UUID("0193f5c8-7a00-7000-8000-000000000001"),
        "trace_number": 4711,
        "operation": "DB",
        "money": Money.parse(amount, "EUR"),
        "brand": "VISA",
        "at": datetime(2026, 3, 1, 12, tzinfo=UTC),
        "means": CARD,
    }
    return AcquirerRequest(**values | changes)


def iso_row(name: str) -> list[str]:
    situation = SITUATIONS[name]
    settings = {"host": "127.0.0.1", "port": "8583", "terminal": "TERM0001"}
    terminal = parse_terminal(ConnectorAccount(merchant="M-1", settings=settings))
    asked = build_iso_request(build_request(**situation), terminal, void=bool(situation.get("void")))
    kept = mask_iso_message(build_iso_message(asked), asked)
    parts = " ".join(f"{part}={text}" for part, text in kept.get("48", {}).items())
    addenda = " ".join(
        f"DE{element}: " + " ".join(f"{part}={text}" for part, text in kept[element].items())
        for element in ("104", "120", "121")
        if element in kept
    )
    times = [str(kept["7"]), f"{kept['13']} {kept['12']}"]
    shown = [
        str(kept["3"]),
        str(kept["4"]),
        *times,
        *(str(kept.get(number, "")) for number in ("22", "25", "38", "39")),
        parts,
        *(str(kept.get(number, "")) for number in ("90", "95")),
        addenda,
    ]
    return [name, kept["mti"], *(f"`{text}`" if "*" in text else text for text in shown)]


def card_api_row(name: str) -> list[str]:
    situation = SITUATIONS[name]
    request = build_request(**situation)
    if names := find_unsendable(CARD_API.sends, request.brand, request.operation, request.parameters):
        return [name, "none", f"another account is asked, else refused, 600.200.400: {', '.join(names)}"]
    if "after a renewal" in name or situation.get("kept_amount"):
        return [name, "none", "nothing was renewed"]
    if situation.get("void"):
        return [name, "/v1/payment_intents/pi_…/cancel", "no field"]
    match request.operation:
        case "CP":
            path, form = (
                "/v1/payment_intents/pi_…/capture",
                card_api.build_capture(request, full=True, multicapture=request.clearing[1] > 1),
            )
        case "RF":
            path = "/v1/refunds"
            form = card_api.build_refund(replace(request, reference="pi_…"))
        case "RV":
            return [name, "none", "declined, 700.400.300: an intent is given up as a whole"]
        case "PA" if request.reference:
            return [name, "none", "declined, 600.200.400"]
        case "CD":
            return [name, "none", "another account is asked: the processor does no CD"]
        case "RG":
            path, form = "/v1/setup_intents", card_api.build_verification(request)
        case _ if isinstance(request.means, TokenAccount) or getattr(request.means, "number_type", "") == "DPAN":
            return [name, "none", "another account is asked: the processor takes neither"]
        case _:
            path, form = "/v1/payment_intents", card_api.build_intent(request, full=True, multicapture=False)
    fields = card_api.mask_form(form)
    unsent = list_unsent(CARD_API.sends, request.brand, request.operation, request.parameters)
    told = f"; not sent: {', '.join(unsent)}" if unsent else ""
    return [name, path, " ".join(f"`{field}={value}`" for field, value in fields.items()) + told]


PAGES = {
    "iso8583": (
        [
            "situation",
            "type",
            "DE3",
            "DE4",
            "DE7",
            "DE13, DE12",
            "DE22",
            "DE25",
            "DE38",
            "DE39",
            "parts of DE48",
            "DE90",
            "DE95",
            "addenda",
        ],
        iso_row,
    ),
    "card-api": (["situation", "path", "form"], card_api_row),
}


@pytest.mark.parametrize("page", PAGES)
def test_the_page_says_what_is_sent(page: str) -> None:
    head, build_row = PAGES[page]
    rows = [head, ["---"] * len(head), *(build_row(name) for name in SITUATIONS)]
    made = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    path = DOCS / f"{page}.md"
    text = path.read_text()
    block = re.compile(r"(<!-- sent -->\n).*?(<!-- end -->)", re.DOTALL)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        text = block.sub(lambda found: f"{found[1]}{made}\n{found[2]}", text)
        path.write_text(text)
    assert f"<!-- sent -->\n{made}\n<!-- end -->" in text


CAPABILITY_PAGES = {"iso8583": ISO8583, "card-api": CARD_API, "sepa": SEPA}


def capability_rows(connector: Connector) -> list[list[str]]:
    """A row for each parameter that means something to banks: where it is sent, and what becomes of it elsewhere."""
    found = []
    for special in SPECIAL_PARAMETERS:
        rows = [
            row
            for row in connector.sends
            if row.name == special.name or (special.name.endswith(".") and row.name.startswith(special.name))
        ]
        otherwise = "refused, 600.200.400" if special.binding else "not sent, named in `ignoredParameters`"
        shown = f"`{special.name}{'*' if special.name.endswith('.') else ''}`"
        if special.values:
            shown += f" {', '.join(sorted(special.values))}"
        if not rows:
            found.append([special.group, shown, "no", "", otherwise])
        found += [
            [special.group, shown if row.name == special.name else f"`{row.name}`", row.place, _limits(row), otherwise]
            for row in rows
        ]
    return found


def _limits(row: SentParameter) -> str:
    of_networks = {brand: name for brand, name in NETWORK_BY_BRAND.items() if brand in row.brands}
    every = row.operations == ADDENDA_OPERATIONS or row.operations == INTENT_PAYMENT_TYPES
    limits = [
        *sorted(row.values) * (not row.name.startswith("transactionCategory")),
        *sorted(set(of_networks.values())),
        *([] if every else sorted(row.operations)),
        *([f"up to {row.max_chars} characters"] if row.max_chars else []),
        *([f"the first {' and '.join(map(str, row.max_items))}"] if row.max_items else []),
        *(f"needs `{name}`" for name in row.needs),
    ]
    return ", ".join(limits)


SHORT_FIELDS = ("classOfService", "taxCategory", "sourceOfFunds")


@pytest.mark.parametrize("page", CAPABILITY_PAGES)
def test_the_page_says_what_can_be_sent(page: str) -> None:
    head = ["for", "parameter", "sent as", "only", "otherwise"]
    rows = [head, ["---"] * len(head), *capability_rows(CAPABILITY_PAGES[page])]
    made = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    path = DOCS / f"{page}.md"
    text = path.read_text()
    block = re.compile(r"(<!-- parameters -->\n).*?(<!-- end -->)", re.DOTALL)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        text = block.sub(lambda found: f"{found[1]}{made}\n{found[2]}", text)
        path.write_text(text)
    assert f"<!-- parameters -->\n{made}\n<!-- end -->" in text


def test_every_parameter_of_a_table_exists_and_means_something_to_banks() -> None:
    for connector in CAPABILITY_PAGES.values():
        for row in connector.sends:
            assert PAYMENT_ENDPOINT.catalogue.find(row.name.replace("[n]", "[0]")) is not None, row.name
            assert any(
                row.name == one.name or (one.name.endswith(".") and row.name.startswith(one.name))
                for one in SPECIAL_PARAMETERS
            ), row.name


def test_what_is_said_to_be_sent_is_in_the_message() -> None:
    """Each row of the ISO 8583 table, with a value of its own, is found in the message that it is said to be in."""
    terminal = parse_terminal(
        ConnectorAccount(merchant="M-1", settings={"host": "127.0.0.1", "port": "8583", "terminal": "TERM0001"})
    )
    for row in ISO8583.sends:
        if row.values:
            continue
        name, brand = row.name.replace("[n]", "[0]"), min(row.brands, default="VISA")
        value = (
            "Q7" if row.max_chars == 2 or name.endswith(("classOfService", "taxCategory", "sourceOfFunds")) else "Q7Z"
        )
        accounts = {name: Secret(value)} if name in PARTY_ACCOUNTS else {}
        request = build_request(parameters={name: value}, brand=brand, party_accounts=accounts)
        message = build_iso_message(build_iso_request(request, terminal))
        element = row.place.removeprefix("DE").split()[0]
        assert value in message[element], row


def test_no_golden_message_of_the_merchants_has_a_security_code() -> None:
    for name, situation in SITUATIONS.items():
        if name.startswith("merchant"):
            request = build_request(**{**situation, "means": CARD})
            assert "cvv2" not in str(iso_row(name))
            assert not any("cvc" in field for field, _ in card_api.build_intent(request, full=True, multicapture=False))
