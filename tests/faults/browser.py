"""A shopper's browser: it opens what it was sent to, and reloads until it has a page. Knows HTTP, no product code."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

PAGE_WITHIN_S: Final = 30.0
RELOADS_FOR_S: Final = 180.0
PAUSE_S: Final = 0.3
MOST_HOPS: Final = 8
RESULT_URL: Final = "https://shop.example/result?order=7"
PASS, FAIL = {"move": "code", "code": "123456"}, {"move": "fail"}


@dataclass(frozen=True, slots=True)
class Page:
    """What came back; ``location`` of a redirect."""

    status: int
    location: str = ""


@dataclass(slots=True, kw_only=True)
class Browser:
    """One window. ``hurt``: loads without a page, or with a 5xx; ``server_errors``: those with a 5xx."""

    port: int
    hurt: int = field(default=0)
    server_errors: int = field(default=0)

    def answer(self, redirect: Mapping[str, Any], move: Mapping[str, str]) -> str:
        """Make a move on the challenge that ``redirect`` leads to; where the browser ended up outside, or ''."""
        token = {one["name"]: one["value"] for one in redirect["parameters"]}
        return self.follow(self.load(redirect["url"], {**token, **move}))

    def decide(self, redirect: Mapping[str, Any], outcome: str) -> Page:
        """Decide at the bank's page, and do not follow the way back yet."""
        return self.load(redirect["url"], {"outcome": outcome})

    def follow(self, page: Page | None) -> str:
        """Follow redirects to the merchant's page, whose address comes back; '' when they do not lead there."""
        for _ in range(MOST_HOPS):
            if page is None or not page.location:
                return ""
            if page.location.startswith("https://shop.example/"):
                return page.location
            page = self.load(page.location)
        return ""

    def load(self, url: str, form: Mapping[str, str] | None = None) -> Page:
        """GET, or POST of ``form``; reloaded until there is a page. Status 599 when there never is."""
        end = time.monotonic() + RELOADS_FOR_S
        while time.monotonic() < end:
            page = self._try(url, form)
            if page is not None and page.status < 500:
                return page
            self.hurt += 1
            self.server_errors += page is not None
            time.sleep(PAUSE_S)
        return Page(599)

    def _try(self, url: str, form: Mapping[str, str] | None) -> Page | None:
        parts = urlsplit(url)
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PAGE_WITHIN_S)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        try:
            if form is None:
                line.request("GET", target)
            else:
                kind = {"Content-Type": "application/x-www-form-urlencoded"}
                line.request("POST", target, urlencode(form), kind)
            got = line.getresponse()
            got.read()
            return Page(got.status, got.headers.get("Location", ""))
        except (OSError, http.client.HTTPException):
            return None
        finally:
            line.close()


def at_once(works: Sequence[Callable[[], object]]) -> None:
    """All of them in threads of their own, let go together."""
    gate = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        gate.wait(10)
        work()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
