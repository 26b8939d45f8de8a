"""A shopper with a card on a channel that authenticates: the request, the pages, the way back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from django.http import HttpResponse
from django.test import Client

from tests.support.client import Answer, Api, payment

RESULT_URL = "https://shop.example/result?order=7"
CODE = "123456"
BROWSER = {
    "customer.browser.acceptHeader": "text/html",
    "customer.browser.language": "en-GB",
    "customer.browser.screenHeight": "1080",
    "customer.browser.screenWidth": "1920",
    "customer.browser.timezone": "-60",
    "customer.browser.userAgent": "Mozilla/5.0",
    "customer.browser.javaEnabled": "false",
}
BILLING = {
    "billing.street1": "12 Main Street",
    "billing.city": "Berlin",
    "billing.postcode": "10115",
    "billing.country": "DE",
}
PASS, FAIL, NOT_ENROLLED = "4200000000000042", "4200000000000018", "4012001037141112"
FRICTIONLESS, ATTEMPT, UNAVAILABLE = "4200000000000091", "4200000000000109", "4012001037461114"
METHOD, METHOD_CHALLENGE, REJECTED = "4200000000000026", "4200000000000034", "4200000000000059"


def fields(card: str = PASS, **changes: str | None) -> dict[str, str]:
    """A payment with everything that 3-D Secure wants."""
    brand = "MASTER" if card.startswith("5") else "VISA"
    given: dict[str, Any] = {"shopperResultUrl": RESULT_URL, **BROWSER, **BILLING, "paymentBrand": brand}
    named = {name.replace("__", "."): value for name, value in changes.items()}
    return {name: value for name, value in (payment(card__number=card) | given | named).items() if value is not None}


def buy(api: Api, card: str = PASS, **changes: str | None) -> Answer:
    return api.post("/v1/payments", fields(card, **changes))


@dataclass
class Shopper:
    """A browser that was sent to ``redirect``."""

    redirect: dict[str, Any]
    http: Client = field(default_factory=Client)

    @classmethod
    def of(cls, answer: Answer) -> Shopper:
        return cls(answer.body["redirect"])

    @property
    def token(self) -> str:
        return str(next(one["value"] for one in self.redirect["parameters"] if one["name"] == "token"))

    @property
    def path(self) -> str:
        return urlsplit(self.redirect["url"]).path

    def open(self, **more: str) -> HttpResponse:
        return self.http.get(self.path, {"token": self.token, **more})

    def post(self, **sent: str) -> HttpResponse:
        return self.http.post(self.path, urlencode({"token": self.token, **sent}), "application/x-www-form-urlencoded")

    def enter(self, code: str = CODE) -> HttpResponse:
        return self.post(move="code", code=code)

    def press(self, move: str) -> HttpResponse:
        return self.post(move=move)

    def follow(self, answer: HttpResponse) -> HttpResponse:
        """The page that a move ends in."""
        assert answer.status_code == 303, answer
        return self.http.get(answer["Location"])


def way_back(answer: HttpResponse) -> dict[str, str]:
    """The query of the merchant's address that the shopper is sent to."""
    assert answer.status_code == 303, answer
    parts = urlsplit(answer["Location"])
    assert parts.netloc == "shop.example"
    return {name: values[0] for name, values in parse_qs(parts.query).items()}


def words(answer: HttpResponse) -> str:
    """What a page says, without its tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))
