"""Payment links at their borders: the moment of the end, what counts as a payment of it, what is stored and shown."""

from __future__ import annotations

from datetime import timedelta

import pytest

from checkout import payment_links
from checkout.models import Checkout, PaymentLink
from checkout.payment_links import (
    ACTIVE_STATE,
    DEACTIVATED_STATE,
    EXPIRED_STATE,
    MAX_LINK_REQUEST_CHARS,
    PAID_STATE,
    claim_link_payment,
    deactivate_payment_link,
    resolve_link_state,
)
from gateway.core import clock
from gateway.models import Merchant, Payment, Status
from gateway.payments.refusal import RequestRefusedError
from tests.checkout.test_payment_links import create, link_of, open_amount, open_link, open_status, pay_link
from tests.support.client import Api
from tests.support.fixtures import Shop
from tests.support.shopper import DECLINED

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("paid", "most", "closed", "ends_s", "state"),
    [
        (0, 1, False, None, ACTIVE_STATE),
        (1, 1, False, None, PAID_STATE),
        (1, 2, False, None, ACTIVE_STATE),
        (2, 2, False, None, PAID_STATE),
        (9, None, False, None, ACTIVE_STATE),
        (1, 1, True, -1, PAID_STATE),
        (0, 1, True, -1, DEACTIVATED_STATE),
        (0, 1, False, 1, ACTIVE_STATE),
        (0, 1, False, 0, EXPIRED_STATE),
        (0, 1, False, -1, EXPIRED_STATE),
    ],
)
def test_a_link_is_paid_before_it_is_closed_and_closed_before_it_has_ended(
    monkeypatch: pytest.MonkeyPatch, paid: int, most: int | None, closed: bool, ends_s: int | None, state: str
) -> None:
    now = clock.real_now()
    monkeypatch.setattr(payment_links.clock, "merchant_now", lambda _: now)
    row = PaymentLink(
        merchant=Merchant(),
        max_payments=most,
        deactivated_at=now if closed else None,
        expires_at=now + timedelta(seconds=ends_s) if ends_s is not None else None,
    )
    assert resolve_link_state(row, paid) == state


@pytest.mark.parametrize(("later_s", "status"), [(-1, 400), (0, 400), (1, 200)])
def test_a_link_ends_after_it_is_made(shop: Shop, monkeypatch: pytest.MonkeyPatch, later_s: int, status: int) -> None:
    now = clock.real_now().replace(microsecond=0)
    monkeypatch.setattr(payment_links.clock, "merchant_now", lambda _: now)
    answer = create(shop.api, link__expiresAt=f"{now + timedelta(seconds=later_s):%Y-%m-%d %H:%M:%S}")
    assert answer.status == status


@pytest.mark.parametrize(("smallest", "status"), [("499.99", 200), ("500.00", 200), ("500.01", 400)])
def test_the_bounds_of_an_open_amount_may_be_one(api: Api, smallest: str, status: int) -> None:
    assert open_amount(api, link__minAmount=smallest).status == status


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 400)])
def test_what_a_link_stores_is_counted_with_its_names(api: Api, more: int, status: int) -> None:
    stored = link_of(create(api)).request
    room = MAX_LINK_REQUEST_CHARS - sum(len(name) + len(text) for name, text in stored.items())
    lines: dict[str, str] = {}
    for at in range(20):
        name = f"cart__items[{at}]__description"
        size = min(2048, room - len(name.replace("__", ".")))
        if size < 1:
            break
        lines[name] = "a" * size
        room -= len(name.replace("__", ".")) + size
    last = next(reversed(lines))
    if len(lines[last]) == 2048:
        pytest.fail("the last line has no room to grow")
    lines[last] += "a" * (room + more)
    assert create(api, **lines).status == status


def test_a_link_stores_neither_its_own_settings_nor_the_entity(api: Api) -> None:
    row = link_of(create(api, link__description="Order 4711"))
    assert set(row.request) == {"amount", "currency", "paymentType", "merchantTransactionId"}


def test_a_memo_is_kept_for_reports_and_not_told(api: Api) -> None:
    answer = create(api, merchantMemo="for our books")
    assert link_of(answer).request["merchantMemo"] == "for our books"
    assert "for our books" not in str(answer.body)
    assert "for our books" not in str(api.get(f"/v1/paymentLinks/{answer.id}").body)


def test_closing_a_link_refuses_whoever_counted_before(api: Api) -> None:
    """A payment begins in the statement that increments the version that was read."""
    row = link_of(create(api))
    before = row.version
    deactivate_payment_link(row)
    assert row.version == before + 1


def test_links_of_a_merchant_or_channel_that_is_switched_off_are_unknown(shop: Shop) -> None:
    made = create(shop.api).id
    assert open_status(made) == 303
    Merchant.objects.filter(pk=shop.merchant.pk).update(active=False)
    assert open_status(made) == 404


@pytest.mark.parametrize(
    ("status", "free"),
    [
        (Status.STARTED, False),
        (Status.IN_DOUBT, False),
        (Status.DECLINED, True),
    ],
)
def test_what_is_or_may_become_a_payment_takes_the_links_place(api: Api, status: Status, free: bool) -> None:
    made = create(api).id
    open_link(made)
    open_link(made).pay(card__number=DECLINED)
    rows = {one.pk: one for one in Checkout.objects.select_related("merchant")}
    paying = next(one for one in rows.values() if one.payment_id is not None)
    waiting = next(one for one in rows.values() if one.payment_id is None)
    Payment.objects.filter(pk=paying.payment_id).update(status=status)
    if free:
        assert claim_link_payment(waiting) is not None
        return
    with pytest.raises(RequestRefusedError):
        claim_link_payment(waiting)


def test_a_checkout_of_a_closed_link_ends_by_its_merchants_clock(shop: Shop) -> None:
    row = link_of(create(shop.api))
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=timedelta(days=2))
    open_link(row.public_id)
    deactivate_payment_link(row)
    checkout = Checkout.objects.select_related("merchant").get()
    with pytest.raises(RequestRefusedError):
        claim_link_payment(checkout)
    checkout.refresh_from_db()
    assert abs(checkout.expires_at - clock.merchant_now(checkout.merchant)) < timedelta(minutes=10)


def test_a_paid_link_says_so_though_it_is_closed_later(api: Api) -> None:
    made = create(api)
    pay_link(made.id)
    deactivate_payment_link(link_of(made))
    assert api.get(f"/v1/paymentLinks/{made.id}").body["state"] == PAID_STATE
