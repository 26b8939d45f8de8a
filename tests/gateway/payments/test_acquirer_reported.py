"""Follow-ups that an acquirer reports: recorded as approved, with their origin, or refused with nothing written."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.port import AcquirerReply
from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.db.statement import WriteStatement
from gateway.models import Notification, Payment, PaymentEvent, RequestLog, Status
from gateway.payments import acquirer_reported
from gateway.payments.acquirer_reported import record_acquirer_reported_follow_up
from gateway.payments.chain_amounts import Chain
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.stored_answer import ReportedDispute, read_private_facts
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db


def report(shop: Shop, target: str | UUID, kind: str = "CB", amount: str = "30.00", **more: Any) -> Payment:
    reply = AcquirerReply(
        code="000.100.221",
        approved=Money(Decimal(amount), "EUR"),
        connector_tx_id="there",
        details={"ConnectorTxID1": "x"},
    )
    named: dict[str, Any] = {"origin": "settlement", "reason": "000.100.221" if kind == "CB" else ""}
    ident = target if isinstance(target, UUID) else UUID(target)
    return record_acquirer_reported_follow_up(kind, ident, shop.merchant, Decimal(amount), "EUR", reply, **named | more)


def test_what_is_reported_is_an_approved_payment_of_the_chain_with_its_events_webhook_and_log_row(shop: Shop) -> None:
    paid = shop.api.pay().id
    Notification.objects.all().delete()
    made = report(shop, paid)
    row = Payment.objects.get(pk=made.pk)
    at = row.created_at
    assert (row.payment_type, row.status, row.amount, row.approved_amount) == (
        "CB", Status.APPROVED, Decimal("30.00"), Decimal("30.00")
    )  # fmt: skip
    assert (row.referenced, row.chain, row.currency) == (UUID(paid), UUID(paid), "EUR")
    assert (row.result_code, row.connector_tx_id) == ("000.100.221", "there")
    assert row.completed_at == at
    assert row.request["chargebackResultCode"] == "000.100.221"
    assert row.answer["resultDetails"] == {"ConnectorTxID1": "x"}
    events = PaymentEvent.objects.filter(payment=row).order_by("sequence")
    assert [(one.sequence, one.event, one.status, one.result_code, one.at) for one in events] == [
        (1, "begin", "STARTED", "", at), (2, "approve", "APPROVED", "000.100.221", at),
    ]  # fmt: skip
    told = Notification.objects.get()
    assert (told.payment_id, told.action, told.kind, told.sequence) == (row.id, "CREATED", "PAYMENT", 2)
    log = RequestLog.objects.get(payment=row.id)
    assert (log.method, log.path, log.entity_id, log.result_code) == (
        "ENTER", "settlement", shop.channel.pk, "000.100.221"
    )  # fmt: skip
    assert Payment.objects.get(pk=paid).follow_ups == 1


def test_without_a_reason_it_has_none_and_it_is_of_now_by_the_merchants_clock(shop: Shop) -> None:
    shop.merchant.clock_offset = timedelta(days=40)
    shop.merchant.save()
    made = report(shop, shop.api.pay().id, "RF", reason="")
    assert abs(made.created_at - clock.real_now() - timedelta(days=40)) < timedelta(minutes=1)
    assert "chargebackResultCode" not in made.request


@pytest.mark.parametrize(
    ("kind", "amount", "code"), [("CP", "1.00", "700.300.100"), ("RF", "92.01", "700.400.200"), ("RF", "92.00", "")]
)
def test_what_the_operation_table_refuses_is_not_recorded(shop: Shop, kind: str, amount: str, code: str) -> None:
    paid = shop.api.pay().id
    if not code:
        assert report(shop, paid, kind, amount).amount == Decimal(amount)
        return
    with pytest.raises(RequestRefusedError) as refused:
        report(shop, paid, kind, amount)
    assert refused.value.code == code
    assert Payment.objects.count() == 1


def test_a_chargeback_is_recorded_of_what_was_refunded(shop: Shop) -> None:
    paid = shop.api.pay().id
    shop.api.follow(paid, "RF", "92.00")
    assert report(shop, paid, amount="92.00").status == Status.APPROVED


def test_a_payment_of_nobody_or_of_another_merchant_is_unknown(shop: Shop, stranger: Shop) -> None:
    for target in (UUID(stranger.api.pay().id), identifiers.row_id()):
        with pytest.raises(RequestRefusedError) as refused:
            report(shop, target)
        assert (refused.value.code, refused.value.status) == ("700.400.550", 404)
    assert Payment.objects.count() == 1


def test_the_callers_rows_are_written_with_it_and_a_look_may_stop_it(shop: Shop) -> None:
    paid, other = shop.api.pay().id, shop.api.pay().id
    seen: list[int] = []

    def stop(chain: Chain) -> None:
        seen.append(len(chain.members))
        raise LookupError

    with pytest.raises(LookupError):
        report(shop, paid, look=stop)
    assert (seen, Payment.objects.count()) == ([1], 2)

    def note(write: WriteStatement, made: Payment) -> None:
        write.update_related(Payment, {"merchant_memo": made.id.hex}, {"id": UUID(other)})

    made = report(shop, paid, extra_writes=note)
    assert Payment.objects.get(pk=other).merchant_memo == made.id.hex


@pytest.mark.parametrize("lost", [1, 3])
def test_a_chain_that_changes_meanwhile_is_looked_at_again_a_bounded_number_of_times(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    paid, looks = shop.api.pay().id, []
    insert = acquirer_reported.store.insert_acquirer_reported_payment

    def lose(*arguments: Any, **named: Any) -> bool:
        return len(looks) > lost and insert(*arguments, **named)

    monkeypatch.setattr(acquirer_reported, "MAX_FOLLOW_UP_TRIES", 3)
    monkeypatch.setattr(acquirer_reported.store, "insert_acquirer_reported_payment", lose)
    if lost < 3:
        assert report(shop, paid, look=looks.append).status == Status.APPROVED
        assert len(looks) == lost + 1
    else:
        with pytest.raises(RequestRefusedError) as refused:
            report(shop, paid, look=looks.append)
        assert (refused.value.code, len(looks), Payment.objects.count()) == ("800.120.402", 3, 1)


@pytest.mark.parametrize("dispute", [None, ReportedDispute(answer_by="2033-11-15", scheme_reason="10.4")])
def test_what_a_processor_said_of_a_dispute_is_kept_with_the_chargeback_and_without_it_nothing(
    shop: Shop, dispute: ReportedDispute | None
) -> None:
    paid = shop.api.pay(descriptor="SHOP").id
    made = Payment.objects.get(pk=report(shop, paid, dispute=dispute).pk)
    assert read_private_facts(made.answer).dispute == dispute
    assert ("dispute" in made.answer) is (dispute is not None)
    assert made.request["descriptor"] == "SHOP", "what it follows is shown with it"


def test_a_report_about_a_capture_counts_in_the_chain_and_follows_the_capture(shop: Shop, stranger: Shop) -> None:
    held = shop.api.pay(paymentType="PA").id
    capture = shop.api.follow(held, "CP", "50.00").id
    other = shop.api.pay().id
    before = dict(Payment.objects.values_list("pk", "follow_ups"))
    shop.merchant.clock_offset = timedelta(days=-3)
    real = clock.real_now()
    made = report(shop, capture)
    assert (made.referenced, made.chain) == (UUID(capture), UUID(held))
    after = dict(Payment.objects.exclude(pk=made.pk).values_list("pk", "follow_ups"))
    assert after == before | {UUID(held): before[UUID(held)] + 1}
    assert UUID(other) in after
    log = RequestLog.objects.get(payment=made.pk)
    assert log.at >= real, "the log has the real time"
    assert (log.id, log.token, log.ip) == (made.request_id, None, None)


def test_a_look_is_at_the_whole_chain_before_anything_is_decided(shop: Shop) -> None:
    """Also where the table refuses then."""
    held = shop.api.pay(paymentType="PA").id
    capture = shop.api.follow(held, "CP", "50.00").id
    seen: list[list[str]] = []
    with pytest.raises(RequestRefusedError) as refused:
        report(shop, capture, "RF", "50.01", look=lambda chain: seen.append([one.id.hex for one in chain.members]))
    assert (refused.value.code, refused.value.status, seen) == ("700.400.200", 400, [[held, capture]])


def test_a_report_in_another_currency_than_its_payments_is_refused(shop: Shop) -> None:
    reply = AcquirerReply(code="000.100.221")
    paid = shop.api.pay().id
    with pytest.raises(RequestRefusedError):
        record_acquirer_reported_follow_up(
            "RF", UUID(paid), shop.merchant, Decimal("1.00"), "USD", reply, origin="settlement"
        )
    assert Payment.objects.count() == 1


@pytest.mark.parametrize("kind", ["CB", "RF"])
def test_two_reports_have_ids_of_their_own(shop: Shop, kind: str) -> None:
    paid = shop.api.pay().id
    made = [report(shop, paid, kind, "1.00") for _ in range(2)]
    assert len({one.pk for one in made} | {one.request_id for one in made}) == 4
    assert RequestLog.objects.filter(payment__in=[one.pk for one in made]).count() == 2
