"""The only writer of payments: a move is one statement, and a moved payment is not moved again.

Source: house, Ten lines; goals R1 to R4.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pgtrigger
import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from gateway.connectors.port import AcquirerReply
from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.db.guards import NEVER_EMPTIED_GUARD
from gateway.db.statement import WriteStatement
from gateway.models import (
    AcquirerExchange,
    AuditEntry,
    IdempotencyKey,
    Notification,
    Payment,
    PaymentEvent,
    RequestLog,
    Status,
)
from gateway.payments import store
from gateway.payments.idempotency import parse_idempotency_claim
from gateway.payments.outcomes import Approved, Declined, OutcomeUnknown
from gateway.payments.payment_request import IdempotencyContext, RequestTrace
from gateway.payments.states import PaymentTransitionError
from tests.conftest import APPEND_ONLY
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db


def trace() -> RequestTrace:
    return RequestTrace(request=identifiers.row_id(), method="POST", path="/v1/payments", at=clock.real_now())


def begun(shop: Shop, **values: Any) -> Payment:
    ident = identifiers.row_id()
    payment = Payment(
        id=ident,
        merchant=shop.merchant,
        channel=shop.channel,
        chain=ident,
        payment_type="DB",
        brand="VISA",
        method="CC",
        amount=Decimal("92.00"),
        currency="EUR",
        connector="simulator",
        request_id=identifiers.row_id(),
        created_at=clock.real_now(),
        **values,
    )
    assert store.insert_payment(payment, trace=trace())
    return payment


def complete(
    payment: Payment,
    outcome: type[Approved | Declined | OutcomeUnknown] = Approved,
    code: str = "000.100.110",
    **values: Any,
) -> None:
    granted = Money(payment.amount, payment.currency) if outcome is Approved else None
    reply = AcquirerReply(code=code, approved=granted, connector_tx_id="SIM1", sent={"a": 1}, received={"b": 2})
    store.complete_payment(payment, outcome(reply=reply, at=clock.real_now(), duration_ms=1), **values)


def rows() -> list[int]:
    return [model.objects.count() for model in (Payment, PaymentEvent, AcquirerExchange, Notification, RequestLog)]


def test_a_beginning_is_a_payment_and_its_event(shop: Shop) -> None:
    """House, 3: the first short transaction."""
    payment = begun(shop)
    assert rows() == [1, 1, 0, 0, 0]
    event = PaymentEvent.objects.get()
    assert (event.sequence, event.event, event.status) == (1, "begin", "STARTED")
    assert Payment.objects.get(pk=payment.pk).status == Status.STARTED


def test_an_end_is_a_move_its_event_its_messages_and_what_is_told(shop: Shop) -> None:
    """House, 3: the second short transaction."""
    payment = begun(shop)
    complete(payment, trace=trace())
    assert rows() == [1, 2, 1, 1, 1]
    kept = Payment.objects.get(pk=payment.pk)
    assert (kept.status, kept.result_code, kept.approved_amount, kept.sequence) == (
        "APPROVED",
        "000.100.110",
        Decimal("92.00"),
        2,
    )
    told = Notification.objects.get()
    assert (told.kind, told.action, told.sequence) == ("PAYMENT", "CREATED", 2)


def test_a_payment_that_somebody_else_moved_is_not_moved_again(shop: Shop) -> None:
    """House: compare-and-set; nothing is written by the one who comes late."""
    payment = begun(shop)
    late = Payment.objects.get(pk=payment.pk)
    complete(payment)
    before = rows()
    with pytest.raises(PaymentTransitionError):
        complete(late, Declined, "800.100.155", trace=trace())
    assert rows() == before
    assert Payment.objects.get(pk=payment.pk).status == Status.APPROVED


def test_an_event_that_the_state_does_not_allow_writes_nothing(shop: Shop) -> None:
    """House: one transition table."""
    payment = begun(shop)
    complete(payment)
    before = rows()
    with pytest.raises(PaymentTransitionError):
        complete(payment, Declined, "800.100.155")
    assert rows() == before


def test_a_follow_up_joins_only_the_chain_it_was_decided_on(shop: Shop) -> None:
    """Decisions, section 4: who comes second reads again."""
    payment = begun(shop)
    stale = Payment.objects.get(pk=payment.pk)
    Payment.objects.filter(pk=payment.pk).update(follow_ups=1)
    follow_up = Payment(
        id=identifiers.row_id(),
        merchant=shop.merchant,
        channel=shop.channel,
        chain=payment.pk,
        referenced=payment.pk,
        payment_type="RF",
        brand="VISA",
        method="CC",
        amount=Decimal("1.00"),
        currency="EUR",
        request_id=identifiers.row_id(),
        created_at=clock.real_now(),
    )
    before = rows()
    assert store.insert_payment(follow_up, trace=trace(), parent=stale) is False
    assert rows() == before


def test_a_silence_is_in_doubt_and_due_to_be_asked_about(shop: Shop) -> None:
    """House, 4: a lost answer is a state."""
    payment = begun(shop)
    complete(payment, OutcomeUnknown, "000.200.001")
    kept = Payment.objects.get(pk=payment.pk)
    assert (kept.status, kept.completed_at) == (Status.IN_DOUBT, None)
    assert kept.open.recover_at < clock.real_now() + timedelta(minutes=1)


@pytest.mark.parametrize("table", ["gateway_paymentevent", "gateway_auditentry"])
@pytest.mark.parametrize("sql", ["UPDATE {} SET at = at", "DELETE FROM {}"])
def test_the_database_refuses_to_change_or_erase_what_happened(shop: Shop, table: str, sql: str) -> None:
    """Goals: events and audit entries are append-only."""
    begun(shop)
    assert AuditEntry.objects.exists()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.format(table))


def test_no_session_can_switch_the_guards_off(shop: Shop) -> None:
    """Decision 0057: triggers of django-pgtrigger's own template can be ignored by whatever runs SQL."""
    begun(shop)
    [(model, guard)] = pgtrigger.registered("gateway.PaymentEvent:only_moved")
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('pgtrigger.ignore', %s, true)", [f"{{{guard.get_pgid(model)}}}"])
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            cursor.execute("DELETE FROM gateway_paymentevent")


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_the_database_refuses_to_empty_what_happened(db: None, table: str) -> None:
    """Found in use: row triggers say nothing of TRUNCATE, and the whole trail was gone."""
    with connection.cursor() as cursor:
        for model, guard in pgtrigger.registered():
            if guard.name == NEVER_EMPTIED_GUARD and model._meta.db_table == table:
                guard.enable(model)
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            cursor.execute(f"TRUNCATE {table}")
        # Every table that refuses to change a row refuses to lose them all.
        cursor.execute(
            "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname LIKE 'pgtrigger_append_only_%'"
            " AND tgparentid = 0"
        )
        assert {row[0] for row in cursor.fetchall()} == set(APPEND_ONLY)


@pytest.mark.parametrize(
    "values",
    [
        {"status": "NONSENSE"},
        {"amount": Decimal("-0.01")},
        {"status": "APPROVED", "result_code": "000.100.110"},
        {"status": "DECLINED", "result_code": ""},
    ],
)
def test_the_database_refuses_a_payment_that_cannot_be(shop: Shop, values: dict[str, Any]) -> None:
    """Goals: constraints, not only code."""
    payment = begun(shop)
    with pytest.raises(DatabaseError), transaction.atomic():
        Payment.objects.filter(pk=payment.pk).update(**values)


def record_only(shop: Shop, ident: UUID) -> tuple[Payment, dict[str, Any]]:
    """A payment that records a change, and the notification of it."""
    now = clock.real_now()
    payment = Payment(
        id=ident, merchant=shop.merchant, channel=shop.channel, chain=ident, payment_type="RG", brand="VISA",
        method="CC", amount=Decimal(0), currency="EUR", status=Status.APPROVED, approved_amount=Decimal(0),
        result_code="000.100.110", request_id=identifiers.row_id(), created_at=now,
    )  # fmt: skip
    told = {
        "payment_id": ident, "merchant_id": shop.merchant.pk, "channel_id": shop.channel.pk, "kind": "REGISTRATION",
        "action": "UPDATED", "sequence": 2, "created_at": now,
    }  # fmt: skip
    return payment, told


def test_a_row_that_is_there_already_is_told_from_a_key_that_is_taken(shop: Shop) -> None:
    """Only the key's own row means that another request with it was faster."""
    payment, told = record_only(shop, begun(shop).id)
    with pytest.raises(IntegrityError, match=r"gateway_payment(event)?_pkey"):
        store.insert_record_only_payment(payment, lambda write: None, told, trace=None)


@pytest.mark.parametrize("ahead", [0, 1])
def test_an_answer_is_stored_with_what_was_written_and_only_then(shop: Shop, ahead: int) -> None:
    """``ahead``: a change that expects a state that is not there."""
    subject = begun(shop)
    claim = parse_idempotency_claim("key-1", [], token=shop.token.pk, method="POST", path="/v1/registrations")
    assert claim is not None
    once = IdempotencyContext(claim=claim)
    payment, told = record_only(shop, identifiers.row_id())

    def change(write: WriteStatement) -> None:
        write.update(subject, {"merchant_memo": "changed"}, expecting={"sequence": subject.sequence + ahead})

    written = store.insert_record_only_payment(payment, change, told, trace=None, idempotency=once)
    assert (written, once.stored is not None) == (not ahead, not ahead)
    assert Payment.objects.filter(pk=payment.id).exists() is (not ahead)
    assert IdempotencyKey.objects.exists() is (not ahead)
