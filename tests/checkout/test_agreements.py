"""Checkouts that draw on an agreement with limits: the checkout's guard and the agreement's count, both or neither.

Source: Part B, Card on file; docs/decisions/0028.
"""

from __future__ import annotations

from collections import Counter

import pytest

from checkout.models import Checkout
from gateway.models import Agreement, Payment, Status
from tests.gateway.payments.test_agreements import initial, instruction
from tests.support.client import Api
from tests.support.fixtures import Shop
from tests.support.shopper import Browser, open_checkout, result_of
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db


def agreed(api: Api, number: int) -> str:
    """The reference of an agreement about ``number`` authorizations, the first of which was made."""
    answer = initial(api, type="INSTALLMENT", numberOfInstallments=str(number))
    return str(answer.body["standingInstruction"]["initialTransactionId"])


def drawing(api: Api, reference: str) -> Browser:
    sent = instruction(mode="REPEATED", source="MIT", type="INSTALLMENT", initialTransactionId=reference)
    return open_checkout(api, **{name.replace(".", "__"): value for name, value in sent.items()})


def test_a_checkout_draws_on_an_agreement_and_is_held_to_it(api: Api) -> None:
    reference = agreed(api, 3)
    for code in ("000.100.110", "000.100.110", "700.500.001"):
        browser = drawing(api, reference)
        browser.pay(card__cvv=None)
        assert result_of(api, browser).code == code
    assert Agreement.objects.get().follow_ups == 2
    refused = Payment.objects.order_by("created_at", "id").last()
    assert refused is not None
    assert refused.status == Status.DECLINED


@pytest.mark.django_db(transaction=True)
def test_of_many_checkouts_at_once_the_last_authorizations_go_to_as_many(committed: Shop) -> None:
    """House: exact under concurrency; who came too late has a checkout that names its own payment."""
    for _ in range(3):
        reference = agreed(committed.api, 3)
        browsers = [drawing(committed.api, reference) for _ in range(5)]
        at_once(*[lambda browser=browser: Browser(browser.checkout).pay(card__cvv=None) for browser in browsers])
        found = [result_of(committed.api, browser) for browser in browsers]
        assert Counter(answer.code for answer in found) == {"000.100.110": 2, "700.500.001": 3}
        rows = Checkout.objects.filter(pk__in=[browser.checkout[:32].lower() for browser in browsers])
        assert {row.attempts for row in rows} == {1}
        assert Agreement.objects.order_by("-id")[0].follow_ups == 2


@pytest.mark.django_db(transaction=True)
def test_tabs_of_one_checkout_draw_once(committed: Shop) -> None:
    """Both guards at once: one payment of the checkout, one authorization of the agreement."""
    for _ in range(3):
        browser = drawing(committed.api, agreed(committed.api, 9))
        before = Payment.objects.count()
        at_once(*[lambda browser=browser: Browser(browser.checkout).pay(card__cvv=None)] * 4)
        assert Payment.objects.count() == before + 1
        assert Agreement.objects.order_by("-id")[0].follow_ups == 1
