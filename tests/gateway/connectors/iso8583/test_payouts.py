"""Payouts to cards without an answer: nothing takes them back, and a person decides. Source: docs/decisions/0152."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.urls import reverse

from gateway import metrics
from gateway.access import audit_log
from gateway.backoffice.payments.timeline import build_payment_story
from gateway.connectors import accounts
from gateway.connectors.port import AcquirerReply
from gateway.core import clock
from gateway.models import (
    AcquirerAccount,
    AcquirerExchange,
    AuditEntry,
    Notification,
    OpenPayment,
    Payment,
    Role,
    RoutingRule,
    RoutingTarget,
    Status,
)
from gateway.models.payments import MANY_REFUSALS
from gateway.payments import recovery, store
from gateway.payments.chain_amounts import Chain
from gateway.payments.follow_ups import load_chain_members
from gateway.payments.outcomes import Approved, Declined
from gateway.payments.payout_decisions import PayoutNotDecidableError, decide_payout
from gateway.payments.process import complete_unless_recovered
from gateway.payments.states import PaymentTransitionError
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, account_at_host, settings_for
from tests.support.office import person, signed_in
from tests.support.recovery import recover_after

OK = "000.100.112"
SENT = {"transactionBai": "AA", "recipient__country": "DEU", "sender__name": "Example Shop"}
DAY = 24 * 3600
OPEN_CODES = ("06", "20", "22", "90", "91", "96")
"""Answers after which nobody knows what the one behind has done with money that was to be given."""


@pytest.fixture
def host(iso_host: IsoHost, shop: Shop) -> IsoHost:
    account_at_host(shop.channel, iso_host)
    return iso_host


@pytest.fixture
def second_host(shop: Shop, host: IsoHost) -> Iterator[IsoHost]:
    """The host of another account, to which a payment goes on."""
    other = IsoHost()
    first = AcquirerAccount.objects.get(channel=shop.channel)
    second = AcquirerAccount.objects.create(
        channel=shop.channel, connector="iso8583", acquirer_merchant_id="MERCHANT-2", settings=settings_for(other)
    )
    rule = RoutingRule.objects.create(channel=shop.channel, name="all")
    for position, account in enumerate((first, second)):
        RoutingTarget.objects.create(rule=rule, account=account, weight=1 - position, position=position)
    yield other
    other.stop()


def pay_out(shop: Shop, transfer: str = "PAYMENT", kind: str = "CD") -> str:
    return shop.api.pay(testMode="EXTERNAL", paymentType=kind, transactionProcessingCode=transfer, **SENT).id


def page_of(shop: Shop, payment: str) -> str:
    """The payment's page in the back office."""
    user = User.objects.filter(username="ann").first() or person("ann", Role.CLERK, shop.merchant)
    page = signed_in(user).get(reverse("admin:gateway_payment_change", args=[payment]))
    return page.content.decode()


def status(payment: str) -> tuple[str, str]:
    row = Payment.objects.get(pk=payment)
    return row.status, row.result_code


def test_after_silence_a_payout_is_not_taken_back(shop: Shop, host: IsoHost) -> None:
    """The host has made it, and would acknowledge a reversal. It is looked at once a day, and nothing is sent."""
    host.next("0200", "lost")
    paid = pay_out(shop)
    assert status(paid)[0] == "IN_DOUBT"
    for seconds in (120, 120, DAY // 2, DAY):
        recover_after(seconds)
    assert not [*host.seen("0420"), *host.seen("0421")]
    assert len(host.seen("0200")) == 1
    assert status(paid)[0] == "IN_DOUBT"
    kinds = AcquirerExchange.objects.filter(payment=paid).order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["submit", "wait", "wait"]
    shown = page_of(shop, paid)
    assert shown.count("iso8583 is asked by a person: nothing was sent") == 2
    assert not [words for words in ("asked what became of it", "asked to take it back") if words in shown]


def test_the_page_of_a_payout_in_doubt_does_not_say_that_the_acquirer_is_asked(shop: Shop, host: IsoHost) -> None:
    """Nor that something was sent: a person asks, and until then nobody knows where the money is."""
    host.next("0200", "lost")
    paid = pay_out(shop)
    recover_after(120)
    found = build_payment_story(Payment.objects.select_related("merchant", "channel").get(pk=paid))
    assert found.why.money == "Whether the money was paid out is not known: a person has to ask the acquirer."
    assert "until a person has asked" in found.why.happened
    assert found.sums == [], "a sum of 0.00 would say that nothing was paid out"
    assert "Do not pay out again" in found.why.todo
    titles = [moment.title for moment in found.moments]
    assert "iso8583 is asked by a person: nothing was sent" in titles
    assert not [title for title in titles if "asked again" in title or "asked to take it back" in title]


def test_what_a_payout_is_not_is_taken_back_as_ever(shop: Shop, host: IsoHost) -> None:
    """A credit without a transfer, and a funding."""
    host.next("0200", "lost", times=2)
    credit = shop.api.pay(testMode="EXTERNAL", paymentType="CD").id
    funding = pay_out(shop, "FUNDING", "DB")
    recover_after(120)
    assert len(host.seen("0420")) == 2
    assert {status(credit), status(funding)} == {("DECLINED", "900.100.301")}


def test_a_payout_that_was_never_sent_is_declined(shop: Shop, host: IsoHost) -> None:
    """Its message had no number: no host has it."""
    host.next("0200", "lost")
    paid = pay_out(shop)
    Payment.objects.filter(pk=paid).update(connector_tx_id="")
    OpenPayment.objects.update(trace_number=0)
    recover_after(120)
    assert status(paid) == ("DECLINED", "900.100.301")


@pytest.mark.parametrize(("answer", "end"), [("--paid", ("APPROVED", OK)), ("--not-paid", ("DECLINED", "900.100.301"))])
def test_a_person_enters_what_the_acquirer_says(
    shop: Shop, host: IsoHost, answer: str, end: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    host.next("0200", "lost")
    paid = pay_out(shop)
    recover_after(120)
    told = Notification.objects.filter(payment_id=paid).count()
    call_command("decide_payout", paid, answer)
    assert capsys.readouterr().out == f"{end[1]} {end[0]}\n"
    assert status(paid) == end
    assert Notification.objects.filter(payment_id=paid).count() == told + 1
    assert not OpenPayment.objects.exists()
    (entry,) = AuditEntry.objects.filter(action="payout decided")
    assert (entry.subject_id, entry.after) == (str(Payment.objects.get(pk=paid).pk), {"paid": answer == "--paid"})
    shown = shop.api.read(paid)
    words = shown.body.get("resultDetails", {}).get("ExtendedDescription", "")
    assert (shown.code, words) == (end[1], "" if answer == "--paid" else "The acquirer says that it was not paid out.")
    said = "it reached the card" if answer == "--paid" else "it was never made, and never will be"
    assert f"command line entered what iso8583 says: {said}" in page_of(shop, paid)
    with pytest.raises(CommandError, match="not in doubt"):
        call_command("decide_payout", paid, answer)


def test_what_is_no_payout_in_doubt_is_not_decided(shop: Shop, host: IsoHost) -> None:
    host.next("0200", "lost")
    credit = shop.api.pay(testMode="EXTERNAL", paymentType="CD")
    by = audit_log.COMMAND_LINE_ACTOR
    with pytest.raises(PayoutNotDecidableError, match="no payout to a card"):
        decide_payout(Payment.objects.get(pk=credit.id).pk, paid=True, by=by)
    for wrong, why in (("nonsense", "32 lower-case hex digits"), ("0" * 32, "no payment has this id")):
        with pytest.raises(CommandError, match=why):
            call_command("decide_payout", wrong, "--paid")
    assert status(credit.id)[0] == "IN_DOUBT"


def answer_late(paid: str, *, code: str = OK) -> None:
    """The approval, or a decline, reaches the worker that waited for it all the time."""
    row = Payment.objects.select_related("merchant", "channel").get(pk=paid)
    row.status, row.sequence = Status.STARTED, 1
    reply = AcquirerReply(
        code=code, approved=row.money if code == OK else None, connector_tx_id=row.connector_tx_id, sent={"a": 1}
    )
    kind = Approved if code == OK else Declined
    outcome = kind(reply=reply, at=clock.real_now(), duration_ms=1)
    complete_unless_recovered(row, outcome, SimpleNamespace(merchant=row.merchant, trace=None, idempotency=None))


def test_a_late_approval_of_a_payout_that_moves_meanwhile_is_kept_as_an_exchange(
    shop: Shop, host: IsoHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.next("0200", "lost")
    paid = pay_out(shop)
    recover_after(120)
    call_command("decide_payout", paid, "--not-paid")

    def move_first(*_: object, **__: object) -> None:
        raise PaymentTransitionError

    monkeypatch.setattr(store, "complete_payment", move_first)
    answer_late(paid)
    assert status(paid) == ("DECLINED", "900.100.301")
    assert AcquirerExchange.objects.filter(payment=paid, sent__contains={"a": 1}).count() == 1


@pytest.mark.parametrize("is_decided", [False, True])
def test_an_approval_that_comes_late_counts(shop: Shop, host: IsoHost, is_decided: bool) -> None:
    """Also after a person has said that it was not paid: the network has paid, and nothing takes it back."""
    host.next("0200", "lost")
    paid = pay_out(shop)
    recover_after(120)
    if is_decided:
        call_command("decide_payout", paid, "--not-paid")
    answer_late(paid)
    assert status(paid) == ("APPROVED", OK)
    recover_after(120)
    assert not OpenPayment.objects.exists()
    assert not [*host.seen("0420"), *host.seen("0421")]


@pytest.mark.parametrize("said", ["--paid", "--not-paid"])
def test_a_decline_that_comes_after_a_person_said_paid_is_an_error_in_the_log(
    shop: Shop, host: IsoHost, caplog: pytest.LogCaptureFixture, said: str
) -> None:
    """The books say that it reached the card, and its host says that it did not. Nobody was told."""
    host.next("0200", "lost")
    paid = pay_out(shop)
    recover_after(120)
    call_command("decide_payout", paid, said)
    before = status(paid)
    answer_late(paid, code="800.100.152")
    assert status(paid) == before
    assert ("declined_after_approval" in caplog.text) is (said == "--paid")
    assert AcquirerExchange.objects.filter(payment=paid, sent__contains={"a": 1}).count() == 1


def test_a_payout_that_waits_for_a_person_hides_no_other_payment_in_doubt(shop: Shop, host: IsoHost) -> None:
    host.next("0200", "lost", times=2)
    pay_out(shop)
    recover_after(120)
    waiting = metrics.count_open_payments()
    assert (waiting.undecided, waiting.oldest_in_doubt_s) == (1, 0.0)
    shop.api.pay(testMode="EXTERNAL")
    found = metrics.count_open_payments()
    assert (found.undecided, found.by_status["IN_DOUBT"]) == (1, 2)
    assert found.oldest_in_doubt_s > 0


@pytest.mark.parametrize("code", OPEN_CODES)
def test_a_payout_whose_issuer_did_not_answer_waits_for_a_person(shop: Shop, host: IsoHost, code: str) -> None:
    """Whoever answers may have handed it on: it is told neither as declined nor taken back."""
    host.next("0200", de39=code)
    paid = pay_out(shop)
    assert status(paid)[0] == "IN_DOUBT"
    recover_after(120)
    recover_after(DAY)
    assert status(paid)[0] == "IN_DOUBT"
    assert len(host.seen("0200")) == 1
    assert not [*host.seen("0400"), *host.seen("0420"), *host.seen("0421")]
    asked = AcquirerExchange.objects.filter(payment=paid).order_by("id").first()
    assert asked is not None
    assert asked.received is not None
    assert (asked.received["undecided"], asked.received["39"]) == (f"the host answered {code}: no verdict", code)
    shown = page_of(shop, paid)
    assert "iso8583 was asked: the answer decides nothing" in shown
    call_command("decide_payout", paid, "--not-paid")
    assert status(paid) == ("DECLINED", "900.100.301")


@pytest.mark.parametrize("code", OPEN_CODES)
def test_a_payout_whose_issuer_did_not_answer_goes_to_no_other_acquirer(
    shop: Shop, host: IsoHost, second_host: IsoHost, code: str
) -> None:
    """A second one, with other numbers, nobody could recognise as the same."""
    host.next("0200", de39=code)
    paid = pay_out(shop)
    recover_after(120)
    assert (len(host.seen("0200")), second_host.seen("0200")) == (1, [])
    assert status(paid)[0] == "IN_DOUBT"
    assert not [*host.seen("0400"), *host.seen("0420"), *host.seen("0421")]
    call_command("decide_payout", paid, "--not-paid")
    assert status(paid) == ("DECLINED", "900.100.301")


def test_a_payout_that_was_handed_on_to_nobody_goes_to_the_next_acquirer(
    shop: Shop, host: IsoHost, second_host: IsoHost
) -> None:
    """The host says that it has no way to the issuer."""
    host.next("0200", de39="92")
    paid = pay_out(shop)
    assert (status(paid), len(second_host.seen("0200"))) == (("APPROVED", OK), 1)


def test_a_payout_that_was_not_sent_goes_to_the_next_acquirer(shop: Shop, host: IsoHost, second_host: IsoHost) -> None:
    host.stop()
    paid = pay_out(shop)
    assert (status(paid), len(second_host.seen("0200"))) == (("APPROVED", OK), 1)


@pytest.mark.parametrize("code", ["90", "91", "92"])
@pytest.mark.parametrize("kind", ["DB", "PA"])
def test_a_payment_that_takes_money_goes_to_the_next_acquirer_as_ever(
    shop: Shop, host: IsoHost, second_host: IsoHost, kind: str, code: str
) -> None:
    mti = "0200" if kind == "DB" else "0100"
    host.next(mti, de39=code)
    paid = shop.api.pay(testMode="EXTERNAL", paymentType=kind).id
    assert (status(paid), len(second_host.seen(mti))) == (("APPROVED", OK), 1)


def test_an_account_may_say_that_an_answer_declines_a_payout(shop: Shop, host: IsoHost, second_host: IsoHost) -> None:
    first = AcquirerAccount.objects.get(acquirer_merchant_id="MERCHANT-1")
    first.settings = first.settings | {"credit_declines": "91"}
    first.save()
    host.next("0200", de39="91")
    paid = pay_out(shop)
    assert (status(paid), len(second_host.seen("0200"))) == (("APPROVED", OK), 1)
    host.next("0200", de39="96")
    assert status(pay_out(shop))[0] == "IN_DOUBT"


@pytest.mark.parametrize("code", OPEN_CODES)
@pytest.mark.parametrize("kind", ["CD", "RF"])
def test_a_refund_or_credit_whose_issuer_did_not_answer_is_taken_back(
    shop: Shop, host: IsoHost, second_host: IsoHost, kind: str, code: str
) -> None:
    """As after silence: what may have been given is given once."""
    paid = shop.api.pay(testMode="EXTERNAL", paymentType="DB").id if kind == "RF" else ""
    host.next("0200", de39=code)
    given = shop.api.follow(paid, "RF", "10.00").id if paid else shop.api.pay(testMode="EXTERNAL", paymentType="CD").id
    assert status(given)[0] == "IN_DOUBT"
    recover_after(120)
    assert (len(host.seen("0420")), second_host.seen("0200")) == (1, [])
    assert status(given) == ("DECLINED", "900.100.301")
    if paid:
        assert shop.api.follow(paid, "RF", "92.00").code == OK


def give(shop: Shop, kind: str) -> tuple[str, str]:
    """A refund of 10.00 and the debit of 92.00 it is of; or a credit without one."""
    if kind == "CD":
        return shop.api.pay(testMode="EXTERNAL", paymentType="CD").id, ""
    paid = shop.api.pay(testMode="EXTERNAL", paymentType="DB").id
    return shop.api.follow(paid, "RF", "10.00").id, paid


def give_where_nothing_is_taken_back(shop: Shop, host: IsoHost, kind: str, code: str = "12") -> tuple[str, str]:
    """Money given, which its issuer leaves open and its host has refused to take back until it waits for a person."""
    if kind == "RF":
        host.next("0200")
    host.next("0200", de39="91")
    host.next("0420", de39=code, times=99)
    host.next("0421", de39=code, times=99)
    given = give(shop, kind)
    for _ in range(MANY_REFUSALS):
        recover_after(120)
    return given


def reversals(host: IsoHost) -> int:
    return len([*host.seen("0420"), *host.seen("0421")])


@pytest.mark.parametrize("kind", ["CD", "RF"])
@pytest.mark.parametrize("code", ["12", "30", "40", "58", "94"])
def test_a_host_that_takes_no_refund_or_credit_back_is_asked_seldom(
    shop: Shop, host: IsoHost, kind: str, code: str
) -> None:
    """Often at first; then once an hour for a day, then once a day."""
    given, _ = give_where_nothing_is_taken_back(shop, host, kind, code)
    assert reversals(host) == MANY_REFUSALS
    for _ in range(20):
        recover_after(120)
    assert reversals(host) == MANY_REFUSALS
    for _ in range(24):
        recover_after(3600)
    asked = reversals(host)
    assert asked == MANY_REFUSALS + 24
    for _ in range(20):
        recover_after(3600)
    assert reversals(host) == asked
    recover_after(DAY)
    assert reversals(host) == asked + 1
    assert status(given)[0] == "IN_DOUBT"


@pytest.mark.parametrize("kind", ["CD", "RF"])
@pytest.mark.parametrize(("answer", "end"), [("--paid", ("APPROVED", OK)), ("--not-paid", ("DECLINED", "900.100.301"))])
def test_a_person_ends_a_refund_or_credit_that_is_not_taken_back(
    shop: Shop, host: IsoHost, kind: str, answer: str, end: tuple[str, str]
) -> None:
    given, paid = give_where_nothing_is_taken_back(shop, host, kind)
    waiting = metrics.count_open_payments()
    assert (waiting.undecided, waiting.oldest_in_doubt_s) == (1, 0.0)
    shown = page_of(shop, given)
    assert "does not take it back: it stays in doubt until a person has asked" in shown
    assert "Enter what the acquirer says…" in shown
    if paid:
        assert shop.api.follow(paid, "RF", "92.00").code == "700.400.200", "its amount is blocked"
        assert "Enter what the acquirer says…" not in page_of(shop, paid)
    call_command("decide_payout", given, answer)
    assert status(given) == end
    assert not OpenPayment.objects.exists()
    assert metrics.count_open_payments().undecided == 0
    before = reversals(host)
    recover_after(2 * DAY)
    assert reversals(host) == before
    if paid:
        kept = "82.00" if answer == "--paid" else "92.00"
        assert shop.api.follow(paid, "RF", str(Decimal(kept) + Decimal("0.01"))).code == "700.400.200"
        assert shop.api.follow(paid, "RF", kept).code == OK


@pytest.mark.parametrize("kind", ["CD", "RF"])
def test_a_refund_or_credit_waits_for_a_person_only_after_many_refusals(shop: Shop, host: IsoHost, kind: str) -> None:
    """Until then the host may still take it back, and no person is to decide beside it."""
    if kind == "RF":
        host.next("0200")
    host.next("0200", de39="91")
    host.next("0420", de39="12")
    host.next("0421", de39="12", times=MANY_REFUSALS - 2)
    given, _ = give(shop, kind)
    for _ in range(MANY_REFUSALS - 1):
        recover_after(120)
    assert metrics.count_open_payments().undecided == 0
    with pytest.raises(CommandError, match="nor a refund or credit that its acquirer has often refused to take back"):
        call_command("decide_payout", given, "--paid")
    recover_after(120)
    assert status(given) == ("DECLINED", "900.100.301")


def test_a_debit_that_is_not_taken_back_is_asked_about_as_ever(shop: Shop, host: IsoHost) -> None:
    host.next("0200", "lost")
    host.next("0420", de39="12", times=99)
    host.next("0421", de39="12", times=99)
    paid = shop.api.pay(testMode="EXTERNAL").id
    for _ in range(MANY_REFUSALS + 2):
        recover_after(120)
    assert reversals(host) == MANY_REFUSALS + 2
    assert metrics.count_open_payments().undecided == 0
    with pytest.raises(CommandError, match="no payout to a card"):
        call_command("decide_payout", paid, "--paid")


def reverse_without_verdict(shop: Shop, host: IsoHost, code: str, times: int = MANY_REFUSALS) -> tuple[str, str]:
    """The reversal of a debit, whose answer was lost, and whose repeats were answered by ``code``; and the debit."""
    paid = shop.api.pay(testMode="EXTERNAL", paymentType="DB").id
    host.next("0400", "lost")
    host.next("0401", de39=code, times=99)
    back = shop.api.follow(paid, "RV").id
    for _ in range(times):
        recover_after(120)
    return back, paid


@pytest.mark.parametrize("code", ["21", "25", "94"])
@pytest.mark.parametrize(("answer", "end"), [("--paid", ("APPROVED", OK)), ("--not-paid", ("DECLINED", "900.100.301"))])
def test_a_person_ends_a_reversal_whose_repeats_decide_nothing(
    shop: Shop, host: IsoHost, code: str, answer: str, end: tuple[str, str]
) -> None:
    back, paid = reverse_without_verdict(shop, host, code)
    assert metrics.count_open_payments().undecided == 1
    for _ in range(5):
        recover_after(120)
    assert len(host.seen("0401")) == MANY_REFUSALS, "it is asked once an hour by now"
    shown = page_of(shop, back)
    assert "those to its repeats do not say whether it was carried out" in shown
    assert "Enter what the acquirer says…" in shown
    assert shop.api.follow(paid, "RF", "0.01").code == "700.400.200", "its amount is blocked"
    call_command("decide_payout", back, answer)
    assert status(back) == end
    assert (OpenPayment.objects.exists(), metrics.count_open_payments().undecided) == (False, 0)
    if answer == "--not-paid":
        told = Payment.objects.get(pk=back).answer["resultDetails"]
        assert told["ExtendedDescription"] == "The acquirer says that it was not reversed."
        assert "which says that it was never made" in page_of(shop, back)
    again = shop.api.follow(paid, "RF", "92.00").code
    assert again == ("700.400.200" if answer == "--paid" else OK)


@pytest.mark.parametrize(
    ("answer", "setting", "left"),
    [("--paid", "alone", "92.00"), ("--paid", "whole", "32.00"), ("--not-paid", "alone", "32.00")],
)
def test_the_reversal_of_a_capture_that_a_person_says_was_made_reopens_where_the_host_goes_on_holding(
    shop: Shop, iso_host: IsoHost, answer: str, setting: str, left: str
) -> None:
    """docs/decisions/0096: as the host's own answer would have done."""
    account_at_host(shop.channel, iso_host, reversed_captures=setting)
    held = shop.api.pay(testMode="EXTERNAL", paymentType="PA").id
    capture = shop.api.follow(held, "CP", "60.00").id
    iso_host.next("0400", "lost")
    iso_host.next("0401", de39="25", times=99)
    back = shop.api.follow(capture, "RV").id
    for _ in range(MANY_REFUSALS):
        recover_after(120)
    call_command("decide_payout", back, answer)
    reopens = answer == "--paid" and setting == "alone"
    row = Payment.objects.get(pk=back)
    assert row.reopens_authorization == reopens
    assert row.answer.get("resultDetails", {}).get("AuthorizationReopened") == ("true" if reopens else None)
    assert Chain(load_chain_members(row.chain)).authorization.capturable == Decimal(left)


@pytest.mark.parametrize(("answer", "end"), [("--paid", ("APPROVED", OK)), ("--not-paid", ("DECLINED", "900.100.301"))])
def test_a_person_ends_a_capture_whose_repeats_decide_nothing(
    shop: Shop, host: IsoHost, answer: str, end: tuple[str, str]
) -> None:
    held = shop.api.pay(testMode="EXTERNAL", paymentType="PA").id
    host.next("0220", "lost")
    host.next("0221", de39="25", times=99)
    capture = shop.api.follow(held, "CP", "60.00").id
    for _ in range(MANY_REFUSALS):
        recover_after(120)
    assert metrics.count_open_payments().undecided == 1
    shown = page_of(shop, capture)
    assert "those to its repeats do not say whether it was carried out" in shown
    assert "Whether it was captured is not known" in shown
    assert "Enter what the acquirer says…" in shown
    assert shop.api.follow(held, "CP", "92.00").code == "700.400.100", "its amount is blocked"
    call_command("decide_payout", capture, answer)
    assert status(capture) == end
    if answer == "--not-paid":
        told = Payment.objects.get(pk=capture).answer["resultDetails"]
        assert told["ExtendedDescription"] == "The acquirer says that it was not captured."
    assert shop.api.follow(held, "CP", "92.00").code == ("700.400.100" if answer == "--paid" else OK)


@pytest.mark.parametrize(
    ("kind", "mti", "end"), [("RV", "040", ("APPROVED", OK)), ("CP", "022", ("DECLINED", "900.100.301"))]
)
def test_what_the_repeat_finds_while_a_person_enters_that_it_was_not_made_counts(
    shop: Shop, host: IsoHost, monkeypatch: pytest.MonkeyPatch, kind: str, mti: str, end: tuple[str, str]
) -> None:
    """The amount of a reversal that was made could be refunded; a capture that was made stayed at the acquirer."""
    held = shop.api.pay(testMode="EXTERNAL", paymentType="PA").id
    host.next(f"{mti}0", "lost")
    host.next(f"{mti}1", de39="25", times=MANY_REFUSALS)
    made = shop.api.follow(held, kind, "92.00").id
    for _ in range(MANY_REFUSALS):
        recover_after(120)
    record = recovery.record_outcome

    def record_after_a_person(payment: Payment, finding: recovery.InquiryResult) -> bool:
        decide_payout(payment.pk, paid=False, by=audit_log.COMMAND_LINE_ACTOR)
        return record(payment, finding)

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "record_outcome", record_after_a_person)
        recover_after(DAY)
    recover_after(120)
    assert status(made) == end
    assert not OpenPayment.objects.exists()
    if kind == "CP":
        assert host.of(held).captured == 0, "it was taken back"


def test_what_the_repeat_refuses_while_a_person_enters_that_it_was_made_is_told(
    shop: Shop, host: IsoHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    back, _ = reverse_without_verdict(shop, host, "25")
    host._plans.clear()
    host.next("0401", de39="57")
    record = recovery.record_outcome

    def record_after_a_person(payment: Payment, finding: recovery.InquiryResult) -> bool:
        decide_payout(payment.pk, paid=True, by=audit_log.COMMAND_LINE_ACTOR)
        return record(payment, finding)

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "record_outcome", record_after_a_person)
        recover_after(DAY)
    assert status(back) == ("APPROVED", OK)
    assert "declined_after_approval" in caplog.text
    assert "It was entered as made, but the acquirer declined it" in page_of(shop, back)


@pytest.mark.parametrize("code", ["96", "91"])
def test_a_reversal_that_a_host_cannot_take_now_is_repeated_as_often_as_ever(
    shop: Shop, host: IsoHost, code: str
) -> None:
    back, _ = reverse_without_verdict(shop, host, code, MANY_REFUSALS + 2)
    assert len(host.seen("0401")) == MANY_REFUSALS + 2
    assert metrics.count_open_payments().undecided == 0
    with pytest.raises(CommandError, match="nor a capture or reversal whose repeats have often decided nothing"):
        call_command("decide_payout", back, "--paid")


def test_a_reversal_that_its_host_refuses_when_it_is_repeated_is_declined(shop: Shop, host: IsoHost) -> None:
    back, paid = reverse_without_verdict(shop, host, "57", 1)
    assert status(back) == ("DECLINED", "800.100.170")
    assert shop.api.follow(paid, "RF", "92.00").code == OK


def say_what_declines(account: AcquirerAccount, codes: str) -> None:
    account.settings = account.settings | {"credit_declines": codes}
    account.save()
    accounts.clear_account_cache()


@pytest.mark.parametrize("transfer", ["", "PAYMENT"])
def test_what_an_account_says_later_of_an_answer_ends_what_waits(shop: Shop, host: IsoHost, transfer: str) -> None:
    """The acquirer has said that its 91 means that nothing was booked."""
    if transfer:
        host.next("0200", de39="91")
        given = pay_out(shop)
        recover_after(120)
    else:
        given, _ = give_where_nothing_is_taken_back(shop, host, "RF")
    account = AcquirerAccount.objects.get(acquirer_merchant_id="MERCHANT-1")
    say_what_declines(account, "06 96")
    recover_after(DAY)
    assert status(given)[0] == "IN_DOUBT"
    say_what_declines(account, "91")
    before = reversals(host)
    recover_after(DAY)
    assert status(given) == ("DECLINED", "900.100.201")
    assert reversals(host) == before


@pytest.mark.parametrize("code", ["25", "76"])
def test_a_refund_that_the_issuer_may_yet_read_is_not_proven_unbooked_at_once(
    shop: Shop, host: IsoHost, code: str
) -> None:
    """91 came from a switch; the issuer may not have read the refund when the reversal overtakes it."""
    host.next("0200")
    host.next("0200", de39="91")
    host.next("0420", de39=code, times=9)
    given, _ = give(shop, "RF")
    recover_after(5)
    assert (status(given)[0], reversals(host)) == ("IN_DOUBT", 1)
    for _ in range(8):
        recover_after(120)
    assert status(given) == ("DECLINED", "900.100.301")


@pytest.mark.parametrize("code", ["90", "91", "96"])
def test_a_host_that_cannot_take_a_refund_back_now_is_asked_as_often_as_ever(
    shop: Shop, host: IsoHost, code: str
) -> None:
    given, _ = give_where_nothing_is_taken_back(shop, host, "RF", code)
    recover_after(120)
    assert reversals(host) == MANY_REFUSALS + 1
    assert metrics.count_open_payments().undecided == 0
    assert status(given)[0] == "IN_DOUBT"
