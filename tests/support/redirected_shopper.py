"""A shopper's browser on the simulated pages that a payment redirects to: a bank, a wallet, an invoice provider."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.http import HttpResponse
from django.test import Client

from tests.support.client import Answer, Api

RESULT_URL = "https://shop.example/result?order=17"


def order(api: Api, brand: str, **changes: str) -> Answer:
    """A payment of 92.00 EUR whose shopper decides elsewhere."""
    fields = {
        "amount": "92.00",
        "currency": "EUR",
        "paymentBrand": brand,
        "paymentType": "DB",
        "shopperResultUrl": RESULT_URL,
        "merchantTransactionId": "order-17",
    }
    return api.post("/v1/payments", fields | {name.replace("__", "."): value for name, value in changes.items()})


@dataclass
class Visitor:
    """A browser tab that was sent to the answer's ``redirect``."""

    redirect: dict[str, Any]
    http: Client = field(default_factory=Client)

    @classmethod
    def of(cls, answer: Answer) -> Visitor:
        return cls(answer.body["redirect"])

    @property
    def path(self) -> str:
        return urlsplit(self.redirect["url"]).path

    def look(self) -> str:
        """The page's HTML."""
        page: HttpResponse = self.http.get(self.path)
        assert page.status_code == 200, page
        return page.content.decode()

    @property
    def choices(self) -> set[str]:
        """What the page's buttons offer."""
        return set(re.findall(r'name="outcome" value="([a-z]+)"', self.look()))

    def press(self, outcome: str) -> HttpResponse:
        found: HttpResponse = self.http.post(self.path, {"outcome": outcome})
        return found

    def decide(self, outcome: str) -> dict[str, str]:
        """Press a button and go where the browser is sent: the query of the merchant's address at the end."""
        decided = self.press(outcome)
        assert decided.status_code == 303, decided
        back = self.http.get(decided["Location"])
        assert back.status_code == 303, back
        parts = urlsplit(back["Location"])
        assert parts.netloc == "shop.example"
        return {name: values[0] for name, values in parse_qs(parts.query).items()}
