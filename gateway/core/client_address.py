"""The IP address of a request's caller, and the network that callers are counted by."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest


def resolve_client_ip(request: HttpRequest) -> str | None:
    """The caller's IP address; None if there is none that parses.

    X-Forwarded-For is read only behind a proxy of ours (GATEWAY_BEHIND_PROXY), and then only its last entry, which that
    proxy set. Some proxies append the port, some write brackets around an IPv6 address.
    """
    text = request.META.get("REMOTE_ADDR") or ""
    if settings.GATEWAY_BEHIND_PROXY and (forwarded := request.headers.get("X-Forwarded-For")):
        text = forwarded.rpartition(",")[2].strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    return _format_address(text.partition("%")[0])


@lru_cache(maxsize=1024)
def _format_address(text: str) -> str | None:
    try:
        return str(ip_address(text))
    except ValueError:
        return None


def network_of(ip: str | None) -> str | None:
    """The address that attempts are counted by: the address itself, or its /64 for IPv6, which one line has whole."""
    address = ip_address(ip) if ip else None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(ip_network((address, 64), strict=False).network_address)
    return str(address) if address else None
