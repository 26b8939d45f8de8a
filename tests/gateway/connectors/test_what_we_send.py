"""Golden messages: what each card connector sends in each situation (`UPDATE_SNAPSHOTS=1` writes the pages)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.card_api import mapping as card_api
from gateway.connectors.iso8583.iso_request import OriginalMessage, build_iso_request
from gateway.connectors.iso8583.mapping import build_iso_message, mask_iso_message
from gateway.connectors.iso8583.terminal import parse_terminal
from gateway.connectors.means import Card, TokenAccount
from gateway.connectors.point_of_service import PointOfService, build_point_of_service, continue_point_of_service
from gateway.connectors.port import AcquirerRequest, ConnectorAccount
from gateway.core.money import Money
from gateway.core.secret import Secret

DOCS = Path(__file__).parents[3] / "docs" / "connectors"
CARD = Card(number=Secret("4200000000000000"), expiry_month="05", expiry_year="2034", cvv=Secret("987"))
STORED = replace(CARD, cvv=None)
TOKEN = TokenAccount(
    account=Secret("4200000000000000"), type="NETWORK", expiry_month="05", expiry_year="2034",
    cryptogram=Secret("AgAAAAAAAIR8CQrXcIhbQAAAAAA="),
)  # fmt: skip
REFERENCE = OriginalMessage(
    operation="PA", stan="000042", sent_at="0301115959", rrn="606012345678", auth="A00042", amount=10_000,
    network="483296210004567",
)  # fmt: skip
INSTRUCTION = "standingInstruction"
PROOF = {
    "threeDSecure.eci": "05",
    "threeDSecure.version": "2.2.0",
    "threeDSecure.authenticationStatus": "Y",
    "threeDSecure.dsTransactionId": "f25084f0-5b16-4c0a-ae5d-b24808a95e4b",
    "threeDSecure.challengeIndicator": "05",
}
CRYPTOGRAM = Secret("AAACAgSRBklmQCFgMpEGAAAAAAA=")
FIRST = {f"{INSTRUCTION}.initialTransactionId": "483296210004567"}


def merchants(**words: str) -> dict[str, str]:
    named = {f"{INSTRUCTION}.{name}": value for name, value in words.items()}
    return {f"{INSTRUCTION}.mode": "REPEATED", f"{INSTRUCTION}.source": "MIT", **named, **FIRST}


CIT, MIT = PointOfService(), build_point_of_service(merchants(type="UNSCHEDULED"))
SITUATIONS: Mapping[str, Mapping[str, Any]] = {
    "cardholder pays": {},
    "cardholder pays, card is stored": {"stores": True},
    "cardholder pays with a stored card": {"stored": True, "means": STORED},
    "merchant: subscription": {"means": STORED, "parameters": merchants(type="RECURRING")},
    "merchant: instalment": {"means": STORED, "parameters": merchants(type="INSTALLMENT")},
    "merchant: unscheduled": {"means": STORED, "parameters": merchants(type="UNSCHEDULED")},
    "merchant: resubmission": {"means": STORED, "parameters": merchants(industryPractice="RESUBMISSION")},
    "merchant: delayed charge": {"means": STORED, "parameters": merchants(industryPractice="DELAYED_CHARGES")},
    "merchant: no-show": {"means": STORED, "parameters": merchants(industryPractice="NO_SHOW")},
    "increment": {
        "operation": "PA", "means": STORED, "reference": REFERENCE.text(),
        "original": continue_point_of_service(CIT, "INCREMENTAL_AUTH"),
    },
    "renewal": {
        "operation": "PA", "means": STORED, "reference": REFERENCE.text(),
        "original": continue_point_of_service(CIT, "REAUTHORIZATION"),
    },
    "capture": {"operation": "CP", "means": STORED, "reference": REFERENCE.text(), "original": CIT},
    "capture, the last of three": {
        "operation": "CP", "means": STORED, "reference": REFERENCE.text(), "original": CIT, "clearing": (3, 3),
    },
    "final authorization, Mastercard": {
        "operation": "PA", "brand": "MASTER", "means": STORED, "authorization_kind": "FINAL",
    },
    "capture of a merchant's": {"operation": "CP", "means": STORED, "reference": REFERENCE.text(), "original": MIT},
    "refund": {"operation": "RF", "means": STORED, "reference": REFERENCE.text(), "original": CIT},
    "reversal in part": {"operation": "RV", "means": STORED, "reference": REFERENCE.text(), "original": CIT},
    "taken back": {"void": True},
    "mail or telephone order": {"parameters": {"transactionCategory": "MO"}},
    "3-D Secure, low-risk exemption": {"parameters": PROOF, "cryptogram": CRYPTOGRAM},
    "wallet or network token": {"means": TOKEN, "parameters": {"threeDSecure.eci": "07"}},
    "account verification": {"operation": "RG", "amount": "0.00", "stores": True},
}  # fmt: skip


def build_request(*, void: bool = False, amount: str = "40.00", **changes: Any) -> AcquirerRequest:
    values: dict[str, Any] = {
        "payment": UUID("0193f5c8-7a00-7000-8000-000000000001"),
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
    shown = [*(str(kept.get(number, "")) for number in ("3", "4", "22", "25", "38")), parts,
             *(str(kept.get(number, "")) for number in ("90", "95"))]  # fmt: skip
    return [name, kept["mti"], *(f"`{text}`" if "*" in text else text for text in shown)]


def card_api_row(name: str) -> list[str]:
    situation = SITUATIONS[name]
    request = build_request(**situation)
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
        case "RG":
            path, form = "/v1/setup_intents", card_api.build_verification(request)
        case _ if isinstance(request.means, TokenAccount):
            return [name, "none", "another account is asked: the processor takes neither"]
        case _:
            path, form = "/v1/payment_intents", card_api.build_intent(request, full=True, multicapture=False)
    fields = card_api.mask_form(form)
    return [name, path, " ".join(f"`{field}={value}`" for field, value in fields.items())]


PAGES = {
    "iso8583": (["situation", "type", "DE3", "DE4", "DE22", "DE25", "DE38", "parts of DE48", "DE90", "DE95"], iso_row),
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


def test_no_golden_message_of_the_merchants_has_a_security_code() -> None:
    for name, situation in SITUATIONS.items():
        if name.startswith("merchant"):
            request = build_request(**{**situation, "means": CARD})
            assert "cvv2" not in str(iso_row(name))
            assert not any("cvc" in field for field, _ in card_api.build_intent(request, full=True, multicapture=False))
