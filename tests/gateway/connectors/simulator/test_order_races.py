"""Two at once at the bank: exactly one decision, one payment. Real threads, real connections.

Source: issue, Asynchronous methods: two tabs, back button and double submit make one payment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.test import Client

from gateway.connectors.simulator import orders
from gateway.core import clock
from gateway.models import AcquirerExchange, Merchant, Payment, PaymentEvent, SimulatedOrder, Status, Suspension
from gateway.payments import shopper_return
from tests.support.client import Answer
from tests.support.fixtures import Shop
from tests.support.threads import at_once

FINAL = {
    SimulatedOrder.State.APPROVED: (Status.APPROVED, "000.100.110"),
    SimulatedOrder.State.DECLINED: (Status.DECLINED, "100.395.102"),
    SimulatedOrder.State.CANCELLED: (Status.DECLINED, "100.396.101"),
    SimulatedOrder.State.EXPIRED: (Status.DECLINED, "100.396.103"),
}


def pay(shop: Shop) -> Answer:
    return shop.api.post(
        "/v1/payments",
        {
            "amount": "92.00",
            "currency": "EUR",
            "paymentBrand": "ONLINETRANSFER",
            "paymentType": "DB",
            "shopperResultUrl": "https://shop.example/result",
        },
    )


def shopper(answer: Answer, outcome: str) -> Callable[[], int]:
    """Decides and follows the way back to the shop, in a browser of its own."""
    path = urlsplit(answer.body["redirect"]["url"]).path

    def decide() -> int:
        http = Client()
        decided: Any = http.post(path, {"outcome": outcome})
        back: Any = http.get(decided.headers["Location"])
        return int(back.status_code)

    return decide


def agrees(answer: Answer) -> tuple[str, str]:
    """The order's state and the payment's code, which have to tell the same; events without a gap."""
    order, payment = SimulatedOrder.objects.get(pk=answer.id), Payment.objects.get(pk=answer.id)
    assert (payment.status, payment.result_code) == FINAL[SimulatedOrder.State(order.state)]
    events = list(PaymentEvent.objects.filter(payment=answer.id).order_by("sequence"))
    assert [event.sequence for event in events] == [1, 2, 3]
    return order.state, payment.result_code


def test_a_double_submit_makes_one_payment(committed: Shop) -> None:
    for _ in range(3):
        answer = pay(committed)
        assert set(at_once(*[shopper(answer, "approve")] * 4)) == {303}
        assert agrees(answer) == ("APPROVED", "000.100.110")


def test_of_two_tabs_that_decide_differently_one_wins(committed: Shop) -> None:
    seen: Counter[str] = Counter()
    for _ in range(5):
        answer = pay(committed)
        at_once(shopper(answer, "approve"), shopper(answer, "cancel"), shopper(answer, "decline"))
        seen[agrees(answer)[0]] += 1
    assert seen.total() == 5


def test_an_approval_at_the_deadline_is_paid_or_ended_and_never_both(committed: Shop) -> None:
    """Decisions, section 5: with the bank's word either way."""
    for _ in range(5):
        answer = pay(committed)
        Merchant.objects.update(clock_offset=timedelta(seconds=1801))
        at_once(shopper(answer, "approve"), lambda: shopper_return.expire_due_suspensions())
        order = SimulatedOrder.objects.get(pk=answer.id)
        if Payment.objects.get(pk=answer.id).status == Status.PENDING:
            # Approved between the last question and the taking back: the bank did not take it back.
            assert order.state == "APPROVED"
            Suspension.objects.update(lease_until=None)
            shopper_return.expire_due_suspensions(now=clock.real_now() + timedelta(minutes=5))
        assert agrees(answer)[0] in ("APPROVED", "EXPIRED")
        Merchant.objects.update(clock_offset=timedelta(0))


def test_two_ticks_end_a_payment_once(committed: Shop) -> None:
    answer = pay(committed)
    Merchant.objects.update(clock_offset=timedelta(seconds=1801))
    assert sum(at_once(*[lambda: shopper_return.expire_due_suspensions()] * 3)) == 1
    assert agrees(answer) == ("EXPIRED", "100.396.103")
    assert AcquirerExchange.objects.filter(payment=answer.id, kind="void").count() == 1


def test_a_question_asked_twice_opens_one_order(committed: Shop) -> None:
    from gateway.payments.process import build_acquirer_request

    payment = Payment.objects.get(pk=pay(committed).id)
    SimulatedOrder.objects.all().delete()
    handles = at_once(
        *[lambda: orders.open_simulated_order(build_acquirer_request(payment, None, {}), orders.BANK_ORDER).handle] * 4
    )
    assert len(set(handles)) == 1


def test_an_order_that_was_taken_back_before_it_came_is_never_open(committed: Shop) -> None:
    from gateway.payments.process import build_acquirer_request

    payment = Payment.objects.get(pk=pay(committed).id)
    SimulatedOrder.objects.all().delete()
    asked = build_acquirer_request(payment, None, {})
    assert orders.void_simulated_order(asked).state == "EXPIRED"
    assert orders.open_simulated_order(asked, orders.BANK_ORDER).state == "EXPIRED"
    assert orders.void_simulated_order(asked).state == "EXPIRED"
