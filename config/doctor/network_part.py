"""Ways out and in: names, the guard of outbound calls, TLS and the ends of certificates, the public address."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography import x509
from django.conf import settings

from config.doctor.findings import DoctorQuestion, PartFinding, error, judge, ok, skipped, warning
from gateway.models import AcquirerAccount, ThreeDSecureConfiguration
from gateway.outbound.address_guard import AddressUnreachableError, ForbiddenAddressError, parse_target
from gateway.outbound.connections import open_connection

NETWORK_TIMEOUT_S: Final = 5.0
MIN_CERTIFICATE_DAYS: Final = 21
MAX_ADDRESSES: Final = 20
_RENEW: Final = "Renew it."


def examine_ways_out(question: DoctorQuestion) -> Iterator[PartFinding]:
    """The hosts that the configuration names (acquirers, 3DS servers, single sign-on), by the way that calls take."""
    yield from _examine_authorities()
    if not question.network:
        yield skipped("No other machine was asked.", "Leave out --offline.")
        return
    called = _list_addresses()
    if not called:
        yield ok("The configuration names no https address of an acquirer, 3DS server or single sign-on.")
    for url in called[:MAX_ADDRESSES]:
        yield _judge_address(url)
    if len(called) > MAX_ADDRESSES:
        yield skipped(f"{len(called) - MAX_ADDRESSES} more addresses were not asked.")


def _list_addresses() -> list[str]:
    """https://host:port of each, once."""
    urls = [settings.GATEWAY_OIDC_ISSUER]
    for values in AcquirerAccount.objects.filter(active=True).values_list("settings", flat=True):
        urls += [value for value in values.values() if isinstance(value, str)]
    urls += ThreeDSecureConfiguration.objects.exclude(server_url="").values_list("server_url", flat=True)
    parts = (urlsplit(url) for url in urls if url.startswith("https://"))
    return sorted({f"https://{part.netloc}" for part in parts})


def _judge_address(url: str) -> PartFinding:
    try:
        line = open_connection(parse_target(url), time.monotonic() + NETWORK_TIMEOUT_S)
    except ForbiddenAddressError as fault:
        return error(f"{url} is not called: {fault}.", "Correct the address, or GATEWAY_OUTBOUND_PORTS.")
    except ssl.SSLError as fault:
        about = f"{url} shows a certificate that is not trusted: {fault.reason or fault}."
        return error(about, "GATEWAY_OUTBOUND_CA_FILE with its authority, or ask the other side to renew it.")
    except (AddressUnreachableError, TimeoutError, OSError) as fault:
        why = f"{url} cannot be reached: {str(fault) or type(fault).__name__}."
        return error(why, "Look at DNS (/etc/resolv.conf) and the firewall for calls outward.")
    try:
        held: Any = line.sock
        return _judge_end(url, _read_end(held), "Ask the other side to renew it.")
    finally:
        line.close()


def _read_end(line: ssl.SSLSocket) -> datetime:
    shown: Any = (line.getpeercert() or {})["notAfter"]
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(shown), UTC)


def _judge_end(name: str, end: datetime, mend: str) -> PartFinding:
    days = (end - datetime.now(UTC)).days
    about = f"{name}: its certificate ends on {end:%Y-%m-%d}, in {days} days."
    level = error if days < 3 else warning
    return judge(days >= MIN_CERTIFICATE_DAYS, about, level(about, mend))


def _examine_authorities() -> Iterator[PartFinding]:
    """The file of further certificate authorities."""
    file = settings.GATEWAY_OUTBOUND_CA_FILE
    if not file:
        return
    try:
        found = x509.load_pem_x509_certificates(Path(file).read_bytes())
    except (OSError, ValueError) as fault:
        about = f"GATEWAY_OUTBOUND_CA_FILE {file} cannot be read: {type(fault).__name__}."
        yield error(about, "Give a file of certificates in PEM form, readable by the service's user.")
        return
    for one in found:
        yield _judge_end(f"GATEWAY_OUTBOUND_CA_FILE, {one.subject.rfc4514_string()}", one.not_valid_after_utc, _RENEW)


def examine_public_address(question: DoctorQuestion) -> Iterator[PartFinding]:
    """GATEWAY_BASE_URL as a merchant sees it: name, certificate, readiness, figures hidden."""
    parts = urlsplit(settings.GATEWAY_BASE_URL)
    if not question.network or parts.scheme != "https" or not parts.hostname:
        about = "The public address was not asked" + ("." if question.network else ": --offline.")
        yield skipped(about, "" if settings.IS_LIVE else "GATEWAY_BASE_URL is no https address; a test needs none.")
        return
    try:
        yield from _ask_public_address(parts.hostname, parts.port or 443)
    except ssl.SSLError as fault:
        about = f"{settings.GATEWAY_BASE_URL}: its certificate is refused: {fault.reason or fault}."
        yield error(about, "Give the proxy the whole chain of a certificate of this name.")
    except socket.gaierror:
        yield error(f"{parts.hostname} cannot be resolved.", "Correct GATEWAY_BASE_URL, or the name's DNS record.")
    except (OSError, http.client.HTTPException) as fault:
        about = f"{settings.GATEWAY_BASE_URL} does not answer from here: {str(fault) or type(fault).__name__}."
        yield warning(about, "See from outside; a firewall may keep this machine from its own public address.")


def _ask_public_address(host: str, port: int) -> Iterator[PartFinding]:
    context = ssl.create_default_context(cafile=settings.GATEWAY_OUTBOUND_CA_FILE or None)
    if settings.GATEWAY_OUTBOUND_CA_FILE:
        context.load_default_certs()
    line = http.client.HTTPSConnection(host, port, timeout=NETWORK_TIMEOUT_S, context=context)
    try:
        line.connect()
        held: Any = line.sock
        yield _judge_end(settings.GATEWAY_BASE_URL, _read_end(held), "Renew the proxy's certificate.")
        ready = _read_status(line, "/health/ready")
        fault = error(
            f"Through the proxy /health/ready answers {ready}.", "See the proxy's log, and each node's /health/ready."
        )
        yield judge(ready == 200, "Through the proxy a node is ready.", fault)
        figures = _read_status(line, "/metrics")
        open_ = error(
            "The proxy passes /metrics on.", "Let the proxy answer 404 for /metrics (docs/running/haproxy.cfg)."
        )
        yield judge(figures in (403, 404), "/metrics is not shown to the world.", open_)
    finally:
        line.close()


def _read_status(line: http.client.HTTPSConnection, path: str) -> int:
    line.request("GET", path)
    answer = line.getresponse()
    answer.read()
    return answer.status
