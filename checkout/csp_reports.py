"""POST /v1/widget/policy-reports: browsers' reports of content security policy violations (PCI DSS 6.4.3, 11.6.1).

Anyone may send such a report, so nothing of it is trusted or stored as received: headers and address are checked before
the body is read, a page's query, ids and names of shoppers are dropped, and equal reports are one row with a count.
Source: docs/decisions/0054.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

from gateway.api.envelope import build_plain_response
from gateway.api.errors import WRONG_METHOD_CODE
from gateway.catalogue.errors import INVALID_PARAMETER_CODE
from gateway.core import clock
from gateway.core.client_address import network_of, resolve_client_ip
from gateway.db.statement import execute_sql

REPORT_CONTENT_TYPES: Final = ("application/reports+json", "application/csp-report")
MAX_CSP_REPORT_BYTES: Final = 16 * 1024
MAX_REPORTS_PER_BODY: Final = 20
"""Reports read of one body; a browser sends those of one minute."""
MAX_REPORTS_PER_ADDRESS: Final = 20
"""Bodies of one address (IPv6: the /64) per minute and process."""
MAX_REPORT_BODIES_PER_MINUTE: Final = 300
"""Bodies of all addresses per minute and process."""
MAX_FIRST: Final = 900
"""Further bodies per minute and process, each the first of its address, so that a few heavy senders cannot shut out
others."""
MAX_STORED_VIOLATIONS: Final = 2_000
"""Stored rows. Above it the reporter with the most rows loses theirs first, so that invented ones cannot displace true
ones."""
REPORTER_CHARS: Final = 16
VIOLATION_RETENTION: Final = timedelta(days=90)
OTHER_SOURCE: Final = "other"
MAX_REPORTED_URL_CHARS: Final = 2_000
MAX_PATH_SEGMENTS: Final = 6

_DIRECTIVES: Final = frozenset(
    f"{name}-src{more}" for name in ("script", "style") for more in ("", "-elem", "-attr")
) | frozenset(
    ("default-src", "img-src", "connect-src", "font-src", "frame-src", "child-src", "worker-src", "media-src",
     "object-src", "manifest-src", "form-action", "frame-ancestors", "base-uri", "sandbox", "trusted-types",
     "require-trusted-types-for")
)  # fmt: skip
_KEYWORDS: Final = frozenset(
    ("inline", "eval", "wasm-eval", "self", "data", "blob", "filesystem", "about", "trusted-types-policy",
     "trusted-types-sink")
)  # fmt: skip
_HOST: Final = re.compile(r"[a-z0-9.-]{1,253}|[0-9a-f:.]{2,45}")
_PLAIN_SEGMENT: Final = re.compile(r"(?=(?:[^0-9]*[0-9]){0,4}[^0-9]*\Z)[A-Za-z][A-Za-z0-9_.-]{0,30}")
"""A segment with up to four digits, such as frame.html and v1: no id, card number or session name."""
_ID: Final = re.compile(r"[0-9A-Fa-f-]{12,}")
_MANY_DIGITS: Final = re.compile(r"(?:[0-9][.-]?){9}")

_ADD: Final = """
INSERT INTO checkout_policyviolation AS kept (page, directive, blocked, count, first_at, last_at, reporter)
SELECT page, directive, blocked, times, %(now)s, %(now)s, %(reporter)s
FROM unnest(%(pages)s::text[], %(directives)s::text[], %(blocked)s::text[], %(counts)s::bigint[])
    AS reported (page, directive, blocked, times)
ON CONFLICT (page, directive, blocked) DO UPDATE SET count = kept.count + excluded.count, last_at = excluded.last_at,
    reporter = excluded.reporter
RETURNING id
"""
_FORGET: Final = """
DELETE FROM checkout_policyviolation WHERE last_at < %(limit)s OR id IN (
    SELECT id FROM (
        SELECT id, last_at, row_number() OVER (PARTITION BY reporter ORDER BY count DESC, last_at DESC) AS place
        FROM checkout_policyviolation
    ) AS ranked ORDER BY place, last_at DESC OFFSET %(most)s
) RETURNING id
"""


@dataclass(slots=True)
class ReportRateLimit:
    """Counts the bodies of this minute, in all and by address. In memory: a refused report writes nothing."""

    minute: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def admits(self, address: str, minute: int) -> bool:
        with self.lock:
            if minute != self.minute:
                self.minute, self.counts = minute, Counter()
            before, total = self.counts[address], self.counts.total()
            if before >= MAX_REPORTS_PER_ADDRESS or total >= (
                MAX_REPORT_BODIES_PER_MINUTE if before else MAX_REPORT_BODIES_PER_MINUTE + MAX_FIRST
            ):
                return False
            self.counts[address] += 1
            return True


REPORT_RATE_LIMIT: Final = ReportRateLimit()


def receive_csp_report(request: HttpRequest) -> HttpResponse:
    """Accept a browser's report, from a page of any origin. 204, or a 4xx answer if the body is refused."""
    if request.method == "OPTIONS":
        return _add_cors_headers(HttpResponse(status=204))
    if request.method != "POST":
        answer = build_plain_response(405, WRONG_METHOD_CODE, "this path takes POST")
        answer["Allow"] = "POST, OPTIONS"
        return answer
    if (refusal := _build_refusal(request)) is not None:
        return _add_cors_headers(refusal)
    violations = parse_violations(request.read(MAX_CSP_REPORT_BYTES + 1))
    if violations is None:
        return _add_cors_headers(
            build_plain_response(400, INVALID_PARAMETER_CODE, "the body is no report of a browser")
        )
    add_violations(violations, reporter=_hash_reporter(request))
    return _add_cors_headers(HttpResponse(status=204))


def _build_refusal(request: HttpRequest) -> HttpResponse | None:
    """The 4xx answer to a report whose body is not read; None if it may be read."""
    headers = request.headers
    if (
        request.content_type not in REPORT_CONTENT_TYPES
        or headers.get("Content-Encoding", "identity").lower() != "identity"
    ):
        return build_plain_response(
            415, INVALID_PARAMETER_CODE, f"send {' or '.join(REPORT_CONTENT_TYPES)}, without Content-Encoding"
        )
    length = headers.get("Content-Length") or ""
    if "Transfer-Encoding" in headers or not (length.isascii() and length.isdigit() and len(length) < 20):
        return build_plain_response(411, INVALID_PARAMETER_CODE, "send the body with a Content-Length")
    if int(length) > MAX_CSP_REPORT_BYTES:
        return build_plain_response(
            413, INVALID_PARAMETER_CODE, f"the body is larger than {MAX_CSP_REPORT_BYTES:,} bytes"
        )
    if not REPORT_RATE_LIMIT.admits(
        network_of(resolve_client_ip(request)) or "", int(clock.real_now().timestamp()) // 60
    ):
        return build_plain_response(429, "800.120.100", "too many reports")
    return None


def _add_cors_headers(answer: HttpResponse) -> HttpResponse:
    """Add CORS headers: a merchant's page may report here too, and browsers first ask if other origins may."""
    answer["Access-Control-Allow-Origin"] = "*"
    answer["Access-Control-Allow-Methods"] = "POST"
    answer["Access-Control-Allow-Headers"] = "Content-Type"
    answer["Cache-Control"] = "no-store"
    return answer


ViolationKey = tuple[str, str, str]
"""Page, directive, what was blocked."""


def parse_violations(body: bytes) -> Counter[ViolationKey] | None:
    """The violations in a body of either format; None for anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict):
        reports = [found.get("csp-report")]
    elif isinstance(found, list):
        reports = [
            one.get("body")
            for one in found[:MAX_REPORTS_PER_BODY]
            if isinstance(one, dict) and one.get("type") == "csp-violation"
        ]
    else:
        return None
    if not all(isinstance(one, dict) for one in reports):
        return None
    return Counter(_parse_violation(one) for one in reports if one)


def _parse_violation(report: dict[str, Any]) -> ViolationKey:
    def text(*names: str) -> str:
        found = next((report[name] for name in names if isinstance(report.get(name), str)), "")
        return str(found)[:MAX_REPORTED_URL_CHARS]

    directive = text("effectiveDirective", "effective-directive", "violated-directive").partition(" ")[0]
    return (
        anonymize_page_url(text("documentURL", "document-uri")),
        directive if directive in _DIRECTIVES else OTHER_SOURCE,
        parse_blocked_origin(text("blockedURL", "blocked-uri")),
    )


def anonymize_page_url(address: str) -> str:
    """Origin and path of a page; path segments that may be an id, a number or a name become a star."""
    origin, path = _split_address(address)
    if not origin:
        return OTHER_SOURCE
    segments = path.split("/")[1 : MAX_PATH_SEGMENTS + 1]
    plain = [one if not one or (_PLAIN_SEGMENT.fullmatch(one) and not _ID.search(one)) else "*" for one in segments]
    return f"{origin}/{'/'.join(plain)}"[:300]


def parse_blocked_origin(address: str) -> str:
    """The origin of what was blocked, or the keyword that browsers send."""
    if address in _KEYWORDS:
        return address
    return _split_address(address)[0][:300] or OTHER_SOURCE


def _split_address(address: str) -> tuple[str, str]:
    """Origin and path of a web address; two empty texts for anything else."""
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return "", ""
    if parts.scheme not in ("http", "https", "ws", "wss") or not _HOST.fullmatch(host):
        return "", ""
    ours = urlsplit(settings.GATEWAY_BASE_URL).hostname
    if _MANY_DIGITS.search(host) and host != ours and not _is_ip(host):
        host = "*"
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port else ""), parts.path


def _is_ip(host: str) -> bool:
    return ":" in host or all(one.isdigit() and len(one) <= 3 for one in host.split("."))


def _hash_reporter(request: HttpRequest) -> str:
    """A keyed digest of day and network of the reporter, to share out rows: it reveals no address, and does not link
    two days."""
    network = network_of(resolve_client_ip(request)) or ""
    return salted_hmac("checkout.csp_reports", f"{clock.real_now():%Y-%m-%d} {network}").hexdigest()[:REPORTER_CHARS]


def add_violations(violations: Counter[ViolationKey], *, reporter: str) -> None:
    """Add to the counts, in key order, so that two concurrent reports cannot deadlock."""
    if not violations:
        return
    rows = sorted(violations)
    execute_sql(
        _ADD,
        {
            "now": clock.real_now(),
            "reporter": reporter,
            "pages": [page for page, _directive, _blocked in rows],
            "directives": [directive for _page, directive, _blocked in rows],
            "blocked": [blocked for _page, _directive, blocked in rows],
            "counts": [violations[row] for row in rows],
        },
    )


def purge_violations() -> int:
    """Delete violations reported long ago, and those above the limit."""
    return len(execute_sql(_FORGET, {"limit": clock.real_now() - VIOLATION_RETENTION, "most": MAX_STORED_VIOLATIONS}))
