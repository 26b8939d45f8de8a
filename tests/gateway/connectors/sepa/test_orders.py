"""Taking back, giving back, refusing, and counting as paid: what a merchant can do with a direct debit."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.db import OperationalError
from sepaxml.validation import try_valid_xml

from gateway.connectors import accounts
from gateway.connectors.port import AcquirerRequest, ConnectorAccount, NotFoundAtAcquirer, VoidRefusedError
from gateway.connectors.routing import CONNECTORS
from gateway.connectors.sepa.connector import SEPA
from gateway.core.money import Money
from gateway.models import (
    AcquirerExchange,
    BankFile,
    BankMessage,
    BankOrder,
    BankOrderEvent,
    Notification,
    Payment,
    PaymentEvent,
    Suspension,
)
from gateway.payments import mandate_mails, recovery, store
from gateway.payments.chain_states import resolve_chain_status
from gateway.timers import registry
from tests.support import sepa
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.office import signed_in
from tests.support.sepa import Entry

pytestmark = pytest.mark.django_db
SUCCESS = "000.100.112"


def booked(shop: Shop, amount: str = "92.00") -> str:
    """A collection that was paid."""
    paid = sepa.debit(shop.api, amount).id
    pass_time(shop.api, days=sepa.A_RUN)
    sepa.take(sepa.statement([Entry(order=paid, amount=amount)], number=paid))  # type: ignore[arg-type]
    registry.run_timer_now("bank answers")
    return paid


def test_a_reversal_in_time_takes_the_collection_out(banked: Shop, outbox: Path) -> None:
    paid = sepa.debit(banked.api).id
    assert banked.api.follow(paid, "RV").code == SUCCESS
    registry.run_timer_now("bank answers")
    told = banked.api.read(paid)
    assert (told.status, told.code) == (400, "100.396.201")
    pass_time(banked.api, days=sepa.A_RUN)
    assert sepa.files_in(outbox) == []
    assert banked.api.follow(paid, "RV").code == "700.400.530"


def test_a_reversal_takes_all_of_a_collection_or_nothing(banked: Shop) -> None:
    paid = sepa.debit(banked.api).id
    assert banked.api.follow(paid, "RV", "10.00").code == "700.100.200"
    assert BankOrder.objects.get(pk=paid).state == "WAITING"
    assert banked.api.follow(paid, "RV", "92.00").code == SUCCESS


def test_a_reversal_that_comes_too_late_says_so(banked: Shop, outbox: Path) -> None:
    paid = sepa.debit(banked.api).id
    pass_time(banked.api, days=sepa.A_RUN)
    late = banked.api.follow(paid, "RV")
    assert (late.status, late.code) == (400, "700.300.700")
    assert banked.api.read(paid).code == "800.400.501"
    sepa.take(sepa.statement([Entry(order=paid)]))
    registry.run_timer_now("bank answers")
    assert banked.api.follow(paid, "RV").code == "700.300.700"


def test_other_follow_ups_of_a_debit_that_waits_are_refused(banked: Shop) -> None:
    paid = sepa.debit(banked.api).id
    assert banked.api.follow(paid, "RF", "1.00").code == "700.400.570"
    assert banked.api.follow(paid, "CB", "1.00").code == "700.400.570"


def test_what_the_bank_says_stands_among_the_exchanges_as_the_banks_word(banked: Shop, outbox: Path) -> None:
    """Nobody asked again: it came by a statement."""
    kinds = AcquirerExchange.objects.filter(payment=booked(banked)).order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["submit", "bank"]


def test_a_refund_is_a_transfer_back_to_the_same_account(banked: Shop, outbox: Path) -> None:
    paid = booked(banked)
    refund = banked.api.follow(paid, "RF", "30.00")
    assert (refund.status, refund.code) == (200, "800.400.502")
    pass_time(banked.api, days=sepa.A_RUN)
    file = sepa.files_in(outbox)[-1] if b"pain.001" in sepa.files_in(outbox)[-1].xml else sepa.files_in(outbox)[0]
    try_valid_xml(file.xml, "pain.001.001.09")
    assert file.text("CdtTrfTxInf/CdtrAcct/Id/IBAN") == sepa.DEBTOR
    assert (file.text("CdtTrfTxInf/Amt/InstdAmt"), file.text("Cdtr/Nm")) == ("30.00", "Jane Jones")
    sepa.take(sepa.statement([Entry(order=refund.id, amount="30.00", into=False)]))
    registry.run_timer_now("bank answers")
    assert banked.api.read(refund.id).code == SUCCESS
    assert banked.api.follow(paid, "RF", "62.01").code == "700.400.200"


def test_a_refund_that_the_bank_rejects_is_declined_and_may_be_made_again(banked: Shop, outbox: Path) -> None:
    paid = booked(banked)
    refund = banked.api.follow(paid, "RF", "92.00").id
    pass_time(banked.api, days=sepa.A_RUN)
    file = BankFile.objects.get(kind="PAY")
    sepa.take(sepa.status(file.message_id, orders={refund: ("RJCT", "AC04")}))
    registry.run_timer_now("bank answers")
    assert banked.api.read(refund).code == "800.100.202"
    assert banked.api.follow(paid, "RF", "92.00").code == "800.400.502"


def come_back(shop: Shop, refund: str, amount: str) -> BankMessage:
    """A transfer that was booked, and that the shopper's bank returned."""
    sepa.take(sepa.statement([Entry(order=refund, amount=amount, into=False)], number=f"OUT-{refund[:8]}"))
    registry.run_timer_now("bank answers")
    assert shop.api.read(refund).code == SUCCESS
    taken = sepa.take(sepa.statement([Entry(order=refund, amount=amount, reason="AC04")], number=f"BACK-{refund[:8]}"))
    registry.run_timer_now("bank answers")
    taken.refresh_from_db()
    return taken


def test_a_refund_that_comes_back_is_told_and_may_be_made_again(banked: Shop, outbox: Path) -> None:
    """A credit transfer ends with its return (EPC 125-05, SCT rulebook, 4.3.2): the shopper has nothing."""
    paid = booked(banked)
    refund = banked.api.follow(paid, "RF", "92.00").id
    pass_time(banked.api, days=sepa.A_RUN)
    told = Notification.objects.filter(payment=refund).count()
    taken = come_back(banked, refund, "92.00")
    assert taken.findings == [f"order {refund}: RF 92.00 EUR to the shopper came back (AC04)"]
    assert not BankOrderEvent.objects.filter(applied=False).exists()
    body = banked.api.read(refund).body
    assert body["result"]["code"] == SUCCESS
    assert body["resultDetails"]["transferReturned"] == "true"
    assert body["resultDetails"]["transferReturnReason"] == "AC04"
    assert list(PaymentEvent.objects.filter(payment=refund).order_by("sequence").values_list("event", flat=True)) == [
        "begin", "suspend", "approve", "return",
    ]  # fmt: skip
    updates = Notification.objects.filter(payment=refund).order_by("id")
    assert (updates.count(), updates.last().action) == (told + 2, "UPDATED")  # type: ignore[union-attr]
    first = Payment.objects.select_related("standing").get(pk=paid)
    assert resolve_chain_status(first) == "captured"
    assert banked.api.follow(refund, "RV").code.startswith("700.")
    assert banked.api.follow(paid, "RF", "92.01").code == "700.400.200"
    again = banked.api.follow(paid, "RF", "92.00")
    assert again.code == "800.400.502"
    assert "transferReturned" not in again.body.get("resultDetails", {})


def test_the_clerk_is_told_of_a_returned_refund_whose_worker_died_over_it(
    banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refund = banked.api.follow(booked(banked), "RF", "92.00").id
    pass_time(banked.api, days=sepa.A_RUN)
    record = store.record_returned_transfer

    def record_and_die(payment: Payment, reason: str, *, at: datetime, bank_event: int) -> None:
        record(payment, reason, at=at, bank_event=bank_event)
        raise OperationalError("the worker died")

    monkeypatch.setattr(store, "record_returned_transfer", record_and_die)
    taken = come_back(banked, refund, "92.00")
    registry.run_timer_now("bank answers")
    taken.refresh_from_db()
    assert taken.findings == [f"order {refund}: RF 92.00 EUR to the shopper came back (AC04)"]
    assert banked.api.read(refund).body["resultDetails"]["transferReturned"] == "true"


def test_a_refund_that_ended_the_payment_and_came_back_ends_it_no_more(banked: Shop, outbox: Path) -> None:
    paid = booked(banked)
    refund = banked.api.follow(paid, "RF", "30.00", sequence="FINAL").id
    pass_time(banked.api, days=sepa.A_RUN)
    assert banked.api.follow(paid, "RF", "10.00").code.startswith("700.")
    come_back(banked, refund, "30.00")
    assert banked.api.follow(paid, "RF", "92.00").code == "800.400.502"


def test_a_return_is_told_once_however_often_the_bank_says_it(banked: Shop, outbox: Path) -> None:
    paid = booked(banked)
    refund = banked.api.follow(paid, "RF", "30.00").id
    pass_time(banked.api, days=sepa.A_RUN)
    come_back(banked, refund, "30.00")
    sepa.take(sepa.statement([Entry(order=refund, amount="30.00", reason="AC04")], number="AGAIN"))
    registry.run_timer_now("bank answers")
    assert PaymentEvent.objects.filter(payment=refund, event="return").count() == 1
    assert banked.api.follow(paid, "RF", "92.00").code == "800.400.502"


def test_a_payout_that_comes_back_is_told(banked: Shop, outbox: Path) -> None:
    payout = banked.api.pay(**{**sepa.JANE, "paymentType": "CD"}).id
    pass_time(banked.api, days=sepa.A_RUN)
    come_back(banked, payout, "92.00")
    assert banked.api.read(payout).body["resultDetails"]["transferReturned"] == "true"
    assert resolve_chain_status(Payment.objects.select_related("standing").get(pk=payout)) == "voided"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"currency": "USD"}, "800.100.173"),
        (
            {
                "bankAccount__iban": None,
                "bankAccount__number": "1234567890",
                "bankAccount__bankCode": "37040044",
                "bankAccount__bic": None,
            },
            "100.200.104",
        ),
        ({"bankAccount__iban": "TR330006100519786457841326", "bankAccount__country": "TR"}, "800.100.208"),
        ({"paymentType": "PA"}, "600.200.700"),
    ],
)
def test_what_the_scheme_does_not_do_is_declined_at_once(
    banked: Shop, change: dict[str, str | None], code: str
) -> None:
    answer = banked.api.pay(**{**sepa.JANE, **change})
    assert (answer.status, answer.code) == (400, code)
    assert not BankOrder.objects.exists()


def test_days_without_a_word_pay_where_the_account_says_so_and_a_late_return_is_a_chargeback(
    shop: Shop, outbox: Path
) -> None:
    sepa.account_at_bank(shop.channel, finalAfter="5")
    paid = sepa.debit(shop.api).id
    pass_time(shop.api, days=5)
    assert shop.api.read(paid).code == "800.400.501"
    pass_time(shop.api, days=14)
    assert shop.api.read(paid).code == SUCCESS
    sepa.take(sepa.statement([Entry(order=paid)]))
    sepa.take(sepa.notification([Entry(order=paid, into=False, reason="AM04")]))
    registry.run_timer_now("bank answers")
    assert Payment.objects.get(payment_type="CB").result_code == "000.100.203"


def test_a_bank_has_its_time_before_the_payment_is_overdue(banked: Shop, outbox: Path) -> None:
    """The deadline of a pending payment lies weeks behind its day of collection, however far ahead that is."""
    wanted = (banked.merchant.created_at + timedelta(days=100)).date()
    paid = sepa.debit(banked.api, transactionDueDate=wanted.isoformat()).id
    assert Suspension.objects.get(pk=paid).deadline.date() > wanted + timedelta(days=50)
    pass_time(banked.api, days=80)
    assert banked.api.read(paid).code == "800.400.501"
    assert BankOrder.objects.get(pk=paid).state == "WAITING"


def test_a_bank_that_never_answers_leaves_the_payment_open_and_is_looked_for_once_a_day(
    banked: Shop, outbox: Path
) -> None:
    paid = sepa.debit(banked.api).id
    pass_time(banked.api, days=70)
    assert banked.api.read(paid).code == "800.400.501"
    asked = AcquirerExchange.objects.filter(payment=paid, kind="void")
    before = asked.count()
    assert 1 <= before <= 10
    assert registry.run_timer_now("shopper deadlines") == 0
    pass_time(banked.api, days=1)
    assert asked.count() == before + 1


def question(payment: str, account: ConnectorAccount | None = None) -> AcquirerRequest:
    row = Payment.objects.select_related("merchant").get(pk=payment)
    return AcquirerRequest(
        payment=UUID(payment),
        operation="DB",
        money=Money(row.amount, row.currency),
        brand=row.brand,
        at=row.created_at,
        account=account or ConnectorAccount(merchant="shop-bank", settings=sepa.SETTINGS),
    )


def test_inquiries_are_answered_by_the_books_and_a_void_takes_out_what_is_not_filed(banked: Shop, outbox: Path) -> None:
    waiting = sepa.debit(banked.api).id
    found = SEPA.inquire(question(waiting))
    assert not isinstance(found, NotFoundAtAcquirer)
    assert found.code == "800.400.501"
    assert SEPA.void(question(waiting)).code == "900.100.301"
    assert SEPA.void(question(waiting)).code == "900.100.301"
    with_bank = sepa.debit(banked.api).id
    pass_time(banked.api, days=sepa.A_RUN)
    guarded = CONNECTORS["sepa"]
    for _ in range(30):
        with pytest.raises(VoidRefusedError):
            guarded.void(question(with_bank))
    assert sepa.debit(banked.api).code == "800.400.501"


def test_an_order_that_is_taken_back_before_it_comes_is_refused_when_it_does(banked: Shop) -> None:
    paid = sepa.debit(banked.api).id
    BankOrder.objects.get(pk=paid).events.all().delete()
    BankOrder.objects.filter(pk=paid).delete()
    assert isinstance(SEPA.inquire(question(paid)), NotFoundAtAcquirer)
    assert SEPA.void(question(paid)).code == "900.100.301"
    assert BankOrder.objects.get(pk=paid).state == "WITHDRAWN"


def test_a_worker_that_died_leaves_a_payment_that_recovery_finds_in_the_books(banked: Shop) -> None:
    paid = sepa.debit(banked.api).id
    row = Payment.objects.select_related("merchant").get(pk=paid)
    assert recovery.build_inquiry(row, SEPA).payment == row.id
    found = SEPA.inquire(recovery.build_inquiry(row, SEPA))
    assert not isinstance(found, NotFoundAtAcquirer)
    assert found.code == "800.400.501"


def test_who_is_debited_reads_of_it_before_the_money_goes(banked: Shop, outbox: Path) -> None:
    """The mandate's mail leaves when the debit is accepted, once, with the day of collection that the file asks for."""
    paid = sepa.debit(banked.api, customer__email="jane@mail.example", bankAccount__mandate__id="M" * 50).id
    assert mandate_mails.send_due_mandate_mails() == 1
    (sent,) = mail.outbox
    order = BankOrder.objects.get(pk=paid)
    assert order.mandate is not None
    assert f"Collected on: {order.due_on}" in sent.body
    assert f"Mandate reference: {order.mandate.mandate}" in sent.body
    pass_time(banked.api, days=sepa.A_RUN)
    sepa.take(sepa.statement([Entry(order=paid)]))
    registry.run_timer_now("bank answers")
    assert banked.api.read(paid).code == SUCCESS
    assert (mandate_mails.send_due_mandate_mails(), len(mail.outbox)) == (0, 1)


def test_two_merchants_at_one_bank_have_files_of_their_own(banked: Shop, stranger: Shop, outbox: Path) -> None:
    sepa.account_at_bank(stranger.channel, creditorName="Stranger Ltd")
    sepa.debit(banked.api)
    sepa.debit(stranger.api)
    pass_time(banked.api, days=sepa.A_RUN)
    pass_time(stranger.api, days=sepa.A_RUN)
    assert sorted(file.texts("Cdtr/Nm")[0] for file in sepa.files_in(outbox)) == ["Shop Ltd", "Stranger Ltd"]
    accounts.clear_account_cache()


def test_a_file_is_downloaded_with_its_accounts_masked(banked: Shop, outbox: Path) -> None:
    sepa.debit(banked.api)
    pass_time(banked.api, days=sepa.A_RUN)
    file = BankFile.objects.get()
    client = signed_in(User.objects.create_superuser("boss"))
    answer = client.get(f"/admin/gateway/bankfile/{file.pk}/download/")
    assert answer.status_code == 200
    text = answer.content.decode()
    assert sepa.DEBTOR not in text
    assert "DE89**************3000" in text
    assert file.message_id in text
