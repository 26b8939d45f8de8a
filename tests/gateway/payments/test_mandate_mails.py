"""Direct-debit mandates by mail. Source: Part A, Customer (email), Bank account; docs/decisions/0030; A20.7."""

from __future__ import annotations

import smtplib
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.core.mail.backends.base import BaseEmailBackend

from gateway.core import clock, languages
from gateway.models import BankOrder, MandateMail, Merchant, Payment, Registration, Status
from gateway.payments import mandate_mails
from tests.support.client import Answer, Api
from tests.support.clock import jump
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.threads import at_once, times

pytestmark = pytest.mark.django_db
IBAN = "DE89370400440532013000"
ACCOUNT = {
    "paymentBrand": "DIRECTDEBIT_SEPA", "bankAccount__holder": "Jane Jones", "bankAccount__iban": IBAN,
    "bankAccount__bankCode": "37040044", "bankAccount__country": "DE", "card__number": None,
    "card__expiryMonth": None, "card__expiryYear": None, "card__cvv": None, "card__holder": None,
}  # fmt: skip
JANE = {"customer__givenName": "Jane", "customer__surname": "Jones", "customer__email": "jane@mail.example"}


def debit(api: Api, **more: str) -> Answer:
    answer = api.pay(**{**ACCOUNT, **JANE, **more})
    assert answer.status == 200, answer
    return answer


def mails(api: Api, payment: str) -> list[dict[str, Any]]:
    answer = api.get("/v1/test/mails", {"id": payment})
    assert (answer.status, answer.id) == (200, payment)
    found: list[dict[str, Any]] = answer.body["mails"]
    return found


def test_a_direct_debit_with_an_address_mails_its_mandate(api: Api) -> None:
    """A20.7: once, with whose it is, which account, how much and when; the account's number nowhere."""
    paid = debit(
        api,
        bankAccount__mandate__id="MANDATE-ABC",
        bankAccount__mandate__dateOfSignature="2026-01-15",
        transactionDueDate="2026-12-01",
    )
    assert [one["state"] for one in mails(api, paid.id)] == ["DUE"]
    assert (mandate_mails.send_due_mandate_mails(), mandate_mails.send_due_mandate_mails()) == (1, 0)
    (sent,) = mail.outbox
    assert (sent.to, sent.subject) == (["jane@mail.example"], "[Test] Your direct debit mandate for Shop")
    for line in (
        "Creditor: Shop",
        "Mandate reference: MANDATE-ABC",
        "Date of the mandate: 2026-01-15",
        "IBAN: DE •••• 3000",
        "Account holder: Jane Jones",
        "Amount: €92.00",
        "Collected on: 2026-12-01",
    ):
        assert line in sent.body.splitlines()
    assert IBAN not in sent.body
    (kept,) = mails(api, paid.id)
    assert (kept["state"], kept["to"], kept["text"], kept["tries"]) == ("SENT", "jane@mail.example", sent.body, 1)
    assert kept["at"]


def test_a_stored_account_mails_its_mandate_when_it_is_stored(api: Api) -> None:
    """A registration, and no more with the payments made by it; without the merchant's id the payment's own counts."""
    fields = {name.replace("__", "."): value for name, value in (ACCOUNT | JANE).items() if value}
    stored = api.post("/v1/registrations", fields)
    assert stored.status == 200, stored
    api.post(f"/v1/registrations/{stored.id}/payments", {"paymentType": "DB", "amount": "12.00", "currency": "EUR"})
    assert mandate_mails.send_due_mandate_mails() == 1
    (sent,) = mail.outbox
    assert f"Mandate reference: {stored.id.upper()}" in sent.body.splitlines()
    assert "Amount" not in sent.body


def test_a_mandate_is_mailed_once_however_often_it_is_used(shop: Shop, stranger: Shop) -> None:
    """The second use of a mandate is known; another merchant's of the same name is another."""
    first, second = (debit(shop.api, bankAccount__mandate__id="M-A") for _ in range(2))
    debit(stranger.api, bankAccount__mandate__id="M-A")
    assert mandate_mails.send_due_mandate_mails() == 3
    assert len(mail.outbox) == 2
    states = [mails(shop.api, one.id)[0]["state"] for one in (first, second)]
    assert states == ["SENT", "KNOWN"]


@pytest.mark.parametrize(
    "more",
    [
        {"customer__email": None},
        {"bankAccount__iban": "DE00370400440532013000"},
        {
            "standingInstruction__mode": "REPEATED",
            "standingInstruction__type": "UNSCHEDULED",
            "standingInstruction__source": "MIT",
        },
    ],
    ids=["no address", "declined", "repeated"],
)
def test_nothing_is_owed_without_an_address_an_approval_or_a_beginning(api: Api, more: dict[str, str | None]) -> None:
    answer = api.pay(**{**ACCOUNT, **JANE, **more})
    assert not MandateMail.objects.exists(), answer


def test_cards_owe_no_mail_and_pay_no_statement_for_it(api: Api) -> None:
    """The row comes in the statement that ends the payment."""
    api.pay(**JANE)
    with statements() as card:
        api.pay(**JANE)
    debit(api)
    with statements() as bank:
        debit(api)
    assert MandateMail.objects.count() == 2
    assert len(card) == len(bank)


@pytest.mark.parametrize("code", languages.LANGUAGE_CODES)
def test_the_mail_speaks_the_shoppers_language(api: Api, code: str) -> None:
    """customer.language, by its ISO name; then locale."""
    paid = debit(api, customer__language=languages.iso_language_code(code).upper())
    (shown,) = mails(api, paid.id)
    assert shown["language"] == code
    assert "{" not in shown["subject"] + shown["text"]
    assert languages.load_mail_texts(code)["reference"] in shown["text"]


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ({"customer__language": "FR", "locale": "de"}, "fr"),
        ({"customer__language": "XX", "locale": "de"}, "de"),
        ({"locale": "it"}, "it"),
        ({}, languages.DEFAULT_LANGUAGE),
    ],
)
def test_the_shoppers_language_goes_before_that_of_the_page(api: Api, sent: dict[str, str], found: str) -> None:
    (shown,) = mails(api, debit(api, **sent).id)
    assert shown["language"] == found


@pytest.mark.parametrize(
    ("zone", "day"), [("UTC", "2036-05-14"), ("Asia/Tokyo", "2036-05-15"), ("America/Los_Angeles", "2036-05-14")]
)
def test_the_days_of_a_mandate_are_those_of_the_merchants_zone(shop: Shop, zone: str, day: str) -> None:
    """In the evening of Greenwich it is the next day in the east; what the merchant sent stays."""
    Merchant.objects.filter(pk=shop.merchant.pk).update(time_zone=zone)
    plain, sent = debit(shop.api).id, debit(shop.api, bankAccount__mandate__dateOfSignature="2026-01-15").id
    Payment.objects.filter(pk__in=(plain, sent)).update(created_at=datetime(2036, 5, 14, 20, 30, tzinfo=UTC))
    (shown,) = mails(shop.api, plain)
    assert f"Date of the mandate: {day}\n" in shown["text"]
    assert f"Collected on: {day}\n" in shown["text"]
    (shown,) = mails(shop.api, sent)
    assert "Date of the mandate: 2026-01-15\n" in shown["text"]


class Away(BaseEmailBackend):
    def send_messages(self, email_messages: Any) -> int:
        raise smtplib.SMTPServerDisconnected("jane@mail.example said no")


def test_a_mail_server_that_is_away_is_asked_again_later(shop: Shop, settings: Any) -> None:
    """Not before the lease ends; what failed is kept by kind, and given up in the end."""
    paid = debit(shop.api)
    settings.EMAIL_BACKEND = f"{__name__}.Away"
    assert (mandate_mails.send_due_mandate_mails(), mandate_mails.send_due_mandate_mails()) == (0, 0)
    (kept,) = mails(shop.api, paid.id)
    assert (kept["state"], kept["tries"], kept["failure"]) == ("DUE", 1, "SMTPServerDisconnected")
    MandateMail.objects.update(tries=mandate_mails.MAX_MANDATE_MAIL_TRIES - 1, lease_until=None)
    assert mandate_mails.send_due_mandate_mails() == 1
    assert mails(shop.api, paid.id)[0]["state"] == "GIVEN_UP"


def test_what_is_no_address_is_given_up_at_once(api: Api) -> None:
    """One address only: nobody else is mailed by way of a comma."""
    paid = debit(api, customer__email="jane@mail.example,joe@mail.example")
    assert (mandate_mails.send_due_mandate_mails(), mail.outbox) == (1, [])
    assert mails(api, paid.id)[0]["state"] == "GIVEN_UP"


def test_the_merchants_clock_sends_what_is_due(shop: Shop) -> None:
    """A payment of a merchant whose clock is ahead is mailed by that clock."""
    jump(3600)
    debit(shop.api)
    assert mandate_mails.find_next_mandate_mail(shop.merchant) is not None
    assert mandate_mails.send_due_mandate_mails(shop.merchant) == 1
    assert mandate_mails.find_next_mandate_mail(shop.merchant) is None


@pytest.mark.django_db(transaction=True)
def test_two_workers_send_one_mail(committed: Shop) -> None:
    """The claim is a lease."""
    debit(committed.api)
    assert sorted(at_once(*times(4, mandate_mails.send_due_mandate_mails))) == [0, 0, 0, 1]
    assert len(mail.outbox) == 1


def test_mails_of_nothing_are_not_found(shop: Shop, stranger: Shop) -> None:
    """D11: another merchant's payment looks like none."""
    paid = debit(shop.api)
    assert stranger.api.get("/v1/test/mails", {"id": paid.id}).status == 404
    assert shop.api.get("/v1/test/mails", {"id": "0" * 32}).status == 404
    assert list(shop.api.get("/v1/test/mails", {"id": "42"}).errors) == ["id"]


@pytest.mark.parametrize(
    ("connector", "before", "after", "used"),
    [
        ("simulator", Status.STARTED, Status.APPROVED, True),
        ("simulator", Status.STARTED, Status.PENDING, False),
        ("simulator", Status.PENDING, Status.APPROVED, True),
        ("simulator", Status.STARTED, Status.DECLINED, False),
        (mandate_mails.COLLECTING_CONNECTOR, Status.STARTED, Status.PENDING, True),
        (mandate_mails.COLLECTING_CONNECTOR, Status.STARTED, Status.APPROVED, True),
        (mandate_mails.COLLECTING_CONNECTOR, Status.PENDING, Status.APPROVED, False),
        (mandate_mails.COLLECTING_CONNECTOR, Status.DECLINED, Status.APPROVED, False),
        (mandate_mails.COLLECTING_CONNECTOR, Status.STARTED, Status.DECLINED, False),
    ],
)
def test_a_mandate_is_used_once_and_where_a_bank_collects_before_it_does(
    connector: str, before: Status, after: Status, used: bool
) -> None:
    """The payer is told before the debit, and not again when it is booked, be it after a rejection."""
    assert mandate_mails.is_mandate_used(Payment(connector=connector, status=before), after) is used


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=40)])
def test_a_mail_was_sent_at_a_moment_of_the_merchants_clock(shop: Shop, ahead: timedelta) -> None:
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    paid = debit(shop.api).id
    assert mails(shop.api, paid)[0]["at"] is None
    before = clock.real_now() + ahead
    assert mandate_mails.send_due_mandate_mails() == 1
    at = MandateMail.objects.get().sent_at
    assert at is not None
    assert before <= at <= clock.real_now() + ahead
    assert mails(shop.api, paid)[0]["at"] == clock.format_timestamp(at)


@pytest.mark.parametrize(
    ("account", "shown"),
    [
        ({"iban": IBAN, "country": "DE"}, "DE •••• 3000"),
        ({"iban": IBAN}, "•••• 3000"),
        ({"number": "0532013000", "country": "DE"}, "DE •••• 3000"),
        ({"iban": IBAN, "number": "0532013999"}, "•••• 3000"),
        ({"country": "DE"}, ""),
        ({}, ""),
    ],
)
def test_an_account_is_named_by_its_country_and_its_last_four(account: dict[str, str], shown: str) -> None:
    payment = Payment(request={"bankAccount": account})
    assert mandate_mails._render_masked_account(payment, None) == shown
    order = BankOrder(iban_shown="AT611904••••••7890")
    assert mandate_mails._render_masked_account(payment, order) == "AT •••• 7890"


def test_the_address_is_the_payments_own_else_that_of_the_stored_account(api: Api) -> None:
    """Which came with its registration, or with the payment that made it."""
    direct = Registration.objects.get(pk=store_account(api))
    by_payment = Registration.objects.get(pk=debit(api, createRegistration="true").body["registrationId"])
    own = {"customer": {"email": "own@mail.example"}}
    nobodys = Registration.objects.get(pk=store_account(api, customer__email=""))
    for registration, request, brand, found in (
        (direct.pk, {}, mandate_mails.SEPA_DEBIT_BRAND, "jane@mail.example"),
        (by_payment.pk, {}, mandate_mails.SEPA_DEBIT_BRAND, "jane@mail.example"),
        (direct.pk, own, mandate_mails.SEPA_DEBIT_BRAND, "own@mail.example"),
        (nobodys.pk, {}, mandate_mails.SEPA_DEBIT_BRAND, ""),
        (uuid4(), {}, mandate_mails.SEPA_DEBIT_BRAND, ""),
        (None, {}, mandate_mails.SEPA_DEBIT_BRAND, ""),
        (direct.pk, {}, "VISA", ""),
    ):
        payment = Payment(request=request, registration=registration, brand=brand)
        assert mandate_mails._get_email(payment) == found, (registration, brand)


def store_account(api: Api, **more: str) -> str:
    fields = {name.replace("__", "."): value for name, value in {**ACCOUNT, **JANE, **more}.items() if value}
    stored = api.post("/v1/registrations", fields)
    assert stored.status == 200, stored
    return stored.id
