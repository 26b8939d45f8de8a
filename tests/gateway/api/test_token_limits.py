"""Limits of an access token's own: payment types, amount of one payment, amount of 24 hours.

Source: docs/decisions/0053.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gateway.access import tokens
from gateway.access.tokens import TokenLimits
from gateway.core import clock
from gateway.models import AccessToken, AuditEntry, Payment, TokenLimitUsage
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.store import IdempotencyKeyTakenError
from gateway.payments.token_limits import TOKEN_LIMIT_WINDOW, delete_old_token_moves, reserve_amount
from gateway.scheduling.models import Job
from tests.support.client import Answer, Api
from tests.support.fixtures import BY, Shop
from tests.support.subscriptions import started, store_card
from tests.support.threads import at_once

CARD = {"card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034", "card.cvv": "123"}


def limited(shop: Shop, amount: str | None = None, day: str | None = None, operations: Any = ()) -> Api:
    one, all_ = (Decimal(each) if each else None for each in (amount, day))
    limits = TokenLimits(amount=one, day_amount=all_, operations=operations)
    return shop.api.with_token(shop.issue(limits=limits)[1])


def refused(answer: Answer, words: str) -> bool:
    assert (answer.status, answer.code) == (403, "800.900.300"), answer
    assert words in answer.description, answer.description
    return True


def test_a_token_makes_the_payment_types_it_may_and_no_others(shop: Shop) -> None:
    api = limited(shop, operations=["DB", "RF"])
    paid = api.pay()
    assert paid.status == 200
    assert api.follow(paid.id, "RF", "10.00").status == 200
    before = Payment.objects.count()
    refused(api.pay(paymentType="CD"), "makes DB, RF only, not CD")
    refused(api.follow(paid.id, "RV"), "not RV")
    refused(api.post("/v1/checkouts", {"amount": "5.00", "currency": "EUR", "paymentType": "PA"}), "not PA")
    override = {"amount": "5.00", "currency": "EUR", "paymentType": "DB", "overridePaymentType[VISA]": "PA"}
    refused(api.post("/v1/checkouts", override), "not PA")
    assert Payment.objects.count() == before
    assert api.read(paid.id).status == 200
    registered = api.post("/v1/registrations", {"paymentBrand": "VISA", **CARD})
    assert registered.status == 200, registered
    refused(
        api.post(
            f"/v1/registrations/{registered.id}/payments", {"paymentType": "PA", "amount": "1.00", "currency": "EUR"}
        ),
        "not PA",
    )


@pytest.mark.parametrize("amount, good", [("50.00", True), ("50.01", False)])
def test_a_token_moves_no_more_than_its_amount_with_one_payment(shop: Shop, amount: str, good: bool) -> None:
    api, target = limited(shop, amount="50.00"), shop.api.pay().id
    checkout = {"amount": amount, "currency": "EUR", "paymentType": "DB"}
    for answer in (api.pay(amount=amount), api.follow(target, "RF", amount), api.post("/v1/checkouts", checkout)):
        assert answer.status == 200 if good else refused(answer, "at most 50.00 with one payment"), answer


def test_the_update_of_a_checkout_is_no_way_around(shop: Shop) -> None:
    api = limited(shop, amount="50.00")
    made = api.post("/v1/checkouts", {"amount": "5.00", "currency": "EUR", "paymentType": "DB"})
    refused(api.post(f"/v1/checkouts/{made.id}", {"amount": "50.01"}), "at most 50.00")
    dear = shop.api.post("/v1/checkouts", {"amount": "60.00", "currency": "EUR", "paymentType": "DB"})
    refused(api.post(f"/v1/checkouts/{dear.id}/payment", {"paymentBrand": "VISA", **CARD}), "at most 50.00")


def test_a_reversal_without_an_amount_counts_as_the_whole_payment(shop: Shop) -> None:
    target = shop.api.pay().id
    refused(limited(shop, amount="50.00").follow(target, "RV"), "at most 50.00")
    refused(limited(shop, day="50.00").follow(target, "RV"), "at most 50.00 EUR in 24 hours")
    assert limited(shop, amount="92.00").follow(target, "RV").status == 200


@pytest.mark.parametrize("of", ["authorization", "increment"])
def test_a_reversal_without_an_amount_counts_with_all_increments_of_the_authorization(shop: Shop, of: str) -> None:
    """It takes back the whole authorization, whichever of them the path names."""
    first = shop.api.pay(paymentType="PA", amount="30.00").id
    more = {"standingInstruction__industryPractice": "INCREMENTAL_AUTH"}
    raised = shop.api.follow(first, "PA", "40.00", **more)
    assert raised.status == 200, raised
    target = first if of == "authorization" else raised.id
    refused(limited(shop, amount="69.99").follow(target, "RV"), "at most 69.99")
    refused(limited(shop, day="69.99").follow(target, "RV"), "at most 69.99 EUR in 24 hours")
    assert limited(shop, day="70.00").follow(target, "RV").body["amount"] == "70.00"


def test_a_token_moves_no_more_than_its_amount_of_24_hours(shop: Shop) -> None:
    api = limited(shop, day="100.00")
    target = shop.api.pay(amount="500.00").id
    assert api.pay(amount="60.00").status == 200
    assert api.follow(target, "RF", "40.00").status == 200
    refused(api.follow(target, "RF", "0.01"), "at most 100.00 EUR in 24 hours, and moved 100.00 of it")
    assert api.pay(amount="100.00", currency="USD").status == 200, "each currency has a sum of its own"
    TokenLimitUsage.objects.update(at=clock.real_now() - TOKEN_LIMIT_WINDOW - timedelta(seconds=1))
    assert api.follow(target, "RF", "100.00").status == 200
    assert delete_old_token_moves() == 3
    assert TokenLimitUsage.objects.count() == 1


def test_each_token_has_a_sum_of_its_own(shop: Shop) -> None:
    one, other = limited(shop, day="100.00"), limited(shop, day="100.00")
    assert one.pay(amount="100.00").status == 200
    assert other.pay(amount="100.00").status == 200
    for api in (one, other):
        refused(api.pay(amount="0.01"), "and moved 100.00 of it")


@pytest.mark.parametrize(("ago", "counts"), [(timedelta(minutes=1), False), (-timedelta(minutes=1), True)])
def test_a_move_counts_for_24_hours_and_is_kept_as_long(shop: Shop, ago: timedelta, counts: bool) -> None:
    api = limited(shop, day="100.00")
    assert api.pay(amount="100.00").status == 200
    TokenLimitUsage.objects.update(at=clock.real_now() - TOKEN_LIMIT_WINDOW - ago)
    assert api.pay(amount="100.00").status == (403 if counts else 200)
    assert delete_old_token_moves() == (0 if counts else 1)


@pytest.mark.parametrize(
    ("fault", "kept"),
    [(IdempotencyKeyTakenError(), 0), (RequestRefusedError("600.200.500"), 0), (RuntimeError("killed"), 1)],
    ids=["another request was first", "refused", "unknown"],
)
def test_what_may_have_begun_stays_reserved_and_nothing_else(shop: Shop, fault: Exception, kept: int) -> None:
    limits = TokenLimits(day_amount=Decimal(100))
    with pytest.raises(type(fault)), reserve_amount(shop.token.pk, limits, Decimal(10), "EUR"):
        raise fault
    assert TokenLimitUsage.objects.count() == kept


def test_the_chain_of_a_follow_up_is_read_once(shop: Shop) -> None:
    """Its limits and its ceiling are judged by the same reading."""
    api = limited(shop, day="1000.00")
    paid = shop.api.pay(amount="50.00").id
    with CaptureQueriesContext(connection) as seen:
        assert api.follow(paid, "RF", "10.00").status == 200
    chains = [row["sql"] for row in seen.captured_queries if 'WHERE "gateway_payment"."chain" = (' in row["sql"]]
    assert len(chains) == 1, [row["sql"] for row in seen.captured_queries]


def test_what_was_declined_or_refused_does_not_count(shop: Shop) -> None:
    api = limited(shop, day="100.00")
    target = shop.api.pay(amount="50.00").id
    assert api.follow(target, "RF", "60.00").code == "700.400.200"
    assert api.pay(amount="90.00", **{"card.number": "4444444444444444"}).status == 400
    assert api.follow("0" * 32, "RF", "60.00").status == 404
    assert api.pay(amount="10.00").status == 200


def test_a_token_with_limits_prepares_nothing_that_goes_on_without_it(shop: Shop) -> None:
    api = limited(shop, day="100.00")
    job = {"createRegistration": "true", "job.dayOfMonth": "1"}
    refused(api.pay(amount="1.00", **job), "subscriptions")
    refused(api.post("/v1/schedules", {"amount": "1.00", "currency": "EUR"}), "subscriptions")
    refused(api.post("/v1/checkouts", {"amount": "5.00", "currency": "EUR", "paymentType": "CD"}), "payout")


@pytest.mark.parametrize("sent", [{}, {"amount": "5.00", "currency": "EUR"}, {"job.name": "ours"}], ids=str)
def test_a_token_with_limits_changes_no_subscription_and_may_end_one(shop: Shop, sent: dict[str, str]) -> None:
    """Also without a parameter of the job: that takes up what was suspended, and takes a notice back."""
    job = started(shop.api, store_card(shop.api)).id
    before = Job.objects.filter(pk=job).values().get()
    api, path = limited(shop, day="100.00"), f"/v1/schedules/{job}"
    refused(api.post(f"{path}/reschedule", sent), "neither starts nor changes subscriptions")
    assert Job.objects.filter(pk=job).values().get() == before
    assert api.get(path).status == api.post(f"{path}/deschedule").status == 200
    assert Job.objects.get(pk=job).state == Job.State.ENDED


def test_an_idempotent_repeat_counts_once(shop: Shop) -> None:
    api = limited(shop, day="100.00")
    body = {"paymentType": "DB", "paymentBrand": "VISA", "amount": "90.00", "currency": "EUR", **CARD}
    first, again = (api.post("/v1/payments", body, **{"Idempotency-Key": "one"}) for _ in range(2))
    assert (first.status, again.id) == (200, first.id)
    assert TokenLimitUsage.objects.count() == 1


def test_of_many_at_once_no_more_than_the_limit_is_moved(committed: Shop) -> None:
    api = limited(committed, day="100.00")
    answers = at_once(*[lambda: Api(token=api.token, entity=api.entity).pay(amount="40.00").status for _ in range(5)])
    assert sorted(answers) == [200, 200, 403, 403, 403]


def test_a_token_that_waits_for_a_second_person_is_refused(shop: Shop) -> None:
    token, secret = tokens.issue_token(shop.merchant, name="waits", by=BY, approved=False)
    api = shop.api.with_token(secret.reveal())
    assert (api.pay().status, api.pay().code) == (403, "800.900.300")
    assert tokens.approve_token(token, by=BY)
    assert not tokens.approve_token(token, by=BY)
    assert AccessToken.objects.get(pk=token.pk).approved_by == BY.name, "the page says who let it move money"
    assert api.pay().status == 200


def test_the_predecessor_of_a_successor_that_waits_goes_on(shop: Shop) -> None:
    successor, _ = tokens.rotate_token(shop.token, by=BY, approved=False)
    shop.token.refresh_from_db()
    assert shop.token.ends_at is None
    tokens.approve_token(successor, by=BY)
    assert AccessToken.objects.get(pk=shop.token.pk).ends_at is not None
    (limits,) = {(each.max_amount, each.max_day_amount, tuple(each.operations)) for each in (shop.token, successor)}
    assert limits == (None, None, ())


def test_a_token_that_was_revoked_while_it_waited_is_not_approved(shop: Shop) -> None:
    token, secret = tokens.issue_token(shop.merchant, name="waits", by=BY, approved=False)
    tokens.revoke_token(token, by=BY)
    assert not tokens.approve_token(token, by=BY)
    assert AccessToken.objects.get(pk=token.pk).approved_at is None
    assert shop.api.with_token(secret.reveal()).pay().status == 403


def test_a_predecessor_that_was_revoked_meanwhile_keeps_its_end(shop: Shop) -> None:
    """Its successor is approved: nothing is left to be ended, and the audit log tells of no rotation."""
    successor, _ = tokens.rotate_token(shop.token, by=BY, approved=False)
    tokens.revoke_token(shop.token, by=BY)
    assert tokens.approve_token(AccessToken.objects.get(pk=successor.pk), by=BY)
    assert AccessToken.objects.get(pk=shop.token.pk).ends_at is None
    assert not AuditEntry.objects.filter(subject_id=str(shop.token.pk), action="rotate").exists()


def test_an_unknown_operation_is_refused(shop: Shop) -> None:
    with pytest.raises(ValueError, match="unknown operation XX"):
        shop.issue(limits=TokenLimits(operations=["XX"]))
