"""Keeps requests to a gateway out of private networks. pretix guards urllib3 only, and the client uses httpx."""

from __future__ import annotations

import ipaddress
import socket

import httpx


class GuardedTransport(httpx.HTTPTransport):
    """Connects to public addresses only: the host is resolved once, checked, and connected to at that address. TLS
    names the host as ever. Proxies of the environment are not used."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send it. Raises httpx.ConnectError for a host that is unknown, or not public."""
        host = request.url.host
        request.extensions = {**request.extensions, "sni_hostname": host}
        request.url = request.url.copy_with(host=find_public_address(host, request.url.port or 443))
        return super().handle_request(request)


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
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_global and not address.is_multicast
