"""Payments and registrations as answers show them: each member from its own column or fact. No database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from gateway import widget_hash
from gateway.core.bin_table import Issuer
from gateway.models import Channel, Merchant, Payment, Registration, Status
from gateway.payments import rendering
from gateway.payments.rendering import (
    render_account_update,
    render_issuer,
    render_payment,
    render_payment_result,
    render_registration,
    render_registration_change,
    resolve_result_code,
)
from gateway.payments.shopper_tokens import build_shopper_redirect

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
IDENT, STORED, BEHIND = UUID(int=5), UUID(int=4), UUID(int=3)


def row(**values: Any) -> Payment:
    base: dict[str, Any] = {
        "id": IDENT, "chain": IDENT, "merchant": Merchant(name="Shop"), "channel": Channel(), "payment_type": "DB",
        "brand": "VISA", "method": "CC", "amount": Decimal("92.00"), "currency": "EUR", "status": Status.APPROVED,
        "result_code": "000.100.110", "answer": {"descriptor": "Shop"},
    }  # fmt: skip
    return Payment(**base | values)


def answer(**facts: Any) -> Payment:
    return row(answer={"descriptor": "Shop", **facts})


def test_an_answer_shows_the_columns_of_its_row() -> None:
    body = render_payment(row())
    assert {name: body[name] for name in ("id", "paymentType", "paymentBrand", "amount", "currency", "descriptor")} == {
        "id": IDENT.hex, "paymentType": "DB", "paymentBrand": "VISA", "amount": "92.00", "currency": "EUR",
        "descriptor": "Shop",
    }  # fmt: skip
    assert not {"referencedId", "registrationId", "registration", "testMode", "redirect", "brandResult"} & body.keys()
    more = render_payment(row(referenced=BEHIND, registration=STORED, test_mode="EXTERNAL"))
    assert (more["referencedId"], more["registrationId"], more["testMode"]) == (BEHIND.hex, STORED.hex, "EXTERNAL")
    assert more["registration"] == {"id": STORED.hex}


@pytest.mark.parametrize(("approved", "shown"), [(None, "92.00"), ("40.00", "40.00"), ("0.00", "0.00")])
def test_an_answer_shows_what_was_granted_else_what_was_asked_for(approved: str | None, shown: str) -> None:
    granted = Decimal(approved) if approved is not None else None
    assert render_payment(row(approved_amount=granted))["amount"] == shown


@pytest.mark.parametrize("name", rendering.COLUMN_PARAMETERS)
def test_what_a_column_says_is_not_taken_from_the_echo(name: str) -> None:
    body = render_payment(row(request={name: "of the echo", "merchantInvoiceId": "i"}))
    assert body.get(name) != "of the echo"
    assert body["merchantInvoiceId"] == "i"


@pytest.mark.parametrize(
    ("sent", "shown"), [({"integrity": "true"}, True), ({"integrity": "false"}, False), ({}, False)]
)
def test_the_widgets_hash_is_shown_where_it_was_asked_for(sent: dict[str, str], shown: bool) -> None:
    body = render_payment(row(request=sent))
    assert body.get("integrity") == (widget_hash.widget_integrity() if shown else None)


def test_the_descriptor_that_was_sent_goes_before_the_one_that_is_displayed() -> None:
    assert render_payment(row(request={"descriptor": "Sent"}))["descriptor"] == "Sent"


def test_a_cards_facts_are_those_of_the_row_the_request_and_its_issuer() -> None:
    facts = {"bin": "420000", "last4Digits": "0000", "holder": "stored"}
    paid = row(request={"card": {"holder": "sent"}}, answer={"card": facts, "descriptor": "S"})
    assert render_payment(paid)["card"] == {**facts, "holder": "sent", **render_issuer("420000")}
    assert "card" not in render_payment(row(request={"card": {"holder": "sent"}}))


@pytest.mark.parametrize("name", ["bankAccount", "virtualAccount"])
def test_a_stored_account_is_shown_with_what_was_sent_of_it(name: str) -> None:
    paid = row(request={name: {"holder": "sent", "bic": "x"}}, answer={name: {"holder": "old", "iban": "y"}})
    assert render_payment(paid)[name] == {"holder": "sent", "bic": "x", "iban": "y"}
    assert render_payment(row(request={name: {"holder": "sent"}}))[name] == {"holder": "sent"}


@pytest.mark.parametrize(
    ("changes", "details"),
    [
        ({}, None),
        ({"answer": {"resultDetails": {"ConnectorTxID1": "x"}}}, {"ConnectorTxID1": "x"}),
        ({"expires_at": NOW}, {"authorizationExpiresAt": "2026-11-29 12:00:00+0000"}),
        (
            {"expires_at": NOW, "expired_at": NOW + timedelta(days=1)},
            {"authorizationExpiresAt": "2026-11-29 12:00:00+0000", "authorizationExpired": "true"},
        ),
        ({"expired_at": NOW}, None),
        ({"returned_at": NOW}, {"transferReturned": "true"}),
        (
            {"returned_at": NOW, "answer": {"returnReason": "AC04"}},
            {"transferReturned": "true", "transferReturnReason": "AC04"},
        ),
        ({"answer": {"returnReason": "AC04"}}, None),
        ({"archived_at": NOW}, {"archivedAt": "2026-11-29 12:00:00+0000"}),
        ({"answer": {"networkToken": "USED"}}, {"NetworkToken": "USED"}),
        ({"answer": {"networkToken": "USED"}, "status": Status.DECLINED}, {"NetworkToken": "USED"}),
        ({"answer": {"networkToken": "USED"}, "status": Status.IN_DOUBT}, None),
        ({"answer": {"networkToken": "USED"}, "status": Status.PENDING}, None),
        ({"answer": {"facts": {"resultDetails": {"a": "b"}}}}, {"a": "b"}),
    ],
)
def test_result_details_are_the_acquirers_and_those_of_the_row(
    changes: dict[str, Any], details: dict[str, str] | None
) -> None:
    payment = row(**{name: value for name, value in changes.items() if name != "archived_at"})
    payment.archived_at = changes.get("archived_at")
    shown = render_payment(payment).get("resultDetails")
    always = {"AcquirerResponse": "", "ExtendedDescription": render_payment_result(payment)["description"]}
    assert shown == (always | details if details is not None else None)


def test_the_acquirers_own_words_go_before_the_codes() -> None:
    own = {"AcquirerResponse": "05", "ExtendedDescription": "Do not honour"}
    assert render_payment(answer(resultDetails=own))["resultDetails"] == own


def test_facts_are_merged_into_what_was_sent_and_a_detected_brand_is_told() -> None:
    paid = answer(facts={"merchant": {"bankAccount": {"iban": "x"}}}, brandResult="VISA")
    paid.request = {"merchant": {"city": "Rome"}}
    body = render_payment(paid)
    assert body["merchant"] == {"city": "Rome", "bankAccount": {"iban": "x"}}
    assert body["brandResult"] == "VISA"


def test_a_redirect_to_our_own_page_has_the_shoppers_token_and_no_other_has() -> None:
    step = build_shopper_redirect(IDENT)
    own = {"url": step.url, "method": "GET", "parameters": [], "preconditions": [1]}
    assert render_payment(answer(redirect=own))["redirect"] == {**step.as_json(), "preconditions": [1]}
    theirs = {"url": "https://bank.example", "method": "POST", "parameters": []}
    assert render_payment(answer(redirect=theirs))["redirect"] == theirs


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({}, {}),
        ({"avs": "A"}, {"avsResponse": "A"}),
        ({"cvv": "M"}, {"cvvResponse": "M"}),
        ({"avs": "A", "cvv": "M"}, {"avsResponse": "A", "cvvResponse": "M"}),
    ],
)
def test_a_result_has_the_issuers_answers_where_there_are_any(facts: dict[str, str], shown: dict[str, str]) -> None:
    found = render_payment_result(answer(**facts))
    assert {name: value for name, value in found.items() if name not in ("code", "description")} == shown
    assert found["code"] == "000.100.110"


def test_a_payment_without_a_code_has_that_of_an_unknown_outcome() -> None:
    assert (resolve_result_code(row(result_code="")), resolve_result_code(row())) == ("000.200.001", "000.100.110")


@pytest.mark.parametrize(
    "name",
    ["paymentType", "amount", "currency", "referencedId", "registrationId", "registration", "createRegistration",
     "transactionProcessingCode"],
)  # fmt: skip
def test_a_change_of_a_registration_shows_nothing_of_a_payment(name: str) -> None:
    """Ruling D5."""
    sent = {"createRegistration": "true", "transactionProcessingCode": "x", "customer": {"email": "a@b.c"}}
    made = row(referenced=BEHIND, registration=STORED, request=sent)
    assert name in render_payment(made)
    body = render_registration_change(made)
    assert name not in body
    assert (body["id"], body["customer"], body["paymentBrand"]) == (STORED.hex, {"email": "a@b.c"}, "VISA")
    assert "descriptor" not in body
    assert render_registration_change(row(request={"descriptor": "Sent"}))["descriptor"] == "Sent"
    assert render_registration_change(row())["id"] == IDENT.hex


def registration(**values: Any) -> Registration:
    base: dict[str, Any] = {
        "id": STORED, "brand": "VISA", "request": {"customer": {"email": "a@b.c"}}, "test_mode": "",
        "details": {"card": {"bin": "420000", "holder": "Jane"}, "wallet1": {"source": "web"}},
    }  # fmt: skip
    made = Registration(**base | values)
    made._state.fields_cache["network_token"] = None  # it has none, and no database is asked
    return made


def test_a_registration_shows_its_means_without_its_wallet() -> None:
    body = render_registration(registration(), "000.100.110")
    assert (body["id"], body["paymentBrand"], body["customer"]) == (STORED.hex, "VISA", {"email": "a@b.c"})
    assert body["card"] == {"bin": "420000", "holder": "Jane", **render_issuer("420000")}
    assert body["result"]["code"] == "000.100.110"
    assert not {"wallet1", "testMode", "accountUpdate", "networkToken"} & body.keys()
    account = registration(details={"bankAccount": {"holder": "Jane"}}, test_mode="EXTERNAL")
    shown = render_registration(account, "000.100.110")
    assert (shown["bankAccount"], shown["testMode"]) == ({"holder": "Jane"}, "EXTERNAL")
    assert "card" not in shown


@pytest.mark.parametrize(
    ("said", "at", "shown"),
    [
        ("", None, {}),
        ("", NOW, {}),
        ("NEW_DATE", None, {}),
        ("NEW_DATE", NOW, {"accountUpdate": {"answer": "NEW_DATE", "at": "2026-11-29 12:00:00+0000"}}),
    ],
)
def test_what_the_account_updater_changed_is_shown_with_its_time(
    said: str, at: datetime | None, shown: dict[str, Any]
) -> None:
    found = registration(account_update=said, account_updated_at=at)
    assert render_account_update(found) == shown
    assert render_registration(found, "000.100.110").get("accountUpdate") == shown.get("accountUpdate")


@pytest.mark.parametrize(
    ("issuer", "shown"),
    [
        (None, {}),
        (Issuer(bin="4"), {}),
        (Issuer(bin="4", bank="B", country="DE"), {"issuer": {"bank": "B"}}),
        (Issuer(bin="4", phone="1", website="w"), {"issuer": {"phone": "1", "website": "w"}}),
        (Issuer(bin="4", type="CREDIT", level="GOLD"), {"type": "CREDIT", "level": "GOLD"}),
        (Issuer(bin="4", regulated=True), {"regulatedFlag": "true"}),
        (Issuer(bin="4", regulated=False), {"regulatedFlag": "false"}),
    ],
)
def test_of_an_issuer_is_shown_what_a_table_knows(
    issuer: Issuer | None, shown: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(rendering.brands, "find_issuer", lambda digits: (asked.append(digits), issuer)[1])
    assert render_issuer("420000") == shown
    assert asked == ["420000"]
