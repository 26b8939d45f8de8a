"""Answers of a host that come after the question was given up. Source: docs/decisions/0148."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import InterfaceError, OperationalError
from django.urls import reverse

from gateway.access import audit_log
from gateway.backoffice.payments import timeline
from gateway.configuration.apply import apply_configuration, find_configuration_target
from gateway.connectors.iso8583 import late_answers
from gateway.connectors.port import AcquirerReply
from gateway.models import AcquirerAccount, AcquirerExchange, Channel, Notification, OpenPayment, Payment, Role
from gateway.payments import late_outcomes, process, recovery, store
from gateway.payments.outcomes import PaymentOutcome
from gateway.vault.sealing import VaultError
from tests.support.fixtures import Shop
from tests.support.iso_host import PATIENCE_S, IsoHost, account_at_host
from tests.support.office import person, signed_in
from tests.support.recovery import recover_after
from tests.support.threeds import FRICTIONLESS, buy

OK = "000.100.112"
REVERSED = "900.100.301"
PAYOUT = {
    "transactionProcessingCode": "PAYMENT", "transactionBai": "AA", "recipient__country": "DEU",
    "sender__name": "Example Shop",
}  # fmt: skip
LINK = "Z0fE_2qV-3pWft4vHt7Ki6"


@pytest.fixture
def host(iso_host: IsoHost, committed: Shop) -> IsoHost:
    account_at_host(committed.channel, iso_host)
    return iso_host


def pay(shop: Shop, kind: str = "DB", **more: str) -> str:
    return shop.api.pay(testMode="EXTERNAL", paymentType=kind, **more).id


def status(payment: str) -> tuple[str, str]:
    row = Payment.objects.get(pk=payment)
    return row.status, row.result_code


def until_taken(host: IsoHost, payment: str) -> None:
    late = AcquirerExchange.objects.filter(payment=payment, kind__in=("late", "denied"))
    host.wait(lambda: late.count() == 1, "the late answer")


def until_none_waits() -> None:
    """All late answers that a link has read are taken, or dropped."""
    for thread in threading.enumerate():
        if thread.name == "late answers":
            thread.join(PATIENCE_S)


def late_exchange(payment: str) -> AcquirerExchange:
    return AcquirerExchange.objects.get(payment=payment, kind="late")


def ask_until_settled(payment: str) -> int:
    """How often recovery asks before the payment is neither in doubt nor open."""
    for times in range(1, 20):
        recover_after(120)
        if not OpenPayment.objects.filter(pk=payment).exists():
            return times
    raise AssertionError("never settled")


@pytest.mark.parametrize(("de39", "end"), [("00", ("APPROVED", OK)), ("05", ("DECLINED", "800.100.152"))])
def test_a_late_answer_to_a_payout_decides_it(committed: Shop, host: IsoHost, de39: str, end: tuple[str, str]) -> None:
    """Nothing is sent after its silence, so nothing else would tell what became of it."""
    host.next("0200", "held", de39=de39)
    paid = pay(committed, "CD", **PAYOUT)
    recover_after(120)
    assert status(paid)[0] == "IN_DOUBT"
    told = Notification.objects.filter(payment_id=paid).count()
    host.release()
    host.wait(lambda: status(paid) == end, "the outcome")
    until_taken(host, paid)
    assert not OpenPayment.objects.exists()
    assert Notification.objects.filter(payment_id=paid).count() == told + 1
    assert len(host.seen("0200")) == 1
    assert not [*host.seen("0420"), *host.seen("0421")]
    assert late_exchange(paid).received["39"] == de39


@pytest.mark.parametrize("de39", ["91", "96", "68"])
def test_a_late_answer_that_decides_nothing_leaves_a_payout_to_the_person(
    committed: Shop, host: IsoHost, de39: str
) -> None:
    """The issuer did not answer: whether it has paid is as open as after silence."""
    host.next("0200", "held", de39=de39)
    paid = pay(committed, "CD", **PAYOUT)
    recover_after(120)
    host.release()
    pay(committed)  # what the link says after this, it has read before
    until_none_waits()
    assert status(paid)[0] == "IN_DOUBT"
    kept = AcquirerExchange.objects.get(payment=paid, kind__in=("late", "denied"))
    assert kept.received is not None
    assert (kept.kind, kept.received["undecided"]) == ("late", f"the host answered {de39}: no verdict")
    assert (kept.received["39"], kept.sent["11"]) == (de39, host.seen("0200")[0]["11"]), "for whoever asks the acquirer"
    call_command("decide_payout", paid, "--not-paid")
    assert status(paid) == ("DECLINED", REVERSED)


def test_a_payout_that_a_person_called_not_paid_is_paid_when_its_approval_comes(committed: Shop, host: IsoHost) -> None:
    host.next("0200", "held")
    paid = pay(committed, "CD", **PAYOUT)
    recover_after(120)
    call_command("decide_payout", paid, "--not-paid")
    host.release()
    host.wait(lambda: status(paid) == ("APPROVED", OK), "the approval")
    until_taken(host, paid)


def test_a_reversal_that_was_declined_counts_when_its_approval_comes(committed: Shop, host: IsoHost) -> None:
    """Another process has repeated it. Nothing takes a reversal back: its approval says where the money is."""
    paid = pay(committed)
    host.next("0400", "lost")
    host.next("0401", de39="57")
    back = committed.api.follow(paid, "RV").id
    recover_after(120)
    assert status(back) == ("DECLINED", "800.100.170")
    told = Notification.objects.filter(payment_id=back).count()
    row = Payment.objects.get(pk=back)
    said = {"sent": {"mti": "0400"}, "received": {"39": "00"}}
    reply = AcquirerReply(code=OK, approved=row.money, connector_tx_id=row.connector_tx_id, **said)
    late_outcomes.take_late_answer(row.pk, store.get_attempt_columns(row), reply)
    assert status(back) == ("APPROVED", OK)
    assert not OpenPayment.objects.exists()
    assert Notification.objects.filter(payment_id=back).count() == told + 1
    assert committed.api.follow(paid, "RF", "0.01").code == "700.400.200"


def test_a_late_decline_of_a_payout_that_a_person_called_paid_is_told(
    committed: Shop, host: IsoHost, caplog: pytest.LogCaptureFixture
) -> None:
    """It changes nothing: somebody has to ask the acquirer again, and finds it on the payment's page."""
    host.next("0200", "held", de39="05")
    paid = pay(committed, "CD", **PAYOUT)
    recover_after(120)
    call_command("decide_payout", paid, "--paid")
    host.release()
    denied = AcquirerExchange.objects.filter(payment=paid, kind="denied")
    host.wait(denied.exists, "the decline")
    assert (status(paid), denied.get().received["39"]) == (("APPROVED", OK), "05")
    assert "declined_after_approval" in caplog.text
    ann = signed_in(person("ann", Role.MANAGER, committed.merchant))
    page = ann.get(reverse("admin:gateway_payment_change", args=[paid])).content.decode()
    assert "iso8583 declined it after all, though it was entered as paid: ask the acquirer" in page
    assert "the acquirer declined it or took it back after all" in page
    assert [words for words in ("Done. Store the id", "was sent to you", "was paid out to") if words in page] == []


@pytest.mark.parametrize("kind", ["DB", "PA"])
def test_a_late_approval_counts_while_nothing_was_taken_back(committed: Shop, host: IsoHost, kind: str) -> None:
    host.next("0100" if kind == "PA" else "0200", "held")
    paid = pay(committed, kind)
    assert status(paid)[0] == "IN_DOUBT"
    host.release()
    host.wait(lambda: status(paid) == ("APPROVED", OK), "the approval")
    until_taken(host, paid)
    assert recover_after(120).claimed == 0
    assert Payment.objects.get(pk=paid).connector_tx_id.find(f"A{host.of(paid).answer['11'][:5]}") > 0


@pytest.mark.parametrize(
    ("kind", "de39", "end"),
    [
        ("DB", "00", ("APPROVED", OK)),
        ("DB", "05", ("DECLINED", "800.100.152")),
        ("CD", "00", ("APPROVED", OK)),
        ("CD", "05", ("DECLINED", "800.100.152")),
    ],
)
def test_an_answer_that_comes_as_its_worker_gives_up_counts(
    committed: Shop, host: IsoHost, monkeypatch: pytest.MonkeyPatch, kind: str, de39: str, end: tuple[str, str]
) -> None:
    """The worker writes that it had no answer between the reading of the payment and the writing of its answer."""
    read, written = threading.Event(), threading.Event()
    complete, map_outcome = process.complete_unless_recovered, late_outcomes.outcome_from_reply

    def give_up(*each: Any, **named: Any) -> None:
        host.release()
        assert read.wait(PATIENCE_S)
        complete(*each, **named)
        written.set()

    def map_slowly(*each: Any, **named: Any) -> PaymentOutcome:
        read.set()
        assert written.wait(PATIENCE_S)
        return map_outcome(*each, **named)

    monkeypatch.setattr(process, "complete_unless_recovered", give_up)
    monkeypatch.setattr(late_outcomes, "outcome_from_reply", map_slowly)
    host.next("0200", "held", de39=de39)
    paid = pay(committed, kind, **(PAYOUT if kind == "CD" else {}))
    until_taken(host, paid)
    assert (status(paid), recover_after(120).claimed) == (end, 0)
    assert not host.seen("0420")


def test_an_answer_that_comes_before_its_worker_gives_up_keeps_what_the_authentication_showed(
    committed: Shop, host: IsoHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has it in memory only, until it writes."""
    Channel.objects.filter(pk=committed.channel.pk).update(three_d_secure=True)
    complete = process.complete_unless_recovered

    def give_up(payment: Payment, *each: Any, **named: Any) -> None:
        host.release()
        host.wait(lambda: status(payment.id.hex) == ("APPROVED", OK), "the approval")
        complete(payment, *each, **named)

    monkeypatch.setattr(process, "complete_unless_recovered", give_up)
    host.next("0200", "held")
    answer = buy(committed.api, FRICTIONLESS, testMode="EXTERNAL")
    assert (answer.code, answer.body["threeDSecure"]["flow"]) == (OK, "frictionless")
    until_taken(host, answer.id)
    assert committed.api.read(answer.id).body["threeDSecure"] == answer.body["threeDSecure"]


def test_a_late_approval_of_a_refund_counts(committed: Shop, host: IsoHost) -> None:
    paid = pay(committed)
    host.next("0200", "held")
    back = committed.api.follow(paid, "RF", "92.00").id
    host.release()
    host.wait(lambda: status(back) == ("APPROVED", OK), "the approval")
    until_taken(host, back)


@pytest.mark.parametrize("code", ["25", "76"])
def test_a_host_that_does_not_know_a_message_yet_is_asked_again_by_another_reversal(
    committed: Shop, host: IsoHost, code: str
) -> None:
    """The request waits in a connection; the host answers the reversal that overtook it, forgets it, and approves."""
    host.forgets = True
    host.next("0200", "stalled")
    paid = pay(committed)
    host.next("0420", de39=code)
    recover_after(120)
    assert status(paid)[0] == "IN_DOUBT"
    host.release()
    until_taken(host, paid)
    assert status(paid)[0] == "IN_DOUBT"
    ask_until_settled(paid)
    first, second = host.seen("0420")
    assert (first["90"], "38" in first) == (second["90"], False)
    assert second["38"] == host.of(paid).answer["38"]
    assert len({host.seen("0200")[0]["11"], first["11"], second["11"]}) == 3
    assert not host.seen("0421")
    assert (status(paid), host.of(paid).left) == (("DECLINED", REVERSED), 0)


def test_what_a_host_does_not_know_for_a_minute_is_declined(committed: Shop, host: IsoHost) -> None:
    """Nothing of it can be under way any more."""
    host.next("0200", "lost", arrives=False)
    paid = pay(committed)
    times = ask_until_settled(paid)
    assert status(paid) == ("DECLINED", REVERSED)
    asked = host.seen("0420")
    assert (times, len(asked), len({message["11"] for message in asked})) == (7, 7, 7)


def test_a_reversal_without_an_answer_is_still_repeated_by_its_number(committed: Shop, host: IsoHost) -> None:
    host.next("0200", "lost")
    host.next("0420", "lost")
    paid = pay(committed)
    assert ask_until_settled(paid) == 2
    assert host.seen("0420")[0]["11"] == host.seen("0421")[0]["11"]


def test_an_approval_that_comes_after_the_decline_is_taken_back_by_its_code(committed: Shop, host: IsoHost) -> None:
    """The host keeps a request longer than any connection could."""
    host.forgets = True
    host.next("0200", "stalled")
    host.answers = {"48": f"6422{LINK}"}
    paid = pay(committed, paymentBrand="MASTER", card__number="5454545454545454")
    ask_until_settled(paid)
    assert status(paid) == ("DECLINED", REVERSED)
    before = len(host.seen("0420"))
    host.release()
    until_taken(host, paid)
    assert OpenPayment.objects.filter(pk=paid).exists()
    ask_until_settled(paid)
    last = host.seen("0420")[-1]
    assert (len(host.seen("0420")), last["38"]) == (before + 1, host.of(paid).answer["38"])
    assert f"6422{LINK}" in last["48"]
    assert (status(paid), host.of(paid).left) == (("DECLINED", REVERSED), 0)


def test_the_reversal_of_a_late_approval_without_a_code_counts_at_once(committed: Shop, host: IsoHost) -> None:
    """It was answered, so nothing of it is under way, whatever its answer says."""
    paid = pay(committed)
    host.forgets = True
    host.next("0200", "stalled")
    back = committed.api.follow(paid, "RF", "92.00").id
    ask_until_settled(back)
    before = len(host.seen("0420"))
    host.next("0200", de38=None)
    host.release()
    until_taken(host, back)
    host.next("0420", de39="25")
    assert ask_until_settled(back) == 1
    assert len(host.seen("0420")) == before + 1


def test_the_answer_of_a_reversal_that_a_late_approval_overtook_is_kept(
    committed: Shop, host: IsoHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It decides nothing, since it did not know of the approval."""
    record = recovery.record_outcome
    found: list[bool] = []

    def record_after_the_answer(payment: Payment, finding: recovery.InquiryResult) -> bool:
        host.release()
        until_taken(host, payment.id.hex)
        found.append(record(payment, finding))
        return found[-1]

    host.next("0200", "held")
    paid = pay(committed)
    with monkeypatch.context() as patched:
        patched.setattr(recovery, "record_outcome", record_after_the_answer)
        recover_after(120)
    assert (found, status(paid)[0]) == ([False], "IN_DOUBT")
    voids = AcquirerExchange.objects.filter(payment=paid, kind="void")
    assert [row.received["39"] for row in voids] == ["00"]
    ask_until_settled(paid)
    assert (status(paid)[0], voids.all().count(), host.of(paid).left) == ("DECLINED", 2, 0)


def refuse_by_address(shop: Shop) -> None:
    """A rule set that declines where no part of the address matches."""
    target = find_configuration_target(shop.channel.id)
    assert target is not None
    risk = {"set": "SET", "sets": [{"key": "SET", "avs": {"N": "decline"}, "start": 5}]}
    apply_configuration(target, {"risk": risk}, by=audit_log.COMMAND_LINE_ACTOR)


def test_a_late_approval_that_the_rule_set_refuses_is_taken_back(committed: Shop, host: IsoHost) -> None:
    refuse_by_address(committed)
    host.answers = {"44": " N"}
    host.next("0200", "held")
    paid = pay(committed)
    host.release()
    until_taken(host, paid)
    assert status(paid)[0] == "IN_DOUBT"
    ask_until_settled(paid)
    assert status(paid)[0] == "DECLINED"
    (void,) = host.seen("0420")
    assert (void["38"], void["39"]) == (host.of(paid).answer["38"], "34")
    assert "reversed" in committed.api.read(paid).body["resultDetails"]["RiskReason"]


@pytest.mark.parametrize("overtaken", [False, True])
@pytest.mark.parametrize(("de39", "duplicate", "proven"), [
    ("94", "", False), ("21", "", False), ("79", "", False), ("94", "done", True), ("21", "done", False),
])  # fmt: skip
def test_what_the_host_no_longer_takes_back_is_asked_about_by_a_person(
    committed: Shop,
    host: IsoHost,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    de39: str,
    duplicate: str,
    proven: bool,
    overtaken: bool,
) -> None:
    """It acknowledged the first reversal, which knew no approval, and says of the second that there is nothing left:
    nothing more is sent, and the log and the payment's page tell of it. ``overtaken``: the approval came while the
    first reversal was on the way."""
    if duplicate:
        account = AcquirerAccount.objects.get()
        account.settings = {**account.settings, "duplicate": duplicate}
        account.save()
    host.next("0200", "held")
    paid = pay(committed)
    if overtaken:
        with monkeypatch.context() as patched:
            patched.setattr(recovery, "record_outcome", record_after_release(host, paid))
            recover_after(120)
        assert status(paid)[0] == "IN_DOUBT"
    else:
        recover_after(120)
        assert status(paid) == ("DECLINED", REVERSED)
    host.next("0420", de39=de39)
    if not overtaken:
        host.release()
        until_taken(host, paid)
    recover_after(120)
    assert (status(paid), OpenPayment.objects.exists()) == (("DECLINED", REVERSED), False)
    assert len(host.seen("0420")) == 2
    last = AcquirerExchange.objects.filter(payment=paid).order_by("-id")[0]
    assert (last.kind, last.received["39"]) == ("void" if proven else "unproven", de39)
    assert ("late_approval_may_stand" in caplog.text) is not proven
    assert not (not proven and "late_approval_voided" in caplog.text)
    event = timeline._build_exchange_event(last, {last.payment_id: Payment.objects.get(pk=paid)})
    assert event.tone == ("plain" if proven else "bad")
    why = timeline.build_payment_story(Payment.objects.select_related("merchant", "channel").get(pk=paid)).why
    assert ("its approval may still stand" in why.happened) is not proven
    assert (why.money, why.shopper is None) == (
        ("No money moved.", False)
        if proven
        else ("Whether money moved is not known: a person has to ask the acquirer.", True)
    )


def record_after_release(host: IsoHost, paid: str) -> Callable[..., bool]:
    """recovery.record_outcome once the host's late answer has been taken."""
    record = recovery.record_outcome

    def record_late(payment: Payment, finding: recovery.InquiryResult) -> bool:
        host.release()
        until_taken(host, paid)
        return record(payment, finding)

    return record_late


@pytest.mark.parametrize("de39", ["00", "21", "05"])
def test_a_late_answer_to_a_reversal_is_not_the_payments(committed: Shop, host: IsoHost, de39: str) -> None:
    """Of an approval that the rule set refuses, reversed at once: the reversal is repeated, with its reason."""
    refuse_by_address(committed)
    host.next("0200", de44=" N")
    host.next("0420", "held", de39=de39)
    paid = pay(committed)
    assert status(paid)[0] == "IN_DOUBT"
    host.release()
    pay(committed)  # what the link says after this, it has read before
    until_none_waits()
    assert status(paid)[0] == "IN_DOUBT"
    assert not AcquirerExchange.objects.filter(payment=paid, kind="late").exists()
    ask_until_settled(paid)
    assert len(host.seen("0421")) == 1
    assert (status(paid)[0], host.of(paid).left) == ("DECLINED", 0)
    assert "reversed" in committed.api.read(paid).body["resultDetails"]["RiskReason"]


def let_it_fail(monkeypatch: pytest.MonkeyPatch, *faults: Exception) -> None:
    """The first completions of payments from now on."""
    left = iter(faults)
    complete: Callable[..., None] = store.complete_payment

    def fail_first(*each: object, **named: object) -> None:
        if (fault := next(left, None)) is not None:
            raise fault
        complete(*each, **named)

    monkeypatch.setattr(store, "complete_payment", fail_first)
    monkeypatch.setattr(late_answers, "LATE_ANSWER_PAUSES_S", (0.0, 0.0))


def test_late_answers_wait_for_the_database_and_for_the_key_service(
    committed: Shop, host: IsoHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However long they are away: nothing else tells what became of a payout."""
    host.next("0200", "held", times=2)
    paid = [pay(committed), pay(committed)]
    let_it_fail(monkeypatch, *[OperationalError("down")] * 6, VaultError("away"), InterfaceError("closed"))
    host.release()
    for payment in paid:
        until_taken(host, payment)
        assert status(payment) == ("APPROVED", OK)
        assert payment in caplog.text


def test_a_late_answer_that_fails_for_another_reason_is_named_and_holds_up_no_other(
    committed: Shop, host: IsoHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    host.next("0200", "held", times=2)
    first, second = pay(committed), pay(committed)
    let_it_fail(monkeypatch, KeyError("a fault of ours"))
    host.release()
    until_taken(host, second)
    until_none_waits()
    assert (status(first)[0], status(second)) == ("IN_DOUBT", ("APPROVED", OK))
    assert "late_answer_not_taken" in caplog.text
    assert first in caplog.text


def test_a_late_answer_for_which_no_thread_starts_waits_for_the_next(
    committed: Shop, host: IsoHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the link goes on."""
    host.next("0200", "held")
    first = pay(committed)
    start = threading.Thread.start
    refused: list[str] = []

    def refuse_once(thread: threading.Thread) -> None:
        if thread.name == "late answers" and not refused:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_once)
    host.release()
    assert committed.api.pay(testMode="EXTERNAL").code == OK
    host.wait(lambda: refused, "the late answer")
    host.next("0200", "held")
    second = pay(committed)
    host.release()
    for payment in (first, second):
        until_taken(host, payment)
        assert status(payment) == ("APPROVED", OK)
    assert host.connections == 1


LOSES = """
import django; django.setup()
from uuid import UUID
from django.db import OperationalError
from gateway.connectors.iso8583.late_answers import LateAnswerTaker, hand_on
def fail(answer):
    raise OperationalError("down")
hand_on(LateAnswerTaker(payment=UUID(int=7), take=fail), {"t": "0210"})
hand_on(LateAnswerTaker(payment=UUID(int=8), take=fail), {"t": "0210"})
"""


@pytest.mark.processes
def test_a_process_that_ends_does_not_wait_for_the_database() -> None:
    """It says of which payments it has lost the answer."""
    ended = subprocess.run(
        [sys.executable, "-c", LOSES], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    (lost,) = [line for line in (ended.stdout + ended.stderr).splitlines() if "late_answers_lost" in line]
    assert UUID(int=7).hex in lost
    assert UUID(int=8).hex in lost
