"""How many statements and commits an answer costs. The numbers are pinned: who adds one has to say so here.

Source: design goals, "cheap": a payment is few round trips, and no transaction is open while an acquirer thinks.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType

import pytest
from django.db import DatabaseError, connection, transaction

from gateway.payments import payment_archive
from tests.support.client import Answer, Api, payment
from tests.support.database import Statements, statements
from tests.support.fixtures import Shop

STATEMENTS = {
    # (statements, of which write and so commit)
    "a payment": (3, 2),
    "a payment refused by our own rules": (2, 1),
    "a validation error": (2, 1),
    "a follow-up": (4, 2),
    "a follow-up refused by its chain": (3, 1),
    "a read": (1, 0),
    "a read of nothing": (1, 0),
    "a payment of a throttled channel": (4, 3),
    "a stranger": (1, 0),
    "no token": (0, 0),
    "a wrong method": (0, 0),
    "a registration": (3, 2),
    "a payment that registers": (3, 2),
    "a one-click payment": (4, 2),
    "a draw on an agreement with limits": (6, 2),
    "a registration that is read": (2, 0),
    "a registration that is updated": (3, 1),
    "a registration that is deleted": (3, 1),
}


MAX_CALLS_OF_A_PAYMENT = 1_600
"""Python functions called by a payment with an idempotency key, through Django's test client."""


@pytest.fixture
def warm(committed: Shop) -> Shop:
    """The token was used within the minute, so that its last use is not written again."""
    assert committed.api.pay().status == 200
    return committed


def cost(call: Callable[[], Answer], status: int) -> tuple[tuple[int, int], Statements]:
    with statements() as seen:
        answer = call()
    assert answer.status == status, answer
    assert not connection.in_atomic_block
    return (len(seen), seen.commits), seen


def test_an_answer_costs_what_it_is_known_to_cost(warm: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goals: cheap. Once a minute a process also looks whether anything was archived."""
    monkeypatch.setattr(payment_archive._EARLIER, "holds_payments", lambda: False)
    api: Api = warm.api
    paid = api.pay().id
    limited = warm.api_of(warm.open_channel(limits={"*": {"limit": 100, "window_s": 1_000_000}}))
    card = {"card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034"}
    first = {"standingInstruction.mode": "INITIAL", "standingInstruction.numberOfInstallments": "99"}
    stored = api.pay(createRegistration="true", **first).body["registrationId"]
    path, click = f"/v1/registrations/{stored}", {"amount": "1.00", "currency": "EUR", "paymentType": "DB"}
    again = {"standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT"}
    calls: dict[str, tuple[int, Callable[[], Answer]]] = {
        "a payment": (200, lambda: api.pay()),
        "a payment refused by our own rules": (400, lambda: api.pay(card__number="4444444444444444")),
        "a validation error": (400, lambda: api.pay(amount="92.1")),
        "a follow-up": (200, lambda: api.follow(paid, "RF", "1.00")),
        "a follow-up refused by its chain": (400, lambda: api.follow(paid, "RF", "1000.00")),
        "a read": (200, lambda: api.read(paid)),
        "a read of nothing": (404, lambda: api.read("0" * 32)),
        "a payment of a throttled channel": (200, lambda: limited.pay()),
        "a stranger": (403, lambda: api.with_token("x").pay()),
        "no token": (401, lambda: api.with_token(None).pay()),
        "a wrong method": (405, lambda: api.call("PUT", "/v1/payments")),
        "a registration": (200, lambda: api.post("/v1/registrations", card)),
        "a payment that registers": (200, lambda: api.pay(createRegistration="true")),
        "a one-click payment": (200, lambda: api.post(f"{path}/payments", click)),
        "a draw on an agreement with limits": (200, lambda: api.post(f"{path}/payments", click | again)),
        "a registration that is read": (200, lambda: api.get(path)),
        "a registration that is updated": (200, lambda: api.post(path, {"card.expiryYear": "2035"})),
        "a registration that is deleted": (200, lambda: api.delete(path)),
    }
    assert set(calls) == set(STATEMENTS)
    found = {name: cost(call, status) for name, (status, call) in calls.items()}
    assert {name: numbers for name, (numbers, _) in found.items()} == STATEMENTS


def test_a_read_is_one_statement_that_joins_who_asks_and_what_for(warm: Shop) -> None:
    """Goals: cheap."""
    paid = warm.api.pay().id
    _, seen = cost(lambda: warm.api.read(paid), 200)
    assert "gateway_accesstoken" in seen[0]
    assert "gateway_payment" in seen[0]


def test_a_payment_calls_no_more_functions_than_it_is_known_to(warm: Shop) -> None:
    """What is switched off costs nothing. Counted, since time is no measure on a busy machine; who adds some fifty
    calls says so here. The least of three payments: now and then one looks whether the keys have changed; settings that
    tests override cost a few more."""
    for number in range(8):
        assert warm.api.post("/v1/payments", payment(), Idempotency_Key=f"warm-{number}").status == 200
    least = min((count_calls(warm, f"counted-{number}") for number in range(3)), key=Counter.total)
    assert least.total() <= MAX_CALLS_OF_A_PAYMENT, least.most_common(40)


def count_calls(shop: Shop, key: str) -> Counter[str]:
    """The Python functions that a payment calls, by name; those of tests are left out."""
    called: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _arg: object) -> None:
        if event == "call" and "/tests/" not in frame.f_code.co_filename:
            called[frame.f_code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        answer = shop.api.post("/v1/payments", payment(), Idempotency_Key=key)
    finally:
        sys.setprofile(before)
    assert answer.status == 200
    return called


def test_a_payment_is_committed_before_anybody_is_asked(warm: Shop) -> None:
    """House, 3: short transaction, acquirer call with no transaction open, short transaction."""
    _, seen = cost(lambda: warm.api.pay(), 200)
    assert "SELECT" in seen[0].split()[0]
    assert 'INSERT INTO "gateway_payment"' in seen[1]
    assert 'UPDATE "gateway_payment"' in seen[2]
    for sql in seen:
        assert not sql.upper().startswith(("BEGIN", "SAVEPOINT"))


def test_the_statements_of_a_payment_are_planned_once_and_not_at_every_payment(warm: Shop) -> None:
    """Decision 0044: PostgreSQL plans a prepared statement five times, and on and on where it hopes for better."""
    for number in range(12):
        keyed = warm.api.post("/v1/payments", payment(), Idempotency_Key=f"planned-{number}")
        assert keyed.status == 200
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT statement, custom_plans FROM pg_prepared_statements WHERE generic_plans + custom_plans > 10"
        )
        often = dict(cursor.fetchall())
    assert len(often) == 3
    assert {text: plans for text, plans in often.items() if plans > 5} == {}


def test_a_payment_looks_up_no_row_that_all_payments_share(db: None) -> None:
    """Decision 0044: a foreign key is looked up at the commit, and locks the row it points at."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
            " AND conrelid IN ('gateway_payment'::regclass, 'gateway_paymentevent'::regclass,"
            " 'gateway_notification'::regclass, 'gateway_acquirerexchange'::regclass)"
        )
        assert cursor.fetchall() == []


@pytest.mark.parametrize("table", ["gateway_merchant", "gateway_channel"])
def test_what_payments_point_at_is_never_deleted(shop: Shop, table: str) -> None:
    """Decision 0044: that is why nobody has to look."""
    with pytest.raises(DatabaseError, match="never deleted"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table}")
