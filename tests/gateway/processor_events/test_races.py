"""Two workers act on two events about the same thing at the same moment, each on a connection of its own."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client

from gateway.models import Payment, ProcessorEvent
from gateway.processor_events import event_processing
from tests.gateway.processor_events.test_webhooks import Sender, body_of, intent_of, pay
from tests.support.card_api import CardApi, account_at
from tests.support.fixtures import Shop
from tests.support.threads import at_once


def test_a_refund_that_two_events_tell_of_is_recorded_once(committed: Shop, processor: CardApi) -> None:
    sender = Sender(account=account_at(committed.channel, processor.url), http=Client())
    paid = pay(committed)
    intent = intent_of(processor, paid)
    refund = processor.refund(intent, 1_000)
    events = [("refund.created", refund["id"]), ("charge.refunded", intent["latest_charge"]["id"])]
    for number, (kind, ident) in enumerate(events * 2):
        assert sender.send(body_of(kind, ident, f"evt_{number}")).status_code == 200

    def act() -> None:
        try:
            event_processing.process_due_events()
        finally:
            connection.close()

    at_once(*[act] * 4)
    # One that met another's open transaction is tried again later; that is no fault, a fault's words would be.
    put_off = ProcessorEvent.objects.filter(state=ProcessorEvent.State.NEW)
    assert not put_off.filter(why__contains="see the log").exists()
    put_off.update(due_at=F("created_at"))
    event_processing.process_due_events()
    assert [payment.payment_type for payment in Payment.objects.order_by("id")] == ["DB", "RF"]
    made = Payment.objects.get(payment_type="RF").pk
    assert set(ProcessorEvent.objects.values_list("state", "recorded")) == {("done", made)}


def test_what_could_not_be_written_is_not_taken_for_recorded_before(
    committed: Shop, processor: CardApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers at the same dispute meet in one constraint; any other is a fault, and the money is still out."""
    sender = Sender(account=account_at(committed.channel, processor.url), http=Client())
    paid = pay(committed)
    dispute = processor.dispute(intent_of(processor, paid), 1_000, "general", "lost")
    with monkeypatch.context() as patch:
        patch.setattr("gateway.payments.acquirer_reported.identifiers.row_id", lambda: UUID(paid.id))
        row = sender.tell("charge.dispute.created", dispute["id"], "evt_dispute")
    assert (row.state, row.recorded) == (ProcessorEvent.State.NEW, None)
    ProcessorEvent.objects.update(due_at=row.created_at)
    event_processing.process_due_events()
    row.refresh_from_db()
    assert (row.state, row.recorded) == (ProcessorEvent.State.DONE, Payment.objects.get(payment_type="CB").pk)
