"""Chargeback lines and the ledger: each chargeback is booked once, from whatever source and however often it comes.
Source: decision 0038."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError, connection, transaction

from chargebacks import cases, ledger
from chargebacks.models import Chargeback
from chargebacks.stages import DisputeStage
from gateway.db.database_clock import read_database_time
from gateway.models import Payment, RequestLog
from reporting.models import ClearingInstitute, Finding, Match, SettlementFile, SettlementRecord
from reporting.settlement import chargeback_booking, exception_queue, files, intake
from tests.support.database import until_somebody_waits_for_a_lock
from tests.support.fixtures import Shop
from tests.support.settlement import BY, csv, institute, line, payment_of, take_in
from tests.support.threads import InThread, at_once

pytestmark = pytest.mark.django_db


def disputed(payment: Payment, amount: str, **changes: str) -> dict[str, str]:
    values = {
        "ReconciliationType": "CHARGEBACK",
        "Amount": amount,
        "SettlementTxId": "D-1",
        "ReasonCode": "000.100.206",
        "UniqueID": payment.id.hex,
        **changes,
    }
    if values["ReconciliationType"] != "CHARGEBACK":
        values.pop("ReasonCode")
    return line(payment, **values)


def reversal(payment: Payment, amount: str, **changes: str) -> dict[str, str]:
    return disputed(payment, amount, ReconciliationType="CHARGEBACK REVERSAL", SettlementTxId="R-1", **changes)


def chain_of(shop: Shop, payment: Payment) -> list[tuple[str, str]]:
    """As a merchant's query tells it, oldest first."""
    answer = shop.api.get("/v1/query", merchantTransactionId="order-booked", includeLinkedTransactions="true")
    told = answer.body["payments"]
    assert {one["id"] for one in told} >= {payment.id.hex}
    return sorted((one["paymentType"], one["amount"]) for one in told)


def paid(shop: Shop, amount: str) -> Payment:
    return payment_of(shop.api.pay(amount=amount, merchantTransactionId="order-booked").id)


def found() -> list[str]:
    return sorted(Finding.objects.filter(closed_at=None).values_list("kind", flat=True))


@pytest.mark.parametrize("tx_id", ["D-1", ""])
def test_a_line_that_stands_twice_in_a_file_is_booked_once(shop: Shop, tx_id: str) -> None:
    payment = paid(shop, "62.00")
    row = disputed(payment, "10.00", SettlementTxId=tx_id)
    take_in(csv([row, row]), institute())
    assert chain_of(shop, payment) == [("CB", "10.00"), ("DB", "62.00")]
    assert found() == ["TWICE"]
    assert SettlementRecord.objects.filter(chargeback=None).count() == 1


def test_a_file_that_is_sent_again_with_other_bytes_books_nothing_again(shop: Shop) -> None:
    payment, of = paid(shop, "60.00"), institute()
    take_in(csv([disputed(payment, "25.00"), reversal(payment, "25.00")]), of)
    take_in(csv([disputed(payment, "25.00"), reversal(payment, "25.00")], end="# sent again\r\n"), of)
    assert chain_of(shop, payment) == [("CB", "25.00"), ("CR", "25.00"), ("DB", "60.00")]
    assert found() == ["TWICE", "TWICE"]


def test_two_chargebacks_of_one_amount_with_ids_of_their_own_are_two(shop: Shop) -> None:
    payment = paid(shop, "60.00")
    take_in(csv([disputed(payment, "25.00"), disputed(payment, "25.00", SettlementTxId="D-2")]), institute())
    assert chain_of(shop, payment) == [("CB", "25.00"), ("CB", "25.00"), ("DB", "60.00")]
    assert found() == []


def test_a_chargeback_by_api_is_joined_before_any_tick_has_made_its_case(shop: Shop) -> None:
    payment = paid(shop, "160.00")
    told = shop.api.follow(payment.id.hex, "CB", "60.00", chargebackResultCode="000.100.206")
    take_in(csv([disputed(payment, "60.00")]), institute())
    assert chain_of(shop, payment) == [("CB", "60.00"), ("DB", "160.00")]
    assert SettlementRecord.objects.get().chargeback == Chargeback.objects.get().id == payment_of(told.id).id
    assert found() == []


def test_the_lines_of_a_dispute_that_is_won_already_are_joined(shop: Shop) -> None:
    payment = paid(shop, "130.00")
    back = shop.api.follow(shop.api.follow(payment.id.hex, "CB", "130.00").id, "CR", "130.00")
    cases.adopt_recent_payments()
    take_in(csv([disputed(payment, "130.00"), reversal(payment, "130.00")]), institute())
    assert chain_of(shop, payment) == [("CB", "130.00"), ("CR", "130.00"), ("DB", "130.00")]
    assert [one.chargeback for one in SettlementRecord.objects.order_by("line")] == [
        Chargeback.objects.get().id,
        payment_of(back.id).id,
    ]
    assert (found(), Chargeback.objects.get().state) == ([], "WON")


def test_a_long_booking_keeps_its_lease_and_remembers_how_far_it_is(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that renews nothing for its lease's time counts as dead, and another one begins."""
    payment = paid(shop, "60.00")
    file = take_in(csv([disputed(payment, "5.00", SettlementTxId=f"D-{number}") for number in range(5)]), institute())
    SettlementRecord.objects.update(chargeback=None)
    SettlementFile.objects.update(book_line=0)
    lines = list(SettlementRecord.objects.order_by("line").values_list("line", flat=True))
    done: list[object] = []
    monkeypatch.setattr(chargeback_booking, "LINES_PER_LEASE_RENEWAL", 2)
    monkeypatch.setattr(chargeback_booking, "book_record", lambda record, by: done.append(record.line))

    def remember_line() -> int:
        return SettlementFile.objects.values_list("book_line", flat=True).get()

    chargeback_booking.book_chargebacks(file, lambda: done.append("renewed"))
    assert done == [*lines[:2], "renewed", *lines[2:4], "renewed", lines[4]]
    assert remember_line() == lines[3]

    def lose() -> None:
        raise intake.IntakeLeaseLostError

    file.book_line = 0
    SettlementFile.objects.update(book_line=0)
    with pytest.raises(intake.IntakeLeaseLostError):
        chargeback_booking.book_chargebacks(file, lose)
    assert remember_line() == 0, "what another worker has now is not moved"


def test_a_second_chargeback_after_the_representment_has_a_line_of_its_own(shop: Shop) -> None:
    payment, of = paid(shop, "60.00"), institute()
    take_in(csv([disputed(payment, "60.00"), reversal(payment, "60.00")]), of)
    take_in(csv([disputed(payment, "60.00", SettlementTxId="D-2")]), of)
    assert chain_of(shop, payment) == [("CB", "60.00"), ("CB", "60.00"), ("CR", "60.00"), ("DB", "60.00")]
    assert found() == []


@pytest.mark.parametrize(
    "changes, why",
    [
        ({"Currency": "USD", "SettlementFxRate": "0.92", "SettlementAmount": "13.80"}, "it is in USD"),
        ({"SettlementStatus": "FAILED"}, "it failed"),
        ({"Cashflow": "POS"}, "it flows POS"),
        ({"Amount": "999999999999.00", "SettlementAmount": "999999999999.00"}, "amount"),
    ],
)
def test_what_no_chargeback_can_be_made_of_is_not_booked_and_spoils_nothing_else(
    shop: Shop, changes: dict[str, str], why: str
) -> None:
    payment = paid(shop, "60.00")
    file = take_in(csv([disputed(payment, "15.00", **changes), disputed(payment, "5.00")]), institute())
    assert file.state == "DONE"
    assert chain_of(shop, payment) == [("CB", "5.00"), ("DB", "60.00")]
    assert why in Finding.objects.get(kind="NOT_BOOKED").found


def test_a_part_of_a_yen_is_not_booked_and_spoils_nothing_else(shop: Shop) -> None:
    other = shop.open_channel(currencies=["JPY"])
    payment = payment_of(shop.api_of(other).pay(amount="92", currency="JPY").id)
    file = take_in(csv([disputed(payment, "91.50")]), institute())
    assert (file.state, found().count("NOT_BOOKED"), Chargeback.objects.count()) == ("DONE", 1, 0)


def test_a_code_that_is_no_reason_is_an_error_of_its_line(shop: Shop) -> None:
    payment = paid(shop, "60.00")
    bad = disputed(payment, "15.00", ReasonCode="000.100.2111")
    file = take_in(csv([bad, disputed(payment, "5.00")]), institute())
    assert (file.state, file.faults, file.errors.get().column) == ("DONE", 1, "ReasonCode")
    assert chain_of(shop, payment) == [("CB", "5.00"), ("DB", "60.00")]


def test_why_a_line_is_not_booked_is_said_and_a_broken_connection_is_no_such_reason(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that is away is tried again; a finding would stand for good."""
    payment = paid(shop, "60.00")
    take_in(csv([reversal(payment, "25.00")]), institute())
    assert Finding.objects.get().found == chargeback_booking.NO_CHARGEBACK_TO_REVERSE
    record = SettlementRecord.objects.get()

    def fail(_chain: object) -> None:
        raise OperationalError

    monkeypatch.setattr(cases, "adopt_chain_payments", fail)
    with pytest.raises(OperationalError):
        chargeback_booking.book_record(record, BY)
    assert Finding.objects.count() == 1


def test_a_line_that_is_tried_again_in_vain_dates_its_own_exception_anew(shop: Shop) -> None:
    own = institute()
    for number in ("1", "2"):
        take_in(csv([reversal(paid(shop, "60.00"), f"2{number}.00")]), own)
    tried, other = Finding.objects.order_by("made_at")
    Finding.objects.filter(pk=tried.pk).update(found="an earlier reason")
    chargeback_booking.book_record(tried.record, BY)
    assert Finding.objects.get(pk=tried.pk).found == chargeback_booking.NO_CHARGEBACK_TO_REVERSE
    assert Finding.objects.get(pk=tried.pk).made_at > other.made_at
    assert Finding.objects.get(pk=other.pk).made_at == other.made_at


def test_a_reversal_that_comes_before_its_chargeback_is_entered_after_it(shop: Shop) -> None:
    payment = paid(shop, "60.00")
    take_in(csv([reversal(payment, "60.00"), disputed(payment, "60.00")]), institute())
    assert chain_of(shop, payment) == [("CB", "60.00"), ("CR", "60.00"), ("DB", "60.00")]
    assert (found(), Finding.objects.get().note) == ([], chargeback_booking.BOOKED_LATER_NOTE)


def test_what_a_clerk_closed_keeps_its_note_when_the_line_is_booked_later(shop: Shop) -> None:
    payment, own = paid(shop, "60.00"), institute()
    take_in(csv([reversal(payment, "60.00")]), own)
    assert found() == ["NOT_BOOKED"]
    seen = Finding.objects.get()
    seen.pk, seen.kind, seen.closed_at, seen.closed_by, seen.note = None, "TWICE", read_database_time(), "Ada", "seen"
    seen.save()
    take_in(csv([disputed(payment, "60.00")]), own)
    assert chain_of(shop, payment) == [("CB", "60.00"), ("CR", "60.00"), ("DB", "60.00")]
    assert dict(Finding.objects.values_list("kind", "note")) == {
        "NOT_BOOKED": chargeback_booking.BOOKED_LATER_NOTE,
        "TWICE": "seen",
    }


def test_a_line_finds_the_chargeback_that_was_entered_by_hand_after_it(shop: Shop) -> None:
    payment = paid(shop, "60.00")
    assert shop.api.follow(payment.id.hex, "RF", "50.00").status == 200
    take_in(csv([disputed(payment, "10.00", SettlementStatus="FAILED"), reversal(payment, "10.00")]), institute())
    assert found() == ["FAILED", "NOT_BOOKED", "NOT_BOOKED"]
    assert chargeback_booking.retry_unbooked_records() == 0
    case = ledger.record_chargeback(payment, Decimal("10.00"), by=BY)
    ledger.record_chargeback_reversal(case, by=BY)
    assert chargeback_booking.retry_unbooked_records() == 1
    assert found() == ["FAILED", "NOT_BOOKED"]
    assert SettlementRecord.objects.get(line=2).chargeback is not None


def test_what_a_clerk_has_looked_at_is_entered_although_another_line_tells_of_the_same(shop: Shop) -> None:
    payment = paid(shop, "60.00")
    row = disputed(payment, "10.00", SettlementTxId="")
    take_in(csv([row, row]), institute())
    waiting = SettlementRecord.objects.get(chargeback=None)
    exception_queue.book_linked_record(waiting, BY)
    assert chain_of(shop, payment) == [("CB", "10.00"), ("CB", "10.00"), ("DB", "60.00")]
    with pytest.raises(exception_queue.ExceptionActionError, match="is in the ledger"):
        exception_queue.book_linked_record(SettlementRecord.objects.get(pk=waiting.pk), BY)


def test_a_link_is_not_undone_once_its_chargeback_is_entered_meanwhile(shop: Shop) -> None:
    """The clerk's page was read before the line was entered."""
    payment = paid(shop, "60.00")
    row = disputed(payment, "10.00", SettlementTxId="")
    take_in(csv([row, row]), institute())
    seen = SettlementRecord.objects.get(chargeback=None)
    exception_queue.book_linked_record(SettlementRecord.objects.get(pk=seen.pk), BY)
    with pytest.raises(exception_queue.ExceptionActionError, match="somebody else has changed this line"):
        exception_queue.undo_resolution(seen, BY)
    seen.refresh_from_db()
    assert (seen.state, seen.chargeback is not None) == ("MATCHED", True)


def _waiting_line(shop: Shop) -> SettlementRecord:
    """The second of two equal lines."""
    row = disputed(paid(shop, "60.00"), "10.00", SettlementTxId="")
    take_in(csv([row, row]), institute())
    return SettlementRecord.objects.get(chargeback=None)


@pytest.mark.django_db(transaction=True)
def test_a_link_is_not_undone_while_its_chargeback_is_entered(committed: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    record = _waiting_line(committed)
    undoing = InThread(lambda: exception_queue.undo_resolution(record, BY))
    adopt = cases.adopt_chain_payments

    def adopt_while_somebody_undoes(chain: Any) -> None:
        adopt(chain)
        undoing.start()
        until_somebody_waits_for_a_lock()

    monkeypatch.setattr(cases, "adopt_chain_payments", adopt_while_somebody_undoes)
    exception_queue.book_linked_record(SettlementRecord.objects.get(pk=record.pk), BY)
    assert isinstance(undoing.end(), exception_queue.ExceptionActionError)
    record.refresh_from_db()
    assert (record.state, record.chargeback is not None) == ("MATCHED", True)


@pytest.mark.django_db(transaction=True)
def test_no_chargeback_is_entered_of_a_line_whose_link_is_undone_at_that_moment(committed: Shop) -> None:
    record = _waiting_line(committed)
    booking = InThread(lambda: chargeback_booking.book_record(record, BY, allow_duplicate=True))
    with transaction.atomic():
        exception_queue.undo_resolution(SettlementRecord.objects.get(pk=record.pk), BY)
        booking.start()
        until_somebody_waits_for_a_lock()
    assert booking.end() is None
    record.refresh_from_db()
    assert (record.state, record.chargeback) == ("NOT_MATCHED", None)
    assert Payment.objects.filter(payment_type="CB").count() == 1


def _received(of: ClearingInstitute, content: bytes) -> Any:
    source = SettlementFile.Source.COMMAND
    return files.receive_file(io.BytesIO(content), name="a.csv", institute=of, by=BY, source=source).pk


@pytest.mark.django_db(transaction=True)
def test_two_institutes_that_tell_of_the_same_at_once_book_it_once(committed: Shop) -> None:
    payment = paid(committed, "120.00")
    one = _received(institute(), csv([disputed(payment, "50.00")]))
    two = _received(institute(key="other", name="Other"), csv([disputed(payment, "50.00")]))
    assert at_once(lambda: intake.process_file(one), lambda: intake.process_file(two)) == [True, True]
    assert chain_of(committed, payment) == [("CB", "50.00"), ("DB", "120.00")]
    assert found() == ["TWICE"]


@pytest.mark.django_db(transaction=True)
def test_two_lines_with_ids_of_their_own_are_joined_to_two_chargebacks_or_one_is_entered(committed: Shop) -> None:
    payment = paid(committed, "150.00")
    ledger.record_chargeback(payment, Decimal("50.00"), by=BY)
    one = _received(institute(), csv([disputed(payment, "50.00")]))
    two = _received(institute(key="other", name="Other"), csv([disputed(payment, "50.00", SettlementTxId="D-2")]))
    assert at_once(lambda: intake.process_file(one), lambda: intake.process_file(two)) == [True, True]
    assert chain_of(committed, payment) == [("CB", "50.00"), ("CB", "50.00"), ("DB", "150.00")]
    assert len(set(SettlementRecord.objects.values_list("chargeback", flat=True))) == 2


@pytest.mark.django_db(transaction=True)
def test_an_api_chargeback_and_its_line_at_once_are_one(committed: Shop) -> None:
    payment = paid(committed, "160.00")
    file = _received(institute(), csv([disputed(payment, "60.00")]))

    def ask() -> bool:
        return committed.api.follow(payment.id.hex, "CB", "60.00", chargebackResultCode="000.100.206").status == 200

    at_once(ask, lambda: intake.process_file(file))
    cases.adopt_recent_payments()
    chargeback_booking.retry_unbooked_records()
    chain = chain_of(committed, payment)
    # Who asks by API after the line has entered its chargeback asks for another one.
    joined = SettlementRecord.objects.get().chargeback
    assert joined is not None
    source = Chargeback.objects.get(pk=joined).source
    assert chain.count(("CB", "60.00")) == (1 if source == "api" else 2)
    assert Match.objects.filter(chosen=True, undone_at=None).count() == 1


def test_what_a_file_books_says_that_it_came_by_file(shop: Shop) -> None:
    payment = paid(shop, "60.00")
    take_in(csv([disputed(payment, "25.00"), reversal(payment, "25.00")]), institute())
    logged = RequestLog.objects.filter(method="ENTER").order_by("at", "id")
    assert list(logged.values_list("path", flat=True)) == ["chargeback by file"] * 2


@pytest.mark.django_db(transaction=True)
def test_joining_a_line_waits_for_the_chain_before_it_holds_the_line(committed: Shop) -> None:
    """One order of locks: the chain's first payment, the notices, the line. Otherwise two workers deadlock."""
    payment = paid(committed, "160.00")
    ledger.record_chargeback(payment, Decimal("60.00"), by=BY)
    file = _received(institute(), csv([disputed(payment, "60.00")]))
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Payment.objects.select_for_update().get(pk=payment.chain)
            joining = pool.submit(_process_apart, file)
            wait_until(lambda: joining.done() or _is_somebody_waiting())
            assert not joining.done()
            SettlementRecord.objects.select_for_update(nowait=True).get()
        assert joining.result(30.0)
    assert SettlementRecord.objects.get().chargeback == Chargeback.objects.get().id


def _process_apart(file: Any) -> bool:
    try:
        return intake.process_file(file)
    finally:
        connection.close()


def _is_somebody_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)


# --- each part by itself ------------------------------------------------------------------------------------------


def a_record(**changes: Any) -> SettlementRecord:
    """A line that can be booked, with ``changes``; not stored."""
    usual = {
        "id": UUID(int=5), "record_type": "CHARGEBACK", "transaction_type": "DEBIT", "cashflow": "NEG",
        "settlement_status": "", "amount": Decimal("15.00"), "currency": "EUR", "reason_code": "000.100.206",
        "settlement_tx_id": "D-1", "settlement_date": date(2030, 1, 2), "version": 3,
        "respond_by": date(2030, 2, 3), "scheme_reason": "10.4", "scheme_case": "case-7", "arn": "arn-8",
        "dispute_stage": "", "file": SettlementFile(time_zone="Asia/Tokyo"),
    }  # fmt: skip
    return SettlementRecord(**usual | changes)


OF_PAYMENT = Payment(id=UUID(int=6), chain=UUID(int=7), currency="EUR")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"reason_code": ""}, ""),
        ({"settlement_status": "SETTLED"}, ""),
        ({"settlement_status": "FAILED"}, "the institute says that it failed"),
        ({"cashflow": "POS"}, "it flows POS, such a line flows NEG"),
        ({"record_type": "CHARGEBACK REVERSAL"}, "it flows NEG, such a line flows POS"),
        ({"record_type": "CHARGEBACK REVERSAL", "cashflow": "POS"}, ""),
        ({"currency": "USD"}, "it is in USD, the payment in EUR"),
        ({"reason_code": "000.100.110"}, "000.100.110 is no reason of a chargeback"),
        # Of several the first is told.
        ({"settlement_status": "FAILED", "cashflow": "POS", "currency": "USD"}, "the institute says that it failed"),
        ({"cashflow": "POS", "currency": "USD"}, "it flows POS, such a line flows NEG"),
    ],
)
def test_a_line_that_contradicts_itself_or_its_payment_is_not_booked(changes: dict[str, Any], why: str) -> None:
    if not why:
        chargeback_booking._check_bookable(a_record(**changes), OF_PAYMENT)
        return
    with pytest.raises(chargeback_booking.NotBookableError) as caught:
        chargeback_booking._check_bookable(a_record(**changes), OF_PAYMENT)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("changes", "payment", "same"),
    [
        ({}, UUID(int=6), True),
        ({"amount": Decimal(15)}, UUID(int=6), True),
        ({"reason_code": "other", "settlement_date": date(2031, 1, 1), "id": UUID(int=9)}, UUID(int=6), True),
        ({"record_type": "CHARGEBACK REVERSAL"}, UUID(int=6), False),
        ({"amount": Decimal("15.01")}, UUID(int=6), False),
        ({"currency": "USD"}, UUID(int=6), False),
        ({"settlement_tx_id": "D-2"}, UUID(int=6), False),
        ({}, UUID(int=8), False),
    ],
)
def test_two_lines_are_about_one_chargeback_by_the_institutes_id_of_it(
    changes: dict[str, Any], payment: UUID, same: bool
) -> None:
    first = chargeback_booking._duplicate_key(a_record(), OF_PAYMENT)
    second = chargeback_booking._duplicate_key(a_record(**changes), Payment(id=payment))
    assert (first == second) is same


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"arn": "other"}, True),
        ({"settlement_date": date(2030, 1, 3)}, False),
        ({"reason_code": "000.100.207"}, False),
        ({"settlement_tx_id": "D-1"}, False),
    ],
)
def test_without_an_id_two_lines_are_about_one_chargeback_by_day_and_reason(
    changes: dict[str, Any], same: bool
) -> None:
    first, second = a_record(settlement_tx_id=""), a_record(**{"settlement_tx_id": ""} | changes)
    keys = {chargeback_booking._duplicate_key(one, OF_PAYMENT) for one in (first, second)}
    assert (len(keys) == 1) is same


@pytest.mark.parametrize("stage", ["", *(str(one) for one in DisputeStage)])
def test_a_chargeback_is_entered_with_all_that_its_line_says(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    given: list[Any] = []

    def enter(*args: Any, **more: Any) -> Any:
        given.append((args, more))
        return SimpleNamespace(pk=UUID(int=11))

    monkeypatch.setattr(ledger, "record_chargeback", enter)
    key = UUID(int=10)
    assert chargeback_booking._charge_back(a_record(dispute_stage=stage), OF_PAYMENT, BY, key) == UUID(int=11)
    ((args, more),) = given
    assert args == (OF_PAYMENT, Decimal("15.00"))
    assert callable(more.pop("extra_writes"))
    assert more == {
        "reason": "000.100.206", "source": "file", "by": BY, "respond_by": date(2030, 2, 3), "reference": "D-1",
        "line": UUID(int=5), "duplicate_key": key, "scheme": cases.SchemeFacts(
            reason="10.4", case="case-7", arn="arn-8", stage=DisputeStage(stage) if stage else None,
            day=date(2030, 1, 2), zone="Asia/Tokyo",
        ),
    }  # fmt: skip


def test_a_reversal_is_entered_for_the_open_case_of_its_amount(monkeypatch: pytest.MonkeyPatch) -> None:
    case, asked, given = object(), [], []
    monkeypatch.setattr(ledger, "find_open_case", lambda *args: (asked.append(args), case)[1])

    def enter(*args: Any, **more: Any) -> Any:
        given.append((args, more))
        return SimpleNamespace(pk=UUID(int=11))

    monkeypatch.setattr(ledger, "record_chargeback_reversal", enter)
    key = UUID(int=10)
    assert chargeback_booking._reverse(a_record(), OF_PAYMENT, BY, key) == UUID(int=11)
    assert asked == [(OF_PAYMENT, Decimal("15.00"))]
    ((args, more),) = given
    assert args == (case, Decimal("15.00"))
    assert callable(more.pop("extra_writes"))
    assert more == {"source": "file", "by": BY, "line": UUID(int=5), "duplicate_key": key}


@pytest.mark.parametrize(
    "changes",
    [
        {"record_type": "SETTLED"},
        {"state": "NOT_MATCHED"},
        {"state": "MULTIPLE_MATCHES"},
        {"chargeback": UUID(int=1)},
        {"line": 0},
        {"file": None},
    ],
    ids=str,
)
def test_of_a_file_those_lines_are_booked_that_wait_for_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    """None of another kind, state or file, none that is booked, and none before where a run was interrupted."""
    payment = paid(shop, "60.00")
    own = institute()
    lines = [disputed(payment, "5.00", SettlementTxId=f"D-{number}") for number in range(3)]
    file = take_in(csv(lines), own)
    other = take_in(csv([disputed(payment, "5.00", SettlementTxId="D-9")]), own, "other.csv")
    SettlementRecord.objects.update(chargeback=None)
    SettlementFile.objects.filter(pk=file.pk).update(book_line=1)
    file.book_line = 1
    last = SettlementRecord.objects.filter(file=file).latest("line")
    SettlementRecord.objects.filter(pk=last.pk).update(**changes | ({"file": other} if "file" in changes else {}))
    booked: list[UUID] = []
    monkeypatch.setattr(chargeback_booking, "book_record", lambda record, by: booked.append(record.pk))
    chargeback_booking.book_chargebacks(file, lambda: None)
    expected = SettlementRecord.objects.filter(file=file, line__gt=1).exclude(pk=last.pk).order_by("line")
    assert booked == list(expected.values_list("pk", flat=True))
    assert booked


@pytest.mark.parametrize(
    ("changes", "tried"),
    [
        ({}, True),
        ({"chargeback": UUID(int=1)}, False),
        ({"state": "NOT_MATCHED"}, False),
        ({"finding": {"kind": "TWICE"}}, False),
        ({"finding": {"closed_at": datetime(2030, 1, 1, tzinfo=UTC)}}, False),
        ({"finding": {"made_at": datetime(2100, 1, 1, tzinfo=UTC)}}, False),
        (
            {"finding": {"made_at": datetime(2100, 1, 1, tzinfo=UTC),
                         "found": chargeback_booking.SAME_AMOUNT_PENDING}},
            True,
        ),
    ],
    ids=str,
)  # fmt: skip
def test_a_line_is_tried_again_when_something_happened_in_its_chain(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], tried: bool
) -> None:
    payment, own = paid(shop, "60.00"), institute()
    take_in(csv([reversal(payment, "25.00")]), own)
    take_in(csv([reversal(paid(shop, "61.00"), "26.00")]), own, "beside.csv")
    shop.api.follow(payment.id.hex, "RF", "1.00")
    record = SettlementRecord.objects.get(amount="25.00")
    of_record = {name: value for name, value in changes.items() if name != "finding"}
    finding = changes.get("finding", {})
    if of_record:
        SettlementRecord.objects.filter(pk=record.pk).update(**of_record)
    if finding:
        Finding.objects.filter(record=record).update(**finding)
    booked: list[UUID] = []
    monkeypatch.setattr(chargeback_booking, "book_record", lambda record, by: booked.append(record.pk))
    chargeback_booking.retry_unbooked_records()
    assert booked == ([record.pk] if tried else [])
