"""Four eyes: asked for once, decided by somebody else, carried out once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from html import unescape
from smtplib import SMTPRecipientsRefused
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.mail import BadHeaderError, EmailMessage
from django.core.mail.backends.locmem import EmailBackend
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import translation

from gateway.backoffice.access import independence
from gateway.backoffice.follow_ups import approval_notice, approvals, manual_follow_up
from gateway.backoffice.follow_ups.clerk_limits import Clerk
from gateway.backoffice.follow_ups.manual_follow_up import FollowUpNotPossibleError, FollowUpOrder
from gateway.core import clock, identifiers
from gateway.models import Approval, AuditEntry, ClerkLimitUsage, Payment
from gateway.payments.chain_amounts import Chain
from gateway.timers import due_times
from tests.support.fixtures import BY, Shop
from tests.support.office import person, signed_in
from tests.support.threads import PATIENCE_S, at_once


def clerk(name: str, limit: str | None = None, day: str | None = None) -> Clerk:
    user, _ = User.objects.get_or_create(username=name)
    one, all_ = (Decimal(each) if each else None for each in (limit, day))
    return Clerk(user=user.pk, name=name, ip="192.0.2.1", limit=one, day=all_)


def asked(shop: Shop, by: Clerk, amount: str = "50.00") -> Approval:
    target = Payment.objects.select_related("merchant", "channel").get(pk=shop.api.pay().id)
    order = FollowUpOrder(target=target, code="RF", amount=Decimal(amount))
    met = manual_follow_up.check_clerk_limit(by, order, Chain([target]))
    assert met is not None
    row, made = approvals.request_approval(order, "the shopper sent it back", by=by, key=identifiers.row_id(), met=met)
    assert made
    return row


def refunds() -> list[Payment]:
    return list(Payment.objects.filter(payment_type="RF"))


def test_what_is_over_the_limit_is_asked_for_and_sent_when_somebody_else_approves(shop: Shop) -> None:
    clara, max_ = clerk("clara", "20.00"), clerk("max")
    row = asked(shop, clara)
    assert refunds() == []
    done = approvals.decide_approval(row.pk, approve=True, note="fine", by=max_)
    (refund,) = refunds()
    assert (done.state, done.follow_up, done.result_code) == ("DONE", refund.pk, "000.100.110")
    assert (done.asked_by_name, done.decided_by_name, done.decision_note) == ("clara", "max", "fine")
    trail = list(AuditEntry.objects.exclude(actor="tests").order_by("id").values_list("action", "actor", "ip"))
    assert trail == [
        ("approval asked", "clara", "192.0.2.1"),
        ("approval given", "max", "192.0.2.1"),
        ("refund sent", "max", "192.0.2.1"),
        ("refund made", "max", "192.0.2.1"),
        ("approval carried out", "max", "192.0.2.1"),
    ]


def test_the_form_tells_what_of_the_payment_waits_for_a_decision_already(shop: Shop) -> None:
    """Found in use: after the back button the form offered all that was left, and 90.00 were asked for beside 30.00."""
    person("clara", "clerk", shop.merchant, four_eyes_above="20.00")
    row = asked(shop, clerk("clara", "20.00"), "30.00")
    client = signed_in(User.objects.get(username="clara"))
    form = f"/admin/gateway/payment/{row.payment_id}/do/RF/"
    assert "clara asked for approval of 30.00 EUR" in client.get(form).content.decode()
    approvals.decide_approval(row.pk, approve=True, note="", by=clerk("max"))
    assert "asked for approval" not in client.get(form).content.decode()


def test_who_approves_has_a_limit_that_covers_what_both_move(shop: Shop) -> None:
    """Found in use: somebody made a user, and that user approved. 20.00 alone and 50.00 together are 70.00."""
    clara = clerk("clara", "20.00")
    row = asked(shop, clara)
    target = Payment.objects.select_related("merchant", "channel").get(pk=row.payment_id)
    manual_follow_up.send_follow_up(
        FollowUpOrder(target=target, code="RF", amount=Decimal("20.00")), clara, identifiers.row_id()
    )
    for low in (clerk("sock", "50.00"), clerk("mia", "69.99")):
        with pytest.raises(FollowUpNotPossibleError, match="above your own limit"):
            approvals.decide_approval(row.pk, approve=True, note="", by=low)
    assert len(refunds()) == 1
    assert approvals.decide_approval(row.pk, approve=True, note="", by=clerk("max", "70.00")).state == "DONE"
    assert len(refunds()) == 2


def test_a_request_tells_which_limit_was_met_and_what_of_it_was_used(shop: Shop) -> None:
    """The manager sees why they are asked."""
    clara = clerk("clara", "60.00", "100.00")
    for _ in range(2):
        target = Payment.objects.select_related("merchant", "channel").get(pk=shop.api.pay().id)
        manual_follow_up.send_follow_up(
            FollowUpOrder(target=target, code="RF", amount=Decimal("30.00")), clara, identifiers.row_id()
        )
    by_day, by_payment = asked(shop, clara, "50.00"), asked(shop, clara, "60.01")
    assert (by_day.over, by_day.over_limit, by_day.moved) == ("day", 100, 60)
    assert (by_payment.over, by_payment.over_limit) == ("day", 100), "the one with the least left"
    assert asked(shop, clerk("carl", "20.00", "100.00")).over == "payment"


def test_what_somebody_approves_counts_for_their_own_day(shop: Shop) -> None:
    """Two people with small limits who approve each other's requests are not one without any."""
    clara, mia = clerk("clara", "20.00"), clerk("mia", day="100.00")
    first, second = asked(shop, clara), asked(shop, clara, "50.01")
    approvals.decide_approval(first.pk, approve=True, note="", by=mia)
    with pytest.raises(FollowUpNotPossibleError, match=r"own limit of 100\.00 EUR in 24 hours"):
        approvals.decide_approval(second.pk, approve=True, note="", by=mia)
    second.refresh_from_db()
    assert second.state == "ASKED"
    assert approvals.decide_approval(second.pk, approve=False, note="", by=mia).state == "REJECTED"
    assert [row.user for row in ClerkLimitUsage.objects.all()] == [mia.user]


def test_of_many_approvals_at_once_the_day_lets_two_through(committed: Shop) -> None:
    """The sum is counted in the decision's own transaction."""
    clara, mia = clerk("clara", "20.00"), clerk("mia", day="100.00")
    rows = [asked(committed, clara) for _ in range(4)]

    def decide(row: Approval) -> str:
        try:
            return str(approvals.decide_approval(row.pk, approve=True, note="", by=mia).state)
        except FollowUpNotPossibleError:
            return "no"

    assert sorted(at_once(*[lambda row=row: decide(row) for row in rows])) == ["DONE", "DONE", "no", "no"]
    assert len(refunds()) == 2


def test_who_was_made_or_changed_by_the_one_who_asked_does_not_approve(shop: Shop) -> None:
    """Found in use: a new user, a new password or another limit made one person into two."""
    clara, max_ = clerk("clara", "20.00"), clerk("max")
    row = asked(shop, clara)
    independence.record_handling(User.objects.get(pk=clara.user), User.objects.get(pk=max_.user), "password link")
    with pytest.raises(FollowUpNotPossibleError, match="clara made or changed"):
        approvals.decide_approval(row.pk, approve=True, note="", by=max_)
    assert refunds() == []
    assert approvals.decide_approval(row.pk, approve=True, note="", by=clerk("mia")).state == "DONE"


def test_nobody_approves_their_own_request(shop: Shop) -> None:
    """Not by the program, and not past it: the database refuses."""
    clara = clerk("clara", "20.00")
    row = asked(shop, clara)
    with pytest.raises(FollowUpNotPossibleError, match="yourself"):
        approvals.decide_approval(row.pk, approve=True, note="", by=clara)
    with pytest.raises(IntegrityError), transaction.atomic():
        Approval.objects.filter(pk=row.pk).update(
            state="APPROVED", decided_by=clara.user, follow_up=identifiers.row_id()
        )
    assert refunds() == []


def test_a_rejected_a_withdrawn_and_an_old_request_send_nothing(shop: Shop) -> None:
    clara, max_ = clerk("clara", "20.00"), clerk("max")
    rejected, withdrawn, old = asked(shop, clara), asked(shop, clara), asked(shop, clara)
    assert approvals.decide_approval(rejected.pk, approve=False, note="no", by=max_).state == "REJECTED"
    with pytest.raises(FollowUpNotPossibleError):
        approvals.withdraw_approval(withdrawn.pk, by=max_)
    assert approvals.withdraw_approval(withdrawn.pk, by=clara).state == "WITHDRAWN"
    Approval.objects.filter(pk=old.pk).update(expires_at=clock.real_now() - timedelta(seconds=1))
    for row in (rejected, withdrawn, old):
        with pytest.raises(FollowUpNotPossibleError):
            approvals.decide_approval(row.pk, approve=True, note="", by=max_)
    assert refunds() == []


@pytest.mark.parametrize("approve", [True, False])
def test_what_was_decided_is_not_withdrawn(shop: Shop, approve: bool) -> None:
    """The money may have moved already."""
    clara = clerk("clara", "20.00")
    row = asked(shop, clara)
    decided = approvals.decide_approval(row.pk, approve=approve, note="", by=clerk("max"))
    with pytest.raises(FollowUpNotPossibleError, match="only while nobody has decided"):
        approvals.withdraw_approval(row.pk, by=clara)
    row.refresh_from_db()
    assert row.state == decided.state == ("DONE" if approve else "REJECTED")


def test_nobody_withdraws_the_request_of_somebody_else(shop: Shop) -> None:
    row = asked(shop, clerk("clara", "20.00"))
    with pytest.raises(FollowUpNotPossibleError):
        approvals.withdraw_approval(row.pk, by=clerk("max"))
    row.refresh_from_db()
    assert row.state == "ASKED"


def test_of_many_decisions_at_once_one_counts_and_one_refund_is_made(committed: Shop) -> None:
    """Brief: self-approval refused also by a race; execution once."""
    clara, managers = clerk("clara", "20.00"), [clerk("max"), clerk("mia")]
    row = asked(committed, clara)

    def decide(by: Clerk, approve: bool) -> str:
        try:
            return str(approvals.decide_approval(row.pk, approve=approve, note="", by=by).state)
        except FollowUpNotPossibleError:
            return "no"

    calls: list[Any] = [lambda by=by: decide(by, True) for by in (*managers, clara, *managers)]
    states = at_once(*calls, lambda: decide(managers[0], False))
    assert len(refunds()) <= 1
    assert sorted(states).count("no") == 5
    row.refresh_from_db()
    assert row.decided_by_name in ("max", "mia")
    assert (row.state == "DONE") == (len(refunds()) == 1)


def test_an_approval_whose_worker_died_is_carried_out_once(shop: Shop) -> None:
    """House: a due row; whoever finds it carries it out, and what was made before is only kept."""
    clara, max_ = clerk("clara", "20.00"), clerk("max")
    row = asked(shop, clara)
    ident = identifiers.row_id()
    Approval.objects.filter(pk=row.pk).update(
        state="APPROVED", decided_by=max_.user, decided_by_name="max", follow_up=ident, decided_at=clock.real_now()
    )
    assert approvals.TIMER.run() == 0
    assert due_times.find_due_timers({"approvals"}) == set()
    Approval.objects.filter(pk=row.pk).update(decided_at=clock.real_now() - approvals.APPROVAL_ABANDONED_AFTER)
    assert due_times.find_due_timers({"approvals"}) == {"approvals"}
    assert approvals.TIMER.run() == 1
    (refund,) = refunds()
    assert refund.pk == ident
    # The worker died after the payment was made, and before it was kept.
    Approval.objects.filter(pk=row.pk).update(
        state="APPROVED", decided_at=clock.real_now() - approvals.APPROVAL_ABANDONED_AFTER
    )
    assert approvals.TIMER.run() == 1
    row.refresh_from_db()
    assert (row.state, len(refunds())) == ("DONE", 1)


def test_an_approval_that_is_no_longer_possible_says_so(shop: Shop) -> None:
    """The requester sees the outcome."""
    clara, max_ = clerk("clara", "20.00"), clerk("max")
    row = asked(shop, clara)
    assert shop.api.follow(row.payment_id.hex, "RF", "92.00").status == 200
    done = approvals.decide_approval(row.pk, approve=True, note="", by=max_)
    assert (done.state, done.result_code) == ("FAILED", "700.400.200")


def test_the_trail_of_a_german_speaker_is_english(shop: Shop) -> None:
    """Two languages in one trail are searched by nobody. A debit follows nothing: the gateway refuses it."""
    row = asked(shop, clerk("clara", "20.00"))
    Approval.objects.filter(pk=row.pk).update(payment_type="DB")
    with translation.override("de"):
        done = approvals.decide_approval(row.pk, approve=True, note="", by=clerk("max"))
        assert translation.gettext("Give an amount above 0.") != "Give an amount above 0."
    assert done.state == "FAILED"
    kept = AuditEntry.objects.filter(action="approval carried out").get().after or {}
    assert kept["why"].startswith("The gateway refused this: "), kept


def approved(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Approval:
    """A request that was approved and whose worker stopped before it sent anything."""
    row = asked(shop, clerk("clara", "20.00"))
    with monkeypatch.context() as patch:
        patch.setattr(approvals, "execute_approval", lambda row, by: row)
        return approvals.decide_approval(row.pk, approve=True, note="", by=clerk("max"))


def in_another_process(step: Callable[[], object]) -> None:
    def body() -> None:
        step()
        connection.close()

    thread = threading.Thread(target=body)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


@pytest.mark.parametrize("which_ends_first", ["the one that sends", "the one that is refused"])
def test_a_refusal_of_one_worker_does_not_hide_what_the_other_one_sent(
    committed: Shop, monkeypatch: pytest.MonkeyPatch, which_ends_first: str
) -> None:
    """Both carry out one request, since the first was stopped for a while. The refund is in the request and in the
    day of who approved, whichever of them ends first."""
    row = approved(committed, monkeypatch)
    send = approvals.execute_follow_up
    if which_ends_first == "the one that sends":

        def refused_late(*_: Any, **__: Any) -> Payment:
            monkeypatch.setattr(approvals, "execute_follow_up", send)
            in_another_process(lambda: approvals.execute_approval(Approval.objects.get(pk=row.pk), BY))
            raise FollowUpNotPossibleError("the vault does not open")

        monkeypatch.setattr(approvals, "execute_follow_up", refused_late)
    else:

        def stopped_before_sending(*arguments: Any, **more: Any) -> Payment:
            def refused(*_: Any, **__: Any) -> Payment:
                raise FollowUpNotPossibleError("the vault does not open")

            monkeypatch.setattr(approvals, "execute_follow_up", refused)
            in_another_process(lambda: approvals.execute_approval(Approval.objects.get(pk=row.pk), BY))
            assert Approval.objects.get(pk=row.pk).state == "FAILED"
            assert not ClerkLimitUsage.objects.exists()
            return send(*arguments, **more)

        monkeypatch.setattr(approvals, "execute_follow_up", stopped_before_sending)
    done = approvals.execute_approval(row, BY)
    (refund,) = refunds()
    assert (done.state, done.follow_up, done.result_code) == ("DONE", refund.pk, "000.100.110")
    usage = ClerkLimitUsage.objects.get()
    assert (usage.payment, usage.amount, usage.user) == (refund.pk, refund.amount, row.decided_by_id)


def test_who_may_decide_gets_a_mail_with_a_link_and_nobody_else(
    shop: Shop, stranger: Shop, mailoutbox: list[EmailMessage]
) -> None:
    """One mail each: nobody sees who else was asked."""
    for name, role, where in (
        ("max", "manager", shop.merchant),
        ("carl", "clerk", shop.merchant),
        ("otto", "manager", stranger.merchant),
        ("silent", "manager", shop.merchant),
    ):
        user = person(name, role, where)
        user.email = "" if name == "silent" else f"{name}@shop.example"
        user.save()
    asker = person("clara", "manager", shop.merchant, four_eyes_above=Decimal(20))
    asker.email = "clara@shop.example"
    asker.save()
    row = asked(shop, clerk("clara", "20.00"))
    assert approval_notice.mail_requests([row]) == 1
    (mail,) = mailoutbox
    assert mail.to == ["max@shop.example"]
    assert f"/admin/gateway/approval/{row.pk}/change/" in mail.body
    assert "50.00 EUR" in mail.body
    assert "the shopper sent it back" in mail.body


class RefusingServer(EmailBackend):
    """A mail server that knows no old@shop.example; a mail to odd@shop.example cannot be written."""

    def send_messages(self, messages: Any) -> int:
        if any("old@shop.example" in mail.to for mail in messages):
            raise SMTPRecipientsRefused({})
        if any("odd@shop.example" in mail.to for mail in messages):
            raise BadHeaderError
        return int(super().send_messages(messages))


class AwayServer(EmailBackend):
    """A mail server that does not answer. ``tries``: how often it was asked."""

    tries = 0

    def open(self) -> None:
        AwayServer.tries += 1
        raise TimeoutError


def test_a_refused_address_keeps_no_other_one_waiting_and_a_server_that_is_away_is_asked_once(
    shop: Shop, mailoutbox: list[EmailMessage], settings: Any
) -> None:
    for name in ("old", "odd", "max", "mia"):
        user = person(name, "manager", shop.merchant)
        user.email = f"{name}@shop.example"
        user.save()
    row = asked(shop, clerk("clara", "20.00"))
    settings.EMAIL_BACKEND = f"{__name__}.RefusingServer"
    assert approval_notice.mail_requests([row]) == 2
    assert [mail.to for mail in mailoutbox] == [["max@shop.example"], ["mia@shop.example"]]
    settings.EMAIL_BACKEND = f"{__name__}.AwayServer"
    assert (approval_notice.mail_requests([row]), AwayServer.tries) == (0, 1)


def test_mails_are_sent_by_the_timer_once_and_together(shop: Shop, mailoutbox: list[EmailMessage]) -> None:
    """No clerk waits for a mail server, and many requests are one mail to each person."""
    for name in ("max", "clara"):
        user = person(name, "manager", shop.merchant)
        user.email = f"{name}@shop.example"
        user.save()
    rows = [asked(shop, clerk("clara", "20.00"), amount) for amount in ("50.00", "51.00")]
    assert mailoutbox == []
    assert [approval_notice.send_due_notices() for _ in range(2)] == [1, 0]
    (mail,) = mailoutbox
    assert mail.subject == "To approve: 2 requests"
    assert all(f"/admin/gateway/approval/{row.pk}/change/" in mail.body for row in rows)
    approvals.decide_approval(rows[0].pk, approve=False, note="", by=clerk("max"))
    approvals.withdraw_approval(rows[1].pk, by=clerk("clara"))
    assert approval_notice.send_due_notices() == 1
    assert mailoutbox[1].to == ["clara@shop.example"]


def test_the_users_who_may_decide_are_read_once_for_all_requests(shop: Shop, mailoutbox: list[EmailMessage]) -> None:
    for name in ("max", "mia", "clara"):
        user = person(name, "manager", shop.merchant)
        user.email = f"{name}@shop.example"
        user.save()
    for _number in range(3):
        asked(shop, clerk("clara", "20.00"))
    with CaptureQueriesContext(connection) as queries:
        assert approval_notice.send_due_notices() == 2
    read = [query["sql"] for query in queries if query["sql"].startswith("SELECT")]
    assert len([sql for sql in read if 'FROM "gateway_grant"' in sql]) <= 2, "of each who may decide, once"
    assert len([sql for sql in read if sql.startswith('SELECT DISTINCT "auth_user"')]) == 1


@pytest.mark.parametrize("fails", ["_describe_request", "list_deciders", "_build_decision_mail"])
def test_a_notice_that_fails_keeps_no_other_one_from_being_sent(
    shop: Shop, mailoutbox: list[EmailMessage], monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """All were claimed before: what is not sent now is never sent."""
    for name in ("max", "clara"):
        user = person(name, "manager", shop.merchant)
        user.email = f"{name}@shop.example"
        user.save()
    rows = [asked(shop, clerk("clara", "20.00")) for _number in range(4)]
    for row in rows[2:]:
        approvals.decide_approval(row.pk, approve=False, note="", by=clerk("max"))
    works, seen = getattr(approval_notice, fails), []

    def fail_once(*values: Any) -> Any:
        seen.append(values)
        if len(seen) == 1:
            raise ValueError("nobody expected it")
        return works(*values)

    monkeypatch.setattr(approval_notice, fails, fail_once)
    assert approval_notice.send_due_notices() == (2 if fails == "_build_decision_mail" else 3)
    told = "\n".join(mail.body for mail in mailoutbox)
    assert [str(row.pk) in told for row in rows].count(False) == 1


def test_a_request_stands_beside_its_payments_story_and_leads_to_the_next(shop: Shop) -> None:
    """The queue: each request knows its neighbours, and a decision leads on."""
    rows = [asked(shop, clerk("clara", "20.00"), amount) for amount in ("50.00", "51.00", "52.00")]
    for number, row in enumerate(rows):
        Approval.objects.filter(pk=row.pk).update(asked_at=row.asked_at + timedelta(seconds=number))
    client = signed_in(person("max", "manager", shop.merchant))
    address = "/admin/gateway/approval/{}/change/"
    page = client.get(address.format(rows[1].pk)).content.decode()
    assert "92.00 EUR was taken." in page
    assert all(
        f'href="{address.format(row.pk)}" data-key="{key}"' in page for row, key in ((rows[0], "k"), (rows[2], "j"))
    )
    answer = client.post(f"/admin/gateway/approval/{rows[0].pk}/decide/", {"verb": "reject"})
    assert answer["Location"] == address.format(rows[1].pk)
    answer = client.post(f"/admin/gateway/approval/{rows[2].pk}/decide/", {"verb": "reject"})
    assert answer["Location"] == address.format(rows[2].pk)


def test_a_request_that_the_gateway_would_refuse_is_not_offered_to_approve(shop: Shop) -> None:
    """Found in use: 80.00 were asked for, 12.50 of 92.00 refunded meanwhile; the manager approved, and read a code."""
    clara = person("clara", "clerk", shop.merchant, four_eyes_above="20.00")
    row = asked(shop, clerk("clara", "20.00"), "80.00")
    max_ = signed_in(person("max", "manager", shop.merchant))
    address = f"/admin/gateway/approval/{row.pk}/change/"
    assert "Approve and send" in max_.get(address).content.decode()
    assert shop.api.follow(row.payment_id.hex, "RF", "12.50").status == 200
    page = max_.get(address).content.decode()
    assert "Approve and send" not in page
    assert "Only 79.50 EUR remains, and the gateway would refuse it." in page
    assert "Reject" in page
    assert shop.api.follow(row.payment_id.hex, "RF", "79.50").status == 200
    assert "The payment no longer allows this" in max_.get(address).content.decode()
    assert clara.pk == row.asked_by_id

    # Somebody who saw the page before still can: what came of it is told in words, and so in the trail.
    answer = max_.post(f"/admin/gateway/approval/{row.pk}/decide/", {"verb": "approve"}, follow=True)
    assert "Cannot refund: over the amount, reversed, or wrong order (700.400.200)" in answer.content.decode()
    trail = max_.get("/admin/gateway/auditentry/").content.decode()
    assert "Refund 80.00 EUR was approved by max and refused by the gateway, asked by clara" in unescape(trail)
    assert "was carried out" not in trail
