"""What a process keeps of requests: nothing that grows with them, whatever names and values they bring."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Final

import pytest
from django.test import Client

from tests.fuzz.meter import kept
from tests.fuzz.routes import unused

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(900)]
PATHS: Final = (
    ("GET", "/no/such/{}"), ("GET", "/docs/search?q={}"), ("GET", "/v1/payments/{}"), ("POST", "/v1/payments"),
    ("GET", "/shopper/{}"), ("POST", "/v1/checkouts/{}/payment"), ("POST", "/connectors/threeds/results"),
    ("GET", "/admin/gateway/payment/?{}=1"),
)  # fmt: skip
WARM: Final = 400
"""Requests after which small caches are full (urllib keeps 128 addresses)."""
NUMBER: Final = 400
MOST: Final = 50
"""Blocks of Python's memory: a kept text has one, an entry of a cache three. Each path comes fifty times."""


@pytest.fixture
def quiet() -> Iterator[None]:
    """No log: pytest keeps every line for its report."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def strange_requests(chance: random.Random) -> Iterator[tuple[str, str, dict[str, str], bytes]]:
    """Method, address, headers and body, each with names and values that no request had before.

    Not the language: Django keeps the last 1,000 values of that header, which would take as many requests to fill.
    """
    for method, path in cycle(PATHS):
        new = [unused(chance) for _ in range(9)]
        headers = {
            "User-Agent": new[0], "Authorization": f"Bearer tollhouse_{new[1]}",
            "Idempotency-Key": new[2], "Referer": f"https://{new[3]}.example/",
            "Cookie": f"sessionid={new[4]}; {new[5]}=1", "X-Forwarded-For": f"198.51.100.{chance.randrange(256)}",
        }  # fmt: skip
        yield (
            method,
            path.format(new[6]),
            headers,
            f"entityId={new[7]}&{new[8]}=1".encode() if method == "POST" else b"",
        )


def test_a_process_keeps_nothing_of_strangers_requests(db: None, quiet: None) -> None:
    requests, client = strange_requests(random.Random(1)), Client(raise_request_exception=False)

    def send(number: int) -> int:
        for method, path, headers, body in islice(requests, number):
            client.cookies.clear()
            client.generic(method, path, body, "application/x-www-form-urlencoded", headers=headers)
        return kept(number).blocks

    before = send(WARM)
    assert send(NUMBER) - before < MOST
