"""A service that sends money abroad: it takes the sender's money, and pays it out to the recipient.

Source: Part A, Basic payment (transactionProcessingCode, transactionPurposeCode); Part B, Sender, Recipient; D37.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Answer, Api, payment

pytestmark = pytest.mark.django_db

PAID = "000.100.110"
SENDER = {
    "sender.givenName": "Jane", "sender.surname": "Jones", "sender.country": "DEU", "sender.city": "Munich",
    "sender.birthDate": "1990-05-14", "sender.sourceOfFunds": "02", "sender.accountNumberType": "IBAN",
    "sender.accountNumber": "DE23100000001234567890", "sender.entityType": "individual",
}  # fmt: skip
RECIPIENT = {
    "recipient.givenName": "Ravi", "recipient.surname": "Mehta", "recipient.country": "IND", "recipient.city": "Pune",
    "recipient.accountNumberType": "BAN_AND_BIC", "recipient.accountNumber": "50100123456789",
    "recipient.relationship": "brother",
}  # fmt: skip
PURPOSE = {"transactionPurposeCode": "ISSUPP"}


def transfer(api: Api, code: str = "FUNDING", **changes: str | None) -> Answer:
    named = {name.replace("__", "."): value for name, value in changes.items()}
    fields: dict[str, str | None] = {**payment(), **SENDER, **RECIPIENT, **PURPOSE, "transactionProcessingCode": code}
    return api.post("/v1/payments", {name: value for name, value in (fields | named).items() if value is not None})


def sent_on(api: Api, answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = api.get("/v1/test/acquirer/messages", {"id": answer.id}).body["messages"][0]["sent"]
    return found


def test_a_sister_sends_money_to_her_brother(api: Api) -> None:
    """B2: both parties come back and go on; their account numbers are seen by nobody else."""
    taken = transfer(api, "FUNDING")
    paid_out = transfer(api, "PAYMENT", paymentType="CD", amount="90.00")
    for answer, code in ((taken, "FUNDING"), (paid_out, "PAYMENT")):
        assert (answer.status, answer.code, answer.body["transactionProcessingCode"]) == (200, PAID, code), answer
        for where in (answer.body, api.read(answer.id).body, sent_on(api, answer)):
            assert (where["sender"]["surname"], where["sender"]["sourceOfFunds"]) == ("Jones", "02")
            assert (where["recipient"]["surname"], where["recipient"]["relationship"]) == ("Mehta", "brother")
            assert where["transactionPurposeCode"] == "ISSUPP"
        for text in (answer.text, api.read(answer.id).text):
            assert SENDER["sender.accountNumber"] not in text
            assert RECIPIENT["recipient.accountNumber"] not in text


@pytest.mark.parametrize("country", ["ARG", "BGD", "CHL", "COL", "EGY", "IND"])
def test_six_countries_want_to_know_what_for(api: Api, country: str) -> None:
    """B3.3, A13.19, D37: asked for with FUNDING and PAYMENT, and not for a purchase."""
    for code in ("FUNDING", "PAYMENT"):
        refused = transfer(api, code, recipient__country=country, transactionPurposeCode=None)
        assert (refused.status, list(refused.errors)) == (400, ["transactionPurposeCode"])
        assert transfer(api, code, recipient__country=country).code == PAID
    assert transfer(api, "PURCHASE", recipient__country=country, transactionPurposeCode=None).code == PAID


def test_elsewhere_nobody_asks(api: Api) -> None:
    """D37."""
    paid = transfer(api, "PAYMENT", recipient__country="DEU", transactionPurposeCode=None)
    assert paid.code == PAID
    assert "transactionPurposeCode" not in paid.body


def test_a_form_filled_in_badly_is_told_all_at_once(api: Api) -> None:
    """D10: every field by its name; nothing was sent."""
    wrong = {
        "sender__country": "DE",
        "sender__sourceOfFunds": "10",
        "sender__accountNumberType": "WALLET_ID",
        "recipient__country": "INDIA",
        "recipient__birthDate": "1990-02-30",
        "transactionPurposeCode": "MUCH TOO LONG",
    }
    refused = transfer(api, **wrong)
    assert (refused.status, "id" in refused.body) == (400, False)
    assert set(refused.errors) == {name.replace("__", ".") for name in wrong}
    assert transfer(api, "REFUND").errors.keys() == {"transactionProcessingCode"}


def test_a_transfer_that_the_bank_refuses_moves_nothing(api: Api) -> None:
    """The sender's card is over its limit: what was said of both stays with the payment."""
    declined = transfer(api, card__number="4000015500000005")
    assert (declined.status, declined.code) == (400, "800.100.155")
    assert api.read(declined.id).body["recipient"]["surname"] == "Mehta"
    assert api.follow(declined.id, "RF", "92.00").code == "700.400.520"


def test_the_recipients_money_is_called_back(api: Api) -> None:
    """Decisions, section 4: CD → RV."""
    paid_out = transfer(api, "PAYMENT", paymentType="CD")
    assert api.follow(paid_out.id, "RV").status == 200
    assert api.follow(paid_out.id, "RV").code == "700.400.300"
