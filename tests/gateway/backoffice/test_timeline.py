"""What a payment's page tells: the chain with amounts, what happened when, and why."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gateway.backoffice.payments import timeline
from gateway.backoffice.payments.explanation import FAMILY_EXPLANATIONS, DecisionMaker, explain_payment
from gateway.backoffice.payments.request_details import build_request_details
from gateway.backoffice.payments.timeline import PaymentStory, build_payment_story
from gateway.connectors.circuit import ACQUIRER_UNREACHABLE
from gateway.core import result_codes
from gateway.core.result_codes import ResultFamily
from gateway.models import Channel, Payment, RiskSet, ThreeDSecureConfiguration
from gateway.payments import store
from gateway.payments.states import LifecycleEvent
from tests.support.fixtures import Shop
from tests.support.threeds import Shopper, buy

NOT_VALID = "4000015500000005"


def told(ident: str) -> PaymentStory:
    return build_payment_story(Payment.objects.select_related("merchant", "channel").get(pk=ident))


@pytest.mark.parametrize("family", ResultFamily)
def test_every_family_of_results_says_who_decided_and_what_happened(family: ResultFamily) -> None:
    """Brief: a table with a completeness test."""
    who, happened = FAMILY_EXPLANATIONS[family]
    assert isinstance(who, DecisionMaker)
    assert happened.endswith(".")


def test_every_result_code_has_an_explanation() -> None:
    """Brief: for every result code, what happened and what to do."""
    for code in result_codes.RESULT_CODES:
        status = {True: "APPROVED", False: "DECLINED"}[result_codes.is_approved(code)]
        found = explain_payment(Payment(payment_type="DB", status=status, result_code=code, answer={}))
        assert all((found.happened, found.todo, found.description)), code


def test_every_event_has_words() -> None:
    """House: tables with a completeness test."""
    assert set(timeline._EVENTS) == set(LifecycleEvent)


_KIND_KEPT = re.compile(r'(?:\bkind(?:: str)?=|\bkind: str = |_exchange\(|_by_reply\(payment, reply, )"([a-z]+)"')


def test_every_kind_of_exchange_that_is_kept_has_words() -> None:
    """The page would show the program's own word."""
    folder = Path(store.__file__).parent
    kept = {kind for path in folder.glob("*.py") for kind in _KIND_KEPT.findall(path.read_text(encoding="utf-8"))}
    assert {"submit", "inquire", "void", "bank", "person"} <= kept
    assert sorted(kept - set(timeline._KINDS)) == []


def test_an_order_that_is_with_the_bank_is_not_said_to_have_moved_no_money() -> None:
    """It may be booked there already."""
    payment = Payment(payment_type="DB", status="PENDING", result_code="800.400.500", connector="sepa", answer={})
    assert explain_payment(payment).money.startswith("Whether money moved is not known yet")
    waiting = Payment(payment_type="DB", status="PENDING", result_code="000.200.000", connector="simulator", answer={})
    assert explain_payment(waiting).money == "No money moved yet."


@pytest.mark.django_db
def test_a_chain_is_told_with_what_was_done_and_what_remains(shop: Shop) -> None:
    """A strip of states with amounts, the chain as a picture."""
    held = shop.api.pay(paymentType="PA", amount="120.00").id
    first = shop.api.follow(held, "CP", "60.00").id
    shop.api.follow(held, "CP", "40.00")
    shop.api.follow(first, "RF", "10.00")
    shop.api.follow(first, "RF", "500.00")
    found = told(held)
    assert {each.name: each.amount for each in found.sums} == {
        "Authorised": Decimal(120),
        "Captured": Decimal(100),
        "Still to capture": Decimal(20),
        "Refunded": Decimal(10),
        "Reversed": Decimal(0),
        "Still to refund": Decimal(90),
    }
    assert [(node.title, node.depth, node.parent) for node in found.nodes] == [
        ("Preauthorization", 0, None),
        ("Capture", 1, 0),
        ("Refund", 2, 1),
        ("Refund", 2, 1),
        ("Capture", 1, 0),
    ]
    assert [node.here for node in told(first).nodes] == [False, True, False, False, False]
    kinds = [moment.kind for moment in found.moments]
    assert kinds.count("exchange") == 4
    assert kinds[0] == "event"


@pytest.mark.django_db
def test_a_soft_decline_and_the_challenge_after_it_are_told_in_their_order(shop: Shop) -> None:
    """Both authentications and both attempts are there; the strip and the panel speak of how it ended."""
    channel = shop.open_channel("stepping up", three_d_secure=True)
    ThreeDSecureConfiguration.objects.create(channel=channel, on_soft_decline="challenge")
    answer = buy(shop.api_of(channel), "4000030002000007")
    waiting = told(answer.id)
    assert waiting.why.code == "000.200.000"
    assert waiting.authentication is not None
    assert (waiting.authentication.attempt, waiting.authentication.step) == (2, "challenge")
    Shopper.of(answer).enter()
    found = told(answer.id)
    assert found.why.money == "92.00 EUR was taken."
    kinds = [moment.kind for moment in found.moments if moment.kind in ("3ds", "exchange")]
    assert kinds == ["3ds", "3ds", "exchange", "3ds", "3ds", "exchange"]
    (declined,) = [moment for moment in found.moments if "goes on with a challenge" in moment.title]
    assert declined.lines[0].startswith("300.100.100")


@pytest.mark.django_db
def test_a_decline_says_who_decided_and_that_no_money_moved(shop: Shop) -> None:
    """The why panel."""
    bank = told(shop.api.pay(card__number=NOT_VALID).id).why
    assert (bank.decided_by, bank.money) == (DecisionMaker.ISSUER, "No money moved.")
    assert bank.shopper
    assert "The acquirer's own code: 51" in bank.more
    ours = told(shop.api.follow(shop.api.pay().id, "RF", "500.00").id).why
    assert ours.decided_by is DecisionMaker.REQUEST
    invalid = told(shop.api.pay(card__number="4444444444444444").id).why
    assert invalid.decided_by is DecisionMaker.REQUEST


def test_a_payment_that_a_breaker_or_bulkhead_kept_back_says_so() -> None:
    """Nobody was asked, so no exchange tells of it; one that was asked in vain has one."""
    payment = Payment(status="DECLINED", result_code=ACQUIRER_UNREACHABLE, payment_type="DB", answer={})
    assert explain_payment(payment, was_asked=False).happened.startswith(
        "Nothing was sent: the account at the acquirer"
    )
    assert "could not be reached" in explain_payment(payment, was_asked=True).happened


@pytest.mark.django_db
def test_an_approval_in_part_that_a_channel_does_not_take_is_told_as_its_setting(shop: Shop) -> None:
    """The bank approved: it is not the one who said no."""
    Channel.objects.filter(pk=shop.channel.pk).update(partial_approvals=Channel.PartialApprovals.DECLINE)
    ours = told(shop.api.pay(card__number="4000050000000007").id).why
    assert (ours.decided_by, ours.money) == (DecisionMaker.SETUP, "No money moved.")
    assert ours.happened.startswith("The bank approved only a part of the amount")
    assert "Approved in part: approved for 46.00 of 92.00 EUR; the approval was reversed" in ours.more


@pytest.mark.django_db
def test_a_risk_rules_decline_names_the_rule(shop: Shop) -> None:
    """Brief: risk rule X."""
    rule = {
        "name": "no large ones",
        "when": {"kind": "amount", "over": "10.00", "currency": "EUR"},
        "then": {"verdict": "decline"},
    }
    document: dict[str, Any] = {"key": "shop", "rules": [rule]}
    RiskSet.objects.create(merchant=shop.merchant, key="shop", document=document)
    shop.channel.risk_set = "shop"
    shop.channel.save()
    answer = shop.api.pay()
    assert answer.status == 400, answer
    found = told(answer.id)
    assert found.why.decided_by is DecisionMaker.RISK
    assert any("no large ones" in line for line in found.why.more)
    assert [moment.tone for moment in found.moments if moment.kind == "risk"] == ["bad"]


@pytest.mark.django_db
def test_a_story_takes_a_fixed_number_of_statements(shop: Shop) -> None:
    """Brief: pure reading, bounded."""
    held = shop.api.pay(paymentType="PA").id

    def statements() -> int:
        payment = Payment.objects.select_related("merchant", "channel").get(pk=held)
        with CaptureQueriesContext(connection) as asked:
            build_payment_story(payment)
        return len(asked)

    shop.api.follow(held, "CP", "1.00")
    before = statements()
    for _ in range(3):
        shop.api.follow(held, "CP", "1.00")
    assert statements() == before <= 11


@pytest.mark.django_db
def test_people_cart_and_sellers_are_told_with_sums_that_disagree(shop: Shop) -> None:
    """A7.12, B5.8, A20.2, A21.2, A13.13."""
    answer = shop.api.post(
        "/v1/payments",
        {
            "amount": "120.00",
            "currency": "EUR",
            "paymentBrand": "VISA",
            "paymentType": "DB",
            "card.number": "4200000000000000",
            "card.expiryMonth": "05",
            "card.expiryYear": "2034",
            "card.cvv": "123",
            "customer.givenName": "Jane",
            "customer.surname": "Jones",
            "merchantMemo": "fragile parcel",
            "shipping.customer.givenName": "Max",
            "shipping.customer.surname": "Other",
            "cart.items[0].name": "Lamp",
            "cart.items[0].quantity": "2",
            "cart.items[0].price": "50.00",
            "cart.items[0].totalAmount": "90.00",
            "cart.items[0].sellerId": "s1",
            "marketPlace.sellers[0].id": "s1",
            "marketPlace.sellers[0].amount": "80.00",
        },
    )
    assert answer.status == 200, answer
    found = build_request_details(Payment.objects.get(pk=answer.id))
    facts = {card.title: dict(card.facts) for card in found.cards}
    assert facts["Customer"]["Name"] == "Jane Jones"
    assert facts["Shipped to another person"]["Name"] == "Max Other"
    assert facts["References"]["Memo (yours alone)"] == "fragile parcel"
    assert found.lines[0].warnings == ("2 × 50.00 is 100.00, but totalAmount says 90.00",)
    assert [(split.seller, split.amount, split.items) for split in found.splits] == [("s1", "80.00", Decimal("90.00"))]
    assert any("90.00" in warning and "120.00" in warning for warning in found.warnings)
