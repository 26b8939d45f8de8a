"""A merchant's checkout and its shopper's browser, for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.test import Client

from tests.support.client import Answer, Api, form

CARD = {
    "paymentBrand": "VISA",
    "card.number": "4200000000000000",
    "card.expiryMonth": "05",
    "card.expiryYear": "2034",
    "card.cvv": "123",
    "card.holder": "Jane Jones",
}
DECLINED = "4000015500000005"
MONEY = {"amount": "92.00", "currency": "EUR", "paymentType": "DB"}
RESULT_URL = "https://shop.example/result?order=7"


def create(api: Api, **more: str | None) -> Answer:
    fields: dict[str, str | None] = MONEY | {"shopperResultUrl": RESULT_URL}
    fields |= {name.replace("__", "."): value for name, value in more.items()}
    return api.post("/v1/checkouts", {name: value for name, value in fields.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Browser:
    """Speaks for a shopper: no token, no entity; only the checkout's id."""

    checkout: str
    kind: str = "payment"
    http: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def pay(self, **changes: str | None) -> Answer:
        """Submit a card that is approved, with ``changes``; None leaves a field out."""
        fields: dict[str, Any] = CARD | {name.replace("__", "."): value for name, value in changes.items()}
        return self.submit({name: value for name, value in fields.items() if value is not None})

    def submit(self, fields: dict[str, str]) -> Answer:
        body = form(fields.items())
        path = f"/v1/checkouts/{self.checkout}/{self.kind}"
        headers = {"User-Agent": "Tests/1.0", "Accept": "*/*"}
        return Answer(self.http.generic("POST", path, body, "application/x-www-form-urlencoded", headers=headers))

    def config(self, brands: str = "VISA MASTER", **more: str) -> Answer:
        return Answer(self.http.get(f"/v1/checkouts/{self.checkout}/config", {"brands": brands, **more}))

    def release(self) -> Answer:
        """Have what is held given back."""
        return Answer(self.http.post(f"/v1/checkouts/{self.checkout}/release"))

    def state(self) -> Answer:
        return Answer(self.http.get(f"/v1/checkouts/{self.checkout}/state"))


def open_checkout(api: Api, **more: str | None) -> Browser:
    answer = create(api, **more)
    assert answer.status == 200, answer
    return Browser(answer.id)


def result_of(api: Api, browser: Browser) -> Answer:
    """The merchant's own look at the result."""
    return api.get(f"/v1/checkouts/{browser.checkout}/{browser.kind}")
