"""A gas supplier that collects from bank accounts, and lets those who would rather pay first do so.

Source: Part A, Bank account; Part B, Payment response (merchant.bankAccount); ruling D40; checks A18, B18.10.
"""

from __future__ import annotations

import pytest

from tests.support.client import Answer, Api
from tests.support.clock import pass_time

pytestmark = pytest.mark.django_db

PAID = "000.100.110"
IBAN, WRONG = "DE23100000001234567890", "DE24100000001234567890"
MANDATE = {
    "bankAccount.mandate.id": "GAS-CONTRACT",
    "bankAccount.mandate.dateOfSignature": "2026-01-15",
    "transactionDueDate": "2026-12-01",
}


def collect(api: Api, iban: str = IBAN, **more: str) -> Answer:
    account = {
        "amount": "92.00",
        "currency": "EUR",
        "paymentType": "DB",
        "paymentBrand": "DIRECTDEBIT_SEPA",
        "bankAccount.holder": "Jane Jones",
        "bankAccount.iban": iban,
        "bankAccount.bic": "MARKDEF1100",
    }
    return api.post("/v1/payments", account | MANDATE | more)


def prepay(api: Api) -> Answer:
    fields = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "paymentBrand": "PREPAYMENT"}
    return api.post("/v1/payments", fields)


def report(api: Api, payment: str, outcome: str) -> Answer:
    """What the simulated bank reports."""
    return api.post(f"/v1/test/transfers/{payment}", {"outcome": outcome})


def test_a_year_of_gas_is_collected_with_a_mandate_on_its_day(api: Api) -> None:
    """A18.7: mandate and due date come back and go on; the account comes back masked."""
    paid = collect(api)
    assert (paid.status, paid.code, paid.body["paymentBrand"]) == (200, PAID, "DIRECTDEBIT_SEPA")
    account = paid.body["bankAccount"]
    assert account["iban"] == "*" * 18 + "7890"
    assert account["mandate"] == {"id": "GAS-CONTRACT", "dateOfSignature": "2026-01-15"}
    assert paid.body["transactionDueDate"] == "2026-12-01"
    told = api.get("/v1/test/acquirer/messages", {"id": paid.id})
    sent = told.body["messages"][0]["sent"]
    assert sent["bankAccount"]["mandate"] == account["mandate"]
    assert sent["transactionDueDate"] == "2026-12-01"
    for text in (paid.text, told.text, api.read(paid.id).text):
        assert IBAN not in text


def test_the_customer_used_less_and_gets_some_back(api: Api) -> None:
    """A27.3: RF within what was collected; another year by RB."""
    paid = collect(api)
    back = api.follow(paid.id, "RF", "12.00")
    assert (back.status, back.body["referencedId"], back.body["paymentBrand"]) == (200, paid.id, "DIRECTDEBIT_SEPA")
    assert api.follow(paid.id, "RF", "80.01").code == "700.400.200"
    assert api.follow(paid.id, "RF", "80.00").status == 200
    assert api.follow(paid.id, "RB", "95.00").status == 200


def test_a_mistyped_account_is_refused_before_any_bank_is_asked(api: Api) -> None:
    """D40: the check digits decide the payment, which has an id and can be read."""
    wrong = collect(api, WRONG)
    assert (wrong.status, wrong.code, list(wrong.errors)) == (400, "100.100.101", ["bankAccount.iban"])
    assert WRONG not in wrong.text
    assert api.read(wrong.id).code == "100.100.101"
    assert api.get("/v1/test/acquirer/messages", {"id": wrong.id}).body["messages"] == []
    malformed = collect(api, "DE23 1000")
    assert (malformed.status, malformed.code, "id" in malformed.body) == (400, "200.300.404", False)
    assert collect(api).status == 200


def test_an_account_without_money_and_a_closed_one_say_so(api: Api) -> None:
    """The simulator's accounts: the number says what the bank answers."""
    numbers = {"DE84100000000800100203": "800.100.203", "DE14100000000800100202": "800.100.202"}
    for iban, code in numbers.items():
        declined = collect(api, iban)
        assert (declined.status, declined.code) == (400, code), iban
        assert api.follow(declined.id, "RF", "1.00").code == "700.400.520"


def test_a_customer_pays_first_and_the_money_arrives(api: Api) -> None:
    """B18.10: where to pay into; pending until it is there."""
    waiting = prepay(api)
    assert (waiting.status, waiting.code) == (200, "800.400.500")
    account = waiting.body["merchant"]["bankAccount"]
    assert set(account) == {"holder", "number", "bic", "country"}
    pass_time(api, days=5)
    assert api.read(waiting.id).code == "800.400.500"
    assert api.follow(waiting.id, "RF", "1.00").code == "700.400.570"
    assert report(api, waiting.id, "arrived").code == PAID
    paid = api.read(waiting.id)
    assert (paid.status, paid.code, paid.body["merchant"]["bankAccount"]) == (200, PAID, account)
    pass_time(api, days=30)
    assert api.read(waiting.id).code == PAID
    assert api.follow(waiting.id, "RF", "92.00").status == 200


def test_a_customer_who_never_pays_is_waited_for_two_weeks(api: Api) -> None:
    """Decisions, section 5: 100.396.103; money that comes too late is not taken."""
    waiting = prepay(api)
    pass_time(api, days=13)
    assert api.read(waiting.id).code == "800.400.500"
    pass_time(api, days=1, seconds=1)
    ended = api.read(waiting.id)
    assert (ended.status, ended.code) == (400, "100.396.103")
    assert report(api, waiting.id, "arrived").code == "100.396.103"


def test_a_transfer_that_is_sent_back_is_no_payment(api: Api) -> None:
    """POST /v1/test/transfers/{id}."""
    waiting = prepay(api)
    assert report(api, waiting.id, "returned").code == "100.397.102"
    assert api.read(waiting.id).status == 400
    assert report(api, waiting.id, "arrived").code == "100.397.102"
