"""Alert providers report alerts by signed messages, and those who are reminded of disputes get a mail of each."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from pytest_django.live_server_helper import LiveServer

from chargebacks import alert_reminders, alerts, ledger
from chargebacks.alert_intake import parse_provider_secrets
from chargebacks.models import Chargeback, Contact, DisputeAlert
from config import checks
from gateway.core import clock
from gateway.models import Payment
from gateway.payments.chain_amounts import compute_refundable_amount
from gateway.payments.follow_ups import load_chain
from tests.chargebacks.test_alerts import alerted, charge_back, clerk, paid, refunds
from tests.support.alert_provider import sign
from tests.support.clock import pass_time
from tests.support.doc_blocks import read_block
from tests.support.fixtures import BY, Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
SECRET = "a secret of the provider, long enough"
NEWER = "another secret of the same provider!!"
ADDRESS = "/connectors/alerts/ethos"


@pytest.fixture(autouse=True)
def provider(settings: Any) -> None:
    settings.GATEWAY_ALERT_PROVIDERS = [f"ethos={SECRET}", f"ethos={NEWER}", f"verity={SECRET}"]


def told(payment: Payment, **more: str) -> dict[str, str]:
    return {"paymentId": payment.id.hex, "alertId": "A-1", "amount": "92.00", "currency": "EUR", **more}


def post(content: Any, *, secret: str = SECRET, address: str = ADDRESS, age: int = 0) -> tuple[int, dict[str, Any]]:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    header = sign(secret, body, int(time.time()) - age)
    answer = Client().post(address, body, content_type="application/json", headers={"Tollhouse-Signature": header})
    return answer.status_code, answer.json()


def test_a_signed_alert_is_recorded_once_and_its_state_is_told(shop: Shop) -> None:
    payment = paid(shop)
    sent = told(payment, reasonCode="10.4", respondBy="2035-01-31T12:00:00+00:00")
    status, answer = post(sent)
    row = DisputeAlert.objects.get()
    assert (status, answer["id"], answer["state"]) == (201, row.pk.hex, "OPEN")
    assert (row.provider, row.reference, row.reason_code, row.scheme_reason) == ("ethos", "A-1", "000.100.220", "10.4")
    alerts.refund_alert(row, clerk())
    status, answer = post(sent, secret=NEWER)
    assert (status, answer["state"], answer["refundId"]) == (200, "REFUNDED", row.refund.hex)  # type: ignore[union-attr]
    charge_back(payment)
    assert post(sent)[0] == 200
    assert post(sent, address="/connectors/alerts/verity")[0] == 409


def test_the_alert_that_the_docs_show_is_taken(shop: Shop) -> None:
    """The example in docs/chargebacks.md."""
    payment = paid(shop)
    shown = json.loads(read_block("chargebacks.md", "Alerts and inquiries before it", "json"))
    assert len(shown.pop("paymentId")) == len(payment.id.hex)
    status, answer = post({**shown, "paymentId": payment.id.hex})
    assert (status, answer["state"]) == (201, "OPEN")


def test_an_alerts_id_stands_for_one_payment(shop: Shop) -> None:
    assert post(told(paid(shop)))[0] == 201
    status, answer = post(told(paid(shop)))
    assert (status, answer["field"]) == (400, "alertId")


def test_the_merchants_own_id_finds_the_payment_where_it_is_one(shop: Shop) -> None:
    payment = paid(shop, merchantTransactionId="order-0007")
    sent = told(payment, entityId=shop.channel.entity_id, merchantTransactionId="order-0007", kind="INQUIRY")
    del sent["paymentId"]
    status, answer = post(sent)
    assert (status, answer["kind"], DisputeAlert.objects.get().disputed) == (201, "INQUIRY", payment.id)
    paid(shop, merchantTransactionId="order-0007")
    assert post({**sent, "alertId": "A-2"}) == (
        400,
        {"error": "several payments have this one: send PaymentId", "field": "merchantTransactionId"},
    )


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"amount": "92,00"}, "amount"),
        ({"currency": ""}, "currency"),
        ({"alertId": ""}, "alertId"),
        ({"paymentId": "0" * 32}, "paymentId"),
        ({"paymentId": ""}, "paymentId"),
        ({"kind": "CHARGEBACK"}, "kind"),
        ({"respondBy": "soon"}, "respondBy"),
        ({"respondBy": "9999-12-31T23:59:59Z"}, "respondBy"),
        ({"respondBy": "9999-12-31T23:59:59-12:00"}, "respondBy"),
        ({"respondBy": "0001-01-01T00:00:00Z"}, "respondBy"),
        ({"alertId": "4111111111111111"}, "alertId"),
        ({"alertId": "A" * 65}, "alertId"),
        ({"alertId": "\ud800"}, "alertId"),
        ({"amount": 92}, "amount"),
        ({"card": "4200000000000000"}, "card"),
        ({"AlertId": "A-2"}, "alertId"),
    ],
)
def test_a_faulty_field_is_named(shop: Shop, changes: dict[str, Any], field: str) -> None:
    status, answer = post({**told(paid(shop)), **changes})
    assert (status, answer["field"]) == (400, field)
    assert not DisputeAlert.objects.exists()


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b"[" * 10_000])
def test_what_is_no_message_is_refused(shop: Shop, body: bytes) -> None:
    assert post(body)[0] == 400


def test_only_the_providers_signature_counts(shop: Shop) -> None:
    sent = told(paid(shop))
    assert post(sent, secret="x" * 40)[0] == 401
    assert post(sent, age=600)[0] == 401
    assert Client().post(ADDRESS, sent, content_type="application/json").status_code == 401
    assert post(sent, address="/connectors/alerts/unknown")[0] == 404
    assert Client().get(ADDRESS).status_code == 405
    assert post(b"x" * 20_000)[0] == 413
    assert not DisputeAlert.objects.exists()


def test_a_provider_of_its_own_process_is_answered(committed: Shop, live_server: LiveServer) -> None:
    content = json.dumps(told(paid(committed)))
    command = [sys.executable, "-m", "tests.support.alert_provider", f"{live_server.url}{ADDRESS}", SECRET, content]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = json.loads(run.stdout)
    assert (found["status"], found["answer"]["state"]) == (201, "OPEN")
    assert DisputeAlert.objects.get().pk.hex == found["answer"]["id"]


@pytest.mark.parametrize("entry", ["ethos", "ethos=short", "Ethos=" + "x" * 32, "=" + "x" * 32])
def test_a_faulty_list_of_providers_is_found_at_the_start(settings: Any, entry: str) -> None:
    settings.GATEWAY_ALERT_PROVIDERS = [f"verity={SECRET}", entry]
    (fault,) = checks.check_alert_providers(None)
    assert ("entry 2" in str(fault.msg), entry in str(fault.msg)) == (True, False)
    assert list(parse_provider_secrets([f"verity={SECRET}"])) == ["verity"]


# --- the form -----------------------------------------------------------------------------------------------------


def test_the_form_is_not_offered_for_what_can_have_no_alert(shop: Shop) -> None:
    manager = signed_in(person("mia", "manager", shop.merchant))
    disputed = paid(shop)
    charge_back(disputed)
    for payment in (paid(shop, paymentType="PA"), disputed):
        answer = manager.get(reverse("admin:chargebacks_chargeback_alert_entry", args=[payment.pk]))
        assert (answer.status_code, payment.pk.hex in answer["Location"].replace("-", "")) == (302, True)
    assert manager.get(reverse("admin:chargebacks_chargeback_alert_entry", args=[paid(shop).pk])).status_code == 200


# --- the money ----------------------------------------------------------------------------------------------------


def test_a_chargeback_after_a_refunded_alert_is_won_and_the_money_has_gone_once(shop: Shop) -> None:
    """The institute takes the money a second time: the case says what was refunded, and winning it gives it back."""
    payment = paid(shop)
    alerts.refund_alert(alerted(payment), clerk())
    case = charge_back(payment)
    assert case.refunded_before == Decimal("92.00")
    chain = load_chain(payment.id, payment.merchant, None)
    assert chain is not None
    assert compute_refundable_amount(chain, payment) <= 0
    answer = shop.api.post(f"/v1/payments/{payment.id.hex}", {"paymentType": "RF", "amount": "1.00", "currency": "EUR"})
    assert answer.status == 400
    ledger.record_chargeback_reversal(case, Decimal("92.00"), by=BY)
    won = Chargeback.objects.get()
    moved = Payment.objects.filter(chain=payment.id, status="APPROVED").values_list("payment_type", "amount")
    signs = {"DB": 1, "RF": -1, "CB": -1, "CR": 1}
    assert (won.state, sum(signs[kind] * amount for kind, amount in moved)) == ("WON", 0)
    assert refunds() == ["92.00"]


# --- mails --------------------------------------------------------------------------------------------------------


def send() -> list[str]:
    mail.outbox.clear()
    alert_reminders.send_due_alert_reminders()
    return [one.subject for one in mail.outbox]


def test_who_is_reminded_gets_a_mail_at_once_and_a_day_before_the_deadline(shop: Shop) -> None:
    Contact.objects.create(merchant=shop.merchant, email="disputes@shop.example")
    alert = alerted(paid(shop))
    assert send() == ["Alert about 92.00 EUR: 72 hours left"]
    assert mail.outbox == [] or mail.outbox[0].bcc == ["disputes@shop.example"]
    assert send() == []
    alert.refresh_from_db()
    assert alert.remind_at == alert.due_at - timedelta(hours=24)
    mail.outbox.clear()
    pass_time(shop.api, days=2)
    assert [one.subject for one in mail.outbox] == ["Alert about 92.00 EUR: 24 hours left"]
    alert.refresh_from_db()
    assert (alert.remind_at, alert.state) == (None, DisputeAlert.State.OPEN)


def test_no_mail_of_what_is_decided_or_without_anybody_to_remind(shop: Shop) -> None:
    assert send() == []
    alone = alerted(paid(shop), kind=DisputeAlert.Kind.INQUIRY)
    assert send() == []
    alone.refresh_from_db()
    assert alone.remind_at == alone.due_at - timedelta(hours=24)
    Contact.objects.create(merchant=shop.merchant, email="disputes@shop.example")
    decided = alerted(paid(shop), reference="A-2")
    alerts.refund_alert(decided, clerk())
    assert send() == []


def test_a_mail_server_that_is_away_gets_the_mail_later(shop: Shop, settings: Any) -> None:
    Contact.objects.create(merchant=shop.merchant, email="disputes@shop.example")
    alert = alerted(paid(shop), kind=DisputeAlert.Kind.INQUIRY)
    own, settings.EMAIL_BACKEND = settings.EMAIL_BACKEND, "nowhere.Backend"
    assert alert_reminders.send_due_alert_reminders() == 0
    settings.EMAIL_BACKEND = own
    assert send() == []  # its lease
    DisputeAlert.objects.update(remind_lease=clock.real_now() - timedelta(minutes=1))
    assert send() == ["Inquiry about 92.00 EUR: 336 hours left"]
    alert.refresh_from_db()
    assert alert.remind_tries == 0
