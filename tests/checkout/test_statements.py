"""How many statements a checkout costs; the numbers are pinned like those of payments."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.client import Answer
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.shopper import create, open_checkout, result_of

STATEMENTS = {
    # (statements, of which write and so commit)
    "a creation": (3, 2),
    "an update": (4, 2),
    "a form's configuration": (2, 0),
    "a state": (1, 0),
    "a payment": (5, 2),
    "a payment that is made already": (2, 0),
    "a first look at the result": (3, 1),
    "another look": (2, 0),
    "an unknown id": (1, 0),
}


def test_a_checkout_costs_what_it_is_known_to_cost(committed: Shop) -> None:
    """Goals: cheap."""
    api = committed.api
    assert api.pay().status == 200
    browser = open_checkout(api)
    calls: dict[str, tuple[int, Callable[[], Answer]]] = {
        "a creation": (200, lambda: create(api)),
        "an update": (200, lambda: api.post(f"/v1/checkouts/{browser.checkout}", {"amount": "50.00"})),
        "a form's configuration": (200, lambda: browser.config()),
        "a state": (200, lambda: browser.state()),
        "a payment": (200, lambda: browser.pay()),
        "a payment that is made already": (200, lambda: browser.pay()),
        "a first look at the result": (200, lambda: result_of(api, browser)),
        "another look": (200, lambda: result_of(api, browser)),
        "an unknown id": (404, lambda: type(browser)("0" * 32 + "-node01").state()),
    }
    found = {}
    for name, (status, call) in calls.items():
        with statements() as seen:
            answer = call()
        assert answer.status == status, (name, answer)
        found[name] = (len(seen), seen.commits)
    assert found == STATEMENTS
