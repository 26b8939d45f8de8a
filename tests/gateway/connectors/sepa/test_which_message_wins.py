"""A rejection, a booking and a return of one order, in every order of their messages: the money decides.

Source: docs/connectors/sepa.md (which message wins); ISO 20022: a pain.002 says what a bank means to do, a camt.05x
what stands on the account.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import permutations
from pathlib import Path

import pytest

from gateway.models import (
    BankFile,
    BankMessage,
    BankOrder,
    BankOrderEvent,
    MandateMail,
    Notification,
    Payment,
    SepaMandate,
)
from gateway.payments import bank_order_outcomes
from gateway.payments.chain_amounts import ZERO_AMOUNT, sum_payment_amounts
from gateway.scheduling import job_runs
from gateway.scheduling.models import Job, JobRun
from gateway.timers import registry
from tests.support import sepa, subscriptions
from tests.support.fixtures import Shop
from tests.support.sepa import Entry

EARLY, BOOKED_ON, LATE, RETURNED_ON = "2026-01-03", "2026-01-05", "2026-01-07", "2026-01-08"
IN, IN_AGAIN, BACK, BACK_AGAIN = "in, camt.054", "in, camt.053", "back, camt.054", "back, camt.053"
NOT_DONE, NOT_DONE_LATE = "rejected before", "rejected after"


def money_of(paid: str) -> Decimal:
    """What the ledger says the merchant has of it."""
    rows = list(Payment.objects.filter(chain=paid, status="APPROVED"))
    ways = {"DB": 1, "CB": -1, "CR": 1}
    return sum((ways[row.payment_type] * sum_payment_amounts([row]) for row in rows), ZERO_AMOUNT)


def tell(kind: str, orders: Sequence[str], file: str, number: int) -> BankMessage:
    """One message of a kind about these orders."""
    if kind in (NOT_DONE, NOT_DONE_LATE):
        rejected = dict.fromkeys(orders, ("RJCT", "MS03"))
        made_on = EARLY if kind == NOT_DONE else LATE
        return sepa.take(sepa.status(file, orders=rejected, number=number, made_on=made_on))
    back = kind in (BACK, BACK_AGAIN)
    on = RETURNED_ON if back else BOOKED_ON
    entries = [Entry(order=one, into=not back, reason="MS03" if back else "", on=on) for one in orders]
    make = sepa.notification if kind in (IN, BACK) else sepa.statement
    return sepa.take(make(entries, number=number))


def play(banked: Shop, kinds: Sequence[str], *, between: bool) -> dict[str, tuple[str, ...]]:
    """One collection for each order of the messages: payment → its order. ``between``: payments are moved after each
    message, else after the last."""
    orders = list(permutations(kinds))
    paid = {sepa.debit(banked.api, merchantTransactionId=f"order-{n:04}").id: order for n, order in enumerate(orders)}
    sepa.pass_to_file(banked.api)
    file, number = BankFile.objects.get(), 0
    for step in range(len(kinds)):
        for kind in kinds:
            if named := [ident for ident, order in paid.items() if order[step] == kind]:
                number += 1
                tell(kind, named, file.message_id, number)
        if between:
            registry.run_timer_now("bank answers")
    for _ in range(10):
        registry.run_timer_now("bank answers")
    assert not BankOrderEvent.objects.filter(applied=False).exists()
    return paid


@pytest.mark.parametrize("between", [True, False], ids=["each applied", "all at once"])
@pytest.mark.parametrize(
    ("kinds", "left"),
    [
        ((IN, IN_AGAIN), 92),
        ((NOT_DONE, IN), 92),
        ((NOT_DONE, IN, IN_AGAIN), 92),
        ((IN, BACK), 0),
        ((NOT_DONE, BACK), 0),
        ((NOT_DONE, IN, BACK), 0),
        ((NOT_DONE_LATE, IN), 0),
        ((NOT_DONE_LATE, IN, BACK), 0),
        ((NOT_DONE, IN, IN_AGAIN, BACK), 0),
        ((NOT_DONE, IN, BACK, BACK_AGAIN), 0),
        ((NOT_DONE, NOT_DONE_LATE, IN, BACK), 0),
    ],
    ids=lambda value: " + ".join(value) if isinstance(value, tuple) else "",
)
def test_the_ledger_has_what_the_account_has_in_every_order_of_the_messages(
    banked: Shop, outbox: Path, kinds: tuple[str, ...], left: int, between: bool
) -> None:
    paid = play(banked, kinds, between=between)
    states = {ident: BankOrder.objects.get(pk=ident).state for ident in paid}
    wrong = {order: (states[ident], money_of(ident)) for ident, order in paid.items() if money_of(ident) != left}
    assert wrong == {}
    assert set(states.values()) <= ({"BOOKED"} if left else {"RETURNED", "REJECTED"})


def test_a_booking_after_a_rejection_approves_the_payment_and_tells(banked: Shop, outbox: Path) -> None:
    paid = sepa.debit(banked.api, createRegistration="true", customer__email="jane@mail.example").id
    sepa.pass_to_file(banked.api)
    tell(NOT_DONE, [paid], BankFile.objects.get().message_id, 1)
    registry.run_timer_now("bank answers")
    assert banked.api.read(paid).code == "800.100.200"
    mandate = SepaMandate.objects.get()
    assert mandate.first_payment is None
    assert MandateMail.objects.count() == 1
    told = tell(IN, [paid], "", 2)
    registry.run_timer_now("bank answers")
    answer = banked.api.read(paid)
    assert (answer.code, answer.body["amount"]) == ("000.100.112", "92.00")
    assert "registrationId" in answer.body
    mandate.refresh_from_db()
    assert mandate.first_payment is not None
    told.refresh_from_db()
    assert told.findings == [
        f"order {paid}: the bank booked it after it was declined (800.100.200): it is approved now"
    ]
    assert MandateMail.objects.count() == 1, "the mandate was mailed before the first message"
    updates = Notification.objects.filter(payment=paid, kind="PAYMENT").order_by("sequence")
    assert [row.action for row in updates] == ["CREATED", "UPDATED", "UPDATED"]
    assert banked.api.follow(paid, "RF", "92.00").code.startswith("800.400.5")


def test_an_event_that_cannot_be_applied_is_a_finding_of_its_message_and_is_tried_again(
    banked: Shop, outbox: Path
) -> None:
    stuck, other = (sepa.debit(banked.api, merchantTransactionId=f"order-{n:04}").id for n in range(2))
    sepa.pass_to_file(banked.api)
    told = tell(IN, [stuck, other], "", 1)
    Payment.objects.filter(pk=stuck).update(answer=["not what an answer is"])
    for _ in range(2):
        registry.run_timer_now("bank answers")
    assert (Payment.objects.get(pk=stuck).status, Payment.objects.get(pk=other).status) == ("PENDING", "APPROVED")
    assert BankOrderEvent.objects.get(applied=False).order_id.hex == stuck
    told.refresh_from_db()
    assert told.findings == [
        f"order {stuck}: booked could not be applied to its payment (AttributeError): it is tried again"
    ]


def test_orders_whose_events_fail_for_good_keep_no_other_waiting(
    banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many they are: here as many as are read at once."""
    monkeypatch.setattr(bank_order_outcomes, "BANK_ORDER_EVENT_BATCH_SIZE", 2)
    *stuck, other = (sepa.debit(banked.api, merchantTransactionId=f"order-{n:04}").id for n in range(5))
    sepa.pass_to_file(banked.api)
    for number, one in enumerate([*stuck, other], start=1):
        tell(IN, [one], "", number)
    Payment.objects.filter(pk__in=stuck).update(answer=["not what an answer is"])
    assert registry.run_timer_now("bank answers") == 1
    assert Payment.objects.get(pk=other).status == "APPROVED"
    assert BankOrderEvent.objects.filter(applied=False).count() == len(stuck)


def test_an_event_that_fails_is_looked_at_once_in_a_run(
    banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though another order has several events, which a run applies one after the other."""
    stuck, other = (sepa.debit(banked.api, merchantTransactionId=f"order-{n:04}").id for n in range(2))
    sepa.pass_to_file(banked.api)
    tell(IN, [stuck, other], "", 1)
    tell(BACK, [other], "", 2)
    Payment.objects.filter(pk=stuck).update(answer=["not what an answer is"])
    looked_at: list[str] = []
    apply = bank_order_outcomes._apply_event

    def note(event: BankOrderEvent) -> bool:
        looked_at.append(event.order_id.hex)
        return apply(event)

    monkeypatch.setattr(bank_order_outcomes, "_apply_event", note)
    assert registry.run_timer_now("bank answers") == 2
    assert (looked_at.count(stuck), looked_at.count(other)) == (1, 2)


def test_a_late_booking_is_entered_once_though_a_worker_died_before_it_said_so(banked: Shop, outbox: Path) -> None:
    paid = sepa.debit(banked.api).id
    sepa.pass_to_file(banked.api)
    tell(NOT_DONE, [paid], BankFile.objects.get().message_id, 1)
    registry.run_timer_now("bank answers")
    told = tell(IN, [paid], "", 2)
    registry.run_timer_now("bank answers")
    before = (money_of(paid), Notification.objects.count(), Payment.objects.get(pk=paid).sequence)
    assert BankOrderEvent.objects.filter(order=paid, state="BOOKED").update(applied=False) == 1
    registry.run_timer_now("bank answers")
    assert (money_of(paid), Notification.objects.count(), Payment.objects.get(pk=paid).sequence) == before
    told.refresh_from_db()
    assert (len(told.findings), BankOrderEvent.objects.filter(applied=False).count()) == (1, 0)


def test_a_refund_that_was_rejected_and_paid_all_the_same_is_a_refund(banked: Shop, outbox: Path) -> None:
    paid = sepa.debit(banked.api).id
    sepa.pass_to_file(banked.api)
    tell(IN, [paid], "", 1)
    registry.run_timer_now("bank answers")
    refund = banked.api.follow(paid, "RF", "92.00").id
    sepa.pass_to_file(banked.api)
    file = BankOrder.objects.select_related("file").get(pk=refund).file
    assert file is not None
    tell(NOT_DONE, [refund], file.message_id, 2)
    registry.run_timer_now("bank answers")
    assert Payment.objects.get(pk=refund).status == "DECLINED"
    sepa.take(sepa.statement([Entry(order=refund, into=False)], number=3))
    registry.run_timer_now("bank answers")
    assert Payment.objects.get(pk=refund).status == "APPROVED"
    assert banked.api.follow(paid, "RF", "1.00").code == "700.400.200"
    sepa.take(sepa.statement([Entry(order=refund, reason="AC04", on=RETURNED_ON)], number=4))
    registry.run_timer_now("bank answers")
    assert Payment.objects.get(pk=refund).returned_at is not None


def test_a_run_that_is_booked_after_its_rejection_is_paid_and_its_job_goes_on(banked: Shop, outbox: Path) -> None:
    """In the transaction that approves its payment: no retry can begin between the two."""
    kept = sepa.debit(banked.api, createRegistration="true").id
    sepa.pass_to_file(banked.api)
    tell(IN, [kept], "", 1)
    registry.run_timer_now("bank answers")
    registration = banked.api.read(kept).body["registrationId"]
    job = Job.objects.get(pk=subscriptions.started(banked.api, registration, testMode="EXTERNAL").id)
    banked.merchant.refresh_from_db()
    subscriptions.step(banked.merchant)
    run = JobRun.objects.get()
    assert run.payment is not None
    sepa.pass_to_file(banked.api)
    file = BankOrder.objects.select_related("file").get(pk=run.payment).file
    assert file is not None
    sepa.take(sepa.status(file.message_id, orders={run.payment.hex: ("RJCT", "AC04")}, number=2, made_on=EARLY))
    registry.run_timer_now("bank answers")
    job_runs.recheck_run(run.pk)
    run.refresh_from_db()
    job.refresh_from_db()
    assert (run.state, job.state, job.reason, job.declined) == ("FAILED", "SUSPENDED", "DO_NOT_RETRY", 1)
    sepa.take(sepa.notification([Entry(order=run.payment.hex, amount="9.90")], number=3))
    registry.run_timer_now("bank answers")
    run.refresh_from_db()
    job.refresh_from_db()
    assert (run.state, job.state, job.reason, job.declined) == ("PAID", "ACTIVE", "", 0)
