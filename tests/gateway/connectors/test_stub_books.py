"""The stub acquirer's books: what it allows, what it refuses, and that its log makes the same books again."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from gateway.connectors.stub.ledger import StubLedger, build_transaction_id
from tests.support.database import leaves

APPROVED = "4200000000000000"
HALF = "4000050000000007"


class Talk:
    """Speaks to books, booking every decision."""

    def __init__(self) -> None:
        self.books = StubLedger()
        self.log: list[dict[str, Any]] = []

    def submit(self, operation: str, amount: str, reference: str = "", **more: Any) -> dict[str, Any]:
        key = more.pop("key", None) or uuid4().hex
        first = {} if reference else {"card": {"number": APPROVED, "cvv": "123"}}
        message = {
            "kind": "submit",
            "key": key,
            "operation": operation,
            "amount": amount,
            "currency": "EUR",
            "reference": build_transaction_id(reference) if reference else "",
            **first,
            **more,
        }
        return self.book(self.books.submit(message))

    def void(self, key: str) -> dict[str, Any]:
        return self.book(self.books.void({"key": key}))

    def inquire(self, key: str) -> dict[str, Any]:
        return self.book(self.books.inquire({"key": key}))

    def book(self, entry: dict[str, Any]) -> dict[str, Any]:
        self.books.apply(entry)
        self.log.append(entry)
        return entry


@pytest.fixture
def talk() -> Talk:
    return Talk()


def test_a_capture_takes_out_of_the_hold_and_a_refund_out_of_the_capture(talk: Talk) -> None:
    """Decisions, section 4."""
    hold = talk.submit("PA", "100.00")["key"]
    capture = talk.submit("CP", "60.00", hold)["key"]
    assert talk.submit("CP", "40.01", hold)["answer"]["code"] == "700.400.100"
    assert talk.submit("RF", "60.00", capture)["outcome"] == "approved"
    assert talk.submit("RF", "0.01", capture)["answer"]["code"] == "700.400.200"
    assert talk.submit("RV", "40.00", hold)["outcome"] == "approved"
    assert talk.submit("RV", "0.01", hold)["answer"]["code"] == "700.400.300"
    assert set(talk.books.pools.values()) == {Decimal(0)}


def test_an_incremental_authorization_raises_the_hold_and_a_renewal_does_not(talk: Talk) -> None:
    """Decisions, section 4."""
    hold = talk.submit("PA", "100.00")["key"]
    more = talk.submit("PA", "20.00", hold, standingInstruction={"industryPractice": "INCREMENTAL_AUTH"})["key"]
    talk.submit("PA", "100.00", hold, standingInstruction={"industryPractice": "REAUTHORIZATION"})
    assert talk.submit("CP", "120.01", hold)["outcome"] == "declined"
    assert talk.submit("CP", "120.00", more)["outcome"] == "approved"


def test_a_receipt_cannot_be_used_to_refund_the_same_money_twice(talk: Talk) -> None:
    """Decisions, section 4."""
    debit = talk.submit("DB", "50.00")["key"]
    receipt = talk.submit("RC", "50.00", debit)["key"]
    assert talk.submit("RF", "30.00", receipt)["outcome"] == "approved"
    assert talk.submit("RF", "20.01", debit)["outcome"] == "declined"
    assert talk.submit("RF", "20.00", debit)["outcome"] == "approved"


def test_a_chargeback_takes_once_and_its_reversal_gives_back_once(talk: Talk) -> None:
    """Decisions, section 4."""
    debit = talk.submit("DB", "50.00")["key"]
    dispute = talk.submit("CB", "50.00", debit, chargebackResultCode="000.100.203")
    assert dispute["answer"]["code"] == "000.100.203"
    assert talk.submit("RF", "0.01", debit)["outcome"] == "declined"
    assert talk.submit("CR", "50.01", dispute["key"])["outcome"] == "declined"
    assert talk.submit("CR", "50.00", dispute["key"])["outcome"] == "approved"
    assert talk.submit("RF", "50.00", debit)["outcome"] == "approved"


def test_the_same_key_is_booked_once_and_answered_the_same(talk: Talk) -> None:
    """Goals, R1."""
    first = talk.submit("DB", "50.00")
    again = talk.submit("DB", "50.00", key=first["key"])
    other = talk.submit("DB", "51.00", key=first["key"])
    assert (again["outcome"], again["differs"], other["differs"]) == ("duplicate", False, True)
    assert again["answer"] == other["answer"] == first["answer"]
    assert list(talk.books.pools.values()) == [Decimal("50.00")]


def test_what_is_approved_in_part_is_booked_in_part(talk: Talk) -> None:
    """Part B, Payment response (amount)."""
    debit = talk.submit("DB", "50.00", card={"number": HALF})
    assert debit["answer"]["approvedAmount"] == "25.00"
    assert talk.submit("RF", "25.01", debit["key"])["outcome"] == "declined"


def test_a_void_reverses_what_was_booked_and_does_so_once(talk: Talk) -> None:
    """Goals, R1."""
    key = talk.submit("DB", "50.00")["key"]
    assert [talk.void(key)["outcome"] for _ in range(2)] == ["reversed", "nothing to reverse"]
    assert talk.inquire(key)["answer"]["outcome"] == "voided"
    assert list(talk.books.pools.values()) == [Decimal(0)]
    assert talk.submit("RF", "1.00", key)["outcome"] == "declined"


def test_what_arrives_after_its_void_is_refused(talk: Talk) -> None:
    """Goals, R1: the acquirer times out before accepting."""
    key = uuid4().hex
    assert talk.inquire(key)["answer"]["outcome"] == "unknown"
    talk.void(key)
    assert talk.submit("DB", "50.00", key=key)["outcome"] == "tombstoned"
    assert talk.books.pools == {}
    assert talk.inquire(key)["answer"]["outcome"] == "voided"


def test_a_transaction_that_follow_ups_have_used_up_is_not_taken_back(talk: Talk) -> None:
    """An independent ledger must not go below zero."""
    key = talk.submit("DB", "50.00")["key"]
    talk.submit("RF", "10.00", key)
    assert talk.void(key)["outcome"] == "kept"


def test_the_log_makes_the_same_books_again(talk: Talk) -> None:
    """Goals, R1: kill -9 of the acquirer."""
    hold = talk.submit("PA", "100.00")["key"]
    capture = talk.submit("CP", "60.00", hold)["key"]
    talk.submit("CP", "60.00", hold)
    talk.submit("RF", "10.00", capture)
    talk.void(talk.submit("DB", "5.00")["key"])
    talk.void(uuid4().hex)
    again = StubLedger()
    for entry in talk.log:
        again.apply(entry)
    assert (again.pools, again.tombstones) == (talk.books.pools, talk.books.tombstones)
    assert again.by_key == talk.books.by_key


def test_the_log_holds_no_card_number_and_no_security_code(talk: Talk) -> None:
    """Goals, R8."""
    entry = talk.submit("DB", "50.00", card={"number": APPROVED, "cvv": "987", "holder": "Jane"})
    assert entry["card"] == "420000******0000"
    assert APPROVED not in str(entry)
    assert "987" not in leaves(entry)


def test_the_log_names_the_account_and_the_exemption_of_a_submission(talk: Talk) -> None:
    """The fault runs tell two accounts of one merchant apart by it; docs/faults.md."""
    exemption = {"exemptionFlag": "01", "authenticationStatus": "U"}
    entry = talk.submit("DB", "10.00", merchant="M-1", threeDSecure={**exemption, "verificationId": "secret"})
    assert entry["merchant"] == "M-1"
    assert {name: entry[name] for name in exemption} == exemption
    assert "secret" not in str(entry)
    assert "exemptionFlag" not in talk.submit("DB", "10.00", threeDSecure={"authenticationStatus": "Y"})
