"""The comparison of stored cards finds what is planted, and nothing where both sides agree.

Source: docs/decisions/0126, 0135; goals R1, R2.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from gateway.connectors.simulator.account_updater import RENEWED_NUMBERS
from gateway.connectors.simulator.cards import CARDS_BY_NUMBER
from tests.faults import audit, books, stored_cards
from tests.faults.client import Answer
from tests.faults.finding import DOUBLED, LOST, OPEN, OTHER_NUMBER, TWICE
from tests.faults.stored_cards import CLOSED, NEW_NUMBER, PLAIN, Charge, Facts, Sent, Shopper, StoredCard, Update
from tests.faults.test_audit import A, B, booked, move, ours

CARD = "c" * 32
BY_CARD, BY_TOKEN = Sent(is_token=False, number="420000******0000"), Sent(is_token=True, number="************4242")
CHARGE = Charge(id=A, last4="0000", registration=CARD, at=10.0)


def kinds(**facts: Any) -> list[str]:
    return [one.kind for one in stored_cards.find_all(Facts(**facts))]


@pytest.mark.parametrize(
    ("use", "sent"),
    [
        ("", {A: BY_CARD}),
        ("UNAVAILABLE", {A: BY_CARD}),
        ("USED", {A: BY_TOKEN}),
        ("DECLINED", {A: BY_TOKEN, f"{A}-2": BY_CARD}),
        ("USED", {}),
    ],
)
def test_a_payment_that_came_as_our_books_say_is_no_finding(use: str, sent: dict[str, Sent]) -> None:
    assert kinds(charges=[replace(CHARGE, use=use)], sent=sent) == []


@pytest.mark.parametrize(
    ("use", "sent", "kind"),
    [
        ("USED", {A: BY_CARD}, OTHER_NUMBER),
        ("", {A: BY_TOKEN}, OTHER_NUMBER),
        ("UNAVAILABLE", {A: BY_TOKEN}, OTHER_NUMBER),
        ("DECLINED", {A: BY_CARD, f"{A}-2": BY_CARD}, OTHER_NUMBER),
        ("DECLINED", {A: BY_TOKEN, f"{A}-2": BY_TOKEN}, OTHER_NUMBER),
        ("USED", {A: BY_TOKEN, f"{A}-2": BY_CARD}, DOUBLED),
        ("", {A: Sent(is_token=False, number="420000******0006")}, OTHER_NUMBER),
    ],
)
def test_another_number_than_our_books_have_is_found(use: str, sent: dict[str, Sent], kind: str) -> None:
    assert kinds(charges=[replace(CHARGE, use=use)], sent=sent) == [kind]


def test_a_follow_up_with_another_number_than_its_payment_is_found() -> None:
    refund = Charge(id=B, referenced=A, kind="RF")
    paid = replace(CHARGE, use="USED")
    assert kinds(charges=[paid, refund], sent={A: BY_TOKEN, B: BY_TOKEN}) == []
    assert kinds(charges=[paid, refund], sent={A: BY_TOKEN, B: BY_CARD}) == [OTHER_NUMBER]


def test_a_merchants_charge_of_a_closed_card_that_was_sent_is_found() -> None:
    closed = Update(registration=CARD, status="CLOSED", answered=5.0)
    late, own = replace(CHARGE, at=6.0), replace(CHARGE, at=6.0, is_own=True)
    assert kinds(charges=[own], updates=[closed], sent={}) == []
    assert kinds(charges=[late], updates=[closed], sent={A: BY_CARD}) == []
    assert kinds(charges=[replace(own, at=4.0)], updates=[closed], sent={A: BY_CARD}) == []
    assert kinds(charges=[own], updates=[closed], sent={A: BY_CARD}) == [OTHER_NUMBER]


RENEWED = StoredCard(id=CARD, sequence=2, said="NEW_NUMBER", last4="0006", changes=1, told=1)
ANSWER = Update(registration=CARD, status="NEW_NUMBER")


def test_a_card_that_became_what_the_updater_said_is_no_finding() -> None:
    assert kinds(cards=[RENEWED], updates=[ANSWER], stored={CARD: NEW_NUMBER}) == []
    assert kinds(cards=[StoredCard(id=CARD, last4="0000")], stored={CARD: PLAIN}) == []
    assert kinds(cards=[StoredCard(id=CARD, last4=NEW_NUMBER[-4:])], stored={CARD: NEW_NUMBER}) == []


@pytest.mark.parametrize(
    ("changes", "answers", "kind"),
    [
        ({"last4": NEW_NUMBER[-4:]}, [ANSWER], LOST),
        ({"said": ""}, [ANSWER], LOST),
        ({"told": 0}, [ANSWER], LOST),
        ({"told": 2}, [ANSWER], LOST),
        ({"changes": 2}, [ANSWER], LOST),
        ({}, [ANSWER, ANSWER], DOUBLED),
        ({}, [ANSWER, replace(ANSWER, status="WAITING")], OPEN),
    ],
    ids=["number kept", "not noted", "no webhook", "two webhooks", "two records", "renewed twice", "still asked"],
)
def test_a_card_that_is_otherwise_is_found(changes: dict[str, Any], answers: list[Update], kind: str) -> None:
    found = kinds(cards=[replace(RENEWED, **changes)], updates=answers, stored={CARD: NEW_NUMBER})
    assert kind in found


def test_an_answer_of_another_card_is_found() -> None:
    closed = replace(ANSWER, status="CLOSED")
    card = StoredCard(id=CARD, sequence=2, said="CLOSED", last4="0000", changes=1, told=1)
    assert LOST in kinds(cards=[card], updates=[closed], stored={CARD: PLAIN})


def test_a_token_that_is_not_as_its_network_told_is_found() -> None:
    card = StoredCard(id=CARD, last4="0000", token="SUSPENDED")
    assert kinds(cards=[card], stored={CARD: PLAIN}, events={CARD: "SUSPENDED"}) == []
    assert kinds(cards=[card], stored={CARD: PLAIN}, events={CARD: "RESUMED"}) == [LOST]


def test_a_payment_whose_token_was_declined_is_no_second_submission() -> None:
    """The common comparison knows the event by which a card number follows a token."""
    log = [booked(A, outcome="declined"), booked(f"{A}-2")]
    paid = ours(A)
    begun = (move("STARTED"), replace(move("STARTED"), event="token_fallback"), *paid.moves)
    assert [one.kind for one in audit.find_all({A: replace(paid, moves=begun)}, books.acquirer(log), [], [], [])] == []
    assert TWICE in [one.kind for one in audit.find_all({A: paid}, books.acquirer([booked(A), booked(A)]), [], [], [])]


def test_the_log_of_the_acquirer_is_read() -> None:
    log = [
        {"kind": "submit", "key": A, "card": "420000******0000"},
        {"kind": "submit", "key": B, "tokenAccount": "************4242"},
        {"kind": "inquire", "key": B},
    ]
    assert stored_cards.read_sent(log) == {A: BY_CARD, B: BY_TOKEN}


def test_the_cards_are_those_of_the_test_data() -> None:
    said = {card: CARDS_BY_NUMBER[card].updating for card in stored_cards.SAID}
    assert {card: name.replace(" ", "_").upper() for card, name in said.items()} == dict(stored_cards.SAID)
    assert RENEWED_NUMBERS["VISA"].endswith(stored_cards.RENEWED_LAST4)
    assert CLOSED in CARDS_BY_NUMBER
    assert Decimal(sum(weight for _, weight in stored_cards.CARDS)) == 100


class ApprovingClient:
    """Approves whatever is sent, and keeps the amounts."""

    def __init__(self) -> None:
        self.amounts: list[str] = []

    def pay(self, key: str, fields: Mapping[str, str], target: str = "", path: str = "") -> Answer:
        self.amounts += [fields["amount"]] if "amount" in fields else []
        return Answer(status=200, body={"id": A, "amount": fields.get("amount", ""), "result": {"code": "000.000.000"}})


def test_amounts_are_sent_as_the_api_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """With "19.7" a tenth of the charges were refused for their form, and put nothing under fire."""
    monkeypatch.setattr(stored_cards, "PAUSE_S", (0.0, 0.0))
    client: Any = ApprovingClient()
    shopper = Shopper(client, random.Random(1), threading.Event())
    for turn in range(40):
        shopper.use_card(f"stored-{turn}", CLOSED)
    assert len(client.amounts) > 100
    assert [amount for amount in client.amounts if not re.fullmatch(r"\d+\.\d\d", amount)] == []
