"""What a process keeps of requests: nothing that grows with them, whatever names and values they bring."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Final

import pytest

from gateway.api.wsgi_handler import GatewayHandler, build_wsgi_application
from tests.fuzz.hostile import URLENCODED, Request
from tests.fuzz.meter import kept
from tests.fuzz.routes import unused

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]
PATHS: Final = (
    ("GET", "/no/such/{}"), ("GET", "/docs/search?q={}"), ("GET", "/v1/payments/{}"), ("POST", "/v1/payments"),
    ("GET", "/shopper/{}"), ("POST", "/v1/checkouts/{}/payment"), ("POST", "/connectors/threeds/results"),
    ("GET", "/admin/gateway/payment/?{}=1"),
)  # fmt: skip
WARM: Final = 800
"""Requests after which small caches are full (urllib keeps 128 addresses) and templates compiled."""
NUMBER: Final = 400
MOST: Final = 350
"""Blocks of Python's memory, fewer than requests: what keeps a text or an entry for each has one to three of each."""


@pytest.fixture
def quiet() -> Iterator[None]:
    """No log: pytest keeps every line for its report."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def strange_requests(chance: random.Random) -> Iterator[Request]:
    """Requests with names and values that no request had before.

    Not the language: Django keeps the last 1,000 values of that header, which would take as many requests to fill.
    """
    for method, address in cycle(PATHS):
        new = [unused(chance) for _ in range(9)]
        path, _, query = address.format(new[0]).partition("?")
        headers = {
            "User-Agent": new[1], "Authorization": f"Bearer tollhouse_{new[2]}", "Idempotency-Key": new[3],
            "Referer": f"https://{new[4]}.example/", "Cookie": f"sessionid={new[5]}; {new[6]}=1",
            "X-Forwarded-For": f"198.51.100.{chance.randrange(256)}", "Content-Type": URLENCODED,
        }  # fmt: skip
        body = f"entityId={new[7]}&{new[8]}=1".encode() if method == "POST" else b""
        yield Request(
            method=method, path=path, query=query, headers=headers, body=body, length=len(body), about="strange"
        )


def send(application: GatewayHandler, requests: Iterator[Request]) -> int:
    """Send them; the blocks held after. Django's test client itself keeps three receivers of signals for each."""
    for request in requests:
        application(request.environ(), lambda _status, _headers, _fault=None: None).close()
    return kept(WARM).blocks


def test_a_process_keeps_nothing_of_strangers_requests(transactional_db: None, quiet: None) -> None:
    application, requests = build_wsgi_application(), strange_requests(random.Random(1))
    before = send(application, islice(requests, WARM))
    assert send(application, islice(requests, NUMBER)) - before < MOST
