"""The plug-in for WooCommerce, in PHP, against a gateway that runs. docs/decisions/0078.

WooCommerce is in no package registry: the plug-in runs against what it uses of WordPress and WooCommerce, written after
their documentation (woocommerce_stubs.php). Orders, hooks and pages of the real ones are not tried here.
Without PHP they are skipped, with CI set too: .ci/run goes on where it cannot install PHP.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import shutil
import subprocess
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest
from pytest_django.live_server_helper import LiveServer

from checkout.models import Checkout
from gateway.access import audit_log
from gateway.models import Payment, Status, WebhookDelivery
from gateway.notifications import endpoints
from gateway.portal.client_packages import CLIENTS_DIR, list_plug_ins
from tests.plugins.installing import ShopServer, bare_environment, deliver_all, serving
from tests.support.fixtures import Shop
from tests.support.ports import free_port
from tests.support.shopper import DECLINED, Browser
from tests.support.webhook_delivery import deliver

pytestmark = pytest.mark.django_db(transaction=True)
PROGRAM: Final = Path(__file__).with_name("woocommerce_shop.php")
BY: Final = audit_log.Actor(name="tests")


@pytest.fixture(scope="module")
def php() -> str:
    found = shutil.which("php")
    if found is None:
        pytest.skip("php is not installed: Debian's php-cli has it")
    return found


@pytest.fixture(scope="module")
def plug_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip as WordPress unpacks it."""
    folder = tmp_path_factory.mktemp("plugins")
    package = next(one for one in list_plug_ins().values() if one.language == "WooCommerce")
    with zipfile.ZipFile(io.BytesIO(package.build())) as archive:
        archive.extractall(folder)
    return folder / "tollhouse-woocommerce"


def run_plug_in_code(php: str, code: str, given: str = "") -> Any:
    """What the plug-in's own code makes: the list $out."""
    plug_in = CLIENTS_DIR / "plugins/woocommerce/tollhouse-woocommerce.php"
    begin = f"require '{PROGRAM.with_name('woocommerce_stubs.php')}'; require '{plug_in}'; $out = [];"
    command = [php, "-r", f"{begin} {code} echo json_encode($out);"]
    environment = bare_environment(SHOP_FOLDER="/", SHOP_URL="http://shop.example")
    ran = subprocess.run(command, input=given, env=environment, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


@dataclass(frozen=True, slots=True)
class Store:
    """The shop's server, and its shoppers."""

    server: ShopServer
    merchant: Shop
    folder: Path

    def order(self, **fields: Any) -> int:
        return int(self.server.post("/orders", **{"total": "92", "currency": "EUR", **fields}).json()["id"])

    def look(self, order: int) -> dict[str, Any]:
        found: dict[str, Any] = self.server.get(f"/orders/{order}").json()
        return found

    def lead(self, order: int) -> dict[str, Any]:
        found: dict[str, Any] = self.server.get(f"/orders/{order}/pay").json()
        return found

    def open_page(self, order: int) -> Browser:
        page = self.lead(order)["redirect"]
        assert "/pay/" in page
        return Browser(page.rpartition("/")[2])

    def come_back(self, order: int) -> httpx.Response:
        query = httpx.QueryParams({"order": order, "key": self.look(order)["key"], "resourcePath": "/v1/x"})
        return self.server.get(f"/wc-api/tollhouse/?{query}")

    def change(self, order: int, **fields: Any) -> None:
        """What another request writes."""
        self.folder.joinpath(f"order-{order}.json").write_text(json.dumps(self.look(order) | fields))

    @contextlib.contextmanager
    def working_on(self, order: int) -> Iterator[Path]:
        """Another request holds the order's lock. The file that is there once one waits for it."""
        with self.folder.joinpath(f"wp_tollhouse_{order}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield self.folder / f"wp_tollhouse_{order}.waits"

    def send_transfer_back(self) -> None:
        waiting = Payment.objects.latest("created_at").pk.hex
        answer = self.merchant.api.post(f"/v1/test/transfers/{waiting}", {"outcome": "returned"})
        assert answer.id == waiting, answer

    def refund(self, order: int, amount: str) -> str | None:
        error: str | None = self.server.post(f"/orders/{order}/refund", amount=amount).json()["error"]
        return error


@pytest.fixture
def store(
    php: str, plug_in: Path, tmp_path: Path, live_server: LiveServer, committed: Shop, settings: Any
) -> Iterator[Store]:
    settings.GATEWAY_BASE_URL = live_server.url
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    endpoint, secret = endpoints.create_endpoint(
        committed.merchant, f"{url}/wc-api/tollhouse/", by=BY, mode="encrypted"
    )
    options = {
        "enabled": "yes",
        "base_url": live_server.url,
        "token": committed.api.token,
        "entity_id": committed.channel.entity_id,
        "webhook_secret": secret.reveal(),
    }
    environment = bare_environment(
        SHOP_FOLDER=str(tmp_path),
        SHOP_URL=url,
        SHOP_PLUGIN=str(plug_in),
        SHOP_SETTINGS=json.dumps(options),
        PHP_CLI_SERVER_WORKERS="4",
    )
    with serving([php, "-S", f"127.0.0.1:{port}", PROGRAM], port, tmp_path, environment) as server:
        assert endpoints.activate_endpoint(endpoint, by=BY).active, "the test message is answered"
        yield Store(server, committed, tmp_path)


def test_the_plug_in_says_what_it_is(store: Store) -> None:
    found = store.server.get("/gateway").json()
    assert found["available"] is True
    assert found["settings"][3:] == ["base_url", "token", "entity_id", "webhook_secret"]
    assert found["compatible"] == ["custom_order_tables", "cart_checkout_blocks"]
    assert found["blocks"]["supports"] == ["products", "refunds"]


def test_an_order_is_paid_once_and_refunded(store: Store) -> None:
    order = store.order(billing_first_name="Jane", billing_last_name="Jones", billing_country="DE")
    browser = store.open_page(order)
    sent = Checkout.objects.get().request
    assert (sent["amount"], sent["customer.surname"], sent["merchantInvoiceId"]) == ("92.00", "Jones", "order-0001")
    assert urlsplit(sent["shopperResultUrl"]).path == "/wc-api/tollhouse/"
    back = store.come_back(order)
    assert back.headers["Location"].endswith(f"/again/{order}"), "nothing was paid, whatever the address says"
    assert store.open_page(order).checkout == browser.checkout
    browser.pay()
    assert store.come_back(order).headers["Location"].endswith(f"/thanks/{order}")
    deliver_all()
    found = store.look(order)
    assert (found["status"], found["log"]) == ("processing", ["processing: paid"])
    assert found["transaction"] == Payment.objects.get().pk.hex
    assert "/thanks/" in store.lead(order)["redirect"], "it is not paid again"
    assert store.refund(order, "10") is None
    assert store.refund(order, "10") is None
    assert store.refund(order, "80") is not None
    deliver_all()
    assert Payment.objects.filter(payment_type="RF", amount=10).count() == 2
    assert store.look(order)["refunds"] == [10, 10], "the webhooks of our own refunds make none"
    paid = store.look(order)["transaction"]
    store.merchant.api.post(f"/v1/payments/{paid}", {"paymentType": "RF", "amount": "12.00", "currency": "EUR"})
    for _ in range(2):
        deliver_all()
        store.come_back(order)
    assert store.look(order)["refunds"] == [10, 10, 12], "that of the back office comes once"


def test_a_webhook_alone_is_enough_and_a_decline_waits_for_the_shopper(store: Store) -> None:
    order = store.order()
    browser = store.open_page(order)
    browser.pay(card__number=DECLINED)
    deliver_all()
    assert store.look(order)["status"] == "pending"
    assert store.come_back(order).headers["Location"].endswith(f"/again/{order}")
    assert store.look(order)["status"] == "failed"
    browser.pay()
    deliver_all()
    assert store.look(order)["status"] == "processing"


def test_another_amount_strangers_and_forged_webhooks_pay_nothing(store: Store) -> None:
    order = store.order()
    browser = store.open_page(order)
    store.merchant.api.post(f"/v1/checkouts/{browser.checkout}", {"amount": "9.20"})
    browser.pay()
    store.come_back(order)
    found = store.look(order)
    assert found["status"] == "on-hold"
    assert "9.20 EUR was paid instead of 92.00 EUR" in found["log"][0]
    store.merchant.api.pay(amount="7.00", merchantTransactionId="order-of-another-shop")
    deliver_all()
    assert store.server.post("/wc-api/tollhouse/", type="PAYMENT").status_code == 400
    assert store.server.get(f"/wc-api/tollhouse/?order={order}&key=wrong").status_code == 404
    assert store.server.get("/wc-api/tollhouse/?order[]=1&key[]=1").status_code == 404


def test_a_transfer_that_is_declined_later_fails_the_order(store: Store) -> None:
    order = store.order()
    store.open_page(order).submit({"paymentBrand": "PREPAYMENT"})
    assert store.come_back(order).headers["Location"].endswith(f"/thanks/{order}")
    assert store.look(order)["status"] == "on-hold"
    assert "/thanks/" in store.lead(order)["redirect"], "it is not paid again"
    store.send_transfer_back()
    assert "/pay/" in store.lead(order)["redirect"], "nothing is on its way"
    assert store.look(order)["status"] == "failed"
    deliver_all()
    held = store.order()
    store.open_page(held).submit({"paymentBrand": "PREPAYMENT"})
    deliver_all()
    assert store.look(held)["status"] == "on-hold"
    store.send_transfer_back()
    deliver_all()
    assert store.look(held)["status"] == "failed", "a webhook alone is enough"


def test_an_order_that_another_way_of_paying_holds_is_not_failed(store: Store) -> None:
    order = store.order()
    store.open_page(order).pay(card__number=DECLINED)
    store.change(order, status="on-hold", method="bacs")
    deliver_all()
    store.come_back(order)
    assert store.look(order)["status"] == "on-hold"


def test_money_for_an_order_that_is_paid_is_shown_to_the_staff_once(store: Store) -> None:
    order = store.order()
    browser = store.open_page(order)
    store.change(order, status="processing", method="paypal", transaction="of-paypal")
    browser.pay()
    deliver_all()
    store.come_back(order)
    surplus = Payment.objects.get().pk.hex
    found = store.look(order)
    assert found["log"] == [
        f"note: Paid twice: 92.00 EUR came at the gateway, but this order did not wait for it. Refund {surplus} there."
    ]
    assert (found["transaction"], found["method"]) == ("of-paypal", "paypal")
    store.merchant.api.follow(surplus, "RF", "92.00")
    deliver_all()
    assert "refunds" not in store.look(order), "it was not the order's money"


def test_an_order_of_another_way_of_paying_takes_the_money_that_came(store: Store) -> None:
    order = store.order()
    browser = store.open_page(order)
    store.change(order, status="on-hold", method="bacs")
    browser.pay()
    deliver_all()
    found = store.look(order)
    assert (found["status"], found["method"]) == ("processing", "tollhouse"), "refunds have to go this way"


def test_two_debits_of_an_order_pay_it_once(store: Store) -> None:
    order = store.order()
    key = store.look(order)["key"]
    first = store.merchant.api.pay(amount="9.20", merchantTransactionId=key).id
    second = store.merchant.api.pay(merchantTransactionId=key).id
    deliver_all()
    found = store.look(order)
    assert (found["status"], found["transaction"]) == ("processing", second)
    assert [f"Refund {first} there" in line for line in found["log"]] == [False, True]


def test_a_request_that_waited_sees_what_the_other_one_wrote(store: Store) -> None:
    order = store.order()
    browser = store.open_page(order)
    browser.pay()
    with ThreadPoolExecutor(1) as pool:
        with store.working_on(order) as waits:
            back = pool.submit(store.come_back, order)
            while not waits.exists():
                assert not back.done()
                time.sleep(0.01)
            store.change(order, status="processing", transaction=Payment.objects.get().pk.hex)
        assert back.result().headers["Location"].endswith(f"/thanks/{order}")
    assert "log" not in store.look(order), "it is paid once"


def test_nothing_is_written_without_the_lock(store: Store) -> None:
    order = store.order()
    browser = store.open_page(order)
    browser.pay()
    store.folder.joinpath("impatient").touch()
    with store.working_on(order):
        assert store.lead(order) == {"result": "failure"}
        assert store.come_back(order).headers["Location"].endswith(f"/thanks/{order}"), "it may be paid"
        deliver()
        assert WebhookDelivery.objects.exclude(state="delivered").exists(), "it comes again"
        assert store.look(order)["status"] == "pending"
    store.come_back(order)
    assert store.look(order)["status"] == "processing"


def test_follow_ups_of_another_channel_are_nothing_to_do(store: Store) -> None:
    other = store.merchant.api_of(store.merchant.open_channel())
    paid = other.pay(merchantTransactionId="order-of-another-shop").id
    other.follow(paid, "RF", "1.00")
    deliver_all()


def test_a_refund_whose_answer_was_lost_is_shown_and_made_once(store: Store) -> None:
    order = store.order()
    store.open_page(order).pay()
    store.come_back(order)
    found = store.look(order)

    def lose_answer(total: str, amount: str) -> None:
        """The gateway has made it, and WooCommerce has taken its own refund back."""
        more = {"merchantTransactionId": f"{found['key']}-refund-{total}-{amount}"}
        assert store.merchant.api.follow(found["transaction"], "RF", amount, **more).status == 200

    lose_answer("10.00", "10.00")
    assert store.refund(order, "10") is None
    assert Payment.objects.filter(payment_type="RF").count() == 1, "asked for again it is the same"
    deliver_all()
    assert store.look(order)["refunds"] == [10]
    lose_answer("15.00", "5.00")
    deliver_all()
    assert store.look(order)["refunds"] == [10, 5], "it is shown"
    store.change(order, refunds=[10])
    assert store.refund(order, "5") is None
    assert Payment.objects.filter(payment_type="RF", amount=5).count() == 2, "what is counted is no lost answer"


def test_a_refund_that_was_declined_is_asked_for_anew(store: Store) -> None:
    order = store.order()
    store.open_page(order).pay()
    store.come_back(order)
    store.merchant.api.follow(store.look(order)["transaction"], "RF", "90.00")
    declined = Payment.objects.filter(payment_type="RF", amount=10, status=Status.DECLINED)
    for asked in (1, 2):
        assert "declined" in str(store.refund(order, "10"))
        assert declined.count() == asked, "the answer to the first is not taken for that to the second"


def test_amounts_are_never_rounded(php: str) -> None:
    cases = "['92', '92.1', '92.100', '0.5', 0.1 + 0.2, 5000, '007', '1.005', '1.001', 0.001, '-1', '1e3', '']"
    found = run_plug_in_code(
        php,
        rf"""foreach ({cases} as $one) {{
            try {{ $out[] = Tollhouse\WooCommerce\Gateway::formatAmount($one); }}
            catch (InvalidArgumentException) {{ $out[] = null; }}
        }}""",
    )
    assert found == ["92.00", "92.10", "92.10", "0.50", "0.30", "5000.00", "7.00", *[None] * 6]


def test_only_a_checkout_that_is_being_paid_keeps_its_page(php: str) -> None:
    cases: list[tuple[int, str, str, bool]] = [
        (400, "800.120.402", "This payment is already in progress", True),
        (400, "200.300.404", "invalid or missing parameter (the checkout is paid already)", True),
        (400, "200.300.404", "invalid or missing parameter", False),
        (401, "800.900.300", "", False),
        (403, "800.900.300", "", False),
        (409, "800.120.402", "", False),
        (429, "800.120.100", "", False),
        (503, "900.100.100", "", False),
    ]
    found = run_plug_in_code(
        php,
        r"""foreach (json_decode(stream_get_contents(STDIN)) as [$status, $code, $text]) {
            $body = ['result' => ['code' => $code, 'description' => $text]];
            $fault = Tollhouse\Exception\ApiException::of($status, $body, null);
            $out[] = Tollhouse\WooCommerce\Gateway::isBeingPaid($fault);
        }""",
        json.dumps(cases),
    )
    assert found == [case[-1] for case in cases]


def test_the_gateway_refuses_an_update_of_what_is_paid_in_these_words(store: Store) -> None:
    browser = store.open_page(store.order())
    browser.pay()
    refused = store.merchant.api.post(f"/v1/checkouts/{browser.checkout}", {"amount": "9.20"})
    assert (refused.status, refused.code) == (400, "200.300.404")
    assert "is paid already" in refused.description


def test_a_total_that_the_gateway_cannot_have_opens_no_page(store: Store) -> None:
    assert store.lead(store.order(total="1.234")) == {"result": "failure"}
    order = store.order(total="91.9999")
    store.merchant.api.pay(merchantTransactionId=store.look(order)["key"])
    store.come_back(order)
    assert store.look(order)["status"] == "on-hold"


def test_a_return_to_what_is_no_order_is_unknown(store: Store) -> None:
    store.folder.joinpath("refund-7").touch()
    assert store.server.get("/wc-api/tollhouse/?order=7&key=x").status_code == 404
    order = store.order(key="")
    assert store.server.get(f"/wc-api/tollhouse/?order={order}&key=").status_code == 404


def test_emptied_settings_crash_nothing(store: Store) -> None:
    order = store.order()
    settings = store.folder / "settings.json"
    settings.write_text("{}")
    assert store.come_back(order).headers["Location"].endswith(f"/thanks/{order}")
    assert store.lead(order) == {"result": "failure"}
    assert store.refund(order, "1") is not None
    assert store.server.post("/wc-api/tollhouse/", type="PAYMENT").status_code == 400


def test_what_the_gateway_refuses_opens_no_page(store: Store) -> None:
    assert store.lead(store.order(currency="euro")) == {"result": "failure"}
    order = store.order(billing_address_1="12345", billing_country="ZZ")
    assert "/pay/" in store.lead(order)["redirect"], "without an address that the gateway does not take"


def test_every_file_is_valid_php(php: str) -> None:
    for path in [*(CLIENTS_DIR / "plugins/woocommerce").rglob("*.php"), *CLIENTS_DIR.glob("php/src/**/*.php")]:
        subprocess.run([php, "-l", path], check=True, capture_output=True)
