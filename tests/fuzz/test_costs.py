"""A bounded part of `make fuzz`: what any bytes to any route may cost, and that none of them is a server error."""

from __future__ import annotations

import pytest

from tests.fuzz.routes import routes
from tests.fuzz.run import Fuzz

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]
NUMBER = 750
"""More than one round of all routes."""


def test_no_request_costs_more_than_it_may_or_is_a_server_error(transactional_db: None) -> None:
    """Goals, P17, P18 and R4: memory and files; the CPU is judged by `make fuzz`, where nothing else runs."""
    fuzz = Fuzz(seed=1, judges_cpu=False)
    found = fuzz.go(number=NUMBER, seconds=600)
    assert found.faults == []
    assert found.number == NUMBER
    assert len(found.touched) == len(routes())
