"""The form's API and a model of parts agree about random sequences; `python -m tests.model --of parts` runs thousands.

Source: docs/decisions/0129.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from gateway.models import Channel
from tests.model.books import APPROVED, OVER
from tests.model.machine import SIZES
from tests.model.parts import BUSY, FOLLOWED_BY, HELD, IN_DOUBT, PartBooks, PartMachine
from tests.support.fixtures import Shop

SEQUENCES, STEPS = 40, 10


@pytest.mark.django_db
@pytest.mark.timeout(600)
def test_no_sequence_of_cards_releases_and_time_takes_more_or_less_than_the_amount(shop: Shop) -> None:
    Channel.objects.filter(pk=shop.channel.pk).update(partial_approvals=Channel.PartialApprovals.COLLECT)
    machine = type("Machine", (PartMachine,), {"api": shop.api})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=SEQUENCES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    reached = PartMachine.tally
    assert reached["steps"] > 100
    assert {"pay 000.100.110", "pay 000.200.000"} <= reached.keys()


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["DB", "PA"])
def test_what_random_sequences_may_miss_is_compared_in_a_fixed_one(shop: Shop, kind: str) -> None:
    """hypothesis draws other sequences when a module of the product changes; these steps are compared in every run."""
    Channel.objects.filter(pk=shop.channel.pk).update(partial_approvals=Channel.PartialApprovals.COLLECT)
    machine = type("Machine", (PartMachine,), {"api": shop.api, "tally": Counter()})()
    machine.begin(kind, 9_200)
    for card in ("half", "declined", "half"):
        machine.pay(card, True)
        machine.all_or_nothing()
    machine.follow(0, "half")
    machine.release(is_confirmed=False)
    machine.all_or_nothing()
    machine.pay("plain", True)
    machine.confirm(1)  # the last one
    machine.all_or_nothing()
    machine.pay("plain", True)
    machine.confirm(0)
    machine.pay("half", True)
    machine.pay("plain", True)
    machine.all_or_nothing()
    for place in range(3):
        for size in SIZES:
            machine.follow(place, size)
    machine.all_or_nothing()
    assert machine.tally.keys() >= {f"pay {code}" for code in (APPROVED, HELD, IN_DOUBT, BUSY)}
    follow_up = FOLLOWED_BY[kind]
    assert machine.tally.keys() >= {f"{follow_up} {code}" for code in (APPROVED, OVER[follow_up], "700.400.570")}


def test_the_model_holds_three_parts_at_most_and_gives_them_back_together() -> None:
    """docs/decisions/0129: the figures of its own text."""
    books = PartBooks(total=9_200)
    for rest in (4_600, 2_300, 1_150):
        assert (books.pay("half"), books.rest) == (HELD, rest)
        books.forget_cards()
    assert books.pay("half") == "800.100.155"
    books.pass_time(14, timer=True)
    assert books.rest == 1_150
    books.pass_time(1, timer=True)
    assert (books.rest, books.held, books.returning) == (9_200, [], [])
