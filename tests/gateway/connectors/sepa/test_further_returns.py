"""Returns of a collection, won back and returned again, some of which a settlement file or a clerk entered first."""

from __future__ import annotations

from decimal import Decimal

import pytest

from chargebacks import ledger
from chargebacks.models import Chargeback
from gateway.models import Payment
from gateway.timers import registry
from tests.support import sepa
from tests.support.fixtures import BY, Shop
from tests.support.sepa import Entry

pytestmark = pytest.mark.django_db


def told(entry: Entry, number: int) -> None:
    """The bank's statement of one entry, applied to the payment."""
    sepa.take(sepa.statement([entry], number=number))
    registry.run_timer_now("bank answers")


def paid(shop: Shop) -> Payment:
    ident = sepa.debit(shop.api).id
    sepa.pass_to_file(shop.api)
    told(Entry(order=ident, on="2026-01-05"), 1)
    return Payment.objects.select_related("merchant").get(pk=ident)


def returned(payment: Payment, on: str, number: int) -> None:
    told(Entry(order=payment.id.hex, into=False, reason="MD06", on=on), number)


def won_back(payment: Payment, on: str, number: int) -> None:
    told(Entry(order=payment.id.hex, reversal=True, on=on), number)


def follow_ups(payment: Payment) -> list[tuple[str, str]]:
    """Type of each follow-up of the chain and of what it follows, in their order."""
    members = Payment.objects.filter(chain=payment.chain, payment_type__in=("CB", "CR")).order_by("number")
    types = dict(Payment.objects.filter(chain=payment.chain).values_list("id", "payment_type"))
    return [(one.payment_type, types[one.referenced]) for one in members if one.referenced is not None]


@pytest.mark.parametrize(("has_case", "follows"), [(True, "CR"), (False, "DB")])
def test_a_second_return_that_was_entered_elsewhere_first_is_entered_once_and_won_back_too(
    banked: Shop, has_case: bool, follows: str
) -> None:
    """By a settlement file, which makes the case of the first return before, or by a clerk."""
    payment = paid(banked)
    returned(payment, "2026-01-10", 2)
    won_back(payment, "2026-01-20", 3)
    if has_case:
        registry.run_timer_now("dispute cases")
    ledger.record_chargeback(payment, Decimal("92.00"), by=BY)
    expected = [("CB", "DB"), ("CR", "CB"), ("CB", follows)]
    returned(payment, "2026-02-10", 4)
    assert follow_ups(payment) == expected
    won_back(payment, "2026-02-20", 5)
    assert follow_ups(payment) == [*expected, ("CR", "CB")]
    registry.run_timer_now("dispute cases")
    assert list(Chargeback.objects.values_list("recovered", flat=True)) == [Decimal("92.00")] * 2


def test_a_return_after_a_reversal_that_a_settlement_file_entered_first_follows_it(banked: Shop) -> None:
    payment = paid(banked)
    returned(payment, "2026-01-10", 2)
    registry.run_timer_now("dispute cases")
    ledger.record_chargeback_reversal(Chargeback.objects.select_related("merchant").get(), by=BY)
    won_back(payment, "2026-01-20", 3)
    returned(payment, "2026-02-10", 4)
    assert follow_ups(payment) == [("CB", "DB"), ("CR", "CB"), ("CB", "CR")]
