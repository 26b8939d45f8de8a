"""Captures by batch over ISO 8583: pending until the host has granted them and agrees with their sums."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from gateway.connectors import accounts
from gateway.connectors.circuit import get_account_circuit
from gateway.connectors.iso8583 import (
    batch_close,
    batch_lease,
    batch_planning,
    batch_run,
    batch_totals,
    batch_upload,
    batched_capture,
    capture_records,
)
from gateway.connectors.iso8583.batch_totals import BatchSums, TotalsVerdict
from gateway.connectors.iso8583.codec import MessageCodec
from gateway.connectors.iso8583.connector import ISO8583
from gateway.connectors.iso8583.iso_request import OriginalMessage
from gateway.connectors.iso8583.terminal import parse_terminal
from gateway.connectors.port import ConnectorAccount
from gateway.core import clock
from gateway.core.money import Money
from gateway.models import (
    AcquirerExchange,
    AuditEntry,
    BatchedCapture,
    CaptureBatch,
    Notification,
    OpenPayment,
    Payment,
    PaymentEvent,
    Suspension,
)
from gateway.payments import batched_captures, follow_ups
from gateway.timers import registry
from tests.support.acquirers import Killed
from tests.support.client import Answer
from tests.support.clock import jump, pass_time
from tests.support.database import places_of
from tests.support.fixtures import Shop
from tests.support.iso_host import PATIENCE_S, TIMEOUT_S, IsoHost, account_at_host
from tests.support.recovery import recover_after
from tests.support.threads import at_once

DAY_S = 24 * 3600.0
OK, WAITS, REVERSED, WITHDRAWN = "000.100.112", "800.400.500", "900.100.301", "100.396.201"
PAN = "4200000000000000"
State = BatchedCapture.State


@pytest.fixture
def host(iso_host: IsoHost, shop: Shop) -> Iterator[IsoHost]:
    """With all the patience of a slow machine: who needs less says so."""
    account_at_host(shop.channel, iso_host, capture="batch")
    accounts.clear_account_cache()
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=PATIENCE_S):
        yield iso_host


@pytest.fixture
def committed_host(iso_host: IsoHost, committed: Shop) -> Iterator[IsoHost]:
    """Its rows are seen by threads."""
    account_at_host(committed.channel, iso_host, capture="batch")
    accounts.clear_account_cache()
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=PATIENCE_S):
        yield iso_host


def authorised(shop: Shop, amount: str = "100.00", **more: str) -> str:
    answer = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount=amount, **more)
    assert answer.code == OK, answer
    return answer.id


def captured(shop: Shop, amount: str = "60.00") -> str:
    """A capture that waits for its batch."""
    answer = shop.api.follow(authorised(shop), "CP", amount)
    assert (answer.status, answer.code) == (200, WAITS), answer
    return answer.id


def decide(shop: Shop) -> CaptureBatch:
    """A day later: what waits is in a batch, and nobody has sent it."""
    jump(DAY_S)
    assert batch_planning.plan_due_batches()
    return CaptureBatch.objects.latest("number")


def send(patience_s: float = PATIENCE_S) -> int:
    """A tick, after every pause and lease."""
    CaptureBatch.objects.update(lease_until=None)
    CaptureBatch.objects.exclude(due_at=None).update(due_at=clock.real_now())
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=patience_s):
        return batch_run.send_due_batches(ISO8583)


def night(shop: Shop) -> CaptureBatch:
    batch = decide(shop)
    send()
    batched_captures.apply_capture_outcomes()
    batch.refresh_from_db()
    return batch


def status(payment: str) -> tuple[str, str]:
    row = Payment.objects.get(pk=payment)
    return row.status, row.result_code


def test_a_capture_waits_for_its_batch_and_is_approved_by_it(shop: Shop, host: IsoHost) -> None:
    """0220 for each, 0500 with counts and sums, and what 0510 says."""
    first, second = captured(shop, "60.00"), captured(shop, "15.50")
    assert not host.seen("0220")
    assert status(first) == ("PENDING", WAITS)
    batch = night(shop)
    assert [status(one) for one in (first, second)] == [("APPROVED", OK)] * 2
    assert (batch.state, batch.number, batch.count, batch.total) == ("BALANCED", 1, 2, Decimal("75.50"))
    sent = {message["63"]: message for message in host.seen("0220")}
    asked = {message["63"]: message for message in host.seen("0100")}
    capture = sent[UUID(first).hex]
    assert (capture["2"], capture["4"], capture["60"]) == (PAN, "000000006000", "000001")
    assert capture["37"] == asked[Payment.objects.get(pk=first).chain.hex]["37"]
    (sums,) = host.seen("0500")
    assert (sums["3"], sums["50"], sums["60"], sums["41"]) == ("920000", "978", "000001", "TERM0001")
    assert (sums["76"], sums["88"], sums["97"]) == ("0000000002", "0000000000007550", "D0000000000007550")
    assert {sums[name].strip("0") for name in ("74", "75", "77", "86", "87", "89")} == {""}
    assert batch.answer["66"] == "1"
    assert not host.seen("0320")
    events = PaymentEvent.objects.filter(payment=first).order_by("sequence").values_list("event", flat=True)
    assert list(events) == ["begin", "suspend", "approve"]
    told = Notification.objects.filter(payment=first).order_by("sequence").values_list("action", flat=True)
    assert list(told) == ["CREATED", "UPDATED"]


def test_a_taken_capture_is_refunded_like_any_other(shop: Shop, host: IsoHost) -> None:
    """It keeps its message's numbers: a later message names it by them. For a reversal it is too late: the sums of its
    batch are compared."""
    one, other = captured(shop), captured(shop, "30.00")
    assert shop.api.follow(one, "RF", "5.00").code == "700.400.570"
    night(shop)
    assert shop.api.follow(one, "RF", "5.00").code == OK
    assert shop.api.follow(other, "RV").code == "700.300.700"
    numbers = {message["63"]: message["11"] for message in host.seen("0220")}
    assert host.seen("0200")[0]["90"][:10] == f"0220{numbers[UUID(one).hex]}"
    assert not host.seen("0400")


def test_a_capture_that_waits_is_taken_out_by_a_reversal_and_never_sent(shop: Shop, host: IsoHost) -> None:
    """As a direct debit that no file has yet; the host never hears of either."""
    pa = authorised(shop)
    capture = shop.api.follow(pa, "CP", "60.00").id
    assert shop.api.follow(capture, "RV", "20.00").code == "700.100.200"
    reversal = shop.api.follow(capture, "RV")
    assert (reversal.status, reversal.code) == (200, OK)
    assert batched_captures.apply_capture_outcomes() == 1
    assert status(capture) == ("DECLINED", WITHDRAWN)
    jump(DAY_S)
    assert batch_planning.plan_due_batches() == 0
    assert shop.api.follow(pa, "CP", "100.00").code == WAITS
    assert not host.seen("0220") + host.seen("0400")
    assert BatchedCapture.objects.get(pk=capture).message_sealed is None


def test_a_reversal_of_a_capture_in_a_batch_is_too_late(shop: Shop, host: IsoHost) -> None:
    capture = captured(shop)
    decide(shop)
    late = shop.api.follow(capture, "RV")
    assert (late.status, late.code) == (400, "700.300.700")
    send()
    batched_captures.apply_capture_outcomes()
    assert shop.api.follow(capture, "RV").code == "700.300.700"
    assert shop.api.follow(capture, "RF", "60.00").code == OK
    assert not host.seen("0400")


def test_captures_go_at_the_accounts_hour_and_zone(shop: Shop, host: IsoHost) -> None:
    """The setting batch_at."""
    shop.channel.acquirer_accounts.update(
        settings={**shop.channel.acquirer_accounts.get().settings, "batch_at": "03:15", "time_zone": "Asia/Tokyo"}
    )
    accounts.clear_account_cache()
    capture = captured(shop)
    at = BatchedCapture.objects.get(pk=capture).present_at
    assert at is not None
    assert at.astimezone(ZoneInfo("Asia/Tokyo")).strftime("%H:%M") == "03:15"
    assert clock.merchant_now(shop.merchant) < at <= clock.merchant_now(shop.merchant) + timedelta(days=1)
    assert batch_planning.next_batch_run(shop.merchant) == at
    batch_planning.plan_due_batches()
    assert not CaptureBatch.objects.exists()
    pass_time(shop.api, days=1)
    assert status(capture) == ("APPROVED", OK)


def test_a_refused_capture_is_declined_and_counts_in_no_sum(shop: Shop, host: IsoHost) -> None:
    """Never silently approved: the host's own reason."""
    host.refuses = {1500: "51"}
    good, bad = captured(shop, "60.00"), captured(shop, "15.00")
    batch = night(shop)
    assert (status(good), status(bad)) == (("APPROVED", OK), ("DECLINED", "800.100.155"))
    assert (batch.state, batch.count, batch.total) == ("BALANCED", 1, Decimal("60.00"))
    assert Payment.objects.get(pk=bad).answer["resultDetails"]["AcquirerResponse"] == "51"
    assert host.seen("0500")[0]["76"] == "0000000001"


def test_a_batch_of_refused_captures_alone_has_no_sums(shop: Shop, host: IsoHost) -> None:
    host.refuses = {6000: "05"}
    capture = captured(shop)
    batch = night(shop)
    assert status(capture) == ("DECLINED", "800.100.152")
    assert (batch.state, batch.count, batch.findings) == (
        "BALANCED",
        0,
        ["no capture was granted, so there are no sums"],
    )
    assert not host.seen("0500")


def lose(host: IsoHost, payment: str) -> None:
    """The host has granted a capture and loses it again."""
    host.batches["000001"].pop(UUID(payment).hex)


@pytest.mark.parametrize("tells", [True, False])
def test_sums_that_differ_are_uploaded_and_asked_about_again(
    shop: Shop, host: IsoHost, tells: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0320 for each, and 0500 with other numbers; with the host's sums, or with its word (95) alone."""
    host.tells_sums = tells
    first, second = captured(shop, "60.00"), captured(shop, "15.00")
    close, seen = batch_run.close_batch, []

    def close_without_one(*args: Any) -> None:
        if not seen:
            lose(host, second)
        seen.append(status(first))
        close(*args)

    monkeypatch.setattr(batch_run, "close_batch", close_without_one)
    batch = night(shop)
    assert seen == [("PENDING", WAITS)] * 2
    assert (batch.state, batch.round, batch.count) == ("BALANCED", 1, 2)
    assert [status(one) for one in (first, second)] == [("APPROVED", OK)] * 2
    uploads = {message["63"]: message for message in host.seen("0320")}
    assert sorted(uploads) == sorted(UUID(one).hex for one in (first, second))
    assert {message["11"] for message in uploads.values()} == {message["11"] for message in host.seen("0220")}
    before, after = host.seen("0500")
    assert (before["3"], after["3"]) == ("920000", "960000")
    assert before["11"] != after["11"]
    (finding,) = batch.findings
    assert finding == (
        "sums differ: DE76: ours 2, theirs 1; DE88: ours 7500, theirs 6000"
        if tells
        else "sums differ: the host says so (95)"
    )


def out_of_balance(shop: Shop, host: IsoHost) -> tuple[str, CaptureBatch]:
    """The host says that sums differ, whatever it is sent."""
    host.next("0500", de39="95", de66="2", times=2)
    capture = captured(shop)
    return capture, night(shop)


def test_sums_that_still_differ_leave_the_captures_pending_until_somebody_looks(shop: Shop, host: IsoHost) -> None:
    """Never silently approved, never declined by us: sent once more by hand, it ends by what the host says."""
    capture, batch = out_of_balance(shop, host)
    assert (batch.state, batch.due_at, len(batch.findings)) == ("DIFFERS", None, 2)
    assert status(capture) == ("PENDING", WAITS)
    assert send() == 0
    assert batch_run.retry_batch(batch)
    assert send() == 1
    batched_captures.apply_capture_outcomes()
    assert status(capture) == ("APPROVED", OK)
    assert [message["t"] for message in host.log if message["t"].startswith("032")] == ["0320", "0321"]
    assert not batch_run.retry_batch(batch)


def test_sums_that_differ_can_be_taken_on_the_acquirers_word(shop: Shop, host: IsoHost) -> None:
    capture, batch = out_of_balance(shop, host)
    assert batch_close.accept_unbalanced_batch(batch, "Ms Example of the acquirer, by phone") == 1
    assert batch_close.accept_unbalanced_batch(batch, "again") == 0
    batched_captures.apply_capture_outcomes()
    batch.refresh_from_db()
    assert (status(capture)[0], batch.state) == ("APPROVED", "BALANCED")
    assert batch.findings[-1] == "accepted by hand: Ms Example of the acquirer, by phone"


def test_a_granted_capture_that_the_upload_refuses_is_declined_and_found(
    shop: Shop, host: IsoHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host's later word counts: nobody has been told of the first."""
    capture = captured(shop)
    host.next("0500", de39="95", de66="2")
    host.next("0320", de39="12")
    batch = night(shop)
    assert status(capture) == ("DECLINED", "800.100.170")
    assert any(
        f"capture {UUID(capture).hex} was granted (00), and its upload refused (12)" in one for one in batch.findings
    )


@pytest.mark.parametrize("how, arrives", [("lost", True), ("lost", False), ("hung up", True), ("hung up", False)])
@pytest.mark.parametrize("mti", ["0220", "0500", "0320"])
def test_what_got_no_answer_is_repeated_with_its_numbers_and_booked_once(
    shop: Shop, host: IsoHost, mti: str, how: str, arrives: bool
) -> None:
    """0221, 0501, 0321."""
    capture = captured(shop)
    if mti == "0320":
        host.next("0500", de39="95", de66="2")
    host.next(mti, how, arrives=arrives)
    batch = decide(shop)
    before = clock.real_now()
    assert send(TIMEOUT_S) == 0
    batch.refresh_from_db()
    assert batch.failure
    assert batch.due_at is not None
    assert batch.due_at > before + batch_run.BATCH_RETRY_PAUSES[0]
    host.wait(lambda: send(TIMEOUT_S) == 1, "its end")
    batched_captures.apply_capture_outcomes()
    assert status(capture) == ("APPROVED", OK)
    assert len(host.seen(mti)) == 1
    first, *again = ({**one, "t": ""} for one in host.seen(mti) + host.seen(mti[:3] + "1"))
    assert again
    assert all(one == first for one in again)
    assert host.batches == {"000001": {UUID(capture).hex: 6000}}


def test_a_host_that_is_away_is_tried_again_after_growing_pauses(shop: Shop, host: IsoHost) -> None:
    capture = captured(shop)
    decide(shop)
    host.stop()
    for pause in batch_run.BATCH_RETRY_PAUSES[:3]:
        before = clock.real_now()
        assert send(TIMEOUT_S) == 0
        batch = CaptureBatch.objects.get()
        assert batch.due_at is not None
        assert before + pause <= batch.due_at <= clock.real_now() + pause
    assert status(capture) == ("PENDING", WAITS)
    host.start()
    assert send() == 1


@pytest.mark.parametrize("code", ["96", "09"])
def test_no_verdict_is_asked_for_again(shop: Shop, host: IsoHost, code: str) -> None:
    """A host that is out of order has refused nothing."""
    capture, other = captured(shop), captured(shop, "15.00")
    host.next("0220", de39=code)
    host.next("0500", de39="96", de66=None, de76=None, de88=None)
    decide(shop)
    assert send() == 0
    assert BatchedCapture.objects.filter(code="00").count() == 1
    assert send() == 0
    assert "96" in CaptureBatch.objects.get().failure
    assert send() == 1
    batched_captures.apply_capture_outcomes()
    assert status(capture)[0] == status(other)[0] == "APPROVED"


def test_a_known_repeat_of_the_sums_needs_the_hosts_sums(shop: Shop, host: IsoHost) -> None:
    """94 alone says that it had the request, and not how that went."""
    captured(shop)
    host.next("0500", "hung up")
    host.next("0501", de39="94", de66=None, de76=None, de88=None)
    decide(shop)
    assert [send() for _ in range(3)] == [0, 0, 1]
    assert CaptureBatch.objects.get().state == "BALANCED"


KILLS: dict[str, tuple[Any, str]] = {
    "before the captures": (batch_upload, "ask_host"),
    "before a capture is noted": (batch_upload, "_record_host_answer"),
    "before the sums": (batch_run, "close_batch"),
    "before the sums go out": (batch_close, "ask_host"),
    "before the end is written": (batch_close, "_close_balanced"),
    "before the payment is told": (batched_captures.store, "complete_payment"),
}


@pytest.mark.parametrize("moment", [*KILLS, "after the captures", "after the sums", "after the payment is told"])
def test_a_sender_that_is_killed_leaves_nothing_doubled_and_nothing_undone(
    shop: Shop, host: IsoHost, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 between any two steps: the next tick goes on where it was."""
    payments = [captured(shop, amount) for amount in ("60.00", "15.00", "3.00")]

    def die(*_: Any, **__: Any) -> None:
        raise Killed

    def do_and_die(do: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **more: (do(*args, **more), die())

    with monkeypatch.context() as patch:
        if moment == "after the captures":
            # All are answered, none is noted: the worst moment of a round.
            patch.setattr(batch_upload, "ask_host", do_and_die(batch_upload.ask_host))
        elif moment == "after the sums":
            patch.setattr(batch_close, "ask_host", do_and_die(batch_close.ask_host))
        elif moment == "after the payment is told":
            patch.setattr(
                batched_captures.store, "complete_payment", do_and_die(batched_captures.store.complete_payment)
            )
        else:
            patch.setattr(*KILLS[moment], die)
        with pytest.raises(Killed):
            night(shop)
    batch = CaptureBatch.objects.get()
    assert batch.state in ("BALANCED", "PRESENTING", "CLOSING")
    assert batch_run.claim_due_batch() is None or batch.state == "BALANCED"
    send()
    batched_captures.apply_capture_outcomes()
    assert [status(one) for one in payments] == [("APPROVED", OK)] * 3
    assert host.batches == {"000001": dict(zip((UUID(one).hex for one in payments), (6000, 1500, 300), strict=True))}
    assert CaptureBatch.objects.get().state == "BALANCED"
    assert BatchedCapture.objects.filter(applied=False).count() == 0
    assert PaymentEvent.objects.filter(payment__in=payments, event="approve").count() == 3


def test_a_run_that_is_killed_while_it_decides_decides_nothing(
    shop: Shop, host: IsoHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = captured(shop)
    jump(DAY_S)
    with monkeypatch.context() as patch:
        patch.setattr(batch_planning, "_next_batch_number", lambda *_: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            batch_planning.plan_due_batches()
    assert not CaptureBatch.objects.exists()
    assert batch_planning.plan_due_batches() == 1
    send()
    batched_captures.apply_capture_outcomes()
    assert status(capture)[0] == "APPROVED"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("dies", ["before the books", "after the books"])
def test_a_worker_that_died_with_a_capture_is_settled_by_the_books(
    committed: Shop, committed_host: IsoHost, dies: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the books it waits for its batch; else it is declined, and finds that when it comes late."""
    pa = authorised(committed)

    def die(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(
            *(
                (capture_records, "store_batched_capture")
                if dies == "before the books"
                else (follow_ups, "complete_unless_recovered")
            ),
            die,
        )
        with pytest.raises(Killed):
            committed.api.follow(pa, "CP", "60.00")
    row = Payment.objects.get(referenced=pa)
    jump(DAY_S)
    assert batch_planning.plan_due_batches() == 0, "a payment that has no answer yet is in no batch"
    recover_after(120)
    if dies == "before the books":
        assert status(str(row.id)) == ("DECLINED", REVERSED)
        assert not committed_host.seen("0220") + committed_host.seen("0420")
        return
    assert status(str(row.id)) == ("PENDING", WAITS)
    batch_planning.plan_due_batches()
    send()
    batched_captures.apply_capture_outcomes()
    assert status(str(row.id)) == ("APPROVED", OK)


def test_a_capture_that_comes_late_finds_that_it_was_taken_back(shop: Shop, host: IsoHost) -> None:
    """A void of what never came."""
    pa = authorised(shop)
    seen: list[str] = []
    keep = capture_records.store_batched_capture

    def late(request: Any, *args: Any) -> BatchedCapture:
        seen.append(batched_capture.void_queued_capture(request).code)
        return keep(request, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capture_records, "store_batched_capture", late)
        answer = shop.api.follow(pa, "CP", "60.00")
    assert (seen, answer.code) == ([REVERSED], WITHDRAWN)
    jump(DAY_S)
    assert batch_planning.plan_due_batches() == 0


def reversal_of_a_worker_that_died(shop: Shop, capture: str, at: str) -> Payment:
    def die(*_: Any, **__: Any) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"gateway.payments.{at}", die)
        with pytest.raises(Killed):
            shop.api.follow(capture, "RV")
    return Payment.objects.get(referenced=capture)


@pytest.mark.django_db(transaction=True)
def test_a_reversal_whose_worker_died_is_answered_by_what_it_did(committed: Shop, committed_host: IsoHost) -> None:
    """Taken out: approved. Not: declined, and it takes nothing out any more."""
    done, undone = captured(committed), captured(committed)
    after = reversal_of_a_worker_that_died(committed, done, "follow_ups.complete_unless_recovered")
    before = reversal_of_a_worker_that_died(committed, undone, "process._call_acquirer")
    recover_after(120)
    assert status(str(after.id)) == ("APPROVED", OK)
    assert status(str(before.id)) == ("DECLINED", REVERSED)
    assert not capture_records.reverse_waiting_capture(UUID(undone), by=before.id)
    night(committed)
    assert (status(done)[0], status(undone)[0]) == ("DECLINED", "APPROVED")
    assert len(committed_host.seen("0220")) == 1


def test_at_its_deadline_a_capture_that_nobody_sent_is_declined_and_one_in_a_batch_waits(
    shop: Shop, host: IsoHost
) -> None:
    """A clock declines only what certainly never left."""
    there = captured(shop)
    decide(shop)
    kept = captured(shop)
    Suspension.objects.filter(payment__in=(there, kept)).update(deadline=clock.merchant_now(shop.merchant))
    registry.run_timer_now("shopper deadlines")
    assert (status(there), status(kept)[0]) == (("PENDING", WAITS), "DECLINED")
    send()
    batched_captures.apply_capture_outcomes()
    assert (status(there)[0], len(host.seen("0220"))) == ("APPROVED", 1)


def test_batches_of_one_account_are_numbered_and_go_one_after_the_other(shop: Shop, host: IsoHost) -> None:
    """A later one waits until the host has closed the one before; one that somebody has to look at holds up none."""
    first = captured(shop)
    decide(shop)
    second = captured(shop, "15.00")
    host.next("0220", "lost", arrives=False)
    decide(shop)
    assert send(TIMEOUT_S) == 0
    assert len(host.seen("0220")) == 1
    CaptureBatch.objects.filter(number=1).update(lease_until=None, due_at=clock.real_now())
    assert batch_run.send_due_batches(ISO8583) == 2
    batched_captures.apply_capture_outcomes()
    assert [message["60"] for message in host.seen("0500")] == ["000001", "000002"]
    assert [status(one)[0] for one in (first, second)] == ["APPROVED"] * 2
    third = captured(shop, "3.00")
    decide(shop)
    CaptureBatch.objects.filter(number=3).update(due_at=None)
    fourth = captured(shop, "4.00")
    night(shop)
    assert (status(third)[0], status(fourth)[0]) == ("PENDING", "APPROVED")


@pytest.mark.parametrize(
    "failures, goes", [(batch_run.MAX_BLOCKING_FAILURES - 1, False), (batch_run.MAX_BLOCKING_FAILURES, True)]
)
def test_a_batch_that_gets_nowhere_holds_up_those_after_it_for_a_while_only(
    shop: Shop, host: IsoHost, failures: int, goes: bool
) -> None:
    """A host that has no answer to one message must not keep an account's captures for a week."""
    captured(shop)
    decide(shop)
    CaptureBatch.objects.update(failures=failures, due_at=clock.real_now() + timedelta(hours=1))
    later_one = captured(shop, "15.00")
    decide(shop)
    assert batch_run.send_due_batches(ISO8583) == int(goes)
    batched_captures.apply_capture_outcomes()
    assert status(later_one)[0] == ("APPROVED" if goes else "PENDING")


def test_every_currency_has_a_batch_of_its_own(shop: Shop, host: IsoHost) -> None:
    """DE50; minor units by ISO 4217."""
    captured(shop, "60.00")
    pa = authorised(shop, "92", currency="JPY")
    assert shop.api.follow(pa, "CP", "92", currency="JPY").code == WAITS
    decide(shop)
    assert send() == 2
    sums = {message["50"]: message["88"].lstrip("0") for message in host.seen("0500")}
    assert sums == {"978": "6000", "392": "92"}


def test_a_batch_larger_than_one_round_is_sent_whole(shop: Shop, host: IsoHost) -> None:
    pa = authorised(shop, "500.00")
    payments = [
        shop.api.follow(pa, "CP", f"{number + 1}.00").id for number in range(batch_upload.MAX_PARALLEL_CAPTURES * 2 + 3)
    ]
    batch = night(shop)
    assert (batch.state, batch.count) == ("BALANCED", len(payments))
    assert {status(one)[0] for one in payments} == {"APPROVED"}
    assert len(host.seen("0220")) == len(payments)


def test_no_account_number_stays_in_clear_and_none_stays_at_all_after_the_batch(shop: Shop, host: IsoHost) -> None:
    """The kept message is sealed; it goes with the end of the capture."""
    capture = captured(shop)
    assert not places_of(PAN)
    assert json.loads("{}") == BatchedCapture.objects.get(pk=capture).answer
    night(shop)
    assert BatchedCapture.objects.get(pk=capture).message_sealed is None
    assert not places_of(PAN)
    told = AcquirerExchange.objects.filter(payment=capture).order_by("id")
    assert [row.kind for row in told] == ["submit", "batch"]
    assert told[0].sent["2"] == "420000******0000"
    assert (told[1].sent, told[1].received["39"]) == ({"batch": 1}, "00")


def test_an_open_breaker_keeps_no_capture_out_of_the_books_and_they_do_not_close_it(shop: Shop, host: IsoHost) -> None:
    """Nobody is asked, so nothing is learnt about the acquirer."""
    pa = authorised(shop)
    with override_settings(GATEWAY_BREAKER_LEAST=1, GATEWAY_BREAKER_SHARE=0.01, GATEWAY_BREAKER_PAUSE_S=3600.0):
        own = get_account_circuit("iso8583", accounts.load_connector_account(ISO8583, shop.channel.pk, "MERCHANT-1"))
        own.breaker.record_failure("test")
        capture = shop.api.follow(pa, "CP", "60.00")
        assert capture.code == WAITS
        assert shop.api.follow(capture.id, "RV").code == OK
        assert shop.api.follow(pa, "RV").code == "900.100.600"
        assert str(own.breaker.state) != "closed"


def test_an_account_stays_with_its_way_of_capturing_while_captures_wait(shop: Shop, host: IsoHost) -> None:
    """The setting capture is a place: recovery asks where a capture went."""
    captured(shop)
    assert accounts.count_undecided_payments(shop.channel.acquirer_accounts.get()) == 1


def test_an_advice_that_went_out_before_the_account_was_changed_is_still_repeated(shop: Shop, host: IsoHost) -> None:
    """Its silence has told its numbers, so it is not looked for in the books."""
    account = shop.channel.acquirer_accounts.get()
    account.settings = {**account.settings, "capture": "advice"}
    account.save()
    accounts.clear_account_cache()
    pa = authorised(shop)
    host.next("0220", "hung up")
    capture = shop.api.follow(pa, "CP", "60.00").id
    assert status(capture)[0] == "IN_DOUBT"
    account.settings = {**account.settings, "capture": "batch"}
    account.save()
    accounts.clear_account_cache()
    recover_after(120)
    assert status(capture) == ("APPROVED", OK)
    assert len(host.seen("0221")) == 1


@pytest.mark.django_db(transaction=True)
def test_two_ticks_at_once_send_one_batch_once(committed: Shop, committed_host: IsoHost) -> None:
    """Rows by lease, states by compare-and-set."""
    payments = [captured(committed, f"{number + 1}.00") for number in range(12)]
    jump(DAY_S)

    def tick() -> None:
        batch_planning.plan_due_batches()
        batch_run.send_due_batches(ISO8583)
        batched_captures.apply_capture_outcomes()

    at_once(*[tick] * 4)
    sent = [message["63"] for message in committed_host.seen("0220")]
    assert sorted(sent) == sorted(UUID(one).hex for one in payments)
    assert not committed_host.seen("0221")
    tick()
    assert len(committed_host.seen("0500")) == CaptureBatch.objects.count()
    assert {status(one)[0] for one in payments} == {"APPROVED"}
    assert PaymentEvent.objects.filter(payment__in=payments, event="approve").count() == 12


@pytest.mark.django_db(transaction=True)
def test_a_run_and_a_reversal_at_once_have_one_winner(committed: Shop, committed_host: IsoHost) -> None:
    payments = [captured(committed, f"{number + 1}.00") for number in range(8)]
    jump(DAY_S)
    answers: list[Answer] = []
    at_once(
        batch_planning.plan_due_batches,
        *[lambda one=one: answers.append(committed.api.follow(one, "RV")) for one in payments],
    )
    batch_planning.plan_due_batches()
    batch_run.send_due_batches(ISO8583)
    batched_captures.apply_capture_outcomes()
    reversed_ones = {answer.code for answer in answers}
    assert reversed_ones <= {OK, "700.300.700"}
    sent = {message["63"] for message in committed_host.seen("0220")}
    for one in payments:
        taken_out = BatchedCapture.objects.get(pk=one).state == State.WITHDRAWN
        assert status(one)[0] == ("DECLINED" if taken_out else "APPROVED")
        assert (UUID(one).hex in sent) == (not taken_out)
        reversal = Payment.objects.get(referenced=one)
        assert reversal.status == ("APPROVED" if taken_out else "DECLINED")


def test_a_sender_that_was_overtaken_writes_nothing_more(shop: Shop, host: IsoHost) -> None:
    """It lost its lease in a pause of its machine, and another one goes on with the batch."""
    captured(shop)
    decide(shop)
    stale = batch_run.claim_due_batch()
    assert stale is not None
    CaptureBatch.objects.update(lease_until=clock.real_now() - timedelta(seconds=1))
    assert batch_run.claim_due_batch() is not None
    for write in (
        lambda: batch_lease.extend_batch_lease(stale),
        lambda: batch_lease.move_batch_state(stale, CaptureBatch.State.CLOSING),
    ):
        with pytest.raises(batch_lease.BatchLeaseLostError):
            write()
    assert not batch_run._defer_batch(stale, "it comes to nothing")
    assert CaptureBatch.objects.get().failure == ""


def test_an_account_that_is_not_set_up_any_more_keeps_its_captures(shop: Shop, host: IsoHost) -> None:
    capture = captured(shop)
    account = shop.channel.acquirer_accounts.get()
    kept = account.settings
    account.settings = {**kept, "time_zone": "Nowhere/Land"}
    account.save()
    accounts.clear_account_cache()
    decide(shop)
    assert send() == 0
    assert "Nowhere/Land" in CaptureBatch.objects.get().failure
    account.settings = kept
    account.save()
    accounts.clear_account_cache()
    assert send() == 1
    batched_captures.apply_capture_outcomes()
    assert status(capture)[0] == "APPROVED"


def test_a_batch_that_gets_nowhere_for_a_week_stops_and_says_so(shop: Shop, host: IsoHost) -> None:
    captured(shop)
    batch = decide(shop)
    CaptureBatch.objects.update(failures=batch_run.MAX_BATCH_FAILURES - 1)
    host.stop()
    assert send(TIMEOUT_S) == 0
    batch.refresh_from_db()
    assert batch.due_at is None
    host.start()
    assert send() == 0
    assert batch_run.retry_batch(batch)
    assert send() == 1


def test_the_numbers_of_a_capture_follow_from_its_payment(shop: Shop, host: IsoHost) -> None:
    """A message made anew has them too, so an advice and a batch name the same capture the same way."""
    capture = captured(shop)
    row = BatchedCapture.objects.get(pk=capture)
    own = OriginalMessage.parse(row.reference)
    assert own is not None
    assert (own.operation, own.amount) == ("CP", 6000)
    assert Payment.objects.get(pk=capture).connector_tx_id == UUID(capture).hex
    night(shop)
    assert Payment.objects.get(pk=capture).connector_tx_id.startswith(f"CP{own.stan}")
    assert not OpenPayment.objects.exists()
    assert isinstance(row.created_at, datetime)


def command(*words: str) -> str:
    out = io.StringIO()
    call_command("capture_batches", *words, stdout=out)
    return out.getvalue()


def test_the_command_shows_what_waits_sends_it_now_and_ends_a_batch_on_a_word(shop: Shop, host: IsoHost) -> None:
    """manage.py capture_batches."""
    capture = captured(shop)
    assert "main MERCHANT-1: 1 wait, 60.00 EUR, from " in command()
    host.next("0500", de39="95", de66="2", times=2)
    account = shop.channel.acquirer_accounts.get()
    assert command("--send", account.pk.hex) == "captures that go with the next tick: 1\n"
    registry.run_timer_now("capture batches")
    batch = CaptureBatch.objects.get()
    told = command()
    assert f"{batch.pk.hex} MERCHANT-1 1: sums differ, 1 of 1 granted, 60.00 EUR; stopped" in told
    assert "  sums differ: " in told
    for words in (("--accept", batch.pk.hex), ("--accept", "nothing", "--because", "x"), ("--send", "nothing")):
        with pytest.raises(CommandError):
            command(*words)
    assert command("--accept", batch.pk.hex, "--because", "Ms Example said so") == "captures taken: 1\n"
    with pytest.raises(CommandError, match="in balance"):
        command("--accept", batch.pk.hex, "--because", "again")
    with pytest.raises(CommandError, match="has ended"):
        command("--again", batch.pk.hex)
    registry.run_timer_now("capture answers")
    assert status(capture) == ("APPROVED", OK)
    (entry,) = AuditEntry.objects.filter(action="accept sums")
    assert entry.after["because"] == "Ms Example said so"


# --- sums, without a host -----------------------------------------------------------------------------------------

SUMS = BatchSums(
    trace_number=4711,
    number=1_000_000,
    opened_at=datetime(2026, 1, 5, 23, 30, tzinfo=UTC),
    round=0,
    count=2,
    total=Money.parse("75.50", "EUR"),
)
TERMINAL = parse_terminal(
    ConnectorAccount(merchant="M-1", settings={"host": "h", "port": "1", "terminal": "T1", "time_zone": "Asia/Tokyo"})
)


def test_a_reconciliation_request_says_the_same_whoever_writes_it() -> None:
    """Numbers out of the batch; days of the account's zone; the batch's number in six digits."""
    first = batch_totals.build_reconciliation_request(SUMS, TERMINAL, repeat=False)
    again = batch_totals.build_reconciliation_request(SUMS, TERMINAL, repeat=True)
    assert (first.pop("t"), again.pop("t")) == ("0500", "0501")
    assert first == again
    assert (first["7"], first["12"], first["13"], first["15"]) == ("0105233000", "083000", "0106", "0106")
    assert (first["60"], batch_totals.format_batch_number(999_999), batch_totals.format_batch_number(1)) == (
        "000001",
        "999999",
        "000001",
    )
    later_round = batch_totals.build_reconciliation_request(
        replace(SUMS, round=1, trace_number=4713), TERMINAL, repeat=False
    )
    assert {name for name in first if later_round[name] != first[name]} == {"3", "11", "37"}
    assert TERMINAL.wire.message(TERMINAL.wire.frame({"t": "0500", **first})[2:]) == {"t": "0500", **first}


@pytest.mark.parametrize("encoding", ["ascii", "ascii-hex", "bcd", "ebcdic"])
def test_sums_are_written_in_every_encoding(encoding: str) -> None:
    wire = MessageCodec(encoding=encoding)
    message = batch_totals.build_reconciliation_request(SUMS, TERMINAL, repeat=False)
    found = wire.message(wire.frame(message)[2:])
    assert found["88"].lstrip("0") == "7550"
    assert found["97"] == "D0000000000007550"


@pytest.mark.parametrize(
    "answer, verdict",
    [
        ({"39": "00"}, TotalsVerdict.BALANCED),
        ({"39": "00", "66": "1"}, TotalsVerdict.BALANCED),
        ({"39": "00", "76": "0000000002", "88": "0000000000007550"}, TotalsVerdict.BALANCED),
        ({"39": "00", "97": "D0000000000007550"}, TotalsVerdict.BALANCED),
        ({"39": "00", "66": "2"}, TotalsVerdict.DIFFERS),
        ({"39": "00", "97": "C0000000000007550"}, TotalsVerdict.DIFFERS),
        ({"39": "00", "76": "1"}, TotalsVerdict.DIFFERS),
        ({"39": "00", "66": "1", "88": "7549"}, TotalsVerdict.DIFFERS),
        ({"39": "00", "74": "1"}, TotalsVerdict.DIFFERS),
        ({"39": "00", "88": "what"}, TotalsVerdict.DIFFERS),
        ({"39": "95"}, TotalsVerdict.DIFFERS),
        ({"39": "95", "66": "1"}, TotalsVerdict.DIFFERS),
        ({"39": "94"}, TotalsVerdict.AGAIN),
        ({"39": "94", "66": "1"}, TotalsVerdict.BALANCED),
        ({"39": "94", "88": "7550"}, TotalsVerdict.BALANCED),
        ({"39": "94", "88": "1"}, TotalsVerdict.DIFFERS),
        ({"39": "96"}, TotalsVerdict.AGAIN),
        ({"39": "12"}, TotalsVerdict.AGAIN),
        ({"39": "96", "88": "1"}, TotalsVerdict.AGAIN),
        ({}, TotalsVerdict.AGAIN),
    ],
    ids=str,
)
def test_what_an_answer_about_sums_means(answer: dict[str, str], verdict: TotalsVerdict) -> None:
    """0510: DE39, DE66, and the host's own sums."""
    assert (
        batch_totals.judge_totals(batch_totals.build_reconciliation_request(SUMS, TERMINAL, repeat=False), answer)
        is verdict
    )


@pytest.mark.parametrize(
    "now, at",
    [
        ("2026-01-05T21:29:59Z", "2026-01-05T21:30:00Z"),
        ("2026-01-05T21:30:00Z", "2026-01-06T21:30:00Z"),
        ("2026-07-05T20:29:59Z", "2026-07-05T20:30:00Z"),
        ("2026-03-28T22:00:00Z", "2026-03-29T20:30:00Z"),
    ],
)
def test_the_next_batch_is_at_the_accounts_own_hour(now: str, at: str) -> None:
    """Summer time is the zone's."""
    terminal = parse_terminal(
        ConnectorAccount(settings={"host": "h", "port": "1", "terminal": "T1", "time_zone": "Europe/Berlin"})
    )
    assert terminal.next_batch(datetime.fromisoformat(now)) == datetime.fromisoformat(at)
