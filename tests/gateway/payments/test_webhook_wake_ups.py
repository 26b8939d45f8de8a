"""Whatever writes a notification wakes the timer that delivers it: a merchant hears of it at once and not at the
next tick of a minute.

Source: docs/webhooks.md; gateway.timers.wakeup.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from chargebacks import alerts
from chargebacks.alerts import AlertFacts
from gateway.core import clock
from gateway.models import Notification, Payment
from gateway.payments import store
from gateway.payments.authorization_expiry import expire_authorizations
from gateway.risk.evaluation import RiskOutcome, RiskVerdict
from gateway.risk.risk_store import record_decision
from gateway.timers import wakeup
from tests.chargebacks.test_alerts import BY
from tests.support.client import Answer
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.subscriptions import schedule, store_card

pytestmark = pytest.mark.django_db

Action = Callable[[], object]


def _paid(shop: Shop) -> Payment:
    return Payment.objects.get(pk=shop.api.pay().id)


def _expire(shop: Shop) -> Action:
    shop.api.pay(paymentType="PA", amount="100.00")
    jump(11 * 86_400)
    return expire_authorizations


def _follow(shop: Shop, kind: str) -> Action:
    paid = shop.api.pay()
    return lambda: shop.api.follow(paid.id, kind, "92.00")


def _change_registration(shop: Shop) -> Action:
    stored = store_card(shop.api)
    return lambda: shop.api.delete(f"/v1/registrations/{stored}")


def _schedule(shop: Shop) -> Action:
    stored = store_card(shop.api)
    return lambda: schedule(shop.api, stored)


def _cancel(shop: Shop) -> Action:
    job = schedule(shop.api, store_card(shop.api)).id
    return lambda: shop.api.delete(f"/v1/schedules/{job}")


def _decide(shop: Shop) -> Action:
    paid = _paid(shop)
    verdict = RiskVerdict(outcome=RiskOutcome.ACCEPT, score=7)
    return lambda: record_decision(paid, verdict, None, answer={}, at=clock.real_now())


def _return_transfer(shop: Shop) -> Action:
    paid = shop.api.pay()
    refund = Payment.objects.get(pk=shop.api.follow(paid.id, "RF", "92.00").id)
    return lambda: store.record_returned_transfer(refund, "AC04", at=clock.real_now())


def _alert(shop: Shop) -> Action:
    paid = _paid(shop)
    facts = AlertFacts(provider="ethos", reference="E-1", amount=Decimal("92.00"), currency="EUR")
    return lambda: alerts.record_alert(paid, facts, BY)


STORIES: dict[str, Callable[[Shop], Action]] = {
    "a payment": lambda shop: shop.api.pay,
    "a payment that our own rules refuse": lambda shop: lambda: shop.api.pay(card__number="4444444444444444"),
    "a refund": lambda shop: _follow(shop, "RF"),
    "a chargeback": lambda shop: _follow(shop, "CB"),
    "the end of an authorization": _expire,
    "a stored card": lambda shop: lambda: store_card(shop.api),
    "a deleted card": _change_registration,
    "a subscription": _schedule,
    "the end of a subscription": _cancel,
    "a decision of the risk rules": _decide,
    "a transfer that came back": _return_transfer,
    "an alert of a dispute": _alert,
}


@pytest.mark.parametrize("story", STORIES)
def test_a_notification_wakes_its_timer(shop: Shop, monkeypatch: pytest.MonkeyPatch, story: str) -> None:
    act = STORIES[story](shop)
    woken: list[str] = []
    monkeypatch.setattr(wakeup, "notify_timer", woken.append)
    before = Notification.objects.count()
    done = act()
    assert not isinstance(done, Answer) or done.status in (200, 400), done
    assert Notification.objects.count() > before, done
    assert wakeup.WEBHOOK_TIMER in woken
