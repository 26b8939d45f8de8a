"""Whatever the OpenAPI document allows, and much that it does not: never a 5xx, always an envelope."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error

from gateway.api.wsgi_handler import build_wsgi_application
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

schema = schemathesis.openapi.from_wsgi("/v1/openapi.json", build_wsgi_application())

EXAMPLES = 20
"""Random requests per endpoint in the usual run."""
LONG = "TOLLHOUSE_LONG_FUZZ" in os.environ
"""Set it to try every boundary of every parameter, too: some 6,000 requests, several minutes."""
PHASES = [Phase.explicit, Phase.generate] if LONG else [Phase.generate]


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=PHASES,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
def test_no_request_makes_a_server_error(case: schemathesis.Case, shop: Shop) -> None:
    """Part A, Errors: 200, 307, 400, 401, 403, 404 and nothing else but 405 and 429."""
    _speak_as(case, shop)
    response = case.call(headers={"Authorization": f"Bearer {shop.api.token}"})
    case.validate_response(response, checks=[not_a_server_error])
    assert response.headers["content-type"][0].startswith("application/json")
    if case.path.startswith("/v1/") and case.path not in ("/v1/openapi.json", "/v1/fastcheckout/integrity"):
        body = response.json()
        assert {"result", "buildNumber", "timestamp", "ndc"} <= body.keys()


@pytest.fixture(autouse=True)
def keep_the_test_connection() -> Iterator[None]:
    """A request would close the connection that holds the test's transaction, as Django's own test client knows."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def _speak_as(case: schemathesis.Case, shop: Shop) -> None:
    """Half of the requests name the real channel: behind the door there is more to break."""
    known: dict[str, Any] | None = case.body if isinstance(case.body, dict) else None
    if known is not None and len(known) % 2 == 0:
        known["entityId"] = shop.api.entity
    if isinstance(case.query, dict) and "entityId" in case.query:
        case.query["entityId"] = shop.api.entity
