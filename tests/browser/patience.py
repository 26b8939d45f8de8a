"""How a browser test waits: for the thing itself, and long enough for the slowest machine there is. A test that passes
waits no longer for it; only one that fails does.

`SLOW` shows looks that come too early. `SLOW=browser`: what pages are told comes late, answers of servers and messages
between frames alike. `SLOW=test`: every step of the test comes late. What passes both ways depends on neither's speed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

from playwright.sync_api import BrowserContext, Locator, Page

T = TypeVar("T")
PATIENCE_MS = 60_000
LOOK_EVERY_MS = 20
SLOW = os.environ.get("SLOW", "")
STEP_MS = 150 if SLOW == "test" else 0
LATE_MS = 300

# Everything that reaches a page's script by itself comes late, in its order.
LATE = f"""(() => {{
  const late = (job) => setTimeout(job, {LATE_MS});
  addEventListener("message", (event) => {{
    if (event.late) return;
    event.stopImmediatePropagation();
    const {{ data, origin, source, ports }} = event;
    late(() => dispatchEvent(Object.assign(new MessageEvent("message", {{ data, origin, source, ports: [...ports] }}), {{ late: true }})));
  }}, true);
  const ask = window.fetch;
  window.fetch = (...asked) => new Promise((done, lost) => ask(...asked).then((answer) => late(() => done(answer)), (fault) => late(() => lost(fault))));
}})();"""  # noqa: E501
NETWORK = {"offline": False, "latency": LATE_MS, "downloadThroughput": -1, "uploadThroughput": -1}


def in_no_hurry(context: BrowserContext) -> BrowserContext:
    """A shopper's or clerk's browser whose pages are waited for."""
    context.set_default_timeout(PATIENCE_MS)
    if SLOW == "browser":
        context.add_init_script(LATE)
        context.on("page", lambda page: context.new_cdp_session(page).send("Network.emulateNetworkConditions", NETWORK))
    return context


def until(page: Page, holds: Callable[[], T]) -> T:
    """What ``holds`` gives as soon as it gives anything true. Playwright's own events come in meanwhile."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while not (found := holds()):
        assert time.monotonic() < end, "it never came"
        page.wait_for_timeout(LOOK_EVERY_MS)
    return found


def follow(page: Page, act: Locator, **how: Any) -> None:
    """Click what leads to another page, and wait until that stands: the old one may look like it."""
    with page.expect_navigation():
        act.click(**how)


def resize(page: Page, width: int, height: int) -> None:
    """A window of another size, as soon as the page has it."""
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_function("([width, height]) => innerWidth === width && innerHeight === height", arg=[width, height])


def press_in(popup: Page, place: int) -> None:
    """Press a button of a window that goes away with it: the press comes after this call, which so outlives it."""
    popup.get_by_role("button").nth(place).evaluate("(button) => { setTimeout(() => button.click()) }")
