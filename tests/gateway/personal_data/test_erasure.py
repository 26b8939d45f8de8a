"""Erasure of a shopper: nothing of the person is stored afterwards but what the report names.

Source: docs/decisions/0102; goals R8.
"""

from __future__ import annotations

import io
import json
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from chargebacks import evidence, ledger
from chargebacks.models import Chargeback, Evidence, EvidencePiece
from checkout.models import Checkout, PaymentLink
from gateway.catalogue import structures
from gateway.core import clock
from gateway.models import (
    AcquirerExchange,
    AuditEntry,
    Authentication,
    BankOrder,
    Channel,
    MandateMail,
    Notification,
    OpenPayment,
    Payment,
    Registration,
    RequestLog,
    SepaMandate,
    WebhookAttempt,
    WebhookDelivery,
)
from gateway.payments.authorization_expiry import expire_authorizations
from gateway.payments.authorization_releases import release_authorizations
from gateway.personal_data import erasure, people
from gateway.personal_data.erasure import ErasureConflictError, PersonStillActiveError, erase_person
from gateway.personal_data.export import dump_export, export_person
from gateway.personal_data.parameters import is_personal_parameter
from gateway.personal_data.people import PersonNotFoundError, parse_person
from gateway.scheduling.models import Job
from tests.support import sepa, shopper, subscriptions, threeds
from tests.support.clock import jump
from tests.support.database import places_of
from tests.support.fixtures import BY, Shop
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db
EMAIL, PHONE, CUSTOMER = "zaphira.canary@shop.example", "+49 30 7654321", "cust-zaphira-77"
PERSON = {
    "customer.givenName": "Zaphira",
    "customer.surname": "Quixley",
    "customer.email": EMAIL,
    "customer.mobile": PHONE,
    "customer.merchantCustomerId": CUSTOMER,
    "customer.ip": "203.0.113.77",
    "customer.birthDate": "1971-03-04",
    "customer.browser.userAgent": "Quixbrowser/1.0",
    "card.holder": "Zaphira Quixley",
    "billing.street1": "Quixley Lane 9",
    "billing.city": "Zaphirstadt",
    "billing.country": "DE",
    "shipping.street1": "Zaphirweg 8",
    "merchantMemo": "call Zaphira back",
    "customParameters[SHOPPER_note]": "Zaphira likes blue",
    "cart.items[0].name": "Shoes",
    "cart.items[0].recipient.firstName": "Zaphira",
}
DAY = 86_400
PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"
WORDS = ("Zaphir", "zaphir", "Quixley", "quixley", "Quixbrowser", "7654321", "203.0.113.77", "1971-03-04", CUSTOMER)


def pay(shop: Shop, **more: str | None) -> Any:
    answer = shop.api.pay(**{name.replace(".", "__"): value for name, value in PERSON.items()}, **more)
    assert answer.status == 200, answer
    return answer


def named(name: str, email: str) -> dict[str, str]:
    return {"customer__givenName": name, "customer__surname": name, "customer__email": email}


def customer(name: str, email: str) -> dict[str, str]:
    """The same by full names."""
    return {key.replace("__", "."): value for key, value in named(name, email).items()}


def forget(shop: Shop, kind: str, value: str, **more: Any) -> dict[str, Any]:
    return erase_person(parse_person(shop.merchant, kind, value), by=BY, **more)


@pytest.mark.parametrize(
    ("kind", "value"), [("email", EMAIL.upper()), ("phone", PHONE), ("customer", CUSTOMER), ("payment", "")]
)
def test_nothing_of_a_shopper_is_left(shop: Shop, kind: str, value: str) -> None:
    paid = pay(shop, createRegistration="true")
    assert shop.api.follow(paid.id, "RF", "1.00").status == 200
    assert places_of(*WORDS) >= {"gateway_payment.request", "gateway_registration.details"}
    report = forget(shop, kind, value or paid.id)
    assert places_of(*WORDS) == set()
    assert Registration.objects.get().status == "DELETED"
    assert report["erasedRows"] > 0
    assert report["shown"] != EMAIL
    row = Payment.objects.get(pk=UUID(paid.id))
    assert (row.means_sealed, row.email_key, row.name_keys) == (None, None, None)
    assert row.means_fingerprint is not None
    assert row.answer["card"]["last4Digits"], "the books still name the card"
    entry = AuditEntry.objects.get(action="forget shopper")
    assert entry.after is not None
    assert entry.after["erasedRows"] == report["erasedRows"]


def test_the_payment_can_still_be_read_and_refunded(shop: Shop) -> None:
    paid = pay(shop)
    forget(shop, "email", EMAIL)
    read = shop.api.read(paid.id)
    assert (read.status, read.body["amount"]) == (200, "92.00")
    assert "customer" not in read.body
    assert shop.api.follow(paid.id, "RF", "5.00").status == 200


def test_what_needs_the_number_is_refused_with_its_own_code(shop: Shop) -> None:
    paid = pay(shop)
    forget(shop, "payment", paid.id)
    again = shop.api.follow(paid.id, "RB", "5.00")
    assert (again.status, again.code) == (400, "700.500.004")


def test_other_people_and_other_merchants_keep_theirs(shop: Shop, stranger: Shop) -> None:
    pay(shop)
    other = shop.api.pay(**named("Other", "other@shop.example"))
    theirs = pay(stranger)
    forget(shop, "email", EMAIL)
    assert Payment.objects.get(pk=UUID(other.id)).request["customer"]["email"] == "other@shop.example"
    assert Payment.objects.get(pk=UUID(theirs.id)).request["customer"]["email"] == EMAIL


def test_every_personal_parameter_is_removed_from_a_stored_request(shop: Shop) -> None:
    """Whatever the catalogue may take, also what no test sends."""
    paid = shop.api.pay(**named("Zaphira", EMAIL))
    row = Payment.objects.get(pk=UUID(paid.id))
    for one in structures.REQUEST_STRUCTURES:
        for param in one.rows:
            name = one.full(param.base).replace("[n]", "")
            if is_personal_parameter(name):
                place: Any = row.request
                *above, last = name.split(".")
                for part in above:
                    place = place.setdefault(part, {}) if isinstance(place, dict) else {}
                place.setdefault(last, "Zaphira")
    row.save(update_fields=["request"])
    forget(shop, "payment", paid.id)
    assert places_of("Zaphira") == set()


def test_a_checkout_its_log_and_its_webhooks_are_forgotten(shop: Shop) -> None:
    made = shopper.create(shop.api, **named("Zaphira", EMAIL))
    assert made.status == 200, made
    refused = shop.api.pay(customer__email=EMAIL, customer__surname="Quixley", amount="92.1")
    assert refused.status == 400
    assert RequestLog.objects.filter(parameters__contains=[["customer.email", EMAIL]]).count() == 2
    with pytest.raises(PersonStillActiveError, match="Checkouts"):
        forget(shop, "email", EMAIL)
    Checkout.objects.update(expires_at=clock.real_now() - timedelta(minutes=1))
    report = forget(shop, "email", EMAIL)
    assert places_of(*WORDS) == set()
    assert {"checkout.Checkout", "gateway.RequestLog"} <= {line["model"] for line in report["lines"]}


def test_deliveries_lose_the_person_and_stay_deliverable(shop: Shop) -> None:
    paid = pay(shop)
    body = {"type": "PAYMENT", "action": "CREATED", "payload": {"id": paid.id, "customer": {"email": EMAIL}}}
    endpoint = UUID(int=1)
    delivery = WebhookDelivery.objects.create(
        endpoint_id=endpoint,
        merchant=shop.merchant,
        kind="PAYMENT",
        action="CREATED",
        payment=UUID(paid.id),
        body=json.dumps(body),
        due_at=clock.real_now(),
        give_up_at=clock.real_now(),
        created_at=clock.real_now(),
    )
    WebhookAttempt.objects.create(
        delivery=delivery, number=1, at=clock.real_now(), answer="thanks Zaphira", duration_ms=1
    )
    forget(shop, "email", EMAIL)
    delivery.refresh_from_db()
    assert json.loads(delivery.body) == {"type": "PAYMENT", "action": "CREATED", "payload": {"id": paid.id}}
    assert places_of(*WORDS) == set()


def test_acquirer_messages_are_emptied(shop: Shop) -> None:
    paid = pay(shop)
    assert AcquirerExchange.objects.filter(payment=UUID(paid.id)).exists()
    forget(shop, "email", EMAIL)
    assert set(AcquirerExchange.objects.values_list("received", flat=True)) == {None}
    assert shop.api.read(paid.id).status == 200


# --- what is open -------------------------------------------------------------------------------------------------


def test_an_authorization_is_captured_or_reversed_first(shop: Shop) -> None:
    held = pay(shop, paymentType="PA")
    with pytest.raises(PersonStillActiveError) as refused:
        forget(shop, "email", EMAIL)
    assert [one.ids for one in refused.value.matters] == [(held.id,)]
    assert Payment.objects.get(pk=UUID(held.id)).request["customer"]["email"] == EMAIL, "nothing was erased"
    assert shop.api.follow(held.id, "RV").status == 200
    forget(shop, "email", EMAIL)
    assert places_of(*WORDS) == set()


def test_a_payment_that_begins_meanwhile_keeps_its_card(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found with the others, and would be submitted without its account."""
    paid = pay(shop)
    delete = erasure._delete_registrations

    def pay_meanwhile(*given: Any) -> None:
        delete(*given)
        Payment.objects.filter(pk=UUID(pay(shop).id)).update(status="IN_DOUBT")

    monkeypatch.setattr(erasure, "_delete_registrations", pay_meanwhile)
    with pytest.raises(PersonStillActiveError):
        forget(shop, "email", EMAIL)
    assert Payment.objects.get(pk=UUID(paid.id)).request["customer"]["email"] == EMAIL


def test_a_follow_up_that_begins_meanwhile_stops_a_repetition(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    paid = pay(shop)
    delete = erasure._delete_registrations

    def mark_meanwhile(*given: Any) -> None:
        delete(*given)
        Payment.objects.filter(pk=UUID(paid.id)).update(status="IN_DOUBT")

    monkeypatch.setattr(erasure, "_delete_registrations", mark_meanwhile)
    with pytest.raises(PersonStillActiveError, match=paid.id):
        erasure.repeat_erasure(shop.merchant, {"gateway.Payment": [paid.id]}, by=BY)
    assert Payment.objects.get(pk=UUID(paid.id)).means_sealed is not None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("again", [False, True])
def test_a_refund_that_begins_after_the_rows_were_listed_stops_the_erasure(
    committed: Shop, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """On another connection, after the last look at what is open: it has copied from the payment."""
    paid = pay(committed)
    erase, refunds = erasure._erase_rows, []

    def refund_meanwhile(*given: Any, **named: Any) -> dict[str, Any]:
        refunds.extend(at_once(lambda: committed.api.follow(paid.id, "RF", "1.00")))
        return erase(*given, **named)

    def begin() -> object:
        if again:
            return erasure.repeat_erasure(committed.merchant, {"gateway.Payment": [paid.id]}, by=BY)
        return forget(committed, "email", EMAIL)

    monkeypatch.setattr(erasure, "_erase_rows", refund_meanwhile)
    with pytest.raises(ErasureConflictError) as refused:
        begin()
    (refund,) = refunds
    assert str(refused.value) == f"payment {refund.id} began meanwhile"
    assert Payment.objects.get(pk=UUID(paid.id)).request["customer"]["email"] == EMAIL, "nothing was erased"
    monkeypatch.setattr(erasure, "_erase_rows", erase)
    begin()  # the refund is there now, and nothing begins
    assert "Zaphira" not in json.dumps(Payment.objects.get(pk=UUID(paid.id)).request)


def test_an_expired_authorization_that_a_late_capture_renews_is_waited_for(shop: Shop) -> None:
    """Its capture, and the release after RENEWAL_GRACE, need the account."""
    Channel.objects.update(expired_captures=Channel.ExpiredCaptures.RENEW)
    held = pay(shop, paymentType="PA")
    jump(11 * DAY)
    assert expire_authorizations() == 1
    with pytest.raises(PersonStillActiveError, match=held.id):
        forget(shop, "email", EMAIL)
    jump(30 * DAY)
    assert expire_authorizations() == 1
    with pytest.raises(PersonStillActiveError, match="released"):
        forget(shop, "email", EMAIL)
    assert release_authorizations() == 1
    forget(shop, "email", EMAIL)
    assert places_of(*WORDS) == set()


@pytest.mark.parametrize("days", [10, None])
def test_the_rest_of_an_authorization_refunded_in_part_is_waited_for(shop: Shop, days: int | None) -> None:
    """The chain's state is that of the refund."""
    Channel.objects.update(authorization_days={"*": days})
    held = pay(shop, paymentType="PA")
    captured = shop.api.follow(held.id, "CP", "40.00")
    assert shop.api.follow(captured.id, "RF", "10.00").status == 200
    with pytest.raises(PersonStillActiveError, match=held.id):
        forget(shop, "email", EMAIL)
    assert shop.api.follow(held.id, "RV", "52.00").status == 200
    forget(shop, "email", EMAIL)
    assert places_of(*WORDS) == set()


def test_a_schedule_is_cancelled_first(shop: Shop) -> None:
    stored = subscriptions.store_card(shop.api)
    subscriptions.started(shop.api, stored, job__expression="0 0 6 1 * ? *")
    registration = Registration.objects.get()
    with pytest.raises(PersonStillActiveError, match="Schedules"):
        forget(shop, "registration", registration.pk.hex)
    assert Registration.objects.get().status == "ACTIVE"


def test_a_payment_without_a_result_is_waited_for(shop: Shop) -> None:
    paid = pay(shop)
    Payment.objects.filter(pk=UUID(paid.id)).update(status="IN_DOUBT")
    with pytest.raises(PersonStillActiveError, match=paid.id):
        forget(shop, "email", EMAIL)


def test_evidence_of_a_closed_dispute_goes_and_an_open_one_is_waited_for(shop: Shop) -> None:
    paid = pay(shop)
    case = ledger.record_chargeback(Payment.objects.get(pk=UUID(paid.id)), Decimal("10.00"), by=BY)
    evidence.add_evidence(case, "delivery", "Quixley.pdf", io.BytesIO(PDF), BY)
    with pytest.raises(PersonStillActiveError, match="disputes"):
        forget(shop, "email", EMAIL)
    assert EvidencePiece.objects.exists()
    Chargeback.objects.update(state="LOST", closed_at=clock.real_now())
    forget(shop, "email", EMAIL)
    assert not EvidencePiece.objects.exists()
    assert Evidence.objects.get().name == ""
    assert places_of(*WORDS) <= {"gateway_auditentry.after"}, "the trail may not be changed"


def test_what_proves_a_mandate_stays_for_its_time(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    sepa.account_at_bank(shop.channel)
    paid = sepa.debit(shop.api)
    assert paid.status == 200, paid
    BankOrder.objects.update(state="BOOKED")
    SepaMandate.objects.update(used_on=clock.real_now().date())
    MandateMail.objects.update(state="SENT")
    Payment.objects.update(status="APPROVED", approved_amount="92.00", result_code="000.000.000")
    OpenPayment.objects.all().delete()
    report = forget(shop, "payment", paid.id)
    held = {(line["model"], line["column"]) for line in report["lines"] if line.get("reason") == "MANDATE"}
    assert held >= {("gateway.BankOrder", "name"), ("gateway.SepaMandate", "iban_sealed")}
    assert BankOrder.objects.get().name != ""
    BankOrder.objects.update(created_at=clock.real_now() - timedelta(days=431))
    SepaMandate.objects.update(used_on=(clock.real_now() - timedelta(days=431)).date())
    MandateMail.objects.update(due_at=clock.real_now() - timedelta(days=431))
    forget(shop, "payment", paid.id)
    order, mandate = BankOrder.objects.get(), SepaMandate.objects.get()
    assert (order.name, order.iban_sealed, order.iban_shown, mandate.iban_sealed) == ("", None, "", None)


def store_account(shop: Shop, **more: str) -> Any:
    """An account that is only stored: a mandate without a bank order."""
    fields = {name.replace("__", "."): value for name, value in {**sepa.JANE, **more}.items() if value}
    stored = shop.api.post("/v1/registrations", fields)
    assert stored.status == 200, stored.text
    MandateMail.objects.update(state="SENT", due_at=clock.real_now() - timedelta(days=431))
    return stored


OWN_MANDATE = {"bankAccount.mandate.id": "OWN-MANDATE", "bankAccount.mandate.dateOfSignature": "2026-01-05"}


@pytest.mark.parametrize("named", [{}, OWN_MANDATE])
def test_the_mandate_of_an_account_that_was_only_stored_goes_after_its_time(shop: Shop, named: dict[str, str]) -> None:
    sepa.account_at_bank(shop.channel)
    stored = store_account(shop, **named)
    mandate = SepaMandate.objects.get()
    assert (mandate.used_on, mandate.iban_sealed is None) == (None, False)
    SepaMandate.objects.update(signed_on=clock.real_now().date(), address={"street": "Quixley Lane 9"})
    report = forget(shop, "registration", stored.id)
    held = {(line["model"], line["column"]) for line in report["lines"] if line.get("reason") == "MANDATE"}
    assert ("gateway.SepaMandate", "iban_sealed") in held
    SepaMandate.objects.update(signed_on=(clock.real_now() - timedelta(days=431)).date())
    forget(shop, "registration", stored.id)
    mandate.refresh_from_db()
    assert (mandate.iban_sealed, mandate.address) == (None, {})


def test_a_mandate_with_the_same_id_at_another_creditor_stays(shop: Shop) -> None:
    sepa.account_at_bank(shop.channel)
    stored = store_account(shop, **OWN_MANDATE)
    SepaMandate.objects.update(signed_on=(clock.real_now() - timedelta(days=431)).date())
    mandate = SepaMandate.objects.get()
    other = SepaMandate.objects.create(
        merchant=shop.merchant,
        creditor="DE98ZZZ00000000002",
        mandate="OWN-MANDATE",
        named_by_merchant=True,
        recurring=True,
        signed_on=mandate.signed_on,
        iban_sealed=b"sealed",
        iban_fingerprint=b"another account",
    )
    forget(shop, "registration", stored.id)
    other.refresh_from_db()
    mandate.refresh_from_db()
    assert (other.iban_sealed, mandate.iban_sealed) == (b"sealed", None)


def test_a_payment_link_for_one_person_is_forgotten(shop: Shop) -> None:
    money = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "link.description": "for Zaphira"}
    who = {"customer.email": EMAIL, "customer.givenName": "Zaphira", "customer.surname": "Quixley"}
    assert shop.api.post("/v1/paymentLinks", money | who).status == 200
    forget(shop, "email", EMAIL)
    assert places_of(*WORDS) == set()


@pytest.mark.parametrize(("kind", "value"), [("email", EMAIL), ("customer", CUSTOMER)])
def test_an_authentication_without_a_payment_is_forgotten(shop: Shop, kind: str, value: str) -> None:
    api = shop.api_of(shop.open_channel("authenticating", three_d_secure=True))
    sent = threeds.fields(threeds.FRICTIONLESS, paymentType=None, card__cvv=None)
    who = {**customer("Zaphira", EMAIL), "customer.merchantCustomerId": CUSTOMER}
    assert api.post("/v1/threeDSecure", sent | who).status == 200
    row = Authentication.objects.get()
    assert row.payment is None
    Authentication.objects.update(step="challenge", deadline=clock.real_now())
    with pytest.raises(PersonStillActiveError, match=row.pk.hex):
        forget(shop, kind, value)
    Authentication.objects.update(step="done")
    report = forget(shop, kind, value)
    assert report["ids"]["gateway.Authentication"] == [row.pk.hex]
    assert places_of(*WORDS) == set()
    row.refresh_from_db()
    assert (row.ask, row.messages, row.number_sealed) == ({}, [], None)


# --- finding ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("email", "zaphira", "is not an e-mail address"),
        ("email", "a@b" + "c" * 200, "is not an e-mail address"),
        ("phone", "call me", "is not a telephone number"),
        ("customer", "  ", "is not a customer.merchantCustomerId"),
        ("payment", "8A82", "is not 32 lower-case hex digits"),
        ("registration", "x" * 32, "is not 32 lower-case hex digits"),
    ],
)
def test_a_value_of_a_wrong_form_is_told(shop: Shop, kind: str, value: str, words: str) -> None:
    with pytest.raises(PersonNotFoundError, match=words):
        parse_person(shop.merchant, kind, value)


@pytest.mark.parametrize(("kind", "value"), [("email", "no@shop.example"), ("payment", "0" * 32)])
def test_nobody_is_told(shop: Shop, kind: str, value: str) -> None:
    with pytest.raises(PersonNotFoundError):
        forget(shop, kind, value)


def use_card(shop: Shop, registration: str, **more: str) -> Any:
    fields = {"paymentType": "DB", "amount": "12.00", "currency": "EUR"}
    made = shop.api.post(f"/v1/registrations/{registration}/payments", fields | more)
    assert made.status == 200, made
    return made


def test_the_registration_that_a_payment_was_made_with_is_the_persons(shop: Shop) -> None:
    stored = subscriptions.store_card(shop.api)
    without = use_card(shop, stored)
    use_card(shop, stored, **customer("Zaphira", EMAIL.upper()))
    report = forget(shop, "email", EMAIL)
    assert Registration.objects.get().status == "DELETED"
    assert report["ids"]["gateway.Registration"] == [Registration.objects.get().pk.hex]
    assert without.id in report["ids"]["gateway.Payment"]


def test_a_second_telephone_or_a_gift_makes_no_other_customer(shop: Shop) -> None:
    stored = subscriptions.store_card(shop.api)
    who = {**customer("Zaphira", EMAIL), "customer.phone": "+49 30 1112223"}
    gift = {"shipping.customer.email": "other@shop.example"}
    use_card(shop, stored, **who, **gift, **{"customer.mobile": PHONE})
    for kind, value in (("email", EMAIL), ("phone", PHONE)):
        assert people.find_person(parse_person(shop.merchant, kind, value)).ids("gateway.Registration")


@pytest.mark.parametrize("by", ["registration", "payment", "schedule"])
@pytest.mark.parametrize("kind", ["email", "payment"])
def test_a_registration_that_another_person_uses_too_stays(shop: Shop, by: str, kind: str) -> None:
    """A family may share an account."""
    other = customer("Other", "other@shop.example")
    stored = subscriptions.store_card(shop.api, **(other if by == "registration" else {}))
    if by == "payment":
        use_card(shop, stored, **other)
    elif by == "schedule":
        subscriptions.started(shop.api, stored, job__expression="0 0 6 1 * ? *", **other)
    paid = use_card(shop, stored, **customer("Zaphira", EMAIL))
    report = forget(shop, kind, EMAIL if kind == "email" else paid.id)
    assert Registration.objects.get().status == "ACTIVE"
    assert report["ids"]["gateway.Payment"] == [paid.id]


def test_requests_of_strangers_with_the_same_customer_id_or_telephone_keep_theirs(shop: Shop) -> None:
    """A shop gives every guest one customer id, for example."""
    shared = {"customer.merchantCustomerId": "guest", "customer.mobile": PHONE}
    pay(shop, **shared)
    for email in (EMAIL, "other@shop.example"):
        assert shop.api.pay(**shared, customer__email=email, amount="92.1").status == 400
    forget(shop, "email", EMAIL)
    logged = [dict(row) for row in RequestLog.objects.filter(payment=None).values_list("parameters", flat=True)]
    assert sorted(row.get("customer.email", "") for row in logged) == ["", "other@shop.example"]


def test_a_refused_request_with_the_customer_id_is_the_persons(shop: Shop) -> None:
    pay(shop)
    assert shop.api.pay(customer__merchantCustomerId=CUSTOMER, customer__surname="Quixley", amount="92.1").status == 400
    forget(shop, "customer", CUSTOMER)
    assert places_of(*WORDS) == set()


def test_an_address_of_thousands_is_not_one_person(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "MAX_PERSON_PAYMENTS", 1)
    for _ in range(2):
        assert shop.api.pay(**named("Zaphira", EMAIL)).status == 200
    with pytest.raises(PersonNotFoundError, match="not one person"):
        forget(shop, "email", EMAIL)


def test_a_row_that_changed_meanwhile_stops_all(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    paid = pay(shop)
    row = UUID(paid.id)
    filtered, times = erasure.remove_personal_values, count()

    def changing(document: Any) -> Any:
        Payment.objects.filter(pk=row).update(answer={"changed": str(next(times))})
        return filtered(document)

    monkeypatch.setattr(erasure, "remove_personal_values", changing)
    with pytest.raises(erasure.ErasureConflictError):
        forget(shop, "email", EMAIL)
    assert Payment.objects.get(pk=row).request["customer"]["email"] == EMAIL


# --- command, export, repetition ----------------------------------------------------------------------------------


ALONE = ("--alone", "nobody else works here")


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("forget_shopper", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_tries_exports_and_erases(shop: Shop) -> None:
    paid = pay(shop)
    merchant = shop.merchant.pk.hex
    tried = json.loads(run("--merchant", merchant, "--email", EMAIL, "--dry-run"))
    exported = json.loads(run("--merchant", merchant, "--email", EMAIL, "--export"))
    assert Payment.objects.get(pk=UUID(paid.id)).request["customer"]["email"] == EMAIL
    assert {one["table"] for one in exported["data"]} >= {"gateway.Payment", "gateway.AcquirerExchange"}
    payment = next(one for one in exported["data"] if one["table"] == "gateway.Payment")["rows"][0]
    assert payment["request"]["customer"]["email"] == EMAIL
    assert payment["means_sealed"] == "stored, sealed"
    report = json.loads(run("--merchant", merchant, "--email", EMAIL, *ALONE))
    assert report["erasedRows"] == tried["erasedRows"] > 0
    assert report["ids"]["gateway.Payment"] == [paid.id]
    assert AuditEntry.objects.filter(action="export shopper").count() == 1
    assert EMAIL not in json.dumps(list(AuditEntry.objects.values_list("after", flat=True)))


def test_one_person_at_the_command_line_erases_nothing_without_a_reason(shop: Shop) -> None:
    paid = pay(shop)
    arguments = ("--merchant", shop.merchant.pk.hex, "--email", EMAIL)
    for alone in ((), ("--alone", ""), ("--alone", "  ")):
        with pytest.raises(CommandError, match="takes two people"):
            run(*arguments, *alone)
    assert Payment.objects.get(pk=UUID(paid.id)).request["customer"]["email"] == EMAIL
    run(*arguments, "--alone", "only one of us is left, card 4200 0000 0000 0000")
    assert places_of(*WORDS) == set()
    entry = AuditEntry.objects.get(action="forget shopper")
    assert entry.after is not None
    assert entry.after["alone"] == "only one of us is left, card 4200 00** **** 0000"


def test_a_changed_report_erases_nobody_else(shop: Shop, tmp_path: Path) -> None:
    """Its file lies outside of the gateway: with other ids it would be a way around the second person."""
    pay(shop)
    done = json.loads(run("--merchant", shop.merchant.pk.hex, "--email", EMAIL, *ALONE))
    other = shop.api.pay(
        customer__givenName="Other", customer__surname="Person", customer__email="other.canary@shop.example"
    )
    report = tmp_path / "report.json"
    again = ("--merchant", shop.merchant.pk.hex, "--again", str(report))
    changed = done | {"ids": done["ids"] | {"gateway.Payment": [other.id]}}
    for document in (changed, changed | {"seal": ""}, {"merchant": done["merchant"], "ids": changed["ids"]}):
        report.write_text(json.dumps(document))
        with pytest.raises(CommandError, match="not as it was written"):
            run(*again)
    assert Payment.objects.get(pk=UUID(other.id)).request["customer"]["email"] == "other.canary@shop.example"
    run(*again, *ALONE)
    assert places_of("other.canary@shop.example") == set()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--request", "0" * 32), "must name a request"),
        (("--request", "x"), "must name a request"),
        (("--request", "0" * 32, "--merchant", "0" * 32), "stands alone"),
        (("--request", "0" * 32, "--dry-run"), "stands alone"),
        (("--email", EMAIL), "must name a merchant"),
    ],
)
def test_what_does_not_go_together_is_told(shop: Shop, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        run(*arguments)


def test_an_export_has_no_card_number(shop: Shop) -> None:
    pay(shop)
    text = dump_export(export_person(parse_person(shop.merchant, "email", EMAIL)))
    assert "Zaphira" in text
    assert shop.api.pay().body["card"]["bin"] + "0000" not in text
    assert "4200000000000" not in text


def test_a_report_is_carried_out_again_after_a_restore(shop: Shop, tmp_path: Path) -> None:
    paid = pay(shop)
    kept = Payment.objects.get(pk=UUID(paid.id))
    report = tmp_path / "report.json"
    report.write_text(run("--merchant", shop.merchant.pk.hex, "--email", EMAIL, *ALONE))
    kept.save()  # as an older backup has it
    assert places_of("Quixley")
    run("--merchant", shop.merchant.pk.hex, "--again", str(report))
    assert places_of(*WORDS) == set()


def test_what_was_found_by_its_own_document_is_erased_again(shop: Shop, tmp_path: Path) -> None:
    """Payment links and schedules that no payment led to."""
    money = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "link.description": "for Zaphira"}
    assert shop.api.post("/v1/paymentLinks", money | customer("Zaphira", EMAIL)).status == 200
    stored = subscriptions.store_card(shop.api)
    subscriptions.started(shop.api, stored, job__expression="0 0 6 1 * ? *", **customer("Zaphira", EMAIL))
    Job.objects.update(state="ENDED", next_at=None)
    job, link = Job.objects.get(), PaymentLink.objects.get()
    Registration.objects.update(request={"customer": {"email": "other@shop.example"}})
    report = tmp_path / "report.json"
    report.write_text(run("--merchant", shop.merchant.pk.hex, "--email", EMAIL, *ALONE))
    ids = json.loads(report.read_text())["ids"]
    assert (ids["scheduling.Job"], ids["checkout.PaymentLink"]) == ([job.pk.hex], [link.pk.hex])
    assert places_of(*WORDS) == set()
    for row in (job, link):  # as an older backup has them
        row.save()
    assert places_of(*WORDS)
    run("--merchant", shop.merchant.pk.hex, "--again", str(report))
    assert places_of(*WORDS) == set()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "cannot be read"),
        ("[]", "is no report"),
        ('{"ids": {"gateway.Payment": ["x"]}}', "is no report"),
        ('{"ids": {"auth.User": []}}', "is no report"),
        ('{"ids": {}, "merchant": "0"}', "another merchant"),
    ],
)
def test_a_wrong_report_is_refused(shop: Shop, tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(CommandError, match=words):
        run("--merchant", shop.merchant.pk.hex, "--again", str(path))


def test_wrong_arguments_are_refused(shop: Shop) -> None:
    merchant = shop.merchant.pk.hex
    with pytest.raises(CommandError, match="--merchant must name a merchant"):
        run("--merchant", "0" * 32, "--email", EMAIL)
    with pytest.raises(CommandError, match="required"):
        run("--merchant", merchant)
    with pytest.raises(CommandError, match="leave --dry-run out"):
        run("--merchant", merchant, "--email", EMAIL, "--export", "--dry-run")
    with pytest.raises(CommandError, match="Nothing is stored"):
        run("--merchant", merchant, "--email", EMAIL, *ALONE)


def test_the_merchant_is_sent_the_webhook_of_a_deleted_registration(shop: Shop) -> None:
    pay(shop, createRegistration="true")
    forget(shop, "email", EMAIL)
    assert Notification.objects.filter(kind="REGISTRATION", action="DELETED").count() == 1
