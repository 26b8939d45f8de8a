"""For which payment a mandate's mail is due, and which of two mails it is: each condition by itself.

Source: Part A, Customer (email), Bank account; docs/decisions/0030.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.core import clock
from gateway.models import MandateMail, Merchant, Payment
from gateway.payments.mandate_mails import (
    build_mandate_mail_row,
    find_next_mandate_mail,
    resolve_mandate_id,
    send_due_mandate_mails,
)
from tests.gateway.payments.test_mandate_mails import debit
from tests.support.fixtures import Shop

NOW = datetime(2035, 11, 15, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MAIL = {"customer": {"email": "jane@mail.example"}}
REPEATED = {"standingInstruction": {"mode": "REPEATED"}}
INITIAL = {"standingInstruction": {"mode": "INITIAL"}}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({}, "MANDATE"),
        ({"connector": "sepa"}, "MANDATE"),
        ({"brand": "DIRECTDEBIT"}, None),
        ({"brand": "VISA"}, None),
        ({"referenced": UUID(int=2)}, None),
        ({"request": {}}, None),
        ({"request": MAIL | INITIAL}, "MANDATE"),
        ({"request": MAIL | REPEATED}, None),
        ({"request": MAIL | REPEATED, "connector": "sepa"}, "NOTICE"),
        ({"request": REPEATED, "connector": "sepa"}, None),
        ({"registration": UUID(int=3)}, None),
        ({"registration": UUID(int=3), "connector": "sepa"}, "NOTICE"),
    ],
    ids=str,
)
def test_a_first_debit_mails_its_mandate_and_a_later_collection_by_a_bank_its_notice(
    values: dict[str, Any], kind: str | None
) -> None:
    row = Payment(**{
        "id": UUID(int=1), "merchant_id": UUID(int=9), "brand": "DIRECTDEBIT_SEPA", "connector": "simulator",
        "request": MAIL, **values,
    })  # fmt: skip
    found = build_mandate_mail_row(row, NOW)
    assert found == (
        None
        if kind is None
        else {
            "payment_id": UUID(int=1), "merchant_id": UUID(int=9), "kind": kind, "mandate": UUID(int=1).hex.upper(),
            "due_at": NOW,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mandate", "name"), [({"id": "M-1"}, "M-1"), ({"id": ""}, UUID(int=1).hex.upper()), ({}, UUID(int=1).hex.upper())]
)
def test_a_mandate_is_named_as_it_was_sent_or_by_its_payment(mandate: dict[str, str], name: str) -> None:
    assert resolve_mandate_id(Payment(id=UUID(int=1), request={"bankAccount": {"mandate": mandate}})) == name


def due(shop: Shop, at: datetime, **values: Any) -> MandateMail:
    payment = debit(shop.api, bankAccount__mandate__id=f"M-{chr(65 + MandateMail.objects.count())}").id
    MandateMail.objects.filter(pk=payment).update(due_at=at, **values)
    return MandateMail.objects.get(pk=payment)


@pytest.mark.django_db
@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=40), -timedelta(days=40)])
@pytest.mark.parametrize(("left", "sent"), [(-SECOND, 1), (timedelta(0), 1), (SECOND, 0)])
def test_a_mail_is_sent_when_it_is_due_by_its_merchants_clock(
    shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch, ahead: timedelta, left: timedelta, sent: int
) -> None:
    own, other = due(shop, NOW), due(stranger, NOW)
    now = clock.real_now()
    monkeypatch.setattr(clock, "real_now", lambda: now)
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    MandateMail.objects.filter(pk=own.pk).update(due_at=now + ahead + left)
    MandateMail.objects.filter(pk=other.pk).update(due_at=now + SECOND)
    assert send_due_mandate_mails() == sent
    assert set(MandateMail.objects.values_list("pk", "state")) == {
        (own.pk, "SENT" if sent else "DUE"),
        (other.pk, "DUE"),
    }


@pytest.mark.django_db
def test_mails_are_sent_once_of_one_merchant_or_of_all(shop: Shop, stranger: Shop) -> None:
    past = clock.real_now() - 60 * SECOND
    own, other = due(shop, past), due(stranger, past)
    leased = due(shop, past, lease_until=clock.real_now() + 60 * SECOND)
    over = [due(shop, past, state=state) for state in ("SENT", "GIVEN_UP")]
    assert send_due_mandate_mails(stranger.merchant) == 1
    assert send_due_mandate_mails() == 1
    assert send_due_mandate_mails() == 0
    states = dict(MandateMail.objects.values_list("pk", "state"))
    assert [states[row.pk] for row in (own, other, leased, *over)] == ["SENT", "SENT", "DUE", "SENT", "GIVEN_UP"]
    MandateMail.objects.filter(pk=leased.pk).update(lease_until=past)
    assert send_due_mandate_mails() == 1


@pytest.mark.django_db
def test_the_next_mail_is_the_merchants_earliest_that_is_due(shop: Shop, stranger: Shop) -> None:
    due(stranger, NOW)
    due(shop, NOW - SECOND, state="SENT")
    assert find_next_mandate_mail(shop.merchant) is None
    for seconds in (3, 1, 2):
        due(shop, NOW + seconds * SECOND)
    assert find_next_mandate_mail(shop.merchant) == NOW + SECOND
