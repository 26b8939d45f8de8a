"""Keeps requests to a gateway out of private networks. pretix guards urllib3 only, and the client uses httpx."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from typing import Any

import httpx

TIMEOUT_S = 20.0
"""From the beginning of a request to the head of its answer, however slowly it comes."""
_UNICAST = ipaddress.ip_network("2000::/3")
_NOT_PUBLIC = tuple(map(ipaddress.ip_network, ("192.88.99.0/24", "2001::/23", "2002::/16", "3fff::/20")))
"""Networks that Python takes for public in some versions: 6to4 leads to any address of IPv4."""


class GuardedTransport(httpx.HTTPTransport):
    """Connects to public addresses only: the host is resolved once, checked, and connected to at that address. TLS
    names the host as ever. Proxies of the environment are not used. The connection is cut after TIMEOUT_S without the
    head of an answer: httpx's timeouts are of each byte, and an organiser names the server."""

    def __init__(self) -> None:
        # No connection is used twice: a request's connection is known, and can be cut, only if that request made it.
        super().__init__(limits=httpx.Limits(max_keepalive_connections=0))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send it. Raises httpx.ConnectError for a host that is unknown, or not public."""
        host, watch = request.url.host, _Watch()
        request.extensions = {**request.extensions, "sni_hostname": host, "trace": watch.follow}
        request.url = request.url.copy_with(host=find_public_address(host, request.url.port or 443))
        timer = threading.Timer(TIMEOUT_S, watch.cut)
        timer.daemon = True
        timer.start()
        try:
            return super().handle_request(request)
        finally:
            timer.cancel()


class _Watch:
    """The connection of a request, to be cut by another thread."""

    def __init__(self) -> None:
        self._stream: Any = None
        self._over = False

    def follow(self, event: str, about: dict[str, Any]) -> None:
        """What httpx tells while it sends."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._stream = about["return_value"]
            if self._over:
                self._shut()

    def cut(self) -> None:
        """End the connection, also one that is only being made; whoever reads from it gets an error."""
        # First this: follow() looks at it after it has set the stream, so that one of the two threads shuts it.
        self._over = True
        self._shut()

    def _shut(self) -> None:
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


def find_public_address(host: str, port: int) -> str:
    """The first address of a host. Raises httpx.ConnectError if one of its addresses is not public."""
    try:
        found = [str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError) as error:
        raise httpx.ConnectError(f"unknown host: {error}") from None
    for text in found:
        if not _is_public(text):
            raise httpx.ConnectError(f"{text} is in a private network")
    return found[0]


def _is_public(text: str) -> bool:
    """Whether the address is public and none that has an address of IPv4 in it (mapped, NAT64, 6to4)."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if address.version == 6 and address not in _UNICAST:
        return False
    return not any(address in one for one in _NOT_PUBLIC if one.version == address.version)
