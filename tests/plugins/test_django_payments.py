"""The provider for django-payments in a shop that runs, against a gateway that runs. docs/decisions/0078."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest
from pytest_django.live_server_helper import LiveServer

from checkout.models import Checkout
from gateway.access import audit_log
from gateway.models import Channel, Payment
from gateway.notifications import endpoints
from tests.plugins.installing import ShopServer, bare_environment, deliver_all, install_here, run, serving
from tests.support.clock import jump, pass_time
from tests.support.fixtures import Shop
from tests.support.ports import free_port
from tests.support.shopper import DECLINED, Browser
from tests.support.webhook_delivery import deliver, standard

pytestmark = pytest.mark.django_db(transaction=True)
PROGRAM: Final = Path(__file__).with_name("django_payments_shop.py")
BY: Final = audit_log.Actor(name="tests")
PREPAYMENT: Final = {
    "paymentBrand": "PREPAYMENT",
    **dict.fromkeys(("card__number", "card__expiryMonth", "card__expiryYear", "card__cvv", "card__holder")),
}
"""It waits for a transfer, 14 days."""


@dataclass(frozen=True, slots=True)
class Till:
    """The shop's server, and its shoppers."""

    server: ShopServer
    merchant: Shop

    def order(self, variant: str = "card", **fields: Any) -> int:
        order = {"variant": variant, "total": "92.00", "currency": "EUR", **fields}
        return int(self.server.post("/orders", **order).json()["id"])

    def look(self, order: int) -> dict[str, Any]:
        found: dict[str, Any] = self.server.get(f"/orders/{order}").json()
        return found

    def lead(self, order: int) -> httpx.Response:
        return self.server.get(f"/orders/{order}/pay")

    def open_page(self, order: int) -> Browser:
        """The shopper is led to the payment page."""
        page = self.lead(order).headers["Location"]
        assert "/pay/" in page
        return Browser(page.rpartition("/")[2])

    def come_back(self, order: int) -> str:
        """The shopper returns; where the shop leads them."""
        return str(self.server.get(f"/payments/process/{self.look(order)['token']}/").headers["Location"])

    def pay(self, order: int, **card: str) -> str:
        self.open_page(order).pay(**card)
        return self.come_back(order)

    def change(self, order: int, what: str, **body: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.server.post(f"/orders/{order}/{what}", **body).json()
        return found


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_here(tmp_path_factory.mktemp("installed"), "django-payments")


@pytest.fixture
def till(python: Path, tmp_path: Path, live_server: LiveServer, committed: Shop, settings: Any) -> Iterator[Till]:
    settings.GATEWAY_BASE_URL = live_server.url
    with open_till(python, tmp_path, live_server.url, committed) as opened:
        yield opened


@contextmanager
def open_till(python: Path, tmp_path: Path, gateway: str, committed: Shop) -> Iterator[Till]:
    """A shop with its webhook endpoints: a signed one, and an encrypted one of the other variant."""
    port = free_port()
    address = f"http://127.0.0.1:{port}/payments/process"
    made = [
        endpoints.create_endpoint(committed.merchant, f"{address}/{variant}/", by=BY, mode=mode)
        for variant, mode in (("card", "signed"), ("reserve", "encrypted"))
    ]
    secrets = [standard(made[0][1].reveal()), made[1][1].reveal()]
    token = committed.api.token
    assert token is not None
    arguments = (str(port), tmp_path, gateway, token, committed.channel.entity_id, json.dumps(secrets))
    with serving([python, PROGRAM, *arguments], port, tmp_path, bare_environment()) as server:
        for endpoint, _ in made:
            assert endpoints.activate_endpoint(endpoint, by=BY).active, "the test message is answered"
        yield Till(server, committed)


def test_a_payment_is_made_on_the_page_and_read_from_the_gateway(till: Till) -> None:
    order = till.order(
        billing_first_name="Jane", billing_last_name="Jones", billing_email="jane@mail.example", billing_city="Munich"
    )
    browser = till.open_page(order)
    assert till.look(order)["changes"] == ["input"]
    sent = Checkout.objects.get().request
    assert (sent["amount"], sent["paymentType"], sent["customer.surname"]) == ("92.00", "DB", "Jones")
    assert urlsplit(sent["shopperResultUrl"]).path == f"/payments/process/{till.look(order)['token']}/"
    assert till.come_back(order) == f"/again/{order}", "nothing was paid, whatever the address says"
    assert till.look(order)["status"] == "input"
    browser.pay()
    assert till.come_back(order) == f"/thanks/{order}"
    found = till.look(order)
    assert (found["status"], found["captured"]) == ("confirmed", "92.00")
    assert found["transaction_id"] == Payment.objects.get().pk.hex
    assert till.come_back(order) == f"/thanks/{order}"
    deliver_all()
    assert till.look(order)["changes"] == ["input", "confirmed"], "return and webhook change it once"
    assert till.lead(order).headers["Location"] == f"/thanks/{order}", "it is not paid again"


def test_a_webhook_alone_is_enough_in_both_modes(till: Till) -> None:
    for variant, expected in (("card", "confirmed"), ("reserve", "preauth")):
        order = till.order(variant)
        till.open_page(order).pay()
        deliver_all()
        assert till.look(order)["status"] == expected
    deliver_all()


def test_webhooks_of_others_are_answered_and_forged_ones_are_not_taken(till: Till) -> None:
    """An endpoint that answers no 2xx would be tried for 30 days, and paused."""
    till.merchant.api.pay(amount="7.00")
    till.merchant.api.pay(amount="7.00", merchantTransactionId="order-of-another-shop")
    deliver_all()
    order = till.order()
    till.open_page(order)
    token = till.look(order)["token"]
    for path in ("card", token):
        told = till.server.post(f"/payments/process/{path}/", type="PAYMENT", payload={"merchantTransactionId": token})
        assert told.status_code == 400
    assert till.look(order)["status"] == "input"


def test_a_decline_can_be_tried_again_on_the_same_checkout(till: Till) -> None:
    order = till.order()
    browser = till.open_page(order)
    browser.pay(card__number=DECLINED)
    deliver_all()
    assert till.look(order)["status"] == "input", "the shopper is still on the page"
    assert till.come_back(order) == f"/again/{order}"
    found = till.look(order)
    assert found["status"] == "rejected"
    assert found["message"].startswith("Declined")
    assert till.open_page(order).checkout == browser.checkout
    assert till.pay(order) == f"/thanks/{order}"
    assert till.look(order)["changes"] == ["input", "rejected", "input", "confirmed"]


def test_a_payment_that_was_pending_and_is_declined_can_be_tried_again(till: Till) -> None:
    """Its shopper does not come back a second time."""
    order = till.order()
    waits = till.merchant.api.pay(**PREPAYMENT, merchantTransactionId=till.look(order)["token"])
    assert till.come_back(order) == f"/thanks/{order}"
    deliver_all()
    assert till.look(order)["status"] == "waiting"
    assert till.lead(order).headers["Location"] == f"/thanks/{order}", "it is not paid a second time"
    pass_time(till.merchant.api, days=15)
    assert till.merchant.api.read(waits.id).code == "100.396.103"
    deliver_all()
    assert till.look(order)["status"] == "rejected"
    assert till.pay(order) == f"/thanks/{order}"


def test_follow_ups_of_another_channel_are_answered(till: Till) -> None:
    """An endpoint without a channel gets the webhooks of all."""
    other = till.merchant.api_of(till.merchant.open_channel())
    assert other.follow(other.pay().id, "RF", "12.00").status == 200
    deliver_all()


def test_a_page_that_could_not_be_updated_is_not_handed_out(till: Till) -> None:
    """It might have an old amount."""
    Channel.objects.update(limits={"*": None, "checkout": {"limit": 1, "window_s": 1_000_000}})
    order = till.order()
    till.open_page(order)
    refused = till.lead(order)
    assert (refused.status_code, "429" in refused.json()["error"]) == (502, True)


def test_an_expired_page_is_replaced_and_a_late_result_is_still_read(till: Till) -> None:
    order = till.order()
    browser = till.open_page(order)
    jump(1900)
    another = till.open_page(order)
    assert another.checkout != browser.checkout
    another.pay()
    jump(1900)
    assert till.come_back(order) == f"/thanks/{order}"


def test_an_authorization_is_captured_and_refunded_in_parts(till: Till) -> None:
    order = till.order("reserve")
    till.pay(order)
    assert till.look(order)["status"] == "preauth"
    captured = till.change(order, "capture", amount="50.00")
    assert (captured["status"], captured["captured"]) == ("confirmed", "50.00")
    part = till.change(order, "refund", amount="20.00")
    assert (part["status"], part["captured"]) == ("confirmed", "30.00")
    assert "greater" in till.change(order, "refund", amount="30.01")["error"]
    assert till.change(order, "refund")["status"] == "refunded"
    deliver_all()
    found = till.look(order)
    assert (found["status"], found["captured"]) == ("refunded", "0.00")
    assert found["changes"] == ["input", "preauth", "confirmed", "refunded"]
    assert sorted(Payment.objects.values_list("payment_type", "amount")) == [
        ("CP", 50), ("PA", 92), ("RF", 20), ("RF", 30),
    ]  # fmt: skip


def test_an_authorization_is_released(till: Till) -> None:
    order = till.order("reserve")
    till.pay(order)
    assert till.change(order, "release")["status"] == "refunded"
    assert Payment.objects.filter(payment_type="RV").count() == 1


@pytest.mark.parametrize("amount", ["10.00", "92.00"])
def test_a_refund_whose_answer_was_lost_is_made_once(till: Till, amount: str) -> None:
    order = till.order()
    till.pay(order)
    till.change(order, "refund", amount=amount, stale=True)
    assert till.look(order)["captured"] == "92.00", "the row does not know of it"
    till.change(order, "refund", amount=amount)
    assert Payment.objects.filter(payment_type="RF").count() == 1
    assert till.change(order, "refund", amount="1.00")["captured"] == ("81.00" if amount == "10.00" else "0.00")


def test_a_refund_in_the_back_office_arrives(till: Till) -> None:
    """Its webhook names the debit, not our reference."""
    order = till.order()
    till.pay(order)
    paid = till.look(order)["transaction_id"]
    till.merchant.api.post(f"/v1/payments/{paid}", {"paymentType": "RF", "amount": "12.00", "currency": "EUR"})
    deliver_all()
    assert till.look(order)["captured"] == "80.00"
    till.merchant.api.post(f"/v1/payments/{paid}", {"paymentType": "RF", "amount": "80.00", "currency": "EUR"})
    deliver_all()
    assert till.look(order)["status"] == "refunded"


def test_what_is_paid_after_cancelling_is_given_back(till: Till) -> None:
    for variant, returned in (("card", "RF"), ("reserve", "RV")):
        order = till.order(variant)
        browser = till.open_page(order)
        assert till.change(order, "cancel")["status"] == "cancelled"
        browser.pay()
        deliver_all()
        assert till.look(order)["status"] == "cancelled"
        assert Payment.objects.filter(payment_type=returned, amount=92).count() == 1
        assert till.lead(order).headers["Location"] == f"/again/{order}"
    paid = till.order()
    till.open_page(paid).pay()
    assert "has been paid" in till.change(paid, "cancel")["error"]
    assert till.look(paid)["status"] == "confirmed"


def test_another_amount_than_the_orders_is_an_error(till: Till) -> None:
    """The order grew while its page was open elsewhere."""
    order = till.order()
    browser = till.open_page(order)
    till.merchant.api.post(f"/v1/checkouts/{browser.checkout}", {"amount": "9.20"})
    browser.pay()
    assert till.come_back(order) == f"/again/{order}"
    found = till.look(order)
    assert (found["status"], found["captured"]) == ("error", "9.20")
    assert found["message"] == "9.20 EUR was paid instead of 92.00 EUR"


def test_a_webhook_secret_that_is_none_is_found_at_once(python: Path) -> None:
    settings = {"base_url": "https://gateway.example", "token": "t", "entity_id": "e", "webhook_secrets": "geheim"}
    program = f"""
from django.conf import settings
settings.configure(PAYMENT_HOST="shop.example")
from tollhouse_django_payments import TollhouseProvider
try:
    TollhouseProvider(**{settings})
except ValueError as error:
    print(error)
"""
    assert "64 hex digits" in run(python, "-c", program, folder=python.parent)


def test_what_the_gateway_refuses_is_named(till: Till) -> None:
    refused = till.lead(till.order(currency="euro"))
    assert (refused.status_code, "currency: must be" in refused.json()["error"]) == (502, True)
    order = till.order(billing_address_1="12345", billing_country_code="ZZ")
    assert till.pay(order) == f"/thanks/{order}", "without an address that the gateway does not take"


def test_a_gateway_that_cannot_be_reached_makes_no_result(till: Till) -> None:
    order = till.order("away", status="input")
    assert till.lead(order).status_code == 502
    assert till.come_back(order) == f"/thanks/{order}"
    assert till.look(order)["status"] == "waiting"


def test_a_payment_is_what_the_gateway_of_its_own_variant_says(till: Till) -> None:
    """A market place has a variant for each seller, whose gateway could otherwise pay the orders of the others."""
    order = till.order("away")
    till.merchant.api.pay(merchantTransactionId=till.look(order)["token"])
    deliver()
    assert till.look(order)["status"] == "waiting"


def test_a_webhook_for_a_variant_that_was_taken_away_is_answered(till: Till) -> None:
    """Nobody can read the payment any more; answered 500, it would come for 30 days, and the endpoint be paused."""
    order = till.order("closed")
    till.merchant.api.pay(merchantTransactionId=till.look(order)["token"])
    deliver_all()
    assert till.look(order)["status"] == "waiting"
