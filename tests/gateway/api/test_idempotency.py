"""Idempotency keys and the switch against duplicates (D20)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import F

from gateway.api.token_admission import ADMIT_WITH_KEY_SQL
from gateway.core import clock
from gateway.models import IdempotencyKey, Payment, Status
from gateway.payments import responses
from gateway.timers import registry
from tests.support.client import Answer, Api, payment
from tests.support.fixtures import Shop
from tests.support.threads import at_once, times

pytestmark = pytest.mark.django_db
KEY = "order-4711-try-1"
ADMISSION_VALUES = ("digest", "entity", "key", "method", "now", "path", "seldom")


def pay(api: Api, key: str = KEY, **changes: str | None) -> Answer:
    return api.post("/v1/payments", payment(**changes), Idempotency_Key=key)


def test_the_same_key_with_the_same_body_is_answered_with_the_stored_answer(api: Api) -> None:
    first, second = pay(api), pay(api)
    assert first.status == second.status == 200
    assert second.text == first.text
    assert second.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers
    assert Payment.objects.count() == 1


def test_a_decline_is_stored_like_a_success(api: Api) -> None:
    first, second = (pay(api, card__number="4000015500000005") for _ in range(2))
    assert first.status == second.status == 400
    assert second.text == first.text
    assert Payment.objects.count() == 1


def test_a_value_that_is_refused_is_stored_too(api: Api) -> None:
    first, second = (pay(api, card__number="4444444444444444") for _ in range(2))
    assert first.code == "100.100.101"
    assert second.text == first.text
    assert Payment.objects.count() == 1


def test_the_same_key_with_another_body_is_refused(api: Api) -> None:
    pay(api)
    other = pay(api, amount="93.00")
    assert (other.status, list(other.errors)) == (400, ["Idempotency-Key"])
    assert Payment.objects.count() == 1


@pytest.mark.parametrize(
    "between", ["&merchantTransactionId=", "merchantTransactionId", "21:merchantTransactionId10:", ""]
)
def test_no_two_bodies_are_one_wherever_a_value_ends(api: Api, between: str) -> None:
    """Neither by a separator within a value, nor by letters that move from one value into the next: of two parameters
    whose names are neighbours."""
    body = {"merchantMemo": "Memo abc", "merchantTransactionId": "Order-4711"}
    assert pay(api, **body).status == 200
    for memo, order in ((f"Memo abc{between}Order-4711", None), ("Memo abcO", f"{between}rder-4711")):
        other = pay(api, merchantMemo=memo, merchantTransactionId=order)
        assert (other.status, list(other.errors)) == (400, ["Idempotency-Key"]), memo
    assert pay(api, **body).headers["Idempotent-Replayed"] == "true"


def test_the_order_of_parameters_and_the_cvv_make_no_other_body(api: Api) -> None:
    first = pay(api)
    backwards = dict(reversed(payment(card__cvv="999").items()))
    second = api.post("/v1/payments", backwards, Idempotency_Key=KEY)
    assert second.text == first.text


REPLAYED: tuple[dict[str, str | None], ...] = (
    {
        "paymentType": "PA",
        "customParameters[zebra]": "z",
        "customParameters[a_b]": "1",
        "customer.givenName": "Zoë",
        "customer.surname": "Lee",
    },
    {"cart.items[7].name": "Lamp", "cart.items[2].name": "Chair", "cart.items[2].currency": "EUR"},
    {"somethingNew": "1", "another": "2"},
    {"card.number": "4444444444444444"},
    {"testMode": "INTERNAL", "descriptor": "Order 4711", "billing.country": "DE", "billing.city": "Zürich"},
)


@pytest.mark.parametrize("changes", REPLAYED, ids=lambda changes: next(iter(changes)))
def test_a_replay_is_the_first_answer_byte_for_byte(api: Api, changes: dict[str, str | None]) -> None:
    """Whatever was echoed, ignored or refused, in whatever order it was sent."""
    sent = {**payment(), **changes}
    first, second = (api.post("/v1/payments", sent, Idempotency_Key=KEY) for _ in range(2))
    assert second.headers.get("Idempotent-Replayed") == "true"
    assert (second.status, second.text) == (first.status, first.text)


def test_a_final_answer_is_kept_by_what_its_payment_does_not_know(api: Api) -> None:
    """Goals P4: the payment's row knows the rest."""
    first = pay(api)
    answer = IdempotencyKey.objects.get().answer or ""
    assert len(answer) < 120 < len(first.text)
    assert first.id not in answer


def test_an_answer_that_is_not_final_is_kept_whole(api: Api) -> None:
    """Its payment moves on; the answer to the first request does not."""
    first = pay(api)
    Payment.objects.update(status=Status.STARTED, result_code="")
    waiting = Payment.objects.get(pk=first.id)
    waiting.status, waiting.result_code = Status.PENDING, "000.200.000"
    shared = {"buildNumber": "b", "timestamp": "t", "ndc": "n"}
    assert responses.compact_response(waiting, shared, {}, '{"id":"x"}') == '{"id":"x"}'
    IdempotencyKey.objects.update(answer='{"id":"x"}', status=200)
    assert pay(api).text == '{"id":"x"}'


def test_a_validation_error_does_not_use_the_key_up(api: Api) -> None:
    assert pay(api, amount="92.1").status == 400
    assert pay(api).status == 200


def test_a_key_belongs_to_its_token_method_and_path(shop: Shop, stranger: Shop) -> None:
    first = pay(shop.api, paymentType="PA")
    assert pay(stranger.api, paymentType="PA").id != first.id
    captured = shop.api.post(
        f"/v1/payments/{first.id}", {"paymentType": "CP", "amount": "1.00", "currency": "EUR"}, Idempotency_Key=KEY
    )
    assert captured.status == 200
    assert captured.body["referencedId"] == first.id


def test_a_follow_up_with_a_key_is_made_once(api: Api) -> None:
    paid = api.pay()
    refunds = [
        api.post(f"/v1/payments/{paid.id}", {"paymentType": "RF", "amount": "10.00"}, Idempotency_Key=KEY)
        for _ in range(3)
    ]
    assert {refund.text for refund in refunds} == {refunds[0].text}
    assert Payment.objects.filter(payment_type="RF").count() == 1


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256, "a\tb"])
def test_a_key_of_the_wrong_form_is_named(api: Api, key: str) -> None:
    answer = pay(api, key)
    assert (answer.status, list(answer.errors)) == (400, ["Idempotency-Key"])
    assert Payment.objects.count() == 0


def test_a_key_is_forgotten_after_24_hours(api: Api) -> None:
    first = pay(api)
    row = IdempotencyKey.objects.get()
    IdempotencyKey.objects.update(created_at=row.created_at - timedelta(hours=24, seconds=1))
    assert pay(api).id != first.id


def test_the_sweep_throws_away_keys_after_24_hours_and_no_others(api: Api) -> None:
    """D20: keys are kept for 24 hours, not for ever."""
    pay(api)
    IdempotencyKey.objects.update(created_at=F("created_at") - timedelta(hours=24, seconds=1))
    kept_one = pay(api, "another-key")
    assert registry.run_timer_now("idempotency keys") == 1
    assert [key.payment.hex for key in IdempotencyKey.objects.all()] == [kept_one.id]
    assert registry.run_timer_now("idempotency keys") == 0


def test_a_key_whose_payment_is_still_being_made_answers_409(api: Api) -> None:
    paid = pay(api)
    IdempotencyKey.objects.update(answer=None, status=None)
    Payment.objects.filter(pk=paid.id).update(status=Status.STARTED)
    running = pay(api)
    assert (running.status, running.code) == (409, "800.120.402")


def test_a_key_whose_worker_died_tells_the_payment_as_it_stands(api: Api) -> None:
    """The answer could not be stored, recovery has settled the payment since."""
    paid = pay(api)
    IdempotencyKey.objects.update(answer=None, status=None)
    again = pay(api)
    assert (again.status, again.id, again.code) == (200, paid.id, paid.code)
    assert Payment.objects.count() == 1


def test_no_key_and_no_body_is_stored_in_clear(api: Api) -> None:
    pay(api)
    row = IdempotencyKey.objects.get()
    assert len(bytes(row.fingerprint)) == 16
    assert "4200000000000000" not in (row.answer or "")


@pytest.mark.django_db(transaction=True)
def test_the_same_key_at_the_same_moment_makes_one_payment(committed: Shop) -> None:
    answers = at_once(*times(8, lambda: pay(Api(token=committed.api.token, entity=committed.api.entity))))
    assert Payment.objects.count() == 1
    assert {answer.status for answer in answers} <= {200, 409}
    assert len({answer.id for answer in answers if answer.status == 200}) == 1


@pytest.mark.django_db(transaction=True)
def test_a_channel_may_refuse_a_second_payment_with_the_same_merchant_transaction_id(committed: Shop) -> None:
    shop = committed
    api = shop.api_of(shop.open_channel("careful", refuse_duplicates=True))
    named: dict[str, Any] = {"merchantTransactionId": "order-4711"}
    assert api.pay(**named).status == 200
    second = api.pay(**named)
    assert (second.status, second.code) == (400, "800.110.100")
    assert api.read(second.id).code == "800.110.100"
    assert api.pay(merchantTransactionId="order-4712").status == 200
    assert shop.api.pay(**named).status == shop.api.pay(**named).status == 200, "other channels do not mind"


@pytest.mark.django_db(transaction=True)
def test_two_payments_with_the_same_merchant_transaction_id_at_once_make_one(committed: Shop) -> None:
    channel = committed.open_channel("careful", refuse_duplicates=True)

    def send() -> str:
        api = Api(token=committed.api.token, entity=channel.entity_id)
        return api.pay(merchantTransactionId="order-4711").code

    codes = at_once(*times(6, send))
    assert sorted(codes) == ["000.100.110"] + ["800.110.100"] * 5


def is_key_looked_up_whole() -> bool:
    """Whether the admission's plan, without its values, goes to the key by its whole primary key."""
    sql = re.sub(r"%\((\w+)\)s", lambda found: f"${sorted(ADMISSION_VALUES).index(found[1]) + 1}", ADMIT_WITH_KEY_SQL)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (GENERIC_PLAN) {sql}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    return bool(re.search(r"idempotencykey_pkey on .*\n +Index Cond: \(\(token = t\.id\) AND .*\(key\)::text = ", plan))


def test_a_key_is_found_by_all_of_its_columns_whatever_the_planner_knows_of_the_table(shop: Shop) -> None:
    """A plan is kept: one made for an empty table read all of it, one for few tokens walked through all tokens."""
    with connection.cursor() as cursor:
        # Nothing is known of it. One that autovacuum has found empty is read whole, until it looks again.
        cursor.execute("TRUNCATE gateway_idempotencykey")
    assert is_key_looked_up_whole()
    place = {"token": shop.token.pk, "method": "POST", "path": "/v1/payments", "fingerprint": b"f"}
    at = clock.real_now()
    IdempotencyKey.objects.bulk_create(
        IdempotencyKey(**place, key=f"key-{number}", payment=uuid4(), created_at=at) for number in range(2_000)
    )
    assert is_key_looked_up_whole()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE gateway_idempotencykey")
    assert is_key_looked_up_whole()
