"""A shopper's hands in the widget: its fields by their names, and what the page's console said."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from playwright.sync_api import FrameLocator, Locator, Page, expect

from tests.support.client import Answer, Api

GOOD = "4200000000000000"
DECLINED = "4200000000000109"
DECLINED_AT_THE_BANK = "4000015200000008"
RESULT = re.compile(r"/result\?order=7&id=[0-9A-Za-z-]{32,48}&resourcePath=")
# What a browser says of every answer that is not 2xx; the widget has nothing to do with it.
OF_THE_BROWSER = "Failed to load resource"


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
        for _ in range(100):
            if any(all(word in line for word in words) for line in self.said):
                return True
            self.page.wait_for_timeout(50)
        return False

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
        expect(self.root).not_to_have_class(re.compile("wpwl-waiting"))
        return self

    def fill(self, number: str = GOOD, expiry: str = "0534", cvv: str = "123") -> Widget:
        self.number.fill(number)
        self.expiry.press_sequentially(expiry)
        self.cvv.fill(cvv)
        return self

    def lands(self) -> str:
        """Where the shop is told of the result."""
        self.page.wait_for_url(RESULT)
        return self.page.url


def checkout(api: Api, **more: str) -> str:
    """The id of a new checkout of 92.00 EUR."""
    values = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", **more}
    answer = api.post("/v1/checkouts", {name: value for name, value in values.items() if value})
    assert answer.status == 200, answer
    return answer.id


def result(api: Api, checkout_id: str) -> Answer:
    return api.get(f"/v1/checkouts/{checkout_id}/payment")
