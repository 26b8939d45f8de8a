"""Payments that no line settled in time are reported: on the first page, and by mail once a day. Source: decision
0042."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core import mail
from django.core.cache import cache

from chargebacks.models import Contact
from gateway.core import clock
from reporting.models import ClearingInstitute
from reporting.settlement import unsettled_reminders
from reporting.settlement.models import MissingSettlement
from tests.support import settlement
from tests.support.clock import jump
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.settlement import csv, line, payment_of, take_in

pytestmark = pytest.mark.django_db
FOUR_DAYS = 4 * 86_400


@pytest.fixture
def of(db: None) -> ClearingInstitute:
    return settlement.institute(name="Acme Clearing", settles_within_days=2)


@pytest.fixture
def contact(shop: Shop) -> Contact:
    return Contact.objects.create(merchant=shop.merchant, email="books@shop.example")


def now_owed() -> int:
    return sum(MissingSettlement.objects.values_list("payments", flat=True))


def test_a_merchant_is_mailed_once_a_day_of_what_is_missed(shop: Shop, of: ClearingInstitute, contact: Contact) -> None:
    """Not before it is due; the next day again, while it is missed."""
    shop.api.pay()
    shop.api.pay(amount="8.00")
    assert unsettled_reminders.remind_of_unsettled_payments() == 0
    jump(FOUR_DAYS)
    assert [unsettled_reminders.remind_of_unsettled_payments(), unsettled_reminders.remind_of_unsettled_payments()] == [
        1,
        0,
    ]
    [told] = mail.outbox
    assert (told.subject, told.bcc) == ("2 payments not settled by Acme Clearing", ["books@shop.example"])
    assert "100.00 EUR" in told.body
    assert "?list=missing" in told.body
    jump(86_400)
    assert unsettled_reminders.remind_of_unsettled_payments() == 1
    assert (len(mail.outbox), now_owed()) == (2, 2)


def test_what_is_settled_is_missed_no_more(shop: Shop, of: ClearingInstitute, contact: Contact) -> None:
    paid = payment_of(shop.api.pay().id)
    jump(FOUR_DAYS)
    unsettled_reminders.remind_of_unsettled_payments()
    assert now_owed() == 1
    take_in(csv([line(paid)]), of)
    assert (unsettled_reminders.remind_of_unsettled_payments(), now_owed()) == (0, 0)


def test_each_merchant_hears_of_their_own_and_nobody_without_an_address(
    shop: Shop, stranger: Shop, of: ClearingInstitute, contact: Contact
) -> None:
    shop.api.pay()
    stranger.api.pay()
    jump(FOUR_DAYS)
    assert unsettled_reminders.remind_of_unsettled_payments() == 2
    assert [told.subject for told in mail.outbox] == ["1 payment not settled by Acme Clearing"]
    assert set(MissingSettlement.objects.values_list("merchant", "payments", "sent_to")) == {
        (shop.merchant.pk, 1, "books@shop.example"),
        (stranger.merchant.pk, 1, ""),
    }


def test_a_mail_server_that_is_away_is_tried_again(
    shop: Shop, of: ClearingInstitute, contact: Contact, settings: Any
) -> None:
    shop.api.pay()
    jump(FOUR_DAYS)
    settings.EMAIL_BACKEND = "nowhere.at.all.Backend"
    assert unsettled_reminders.remind_of_unsettled_payments() == 0
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert unsettled_reminders.remind_of_unsettled_payments() == 0  # somebody may be sending it
    MissingSettlement.objects.update(lease_until=clock.real_now())
    assert unsettled_reminders.remind_of_unsettled_payments() == 1
    assert len(mail.outbox) == 1


def test_the_first_page_says_how_many_of_the_users_own(shop: Shop, stranger: Shop, of: ClearingInstitute) -> None:
    take_in(csv([line(payment_of(shop.api.pay().id))]), of)
    take_in(csv([line(payment_of(stranger.api.pay().id))]), of, "other.csv")
    for _ in range(3):
        shop.api.pay()
    stranger.api.pay()
    jump(FOUR_DAYS)
    unsettled_reminders.remind_of_unsettled_payments()
    cache.clear()
    page = " ".join(signed_in(person("clara", "clerk", shop.merchant)).get("/admin/").content.decode().split())
    assert re.search(r"<dt>payments not settled</dt><dd[^>]*><a[^>]*>3</a>", page)


def test_all_merchants_are_looked_at_in_one_statement(shop: Shop, stranger: Shop, of: ClearingInstitute) -> None:
    shop.api.pay()
    stranger.api.pay()
    jump(FOUR_DAYS)
    with statements() as seen:
        unsettled_reminders.remind_of_unsettled_payments()
    assert sum("count(*) AS many" in text for text in seen) == 1
