"""GET /metrics: on loopback, or behind a token of its own (issue: running it)."""

from __future__ import annotations

import re

import pytest
from django.test import Client, RequestFactory, override_settings
from pytest_django.fixtures import Settings

from gateway.api.metrics_view import may_read_figures, serve_metrics
from tests.support.client import Api

pytestmark = pytest.mark.django_db


def counted(text: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} ([0-9.e+]+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_a_payment_is_counted_with_the_time_its_acquirer_took(api: Api) -> None:
    names = (
        'tollhouse_requests_total{operation="payment",status="200"}',
        'tollhouse_acquirer_seconds_count{connector="simulator",outcome="approve"}',
    )
    before = Client().get("/metrics").content.decode()
    assert api.pay().status == 200
    after = Client().get("/metrics").content.decode()
    assert [counted(after, name) - counted(before, name) for name in names] == [1, 1]


def test_nobody_from_outside_reads_the_figures() -> None:
    assert Client().get("/metrics", REMOTE_ADDR="203.0.113.9").status_code == 403
    assert Client().get("/metrics", headers={"X-Forwarded-For": "127.0.0.1"}).status_code == 403


@override_settings(GATEWAY_METRICS_TOKEN="figures")
def test_with_a_token_only_its_bearer_reads_them() -> None:
    assert Client().get("/metrics").status_code == 403
    assert Client().get("/metrics", headers={"Authorization": "Bearer other"}).status_code == 403
    assert Client().get("/metrics", headers={"Authorization": "Bearer figures"}).status_code == 200


@pytest.mark.parametrize(
    ("token", "address", "headers", "may"),
    [
        ("", "127.0.0.1", {}, True),
        ("", "127.8.8.8", {}, True),
        ("", "::1", {}, True),
        ("", "10.0.0.1", {}, False),
        ("", "", {}, False),
        ("", "127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, False),
        ("", "127.0.0.1", {"Forwarded": "for=127.0.0.1"}, False),
        ("", "10.0.0.1", {"Authorization": "Bearer "}, False),
        # With a token in the settings, where a request is from does not matter.
        ("figures", "127.0.0.1", {}, False),
        ("figures", "10.0.0.1", {"Authorization": "Bearer figures"}, True),
        ("figures", "10.0.0.1", {"Authorization": "Bearer figures", "X-Forwarded-For": "10.0.0.2"}, True),
        ("figures", "127.0.0.1", {"Authorization": "Bearer figure"}, False),
        ("figures", "127.0.0.1", {"Authorization": "Bearer figuresX"}, False),
        ("figures", "127.0.0.1", {"Authorization": "Bearer "}, False),
        ("figures", "127.0.0.1", {"Authorization": "Bearer é"}, False),
    ],
)
def test_the_figures_are_for_this_machine_or_for_the_bearer_of_the_token(
    settings: Settings, token: str, address: str, headers: dict[str, str], may: bool
) -> None:
    settings.GATEWAY_METRICS_TOKEN = token
    request = RequestFactory().get("/metrics", headers=headers, REMOTE_ADDR=address)
    assert may_read_figures(request) is may
    answer = serve_metrics(request)
    assert answer.status_code == (200 if may else 403)
    assert (b"tollhouse_" in answer.content, answer.content == b"") == (may, not may)
    if may:
        assert answer["Content-Type"].startswith("text/plain; version=")
        assert answer["Cache-Control"] == "no-store"
