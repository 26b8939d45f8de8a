"""Several rows in one statement: all of them or none, with the types that the columns have.

Source: house, 3: short transactions; gateway.db.statement.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from gateway.core import clock, identifiers
from gateway.db.statement import WriteStatement, build_new_row, execute_sql
from gateway.models import Channel, Payment, PaymentEvent, RequestLog, Status
from tests.support.database import statements
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db


def log_row(**values: Any) -> dict[str, Any]:
    return {
        "id": identifiers.row_id(),
        "at": clock.real_now(),
        "method": "POST",
        "path": "/v1/payments",
        "status": 200,
        "result_code": "000.100.110",
        "duration_ms": 1,
        **values,
    }


def payment_row(shop: Shop, **values: Any) -> dict[str, Any]:
    ident = identifiers.row_id()
    return {
        "id": ident,
        "merchant_id": shop.merchant.id,
        "channel_id": shop.channel.id,
        "chain": ident,
        "payment_type": "DB",
        "brand": "VISA",
        "method": "CC",
        "status": "STARTED",
        "amount": Decimal("92.00"),
        "currency": "EUR",
        "request": {},
        "answer": {},
        "request_id": identifiers.row_id(),
        "created_at": clock.real_now(),
        "result_code": "",
        "test_mode": "",
        "merchant_transaction_id": "",
        "merchant_invoice_id": "",
        "merchant_memo": "",
        "means": "",
        "connector": "",
        "connector_tx_id": "",
        "acquirer_merchant_id": "",
        "resource_path": "",
        "final": False,
        "sequence": 1,
        "follow_ups": 0,
        "practice": "",
        **values,
    }


def begun(shop: Shop, **values: Any) -> Payment:
    row = payment_row(shop, **values)
    known = {field.attname for field in Payment._meta.concrete_fields}
    return Payment.objects.create(**{name: value for name, value in row.items() if name in known})


def event(payment: Payment, sequence: int = 1) -> dict[str, Any]:
    return {
        "payment_id": payment.id,
        "sequence": sequence,
        "event": "begin",
        "status": "STARTED",
        "result_code": "",
        "at": clock.real_now(),
    }


def test_several_inserts_are_one_statement() -> None:
    """House, 3."""
    write = WriteStatement()
    for _ in range(3):
        write.insert(RequestLog, **log_row())
    with statements() as seen:
        assert write.run() is True
    assert len(seen) == 1
    assert RequestLog.objects.count() == 3


def test_nothing_to_write_asks_nobody() -> None:
    """House, 3."""
    with statements() as seen:
        assert WriteStatement().run() is True
    assert seen == []


def test_a_change_that_finds_its_row_as_expected_is_made_with_what_hangs_on_it(shop: Shop) -> None:
    """House: compare-and-set."""
    payment = begun(shop)
    write = WriteStatement()
    write.update(payment, {"status": "DECLINED", "result_code": "800.100.155"}, expecting={"status": "STARTED"})
    write.insert(PaymentEvent, **event(payment))
    assert write.run() is True
    assert Payment.objects.get().status == Status.DECLINED
    assert PaymentEvent.objects.count() == 1


def test_a_change_that_finds_another_state_writes_nothing_at_all(shop: Shop) -> None:
    """House: compare-and-set."""
    payment = begun(shop)
    write = WriteStatement()
    write.update(payment, {"status": "DECLINED", "result_code": "800.100.155"}, expecting={"status": "PENDING"})
    write.insert(PaymentEvent, **event(payment))
    write.insert(RequestLog, **log_row())
    assert write.run() is False
    assert Payment.objects.get().status == Status.STARTED
    assert (PaymentEvent.objects.count(), RequestLog.objects.count()) == (0, 0)


def test_an_insert_that_fails_takes_the_others_with_it(shop: Shop) -> None:
    """House, 3: one statement is one transaction."""
    payment = begun(shop)
    write = WriteStatement()
    write.update(payment, {"status": "DECLINED", "result_code": "800.100.155"}, expecting={"status": "STARTED"})
    write.insert(PaymentEvent, **event(payment))
    write.insert(PaymentEvent, **event(payment))
    with pytest.raises(DatabaseError), transaction.atomic():
        write.run()
    assert Payment.objects.get().status == Status.STARTED
    assert PaymentEvent.objects.count() == 0


def test_the_update_comes_first() -> None:
    """gateway.db.statement: the inserts hang on it."""
    write = WriteStatement()
    write.insert(RequestLog, **log_row())
    with pytest.raises(ValueError, match="first"):
        write.update(RequestLog(id=identifiers.row_id()), {"status": 400})


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        [],
        {"a": None},
        [["amount", "92.1"]],
        {"text": "Zoë \"quoted\" 'single' %s \\ 李"},
        {"n": 1.5},
        "text",
        0,
    ],
)
def test_json_comes_back_as_it_was_written(value: Any) -> None:
    """gateway.db.statement: JSON is JSON, not text."""
    write = WriteStatement()
    row = log_row(parameters=value)
    write.insert(RequestLog, **row)
    write.run()
    assert RequestLog.objects.get(pk=row["id"]).parameters == value


def test_every_type_of_column_comes_back_as_it_was_written(shop: Shop) -> None:
    """gateway.db.statement: placeholders are typed by the columns."""
    values = payment_row(
        shop,
        amount=Decimal("9999999999.99"),
        request={"customer": {"givenName": "Zoë"}},
        means_sealed=b"\0\xff\x01",
        merchant_memo="it's % \\ fine",
        max_captures=98,
        final=True,
        test_mode="INTERNAL",
        referenced=None,
        completed_at=clock.real_now() + timedelta(days=1),
    )
    known = {field.attname for field in Payment._meta.concrete_fields}
    values = {name: value for name, value in values.items() if name in known}
    write = WriteStatement()
    write.insert(Payment, **values)
    write.run()
    kept = Payment.objects.get(pk=values["id"])
    for name, value in values.items():
        found = getattr(kept, name)
        assert (bytes(found) if isinstance(found, memoryview) else found) == value, name


def test_text_that_is_too_long_is_an_error_and_not_cut() -> None:
    """gateway.db.statement: casts carry no length, PostgreSQL would cut in silence."""
    write = WriteStatement()
    write.insert(RequestLog, **log_row(result_code="x" * 12))
    with pytest.raises(DatabaseError), transaction.atomic():
        write.run()


def test_a_name_that_is_no_column_is_an_error_before_anything_is_sent(shop: Shop) -> None:
    """gateway.db.statement."""
    with pytest.raises(KeyError), statements() as seen:
        WriteStatement().insert(Channel, nonsense=1)
    assert seen == []


def test_text_never_becomes_part_of_the_statement() -> None:
    """gateway.db.statement: values are bound by the server."""
    text = "'); DROP TABLE gateway_payment; --"
    assert execute_sql("SELECT %s::text", [text]) == [(text,)]
    assert execute_sql("SELECT %(a)s::text", {"a": text}) == [(text,)]


def test_a_statement_that_fails_is_djangos_own_error() -> None:
    """gateway.db.statement: callers catch django.db's errors."""
    with pytest.raises(DatabaseError), transaction.atomic():
        execute_sql("SELECT nonsense", [])


def test_a_write_inside_a_transaction_is_rolled_back_with_it() -> None:
    """gateway.db.statement: it uses Django's connection."""
    write = WriteStatement()
    write.insert(RequestLog, **log_row())
    with transaction.atomic():
        write.run()
        assert RequestLog.objects.count() == 1
        transaction.set_rollback(True)
    assert RequestLog.objects.count() == 0
    assert connection.is_usable()


@pytest.mark.parametrize("right", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.django_db(transaction=True)
def test_of_two_guards_both_hold_or_nothing_is_written(committed: Shop, right: tuple[bool, bool]) -> None:
    """A checkout's payment that draws on an agreement."""
    rows = begun(committed), begun(committed)
    write = WriteStatement()
    for row, holds in zip(rows, right, strict=True):
        write.update(row, {"follow_ups": 1}, expecting={"follow_ups": 0 if holds else 7})
    write.insert(PaymentEvent, **event(rows[0]))
    assert write.run() is all(right)
    for row in rows:
        row.refresh_from_db()
    assert [row.follow_ups for row in rows] == ([1, 1] if all(right) else [0, 0])
    assert PaymentEvent.objects.count() == int(all(right))


def test_a_second_guard_that_does_not_hold_is_no_error_of_the_database(shop: Shop) -> None:
    """Decision 0058: a conflict is a statement that found no row, so an open transaction goes on after it."""
    first, second = begun(shop), begun(shop)
    write = WriteStatement()
    write.update(first, {"follow_ups": 1}, expecting={"follow_ups": 0})
    write.update(second, {"follow_ups": 1}, expecting={"follow_ups": 7})
    with transaction.atomic():
        assert write.run() is False
        assert set(Payment.objects.values_list("follow_ups", flat=True)) == {0}


def test_a_third_guard_or_one_after_an_insert_is_a_mistake(shop: Shop) -> None:
    row, write = begun(shop), WriteStatement()
    for _ in range(2):
        write.update(row, {"follow_ups": 1})
    with pytest.raises(ValueError, match="updates come first"):
        write.update(row, {"follow_ups": 1})
    late = WriteStatement()
    late.insert(PaymentEvent, **event(row))
    with pytest.raises(ValueError, match="updates come first"):
        late.update(row, {"follow_ups": 1})


def test_a_new_row_is_what_the_models_constructor_makes(shop: Shop) -> None:
    """Every column with its default, and the objects of its foreign keys."""
    values = {**payment_row(shop), "channel": shop.channel}
    del values["channel_id"]
    made = Payment(**values)
    built = build_new_row(Payment, related={"channel": values.pop("channel")}, **values)
    columns = {field.attname for field in Payment._meta.concrete_fields} - {"number"}
    assert {name: built.__dict__[name] for name in columns} == {name: made.__dict__[name] for name in columns}
    assert built.__dict__.keys() == made.__dict__.keys()
    assert (built._state.adding, built._state.db) == (made._state.adding, made._state.db)
    assert built.channel is shop.channel
    built.save()
    assert Payment.objects.get(pk=built.pk).number > 0
    del values["request"], values["id"]
    again, other = build_new_row(Payment, **values), build_new_row(Payment, **values)
    assert again.request == {}
    assert again.request is not other.request
    assert again.id != other.id


def test_a_new_row_with_a_name_that_is_no_column_is_an_error(shop: Shop) -> None:
    """As of the model's constructor."""
    with pytest.raises(TypeError, match="Payment has no colour"):
        build_new_row(Payment, **payment_row(shop), colour="red")
