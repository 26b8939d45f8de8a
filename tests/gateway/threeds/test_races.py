"""Shoppers who do two things at once, with real connections."""

from __future__ import annotations

import pytest

from gateway.models import Authentication, Payment, PaymentEvent
from gateway.timers import registry
from tests.support.fixtures import Shop
from tests.support.threads import at_once, times
from tests.support.threeds import PASS, Shopper, buy

pytestmark = pytest.mark.django_db(transaction=True)


def test_ten_right_codes_at_once_make_one_payment(committed: Shop) -> None:
    """Issue: two tabs and double submit make one payment."""
    api = committed.api_of(committed.open_channel(three_d_secure=True))
    answer = buy(api, PASS)
    redirect = answer.body["redirect"]
    at_once(*times(10, lambda: Shopper(redirect).enter()))
    assert api.read(answer.id).code == "000.100.110"
    events = list(PaymentEvent.objects.order_by("sequence").values_list("event", flat=True))
    assert events == ["begin", "suspend", "resume", "approve"]
    assert Authentication.objects.get().attempts == 1
    assert Payment.objects.get().exchanges.count() == 1


def test_a_code_and_a_cancel_and_a_tick_past_the_deadline_come_to_one_end(committed: Shop) -> None:
    """Whoever is first decides; the others see it."""
    api = committed.api_of(committed.open_channel(three_d_secure=True))
    answer = buy(api, PASS)
    redirect = answer.body["redirect"]
    at_once(
        lambda: Shopper(redirect).enter().status_code,
        lambda: Shopper(redirect).press("cancel").status_code,
        lambda: len(registry.run_all_timers()),
        lambda: Shopper(redirect).open().status_code,
    )
    code = api.read(answer.id).code
    assert code in ("000.100.110", "100.390.124")
    row = Authentication.objects.get()
    assert (row.code == "") is (code == "000.100.110")
    last = PaymentEvent.objects.order_by("sequence").values_list("event", flat=True).last()
    assert last == ("approve" if code == "000.100.110" else "decline")
