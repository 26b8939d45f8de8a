"""A bounded part of `make fuzz`: what any bytes to any route may cost, and that none of them is a server error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from tests.fuzz.routes import routes
from tests.fuzz.run import Fuzz

pytestmark = pytest.mark.django_db
NUMBER = 1_500


@pytest.fixture(autouse=True)
def keep_the_test_connection() -> Iterator[None]:
    """A request would close the connection that holds the test's transaction, as Django's own test client knows."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def test_no_request_costs_more_than_it_may_or_is_a_server_error(db: None) -> None:
    """Goals, P17, P18 and R4: memory and files; the CPU is judged by `make fuzz`, where nothing else runs."""
    fuzz = Fuzz(seed=1, judges_cpu=False)
    found = fuzz.go(number=NUMBER, seconds=600)
    assert found.faults == []
    assert found.number == NUMBER
    assert len(found.touched) == len(routes())
