"""Direct debits that come back: a return that cannot be contested is no dispute. Source: docs/decisions/0097."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from django.test import override_settings

from chargebacks import cases, deadlines, evidence, ledger, reminders
from chargebacks.models import Chargeback, Contact, Reminder
from chargebacks.stages import CONTESTABLE_RETURNS, is_final_return
from chargebacks.states import DisputeTransitionError
from gateway.connectors.sepa.bank_reasons import BANK_REASONS, UNLISTED_REASON, BankReason
from gateway.models import Notification, Payment
from gateway.timers import registry
from tests.support import sepa
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.sepa import Entry
from tests.support.settlement import BY, payment_of

pytestmark = pytest.mark.django_db
PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"
ACCOUNT = {
    "paymentBrand": "DIRECTDEBIT_SEPA",
    "bankAccount.holder": "Jane Jones",
    "bankAccount.iban": "DE23100000001234567890",
    "bankAccount.bic": "MARKDEF1100",
    "bankAccount.country": "DE",
}


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Path]:
    with override_settings(GATEWAY_SEPA_OUTBOX=str(tmp_path / "outbox")):
        yield tmp_path / "outbox"


def debited(shop: Shop) -> Payment:
    sent = {**ACCOUNT, "paymentType": "DB", "amount": "92.00", "currency": "EUR"}
    answer = shop.api.post("/v1/payments", sent)
    assert answer.code == "000.100.110", answer
    return payment_of(answer.id)


def booked(shop: Shop, outbox: Path) -> str:
    """A collection that the bank has booked."""
    sepa.account_at_bank(shop.channel, noticeDays="0")
    paid = sepa.debit(shop.api).id
    sepa.pass_to_file(shop.api)
    sepa.take(sepa.statement([Entry(order=paid)]))
    registry.run_timer_now("bank answers")
    return paid


def came_back(paid: str, reason: str, number: int = 2, day: int = 1) -> Chargeback:
    entry = Entry(order=paid, into=False, reason=reason, on=f"2030-01-{day:02}")
    sepa.take(sepa.statement([entry], number=number))
    registry.run_timer_now("bank answers")
    cases.adopt_recent_payments()
    found = Chargeback.objects.select_related("merchant").order_by("-id").first()
    assert found is not None
    return found


@pytest.mark.parametrize("row", [*BANK_REASONS.values(), UNLISTED_REASON], ids=lambda row: row.code or "any other")
def test_a_return_is_contested_only_for_want_of_a_mandate(row: BankReason) -> None:
    assert is_final_return("DD", row.returned) == (row.code not in ("MD01", "MD02"))
    assert not is_final_return("CC", row.returned)


@pytest.mark.parametrize("reason", ["AM04", "MD06", "MS03"])
def test_a_return_of_a_bank_is_a_chargeback_without_a_dispute(shop: Shop, outbox: Path, reason: str) -> None:
    """Part B, Chargeback and Reconciliation: the payment, its webhook and its ChargebackId are those of every other."""
    Contact.objects.create(merchant=shop.merchant, email="books@shop.example")
    paid = booked(shop, outbox)
    case = came_back(paid, reason)
    code = BANK_REASONS[reason].returned
    assert (case.state, case.reason_code, case.amount, case.due_at) == ("RETURNED", code, Decimal(92), case.opened_at)
    assert case.closed_at == case.opened_at
    body = shop.api.read(case.id.hex).body
    assert (body["paymentType"], body["amount"], body["result"]["code"]) == ("CB", "92.00", code)
    told = Notification.objects.get(payment=case.id)
    assert (told.kind, told.action) == ("PAYMENT", "CREATED")
    assert shop.api.follow(paid, "RF", "92.00").code != "000.100.112"
    assert not Reminder.objects.exists()
    assert (cases.expire_overdue_cases(), cases.next_response_deadline(shop.merchant)) == (0, None)
    assert reminders.send_due_reminders() == 0
    for refused in (
        lambda: cases.submit_evidence(case, BY),
        lambda: cases.accept_dispute(case, BY, ""),
        lambda: cases.lose_dispute(case, BY, ""),
        lambda: evidence.add_evidence(case, "mandate", "mandate.pdf", io.BytesIO(PDF), BY),
    ):
        with pytest.raises(DisputeTransitionError):
            refused()


def test_a_return_that_the_bank_takes_back_is_won_and_the_next_is_returned_again(shop: Shop, outbox: Path) -> None:
    paid = booked(shop, outbox)
    first = came_back(paid, "AM04", 2, 10)
    sepa.take(sepa.statement([Entry(order=paid, reason="AM04", on="2030-01-11")], number=3))
    registry.run_timer_now("bank answers")
    cases.adopt_recent_payments()
    first.refresh_from_db()
    assert (first.state, first.recovered) == ("WON", Decimal(92))
    second = came_back(paid, "AM04", 4, 12)
    assert (second.state, second.previous_id, second.due_at) == ("RETURNED", first.pk, second.opened_at)


def test_a_claim_without_a_mandate_is_answered_with_its_copy(shop: Shop, outbox: Path) -> None:
    case = came_back(booked(shop, outbox), "MD01")
    days = deadlines.count_days_between(case.opened_at, case.due_at, shop.merchant.time_zone)
    assert (case.state, days, Reminder.objects.exists()) == ("OPEN", 7, True)
    assert "mandate" in [item.key for item in evidence.list_case_items(case)]


@pytest.mark.parametrize("reason", sorted({"000.100.200", "000.100.203", "000.100.206"} | CONTESTABLE_RETURNS))
def test_by_hand_and_by_api_the_same_holds(shop: Shop, reason: str) -> None:
    wanted = "OPEN" if reason in CONTESTABLE_RETURNS else "RETURNED"
    by_hand = ledger.record_chargeback(debited(shop), Decimal(92), reason=reason, by=BY)
    assert by_hand.state == wanted
    paid = debited(shop)
    assert shop.api.follow(paid.id.hex, "CB", "92.00", chargebackResultCode=reason).code == reason
    cases.adopt_recent_payments()
    assert Chargeback.objects.get(disputed=paid.id).state == wanted
    card = payment_of(shop.api.pay().id)
    assert ledger.record_chargeback(card, Decimal(92), reason=reason, by=BY).state == "OPEN"


@pytest.mark.parametrize(("reason", "answered"), [("000.100.203", False), ("000.100.204", True)])
def test_the_page_of_a_return_asks_for_nothing(shop: Shop, reason: str, answered: bool) -> None:
    case = ledger.record_chargeback(debited(shop), Decimal(92), reason=reason, by=BY)
    browser = signed_in(person("max", "manager", shop.merchant))
    page = browser.get(f"/admin/chargebacks/chargeback/{case.pk}/change/").content.decode()
    for text in ("How strong the answer is", "What to show", "Answer by", "Packet as PDF"):
        assert (text in page) == answered, text
    assert ("Returned, final" in page, "sent the money back" in page) == (not answered, not answered)
    assert "The issuer has opened" not in page
    opened = browser.get("/admin/chargebacks/chargeback/?list=open").content.decode()
    assert (str(case.pk) in opened) == answered


def test_what_the_acquirer_gives_a_day_for_can_be_answered(shop: Shop) -> None:
    day = date(2040, 1, 31)
    case = ledger.record_chargeback(debited(shop), Decimal(92), reason="000.100.203", by=BY, respond_by=day)
    assert (case.state, case.due_at.date()) == ("OPEN", day)


def test_a_return_still_stops_what_it_revokes(shop: Shop) -> None:
    paid = shop.api.post(
        "/v1/payments",
        {**ACCOUNT, "paymentType": "DB", "amount": "92.00", "currency": "EUR", "createRegistration": "true"},
    )
    case = ledger.record_chargeback(payment_of(paid.id), Decimal(92), reason="000.100.206", by=BY)
    assert (case.state, case.stops_pending) == ("RETURNED", False)
    again = {"paymentType": "DB", "amount": "9.00", "currency": "EUR", "standingInstruction.mode": "REPEATED"}
    more = {"standingInstruction.source": "MIT", "standingInstruction.type": "UNSCHEDULED"}
    registration = paid.body["registrationId"]
    assert shop.api.post(f"/v1/registrations/{registration}/payments", again | more).code == "800.100.500"
