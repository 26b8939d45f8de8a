"""What every answer that is a payment carries, whatever made it and wherever it is read: descriptor and, where
resultDetails stands, AcquirerResponse and ExtendedDescription.

Strict clients fail to read an answer without them, and they fail after the money moved.
Source: Part A, Basic payment (descriptor); Part B, Payment response; docs/decisions/0047.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from gateway.catalogue.openapi import build_openapi
from gateway.connectors.acquirer_message import flatten_body
from gateway.connectors.port import AcquirerReply
from gateway.core.brands import PAYMENT_BRANDS
from gateway.models import AcquirerExchange, Channel, Merchant, Payment, RequestLog
from gateway.payments import acquirer_reported, recovery
from gateway.payments.acquirer_message_store import restore_message
from gateway.scheduling.models import JobRun
from gateway.timers import registry
from tests.gateway.connectors.card_api.conftest import processor
from tests.gateway.connectors.sepa.conftest import outbox
from tests.gateway.wallets.test_payments import pay as pay_by_wallet
from tests.gateway.wallets.test_payments import token_of, with_keys
from tests.support import sepa
from tests.support.card_api import account_at as account_at_card_api
from tests.support.client import Answer, Api, payment
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.iso_host import account_at_host, iso_host
from tests.support.recovery import claim_after
from tests.support.shopper import DECLINED, open_checkout, result_of
from tests.support.stub import StubProcess, account_at_stub, acquirer
from tests.support.subscriptions import started, step, store_card
from tests.support.webhook_delivery import deliver, messages, register
from tests.support.webhooks import hooked

__all__ = ["acquirer", "iso_host", "outbox", "processor"]
pytestmark = pytest.mark.django_db

OWN = "Shop statement 24"
"""The channel's own descriptor in these tests."""
REDIRECTING = next(code for code, brand in PAYMENT_BRANDS.items() if brand.redirect)
CARD = {"paymentBrand": "VISA", "card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034"}
MONEY = {"amount": "9.00", "currency": "EUR", "paymentType": "DB"}
MIT = {
    "standingInstruction.mode": "REPEATED",
    "standingInstruction.source": "MIT",
    "standingInstruction.type": "UNSCHEDULED",
}
CIT = {**MIT, "standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT"}


@pytest.fixture(scope="module")
def schema() -> jsonschema_rs.Draft202012Validator:
    whole = build_openapi(base_url="http://testserver", environment="test")
    return jsonschema_rs.Draft202012Validator(
        {**whole["components"]["schemas"]["Payment"], "components": whole["components"]}
    )


@pytest.fixture
def shop(shop: Shop) -> Shop:
    """The merchant of the test, whose channel has a descriptor of its own."""
    shop.channel.descriptor = OWN
    shop.channel.save()
    return shop


class Checked:
    """Payments' answers, each looked at as it comes."""

    def __init__(self, schema: jsonschema_rs.Draft202012Validator) -> None:
        self.schema = schema
        self.seen: list[str] = []

    def __call__(self, what: str, body: dict[str, Any], descriptor: str = OWN) -> str:
        """Look at one; its id."""
        assert body.get("descriptor") == descriptor, (what, body)
        if "resultDetails" in body:
            assert body["resultDetails"].keys() >= {"AcquirerResponse", "ExtendedDescription"}, (what, body)
            assert body["resultDetails"]["ExtendedDescription"], (what, body)
        # One of a list has its envelope around the list.
        self.schema.validate({"buildNumber": f"{'0' * 40}@2026-01-01 00:00:00 +0000"} | body)
        self.seen.append(what)
        return str(body["id"])

    def answer(self, what: str, answer: Answer, descriptor: str = OWN) -> str:
        assert "paymentType" in answer.body, (what, answer)
        return self(what, answer.body, descriptor)


@pytest.fixture
def checked(schema: jsonschema_rs.Draft202012Validator) -> Checked:
    return Checked(schema)


def every_reading(api: Api, checked: Checked, *payments: str) -> None:
    """The same payments by every way to look at them again."""
    for one in payments:
        descriptor = Payment.objects.get(pk=one).request.get("descriptor", OWN)
        checked.answer("GET", api.read(one), descriptor)
        checked.answer("GET v1 query", api.get(f"/v1/query/{one}"), descriptor)
        linked = {"includeLinkedTransactions": "true"}
        for found in api.get(f"/v1/query/{one}", linked).body.get("payments", ()):
            checked("linked", found, Payment.objects.get(pk=found["id"]).request.get("descriptor", OWN))


def listed(api: Api, checked: Checked) -> None:
    times = {"date.from": "2020-01-01 00:00:00", "date.to": "2099-01-01 00:00:00", "limit": "500"}
    for path, name in (("/v1/query", "payments"), ("/v3/query", "records")):
        found = api.get(path, times).body[name]
        assert len(found) == Payment.objects.count()
        for body in found:
            row = Payment.objects.get(pk=body["id"])
            told_by = row.request.get("descriptor") or row.answer["descriptor"]
            checked(f"{path} {row.payment_type}", body, told_by)


def test_every_operation_and_every_way_to_read_it(shop: Shop, checked: Checked) -> None:
    api = shop.api
    debit = checked.answer("DB", api.pay())
    held = checked.answer("PA", api.pay(paymentType="PA"))
    checked.answer("CD", api.pay(paymentType="CD", card__cvv=None))
    checked.answer("RI", api.pay(paymentType="RI", risk__amount="92.00"))
    declined = checked.answer("declined", api.pay(card__number=DECLINED))
    checked.answer("refused by us", api.pay(card__number="4444444444444444"))
    checked.answer("in doubt", api.pay(card__number="4000090003000000"))
    more = {"paymentType": "PA", "amount": "5.00", "currency": "EUR", "referenceUuid": held}
    for practice in ("INCREMENTAL_AUTH", "REAUTHORIZATION"):
        again = api.post("/v1/payments", {**more, "standingInstruction.industryPractice": practice})
        assert again.status == 200, again
        checked.answer(practice, again)
    captured = checked.answer("CP", api.follow(held, "CP", "50.00"))
    checked.answer("RV", api.follow(held, "RV"))
    checked.answer("RC", api.follow(captured, "RC", "50.00"))
    checked.answer("RF", api.follow(captured, "RF", "10.00"))
    charged = checked.answer("RB", api.follow(debit, "RB", "12.00"))
    disputed = checked.answer("CB", api.follow(charged, "CB", "12.00"))
    checked.answer("CR", api.follow(disputed, "CR", "12.00"))
    refused = api.follow(declined, "RF", "1.00")
    assert refused.status == 400
    checked.answer("a refused follow-up", refused)
    every_reading(api, checked, debit, held, captured, declined, charged, disputed)
    listed(api, checked)
    assert {"CP", "RV", "GET v1 query", "/v3/query CR"} <= set(checked.seen)


def test_stored_means_agreements_and_migrations(shop: Shop, checked: Checked) -> None:
    api = shop.api
    first = api.pay(createRegistration="true", **CIT)
    checked.answer("createRegistration", first)
    registration = first.body["registrationId"]
    path = f"/v1/registrations/{registration}/payments"
    checked.answer("one-click", api.post(path, MONEY))
    checked.answer("MIT", api.post(path, MONEY | MIT))
    named = {"standingInstruction.initialTransactionId": first.body["standingInstruction"]["initialTransactionId"]}
    checked.answer("MIT by reference", api.pay(card__cvv=None, **MIT, **named))
    stored = api.post("/v1/registrations", CARD)
    assert "descriptor" not in stored.body  # a registration is no payment
    assert stored.body["resultDetails"]["ExtendedDescription"]
    checked.answer("paid with it", api.post(f"/v1/registrations/{stored.id}/payments", MONEY))
    assert "descriptor" not in api.delete(f"/v1/registrations/{stored.id}").body
    refused = api.post("/v1/registrations", CARD | {"card.number": DECLINED})
    assert "descriptor" not in refused.body
    listed(api, checked)


def test_checkouts_and_shoppers_who_go_away(shop: Shop, checked: Checked) -> None:
    api = shop.api
    browser = open_checkout(api)
    browser.pay(card__number=DECLINED)
    checked.answer("a declined checkout", result_of(api, browser))
    browser = open_checkout(api)
    browser.pay()
    checked.answer("a paid checkout", result_of(api, browser))
    browser = open_checkout(api, descriptor="Sent with the checkout")
    browser.pay()
    checked.answer("its own descriptor", result_of(api, browser), "Sent with the checkout")
    pending = api.post(
        "/v1/payments", {**MONEY, "paymentBrand": REDIRECTING, "shopperResultUrl": "https://shop.example/"}
    )
    assert pending.code == "000.200.000", pending
    checked.answer("pending", pending)
    every_reading(api, checked, pending.id)
    Channel.objects.filter(pk=shop.channel.pk).update(three_d_secure=True)
    asked = api.pay(
        card__number="4200000000000042",
        shopperResultUrl="https://shop.example/",
        customer__givenName="Jane",
        customer__surname="Jones",
        billing__street1="Main Street",
        billing__city="Munich",
        billing__country="DE",
        billing__postcode="80331",
        customer__ip="192.0.2.1",
        customer__browser__acceptHeader="text/html",
        customer__browser__language="de",
        customer__browser__screenHeight="900",
        customer__browser__screenWidth="1400",
        customer__browser__timezone="60",
        customer__browser__userAgent="Tests",
        customer__browser__javaEnabled="false",
    )
    assert "redirect" in asked.body, asked
    checked.answer("3-D Secure", asked)
    pass_time(api, minutes=61)
    ended = api.read(asked.id)
    assert ended.status == 400
    checked.answer("the shopper did not come back", ended)


def test_webhooks(shop: Shop, checked: Checked) -> None:
    with hooked() as hook:
        _, secret = register(shop, hook)
        held = shop.api.pay(paymentType="PA")
        shop.api.follow(held.id, "CP", "5.00")
        shop.api.follow(held.id, "RV")
        shop.api.pay(card__number=DECLINED)
        shop.api.pay(card__number="4000090003000000")
        shop.api.pay(paymentType="RI")
        registered = shop.api.pay(createRegistration="true").body["registrationId"]
        started(shop.api, registered)
        while deliver(shop):
            pass
        for one in messages(hook, secret):
            if one["type"] == "REGISTRATION":
                continue
            checked(f"{one['type']} {one['action']} {one['payload']['paymentType']}", one["payload"])
    assert {"PAYMENT CREATED CP", "PAYMENT CREATED RV", "RISK CREATED RI", "SCHEDULE CREATED SD"} <= set(checked.seen)


def test_subscriptions(shop: Shop, checked: Checked) -> None:
    registration = store_card(shop.api)
    plan = started(shop.api, registration)
    assert plan.body["descriptor"] == OWN
    assert shop.api.get(f"/v1/schedules/{plan.id}").body["descriptor"] == OWN
    own = started(shop.api, registration, descriptor="Magazine of May")
    assert own.body["descriptor"] == "Magazine of May"
    while Payment.objects.filter(payment_type="DB").count() < 2:
        step(shop.merchant)
    for run in JobRun.objects.exclude(payment=None):
        descriptor = "Magazine of May" if run.job_id.hex == own.id else OWN
        checked.answer("a run", shop.api.read(run.payment.hex), descriptor)
    listed(shop.api, checked)


def test_the_same_request_again(shop: Shop, checked: Checked) -> None:
    """Byte for byte, also where the channel's setting changed in between."""
    first = shop.api.post("/v1/payments", payment(paymentType="PA"), Idempotency_Key="one")
    plain = shop.api.post("/v1/payments", payment(card__number=DECLINED), Idempotency_Key="two")
    captured = shop.api.post(f"/v1/payments/{first.id}", {**MONEY, "paymentType": "CP"}, Idempotency_Key="three")
    for answer in (first, plain, captured):
        checked.answer("with a key", answer)
    Channel.objects.filter(pk=shop.channel.pk).update(descriptor="Another")
    Merchant.objects.filter(pk=shop.merchant.pk).update(name="Another name")
    assert shop.api.post("/v1/payments", payment(paymentType="PA"), Idempotency_Key="one").text == first.text
    assert shop.api.post("/v1/payments", payment(card__number=DECLINED), Idempotency_Key="two").text == plain.text
    again = shop.api.post(f"/v1/payments/{first.id}", {**MONEY, "paymentType": "CP"}, Idempotency_Key="three")
    assert again.text == captured.text


@pytest.fixture(params=["stub", "iso8583", "card API"])
def external(request: pytest.FixtureRequest, shop: Shop) -> Iterator[Shop]:
    """The shop, its payments going to one processor after another."""
    if request.param == "stub":
        request.getfixturevalue("acquirer")
        account_at_stub(shop.channel)
    elif request.param == "iso8583":
        account_at_host(shop.channel, request.getfixturevalue("iso_host"))
    else:
        account_at_card_api(shop.channel, request.getfixturevalue("processor").url)
    return shop


def test_processors(external: Shop, checked: Checked, acquirer: StubProcess) -> None:
    api = external.api
    held = checked.answer("PA", api.pay(testMode="EXTERNAL", paymentType="PA"))
    captured = checked.answer("CP", api.follow(held, "CP", "50.00"))
    checked.answer("RV", api.follow(held, "RV"))
    checked.answer("RF", api.follow(captured, "RF", "10.00"))
    checked.answer("declined", api.pay(testMode="EXTERNAL", card__number=DECLINED))
    every_reading(api, checked, held, captured)
    listed(api, checked)


def test_answers_after_recovery(shop: Shop, checked: Checked, acquirer: StubProcess) -> None:
    account_at_stub(shop.channel)
    for behaviour in ("silent_after", "silent_before"):
        lost = shop.api.pay(testMode="EXTERNAL", **{"customParameters[STUB_behaviour]": behaviour})
        checked.answer("in doubt", lost)
        for one in claim_after(60):
            asked = recovery.resolve_outcome(
                recovery.CONNECTORS["stub"], recovery.build_inquiry(one, recovery.CONNECTORS["stub"]), one
            )
            recovery.record_outcome(one, asked)
        after = shop.api.read(lost.id)
        assert after.code != lost.code, after
        checked.answer("recovered", after)


def test_direct_debits_and_what_banks_say(shop: Shop, checked: Checked, outbox: Path) -> None:
    sepa.account_at_bank(shop.channel)
    paid, returned = sepa.debit(shop.api), sepa.debit(shop.api)
    checked.answer("outstanding", paid)
    pass_time(shop.api, days=sepa.A_RUN)
    (file,) = sepa.files_in(outbox)
    sepa.take(sepa.status(file.message, orders={paid.id: ("ACCP", ""), returned.id: ("RJCT", "AC04")}))
    registry.run_timer_now("bank answers")
    for one in (paid, returned):
        checked.answer("answered", shop.api.read(one.id))
    details = shop.api.read(returned.id).body["resultDetails"]
    announced = {name: details.pop(name) for name in ("CollectionDate", "MandateId", "CreditorId")}
    assert all(announced.values())
    assert details | {"ConnectorTxID1": ""} == {
        "AcquirerResponse": "AC04",
        "ExtendedDescription": "account closed",
        "ConnectorTxID1": "",
    }


def test_wallets_and_other_means(shop: Shop, checked: Checked) -> None:
    with_keys(shop)
    for wallet in ("wallet1", "wallet2", "wallet3"):
        checked.answer(wallet, pay_by_wallet(shop.api, wallet, token_of(shop.channel, wallet)))
    network = {
        "paymentBrand": "VISA",
        "tokenAccount.number": "4200000000000000",
        "tokenAccount.type": "NETWORK",
        "tokenAccount.expiryMonth": "05",
        "tokenAccount.expiryYear": "2034",
        "tokenAccount.cryptogram": "AAACAgSRBklmQCFgMpEGAAAAAAA=",
    }
    checked.answer("network token", shop.api.post("/v1/payments", MONEY | network))
    listed(shop.api, checked)


def test_what_an_acquirer_told_of(shop: Shop, checked: Checked) -> None:
    paid = shop.api.pay()
    reply = AcquirerReply(code="000.100.203", details={"AcquirerResponse": "R-1"})
    entered = acquirer_reported.record_acquirer_reported_follow_up(
        "CB", Payment.objects.get(pk=paid.id).id, shop.merchant, Decimal("5.00"), "EUR", reply, origin="a file"
    )
    checked.answer("CB out of a file", shop.api.read(entered.id.hex))


# --- which one it is ----------------------------------------------------------------------------------------------


def sent_on(answer: Answer) -> str:
    """The descriptor as the acquirer got it."""
    exchange = AcquirerExchange.objects.filter(payment=answer.id).latest("id")
    return flatten_body(restore_message(exchange, Payment.objects.get(pk=answer.id))).get("descriptor", "")


def test_the_one_that_was_sent_is_the_chains(shop: Shop) -> None:
    held = shop.api.pay(paymentType="PA", descriptor="Order 4711")
    captured = shop.api.follow(held.id, "CP", "50.00")
    other = shop.api.follow(held.id, "CP", "10.00", descriptor="Order 4712")
    back, back_again = shop.api.follow(captured.id, "RF", "1.00"), shop.api.follow(other.id, "RF", "1.00")
    for answer, expected in (
        (held, "Order 4711"),
        (captured, "Order 4711"),
        (other, "Order 4712"),
        (back, "Order 4711"),
        (back_again, "Order 4712"),
    ):
        assert answer.body["descriptor"] == expected == sent_on(answer)
        assert shop.api.read(answer.id).body["descriptor"] == expected


def test_without_one_it_is_the_channels_which_goes_onwards(shop: Shop) -> None:
    held = shop.api.pay(paymentType="PA")
    Channel.objects.filter(pk=shop.channel.pk).update(descriptor="Of tomorrow")
    captured = shop.api.follow(held.id, "CP", "50.00")
    for answer in (held, captured):
        assert answer.body["descriptor"] == OWN == sent_on(answer)
    assert shop.api.pay().body["descriptor"] == "Of tomorrow"


def test_without_a_channels_own_it_is_the_merchants_name_which_stays_here(shop: Shop) -> None:
    """The acquirer's account has a name of its own, agreed on there."""
    Channel.objects.filter(pk=shop.channel.pk).update(descriptor="")
    held = shop.api.pay(paymentType="PA")
    Merchant.objects.filter(pk=shop.merchant.pk).update(name="Renamed")
    captured = shop.api.follow(held.id, "CP", "50.00")
    for answer in (held, captured, shop.api.read(held.id)):
        assert answer.body["descriptor"] == "Shop"
    assert sent_on(held) == sent_on(captured) == ""


def test_a_long_name_is_cut_to_what_a_descriptor_may_have(shop: Shop) -> None:
    Channel.objects.filter(pk=shop.channel.pk).update(descriptor="")
    Merchant.objects.filter(pk=shop.merchant.pk).update(name="N" * 128)
    assert shop.api.pay().body["descriptor"] == "N" * 127


def test_a_payment_of_before_descriptors_were_kept_has_one_too(shop: Shop, checked: Checked) -> None:
    held = shop.api.pay(paymentType="PA")
    captured = shop.api.follow(held.id, "CP", "50.00")
    for row in Payment.objects.all():
        row.request.pop("descriptor")
        row.save(update_fields=["request"])
    every_reading(shop.api, checked, held.id, captured.id)
    checked.answer("RF", shop.api.follow(captured.id, "RF", "1.00"))
    found = shop.api.get("/v1/query", {"date.from": "2020-01-01 00:00:00", "date.to": "2099-01-01 00:00:00"})
    assert {body["descriptor"] for body in found.body["payments"]} == {OWN}


def test_what_the_acquirer_said_and_what_nobody_was_asked(shop: Shop) -> None:
    assert shop.api.pay().body["resultDetails"]["AcquirerResponse"] == "00"
    declined = shop.api.pay(card__number=DECLINED).body
    assert declined["resultDetails"]["ExtendedDescription"] == declined["result"]["description"]
    assert "resultDetails" not in shop.api.pay(card__number="4444444444444444").body
    assert json.dumps(declined).count('"descriptor"') == 1
    assert RequestLog.objects.count() == 3
