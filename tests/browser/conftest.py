"""A real Chromium against a real server. Where no Chromium can be started the tests are skipped, in CI they fail.

`SCREENSHOTS=folder` keeps a picture of every page that a test looks at. `SLOW=browser` and `SLOW=test` show the tests
that look too early or too late (tests/browser/patience.py).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import override_settings
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect, sync_playwright

from tests.browser.patience import PATIENCE_MS, STEP_MS, in_no_hurry
from tests.browser.widget import Widget
from tests.support.shopfront import Shopfront, shopfront

# Playwright keeps an event loop in this thread for the rest of the run; Django would refuse its database beside one.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

BROWSERS = ("/usr/bin/chromium-headless-shell", "/usr/bin/chromium")
"""Debian's Chromium, first the one without windows: a page of a test costs a third of the CPU in it."""
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
expect.set_options(timeout=PATIENCE_MS)


class Elsewhere(BaseHTTPRequestHandler):
    """Every other site there is: a page that says thank you, or that frames the address in ?frame=."""

    def do_GET(self) -> None:
        framed = parse_qs(urlsplit(self.path).query).get("frame")
        page = "<title>Shop</title><h1>Thank you</h1>"
        if framed:
            page = (
                f'<iframe src="{escape(framed[0])}" width="390" height="400"></iframe>'
                "<script>addEventListener('message', (e) => { document.title = JSON.stringify(e.data) })</script>"
            )
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[int]:
    """The port of whatever is not the gateway: http://shop.example and the like lead there."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture(scope="session")
def chromium(elsewhere: int) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        try:
            path = next((one for one in BROWSERS if Path(one).exists()), None)
            names = f"--host-resolver-rules=MAP *.example 127.0.0.1:{elsewhere}"
            browser = playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS, names], slow_mo=STEP_MS)
        except Error as fault:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"no Chromium can be started here (apt-get install chromium): {fault.message.splitlines()[0]}")
        yield browser
        browser.close()


@pytest.fixture
def site(live_server: Any) -> Iterator[str]:
    """The address of a server that serves this test's database. Its addresses name itself."""
    with override_settings(GATEWAY_BASE_URL=live_server.url):
        yield live_server.url


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a page with ``width`` and ``height`` of its window. A fault in a page's console fails the test."""
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def page(width: int = 1280, height: int = 800, **options: Any) -> Page:
        context = in_no_hurry(chromium.new_context(viewport={"width": width, "height": height}, **options))
        contexts.append(context)
        opened = context.new_page()
        opened.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        opened.on("pageerror", lambda fault: faults.append(str(fault)))
        return opened

    yield page
    for context in contexts:
        context.close()
    assert not faults, faults


@pytest.fixture(scope="session")
def shop_site() -> Iterator[Shopfront]:
    """A merchant's site on an origin of its own."""
    with shopfront() as front:
        yield front


@pytest.fixture
def open_widget(chromium: Browser) -> Iterator[Callable[..., Widget]]:
    """A shopper's browser of ``width`` and ``height``. What its console says is kept, for the test to judge; a breach
    of the page's policy, which allows no more than the spec's, fails any test."""
    contexts: list[BrowserContext] = []
    opened: list[Widget] = []

    def widget(width: int = 1280, height: int = 900, **options: Any) -> Widget:
        context = in_no_hurry(chromium.new_context(viewport={"width": width, "height": height}, **options))
        contexts.append(context)
        found = Widget(page=context.new_page())
        opened.append(found)
        found.page.on("console", lambda said: found.said.append(f"{said.type}: {said.text}"))
        found.page.on("pageerror", lambda fault: found.said.append(f"fault: {fault}"))
        return found

    yield widget
    for context in contexts:
        context.close()
    violations = [line for one in opened for line in one.said if "Content Security Policy" in line]
    assert not violations, violations


def picture(page: Page, name: str) -> None:
    """Keep a screenshot, if anybody wants to see them."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)
