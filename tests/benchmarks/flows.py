"""What the other ways of a payment cost: 3-D Secure without a challenge, one click, a redirect and back, a rule set.

Figures without a must: CPU of web server and PostgreSQL a payment, round trips and commits. One after the other.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from tests.benchmarks import meter
from tests.benchmarks.ground import PRODUCT, Ground, Site
from tests.benchmarks.options import Options
from tests.benchmarks.report import say
from tests.benchmarks.targets import Figure, Gap
from tests.benchmarks.traffic import FIELDS, NUMBER_MARK, Shop

DATABASE: Final = "flows"
WARM_UP: Final = 40
FRICTIONLESS: Final = "4200000000000091"
BROWSER: Final = {
    "customer.browser.acceptHeader": "text/html", "customer.browser.language": "en-GB",
    "customer.browser.screenHeight": "1080", "customer.browser.screenWidth": "1920",
    "customer.browser.timezone": "-60", "customer.browser.userAgent": "Mozilla/5.0",
    "customer.browser.javaEnabled": "false", "shopperResultUrl": "https://shop.example/result",
}  # fmt: skip

Flow = Callable[[int], None]
"""The n-th payment, from its beginning to its final answer."""


@dataclass(slots=True)
class Till:
    """One kept connection of the merchant's server, and of the shopper's browser."""

    port: int
    shop: Shop
    channels: Mapping[str, str]
    line: http.client.HTTPConnection

    def post(self, path: str, fields: Mapping[str, str], channel: str) -> dict[str, Any]:
        """A request with a key of its own. Raises RuntimeError for anything but a success or a pending answer."""
        sent = {"entityId": self.channels[channel], **fields}
        order = sent.get("merchantTransactionId", path)
        headers = {
            "Authorization": f"Bearer {self.shop.token}",
            "Idempotency-Key": f"key-for-{order}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        self.line.request("POST", path, urlencode(sent), headers)
        got = self.line.getresponse()
        told: dict[str, Any] = json.loads(got.read())
        if got.status != 200:
            raise RuntimeError(f"{path}: {got.status} {told.get('result')}")
        return told

    def browse(self, url: str, form: Mapping[str, str] | None = None) -> str:
        """Load a page; where it redirects to."""
        parts = urlsplit(url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        if form is None:
            self.line.request("GET", target)
        else:
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            self.line.request("POST", target, urlencode(form), kind)
        got = self.line.getresponse()
        got.read()
        if got.status >= 400:
            raise RuntimeError(f"{parts.path}: {got.status}")
        return got.headers.get("Location", "")


def measure(ground: Ground, options: Options) -> tuple[list[Figure | Gap], dict[str, Any]]:
    """The figures of P7. PostgreSQL is started anew with pg_stat_statements, and again without."""
    try:
        ground.restart(shared_preload_libraries="pg_stat_statements")
    except Exception as fault:
        ground.restart()
        return [Gap(target="P7.threeds", why=f"no pg_stat_statements: {fault}"[:80])], {}
    shop = ground.prepare_product(DATABASE)
    channels = json.loads((ground.var / f"{DATABASE}.json").read_text())["channels"]
    site = ground.open_site("flows", PRODUCT, DATABASE)
    with ground.connect("postgres") as watch:
        watch.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    line = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    till = Till(site.port, shop, channels, line)
    counts = {name: _measured(ground, site, flow, options.counted // 4) for name, flow in _flows(till).items()}
    line.close()
    ground.restart()
    found: list[Figure | Gap] = []
    for name, one in counts.items():
        told = f"{one['trips']:.1f} round trips, {one['commits']:.1f} commits, {one['requests']} request(s)"
        say(f"  {name}: {one['cpu_ms']:.2f} ms, {told}")
        found.append(Figure(target=f"P7.{name}", measured=round(one["cpu_ms"], 2), remark=told))
    return found, {"flows": counts}


def _flows(till: Till) -> dict[str, Flow]:
    """Each flow by its target; ``plain`` is the card payment of P2, made the same way to compare with."""
    card = dict(FIELDS)

    def fields(number: int, name: str, **more: str) -> dict[str, str]:
        changed = {key.replace("__", "."): value for key, value in more.items()}
        mark = f"{name}-{number:08}"
        return {key: value.replace(f"order-{NUMBER_MARK}", mark) for key, value in (card | changed).items()}

    def plain(number: int) -> None:
        _must(till.post("/v1/payments", fields(number, "plain"), "plain"), "000.100.110")

    def threeds(number: int) -> None:
        sent = fields(number, "threeds", card__number=FRICTIONLESS) | BROWSER
        _must(till.post("/v1/payments", sent, "3ds"), "000.100.110")

    def rules(number: int) -> None:
        sent = fields(number, "rules", customer__email=f"jane{number}@shop.example", customer__ip="192.0.2.17")
        _must(till.post("/v1/payments", sent, "risk"), "000.100.110")

    stored = {name: value for name, value in card.items() if name.startswith("card.") and name != "card.cvv"}
    made = till.post("/v1/registrations", stored | {"paymentBrand": "VISA"}, "plain")
    money = {"amount": "92.00", "currency": "EUR", "paymentType": "DB"}

    def oneclick(number: int) -> None:
        sent = money | {"merchantTransactionId": f"click-{number:08}"}
        _must(till.post(f"/v1/registrations/{made['id']}/payments", sent, "plain"), "000.100.110")

    def redirect(number: int) -> None:
        more = {"paymentBrand": "ONLINETRANSFER", "merchantTransactionId": f"away-{number:08}"}
        told = till.post("/v1/payments", money | more | {"shopperResultUrl": BROWSER["shopperResultUrl"]}, "plain")
        back = till.browse(told["redirect"]["url"], {"outcome": "approve"})
        if not till.browse(back).startswith(BROWSER["shopperResultUrl"]):
            raise RuntimeError("the shopper did not come back")

    return {"plain": plain, "threeds": threeds, "oneclick": oneclick, "redirect": redirect, "rules": rules}


def _must(told: Mapping[str, Any], code: str) -> None:
    if told["result"]["code"] != code:
        raise RuntimeError(f"{told['result']} instead of {code}")


def _measured(ground: Ground, site: Site, flow: Flow, number: int) -> dict[str, Any]:
    for turn in range(WARM_UP):
        flow(turn)
    with ground.connect("postgres") as watch:
        meter.forget_statements(watch)
        writes = meter.writing_transactions(watch)
        app, postgres = meter.cpu_seconds(site.pid), meter.cpu_seconds(ground.postgres_pid)
        started = time.perf_counter()
        for turn in range(WARM_UP, WARM_UP + number):
            flow(turn)
        took = time.perf_counter() - started
        app, postgres = meter.cpu_seconds(site.pid) - app, meter.cpu_seconds(ground.postgres_pid) - postgres
        writes = meter.writing_transactions(watch) - writes
        sent = [(text, calls) for text, calls in meter.statements(watch, DATABASE) if calls > number // 10]
    return {
        "cpu_ms": 1000 * (app + postgres) / number,
        "app_ms": 1000 * app / number,
        "took_ms": 1000 * took / number,
        "commits": writes / number,
        "trips": sum(calls for text, calls in sent if not meter.is_key_check(text)) / number,
        "requests": 3 if flow.__name__ == "redirect" else 1,
        "statements": [[calls / number, " ".join(text.split())[:200]] for text, calls in sent],
    }
