"""A client that was written for this API before: the standard library, a socket, and a base address to change.

Source: decisions, the aim: a merchant's existing client works unchanged when only its base address changes.
"""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from pytest_django.live_server_helper import LiveServer

from tests.support.fixtures import Shop


class Client:
    """All that such a client is."""

    def __init__(self, base: str, token: str, entity: str) -> None:
        self.base, self.token, self.entity = base, token, entity

    def request(self, method: str, path: str, **fields: str) -> tuple[int, dict[str, Any]]:
        data = urlencode({"entityId": self.entity, **fields})
        headers = {"Authorization": f"Bearer {self.token}"}
        if method == "POST":
            headers["Content-Type"] = "application/x-www-form-urlencoded; charset=UTF-8"
        else:
            path, data = f"{path}?{data}", ""
        line = http.client.HTTPConnection(urlsplit(self.base).netloc, timeout=30)
        try:
            line.request(method, path, data or None, headers)
            answer = line.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            line.close()


@pytest.fixture
def client(live_server: LiveServer, committed: Shop) -> Client:
    assert committed.api.token is not None
    return Client(live_server.url, committed.api.token, committed.channel.entity_id)


CARD = {
    "card.number": "4200000000000000", "card.holder": "Jane Jones", "card.expiryMonth": "05",
    "card.expiryYear": "2034", "card.cvv": "123",
}  # fmt: skip


def test_an_existing_client_pays_captures_refunds_and_reads(client: Client) -> None:
    """A27.1, A27.2, A27.3, A30.1; Issue, Done when."""
    order = {"amount": "92.00", "currency": "EUR", "paymentBrand": "VISA"}
    status, held = client.request("POST", "/v1/payments", paymentType="PA", **order, **CARD)
    assert (status, held["result"]["code"]) == (200, "000.100.110")
    path = f"/v1/payments/{held['id']}"
    status, capture = client.request("POST", path, paymentType="CP", amount="92.00", currency="EUR")
    assert (status, capture["referencedId"]) == (200, held["id"])
    status, refund = client.request(
        "POST", f"/v1/payments/{capture['id']}", paymentType="RF", amount="10.00", currency="EUR"
    )
    assert (status, refund["amount"]) == (200, "10.00")
    status, read = client.request("GET", path)
    assert (status, read["id"], read["paymentType"]) == (200, held["id"], "PA")


def test_an_existing_client_tells_a_decline_from_a_fault_of_its_own(client: Client) -> None:
    """A27.1, A30.1, A30.3; D10, D13."""
    order = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "paymentBrand": "VISA"}
    status, declined = client.request("POST", "/v1/payments", **order, **{**CARD, "card.number": "4000015500000005"})
    assert (status, declined["result"]["code"]) == (400, "800.100.155")
    assert len(declined["id"]) == 32
    status, wrong = client.request("POST", "/v1/payments", **{**order, "amount": "92.1"}, **CARD)
    assert (status, wrong["result"]["code"]) == (400, "200.300.404")
    assert [error["name"] for error in wrong["result"]["parameterErrors"]] == ["amount"]
    assert "id" not in wrong


def test_an_existing_client_with_a_wrong_token_is_told_so(client: Client) -> None:
    """A30.5; D11."""
    client.token = "nonsense"
    status, body = client.request("POST", "/v1/payments", amount="92.00")
    assert (status, body["result"]["code"]) == (403, "800.900.300")


def test_an_existing_client_without_the_version_is_shown_the_way(client: Client) -> None:
    """A27.12, A30.2; D1: 307."""
    line = http.client.HTTPConnection(urlsplit(client.base).netloc, timeout=30)
    line.request("POST", "/payments", "entityId=1", {"Authorization": f"Bearer {client.token}"})
    answer = line.getresponse()
    assert (answer.status, answer.headers["Location"]) == (307, "/v1/payments")
    line.close()
