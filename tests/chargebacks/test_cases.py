"""Disputes from chargeback to outcome. Source: Part B, Chargeback; decisions, section 4 and 8; docs/chargebacks.md."""

from __future__ import annotations

import io
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django.core import mail
from django.db import connection
from django.test import override_settings

from chargebacks import cases, deadlines, evidence, ledger, reminders
from chargebacks.admin.manual_entry import SELECTABLE_REASONS
from chargebacks.evidence_checklist import describe_reason, is_chargeback_reason, list_wanted_items
from chargebacks.models import CaseEvent, Chargeback, Contact, Reminder
from chargebacks.states import (
    DISPUTE_TRANSITIONS,
    DisputeEvent,
    DisputeState,
    DisputeTransitionError,
    apply_dispute_event,
)
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import AuditEntry, Notification, Payment
from tests.support.fixtures import Shop
from tests.support.settlement import BY, payment_of

pytestmark = pytest.mark.django_db
PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"


def dispute(shop: Shop, amount: str = "92.00", reason: str = "000.100.221") -> Chargeback:
    paid = payment_of(shop.api.pay(merchant__country="DE").id)
    return ledger.record_chargeback(paid, Decimal(amount), reason=reason, by=BY)


def move_clock(shop: Shop, **by: int) -> None:
    shop.merchant.clock_offset += timedelta(**by)
    shop.merchant.save(update_fields=["clock_offset"])


def again(case: Chargeback) -> Chargeback:
    return Chargeback.objects.select_related("merchant").get(pk=case.pk)


@pytest.mark.parametrize("state", [None, *DisputeState])
@pytest.mark.parametrize("event", list(DisputeEvent))
def test_every_move_is_in_the_table_or_refused(state: DisputeState | None, event: DisputeEvent) -> None:
    if (state, event) in DISPUTE_TRANSITIONS:
        assert apply_dispute_event(state, event) in DisputeState
    else:
        with pytest.raises(DisputeTransitionError):
            apply_dispute_event(state, event)


def test_a_chargeback_by_hand_is_a_payment_of_the_chain_and_a_case(shop: Shop) -> None:
    case = dispute(shop, "40.00")
    body = shop.api.read(case.id.hex).body
    assert (body["paymentType"], body["amount"], body["result"]["code"]) == ("CB", "40.00", "000.100.221")
    assert body["referencedId"] == case.disputed.hex
    assert (case.state, case.amount, case.currency) == (DisputeState.OPEN, Decimal("40.00"), "EUR")
    assert shop.api.follow(case.disputed.hex, "RF", "52.01").code == "700.300.600"
    told = Notification.objects.get(payment=case.id)
    assert (told.kind, told.action) == ("PAYMENT", "CREATED")
    assert AuditEntry.objects.filter(subject="chargeback", subject_id=str(case.id), actor=BY.name).exists()


def test_a_chargeback_by_hand_is_entered_in_live_where_the_api_refuses_it(shop: Shop) -> None:
    """Decisions, section 4: by API in the test environment only."""
    paid = payment_of(shop.api.pay().id)
    with override_settings(IS_LIVE=True, GATEWAY_BASE_URL="https://testserver"):
        assert shop.api.over_tls().follow(paid.id.hex, "CB", "92.00").code == "700.400.402"
        case = ledger.record_chargeback(paid, Decimal("92.00"), by=BY)
        back = ledger.record_chargeback_reversal(case, by=BY)
    assert (case.reason_code, back.result_code) == ("000.100.200", "000.000.000")


@pytest.mark.parametrize("reason", ["000.100.300", "000.100.2", "000.100.2111", "no"])
def test_a_reason_is_000_100_2_and_two_digits_of_a_chargeback(shop: Shop, reason: str) -> None:
    """A30.10."""
    assert not is_chargeback_reason(reason)
    with pytest.raises(ValueError, match="is no reason"):
        dispute(shop, reason=reason)


def test_a_chargeback_by_api_gets_its_case_from_the_tick(shop: Shop) -> None:
    paid = shop.api.pay()
    told = shop.api.follow(paid.id, "CB", "92.00", chargebackResultCode="000.100.203")
    assert told.code == "000.100.203"
    assert (cases.adopt_recent_payments(), cases.adopt_recent_payments(), cases.adopt_all_payments()) == (1, 0, 0)
    case = Chargeback.objects.get()
    assert (case.id.hex, case.source, case.reason_code, case.state) == (told.id, "api", "000.100.203", "OPEN")
    assert shop.api.follow(told.id, "CR", "30.00").status == 200
    assert shop.api.follow(told.id, "CR", "62.00").status == 200
    assert cases.adopt_recent_payments() == 2
    case.refresh_from_db()
    assert (case.state, case.recovered) == ("WON", Decimal("92.00"))
    assert [one.event for one in case.events.order_by("sequence")] == ["open", "reverse", "reverse"]


def test_only_approved_chargebacks_without_a_case_get_one(shop: Shop, stranger: Shop) -> None:
    """Other payments have none, whatever their state."""
    dispute(shop)
    own = [shop.api.follow(shop.api.pay().id, "CB", "92.00").id for _ in range(2)]
    theirs = stranger.api.follow(stranger.api.pay().id, "CB", "92.00").id
    shop.api.follow(shop.api.pay().id, "RF", "10.00")
    Payment.objects.filter(pk=own[1]).update(status="DECLINED")
    now = clock.real_now()
    assert cases._list_payments_without_case(shop.merchant, None, 9) == [UUID(own[0])]
    assert cases._list_payments_without_case(None, now - timedelta(hours=1), 9) == [UUID(own[0]), UUID(theirs)]
    assert cases._list_payments_without_case(None, now + timedelta(hours=1), 9) == [], "it was made before"
    assert execute_sql(cases.EARLIEST_PAYMENT_WITHOUT_CASE, {})
    Payment.objects.filter(pk__in=[own[0], theirs]).update(status="DECLINED")
    assert not execute_sql(cases.EARLIEST_PAYMENT_WITHOUT_CASE, {})


@pytest.mark.parametrize("code", ["000.100.211", "000.100.212"])
def test_a_code_that_tells_of_amounts_elsewhere_is_a_reason_too(shop: Shop, code: str) -> None:
    """Part B, Chargeback: any two digits. Forms for people do not offer it, and call it a reason that is not given."""
    told = shop.api.follow(shop.api.pay().id, "CB", "5.00", chargebackResultCode=code)
    assert (told.status, told.code) == (200, code)
    by_hand = dispute(shop, reason=code)
    assert (by_hand.reason_code, describe_reason(code)) == (code, "no reason given")
    assert code not in SELECTABLE_REASONS


@pytest.mark.parametrize("entered", ["by API", "by hand"])
def test_a_reason_that_the_table_does_not_explain_is_kept_and_answered(shop: Shop, entered: str) -> None:
    """A30.10, B21.1; Part A, Errors, 4: 000.100.2 followed by two digits, any two."""
    paid = payment_of(shop.api.pay().id)
    if entered == "by API":
        told = shop.api.follow(paid.id.hex, "CB", "5.00", chargebackResultCode="000.100.277")
        assert (told.status, told.code) == (200, "000.100.277")
    else:
        told = shop.api.read(ledger.record_chargeback(paid, Decimal("5.00"), reason="000.100.277", by=BY).id.hex)
    assert (told.status, told.code, told.description) == (200, "000.100.277", "Chargeback: no reason given")


def test_a_second_chargeback_is_a_pre_arbitration_that_can_be_answered(shop: Shop) -> None:
    case = dispute(shop)
    ledger.record_chargeback_reversal(case, by=BY)
    paid = payment_of(case.disputed.hex)
    second = ledger.record_chargeback(paid, Decimal("92.00"), reason="000.100.230", by=BY)
    assert (second.state, second.previous_id, second.disputed) == ("OPEN", case.id, paid.id)
    assert (second.stage, Reminder.objects.filter(case=second).count()) == ("PRE_ARBITRATION", 3)
    assert shop.api.follow(second.pk.hex, "CR", "92.00").code == "700.400.411"


def test_evidence_is_submitted_once_and_the_simulated_bank_decides(shop: Shop) -> None:
    case = dispute(shop)
    with pytest.raises(DisputeTransitionError, match="no evidence"):
        cases.submit_evidence(case, BY)
    kept = evidence.add_evidence(case, "delivery", "C:\\letters\\proof.pdf", io.BytesIO(PDF), BY)
    assert (kept.name, b"".join(evidence.stream_evidence(kept))) == ("proof.pdf", PDF)
    assert "delivery" not in [item.key for item in evidence.list_missing_evidence(case)]
    cases.submit_evidence(again(case), BY)
    with pytest.raises(DisputeTransitionError):
        cases.submit_evidence(again(case), BY)
    with pytest.raises(DisputeTransitionError):
        evidence.add_evidence(case, "order", "more.pdf", io.BytesIO(PDF + b"\n"), BY)
    with pytest.raises(DisputeTransitionError):
        evidence.remove_evidence(kept, BY)
    ledger.simulate_dispute_outcome(again(case), BY, won=True)
    won = again(case)
    assert (won.state, won.recovered) == ("WON", Decimal("92.00"))
    assert shop.api.follow(case.disputed.hex, "RF", "92.00").status == 200


def test_a_file_that_is_read_slowly_keeps_no_session_of_the_database(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/decisions/0161: eight clerks who fetched one so would have stopped a web process."""
    monkeypatch.setattr(evidence, "EVIDENCE_PIECE_BYTES", 16)
    kept = evidence.add_evidence(dispute(shop), "delivery", "proof.pdf", io.BytesIO(PDF), BY)

    def refuse(*_arguments: object, **_names: object) -> None:
        raise AssertionError("a cursor that lives in its session")

    monkeypatch.setattr(connection, "chunked_cursor", refuse)
    assert b"".join(evidence.stream_evidence(kept)) == PDF


def test_two_who_read_the_same_case_move_it_once(shop: Shop) -> None:
    case = dispute(shop)
    evidence.add_evidence(case, "order", "order.pdf", io.BytesIO(PDF), BY)
    one, two = again(case), again(case)
    cases.submit_evidence(one, BY)
    with pytest.raises(DisputeTransitionError, match="somebody else"):
        cases.accept_dispute(two, BY, "not worth it")
    assert again(case).state == "SUBMITTED"
    assert CaseEvent.objects.filter(case=case).count() == 2


@pytest.mark.parametrize(
    "name, content, why",
    [
        ("a.pdf", b"<html><script>alert(1)</script></html>", "by its content"),
        ("a.html", PDF, "by its content"),
        ("a.pdf.exe", PDF, "by its content"),
        ("a.png", PDF, "by its content"),
        ("a.pdf", b"%PDF-1.4\n" + b"0" * (5 * 1024 * 1024), "larger than 5 MB"),
        ("a.jpg", b"", "by its content"),
        ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "by its content"),
    ],
)
def test_what_is_no_evidence_is_refused_and_nothing_of_it_is_kept(
    shop: Shop, name: str, content: bytes, why: str
) -> None:
    case = dispute(shop)
    with pytest.raises(evidence.EvidenceRejectedError, match=why):
        evidence.add_evidence(case, "order", name, io.BytesIO(content), BY)
    assert not case.evidence.exists()


def test_the_same_file_twice_is_refused_and_a_picture_is_known_by_its_bytes(shop: Shop) -> None:
    case = dispute(shop)
    png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + b"\0" * 20 + b"\x00\x00\x00\x00IEND\xaeB`\x82"
    assert evidence.add_evidence(case, "messages", "chat.PNG", io.BytesIO(png), BY).content_type == "image/png"
    with pytest.raises(evidence.EvidenceRejectedError, match="already"):
        evidence.add_evidence(case, "messages", "again.png", io.BytesIO(png), BY)
    with pytest.raises(evidence.EvidenceRejectedError, match="what the file shows"):
        evidence.add_evidence(case, "nonsense", "a.pdf", io.BytesIO(PDF), BY)


def test_reminders_go_out_7_3_and_1_days_before_the_deadline(shop: Shop) -> None:
    Contact.objects.create(merchant=shop.merchant, email="disputes@shop.example")
    case = dispute(shop)
    assert reminders.send_due_reminders() == 0
    for days, subject in ((7, "7 days left"), (3, "3 days left"), (1, "1 day left")):
        shop.merchant.clock_offset = case.due_at - timedelta(days=days) - clock.real_now() + timedelta(minutes=1)
        shop.merchant.save(update_fields=["clock_offset"])
        assert (reminders.send_due_reminders(), reminders.send_due_reminders()) == (1, 0)
        assert subject in mail.outbox[-1].subject
    assert len(mail.outbox) == 3
    assert mail.outbox[-1].bcc == ["disputes@shop.example"]
    assert reminders.next_reminder_at(shop.merchant) is None


def test_days_are_those_of_the_merchant_s_calendar_whatever_the_hour(shop: Shop) -> None:
    """Tomorrow at 17:00 is one day away, in the morning as in the evening."""
    case = dispute(shop)
    told = {
        hours: deadlines.count_days_left(case, case.due_at - timedelta(hours=hours)) for hours in (1, 16, 18, 40, 42)
    }
    assert told == {1: 0, 16: 0, 18: 1, 40: 1, 42: 2}


def test_an_answered_dispute_reminds_nobody(shop: Shop) -> None:
    Contact.objects.create(merchant=shop.merchant, email="disputes@shop.example")
    case = dispute(shop)
    cases.accept_dispute(again(case), BY, "the parcel was lost")
    move_clock(shop, days=13)
    assert (reminders.send_due_reminders(), len(mail.outbox)) == (0, 0)


def test_the_clock_past_the_deadline_closes_the_dispute_as_lost_with_a_note(shop: Shop, stranger: Shop) -> None:
    """Pass."""
    case, other = dispute(shop), dispute(stranger)
    assert cases.next_response_deadline(shop.merchant) == case.due_at
    assert cases.expire_overdue_cases() == 0
    move_clock(shop, days=21)
    assert (
        cases.expire_overdue_cases(stranger.merchant),
        cases.expire_overdue_cases(),
        cases.expire_overdue_cases(),
    ) == (0, 1, 0)
    lost = again(case)
    assert lost.state == "LOST"
    assert lost.note.startswith("No evidence was submitted by ")
    assert again(other).state == "OPEN"
    assert cases.next_response_deadline(shop.merchant) is None


def test_a_clock_moved_past_the_deadline_of_a_chargeback_by_api_ends_it_though_nobody_had_made_its_case(
    shop: Shop,
) -> None:
    """What came a moment ago is on the way, too. No tick runs here but the moved clock's own."""
    charged = shop.api.follow(shop.api.pay().id, "CB", "92.00")
    assert not Chargeback.objects.exists()
    moved = shop.api.post("/v1/test/clock", {"advance": str(21 * 24 * 60 * 60)})
    assert (moved.status, moved.body["complete"]) == (200, True)
    assert moved.body["ran"]["dispute cases"] == 1
    lost = Chargeback.objects.get(pk=charged.id)
    assert (lost.state, lost.note[:27]) == ("LOST", "No evidence was submitted b")
    assert cases.next_payment_without_case(shop.merchant) is None


def test_evidence_after_the_deadline_is_too_late_even_before_the_tick(shop: Shop) -> None:
    case = dispute(shop)
    evidence.add_evidence(case, "order", "order.pdf", io.BytesIO(PDF), BY)
    move_clock(shop, days=21)
    with pytest.raises(DisputeTransitionError, match="deadline"):
        cases.submit_evidence(again(case), BY)


def test_the_deadline_is_at_17_in_the_merchants_time_zone(shop: Shop) -> None:
    shop.merchant.time_zone = "Asia/Tokyo"
    shop.merchant.save(update_fields=["time_zone"])
    assert dispute(shop).due_at.hour == 8


def test_each_reason_has_a_checklist() -> None:
    assert [item.key for item in list_wanted_items("000.100.221")] == ["order", "delivery", "messages", "terms"]
    for means in ("", "card", "bankAccount"):
        assert all(list_wanted_items(f"000.100.2{number:02d}", means=means) for number in range(100))
    # A card payment has no mandate, a debit of a bank account no 3-D Secure.
    assert "mandate" in {item.key for item in list_wanted_items("000.100.206")}
    assert "mandate" not in {item.key for item in list_wanted_items("000.100.206", means="card")}
    assert "authentication" not in {item.key for item in list_wanted_items("000.100.220", means="bankAccount")}
