"""The API and the model agree about random sequences; `python -m tests.model` runs thousands.

Source: decisions, section 4; docs/decisions/0007; design goals R2.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.books import Books, Entry, Pot, broken_rules
from tests.model.machine import ChainMachine
from tests.support.fixtures import Shop

SEQUENCES, STEPS = 60, 12


@pytest.mark.django_db
@pytest.mark.timeout(600)
def test_no_sequence_of_operations_makes_the_books_wrong(shop: Shop) -> None:
    """Decisions, section 4: accepted and refused agree, codes and amounts too, and no ceiling is ever broken."""
    machine = type("Machine", (ChainMachine,), {"api": shop.api})
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
    assert ChainMachine.tally["steps"] > 200


@pytest.mark.django_db
@pytest.mark.parametrize("stopped_by, code", [("chargeback", "700.300.600"), ("FINAL refund", "700.400.200")])
def test_a_refund_of_a_receipt_is_a_refund_of_the_payment_behind_it(shop: Shop, stopped_by: str, code: str) -> None:
    """docs/decisions/0007: while a chargeback stands, and after a FINAL, nothing of the payment is refunded."""
    paid = shop.api.pay()
    receipt = shop.api.follow(paid.id, "RC", "92.00")
    if stopped_by == "chargeback":
        assert shop.api.follow(paid.id, "CB", "91.50").status == 200
    else:
        assert shop.api.follow(paid.id, "RF", "2.00", sequence="FINAL").status == 200
    assert shop.api.follow(paid.id, "RF", "1.00").code == code
    assert shop.api.follow(receipt.id, "RF", "1.00").code == code


@pytest.mark.django_db(transaction=True)
def test_the_rest_of_a_chain_above_the_largest_amount_is_no_fault_of_ours(shop: Shop) -> None:
    """Goals R4, D2: increments add up to more than one amount may be; whatever answers, it is no 5xx."""
    held = shop.api.pay(paymentType="PA", amount="9999999999.99")
    again = {"standingInstruction.industryPractice": "INCREMENTAL_AUTH"}
    raised = shop.api.follow(held.id, "PA", "0.01", **again)
    answers = [raised, shop.api.follow(held.id, "RV")]
    assert [answer.status for answer in answers if answer.status >= 500] == []


def test_the_models_own_rules_see_what_is_given_twice() -> None:
    """The invariant can fail."""
    paid = Entry("1", "DB", "done", 100, pot=Pot(100))
    assert broken_rules([paid, Entry("2", "RF", "done", 100, paid)]) == []
    assert broken_rules([paid, Entry("2", "RF", "done", 60, paid), Entry("3", "RV", "done", 41, paid)])
    held = Entry("1", "PA", "done", 100)
    more = Entry("2", "INC", "done", 10, held)
    captures = [Entry("3", "CP", "done", 60, held), Entry("4", "CP", "done", 50, more)]
    assert broken_rules([held, more, *captures]) == []
    assert broken_rules([held, more, *captures, Entry("5", "RC", "done", 1, held)])


def test_the_model_refuses_what_the_rulings_refuse() -> None:
    """Decisions, section 4: the figures of its own text."""
    books = Books()
    held = books.enter_first("1", "PA", "done", 10_000, 1)
    assert books.refusal("CP", held, 10_001, "EUR") == "700.400.100"
    captured = books.enter("2", "CP", held, 6_000, code="", final=False)
    assert books.refusal("CP", held, 1, "EUR") == "700.400.100"
    assert books.refusal("RF", captured, 6_001, "EUR") == "700.400.200"
    assert books.refusal("RF", held, 1, "EUR") == "700.300.100"
    assert books.refusal("RF", captured, 1, "USD") == "700.100.500"
    assert books.refusal("RV", held, 4_000, "EUR") == ""
    assert books.refusal("INC", held, 1, "EUR") == "700.400.510"
    assert books.refusal("REN", held, 1, "EUR") == "700.400.100"
