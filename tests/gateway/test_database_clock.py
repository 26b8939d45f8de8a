"""Leases are the database's time, and a machine whose clock differs too much from it works no timers."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import Client

from checkout import result_calls
from gateway.background import queue
from gateway.backoffice.payments import payment_export
from gateway.connectors.simulator import orders
from gateway.core import clock
from gateway.db import database_clock
from gateway.models import SimulatedOrder, TimerRun
from gateway.notifications import claims
from gateway.notifications.fan_out import fan_out_notifications
from gateway.payments import shopper_return, webhook_payloads
from gateway.timers import registry
from reporting.settlement import files, intake
from reporting.settlement.models import SettlementFile
from tests.support.database import database_ahead
from tests.support.fixtures import BY, Shop
from tests.support.office import person
from tests.support.settlement import csv, institute, line, payment_of
from tests.support.shopper import open_checkout
from tests.support.webhook_delivery import register
from tests.support.webhooks import hooked

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]
LONG = timedelta(minutes=20)
"""Longer than any lease."""
Claim = Callable[[], int]


@pytest.fixture(autouse=True)
def compared_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_clock._last, "found", None)


def a_webhook(shop: Shop) -> Claim:
    with hooked() as hook:
        register(shop, hook)
    shop.api.pay()
    fan_out_notifications(webhook_payloads.build_webhook_payloads)
    return lambda: len(claims.claim_due_webhooks({}, room=8, limit=8))


def a_suspension(shop: Shop) -> Claim:
    more = {"paymentBrand": "ONLINETRANSFER", "paymentType": "DB", "shopperResultUrl": "https://shop.example/result"}
    shop.api.post("/v1/payments", {"amount": "92.00", "currency": "EUR", **more})
    late = clock.real_now() + timedelta(days=1)
    return lambda: len(shopper_return.claim_due_suspensions(10, late))


def a_result_call(shop: Shop) -> Claim:
    assert open_checkout(shop.api, shopperResultUrl="https://shop.example/result").pay().status == 200
    late = clock.real_now() + timedelta(minutes=29)
    return lambda: len(result_calls.claim_due_result_calls(late))


def background_work(shop: Shop) -> Claim:
    parameters = {"format": "csv", "filters": {}, "asked": {"shape": "", "value": ""}}
    owner = person("clara", "clerk", shop.merchant).pk
    queue.enqueue_work(payment_export.PAYMENT_EXPORT, "payments", parameters, owner=owner, by=BY)
    return lambda: int(queue._claim_work(set(), {}) is not None)


def a_settlement_file(shop: Shop) -> Claim:
    content = io.BytesIO(csv([line(payment_of(shop.api.pay().id))]))
    upload = SettlementFile.Source.UPLOAD
    file = files.receive_file(content, name="a.csv", institute=institute(), by=BY, source=upload)
    return lambda: int(intake._lease_file(file.pk) is not None)


@pytest.mark.parametrize("what", [a_webhook, a_suspension, a_result_call, background_work, a_settlement_file])
def test_a_lease_ends_by_the_databases_clock_alone(
    shop: Shop, what: Callable[[Shop], Claim], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker whose machine is a day ahead takes nothing from another one's hands."""
    claim = what(shop)
    assert claim() == 1
    right = clock.real_now
    monkeypatch.setattr(clock, "real_now", lambda: right() + timedelta(days=1))
    assert claim() == 0
    monkeypatch.setattr(clock, "real_now", right)
    with database_ahead(LONG):
        assert claim() == 1


_COMPARED = re.compile(r"lease_until[^,\n]*(?:<=?|__lte?=)\s*(?P<value>[^\n]+)")
_WRITTEN = re.compile(r"lease_until\"?\s*[=:](?!=)\s*(?P<value>[^\n]+)")


def test_no_lease_is_compared_with_or_written_by_a_machines_clock() -> None:
    """``now``, ``mine`` and ``until`` are values that the same function read from the database."""
    bad = []
    for name in ("gateway", "reporting", "chargebacks", "checkout"):
        for path in sorted((ROOT / name).rglob("*.py")):
            if "migrations" in path.parts:
                continue
            text = path.read_text(encoding="utf-8")
            for found in [*_COMPARED.finditer(text), *_WRITTEN.finditer(text)]:
                value = found["value"]
                if "%(now)" in value or "real_now" in value or "clock." in value:
                    bad.append(f"{path.relative_to(ROOT)}: {found[0]}")
    assert bad == []


def test_this_machines_clock_is_the_databases(shop: Shop) -> None:
    assert not database_clock.measure_clock_difference().is_too_large()
    answer = Client().get("/health/ready").json()
    assert answer["checks"]["clock"] == "ok"


def test_a_merchants_moved_clock_is_no_difference(shop: Shop) -> None:
    shop.api.post("/v1/test/clock", {"advance": "86400"})
    assert not database_clock.measure_clock_difference().is_too_large()


@pytest.mark.parametrize("by", [timedelta(seconds=15), timedelta(seconds=-15)])
def test_a_machine_whose_clock_is_wrong_is_not_ready_and_runs_no_timer(shop: Shop, by: timedelta) -> None:
    with database_ahead(by):
        found = database_clock.measure_clock_difference()
        assert abs(found.seconds + by.total_seconds()) < 1
        answer = Client().get("/health/ready")
        assert (answer.status_code, answer.json()["checks"]["database"]) == (503, "ok")
        assert "differs from the database's by" in answer.json()["checks"]["clock"]
        registry._sums.clear()
        assert registry.run_timer_now(orders.TIMER.name) is None
    row = TimerRun.objects.get(name=orders.TIMER.name)
    assert (row.failures, row.last_failure) == (1, "WrongClockError")
    assert not SimulatedOrder.objects.exists()


def test_the_difference_is_measured_again_after_a_minute_and_allowed_by_a_setting(
    shop: Shop, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    database_clock.require_right_clock()
    with database_ahead(timedelta(seconds=15)):
        database_clock.require_right_clock()
        monkeypatch.setattr(database_clock, "CLOCK_COMPARISON_INTERVAL_S", 0.0)
        with pytest.raises(database_clock.WrongClockError, match=r"allowed: 1\.0"):
            database_clock.require_right_clock()
        for allowed in (16.0, 0.0):
            settings.GATEWAY_MAX_CLOCK_DIFFERENCE_S = allowed
            database_clock.require_right_clock()
