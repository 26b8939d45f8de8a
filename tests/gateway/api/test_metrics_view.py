"""GET /metrics: on loopback, or behind a token of its own (issue: running it)."""

from __future__ import annotations

import re

import pytest
from django.test import Client, override_settings

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
