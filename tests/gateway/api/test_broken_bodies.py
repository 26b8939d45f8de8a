"""Bodies that are not what they announce, over a real socket: half a form may still be a form with another amount."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from django.core.servers.basehttp import ThreadedWSGIServer
from pytest_django.live_server_helper import LiveServer

from gateway.api.base_view import MAX_PREREAD_BYTES
from gateway.models import Payment
from tests.support.client import form, payment
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db(transaction=True)
assert ThreadedWSGIServer


@pytest.fixture
def wire(live_server: LiveServer, committed: Shop) -> Iterator[tuple[socket.socket, bytes]]:
    """A connection to the server, and the head of a payment without its body headers."""
    address = urlsplit(live_server.url)
    assert address.hostname
    assert address.port
    head = f"POST /v1/payments HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {committed.api.token}\r\n"
    head += "Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        yield connection, head.encode()


def answer_of(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def test_a_body_that_ends_early_is_no_payment(wire: tuple[socket.socket, bytes], committed: Shop) -> None:
    connection, head = wire
    fields = payment(amount=None) | {"entityId": committed.api.entity or "", "amount": "9200.00"}
    body = form(fields.items())
    connection.sendall(head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:-5])
    connection.shutdown(socket.SHUT_WR)
    answer = answer_of(connection)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"the body ended after" in answer
    assert Payment.objects.count() == 0
    assert len(body) < MAX_PREREAD_BYTES
