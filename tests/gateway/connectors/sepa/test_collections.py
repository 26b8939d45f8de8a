"""Direct debits through the API, from the request to the bank's status. Source: Part A, Bank account; A20."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from gateway.connectors.port import AcquirerReply
from gateway.core import clock
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE
from gateway.models import BankFile, BankMessage, BankOrder, BankOrderEvent, Notification, Payment
from gateway.payments import acquirer_reported
from gateway.payments.refusal import RequestRefusedError
from gateway.timers import registry
from tests.support import sepa
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.sepa import Entry

pytestmark = pytest.mark.django_db

OUTSTANDING = "800.400.501"
SUCCESS = "000.100.112"


def filed(shop: Shop, outbox: Path) -> sepa.File:
    """The one file that the next run makes."""
    pass_time(shop.api, days=sepa.A_RUN)
    (file,) = sepa.files_in(outbox)
    return file


def code(shop: Shop, payment: str) -> str:
    """The payment's result once banks' answers are told."""
    registry.run_timer_now("bank answers")
    return shop.api.read(payment).code


def test_a_debit_waits_for_the_bank_and_is_paid_when_a_statement_books_it(banked: Shop, outbox: Path) -> None:
    paid = sepa.debit(
        banked.api, bankAccount__mandate__id="MANDATE-ABC", bankAccount__mandate__dateOfSignature="2026-01-15"
    )
    assert (paid.code, paid.status) == (OUTSTANDING, 200)
    assert sepa.files_in(outbox) == []
    file = filed(banked, outbox)
    assert file.text("DrctDbtTxInf/PmtId/EndToEndId") == paid.id
    assert file.text("DrctDbtTxInf/InstdAmt") == "92.00"
    assert file.text("DbtrAcct/Id/IBAN") == sepa.DEBTOR
    assert (file.text("MndtRltdInf/MndtId"), file.text("MndtRltdInf/DtOfSgntr")) == ("MANDATE-ABC", "2026-01-15")
    assert file.text("CdtrSchmeId/Id/PrvtId/Othr/Id") == "DE98ZZZ09999999999"
    sepa.take(sepa.status(file.message, group="ACCP", orders={paid.id: ("ACCP", "")}))
    assert code(banked, paid.id) == OUTSTANDING
    assert sepa.take(sepa.statement([Entry(order=paid.id)])).orders_changed == 1
    assert code(banked, paid.id) == SUCCESS
    told = Notification.objects.filter(payment=paid.id).order_by("sequence").values_list("action", flat=True)
    assert list(told) == ["CREATED", "UPDATED"]


def test_a_rejected_debit_is_declined_with_the_banks_reason(banked: Shop, outbox: Path) -> None:
    paid, other = sepa.debit(banked.api), sepa.debit(banked.api)
    file = filed(banked, outbox)
    sepa.take(sepa.status(file.message, orders={paid.id: ("RJCT", "AC04"), other.id: ("ACCP", "")}))
    assert (code(banked, paid.id), code(banked, other.id)) == ("800.100.202", OUTSTANDING)
    assert BankFile.objects.get().bank_status == "PART"
    assert banked.api.read(paid.id).body["resultDetails"]["AcquirerResponse"] == "AC04"


def test_a_return_is_a_chargeback_with_its_reason_and_its_reversal_a_second_word(banked: Shop, outbox: Path) -> None:
    paid = sepa.debit(banked.api)
    filed(banked, outbox)
    sepa.take(sepa.statement([Entry(order=paid.id)]))
    assert code(banked, paid.id) == SUCCESS
    back = Entry(order=paid.id, into=False, reason="MD06", on="2026-01-09")
    sepa.take(sepa.notification([back]))
    sepa.take(sepa.statement([back], number=2))
    registry.run_timer_now("bank answers")
    (dispute,) = Payment.objects.filter(chain=paid.id, payment_type="CB")
    assert (dispute.result_code, str(dispute.amount), dispute.status) == ("000.100.206", "92.00", "APPROVED")
    assert Notification.objects.filter(payment=dispute.id).count() == 1
    sepa.take(sepa.statement([Entry(order=paid.id, reversal=True, on="2026-01-20")], number=3))
    registry.run_timer_now("bank answers")
    (won,) = Payment.objects.filter(chain=paid.id, payment_type="CR")
    assert won.referenced == dispute.id
    sepa.take(sepa.notification([back], number=9))
    registry.run_timer_now("bank answers")
    assert Payment.objects.filter(chain=paid.id).count() == 3
    sepa.take(sepa.statement([Entry(order=paid.id, into=False, reason="MD01", on="2026-02-01")], number=4))
    registry.run_timer_now("bank answers")
    again = Payment.objects.filter(chain=paid.id, payment_type="CB").exclude(pk=dispute.id).get()
    assert (again.referenced, again.status) == (won.id, "APPROVED")  # the second return disputes the representment


def test_a_return_follows_the_representment_of_its_own_order(banked: Shop, outbox: Path) -> None:
    """Another order of the same file was returned and won back before: its books are not touched."""
    other, paid = sepa.debit(banked.api), sepa.debit(banked.api)
    filed(banked, outbox)
    sepa.take(sepa.statement([Entry(order=other.id), Entry(order=paid.id)]))
    sepa.take(sepa.statement([Entry(order=other.id, into=False, reason="MD06", on="2026-01-09")], number=2))
    registry.run_timer_now("bank answers")
    sepa.take(sepa.statement([Entry(order=other.id, reversal=True, on="2026-01-20")], number=3))
    registry.run_timer_now("bank answers")
    sepa.take(sepa.statement([Entry(order=paid.id, into=False, reason="MD06", on="2026-02-01")], number=4))
    registry.run_timer_now("bank answers")
    (dispute,) = Payment.objects.filter(chain=paid.id, payment_type="CB")
    assert (dispute.referenced.hex, dispute.status) == (paid.id, "APPROVED")
    assert sorted(Payment.objects.filter(chain=other.id).values_list("payment_type", flat=True)) == ["CB", "CR", "DB"]


def test_the_due_date_that_was_asked_for_decides_when_the_file_is_made(banked: Shop, outbox: Path) -> None:
    wanted = clock.merchant_now(banked.merchant).date() + timedelta(days=30)
    sepa.debit(banked.api, transactionDueDate=wanted.isoformat())
    pass_time(banked.api, days=15)
    assert sepa.files_in(outbox) == []
    assert BankOrder.objects.get().state == BankOrder.State.WAITING
    pass_time(banked.api, days=18)
    (file,) = sepa.files_in(outbox)
    assert file.text("ReqdColltnDt") >= wanted.isoformat()


def paid_and_refunded(shop: Shop, outbox: Path, back: str) -> str:
    """A collection that the bank booked, and of which ``back`` was given back by a transfer."""
    paid = sepa.debit(shop.api)
    filed(shop, outbox)
    sepa.take(sepa.statement([Entry(order=paid.id)]))
    registry.run_timer_now("bank answers")
    assert shop.api.follow(paid.id, "RF", amount=back, currency="EUR").code == "800.400.502"
    return paid.id


@pytest.mark.parametrize("refunded", ["92.00", "12.00"])
def test_a_return_of_what_was_refunded_is_a_chargeback(banked: Shop, outbox: Path, refunded: str) -> None:
    """The money is gone twice, by the refund and by the return: the books say so (docs/decisions/0065)."""
    paid = paid_and_refunded(banked, outbox, refunded)
    back = sepa.take(sepa.statement([Entry(order=paid, into=False, reason="MD06", on="2026-03-09")], number=2))
    for _ in range(2):
        registry.run_timer_now("bank answers")
    assert Payment.objects.get(chain=paid, payment_type="CB").approved_amount == Decimal("92.00")
    assert BankMessage.objects.get(pk=back.pk).findings == []


@pytest.mark.parametrize(("refused", "again"), [("700.400.550", False), (CONCURRENT_UPDATE_CODE, True)])
def test_a_return_that_our_books_refuse_is_a_finding_and_one_that_was_overtaken_is_tried_again(
    banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch, refused: str, again: bool
) -> None:
    paid = sepa.debit(banked.api).id
    filed(banked, outbox)
    sepa.take(sepa.statement([Entry(order=paid)]))
    registry.run_timer_now("bank answers")

    def refuse(*_: object, **__: object) -> None:
        raise RequestRefusedError(refused)

    monkeypatch.setattr(acquirer_reported, "record_acquirer_reported_follow_up", refuse)
    back = sepa.take(sepa.statement([Entry(order=paid, into=False, reason="MD06", on="2026-03-09")], number=2))
    registry.run_timer_now("bank answers")
    found = BankMessage.objects.get(pk=back.pk).findings
    words = f"a CB of 92.00 EUR does not fit into our books ({refused}): the money may have been given back twice"
    assert [one.partition("but ")[2] for one in found] == ([] if again else [words])
    assert BankOrderEvent.objects.filter(applied=False).exists() is again


def test_a_second_return_that_another_door_entered_is_what_the_bank_gives_back(banked: Shop, outbox: Path) -> None:
    """The first chargeback is won back already: the reversal is of the one that stands."""
    paid = sepa.debit(banked.api)
    filed(banked, outbox)
    sepa.take(sepa.statement([Entry(order=paid.id)]))
    sepa.take(sepa.statement([Entry(order=paid.id, into=False, reason="MD06", on="2026-03-09")], number=2))
    registry.run_timer_now("bank answers")
    sepa.take(sepa.statement([Entry(order=paid.id, reversal=True, on="2026-03-20")], number=3))
    registry.run_timer_now("bank answers")
    (won,) = Payment.objects.filter(chain=paid.id, payment_type="CR")
    reply = AcquirerReply(code="000.100.206", approved=won.money)
    second = acquirer_reported.record_acquirer_reported_follow_up(
        "CB", won.id, banked.merchant, won.amount, "EUR", reply, origin="settlement"
    )
    sepa.take(sepa.statement([Entry(order=paid.id, into=False, reason="MD01", on="2026-04-01")], number=4))
    back = sepa.take(sepa.statement([Entry(order=paid.id, reversal=True, on="2026-04-10")], number=5))
    registry.run_timer_now("bank answers")
    assert BankMessage.objects.get(pk=back.pk).findings == []
    again = Payment.objects.filter(chain=paid.id, payment_type="CR").exclude(pk=won.pk).get()
    assert (again.referenced, again.status) == (second.id, "APPROVED")


@pytest.mark.parametrize("refunded", ["92.00", "12.00"])
def test_a_refund_that_is_in_no_file_yet_is_not_sent_when_the_collection_comes_back(
    banked: Shop, outbox: Path, refunded: str
) -> None:
    """It would give the money back twice."""
    paid = paid_and_refunded(banked, outbox, refunded)
    sepa.take(sepa.statement([Entry(order=paid, into=False, reason="MD06", on="2026-03-09")], number=2))
    sepa.pass_to_file(banked.api)
    refund = Payment.objects.get(chain=paid, payment_type="RF")
    assert code(banked, refund.id.hex) == "800.110.100"
    assert BankOrder.objects.get(pk=refund.pk).reason == "AM05"
    assert len(sepa.files_in(outbox)) == 1  # that of the collection


def test_a_refund_of_a_return_that_was_won_back_is_sent(banked: Shop, outbox: Path) -> None:
    paid = paid_and_refunded(banked, outbox, "92.00")
    sepa.take(sepa.statement([Entry(order=paid, into=False, reason="MD06", on="2026-03-09")], number=2))
    sepa.take(sepa.statement([Entry(order=paid, reversal=True, on="2026-03-20")], number=3))
    sepa.pass_to_file(banked.api)
    assert BankOrder.objects.get(kind=BankFile.Kind.PAY).state == BankOrder.State.FILED


def test_a_return_that_another_door_entered_is_no_finding_and_is_won_back(banked: Shop, outbox: Path) -> None:
    """The settlement's own reading of the statement, or a clerk, was faster; the reversal follows what they entered."""
    paid = sepa.debit(banked.api)
    filed(banked, outbox)
    sepa.take(sepa.statement([Entry(order=paid.id)]))
    assert code(banked, paid.id) == SUCCESS
    payment = Payment.objects.get(pk=paid.id)
    reply = AcquirerReply(code="000.100.206", approved=payment.money)
    elsewhere = acquirer_reported.record_acquirer_reported_follow_up(
        "CB", payment.id, banked.merchant, payment.amount, "EUR", reply, origin="settlement"
    )
    back = sepa.take(sepa.statement([Entry(order=paid.id, into=False, reason="MD06", on="2026-03-09")], number=2))
    registry.run_timer_now("bank answers")
    assert BankMessage.objects.get(pk=back.pk).findings == []
    sepa.take(sepa.statement([Entry(order=paid.id, reversal=True, on="2026-03-20")], number=3))
    registry.run_timer_now("bank answers")
    (won,) = Payment.objects.filter(chain=paid.id, payment_type="CR")
    assert (won.referenced, won.status) == (elsewhere.id, "APPROVED")
    assert Payment.objects.filter(chain=paid.id, payment_type="CB").count() == 1
