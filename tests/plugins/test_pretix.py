"""The provider for pretix, in pretix as it is published, against a gateway that runs. docs/decisions/0078.

pretix has about a hundred packages of its own, in versions that are not ours: it is installed once, of pretix.lock,
into var/. That takes the network; without it these tests are skipped, but with CI set they fail.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
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
from tests.plugins.installing import UV, ShopServer, bare_environment, deliver_all, run, serving, write_wheels
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.ports import free_port
from tests.support.shopper import DECLINED, Browser

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("pretix")]
PROGRAM: Final = Path(__file__).with_name("pretix_shop.py")
LOCK: Final = Path(__file__).with_name("pretix.lock")
HOME: Final = Path(__file__).parents[2] / "var" / "tests-pretix"
INSTALLING_S: Final = 900
PREPAYMENT: Final = {
    "paymentBrand": "PREPAYMENT",
    **dict.fromkeys(("card__number", "card__expiryMonth", "card__expiryYear", "card__cvv", "card__holder")),
}
"""It waits for a transfer, 14 days."""
BY: Final = audit_log.Actor(name="tests")
EVENT: Final = "/organizer/concert-26"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_pretix(tmp_path_factory.mktemp("wheels"))


def install_pretix(folder: Path) -> Path:
    """The environment with pretix and the newest wheels of ours. Its Python."""
    program = HOME / "bin/python"
    installed = HOME / ".installed"
    if not installed.exists() or installed.read_bytes() != LOCK.read_bytes():
        run(UV, "venv", "--quiet", "--clear", "--python", sys.executable, HOME, folder=Path.cwd())
        install = [UV, "pip", "install", "--quiet", "--require-hashes", "--python", program, "-r", LOCK]
        ran = subprocess.run(install, env=bare_environment(), capture_output=True, text=True, timeout=INSTALLING_S)
        if ran.returncode:
            reason = f"pretix could not be installed of {LOCK.name}: {ran.stderr}"
            pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
        installed.write_bytes(LOCK.read_bytes())
    wheels = write_wheels(folder, "pretix")
    install = [UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--reinstall", "--python", program, *wheels]
    run(*install, folder=folder)
    return program


@dataclass(slots=True)
class Tickets:
    """The ticket shop, and its shoppers. ``orders``: those that nobody has paid yet."""

    server: ShopServer
    merchant: Shop
    made: dict[str, Any]
    orders: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, path: str, **body: Any) -> Any:
        """pretix's own API."""
        url = f"{self.server.url}/api/v1/organizers/organizer/events/concert-26/orders/{path}"
        headers = {"Authorization": f"Token {self.made['token']}"}
        answer = self.server.http.request("POST" if body else "GET", url, json=body or None, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def begin(self, order: dict[str, Any]) -> httpx.Response:
        """What pretix does once the order is confirmed."""
        return self.server.get(f"{EVENT}/order/{order['code']}/{order['secret']}/pay/{order['payment']}/complete")

    def open_page(self, order: dict[str, Any]) -> Browser:
        page = self.begin(order).headers["Location"]
        assert "/pay/" in page, page
        return Browser(page.rpartition("/")[2])

    def come_back(self, browser: Browser) -> httpx.Response:
        row = next(one for one in Checkout.objects.all() if one.public_id == browser.checkout)
        return self.server.get(row.request["shopperResultUrl"])

    def state(self, order: dict[str, Any]) -> tuple[str, str]:
        """Of the order (n: not paid, p: paid) and of its payment."""
        found = self.ask(f"{order['code']}/")
        return found["status"], found["payments"][0]["state"]


@pytest.fixture
def tickets(python: Path, tmp_path: Path, live_server: LiveServer, committed: Shop, settings: Any) -> Iterator[Tickets]:
    settings.GATEWAY_BASE_URL = live_server.url
    with sell_tickets(python, tmp_path, live_server.url, committed) as open_shop:
        yield open_shop


@contextmanager
def sell_tickets(python: Path, tmp_path: Path, gateway: str, committed: Shop) -> Iterator[Tickets]:
    """The ticket shop until the end of the block, with its webhook endpoint."""
    port = free_port()
    address = f"http://127.0.0.1:{port}{EVENT}/tollhouse/webhook/"
    endpoint, secret = endpoints.create_endpoint(committed.merchant, address, by=BY, mode="encrypted")
    token = committed.api.token
    assert token is not None
    arguments = (str(port), tmp_path, gateway, token, committed.channel.entity_id, secret.reveal())
    with serving([python, PROGRAM, *arguments], port, tmp_path, bare_environment()) as server:
        assert endpoints.activate_endpoint(endpoint, by=BY).active, "the test message is answered"
        made = json.loads((tmp_path / "shop.json").read_text())
        yield Tickets(server, committed, made, made["orders"])


def test_an_order_is_paid_and_refunded(tickets: Tickets) -> None:
    """With pretix's own pages and its own API."""
    assert tickets.made["settings"] == ["base_url", "token", "entity_id", "webhook_secret"]
    assert tickets.made["name"] == "Karte und andere Zahlungsmittel"
    order = tickets.orders.pop()
    browser = tickets.open_page(order)
    assert tickets.state(order) == ("n", "created")
    sent = Checkout.objects.get().request
    assert sent["merchantTransactionId"] == f"ORGANIZER-CONCERT-26-{order['code']}-P-1"
    assert (sent["amount"], sent["currency"], sent["locale"]) == ("92.00", "EUR", "de")
    assert "paid=yes" not in tickets.come_back(browser).headers["Location"], "whatever the address says"
    assert tickets.open_page(order).checkout == browser.checkout
    browser.pay()
    back = tickets.come_back(browser)
    assert back.headers["Location"].endswith(f"/{order['secret']}/?paid=yes")
    assert tickets.state(order) == ("p", "confirmed")
    assert tickets.server.get(urlsplit(back.headers["Location"]).path).status_code == 200
    deliver_all()
    found = tickets.ask(f"{order['code']}/")
    assert found["payments"][0]["details"] == {"id": Payment.objects.get().pk.hex, "code": "000.100.110"}
    refund = tickets.ask(f"{order['code']}/payments/1/refund/", amount="10.00")
    assert (refund["state"], refund["amount"]) == ("done", "10.00")
    deliver_all()
    refunds = [(one["amount"], one["state"]) for one in tickets.ask(f"{order['code']}/")["refunds"]]
    assert refunds == [("10.00", "done")], "the webhook of our own refund makes none"
    paid = Payment.objects.get(payment_type="DB").pk.hex
    tickets.merchant.api.post(f"/v1/payments/{paid}", {"paymentType": "RF", "amount": "20.00", "currency": "EUR"})
    for _ in range(2):
        deliver_all()
        tickets.come_back(browser)
    refunds = [(one["amount"], one["source"]) for one in tickets.ask(f"{order['code']}/")["refunds"]]
    assert sorted(refunds) == [("10.00", "admin"), ("20.00", "external")], "that of the back office is shown once"


def test_results_arrive_by_webhook_or_by_reading(tickets: Tickets) -> None:
    by_webhook, by_reading, declined, abandoned = (tickets.orders.pop() for _ in range(4))
    tickets.open_page(by_webhook).pay()
    deliver_all()
    assert tickets.state(by_webhook) == ("p", "confirmed")
    tickets.open_page(by_reading).pay()
    tickets.open_page(abandoned)
    assert tickets.server.get("/_periodic").text == "done"
    assert tickets.state(by_reading) == ("p", "confirmed")
    assert tickets.state(abandoned) == ("n", "created")
    browser = tickets.open_page(declined)
    browser.pay(card__number=DECLINED)
    deliver_all()
    assert tickets.state(declined) == ("n", "created"), "the shopper is still on the page"
    tickets.come_back(browser)
    assert tickets.state(declined) == ("n", "failed")
    browser.pay()
    deliver_all()
    assert tickets.state(declined) == ("p", "confirmed"), "paid after all: money is never overlooked"


def test_another_amount_strangers_and_forged_webhooks_pay_nothing(tickets: Tickets) -> None:
    order = tickets.orders.pop()
    browser = tickets.open_page(order)
    tickets.merchant.api.post(f"/v1/checkouts/{browser.checkout}", {"amount": "9.20"})
    browser.pay()
    tickets.come_back(browser)
    assert tickets.state(order) == ("n", "failed")
    tickets.merchant.api.pay(amount="7.00", merchantTransactionId="order-of-another-shop")
    deliver_all()
    assert tickets.server.post(f"{EVENT}/tollhouse/webhook/", type="PAYMENT").status_code == 400
    found = tickets.ask(f"{order['code']}/")
    paid = Payment.objects.get(amount="9.20").pk.hex
    assert found["payments"][0]["details"] == {"id": paid, "code": "000.100.110"}, "whoever gives it back needs it"
    assert tickets.merchant.api.follow(paid, "RF", "9.20").status == 200
    deliver_all()
    assert tickets.ask(f"{order['code']}/")["refunds"] == [], "pretix never counted this money"
    other = tickets.merchant.api_of(tickets.merchant.open_channel())
    assert other.follow(other.pay().id, "RF", "12.00").status == 200
    deliver_all()
    wrong = f"{EVENT}/tollhouse/return/{order['code']}/{'0' * 64}/{order['payment']}/"
    assert tickets.server.get(wrong).status_code == 404


def test_a_payment_that_was_pending_and_is_declined_is_over(tickets: Tickets) -> None:
    """Its shopper does not come back a second time."""
    order = tickets.orders.pop()
    browser = tickets.open_page(order)
    reference = f"ORGANIZER-CONCERT-26-{order['code']}-P-1"
    waits = tickets.merchant.api.pay(**PREPAYMENT, merchantTransactionId=reference)
    tickets.come_back(browser)
    assert tickets.state(order) == ("n", "pending")
    pass_time(tickets.merchant.api, days=15)
    assert tickets.merchant.api.read(waits.id).code == "100.396.103"
    deliver_all()
    assert tickets.state(order) == ("n", "failed")


def test_a_page_that_could_not_be_updated_is_not_handed_out(tickets: Tickets) -> None:
    """It might have an old amount."""
    Channel.objects.update(limits={"*": None, "checkout": {"limit": 1, "window_s": 1_000_000}})
    order = tickets.orders.pop()
    tickets.open_page(order)
    assert tickets.begin(order).headers["Location"].startswith(f"{EVENT}/order/"), "back to the order, with a message"


def test_a_gateway_in_a_private_network_is_not_asked(tickets: Tickets) -> None:
    """Whoever may change an event's settings could look around in the network of pretix's servers."""
    for address in ("http://gateway.example", "https://localhost", "https://10.0.0.1", "https://[::ffff:127.0.0.1]"):
        told = tickets.server.get(f"/_guard/{address}").text
        assert ("https://" if address.startswith("http:") else "did not answer") in told


@pytest.mark.parametrize("taken_for", ["failed", "transit"])
def test_a_refund_whose_answer_was_lost_is_made_once(tickets: Tickets, taken_for: str) -> None:
    order = tickets.orders.pop()
    browser = tickets.open_page(order)
    browser.pay()
    tickets.come_back(browser)
    again = f"{order['code']}/payments/1/refund/"
    tickets.ask(again, amount="10.00")
    tickets.server.get(f"/_forget/{taken_for}")
    if taken_for == "failed":
        headers = {"Authorization": f"Token {tickets.made['token']}"}
        url = f"{tickets.server.url}/api/v1/organizers/organizer/events/concert-26/orders/{again}"
        refused = tickets.server.http.post(url, json={"amount": "10.00"}, headers=headers)
        assert (refused.status_code, "was made after all" in refused.text) == (400, True)
    else:
        assert tickets.server.get("/_periodic").text == "done"
    refunds = [(one["amount"], one["state"]) for one in tickets.ask(f"{order['code']}/")["refunds"]]
    assert refunds[0] == ("10.00", "done")
    assert Payment.objects.filter(payment_type="RF").count() == 1
    assert tickets.ask(again, amount="10.00")["state"] == "done", "another one"
    assert Payment.objects.filter(payment_type="RF").count() == 2
