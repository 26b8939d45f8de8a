"""What a process keeps of requests: nothing that grows with them, whatever names and values they bring."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Final

import pytest
from django.test import Client

from tests.fuzz.meter import kept
from tests.fuzz.routes import unused

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(300)]
PATHS: Final = (
    ("GET", "/no/such/{}"), ("GET", "/docs/search?q={}"), ("GET", "/v1/payments/{}"), ("POST", "/v1/payments"),
    ("GET", "/shopper/{}"), ("POST", "/v1/checkouts/{}/payment"), ("POST", "/connectors/threeds/results"),
    ("GET", "/admin/gateway/payment/?{}=1"),
)  # fmt: skip
WARM: Final = 1_200
"""Requests after which caches with a bound are full: Django keeps the last 1,000 values of Accept-Language."""
NUMBER: Final = 400
MOST: Final = 50
"""Blocks of Python's memory: a kept text has one, an entry of a cache three. Each path comes fifty times."""


def strange_requests(chance: random.Random) -> Iterator[tuple[str, str, dict[str, str], bytes]]:
    """Method, address, headers and body, each with names and values that no request had before."""
    for method, path in cycle(PATHS):
        new = [unused(chance) for _ in range(10)]
        headers = {
            "Accept-Language": new[0], "User-Agent": new[1], "Authorization": f"Bearer tollhouse_{new[2]}",
            "Idempotency-Key": new[3], "Referer": f"https://{new[4]}.example/",
            "Cookie": f"sessionid={new[5]}; {new[6]}=1", "X-Forwarded-For": f"198.51.100.{chance.randrange(256)}",
        }  # fmt: skip
        yield (
            method,
            path.format(new[7]),
            headers,
            f"entityId={new[8]}&{new[9]}=1".encode() if method == "POST" else b"",
        )


def test_a_process_keeps_nothing_of_strangers_requests(db: None) -> None:
    requests, client = strange_requests(random.Random(1)), Client(raise_request_exception=False)

    def send(number: int) -> int:
        for method, path, headers, body in islice(requests, number):
            client.cookies.clear()
            client.generic(method, path, body, "application/x-www-form-urlencoded", headers=headers)
        return kept(number).blocks

    before = send(WARM)
    assert send(NUMBER) - before < MOST
