"""Mandate mails and pre-notifications where a bank collects. Source: EPC 016-06, 4.3.4; docs/connectors/sepa.md."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from django.core import mail

from gateway.connectors.sepa import target_calendar
from gateway.core import clock
from gateway.models import BankOrder, MandateMail, SepaMandate
from gateway.payments import mandate_mails
from tests.gateway.connectors.sepa.test_mandates import NAMED, pay_stored, store
from tests.support import sepa
from tests.support.client import Answer
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
JANE = {"customer__email": "jane@mail.example"}


def open_account(shop: Shop, **settings: str) -> Shop:
    sepa.account_at_bank(shop.channel, **{"noticeDays": "14", **settings})
    return shop


def mailed() -> list[str]:
    """The mails that are sent now, as lines of text."""
    mail.outbox.clear()
    mandate_mails.send_due_mandate_mails()
    return [str(one.body) for one in mail.outbox]


def details(answer: Answer) -> dict[str, str]:
    found: dict[str, str] = answer.body["resultDetails"]
    return found


def today(shop: Shop) -> date:
    return clock.merchant_now(shop.merchant).date()


def test_the_mandate_mail_names_the_creditor_as_the_file_does(shop: Shop, outbox: Path) -> None:
    paid = sepa.debit(open_account(shop).api, **NAMED, **JANE)
    (body,) = mailed()
    order = BankOrder.objects.get(pk=paid.id)
    assert order.due_on is not None
    for line in (
        "Creditor: Shop Ltd",
        "Creditor identifier: DE98ZZZ09999999999",
        "Mandate reference: M-A",
        "Date of the mandate: 2026-01-15",
        "IBAN: DE •••• 3000",
        f"Collected on: {order.due_on}",
    ):
        assert line in body.splitlines()
    assert "within eight weeks" in body


def test_a_business_mandate_promises_no_money_back(shop: Shop, outbox: Path) -> None:
    sepa.debit(open_account(shop, instrument="B2B").api, **NAMED, **JANE)
    (body,) = mailed()
    assert "eight weeks" not in body
    assert "You cannot ask your bank for the money back" in body


def test_a_stored_account_mails_the_mandate_with_its_creditor(shop: Shop, outbox: Path) -> None:
    registration = store(open_account(shop), **JANE)
    (body,) = mailed()
    assert "Creditor identifier: DE98ZZZ09999999999" in body.splitlines()
    assert f"Mandate reference: {registration.upper()}" in body.splitlines()


@pytest.mark.parametrize("days", [0, 1, 14, 30])
def test_no_collection_comes_before_its_notice(shop: Shop, outbox: Path, days: int) -> None:
    paid = sepa.debit(open_account(shop, noticeDays=str(days)).api, transactionDueDate=today(shop).isoformat())
    due = BankOrder.objects.get(pk=paid.id).due_on
    assert due is not None
    assert due >= target_calendar.roll_to_target_day(today(shop) + timedelta(days=days))
    assert (due - today(shop)).days <= days + 10
    assert details(paid)["CollectionDate"] == due.isoformat()


def test_each_later_collection_is_notified_with_its_amount_and_day(shop: Shop, outbox: Path) -> None:
    """The address was given when the account was stored."""
    registration = store(open_account(shop), **JANE)
    assert len(mailed()) == 1
    bodies = []
    for amount in ("12.00", "13.00"):
        paid = pay_stored(shop, registration, amount=amount)
        (body,) = mailed()
        bodies.append(body)
        due = BankOrder.objects.get(pk=paid.id).due_on
        assert mail.outbox[0].subject == f"[Test] Direct debit of €{amount} on {due}"
        for line in (
            f"Amount: €{amount}",
            f"Collected on: {due}",
            "Creditor identifier: DE98ZZZ09999999999",
            f"Mandate reference: {registration.upper()}",
        ):
            assert line in body.splitlines()
    kinds = MandateMail.objects.order_by("pk").values_list("kind", "state")
    assert list(kinds) == [("MANDATE", "SENT"), ("NOTICE", "SENT"), ("NOTICE", "SENT")]
    shown = shop.api.get("/v1/test/mails", {"id": paid.id}).body["mails"][0]
    assert (shown["kind"], shown["text"]) == ("NOTICE", bodies[-1])


def test_the_second_debit_under_a_named_mandate_is_notified(shop: Shop, outbox: Path) -> None:
    open_account(shop)
    for subject in ("Your direct debit mandate for Shop Ltd", "Direct debit of €92.00 on"):
        sepa.debit(shop.api, **NAMED, **JANE)
        assert len(mailed()) == 1
        assert subject in mail.outbox[0].subject


@pytest.mark.parametrize("settings", [{"noticeBy": "webhook"}, {"noticeDays": "0"}])
def test_a_merchant_who_notifies_has_all_in_the_pending_answer_and_no_mail_goes(
    shop: Shop, outbox: Path, settings: dict[str, str]
) -> None:
    registration = store(open_account(shop, **settings), **JANE)
    mailed()
    paid = pay_stored(shop, registration)
    assert mailed() == []
    assert MandateMail.objects.get(pk=paid.id).state == "KNOWN"
    mandate, order = SepaMandate.objects.get(), BankOrder.objects.get(pk=paid.id)
    told = details(paid)
    assert (told["MandateId"], told["CreditorId"], told["CollectionDate"]) == (
        mandate.mandate,
        "DE98ZZZ09999999999",
        str(order.due_on),
    )
