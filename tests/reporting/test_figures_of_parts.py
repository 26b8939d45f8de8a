"""Amounts that are paid in parts, in approval rates and in the waterfall: one purchase with the money of all of them.

Cards 4000050000000007 and 5… (approved for half) at the simulator. Source: docs/approval.md; docs/decisions/0129.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from gateway.access.permissions import FULL_ACCESS
from gateway.core import clock
from gateway.models import Channel, Payment, Status
from gateway.payments.shopper_return import expire_due_suspensions
from reporting.approvals.figures import ApprovalPeriod, compute_figures
from reporting.approvals.waterfall import compute_waterfalls
from tests.gateway.personal_data.test_payment_archiving import HOT_DAYS, hot, later
from tests.support import books
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.recovery import recover_after
from tests.support.shopper import DECLINED, Browser, open_checkout

pytestmark = pytest.mark.django_db

HALF = "4000050000000007"
TOTAL = Decimal("92.00")
ONE = (1, TOTAL)


@pytest.fixture(autouse=True)
def collecting(shop: Shop) -> None:
    Channel.objects.filter(pk=shop.channel.pk).update(partial_approvals=Channel.PartialApprovals.COLLECT)


def whole() -> ApprovalPeriod:
    now = clock.real_now()
    return ApprovalPeriod(scope=FULL_ACCESS, since=now - timedelta(days=1), until=now + timedelta(days=1))


def lost() -> dict[str, tuple[int, Decimal]]:
    """What the waterfall lost, by reason; what is settled is in none."""
    (fall,) = compute_waterfalls(whole())
    assert (fall.rows[0].count, fall.rows[0].money) == ONE, "one purchase, however often it was tried"
    return {row.step: (row.count, row.money) for row in fall.rows if row.lost}


def rates() -> tuple[int, int, Decimal, Decimal]:
    """Purchases, approved ones, what they asked for, what was approved."""
    (found,) = compute_figures(whole(), "all")
    money = found.money["EUR"]
    return found.purchases, found.approved_purchases, money.asked, money.approved


def pay_in_parts(shop: Shop, payment_type: str = "DB") -> list[Payment]:
    browser = open_checkout(shop.api, paymentType=payment_type)
    browser.pay(card__number=HALF)
    assert browser.pay().body["state"] == "done"
    return list(Payment.objects.order_by("created_at", "id"))


def hold(shop: Shop) -> Browser:
    browser = open_checkout(shop.api)
    assert browser.pay(card__number=HALF).body["held"]["rest"] == "46.00"
    return browser


def give_back(browser: Browser) -> None:
    assert browser.release().body["state"] == "processing"
    recover_after(2.0)
    assert browser.state().body["state"] == "open"


# --- paid -----------------------------------------------------------------------------------------------------------


def test_what_is_paid_in_two_parts_is_one_approved_purchase_of_the_whole(shop: Shop) -> None:
    pay_in_parts(shop)
    assert lost() == {"unsettled": ONE}
    assert rates() == (1, 1, TOTAL, TOTAL)


def test_the_parts_are_returned_when_the_last_of_them_is(shop: Shop) -> None:
    first, second = pay_in_parts(shop)
    assert shop.api.follow(second.id.hex, "RF", "46.00").code == "000.100.110"
    assert lost() == {"unsettled": ONE}, "the first part was not given back"
    assert shop.api.follow(first.id.hex, "RF", "46.00").code == "000.100.110"
    assert lost() == {"returned": ONE}


@pytest.mark.parametrize("captured", [0, 1])
def test_captures_of_any_part_count(shop: Shop, captured: int) -> None:
    parts = pay_in_parts(shop, "PA")
    assert lost() == {"uncaptured": ONE}
    assert shop.api.follow(parts[captured].id.hex, "CP", "46.00").code == "000.100.110"
    assert lost() == {"unsettled": ONE}


def test_the_parts_are_settled_when_all_are_that_were_not_returned(shop: Shop) -> None:
    first, second = pay_in_parts(shop)
    institute = books.institute()
    where, file = books.settlement(shop, institute), books.file_of(institute)
    books.record(where, file, second, amount=Decimal("46.00"))
    assert lost() == {"unsettled": ONE}, "the first part has not come"
    shop.api.follow(first.id.hex, "RF", "46.00")
    assert lost() == {}
    shop.api.follow(second.id.hex, "RF", "46.00")
    assert lost() == {"returned": ONE}


# --- lost -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tried", [False, True], ids=["no other card", "another card declined"])
def test_a_rest_that_was_lost_is_lost_at_its_own_step(shop: Shop, tried: bool) -> None:
    browser = hold(shop)
    if tried:
        browser.pay(card__number=DECLINED)
        assert rates() == (1, 0, TOTAL, 0), "asked for was the whole"
    assert lost() == {"open": ONE}
    give_back(browser)
    assert lost() == {"rest": ONE}
    assert rates() == (1, 0, TOTAL, 0)


def test_a_rest_that_expired_is_lost_at_its_own_step(shop: Shop) -> None:
    hold(shop)
    jump(16 * 60)
    expire_due_suspensions()
    recover_after(2.0)
    assert Payment.objects.get().status == Status.DECLINED
    assert lost() == {"rest": ONE}
    assert rates() == (1, 0, TOTAL, 0)


def test_several_parts_that_were_given_back_are_one_purchase_that_was_lost(shop: Shop) -> None:
    browser = hold(shop)
    browser.pay(card__number="5200050000000002", paymentBrand="MASTER")
    give_back(browser)
    assert lost() == {"rest": ONE}
    assert rates() == (1, 0, TOTAL, 0)


def test_what_was_paid_otherwise_after_the_parts_were_given_back_is_not_lost(shop: Shop) -> None:
    browser = hold(shop)
    give_back(browser)
    browser.pay(card__number=DECLINED)
    assert lost() == {"funds": ONE}, "the whole was asked for, and declined"
    browser.pay()
    assert lost() == {"unsettled": ONE}
    assert rates() == (1, 1, TOTAL, TOTAL)


def test_a_part_that_is_not_taken_is_too_little_money_as_before(shop: Shop) -> None:
    Channel.objects.update(partial_approvals=Channel.PartialApprovals.DECLINE)
    open_checkout(shop.api).pay(card__number=HALF)
    assert lost() == {"funds": ONE}


# --- archived -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_lost", [False, True])
def test_figures_of_parts_do_not_change_when_they_are_archived(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, settings: Any, is_lost: bool
) -> None:
    settings.GATEWAY_PAYMENT_HOT_DAYS = HOT_DAYS
    if is_lost:
        browser = hold(shop)
        browser.pay(card__number=DECLINED)
        give_back(browser)
    else:
        for one in pay_in_parts(shop):
            assert shop.api.follow(one.id.hex, "RF", "46.00").code == "000.100.110"
    before = (lost(), rates())
    while later(monkeypatch):
        pass
    assert hot() == set()
    assert (lost(), rates()) == before
