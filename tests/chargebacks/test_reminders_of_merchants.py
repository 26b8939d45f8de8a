"""A reminder is one merchant's: their contacts, their clock, their time zone; and only while it is of use.

Source: docs/chargebacks.md.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail

from chargebacks import reminders
from chargebacks.models import Chargeback, Contact, Reminder
from gateway.core import clock
from gateway.models import Merchant
from tests.chargebacks.test_cases import dispute
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db


def at_the_last_day(shop: Shop, case: Chargeback) -> None:
    """A minute after the reminder of the day before the deadline was due."""
    ahead = case.due_at - timedelta(days=1) - clock.real_now() + timedelta(minutes=1)
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    Reminder.objects.filter(case=case).exclude(due_at=case.due_at - timedelta(days=1)).delete()


def test_each_merchant_is_reminded_by_their_own_clock_at_their_own_addresses(shop: Shop, stranger: Shop) -> None:
    for one, name in ((shop, "a@shop.example"), (shop, "b@shop.example"), (stranger, "c@stranger.example")):
        Contact.objects.create(merchant=one.merchant, email=name)
    mine, theirs = dispute(shop), dispute(stranger)
    at_the_last_day(shop, mine)
    assert reminders.send_due_reminders() == 1
    assert [one.bcc for one in mail.outbox] == [["a@shop.example", "b@shop.example"]]
    assert mine.id.hex in mail.outbox[0].body
    at_the_last_day(stranger, theirs)
    assert reminders.send_due_reminders(shop.merchant) == 0
    assert reminders.send_due_reminders(stranger.merchant) == 1
    assert mail.outbox[1].bcc == ["c@stranger.example"]


def test_a_reminder_that_is_later_than_the_deadline_is_not_sent(shop: Shop) -> None:
    Contact.objects.create(merchant=shop.merchant, email="a@shop.example")
    case = dispute(shop)
    at_the_last_day(shop, case)
    ahead = case.due_at - clock.real_now() + timedelta(seconds=1)
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    assert (reminders.send_due_reminders(), mail.outbox) == (1, [])
    assert Reminder.objects.get(case=case).sent_to == ""


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", "2026-05-14 20:00 (UTC)"),
        ("Asia/Tokyo", "2026-05-15 05:00 (Asia/Tokyo)"),
        ("America/Los_Angeles", "2026-05-14 13:00 (America/Los_Angeles)"),
    ],
)
def test_the_mail_tells_the_deadline_where_the_merchant_is(shop: Shop, zone: str, shown: str) -> None:
    case = dispute(shop)
    case.merchant.time_zone, case.due_at = zone, datetime(2026, 5, 14, 20, tzinfo=UTC)
    for hours, left in ((0, "the last day"), (24, "1 day left"), (48, "2 days left")):
        subject, body = reminders.compose_reminder_mail(case, case.due_at - timedelta(hours=hours))
        assert left in subject
        assert f"Answer by {shown}" in body
