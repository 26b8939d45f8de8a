"""Which open authentications a tick ends, and when the earliest is due: the same rows by two statements."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from gateway.core import clock, identifiers
from gateway.core.result_codes import NOT_AUTHENTICATED_CODE
from gateway.db.statement import execute_sql
from gateway.models import Authentication, AuthenticationStep, Payment, Status
from gateway.payments.shopper_return import complete_due_authentications
from gateway.threeds import authentications
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
Step = AuthenticationStep


def authentication(
    shop: Shop, step: str, deadline: timedelta, *, answered: timedelta | None = None, payment: UUID | None = None
) -> Authentication:
    """Open until ``deadline`` from now; a decoupled one's cardholder answers at ``answered``."""
    now = clock.real_now()
    return Authentication.objects.create(
        merchant=shop.merchant,
        channel=shop.channel,
        brand="VISA",
        amount=Decimal("92.00"),
        currency="EUR",
        step=step,
        payment=payment,
        request_id=identifiers.row_id(),
        created_at=now,
        deadline=now + deadline,
        due_at=now + answered if answered is not None else None,
    )


def earliest() -> datetime | None:
    found: datetime | None = execute_sql(authentications.EARLIEST_DUE_AUTHENTICATION, {})[0][0]
    return found


def listed() -> list[UUID]:
    return [row.pk for row in authentications.list_due_authentications(clock.real_now(), 9)]


@pytest.mark.parametrize("step", Step.values)
@pytest.mark.parametrize(("deadline", "late"), [(-MINUTE, True), (MINUTE, False)])
def test_one_alone_ends_at_its_deadline_whatever_its_step(
    shop: Shop, step: str, deadline: timedelta, late: bool
) -> None:
    row = authentication(shop, step, deadline)
    is_open = step != Step.DONE
    assert listed() == ([row.pk] if late and is_open else [])
    assert earliest() == authentications.next_authentication_due(shop.merchant) == (row.deadline if is_open else None)


@pytest.mark.parametrize(
    ("step", "answered", "deadline", "due"),
    [
        (Step.DECOUPLED, -MINUTE, 10 * MINUTE, True),
        (Step.DECOUPLED, MINUTE, 10 * MINUTE, False),
        (Step.CHALLENGE, -MINUTE, 10 * MINUTE, False),
        (Step.DONE, -MINUTE, 10 * MINUTE, False),
    ],
)
def test_only_a_decoupled_one_is_answered_without_its_shopper(
    shop: Shop, step: str, answered: timedelta, deadline: timedelta, due: bool
) -> None:
    payment = Payment.objects.get(pk=shop.api.pay().id)
    Payment.objects.filter(pk=payment.pk).update(status=Status.PENDING)
    row = authentication(shop, step, deadline, answered=answered, payment=payment.pk)
    assert listed() == ([row.pk] if due else [])
    assert earliest() == authentications.next_authentication_due(shop.merchant)
    assert earliest() == (row.due_at if step == Step.DECOUPLED else None)


@pytest.mark.parametrize("answered", [10 * MINUTE, 11 * MINUTE])
def test_an_answer_at_the_deadline_or_after_it_comes_too_late(shop: Shop, answered: timedelta) -> None:
    row = authentication(shop, Step.DECOUPLED, 10 * MINUTE)
    Authentication.objects.filter(pk=row.pk).update(due_at=row.created_at + answered)
    assert earliest() == authentications.next_authentication_due(shop.merchant) == row.deadline
    assert [one.pk for one in authentications.list_due_authentications(row.created_at + 9 * MINUTE, 9)] == []


@pytest.mark.parametrize("deadline", [-MINUTE, MINUTE])
@pytest.mark.parametrize("status", Status.values)
def test_that_of_a_payment_ends_with_its_payment_only(shop: Shop, status: str, deadline: timedelta) -> None:
    """A payment that waits has a deadline of its own; after a worker's death recovery ends it."""
    payment = Payment.objects.get(pk=shop.api.pay().id)
    Payment.objects.filter(pk=payment.pk).update(status=status)
    row = authentication(shop, Step.CHALLENGE, deadline, payment=payment.pk)
    over = status in (Status.APPROVED, Status.DECLINED)
    assert listed() == ([row.pk] if over else [])
    assert earliest() == (row.created_at if over else None)


@pytest.mark.parametrize("answered", [None, MINUTE])
def test_a_decoupled_one_that_nobody_answered_ends_as_not_authenticated(shop: Shop, answered: timedelta | None) -> None:
    """At its deadline without an external server's result, and with the payment that it belongs to."""
    payment = Payment.objects.get(pk=shop.api.pay().id)
    alone = authentication(shop, Step.DECOUPLED, -MINUTE)
    of_ended = authentication(shop, Step.DECOUPLED, 10 * MINUTE, answered=answered, payment=payment.pk)
    assert complete_due_authentications() == 2
    for row in (alone, of_ended):
        row.refresh_from_db()
        assert (row.step, row.trans_status, row.code) == (Step.DONE, "N", NOT_AUTHENTICATED_CODE)
    assert listed() == []


def test_the_one_that_is_late_longest_comes_first(shop: Shop) -> None:
    rows = {minutes: authentication(shop, Step.CHALLENGE, -minutes * MINUTE).pk for minutes in (2, 5, 3)}
    assert listed() == [rows[5], rows[3], rows[2]]
    row = rows[5]
    assert [one.pk for one in authentications.list_due_authentications(clock.real_now(), 1)] == [row]
