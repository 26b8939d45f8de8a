"""What a person may decide of a payout in doubt, and what is written of it. Source: docs/decisions/0152."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.access import audit_log
from gateway.core import clock
from gateway.models import AcquirerExchange, AuditEntry, Merchant, Payment, PaymentEvent
from gateway.payments import payout_decisions
from gateway.payments.payout_decisions import NOT_PAID_OUT_TEXT, PayoutNotDecidableError, decide_payout
from gateway.payments.states import PaymentTransitionError
from tests.gateway.scheduling.test_runs import SILENT
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
BY = audit_log.Actor(name="ann")
NOW = datetime(2033, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def in_doubt(shop: Shop, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Payment:
    """A payout to a card whose acquirer gave no answer, beside another one."""
    settings.GATEWAY_ACQUIRER_TIMEOUT_S = 0.1
    first, _ = (shop.api.pay(paymentType="CD", card__number=SILENT, amount="12.50") for _ in range(2))
    monkeypatch.setattr(payout_decisions, "is_for_person", lambda payment: payment.payment_type == "CD")
    Payment.objects.filter(pk=first.id).update(connector_tx_id="their-id")
    payment = Payment.objects.get(pk=first.id)
    assert payment.status == "IN_DOUBT"
    return payment


@pytest.mark.parametrize(
    ("test_mode", "paid", "status", "code"),
    [
        ("INTERNAL", True, "APPROVED", "000.100.110"),
        ("EXTERNAL", True, "APPROVED", "000.100.112"),
        ("INTERNAL", False, "DECLINED", "900.100.301"),
    ],
)
def test_a_payout_is_what_the_person_was_told(
    in_doubt: Payment, monkeypatch: pytest.MonkeyPatch, test_mode: str, paid: bool, status: str, code: str
) -> None:
    Payment.objects.filter(pk=in_doubt.pk).update(test_mode=test_mode)
    Merchant.objects.update(clock_offset=timedelta(days=3))
    monkeypatch.setattr(clock, "real_now", lambda: NOW)
    found = decide_payout(in_doubt.pk, paid=paid, by=BY)
    assert found.pk == in_doubt.pk
    row = Payment.objects.get(pk=in_doubt.pk)
    assert (row.status, row.result_code, row.connector_tx_id) == (status, code, "their-id")
    assert row.approved_amount == (row.amount if paid else None)
    assert row.answer.get("resultDetails", {}).get("ExtendedDescription") == (None if paid else NOT_PAID_OUT_TEXT)
    assert PaymentEvent.objects.filter(payment=row.pk).latest("sequence").at == NOW + timedelta(days=3)
    exchange = AcquirerExchange.objects.get(payment=row.pk, kind="person")
    assert exchange.sent == {"question": row.pk.hex}
    assert exchange.received == {"outcome": "paid" if paid else "not paid", "by": "ann"}
    entry = AuditEntry.objects.latest("id")
    assert (entry.action, entry.actor, entry.subject_id, entry.after) == (
        "payout decided", "ann", str(row.pk), {"paid": paid},
    )  # fmt: skip
    assert Payment.objects.filter(status="IN_DOUBT").count() == 1, "the other one"


@pytest.mark.parametrize(
    ("changed", "ident", "why"),
    [
        ({}, UUID(int=7), "no payment has this id"),
        ({"payment_type": "DB"}, None, "it is no payout to a card"),
        ({"payment_type": "DB", "status": "DECLINED"}, None, "it is no payout to a card"),
        ({"status": "DECLINED"}, None, "it is Declined, not in doubt"),
        ({"status": "STARTED"}, None, "not in doubt"),
    ],
    ids=str,
)
def test_what_is_no_payout_in_doubt_is_not_decided(
    in_doubt: Payment, changed: dict[str, str], ident: UUID | None, why: str
) -> None:
    if changed:
        Payment.objects.filter(pk=in_doubt.pk).update(**changed)
    before = (AuditEntry.objects.count(), PaymentEvent.objects.count())
    with pytest.raises(PayoutNotDecidableError, match=why):
        decide_payout(ident or in_doubt.pk, paid=True, by=BY)
    assert (AuditEntry.objects.count(), PaymentEvent.objects.count()) == before


@pytest.mark.parametrize("paid", [True, False])
def test_a_persons_note_is_kept_in_the_trail(in_doubt: Payment, paid: bool) -> None:
    decide_payout(in_doubt.pk, paid=paid, by=BY, note="they called back")
    assert AuditEntry.objects.latest("id").after == {"paid": paid, "note": "they called back"}


def test_what_moves_meanwhile_is_left_and_not_recorded(in_doubt: Payment, monkeypatch: pytest.MonkeyPatch) -> None:
    def move_first(*_: object, **__: object) -> None:
        raise PaymentTransitionError

    before = AuditEntry.objects.count()
    monkeypatch.setattr(payout_decisions.store, "complete_payment", move_first)
    with pytest.raises(PayoutNotDecidableError, match="it has its outcome by now") as caught:
        decide_payout(in_doubt.pk, paid=True, by=BY)
    assert caught.value.__suppress_context__
    assert AuditEntry.objects.count() == before


def test_a_decision_that_cannot_be_recorded_is_not_made(in_doubt: Payment, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(payout_decisions.audit_log, "record_audit_entry", fail)
    with pytest.raises(RuntimeError):
        decide_payout(in_doubt.pk, paid=True, by=BY)
    assert Payment.objects.get(pk=in_doubt.pk).status == "IN_DOUBT"
