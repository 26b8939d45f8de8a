"""FRST, RCUR, OOFF over several files of one mandate, and mandates that must not be mixed up.

Source: docs/connectors/sepa.md.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from gateway.models import BankOrder
from tests.gateway.connectors.sepa.test_file_planning import run
from tests.support import sepa
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db


def sequences() -> dict[UUID, str]:
    return dict(BankOrder.objects.values_list("payment", "sequence"))


def test_the_second_file_of_a_mandate_recurs_and_so_does_the_third(banked: Shop) -> None:
    """None was rejected in between."""
    told = []
    for _ in range(3):
        ident = UUID(sepa.debit(banked.api, bankAccount__mandate__id="M-A").id)
        run(banked)
        told.append(sequences()[ident])
    assert told == ["FRST", "RCUR", "RCUR"]


def test_each_mandate_has_a_first_of_its_own(banked: Shop) -> None:
    """Two of one merchant in one file; in the next one both recur."""
    for expected in ("FRST", "RCUR"):
        made = [UUID(sepa.debit(banked.api, bankAccount__mandate__id=name).id) for name in ("M-A", "M-B")]
        run(banked)
        assert [sequences()[ident] for ident in made] == [expected, expected]


def test_a_mandate_for_one_payment_is_never_the_first_of_others(banked: Shop) -> None:
    """Made up by us for each payment: twice OOFF."""
    made = []
    for _ in range(2):
        made.append(UUID(sepa.debit(banked.api).id))
        run(banked)
    assert [sequences()[ident] for ident in made] == ["OOFF", "OOFF"]


def test_a_first_collection_that_was_booked_after_its_rejection_was_the_first(banked: Shop) -> None:
    """The money decides: the next one recurs, and is no second first."""
    first = sepa.debit(banked.api, bankAccount__mandate__id="M-A").id
    file = run(banked)
    sepa.take(sepa.status(file.message_id, orders={first: ("RJCT", "AM04")}))
    sepa.take(sepa.statement([sepa.Entry(order=first)]))
    later = UUID(sepa.debit(banked.api, bankAccount__mandate__id="M-A").id)
    run(banked)
    assert sequences()[later] == "RCUR"
