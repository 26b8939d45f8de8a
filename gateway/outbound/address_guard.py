"""SSRF guard: parses a URL once, resolves its name once, and checks the addresses that are then connected to.

Every rule is about the numeric address of the connection, never about the name, so a name that resolves differently a
second time (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.encoding import iri_to_uri

MAX_URL_CHARS: Final = 2_600
"""The longest URL that a merchant may send (2,048), and what we append: id and resourcePath."""
MAX_LOOKUPS: Final = 64
"""Concurrent lookups of this process; the system's resolver has no deadline, so further ones fail."""
DEFAULT_URL_PORTS: Final = {"http": 80, "https": 443}
_OWN_DEFAULTS: Final = {"postgresql": 5432, "redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671}
MIN_LOOPBACK_PORT: Final = 1_024
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,62}(?:\.[A-Za-z0-9_-]{1,63})*\.?")
"""Labels with dots between them. The pattern is unambiguous, so a wrong name does not cause backtracking."""
_FORBIDDEN_CHARS: Final = re.compile(r"[\x00-\x20\x7f\\]")

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# Networks that Python's `is_global` accepts, or did in one of the versions we support.
_NEVER: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4",
        "::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32",
        "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
    )
)  # fmt: skip
_UNICAST: Final = ipaddress.ip_network("2000::/3")


class ForbiddenAddressError(Exception):
    """An address that must not be called; the text says why to the person who configured it."""


class AddressUnreachableError(Exception):
    """The name cannot be resolved in time, or the address does not accept connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTarget:
    """A parsed URL: ``path`` for the request line, ``authority`` for the Host header."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Host and port for the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_URL_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def key(self) -> tuple[str, str, int]:
        """Calls with equal keys may share a connection."""
        return self.scheme, self.host, self.port


def parse_target(url: str) -> CallTarget:
    """Parse a URL. Raises ForbiddenAddressError for one that is never called, whatever its name resolves to."""
    if len(url) > MAX_URL_CHARS:
        raise ForbiddenAddressError(f"an address has at most {MAX_URL_CHARS:,} characters")
    if _FORBIDDEN_CHARS.search(url):
        raise ForbiddenAddressError("an address holds no spaces, control characters or backslashes")
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
    except ValueError:
        raise ForbiddenAddressError("this is no address") from None
    if scheme not in DEFAULT_URL_PORTS:
        raise ForbiddenAddressError("only http and https addresses are called")
    if "@" in parts.netloc:
        raise ForbiddenAddressError("an address holds no user name or password")
    host = _ascii(host)
    port = DEFAULT_URL_PORTS[scheme] if port is None else port
    path = iri_to_uri(parts._replace(scheme="", netloc="", fragment="").geturl()) or "/"
    path = path if path.startswith("/") else f"/{path}"
    target = CallTarget(scheme=scheme, host=host, port=port, path=f"/{path.lstrip('/')}")
    literal = _literal(host)
    if literal is not None:
        check_address(literal, port)
    elif not _port_allowed(port, settings.GATEWAY_OUTBOUND_PORTS) and not settings.GATEWAY_OUTBOUND_LOOPBACK:
        raise ForbiddenAddressError(_ports_in_words(port, settings.GATEWAY_OUTBOUND_PORTS))
    return target


def _ascii(host: str) -> str:
    """The name in its DNS form (IDNA)."""
    if not host:
        raise ForbiddenAddressError("the address names no host")
    if ":" in host:
        try:
            if "%" in host:  # a scope id: a network interface of this machine
                raise ValueError
            return str(ipaddress.IPv6Address(host))
        except ValueError:
            raise ForbiddenAddressError("this is no IPv6 address") from None
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            raise ForbiddenAddressError("this is no host name") from None
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise ForbiddenAddressError("this is no host name")
    return host


def _literal(host: str) -> IPAddress | None:
    """The address that a host is written as, in any form that a system accepts (``127.1``, ``0x7f000001``); None for a
    name."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except OSError:
        return None
    return ipaddress.ip_address(found[0][4][0])


def resolve_target(target: CallTarget, timeout_s: float) -> list[tuple[int, Any]]:
    """Resolve a target once and check every address. Returns (family, socket address) of each.

    Raises ForbiddenAddressError if any of them is forbidden (a mixed name may be rebinding), and
    AddressUnreachableError.
    """
    found = _look_up(target.host, target.port, timeout_s)
    for _, address in found:
        check_address(ipaddress.ip_address(str(address[0]).partition("%")[0]), target.port)
    return found


def resolve_sftp_address(host: str, port: int, timeout_s: float) -> list[tuple[int, Any]]:
    """Resolve an SFTP server once and check every address. Returns (family, socket address) of each.

    The SFTP ports are allowed, and private networks that the settings name. Raises ForbiddenAddressError and
    AddressUnreachableError.
    """
    found = _look_up(_ascii(host), port, timeout_s)
    for _, address in found:
        literal = ipaddress.ip_address(str(address[0]).partition("%")[0])
        own = any(literal in ipaddress.ip_network(text) for text in settings.GATEWAY_SFTP_NETWORKS)
        check_address(literal, port, ports=settings.GATEWAY_SFTP_PORTS, own=own)
    return found


def check_address(address: IPAddress, port: int, *, ports: Sequence[str] | None = None, own: bool = False) -> None:
    """Raise ForbiddenAddressError for an address and port that must not be called. ``ports``: allowed numbers and
    ranges; ``own``: the settings name the network as one of ours that may be called."""
    ports = settings.GATEWAY_OUTBOUND_PORTS if ports is None else ports
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise ForbiddenAddressError("the address is an IPv4 address in disguise")
    if address.is_loopback or _is_this_machine(address):
        if not settings.GATEWAY_OUTBOUND_LOOPBACK:
            raise ForbiddenAddressError("the address leads to this machine itself")
        if port in list_own_ports():
            raise ForbiddenAddressError(f"port {port} of this machine is the gateway's own")
        if port < MIN_LOOPBACK_PORT:
            raise ForbiddenAddressError(f"on this machine itself only ports from {MIN_LOOPBACK_PORT} are called")
        return
    if not own and not is_public_address(address):
        raise ForbiddenAddressError("the address is private, reserved, or leads to a local network")
    if not _port_allowed(port, ports):
        raise ForbiddenAddressError(_ports_in_words(port, ports))


def is_public_address(address: IPAddress) -> bool:
    """True for an address of the public internet that does not embed another address (mapped, 6to4, NAT64)."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if address.version == 6 and address not in _UNICAST:
        return False
    return not any(address in network for network in _NEVER if network.version == address.version)


def _is_this_machine(address: IPAddress) -> bool:
    """True if packets to ``address`` would not leave this machine: then their source would be that very address.

    Nothing is sent to find out.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return bool(probe.getsockname()[0] == str(address))
    except OSError:
        return False


def list_own_ports() -> frozenset[int]:
    """Ports of our own database, broker, web server and stub acquirer, from the settings."""
    ports = {int(settings.DATABASES["default"].get("PORT") or _OWN_DEFAULTS["postgresql"])}
    for url in (settings.GATEWAY_BASE_URL, settings.CELERY_BROKER_URL):
        parts = urlsplit(url)
        port = parts.port or (DEFAULT_URL_PORTS | _OWN_DEFAULTS).get(parts.scheme)
        if port is not None:
            ports.add(port)
    stub = settings.GATEWAY_STUB_ACQUIRER.rpartition(":")[2]
    return frozenset(ports | ({int(stub)} if stub.isdecimal() else set()) | set(settings.GATEWAY_OUTBOUND_NEVER_PORTS))


def _port_allowed(port: int, ports: Sequence[str]) -> bool:
    return any(low <= port <= high for low, high in _ranges(ports))


def _ranges(words: Sequence[str]) -> list[tuple[int, int]]:
    """Parse ``8000-9999`` and ``443`` as ranges."""
    return [(int(low), int(high or low)) for low, _, high in (word.strip().partition("-") for word in words)]


def _ports_in_words(port: int, ports: Sequence[str]) -> str:
    return f"port {port} is not called; allowed are {', '.join(ports)}"


_lookups: Final = threading.BoundedSemaphore(MAX_LOOKUPS)


def _look_up(host: str, port: int, timeout_s: float) -> list[tuple[int, Any]]:
    """Resolve a name within ``timeout_s``; a hanging resolver is left behind in its own thread."""
    if _literal(host) is not None:
        return _ask_resolver(host, port)
    found: list[list[tuple[int, Any]] | OSError] = []
    if not _lookups.acquire(blocking=False):
        raise AddressUnreachableError("too many names are being looked up")

    def ask() -> None:
        try:
            found.append(_ask_resolver(host, port))
        except (OSError, UnicodeError) as fault:
            found.append(fault if isinstance(fault, OSError) else OSError(str(fault)))
        finally:
            _lookups.release()

    thread = threading.Thread(target=ask, name="resolver", daemon=True)
    thread.start()
    thread.join(max(0.0, timeout_s))
    if not found:
        raise AddressUnreachableError("the name was not found in time")
    answer = found[0]
    if isinstance(answer, OSError):
        raise AddressUnreachableError(f"the name is not known: {answer.strerror or answer}")
    return answer


def _ask_resolver(host: str, port: int) -> list[tuple[int, Any]]:
    every = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    found = list(dict.fromkeys((int(family), address) for family, _, _, _, address in every))
    if not found:
        raise OSError("no address")
    return found
