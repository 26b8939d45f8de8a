"""P12: what a browser fetches until a card form can be typed into, and how long that takes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from tests.benchmarks.ground import PRODUCT, Ground
from tests.benchmarks.options import Options
from tests.benchmarks.report import say
from tests.benchmarks.saturation import figure
from tests.benchmarks.targets import Figure, Gap
from tests.support.shopfront import shopfront

if TYPE_CHECKING:
    from playwright.sync_api import Request

BROWSERS: Final = (Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium"))
"""As tests/browser: first the one without windows, whose own processes take less of the two cores."""
ARGUMENTS: Final = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking")
NAMES: Final = ("P12.bytes", "P12.requests", "P12.others", "P12.usable")
USABLE: Final = """
  const look = () => {
    const form = document.querySelector(".wpwl-form-card");
    if (form && !document.querySelector(".wpwl-waiting, .wpwl-loading")) console.log("usable", performance.now());
    else requestAnimationFrame(look);
  };
  look();
"""
"""From the start of the page's navigation until both hosted fields have answered and the words are there."""


@dataclass(kw_only=True)
class Counter:
    """Stands between the browser and the product. Header bytes are left out, bodies counted as they go on the wire."""

    port: int
    bodies: list[int] = field(default_factory=list)
    url: str = ""


@contextmanager
def counted(port: int) -> Iterator[Counter]:
    counter = Counter(port=port)

    class Between(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            connection = HTTPConnection("127.0.0.1", counter.port)
            connection.request("GET", self.path, headers=dict(self.headers.items()))
            answer = connection.getresponse()
            body = answer.read()
            counter.bodies.append(len(body))
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "date", "server"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Between) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        counter.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield counter
        server.shutdown()


def measure(ground: Ground, options: Options) -> tuple[list[Figure | Gap], dict[str, Any]]:
    """The figures of P12; gaps where no Chromium is."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return [Gap(target=name, why="playwright is not installed") for name in NAMES], {}
    path = next((one for one in BROWSERS if one.exists()), None)
    if path is None:
        return [Gap(target=name, why="no Chromium here") for name in NAMES], {}
    shop = ground.prepare_product("widget")
    site = ground.open_site("widget", PRODUCT, "widget")
    rounds: list[dict[str, float]] = []
    with sync_playwright() as playwright, shopfront() as front, counted(site.port) as counter:
        browser = playwright.chromium.launch(executable_path=str(path), args=list(ARGUMENTS))
        for _ in range(options.rounds + 1):
            found: dict[str, float] = {}
            for gateway in (counter.url, f"http://localhost:{site.port}"):
                url = front.widget(gateway, _checkout(site.port, shop), brands="VISA MASTER AMEX", code=USABLE)
                context = browser.new_context(viewport={"width": 390, "height": 844})
                page = context.new_page()
                hosts: set[str] = set()

                def note_host(request: Request, hosts: set[str] = hosts) -> None:
                    hosts.add(request.url.split("/")[2])

                page.on("request", note_host)
                counter.bodies.clear()
                with page.expect_console_message(lambda said: said.text.startswith("usable")) as said:
                    page.goto(url)
                if gateway == counter.url:
                    found |= {"bytes": float(sum(counter.bodies)), "requests": float(len(counter.bodies))}
                else:
                    found |= {"usable_ms": float(said.value.text.split()[1]), "others": float(len(hosts) - 2)}
                context.close()
            rounds.append(found)
            say(f"  { {name: round(value, 1) for name, value in found.items()} }")
        browser.close()
    warm = rounds[1:]
    return [
        figure("P12.bytes", [one["bytes"] / 1024 for one in warm], "script, configuration, hosted field"),
        figure("P12.requests", [one["requests"] for one in warm]),
        figure("P12.others", [one["others"] for one in warm]),
        figure("P12.usable", [one["usable_ms"] for one in warm], f"{path.name}, empty cache, from the navigation on"),
    ], {"widget": rounds}


def _checkout(port: int, shop: Any) -> str:
    fields = {"entityId": shop.entity, "amount": "92.00", "currency": "EUR", "paymentType": "DB"}
    connection = HTTPConnection("127.0.0.1", port)
    connection.request(
        "POST",
        "/v1/checkouts",
        urlencode(fields),
        {"Authorization": f"Bearer {shop.token}", "Content-Type": "application/x-www-form-urlencoded"},
    )
    return str(json.loads(connection.getresponse().read())["id"])
