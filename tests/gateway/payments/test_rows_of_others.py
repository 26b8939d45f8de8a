"""What is done to one payment, registration, schedule or checkout changes no row of another: not of the same merchant,
not of another one. A condition that is missing in a statement shows only where others are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from checkout.models import Checkout
from gateway.models import Channel, Payment, Suspension, ThreeDSecureConfiguration
from gateway.payments.shopper_return import expire_due_suspensions
from tests.support.client import Answer, Api
from tests.support.database import others_stay
from tests.support.fixtures import Shop, open_division, open_shop
from tests.support.redirected_shopper import Visitor, order
from tests.support.shopper import open_checkout, result_of
from tests.support.subscriptions import started, store_card
from tests.support.threeds import PASS, Shopper, buy

BANK = "WEBWALLET"
PAID, PENDING, DECLINED = "000.100.110", "000.200.000", "800.100.153"
EARLIER = datetime(2020, 1, 1, tzinfo=UTC)
DECLINED_CARD = "4000015300000007"
LOW_VALUE = {"lowValue": True, "askedAt": "authorization"}
SHARED = ("gateway_accesstoken", "gateway_timer", "django_session", "gateway_requestcount")
"""Tables that a request of anybody may change: when a token was used last, counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A merchant's channels: one without 3-D Secure, one that exempts small amounts from it."""

    shop: Shop
    plain: Api
    exempting: Api
    channel: Channel


def open_place(shop: Shop) -> Place:
    channel = shop.open_channel(f"{shop.merchant.name}: exempting", three_d_secure=True, exemptions=LOW_VALUE)
    ThreeDSecureConfiguration.objects.create(channel=channel, on_soft_decline="challenge")
    return Place(shop=shop, plain=shop.api, exempting=shop.api_of(channel), channel=channel)


def live_there(place: Place) -> None:
    """Something of every kind, in many states."""
    api = place.plain
    api.follow(api.pay().id, "RF", "10.00")
    api.follow(api.pay(paymentType="PA").id, "CP", "20.00")
    api.pay(paymentType="PA")
    api.pay(card__number=DECLINED_CARD)
    order(api, BANK)
    started(api, store_card(api))
    open_checkout(api)
    assert buy(place.exempting, "5200000000000007", amount="12.00").code == PAID
    assert buy(place.exempting, PASS, amount="92.00").code == PENDING


@pytest.fixture
def place(db: None) -> Place:
    division = open_division()
    own, other = (open_place(open_shop(division, name)) for name in ("Own", "Other"))
    live_there(own)
    live_there(other)
    return own


Step = tuple[list[str], Callable[[], Any]]
"""The ids whose rows may change, and what is done."""


def pay(place: Place) -> Step:
    return [], lambda: place.plain.pay()


def capture(place: Place) -> Step:
    payment = place.plain.pay(paymentType="PA").id
    return [payment], lambda: place.plain.follow(payment, "CP", "50.00")


def refund(place: Place) -> Step:
    payment = place.plain.pay().id
    return [payment], lambda: place.plain.follow(payment, "RF", "50.00")


def reverse(place: Place) -> Step:
    payment = place.plain.pay(paymentType="PA").id
    return [payment], lambda: place.plain.follow(payment, "RV")


def decline(place: Place) -> Step:
    return [], lambda: place.plain.pay(card__number=DECLINED_CARD)


def decide_at_a_wallet(place: Place) -> Step:
    waiting = order(place.plain, BANK)

    def act() -> Answer:
        Visitor.of(waiting).decide("approve")
        return place.plain.read(waiting.id)

    return [waiting.id], act


def pass_a_challenge(place: Place) -> Step:
    """Which sets the count of its card back."""
    counted = buy(place.exempting, PASS, amount="12.00").id
    waiting = buy(place.exempting, PASS, amount="92.00")

    def act() -> Answer:
        Shopper.of(waiting).enter()
        return place.exempting.read(waiting.id)

    return [waiting.id, key_of_card(counted)], act


def key_of_card(payment: str) -> str:
    """As a count of the card names it."""
    return bytes(Payment.objects.get(pk=payment).means_fingerprint or b"").hex()


def exempt(place: Place) -> Step:
    first = buy(place.exempting, PASS, amount="12.00").id
    return [key_of_card(first)], lambda: buy(place.exempting, PASS, amount="13.00")


def exempt_and_decline(place: Place) -> Step:
    first = buy(place.exempting, DECLINED_CARD, amount="12.00").id
    return [key_of_card(first)], lambda: buy(place.exempting, DECLINED_CARD, amount="13.00")


def register(place: Place) -> Step:
    return [], lambda: store_card(place.plain)


def pay_by_registration(place: Place) -> Step:
    registration = store_card(place.plain)
    fields = {"amount": "9.00", "currency": "EUR", "paymentType": "DB"}
    return [registration], lambda: place.plain.post(f"/v1/registrations/{registration}/payments", fields)


def deregister(place: Place) -> Step:
    registration = store_card(place.plain)
    return [registration], lambda: place.plain.delete(f"/v1/registrations/{registration}")


def cancel_a_schedule(place: Place) -> Step:
    registration = store_card(place.plain)
    schedule = started(place.plain, registration).id
    return [schedule, registration], lambda: place.plain.delete(f"/v1/schedules/{schedule}")


def pay_a_checkout(place: Place) -> Step:
    browser = open_checkout(place.plain)

    def act() -> Answer:
        assert browser.pay().status in (200, 303), browser
        return result_of(place.plain, browser)

    return [browser.checkout, Checkout.objects.latest("created_at").pk.hex], act


def end_a_deadline(place: Place) -> Step:
    """A shopper who decided and did not come back: the tick asks the bank."""
    waiting = order(place.plain, BANK)
    Visitor.of(waiting).press("approve")
    Suspension.objects.filter(payment=waiting.id).update(deadline=EARLIER)

    def act() -> Answer:
        assert expire_due_suspensions() == 1
        return place.plain.read(waiting.id)

    return [waiting.id], act


OPERATIONS = [
    pay, capture, refund, reverse, decline, decide_at_a_wallet, pass_a_challenge, exempt, exempt_and_decline, register,
    pay_by_registration, deregister, cancel_a_schedule, pay_a_checkout, end_a_deadline,
]  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.__name__)
def test_nothing_of_another_changes(place: Place, operation: Callable[[Place], Step]) -> None:
    own, act = operation(place)
    with others_stay(*own, apart_from=SHARED):
        answer = act()
    if isinstance(answer, Answer):
        assert answer.status in (200, 400), answer
        assert answer.code in (PAID, DECLINED, "000.000.000", "000.100.112"), answer
