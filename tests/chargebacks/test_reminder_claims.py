"""Which mails about disputes and alerts are due: each condition of the claim by itself, and what a claim takes.

Source: docs/chargebacks.md; docs/decisions/0088.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.db.models.functions import Now

from chargebacks import alert_reminders, reminders
from chargebacks.models import Chargeback, Contact, DisputeAlert, Reminder
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import Merchant
from tests.chargebacks.test_alerts import alerted, paid
from tests.chargebacks.test_cases import dispute
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
CLOCKS = pytest.mark.parametrize("ahead", [timedelta(0), 30 * HOUR, -30 * HOUR])


def set_clock(shop: Shop, ahead: timedelta) -> datetime:
    """The merchant's time from now on."""
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    shop.merchant.clock_offset = ahead
    return clock.merchant_now(shop.merchant)


def reminder(shop: Shop, due: timedelta, now: datetime, **values: Any) -> Reminder:
    """The one reminder of a new dispute, whose deadline is in a week."""
    case = dispute(shop)
    Chargeback.objects.filter(pk=case.pk).update(due_at=now + 168 * HOUR)
    first, *others = Reminder.objects.filter(case=case)
    Reminder.objects.filter(pk__in=[one.pk for one in others]).delete()
    Reminder.objects.filter(pk=first.pk).update(due_at=now + due, **values)
    return first


def find_earliest(statement: str) -> datetime | None:
    found: datetime | None = execute_sql(statement, {})[0][0]
    return found


# --- reminders of disputes ----------------------------------------------------------------------------------------


@CLOCKS
@pytest.mark.parametrize(
    ("due", "values", "sent"),
    [
        (-SECOND, {}, True),
        (HOUR, {}, False),
        (-SECOND, {"tries": reminders.MAX_REMINDER_TRIES - 1}, True),
        (-SECOND, {"tries": reminders.MAX_REMINDER_TRIES}, False),
        (-SECOND, {"lease_until": Now() + HOUR}, False),
        (-SECOND, {"lease_until": Now() - SECOND}, True),
        (-SECOND, {"sent_at": Now()}, False),
    ],
)
def test_a_reminder_is_sent_when_it_is_due_and_free(
    shop: Shop, ahead: timedelta, due: timedelta, values: dict[str, Any], sent: bool
) -> None:
    Contact.objects.create(merchant=shop.merchant, email="a@shop.example")
    reminder(shop, due, set_clock(shop, ahead), **values)
    assert reminders.send_due_reminders() == sent
    assert len(mail.outbox) == sent
    assert reminders.send_due_reminders() == 0


@pytest.mark.parametrize("state", ["SUBMITTED", "ACCEPTED", "LOST", "WON"])
def test_of_a_dispute_that_was_answered_no_one_is_reminded(shop: Shop, state: str) -> None:
    Contact.objects.create(merchant=shop.merchant, email="a@shop.example")
    row = reminder(shop, -SECOND, clock.real_now())
    assert reminders.next_reminder_at(shop.merchant) is not None
    assert find_earliest(reminders.EARLIEST_DUE_REMINDER) is not None
    Chargeback.objects.filter(pk=row.case_id).update(state=state)
    assert (reminders.send_due_reminders(), mail.outbox) == (0, [])
    assert reminders.next_reminder_at(shop.merchant) is None
    assert find_earliest(reminders.EARLIEST_DUE_REMINDER) is None


def test_a_claim_takes_the_earliest_and_counts_the_try(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reminders, "MAX_REMINDERS_PER_RUN", 1)
    now = clock.real_now()
    rows = {back: reminder(shop, -HOUR * back, now) for back in (1, 3, 2)}
    taken = [reminders.claim_reminders(reminders._CLAIM, None) for _ in range(4)]
    assert taken == [[rows[3].pk], [rows[2].pk], [rows[1].pk], []]
    assert set(Reminder.objects.values_list("tries", flat=True)) == {1}
    assert all(lease is not None for lease in Reminder.objects.values_list("lease_until", flat=True))


def test_a_claim_is_of_its_merchant_and_the_next_time_too(shop: Shop, stranger: Shop) -> None:
    now = clock.real_now()
    mine, theirs = reminder(shop, -HOUR, now), reminder(stranger, -2 * HOUR, now)
    assert reminders.next_reminder_at(shop.merchant) == now - HOUR
    assert reminders.next_reminder_at(stranger.merchant) == now - 2 * HOUR
    assert find_earliest(reminders.EARLIEST_DUE_REMINDER) == now - 2 * HOUR
    assert reminders.claim_reminders(reminders._CLAIM, shop.merchant) == [mine.pk]
    assert reminders.claim_reminders(reminders._CLAIM, None) == [theirs.pk]


# --- mails about alerts -------------------------------------------------------------------------------------------


def alert(shop: Shop, due: timedelta, now: datetime, deadline: timedelta = 72 * HOUR, **values: Any) -> DisputeAlert:
    made = alerted(paid(shop), reference=f"A-{DisputeAlert.objects.count()}")
    DisputeAlert.objects.filter(pk=made.pk).update(remind_at=now + due, due_at=now + deadline, **values)
    return DisputeAlert.objects.get(pk=made.pk)


@CLOCKS
@pytest.mark.parametrize(
    ("due", "values", "sent"),
    [
        (-SECOND, {}, True),
        (HOUR, {}, False),
        (-SECOND, {"remind_tries": reminders.MAX_REMINDER_TRIES - 1}, True),
        (-SECOND, {"remind_tries": reminders.MAX_REMINDER_TRIES}, False),
        (-SECOND, {"remind_lease": Now() + HOUR}, False),
        (-SECOND, {"remind_lease": Now() - SECOND}, True),
        (-SECOND, {"state": "EXPIRED"}, False),
    ],
)
def test_a_mail_about_an_alert_is_sent_when_it_is_due_and_free(
    shop: Shop, ahead: timedelta, due: timedelta, values: dict[str, Any], sent: bool
) -> None:
    Contact.objects.create(merchant=shop.merchant, email="a@shop.example")
    alert(shop, due, set_clock(shop, ahead), **values)
    assert alert_reminders.send_due_alert_reminders() == sent
    assert len(mail.outbox) == sent


@pytest.mark.parametrize(
    ("deadline", "again"), [(72 * HOUR, 48 * HOUR), (25 * HOUR, HOUR), (23 * HOUR, None), (-HOUR, None)]
)
def test_the_last_mail_is_a_day_before_the_deadline_or_not_at_all(
    shop: Shop, deadline: timedelta, again: timedelta | None
) -> None:
    Contact.objects.create(merchant=shop.merchant, email="a@shop.example")
    now = clock.real_now()
    row = alert(shop, -SECOND, now, deadline, remind_tries=3)
    assert alert_reminders.send_due_alert_reminders() == 1
    assert len(mail.outbox) == (deadline > timedelta(0)), "after the deadline it is of no use"
    row.refresh_from_db()
    assert row.remind_at == (now + again if again is not None else None)
    assert (row.remind_lease, row.remind_tries) == (None, 0)


def test_the_next_mail_is_its_merchants_of_open_alerts(shop: Shop, stranger: Shop) -> None:
    now = clock.real_now()
    alert(shop, 3 * HOUR, now)
    alert(shop, 5 * HOUR, now)
    alert(shop, HOUR, now, remind_tries=reminders.MAX_REMINDER_TRIES)
    alert(shop, HOUR, now, state="EXPIRED")
    alert(stranger, 2 * HOUR, now)
    assert alert_reminders.next_alert_reminder(shop.merchant) == now + 3 * HOUR
    assert alert_reminders.next_alert_reminder(stranger.merchant) == now + 2 * HOUR
    assert find_earliest(alert_reminders.EARLIEST_ALERT_REMINDER) == now + 2 * HOUR
    assert alert_reminders.send_due_alert_reminders(shop.merchant) == 0
