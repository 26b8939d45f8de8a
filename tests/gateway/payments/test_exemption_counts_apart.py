"""Counts of low value payments and requests for exemptions column by column: what is read of which card, what is
written of a request, and when a card was used last. Source: EU 2018/389, article 16; docs/decisions/0105."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models.functions import Now

from gateway.core import identifiers
from gateway.db.statement import WriteStatement
from gateway.models import ExemptionCount, ExemptionRequest, Payment
from gateway.payments import exemption_counts
from gateway.payments.stored_answer import PrivateFacts
from gateway.threeds.exemption_rules import CardCount, Exemption, ExemptionDecision, ExemptionStage, StageChoice
from tests.gateway.payments.test_store import begun
from tests.support.database import others_stay
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

KEY, ANOTHER = b"k" * 16, b"o" * 16
AT = datetime(2033, 5, 6, 7, tzinfo=UTC)
MEASURED = StageChoice(stage=ExemptionStage.AUTHENTICATION, why="measured")
SHOWN = {"facts": {"threeDSecure": {"flow": "challenge", "authenticationStatus": "Y"}}}


def started(shop: Shop) -> Payment:
    """A payment that nobody was asked about, and another one."""
    begun(shop)
    return Payment.objects.select_related("channel", "merchant").get(pk=begun(shop).pk)


def used(shop: Shop, key: bytes, *values: Any) -> None:
    """``values``: payments, amount, authentications."""
    ExemptionCount.objects.create(
        merchant=shop.merchant, key=key, **dict(zip(("payments", "amount", "authentications"), values, strict=True))
    )


def count_of(shop: Shop, key: bytes = KEY) -> tuple[int, Decimal, int]:
    row = ExemptionCount.objects.get(merchant=shop.merchant, key=key)
    return row.payments, row.amount, row.authentications


def test_a_card_has_used_what_is_counted_of_it_at_its_merchant(shop: Shop, stranger: Shop) -> None:
    used(shop, ANOTHER, 1, 10, 2)
    used(stranger, KEY, 3, 30, 4)
    assert exemption_counts.read_card_count(shop.merchant.pk, KEY) == CardCount()
    used(shop, KEY, 2, Decimal("25.50"), 7)
    found = exemption_counts.read_card_count(shop.merchant.pk, KEY)
    assert found == CardCount(payments=2, amount=Decimal("25.50"), authentications=7)


def record_counted(payment: Payment, euros: str = "12.50") -> bool:
    decision = ExemptionDecision(exemption=Exemption.LOW_VALUE, euros=Decimal(euros), limit=Decimal(30))
    return exemption_counts.record_counted_request(payment, decision, MEASURED, answer={"asked": 1}, key=KEY, at=AT)


def row_of(payment: Payment) -> dict[str, Any]:
    return ExemptionRequest.objects.filter(pk=payment.pk).values().get()


def test_a_counted_request_says_what_was_asked_and_what_its_card_had_used(shop: Shop) -> None:
    payment = started(shop)
    used(shop, KEY, 2, Decimal("25.50"), 7)
    used(shop, ANOTHER, 1, 10, 2)
    assert record_counted(payment)
    assert row_of(payment) == {
        "payment_id": payment.pk, "channel_id": shop.channel.pk, "exemption": "LOW_VALUE", "stage": "authentication",
        "stage_why": "measured", "euros": Decimal("12.50"), "amount_limit": Decimal(30), "score": None, "payments": 3,
        "amount": Decimal("38.00"), "authentications": 7, "at": AT,
    }  # fmt: skip
    assert (count_of(shop), count_of(shop, ANOTHER)) == ((3, Decimal("38.00"), 7), (1, Decimal(10), 2))
    assert Payment.objects.get(pk=payment.pk).answer == {"asked": 1}
    assert Payment.objects.filter(answer={}).count() == 1, "the other one"


def test_a_card_that_was_never_counted_begins_at_one(shop: Shop, stranger: Shop) -> None:
    used(stranger, KEY, 4, 90, 1)
    assert record_counted(started(shop))
    assert (count_of(shop), count_of(stranger)) == ((1, Decimal("12.50"), 0), (4, Decimal(90), 1))


DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(("ago", "moves"), [(DAY - MINUTE, False), (DAY + MINUTE, True), (40 * DAY, True)])
@pytest.mark.parametrize("how", ["counted", {"trusted": True}, {"lowValue": True}], ids=str)
def test_when_a_card_was_used_last_is_kept_to_the_day(
    shop: Shop, stranger: Shop, ago: timedelta, moves: bool, how: str | dict[str, Any]
) -> None:
    """By a count, and by a challenge where rules read it."""
    payment = started(shop)
    for one, key in ((shop, KEY), (shop, ANOTHER), (stranger, KEY)):
        used(one, key, 1, 10, 5)
    ExemptionCount.objects.update(used_at=Now() - ago)
    before = ExemptionCount.objects.get(merchant=shop.merchant, key=KEY).used_at
    if isinstance(how, str):
        assert record_counted(payment)
    else:
        assert complete(payment, how)
        assert count_of(shop) == (0, Decimal(0), 6)
    after = ExemptionCount.objects.get(merchant=shop.merchant, key=KEY).used_at
    assert (after > before) is moves
    assert not moves or abs(after - before - ago) < MINUTE
    others = ExemptionCount.objects.exclude(merchant=shop.merchant, key=KEY)
    assert [(one.payments, one.amount, one.authentications) for one in others] == [(1, Decimal(10), 5)] * 2
    assert {one.used_at for one in others} == {before}


def complete(payment: Payment, rules: dict[str, Any], *, sequence: int | None = None) -> bool:
    """The statement that completes a payment whose shopper passed a challenge."""
    payment.channel.exemptions = rules
    payment.status, payment.means, payment.means_fingerprint = "APPROVED", "card", KEY
    payment.answer = SHOWN
    write = WriteStatement()
    expecting = {"status": "STARTED", "sequence": payment.sequence if sequence is None else sequence}
    write.update(payment, {"status": "DECLINED", "result_code": "800.100.155", "completed_at": AT}, expecting=expecting)
    exemption_counts.add_completion_writes(write, payment)
    return write.run()


@pytest.mark.parametrize(("rules", "begins"), [({"trusted": True}, True), ({"lowValue": True}, False), ({}, False)])
def test_a_challenge_begins_the_count_of_a_card_for_rules_that_want_an_authentication(
    shop: Shop, stranger: Shop, rules: dict[str, Any], begins: bool
) -> None:
    payment = started(shop)
    used(shop, ANOTHER, 1, 10, 5)
    used(stranger, KEY, 1, 10, 5)
    with others_stay(payment.pk.hex):
        assert complete(payment, rules)
    found = ExemptionCount.objects.filter(merchant=shop.merchant, key=KEY)
    assert [(one.payments, one.amount, one.authentications) for one in found] == [(0, Decimal(0), 1)] * begins


@pytest.mark.parametrize("rules", [{"trusted": True}, {"lowValue": True}], ids=str)
def test_a_completion_that_comes_too_late_sets_nothing_back(shop: Shop, rules: dict[str, Any]) -> None:
    payment = started(shop)
    used(shop, KEY, 3, 30, 5)
    assert not complete(payment, rules, sequence=payment.sequence + 1)
    assert count_of(shop) == (3, Decimal(30), 5)


@pytest.mark.parametrize(("authentications", "left"), [(0, (2, "27.50", 0)), (1, (3, "40.00", 1))])
def test_what_is_given_back_after_an_authentication_touches_no_newer_count(
    shop: Shop, stranger: Shop, authentications: int, left: tuple[int, str, int]
) -> None:
    payment = started(shop)
    assert record_counted(payment)
    ExemptionCount.objects.update(payments=3, amount=40, authentications=authentications)
    for one, key in ((shop, ANOTHER), (stranger, KEY)):
        used(one, key, 3, 40, authentications)
    payment.channel.exemptions = {"lowValue": True}
    payment.status, payment.means_fingerprint = "DECLINED", KEY
    payment.answer = PrivateFacts(exemption=Exemption.LOW_VALUE).as_json()
    write = WriteStatement()
    ended = {"status": "DECLINED", "result_code": "800.100.155", "completed_at": AT}
    write.update(payment, ended, expecting={"status": "STARTED", "sequence": payment.sequence})
    exemption_counts.add_completion_writes(write, payment)
    assert write.run()
    assert count_of(shop) == (left[0], Decimal(left[1]), left[2])
    assert count_of(shop, ANOTHER) == count_of(stranger) == (3, Decimal(40), authentications)


# --- requests that no limit counts ------------------------------------------------------------------------------------


def record(payment: Payment, **more: Any) -> bool:
    decision = ExemptionDecision(exemption=Exemption.LOW_RISK, euros=Decimal("80.25"), limit=Decimal(100))
    return exemption_counts.record_request(
        payment, decision, MEASURED, **{"answer": {"asked": 2}, "score": 41, "at": AT, **more}
    )


def test_a_request_that_is_not_counted_says_what_was_asked_and_why(shop: Shop) -> None:
    payment = started(shop)
    used(shop, KEY, 2, 20, 3)
    with others_stay(payment.pk.hex):
        assert record(payment)
    assert row_of(payment) == {
        "payment_id": payment.pk, "channel_id": shop.channel.pk, "exemption": "LOW_RISK", "stage": "authentication",
        "stage_why": "measured", "euros": Decimal("80.25"), "amount_limit": Decimal(100), "score": 41, "payments": None,
        "amount": None, "authentications": None, "at": AT,
    }  # fmt: skip
    assert Payment.objects.get(pk=payment.pk).answer == {"asked": 2}


@pytest.mark.parametrize("moved", [{"sequence": 2}, {"status": "IN_DOUBT", "result_code": "000.200.001"}], ids=str)
def test_a_payment_that_moved_on_asks_for_nothing(shop: Shop, moved: dict[str, Any]) -> None:
    payment = started(shop)
    Payment.objects.filter(pk=payment.pk).update(**moved)
    with others_stay():
        assert not record(payment)
        assert not record_counted(payment)
    assert not ExemptionRequest.objects.exists()
    assert not ExemptionCount.objects.exists()


@pytest.mark.parametrize("stage", ExemptionStage)
def test_a_request_is_found_by_its_payment_and_stage(shop: Shop, stage: ExemptionStage) -> None:
    own, other = started(shop), started(shop)
    assert record(own)
    assert record(other)
    found = exemption_counts.find_request(own.pk, stage)
    assert (found.pk if found is not None else None) == (own.pk if stage == "authentication" else None)
    assert exemption_counts.find_request(identifiers.row_id(), stage) is None


def test_the_newest_requests_of_a_stage_are_judged(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exemption_counts, "MAX_JUDGED_REQUESTS", 2)
    results = ("APPROVED", "DECLINED", "DECLINED", "APPROVED")
    for days, status in zip((3, 1, 2, 4), results, strict=True):
        payment = started(shop)
        assert record(payment, at=AT + days * DAY)
        final: dict[str, Any] = {"result_code": "000.100.110", "completed_at": AT}
        final |= {"approved_amount": payment.amount} if status == "APPROVED" else {}
        Payment.objects.filter(pk=payment.pk).update(status=status, **final)
    found = exemption_counts.read_stage_outcomes(shop.channel.pk, Exemption.LOW_RISK)
    judged = found[ExemptionStage.AUTHENTICATION]
    assert (judged.asked, judged.won) == (2, 2)
    assert found[ExemptionStage.AUTHORIZATION].asked == 0
