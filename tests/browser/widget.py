"""A shopper's hands in the widget: its fields by their names, and what the page's console said."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from playwright.sync_api import Error, FrameLocator, Locator, Page, Route, expect

from tests.browser.patience import PATIENCE_MS, until
from tests.support.client import Answer, Api

GOOD = "4200000000000000"
DECLINED = "4200000000000109"
DECLINED_AT_THE_BANK = "4000015200000008"
RESULT = re.compile(r"/result\?order=7&id=[0-9A-Za-z-]{32,48}&resourcePath=")
# What a browser says of every answer that is not 2xx; the widget has nothing to do with it.
OF_THE_BROWSER = "Failed to load resource"
# A frame that sends a word back to whoever says it, and a page that says one to a frame and waits for it.
ECHO = """() => {
  window.echoes ||= (addEventListener("message", ({ data, source }) => data?.echo && source.postMessage({ echoed: data.echo }, "*")), true);
}"""  # noqa: E501
ASK = """(frame) => new Promise((done) => {
  const echo = window.lastEcho = (window.lastEcho || 0) + 1;
  const gone = () => (frame.isConnected ? setTimeout(gone, 50) : done());
  addEventListener("message", ({ data }) => data?.echoed === echo && done());
  frame.contentWindow?.postMessage({ echo }, "*");
  gone();
})"""


@dataclass(kw_only=True)
class Widget:
    """One card form. ``said``: lines of the console, ``faults``: those that should not be there."""

    page: Page
    said: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        return [line for line in self.said if line.startswith(("error", "fault")) and OF_THE_BROWSER not in line]

    def says(self, *words: str) -> bool:
        """Whether one line of the console has them all. It comes when it comes, so it is waited for."""
        return until(self.page, lambda: any(all(word in line for word in words) for line in self.said))

    @property
    def root(self) -> Locator:
        return self.page.locator(".wpwl-widget").first

    def frame(self, name: str) -> FrameLocator:
        return self.page.frame_locator(f".wpwl-control-{name} iframe").first

    @property
    def number(self) -> Locator:
        return self.frame("cardNumber").locator("#field")

    @property
    def cvv(self) -> Locator:
        return self.frame("cvv").locator("#field")

    @property
    def expiry(self) -> Locator:
        return self.page.locator(".wpwl-control-expiry").first

    @property
    def pay(self) -> Locator:
        return self.page.locator(".wpwl-form-card .wpwl-button-pay").first

    def hint(self, name: str) -> Locator:
        return self.page.locator(f".wpwl-group-{name} .wpwl-hint").first

    def open(self, url: str) -> Widget:
        self.page.goto(url)
        return self.ready()

    def ready(self) -> Widget:
        """Wait until every form of the page is drawn and its hosted fields are set up."""
        expect(self.root).not_to_have_class(re.compile("wpwl-waiting"))
        expect(self.page.locator(".wpwl-waiting, .wpwl-loading")).to_have_count(0)
        return self.heard()

    def heard(self) -> Widget:
        """The page and the hosted fields have heard all that they told each other up to now. A field lives in another
        process: a click on the page may be there before its last word."""
        for element in self.page.locator(".wpwl-frame").element_handles():
            try:
                if frame := element.content_frame():
                    frame.evaluate(ECHO)
                    element.evaluate(ASK)
            except Error:  # the form may end, its fields with it
                if element.evaluate("(frame) => frame.isConnected"):
                    raise
        return self

    def press(self) -> None:
        """Pay, with what the fields say now."""
        self.heard().pay.click()

    def emptied(self) -> Widget:
        """The form is back after an attempt, its security code taken away: what is typed now stays."""
        expect(self.pay).to_have_attribute("aria-disabled", "false")
        expect(self.cvv).to_have_value("")
        return self

    def fill(self, number: str = GOOD, expiry: str = "0534", cvv: str = "123") -> Widget:
        self.number.fill(number)
        self.expiry.press_sequentially(expiry)
        self.cvv.fill(cvv)
        return self

    def lands(self) -> str:
        """The page of the shop to which the result leads (shopperResultUrl)."""
        self.page.wait_for_url(RESULT)
        return self.page.url


def lose(route: Route) -> None:
    """The request arrives, its answer does not."""
    route.fetch(timeout=PATIENCE_MS)
    route.abort()


def held(widget: Widget, address: str) -> list[Route]:
    """Requests to ``address`` wait here for the test to let them go on."""
    waiting: list[Route] = []
    widget.page.route(re.compile(address), lambda route: waiting.append(route))
    return waiting


def let_go(widget: Widget, waiting: list[Route]) -> None:
    """The first of them goes on, as soon as it has come."""
    until(widget.page, lambda: waiting)
    waiting[0].continue_()


def checkout(api: Api, **more: str) -> str:
    """The id of a new checkout of 92.00 EUR."""
    values = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", **more}
    answer = api.post("/v1/checkouts", {name: value for name, value in values.items() if value})
    assert answer.status == 200, answer
    return answer.id


def result(api: Api, checkout_id: str) -> Answer:
    return api.get(f"/v1/checkouts/{checkout_id}/payment")
