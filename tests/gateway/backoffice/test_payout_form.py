"""The page on which a clerk enters what became of a payout without an answer. Source: docs/decisions/0156."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gateway.backoffice.follow_ups import approvals
from gateway.backoffice.follow_ups.clerk_limits import Clerk
from gateway.core import clock
from gateway.models import Approval, AuditEntry, ClerkLimitUsage, Notification, OpenPayment, Payment, Role
from gateway.models.payments import MANY_REFUSALS
from gateway.payments.payout_decisions import decide_payout
from tests.support.fixtures import BY, Shop
from tests.support.iso_host import IsoHost, account_at_host, iso_host
from tests.support.office import person, signed_in
from tests.support.recovery import recover_after

__all__ = ["iso_host"]

PAID, NOT_PAID = ("APPROVED", "000.100.112"), ("DECLINED", "900.100.301")


@pytest.fixture
def payout(iso_host: IsoHost, shop: Shop) -> str:
    """A payout of 92.00 EUR without an answer."""
    account_at_host(shop.channel, iso_host)
    iso_host.next("0200", "lost")
    transfer = {"transactionProcessingCode": "PAYMENT", "transactionBai": "AA"}
    parties = {"recipient__country": "DEU", "sender__name": "Example Shop"}
    made = shop.api.pay(testMode="EXTERNAL", paymentType="CD", **transfer, **parties).id
    recover_after(120)
    return made


@pytest.fixture
def refund(iso_host: IsoHost, shop: Shop) -> str:
    """A refund of 92.00 EUR that its issuer left open, and its host does not take back."""
    account_at_host(shop.channel, iso_host)
    paid = shop.api.pay(testMode="EXTERNAL", paymentType="DB").id
    iso_host.next("0200", de39="91")
    iso_host.next("0420", de39="12")
    iso_host.next("0421", de39="12", times=MANY_REFUSALS)
    made = shop.api.follow(paid, "RF", "92.00").id
    for _ in range(MANY_REFUSALS):
        recover_after(120)
    return made


@pytest.mark.parametrize(("outcome", "end"), [("paid", PAID), ("not paid", NOT_PAID)])
def test_a_clerk_enters_what_became_of_a_refund_that_is_not_taken_back(
    shop: Shop, refund: str, outcome: str, end: tuple[str, str]
) -> None:
    client = signed_in(person("ann", Role.CLERK, shop.merchant))
    page = f"/admin/gateway/payment/{refund}/change/"
    shown = client.get(page).content.decode()
    assert address(refund) in shown
    assert "Do not refund again" in shown
    assert "Whether the money was given back is not known" in shown
    assert "no answer that decides: in doubt, the acquirer is asked again" in shown
    assert [words for words in ("paid out", "pay out", "The payment is still open.") if words in shown] == []
    assert "whoever refunds again may give the money back twice" in client.get(address(refund)).content.decode()
    assert enter(client, refund, outcome).status_code == 302
    assert status(refund) == end
    assert ClerkLimitUsage.objects.get().amount == 92
    again = client.get(address(refund)).content.decode()
    said = "it reached the card" if outcome == "paid" else "it was never made, and never will be"
    assert again.count(f"It has its outcome by now: {said}.") == 1
    after = client.get(page).content.decode()
    assert f"ann entered what iso8583 says: {said}" in after
    assert ("which says that it was never made" in after) is (outcome == "not paid")
    assert "Please try again" not in after


@pytest.mark.parametrize(("outcome", "end"), [("paid", PAID), ("not paid", NOT_PAID)])
def test_above_a_limit_a_second_person_decides_of_a_refund(
    shop: Shop, refund: str, outcome: str, end: tuple[str, str]
) -> None:
    ann, max_ = (
        person("ann", Role.CLERK, shop.merchant, four_eyes_above="91.99"),
        person("max", Role.MANAGER, shop.merchant),
    )
    enter(signed_in(ann), refund, outcome)
    assert status(refund)[0] == "IN_DOUBT"
    row = Approval.objects.get()
    shown = signed_in(max_).get(f"/admin/gateway/approval/{row.pk}/change/").content.decode()
    assert shown.count("Outcome of a refund <strong>92.00 EUR</strong>") == 1
    assert "Credit" not in shown, "nor does the way to the page call it one"
    done = approvals.decide_approval(row.pk, approve=True, note="", by=clerk_of(max_))
    assert (done.state, status(refund)) == (Approval.State.DONE, end)


@pytest.mark.parametrize(
    ("outcome", "said"), [("paid", "it was carried out"), ("not paid", "it was not carried out, and never will be")]
)
@pytest.mark.parametrize(
    ("kind", "mti", "named", "help_"),
    [
        ("CP", "022", "capture", "whoever captures again may take the money twice"),
        ("RV", "040", "reversal", "whoever refunds what was reversed gives the money back twice"),
    ],
)
def test_of_a_capture_or_reversal_the_words_are_not_those_of_a_payout(
    shop: Shop, iso_host: IsoHost, kind: str, mti: str, named: str, help_: str, outcome: str, said: str
) -> None:
    """docs/decisions/0166. The form asked whether a capture had reached the card."""
    account_at_host(shop.channel, iso_host)
    held = shop.api.pay(testMode="EXTERNAL", paymentType="PA").id
    iso_host.next(f"{mti}0", "lost")
    iso_host.next(f"{mti}1", de39="25", times=MANY_REFUSALS)
    made = shop.api.follow(held, kind, "92.00").id
    for _ in range(MANY_REFUSALS):
        recover_after(120)
    ann = person("ann", Role.CLERK, shop.merchant, four_eyes_above="91.99")
    approver = signed_in(person("max", Role.MANAGER, shop.merchant))
    client = signed_in(ann)
    shown = client.get(address(made)).content.decode()
    assert help_ in shown
    assert "reached the card" not in shown
    assert f">{said}</option>" in shown
    enter(client, made, outcome)
    row = Approval.objects.get()
    asked = approver.get(f"/admin/gateway/approval/{row.pk}/change/").content.decode()
    assert f"Outcome of a {named} <strong>92.00 EUR</strong>" in asked
    assert said in asked
    told = approver.post(f"/admin/gateway/approval/{row.pk}/decide/", {"verb": "approve"}, follow=True).content.decode()
    assert f"Carried out: {said}." in told
    page = client.get(f"/admin/gateway/payment/{made}/change/").content.decode()
    assert f"max entered what iso8583 says: {said}" in page
    assert f"It has its outcome by now: {said}." in client.get(address(made)).content.decode()


def test_the_list_of_what_is_in_doubt_has_the_refund(shop: Shop, refund: str) -> None:
    """The list has a button for it. It asked for the state of whole payments, in which a refund in doubt is none."""
    client = signed_in(person("ann", Role.CLERK, shop.merchant))
    payments = "/admin/gateway/payment/"
    (quick,) = re.findall(r'href="([^"]+)"[^>]*>In doubt<', client.get(payments).content.decode())
    assert f"{payments}{UUID(refund)}/change/" in client.get(payments + unescape(quick)).content.decode()


def address(payout: str) -> str:
    return f"/admin/gateway/payment/{UUID(payout)}/payout/"


def enter(client: Client, payout: str, outcome: str, note: str = "", **changes: str) -> Any:
    """Open the form and send it."""
    page = client.get(address(payout))
    key = page.context["key"] if page.context is not None else ""
    return client.post(address(payout), {"key": key, "outcome": outcome, "note": note, **changes})


def status(payout: str) -> tuple[str, str]:
    row = Payment.objects.get(pk=payout)
    return row.status, row.result_code


def clerk_of(user: User) -> Clerk:
    return Clerk(user=user.pk, name=user.get_username(), ip=None)


@pytest.mark.parametrize(("outcome", "end"), [("paid", PAID), ("not paid", NOT_PAID)])
def test_a_clerk_enters_what_the_acquirer_says(shop: Shop, payout: str, outcome: str, end: tuple[str, str]) -> None:
    client = signed_in(person("ann", Role.CLERK, shop.merchant))
    page = f"/admin/gateway/payment/{payout}/change/"
    shown = client.get(page).content.decode()
    assert (address(payout) in shown, "have its answer entered on the payment" in shown) == (True, True)
    assert "manage.py" not in shown
    told = Notification.objects.filter(payment_id=payout).count()
    assert enter(client, payout, outcome, "Mr Example of the acquirer").status_code == 302
    assert status(payout) == end
    assert Notification.objects.filter(payment_id=payout).count() == told + 1
    assert not OpenPayment.objects.exists()
    (entry,) = AuditEntry.objects.filter(action="payout decided")
    assert (entry.actor, entry.after) == ("ann", {"paid": outcome == "paid", "note": "Mr Example of the acquirer"})
    assert ClerkLimitUsage.objects.get().amount == 92
    assert address(payout) not in client.get(page).content.decode()


@pytest.mark.parametrize("limit", [{"four_eyes_above": "91.99"}, {"four_eyes_day": "91.99"}])
@pytest.mark.parametrize(("outcome", "end"), [("paid", PAID), ("not paid", NOT_PAID)])
def test_above_a_limit_a_second_person_decides(
    shop: Shop, payout: str, outcome: str, end: tuple[str, str], limit: dict[str, str]
) -> None:
    ann, max_ = person("ann", Role.CLERK, shop.merchant, **limit), person("max", Role.MANAGER, shop.merchant)
    client = signed_in(ann)
    assert "over your limit" in client.get(address(payout)).content.decode()
    assert enter(client, payout, outcome).status_code == 302
    assert status(payout)[0] == "IN_DOUBT"
    row = Approval.objects.get()
    assert (row.payment_type, row.reason, row.amount, row.asked_by_name) == ("CD", outcome, 92, "ann")
    again = enter(client, payout, "paid")
    assert (again.status_code, again.content.decode().count("asked for before")) == (400, 1)
    assert '<select id="outcome"' not in client.get(address(payout)).content.decode(), "it would be refused"
    approver = signed_in(max_)
    shown = approver.get(f"/admin/gateway/approval/{row.pk}/change/").content.decode()
    assert "Outcome of a payout or credit" in shown
    assert "Approving records it, and nobody can enter another outcome" in shown
    told = approver.post(f"/admin/gateway/approval/{row.pk}/decide/", {"verb": "approve"}, follow=True)
    said = "it reached the card" if outcome == "paid" else "it was never made, and never will be"
    assert f"Carried out: {said}." in told.content.decode()
    row.refresh_from_db()
    assert (row.state, row.result_code) == (Approval.State.DONE, end[1])
    assert status(payout) == end
    (entry,) = AuditEntry.objects.filter(action="payout decided")
    assert entry.actor == "max"
    timeline = signed_in(ann).get(f"/admin/gateway/payment/{payout}/change/").content.decode()
    assert "max approved: Outcome of a payout or credit of 92.00 EUR" in timeline


@pytest.mark.parametrize(("said", "state"), [(True, Approval.State.DONE), (False, Approval.State.FAILED)])
def test_an_outcome_that_came_before_the_approval_stands(shop: Shop, payout: str, said: bool, state: str) -> None:
    """By the command, or a late answer: the same one carries the request out, another one refuses it."""
    ann, max_ = person("ann", Role.CLERK, shop.merchant, four_eyes_above="1.00"), person("max", Role.MANAGER)
    enter(signed_in(ann), payout, "paid")
    decide_payout(Payment.objects.get(pk=payout).pk, paid=said, by=BY)
    done = approvals.decide_approval(Approval.objects.get().pk, approve=True, note="", by=clerk_of(max_))
    assert done.state == state
    assert status(payout) == (PAID if said else NOT_PAID)
    assert ClerkLimitUsage.objects.exists() is said


def test_only_who_may_move_money_and_has_just_signed_in_enters_it(shop: Shop, stranger: Shop, payout: str) -> None:
    reader = signed_in(person("rita", Role.AUDITOR, shop.merchant))
    assert address(payout) not in reader.get(f"/admin/gateway/payment/{payout}/change/").content.decode()
    assert reader.get(address(payout)).status_code == 403
    foreign = signed_in(person("fred", Role.MANAGER, stranger.merchant))
    assert foreign.post(address(payout), {"outcome": "paid"}).status_code == 404
    late = signed_in(person("ann", Role.CLERK, shop.merchant), fresh=False)
    assert late.post(address(payout), {"outcome": "paid"}).status_code == 302
    assert status(payout)[0] == "IN_DOUBT"


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({"outcome": ""}, "Choose what the acquirer says"),
        ({"outcome": "requested"}, "Choose what the acquirer says"),
        ({"key": "x"}, "not one of ours"),
    ],
)
def test_what_is_no_outcome_is_refused(shop: Shop, payout: str, sent: dict[str, str], why: str) -> None:
    answer = enter(signed_in(person("ann", Role.CLERK, shop.merchant)), payout, sent.pop("outcome", "paid"), **sent)
    assert (answer.status_code, why in answer.content.decode()) == (400, True)
    assert status(payout)[0] == "IN_DOUBT"


def test_a_payment_that_is_no_payout_in_doubt_has_no_form(shop: Shop) -> None:
    client = signed_in(person("ann", Role.CLERK, shop.merchant))
    paid = shop.api.pay().id
    page = client.get(address(paid))
    assert (page.status_code, "does not wait for an outcome" in page.content.decode()) == (200, True)
    refused = client.post(address(paid), {"key": page.context["key"], "outcome": "paid"})
    assert (refused.status_code, "does not wait for an outcome" in refused.content.decode()) == (400, True)


def test_a_request_that_nobody_decided_in_time_is_in_nobodys_way(shop: Shop, payout: str) -> None:
    """It refused everybody for good, and could be neither decided nor withdrawn."""
    ann = signed_in(person("ann", Role.CLERK, shop.merchant, four_eyes_above="1.00"))
    enter(ann, payout, "paid")
    (old,) = Approval.objects.all()
    Approval.objects.update(expires_at=clock.real_now() - timedelta(seconds=1))
    request = f"/admin/gateway/approval/{old.pk}/change/"
    for page in (address(payout), f"/admin/gateway/payment/{payout}/do/RF/"):
        assert request not in ann.get(page).content.decode()
    max_ = signed_in(person("max", Role.MANAGER, shop.merchant))
    assert enter(max_, payout, "not paid").status_code == 302
    assert status(payout) == NOT_PAID
    assert "Withdraw the request" not in max_.get(request).content.decode()
    shown = ann.get(request).content.decode()
    assert ("Withdraw the request" in shown, "somebody else decides it" in shown) == (True, False)
    ann.post(f"/admin/gateway/approval/{old.pk}/decide/", {"verb": "withdraw"})
    old.refresh_from_db()
    assert old.state == Approval.State.WITHDRAWN


def test_approval_is_asked_for_again_after_a_request_that_is_too_old(shop: Shop, payout: str) -> None:
    ann, max_ = person("ann", Role.CLERK, shop.merchant, four_eyes_above="1.00"), person("max", Role.MANAGER)
    client = signed_in(ann)
    enter(client, payout, "not paid")
    Approval.objects.update(expires_at=clock.real_now() - timedelta(seconds=1))
    assert enter(client, payout, "paid").status_code == 302
    again = Approval.objects.get(reason="paid")
    assert approvals.decide_approval(again.pk, approve=True, note="", by=clerk_of(max_)).state == Approval.State.DONE
    assert status(payout) == PAID


def test_a_form_that_is_sent_twice_records_its_outcome_once(shop: Shop, payout: str) -> None:
    """The second one told a fault, as if nothing had been recorded."""
    client = signed_in(person("ann", Role.CLERK, shop.merchant))
    sent = {"key": client.get(address(payout)).context["key"], "outcome": "paid"}
    assert [client.post(address(payout), sent).status_code for _ in range(2)] == [302, 302]
    shown = client.get(f"/admin/gateway/payment/{payout}/change/").content.decode()
    assert "Recorded before: it reached the card." in shown
    assert (status(payout), ClerkLimitUsage.objects.count()) == (PAID, 1)
    other = client.post(address(payout), sent | {"outcome": "not paid"})
    assert (other.status_code, "It has its outcome by now: it reached the card." in other.content.decode()) == (
        400,
        True,
    )
