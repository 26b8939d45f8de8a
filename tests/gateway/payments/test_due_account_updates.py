"""Which stored cards the files of the account updater ask about: each condition by itself. Source: decision 0135."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models import Model

from gateway.core import clock
from gateway.models import AccountUpdate, AccountUpdateFile, Agreement, Channel, Merchant, Registration
from gateway.payments.account_update_batch import list_due_cards
from tests.support.client import Api
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
CARD = {
    "paymentBrand": "VISA", "card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2094",
    "card.holder": "Jane Jones",
}  # fmt: skip
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def store(api: Api) -> Registration:
    stored = api.post("/v1/registrations", CARD)
    assert stored.status == 200, stored
    return Registration.objects.get(pk=stored.id)


def change(row: Model, **values: Any) -> None:
    type(row)._default_manager.filter(pk=row.pk).update(**values)


@pytest.fixture
def card(shop: Shop, stranger: Shop) -> Registration:
    """A stored card that is due, alone: others are of channels without the updater, of both merchants."""
    Channel.objects.filter(pk=shop.channel.pk).update(account_updater=True)
    for other in (shop.api_of(shop.open_channel("without")), stranger.api):
        store(other)
    return store(shop.api)


def is_due(card: Registration) -> bool:
    found = list_due_cards()
    assert found in ([], [card.pk]), "another one is due"
    return found == [card.pk]


def now_of(card: Registration) -> datetime:
    return clock.merchant_now(Merchant.objects.get(pk=card.merchant_id))


@pytest.mark.parametrize(
    ("values", "due"),
    [
        ({}, True),
        ({"means": "bankAccount"}, False),
        ({"means_sealed": None}, False),
        ({"means_sealed": None, "status": "DELETED"}, False),
        ({"account_update": "CLOSED"}, False),
        ({"account_update": "CONTACT_HOLDER"}, True),
        ({"request": {"accountUpdater": "false"}}, False),
        ({"request": {"accountUpdater": "true"}}, True),
        ({"details": {"card": {"numberType": "DPAN"}}}, False),
        ({"details": {"card": {"numberType": "FPAN"}}}, True),
        ({"details": {"card": {}, "wallet1": {}}}, False),
        ({"details": {"card": {}, "wallet2": {}}}, False),
        ({"details": {"card": {}, "wallet3": {}}}, False),
    ],
    ids=str,
)
def test_what_is_no_card_to_ask_about_is_not_asked_about(card: Registration, values: dict[str, Any], due: bool) -> None:
    assert is_due(card)
    change(card, **values)
    assert is_due(card) is due


@pytest.mark.parametrize("values", [{"active": False}, {"account_updater": False}], ids=str)
def test_a_channel_that_is_off_or_wants_no_updates_has_none(card: Registration, values: dict[str, bool]) -> None:
    change(card.channel, **values)
    assert not is_due(card)


@pytest.mark.parametrize(("left", "due"), [(-HOUR, False), (HOUR, True), (None, True)])
def test_a_card_past_its_retention_is_left_alone(card: Registration, left: timedelta | None, due: bool) -> None:
    change(card, retain_until=None if left is None else now_of(card) + left)
    assert is_due(card) is due


@pytest.mark.parametrize(
    ("created", "updated", "agreement", "due"),
    [
        (399 * DAY, None, False, True),
        (401 * DAY, None, False, False),
        (900 * DAY, 399 * DAY, False, True),
        (900 * DAY, 401 * DAY, False, False),
        (900 * DAY, None, True, True),
    ],
)
def test_a_card_that_nobody_charges_is_asked_about_for_400_days(
    card: Registration, created: timedelta, updated: timedelta | None, agreement: bool, due: bool
) -> None:
    """An agreement of another card says nothing of this one."""
    now = now_of(card)
    change(card, created_at=now - created, updated_at=None if updated is None else now - updated)
    other = Registration.objects.exclude(pk=card.pk).first()
    assert other is not None
    for one in (other, card)[: 1 + agreement]:
        Agreement.objects.create(
            id=one.payment,
            merchant=one.merchant,
            channel=one.channel,
            reference="r",
            registration=one.pk,
            created_at=now,
        )
    assert is_due(card) is due


@pytest.mark.parametrize("ahead", [timedelta(0), 50 * DAY, -50 * DAY])
@pytest.mark.parametrize(
    ("status", "in_file", "ago", "due"),
    [
        ("WAITING", True, 90 * DAY, False),
        ("WAITING", False, 31 * DAY, True),
        ("WAITING", False, 29 * DAY, False),
        ("NO_CHANGE", True, 29 * DAY, False),
        ("NO_CHANGE", True, 31 * DAY, True),
        ("UNANSWERED", True, 23 * HOUR, False),
        ("UNANSWERED", True, 25 * HOUR, True),
        ("SUPERSEDED", True, HOUR, True),
    ],
)
def test_a_card_is_asked_about_again_after_its_time_by_the_merchants_clock(
    card: Registration, ahead: timedelta, status: str, in_file: bool, ago: timedelta, due: bool
) -> None:
    change(card.merchant, clock_offset=ahead)
    now = now_of(card)
    change(card, created_at=now - DAY)
    ask(card, status, now - ago, in_file=in_file)
    assert is_due(card) is due


@pytest.mark.parametrize(
    ("expires_in", "ago", "due"),
    [(30 * DAY, 6 * DAY, False), (30 * DAY, 8 * DAY, True), (95 * DAY, 8 * DAY, False), (95 * DAY, 31 * DAY, True)],
)
def test_a_card_that_expires_soon_is_asked_about_every_week(
    card: Registration, expires_in: timedelta, ago: timedelta, due: bool
) -> None:
    now = now_of(card)
    end = now + expires_in
    change(card, details={"card": {"expiryMonth": f"{end:%m}", "expiryYear": f"{end:%Y}"}})
    ask(card, "NO_CHANGE", now - ago, in_file=True)
    assert is_due(card) is due


def test_a_question_about_another_card_keeps_none_back(card: Registration, shop: Shop) -> None:
    other = store(shop.api)
    ask(other, "WAITING", now_of(card), in_file=True)
    assert is_due(card)


def ask(card: Registration, status: str, at: datetime, *, in_file: bool) -> None:
    real = clock.real_now()
    file = AccountUpdateFile.objects.create(cards=1, created_at=real, due_at=real) if in_file else None
    AccountUpdate.objects.create(registration=card, file=file, sequence=1, status=status, asked_at=at)
