"""Two at once: exactly one may pass a ceiling. Real threads, real connections, through the API.

Source: decisions, section 4; house: two refunds at once can never both pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal

import pytest

from gateway.models import Payment, PaymentEvent, Status
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop
from tests.support.threads import at_once

RACES: dict[str, tuple[str, tuple[tuple[str, str | None], ...], str, set[str]]] = {
    # first payment, what is tried at once, the amount that is there, codes of those that lose
    "two refunds of everything": ("DB", (("RF", "92.00"), ("RF", "92.00")), "92.00", {"700.400.200"}),
    "two captures of everything": ("PA", (("CP", "92.00"), ("CP", "92.00")), "92.00", {"700.400.100"}),
    "two reversals of all that remains": ("PA", (("RV", None), ("RV", None)), "92.00", {"700.400.300"}),
    "a capture and a reversal": ("PA", (("CP", "92.00"), ("RV", None)), "92.00", {"700.400.100", "700.400.300"}),
    "a refund and a reversal": ("DB", (("RF", "92.00"), ("RV", None)), "92.00", {"700.400.200", "700.400.300"}),
    "two refunds that do not fit together": ("DB", (("RF", "60.00"), ("RF", "40.00")), "60.00", {"700.400.200"}),
}


def asking(shop: Shop, payment: str, kind: str, amount: str | None) -> Callable[[], Answer]:
    # A client of its own for each thread.
    return lambda: Api(token=shop.api.token, entity=shop.api.entity).follow(payment, kind, amount)


@pytest.mark.parametrize("race", RACES)
def test_of_two_that_want_all_of_it_exactly_one_gets_it(committed: Shop, race: str) -> None:
    """Decisions, section 4: a refund after everything was refunded is 700.400.200."""
    kind, tries, there, losing = RACES[race]
    for _ in range(3):
        paid = committed.api.pay(paymentType=kind)
        answers = at_once(*(asking(committed, paid.id, *one) for one in tries))
        won = [answer for answer in answers if answer.status == 200]
        lost = [answer for answer in answers if answer.status == 400]
        assert (len(won), len(lost)) == (1, 1), answers
        assert lost[0].code in losing
        moved = Payment.objects.filter(chain=paid.id, referenced__isnull=False, status=Status.APPROVED)
        assert sum((member.amount for member in moved), Decimal(0)) in (Decimal(there), Decimal("40.00"))


def test_ten_partial_refunds_at_once_give_back_what_fits_and_no_cent_more(committed: Shop) -> None:
    """Decisions, section 4: RF many, sum ≤ captured."""
    paid = committed.api.pay(amount="92.00")
    answers = at_once(*[asking(committed, paid.id, "RF", "20.00")] * 10)
    assert Counter(answer.code for answer in answers) == {"000.100.110": 4, "700.400.200": 6}
    first = Payment.objects.get(pk=paid.id)
    assert first.follow_ups == 4


def test_number_of_captures_holds_under_a_race(committed: Shop) -> None:
    """A13.16."""
    paid = committed.api.pay(paymentType="PA", numberOfCaptures="2")
    answers = at_once(*[asking(committed, paid.id, "CP", "1.00")] * 6)
    assert Counter(answer.code for answer in answers) == {"000.100.110": 2, "700.400.100": 4}


def test_a_chain_under_fire_keeps_its_books(committed: Shop) -> None:
    """House: every move writes its event in the same statement."""
    paid = committed.api.pay(paymentType="PA")
    kinds = [("CP", "30.00"), ("RV", None), ("CP", "62.00"), ("RV", "50.00"), ("CP", "92.00"), ("CP", "10.00")]
    at_once(*(asking(committed, paid.id, *one) for one in kinds))
    members = list(Payment.objects.filter(chain=paid.id).order_by("id"))
    taken = [member for member in members if member.referenced and member.status == Status.APPROVED]
    assert sum((member.amount for member in taken), Decimal(0)) <= Decimal("92.00")
    for member in members:
        events = list(PaymentEvent.objects.filter(payment=member).order_by("sequence"))
        assert [event.sequence for event in events] == list(range(1, member.sequence + 1))
        assert events[-1].status == member.status
