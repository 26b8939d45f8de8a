"""Browsers report what a policy stopped: hostile bodies cost little, nothing of a shopper is kept.

Source: PCI DSS 6.4.3, 11.6.1; docs/decisions/0054.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client, override_settings

from checkout import csp_reports
from checkout.csp_reports import (
    MAX_CSP_REPORT_BYTES,
    MAX_REPORTS_PER_ADDRESS,
    MAX_REPORTS_PER_BODY,
    REPORT_CONTENT_TYPES,
    REPORT_RATE_LIMIT,
    anonymize_page_url,
    parse_blocked_origin,
)
from checkout.models import PolicyViolation
from gateway.core import clock
from tests.support.database import places_of

PATH = "/v1/widget/policy-reports"
CARD = "4200000000000000"
CHECKOUT = "8AC7A4A1845F7E19018460BE0E5F1A2B-node01"


@pytest.fixture(autouse=True)
def _empty_gate() -> Iterator[None]:
    REPORT_RATE_LIMIT.minute, REPORT_RATE_LIMIT.counts = 0, type(REPORT_RATE_LIMIT.counts)()
    yield
    REPORT_RATE_LIMIT.minute, REPORT_RATE_LIMIT.counts = 0, type(REPORT_RATE_LIMIT.counts)()


def report(**more: Any) -> dict[str, Any]:
    body = {
        "documentURL": "http://127.0.0.1:8000/v1/widget/frame.html?parent=https://shop.example",
        "effectiveDirective": "script-src-elem",
        "blockedURL": "https://evil.example/skim.js?x=1",
    }
    return {"type": "csp-violation", "age": 1, "url": "x", "body": body | more}


def send(body: Any, kind: str = "application/reports+json", **headers: Any) -> HttpResponse:
    text = body if isinstance(body, bytes | str) else json.dumps(body)
    return Client().post(PATH, text, content_type=kind, headers=headers)


@pytest.mark.django_db
def test_both_forms_of_a_report_are_added_up() -> None:
    """One row for a page, directive and origin, with a count and its first and last time."""
    body = {
        "document-uri": "http://127.0.0.1:8000/v1/widget/frame.html?parent=x",
        "violated-directive": "script-src-elem 'self'",
        "blocked-uri": "https://evil.example/b.js",
    }
    old = {"csp-report": body}
    assert send([report(), report()]).status_code == 204
    assert send(old, "application/csp-report").status_code == 204
    row = PolicyViolation.objects.get()
    assert (row.page, row.directive, row.blocked, row.count) == (
        "http://127.0.0.1:8000/v1/widget/frame.html",
        "script-src-elem",
        "https://evil.example",
        3,
    )


@pytest.mark.django_db
def test_nothing_of_a_shopper_is_kept() -> None:
    """No query, checkout id, card number, token or name out of any part of a report."""
    hostile = [
        report(documentURL=f"https://shop.example/pay/{CHECKOUT}/{CARD}?card={CARD}#{CARD}", sample=CARD),
        report(documentURL=f"https://jane:{CARD}@shop.example/pay/jane.jones@mail.example/4200-0000-0000-0000"),
        report(documentURL=f"https://{CARD}.example/", effectiveDirective=CARD, blockedURL=f"https://{CARD}.example/x"),
        report(blockedURL=f"data:text/html,{CARD}"),
        report(documentURL="\0\0", blockedURL="javascript:" + CARD),
        report(documentURL="https://shop.example/" + "/".join(CARD)),
    ]
    assert send(hostile).status_code == 204
    kept = " ".join(f"{row.page} {row.directive} {row.blocked}" for row in PolicyViolation.objects.all())
    for secret in (CARD, "4200", CHECKOUT[:12], "jane", "?", "#", "data:", "javascript"):
        assert secret not in kept
    assert "https://shop.example/pay/*/*" in kept


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://pay.example:8443/v1/widget/frame.html?checkout=x", "https://pay.example:8443/v1/widget/frame.html"),
        ("http://127.0.0.1:8000/shopper/01a1fe2a4ba7723282c6ab2ac61e38dc", "http://127.0.0.1:8000/shopper/*"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        ("https://shop.example/a/b/c/d/e/f/g/h", "https://shop.example/a/b/c/d/e/f"),
        ("file:///etc/passwd", "other"),
        ("https://[", "other"),
        ("https://a:99999/", "other"),
        ("", "other"),
    ],
)
def test_a_page_is_its_origin_and_plain_words(address: str, shown: str) -> None:
    assert anonymize_page_url(address) == shown


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("inline", "inline"),
        ("eval", "eval"),
        ("https://evil.example/x?y", "https://evil.example"),
        ("wss://evil.example/", "wss://evil.example"),
        ("chrome-extension://abc/x.js", "other"),
        ("Jane", "other"),
    ],
)
def test_what_was_blocked_is_an_origin_or_a_keyword(address: str, shown: str) -> None:
    assert parse_blocked_origin(address) == shown


@pytest.mark.parametrize(
    "body",
    [
        b" ",
        b"{",
        b"\xff\xfe",
        b"null",
        b"7",
        b'"x"',
        b"[" * 16_000,
        b'{"a":' * 3_000,
        b"1" * 16_000,
        b"[[]]" * 2,
        b'[{"type":"csp-violation","body":7}]',
        b'[{"type":"csp-violation"}]',
        b"{}",
        b'{"csp-report":[]}',
        b'{"csp-report":"x"}',
    ],
)
def test_a_body_that_is_no_report_is_refused_and_asks_no_database(body: bytes) -> None:
    """No database fixture: a query would fail."""
    assert send(body).status_code == 400


def test_headers_decide_before_the_body_is_read() -> None:
    """No database, no parsing: kind, length, encoding, method."""
    assert send(b"[]", "application/json").status_code == 415
    assert send(b"[]", "text/plain").status_code == 415
    assert send(b"[]", **{"Content-Encoding": "gzip"}).status_code == 415
    assert send(b"[]", **{"Transfer-Encoding": "chunked"}).status_code == 411
    assert send(b" " * (MAX_CSP_REPORT_BYTES + 1)).status_code == 413
    assert send(b"[]").status_code == 204
    for length in ("", "-1", "1e3", "٣", "9" * 30):
        assert (
            Client()
            .post(PATH, b"[]", content_type=csp_reports.REPORT_CONTENT_TYPES[0], CONTENT_LENGTH=length)
            .status_code
            == 411
        )
    for method in ("get", "put", "delete", "patch"):
        answer = getattr(Client(), method)(PATH)
        assert answer.status_code == 405
        assert answer["Allow"] == "POST, OPTIONS"


def test_other_origins_may_report() -> None:
    """A merchant's page names the same endpoint; browsers ask for leave first."""
    answer = Client().options(PATH)
    assert answer.status_code == 204
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert answer["Access-Control-Allow-Headers"] == "Content-Type"


def test_an_address_has_so_many_bodies_a_minute() -> None:
    """And other addresses theirs. Counted in memory: a refused one writes nothing."""
    assert [send(b"[]").status_code for _ in range(MAX_REPORTS_PER_ADDRESS + 1)] == [204] * MAX_REPORTS_PER_ADDRESS + [
        429
    ]
    other = Client(REMOTE_ADDR="192.0.2.7")
    assert other.post(PATH, b"[]", content_type="application/reports+json").status_code == 204
    minute = REPORT_RATE_LIMIT.minute
    assert not REPORT_RATE_LIMIT.admits("127.0.0.1", minute)
    assert REPORT_RATE_LIMIT.admits("127.0.0.1", minute + 1)


def test_all_addresses_together_have_a_bound() -> None:
    most = csp_reports.MAX_REPORT_BODIES_PER_MINUTE + csp_reports.MAX_FIRST
    assert sum(REPORT_RATE_LIMIT.admits(f"192.0.{n // 250}.{n % 250}", 1) for n in range(most + 100)) == most


def test_a_few_that_send_all_they_may_keep_out_nobody() -> None:
    """Fifteen addresses would have used up the minute of all."""
    for network in range(20):
        for _ in range(MAX_REPORTS_PER_ADDRESS):
            REPORT_RATE_LIMIT.admits(f"192.0.2.{network}", 1)
    assert not REPORT_RATE_LIMIT.admits("192.0.2.19", 1)
    assert REPORT_RATE_LIMIT.admits("198.51.100.1", 1)
    assert not REPORT_RATE_LIMIT.admits("198.51.100.1", 1)


@pytest.mark.django_db
def test_an_ipv6_network_is_one_address() -> None:
    """Whoever has a line has all of its addresses."""
    codes = [
        Client(REMOTE_ADDR=f"2001:db8::{n:x}")
        .post(PATH, json.dumps([report()]), content_type=REPORT_CONTENT_TYPES[0])
        .status_code
        for n in range(1, MAX_REPORTS_PER_ADDRESS + 2)
    ]
    assert codes == [204] * MAX_REPORTS_PER_ADDRESS + [429]


@pytest.mark.django_db
@pytest.mark.parametrize("each", [1, 5])
def test_a_flood_of_strangers_pushes_out_no_true_report(monkeypatch: pytest.MonkeyPatch, each: int) -> None:
    """Made-up reports are many, newer and each sent more often than the true one; they take each other's place. Also
    where the flood has sent the true one itself, and a shopper's browser sends it again."""
    monkeypatch.setattr(csp_reports, "MAX_STORED_VIOLATIONS", 30)

    def sent_from(address: str, blocked: str) -> None:
        Client(REMOTE_ADDR=address).post(
            PATH, json.dumps([report(blockedURL=blocked)] * each), content_type="application/reports+json"
        )
        REPORT_RATE_LIMIT.counts.clear()

    sent_from("192.0.2.66", "https://evil.example/x.js")
    sent_from("198.51.100.1", "https://evil.example/x.js")
    for number in range(60):
        for _ in range(3):
            sent_from(f"192.0.2.{number % 5}", f"https://made-up-{'abcdefgh'[number % 8]}{number}.example/")
    csp_reports.purge_violations()
    assert PolicyViolation.objects.count() == 30
    assert PolicyViolation.objects.filter(blocked="https://evil.example").exists()


@pytest.mark.django_db
def test_who_reported_is_kept_as_a_digest() -> None:
    """No address of a shopper."""
    Client(REMOTE_ADDR="198.51.100.77").post(PATH, json.dumps([report()]), content_type="application/reports+json")
    assert len(PolicyViolation.objects.get().reporter) == 16
    assert places_of("198.51.100.77") == set()


@pytest.mark.django_db
def test_of_one_body_so_many_reports_count() -> None:
    assert send([report(blockedURL=f"https://e{n}.example") for n in range(30)]).status_code == 204
    assert PolicyViolation.objects.count() == MAX_REPORTS_PER_BODY


@pytest.mark.django_db
def test_old_rows_go_and_of_too_many_those_reported_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """90 days from the last report; made-up ones push out none that happens again and again."""
    send([report(blockedURL="https://old.example")])
    PolicyViolation.objects.update(last_at=clock.real_now() - timedelta(days=91))
    for _ in range(2):
        send([report()])
    send([report(blockedURL=f"https://e{n}.example") for n in range(4)])
    monkeypatch.setattr(csp_reports, "MAX_STORED_VIOLATIONS", 3)
    assert csp_reports.purge_violations() == 3
    assert PolicyViolation.objects.count() == 3
    assert PolicyViolation.objects.get(blocked="https://evil.example").count == 2


@pytest.mark.parametrize("path", ["/v1/widget/frame.html?parent=https://shop.example", "/docs", "/no/such/page"])
def test_pages_of_ours_name_the_endpoint(path: str) -> None:
    """report-uri; over TLS report-to with Reporting-Endpoints, too: over plain HTTP Chromium would report nowhere."""
    answer = Client().get(path)
    assert f"report-uri {PATH}" in answer["Content-Security-Policy"]
    assert "report-to" not in answer["Content-Security-Policy"]
    assert "Reporting-Endpoints" not in answer
    with override_settings(GATEWAY_BASE_URL="https://testserver"):
        answer = Client().get(path)
    assert answer["Reporting-Endpoints"] == f'policy="{PATH}"'
    assert f"report-uri {PATH}" in answer["Content-Security-Policy"]
    assert "report-to policy" in answer["Content-Security-Policy"]
