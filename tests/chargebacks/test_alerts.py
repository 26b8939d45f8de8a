"""Alerts before disputes: refunded once or dismissed, in time, reported by webhook, and ended by a chargeback."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.urls import reverse

from chargebacks import alerts, ledger
from chargebacks.alerts import AlertFacts, AlertNotPossibleError
from chargebacks.models import Chargeback, DisputeAlert
from gateway.backoffice.follow_ups.clerk_limits import Clerk
from gateway.core import clock, identifiers
from gateway.models import AuditEntry, Payment
from tests.support.clock import pass_time
from tests.support.fixtures import BY, Shop
from tests.support.office import person, signed_in
from tests.support.threads import at_once
from tests.support.webhook_delivery import deliver, messages, register
from tests.support.webhooks import hooked

pytestmark = pytest.mark.django_db
State = DisputeAlert.State


def paid(shop: Shop, **values: Any) -> Payment:
    return Payment.objects.select_related("merchant", "channel").get(pk=shop.api.pay(**values).id)


def alerted(payment: Payment, amount: str = "92.00", reference: str = "A-1", **values: Any) -> DisputeAlert:
    facts = AlertFacts(provider="ethos", reference=reference, amount=Decimal(amount), currency="EUR", **values)
    return alerts.record_alert(payment, facts, BY)[0]


def clerk(limit: str | None = None) -> Clerk:
    return Clerk(user=1, name="clara", ip=None, limit=Decimal(limit) if limit else None, day=None)


def refunds() -> list[str]:
    return [str(one.amount) for one in Payment.objects.filter(payment_type="RF", status="APPROVED").order_by("id")]


def charge_back(payment: Payment, amount: str = "92.00") -> Chargeback:
    return ledger.record_chargeback(payment, Decimal(amount), reason="000.100.220", by=BY)


def test_a_refund_ends_the_alert_and_is_told(shop: Shop) -> None:
    payment = paid(shop)
    with hooked() as hook:
        _, secret = register(shop, hook, kinds=["ALERT"])
        alert = alerted(payment)
        deliver()
        alerts.refund_alert(alert, clerk())
        deliver()
        told = messages(hook, secret)
    (refund,) = Payment.objects.filter(payment_type="RF")
    assert (alert.state, alert.refund, refund.amount) == (State.REFUNDED, refund.id, Decimal("92.00"))
    assert [(one["type"], one["action"], one["payload"]["state"]) for one in told if one["type"] == "ALERT"] == [
        ("ALERT", "CREATED", "OPEN"),
        ("ALERT", "UPDATED", "REFUNDED"),
    ]
    last = told[-1]["payload"]
    assert (last["referencedId"], last["refundId"], last["amount"]) == (payment.id.hex, refund.id.hex, "92.00")
    assert set(AuditEntry.objects.values_list("action", flat=True)) >= {"alert recorded", "refund sent"}


def test_the_same_alert_again_is_one(committed: Shop) -> None:
    payment = paid(committed)
    made = at_once(*[lambda: alerted(payment).pk] * 4)
    assert len(set(made)) == 1
    assert DisputeAlert.objects.count() == 1


def test_only_what_is_left_is_refunded(shop: Shop) -> None:
    payment = paid(shop)
    shop.api.post(f"/v1/payments/{payment.id.hex}", {"paymentType": "RF", "amount": "30.00", "currency": "EUR"})
    assert alerts.refund_alert(alerted(payment), clerk()).state == State.REFUNDED
    assert refunds() == ["30.00", "62.00"]


def test_what_was_refunded_before_or_elsewhere_needs_no_decision(shop: Shop) -> None:
    before, after = paid(shop), paid(shop)
    waiting = alerted(after, reference="A-2")
    for one in (before, after):
        shop.api.post(f"/v1/payments/{one.id.hex}", {"paymentType": "RF", "amount": "92.00", "currency": "EUR"})
    assert alerted(before).state == State.REFUNDED
    assert alerts.work_on_alerts() == 1
    waiting.refresh_from_db()
    assert (waiting.state, waiting.note) == (State.REFUNDED, "The payment was refunded.")


def test_a_note_of_the_gateway_is_shown_in_the_readers_language(shop: Shop) -> None:
    payment = paid(shop)
    shop.api.post(f"/v1/payments/{payment.id.hex}", {"paymentType": "RF", "amount": "92.00", "currency": "EUR"})
    alert = alerted(payment)
    manager = signed_in(person("max", "manager", shop.merchant))
    manager.cookies["django_language"] = "de"
    page = manager.get(reverse("admin:chargebacks_chargeback_alert", args=[alert.pk])).content.decode()
    assert "Die Zahlung war schon erstattet." in page
    assert "The payment was refunded" not in page


def test_let_go_answered_and_not_answered_in_time(shop: Shop) -> None:
    gone, late = alerted(paid(shop)), alerted(paid(shop), reference="A-2")
    inquiry = alerted(paid(shop), reference="A-3", kind=DisputeAlert.Kind.INQUIRY)
    alerts.let_alert_go(gone, BY, "we delivered")
    alerts.let_alert_go(inquiry, BY, "")
    assert (gone.state, gone.note, inquiry.state) == (State.LET_GO, "we delivered", State.ANSWERED)
    with pytest.raises(AlertNotPossibleError, match="closed"):
        alerts.refund_alert(gone, clerk())
    assert inquiry.due_at - inquiry.opened_at == timedelta(days=14)
    pass_time(shop.api, days=4)
    late.refresh_from_db()
    assert late.state == State.EXPIRED
    assert refunds() == []


def test_a_chargeback_ends_the_alert_in_its_own_statement(shop: Shop) -> None:
    payment = paid(shop)
    alert = alerted(payment)
    case = charge_back(payment)
    with pytest.raises(AlertNotPossibleError, match="closed"):
        alerts.refund_alert(alert, clerk())
    alert.refresh_from_db()
    assert (alert.state, alert.chargeback) == (State.DISPUTED, case.pk)
    with pytest.raises(AlertNotPossibleError, match="charged back already"):
        alerted(payment, reference="A-2")
    assert refunds() == []


def test_a_chargeback_after_the_refund_says_so_and_the_alert_names_it(shop: Shop) -> None:
    payment = paid(shop)
    alert = alerts.refund_alert(alerted(payment), clerk())
    case = charge_back(payment)
    alert.refresh_from_db()
    assert (alert.state, alert.chargeback, case.refunded_before) == (State.REFUNDED, case.pk, Decimal("92.00"))


def test_many_clicks_and_the_timer_make_one_refund(committed: Shop) -> None:
    alert = alerted(paid(committed))

    def click() -> None:
        mine = DisputeAlert.objects.select_related("merchant").get(pk=alert.pk)
        with contextlib.suppress(AlertNotPossibleError):
            alerts.refund_alert(mine, clerk())

    at_once(*[click] * 4, lambda: alerts.work_on_alerts() and None)
    alerts.work_on_alerts()
    alert.refresh_from_db()
    assert (alert.state, refunds()) == (State.REFUNDED, ["92.00"])


def test_a_worker_that_stopped_before_sending_refunds_nothing_twice(
    committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after the decision; the timer sends it under the same id, and then the first one wakes up."""
    person("clara", "clerk", committed.merchant)
    alert = alerted(paid(committed))
    send = alerts.execute_follow_up

    def stopped(*arguments: Any, **more: Any) -> Payment:
        monkeypatch.setattr(alerts, "execute_follow_up", send)
        DisputeAlert.objects.update(moved_at=clock.real_now() - alerts.REFUND_ABANDONED_AFTER - timedelta(seconds=5))
        at_once(alerts.work_on_alerts)
        return send(*arguments, **more)

    monkeypatch.setattr(alerts, "execute_follow_up", stopped)
    alerts.refund_alert(alert, clerk())
    alert.refresh_from_db()
    assert (alert.state, refunds()) == (State.REFUNDED, ["92.00"])


def test_a_refund_left_behind_is_sent_before_alerts_that_wait_are_looked_at(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of them are due earlier."""
    monkeypatch.setattr(alerts, "MAX_ALERTS_PER_RUN", 1)
    person("clara", "clerk", shop.merchant)
    alerted(paid(shop))
    left = leave_behind(alerted(paid(shop), reference="A-2", kind=DisputeAlert.Kind.INQUIRY))
    assert alerts.work_on_alerts() == 1
    left.refresh_from_db()
    assert (left.state, refunds()) == (State.REFUNDED, ["92.00"])


def leave_behind(alert: DisputeAlert, by: str = "clara") -> DisputeAlert:
    """As a worker that died between the decision and the refund leaves it."""
    DisputeAlert.objects.filter(pk=alert.pk).update(
        state=State.REFUNDING,
        refund=identifiers.row_id(),
        refund_by=by,
        moved_at=clock.real_now() - alerts.REFUND_ABANDONED_AFTER - timedelta(seconds=5),
    )
    return alert


@pytest.mark.parametrize("limits", [{"four_eyes_above": Decimal("20.00")}, {"four_eyes_day": Decimal("20.00")}])
def test_a_refund_left_behind_is_sent_within_the_limits_of_who_asked(shop: Shop, limits: dict[str, Decimal]) -> None:
    """A worker that dies is no way around four eyes."""
    person("clara", "clerk", shop.merchant, **limits)
    left = leave_behind(alerted(paid(shop)))
    alerts.work_on_alerts()
    left.refresh_from_db()
    assert (left.state, refunds()) == (State.OPEN, [])
    assert "above your limit" in left.note


def test_a_refund_left_behind_counts_towards_the_24_hours_of_who_asked(shop: Shop) -> None:
    user = person("clara", "clerk", shop.merchant, four_eyes_day=Decimal("100.00"))
    leave_behind(alerted(paid(shop)))
    alerts.work_on_alerts()
    assert refunds() == ["92.00"]
    again = Clerk(user=user.pk, name="clara", ip=None, day=Decimal("100.00"))
    with pytest.raises(AlertNotPossibleError, match="above your limit"):
        alerts.refund_alert(alerted(paid(shop), reference="A-2"), again)
    assert refunds() == ["92.00"]


@pytest.mark.parametrize("who", ["nobody", "auditor", "switched off"])
def test_a_refund_left_behind_by_who_may_not_refund_any_more_is_not_sent(shop: Shop, who: str) -> None:
    if who != "nobody":
        user = person("clara", "auditor" if who == "auditor" else "clerk", shop.merchant)
        type(user).objects.filter(pk=user.pk).update(is_active=who != "switched off")
    left = leave_behind(alerted(paid(shop)))
    alerts.work_on_alerts()
    left.refresh_from_db()
    assert (left.state, refunds()) == (State.OPEN, [])
    assert left.note


def test_a_chargeback_between_the_decision_and_the_refund_stops_the_refund(
    committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    payment = paid(committed)
    alert, send = alerted(payment), alerts.execute_follow_up

    def overtaken(*arguments: Any, **more: Any) -> Payment:
        at_once(lambda: charge_back(payment))
        return send(*arguments, **more)

    monkeypatch.setattr(alerts, "execute_follow_up", overtaken)
    with pytest.raises(AlertNotPossibleError):
        alerts.refund_alert(alert, clerk())
    assert refunds() == []
    alert.refresh_from_db()
    assert (alert.state, alert.chargeback) == (State.DISPUTED, Chargeback.objects.get().pk)


def test_a_clerks_limit_holds_and_the_alert_stays_open(shop: Shop) -> None:
    alert = alerted(paid(shop))
    with pytest.raises(AlertNotPossibleError, match="above your limit"):
        alerts.refund_alert(alert, clerk("20.00"))
    assert (alert.state, refunds()) == (State.OPEN, [])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"currency": "USD"}, "in EUR like the payment"),
        ({"amount": Decimal(0)}, "above 0"),
        ({"provider": ""}, "a provider and its id"),
        ({"reason": "000.100.110"}, "choose one"),
    ],
)
def test_an_impossible_alert_is_refused(shop: Shop, changes: dict[str, Any], words: str) -> None:
    facts = {"provider": "ethos", "reference": "A-1", "amount": Decimal("1.00"), "currency": "EUR", **changes}
    with pytest.raises(AlertNotPossibleError, match=words):
        alerts.record_alert(paid(shop), AlertFacts(**facts), BY)
    with pytest.raises(AlertNotPossibleError, match="approved debits"):
        alerted(paid(shop, paymentType="PA"))


def test_a_file_is_taken_in_and_every_faulty_line_named(shop: Shop, tmp_path: Path, capsys: Any) -> None:
    first, second = paid(shop), paid(shop)
    file = tmp_path / "alerts.csv"
    file.write_text(
        "PaymentId,Provider,AlertId,Amount,Currency,Kind,ReasonCode,RespondBy\n"
        f"{first.id.hex},ethos,A-1,92.00,EUR,,10.4,2030-01-31T12:00:00+00:00\n"
        f"{first.id.hex},ethos,A-1,92.00,EUR,,10.4,\n"
        f"{second.id.hex},ethos,A-2,50.00,EUR,INQUIRY,,\n"
        f"{second.id.hex},ethos,A-3,x,EUR,,,\n"
        f"{'0' * 32},ethos,A-4,1.00,EUR,,,\n"
    )
    with pytest.raises(CommandError, match="2 lines were not recorded"):
        call_command("dispute_alerts", str(file))
    out, err = capsys.readouterr()
    assert "(known)" in out
    assert ["line 5: Amount" in err, "line 6: PaymentId" in err] == [True, True]
    rows = DisputeAlert.objects.order_by("reference")
    assert [(row.kind, row.amount, row.reason_code, row.scheme_reason) for row in rows] == [
        ("ALERT", Decimal("92.00"), "000.100.220", "10.4"),
        ("INQUIRY", Decimal("50.00"), "000.100.200", ""),
    ]
    file.write_text("A,B\n")
    with pytest.raises(CommandError, match="has no column"):
        call_command("dispute_alerts", str(file))


def test_in_live_nothing_is_simulated(shop: Shop) -> None:
    payment = paid(shop)
    with override_settings(IS_LIVE=True), pytest.raises(CommandError, match="test environment"):
        call_command("dispute_alerts", payment=payment.id.hex)
    assert not DisputeAlert.objects.exists()


def test_the_simulated_provider_raises_an_inquiry(shop: Shop) -> None:
    call_command("dispute_alerts", payment=paid(shop).id.hex, inquiry=True)
    assert DisputeAlert.objects.get().kind == "INQUIRY"


def test_the_pages_enter_show_and_decide(shop: Shop) -> None:
    payment = paid(shop)
    manager = signed_in(person("mia", "manager", shop.merchant))
    entry = reverse("admin:chargebacks_chargeback_alert_entry", args=[payment.pk])
    sent = {"kind": "ALERT", "provider": "ethos", "reference": "A-1", "amount": "92.00", "reason": "000.100.220"}
    assert manager.post(entry, {**sent, "amount": "x"}).status_code == 400
    assert manager.post(entry, sent).status_code == 302
    alert = DisputeAlert.objects.get()
    assert str(alert.amount) in manager.get(reverse("admin:chargebacks_chargeback_alerts")).content.decode()
    page = reverse("admin:chargebacks_chargeback_alert", args=[alert.pk])
    assert "Let it go" in manager.get(page).content.decode()
    assert signed_in(person("ada", "auditor", shop.merchant)).post(page, {"verb": "let_go"}).status_code == 403
    manager.post(page, {"verb": "refund"})
    assert refunds() == []
    stale = signed_in(person("moe", "manager", shop.merchant), fresh=False)
    asked = stale.post(page, {"verb": "refund", "sure": "yes"})
    assert asked["Location"].startswith(reverse("account_reauthenticate"))
    assert refunds() == []
    manager.post(page, {"verb": "refund", "sure": "yes"})
    alert.refresh_from_db()
    assert (alert.state, refunds()) == (State.REFUNDED, ["92.00"])


def test_a_stranger_sees_no_alert(shop: Shop, stranger: Shop) -> None:
    alert = alerted(paid(shop))
    other = signed_in(person("eve", "manager", stranger.merchant))
    assert other.get(reverse("admin:chargebacks_chargeback_alert", args=[alert.pk])).status_code == 404
    assert "92.00" not in other.get(reverse("admin:chargebacks_chargeback_alerts") + "?list=all").content.decode()
