"""Fixtures for every test that speaks to the product: two merchants, their channels, their tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, connection
from django.test import TestCase, override_settings

from gateway.access import audit_log, tokens
from gateway.models import AccessToken, Channel, Division, Merchant, Psp
from tests.support.client import Api
from tests.support.open_requests import open_requests

UNLIMITED: dict[str, Any] = {"*": None}
BY = audit_log.Actor(name="tests")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """A merchant with one unthrottled channel and a token for all scopes."""

    merchant: Merchant
    channel: Channel
    token: AccessToken
    api: Api

    def open_channel(self, name: str = "another", **values: Any) -> Channel:
        return Channel.objects.create(**{"name": name, "merchant": self.merchant, "limits": UNLIMITED, **values})

    def api_of(self, channel: Channel) -> Api:
        return self.api.as_entity(channel.entity_id)

    def issue(self, **values: Any) -> tuple[AccessToken, str]:
        """Another token of this merchant, and its text."""
        token, secret = tokens.issue_token(self.merchant, by=BY, **{"name": "another", **values})
        return token, secret.reveal()


def open_shop(division: Division, name: str) -> Shop:
    merchant = Merchant.objects.create(name=name, division=division)
    channel = Channel.objects.create(name=f"{name}: main", merchant=merchant, limits=UNLIMITED)
    token, secret = tokens.issue_token(merchant, name="tests", by=BY)
    return Shop(
        merchant=merchant, channel=channel, token=token, api=Api(token=secret.reveal(), entity=channel.entity_id)
    )


@pytest.fixture(scope="module")
def module_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """For rows that are costly to make and that all tests of a module only read: a transaction around the transactions
    of its tests. Not for a module with a test that commits."""
    with django_db_blocker.unblock():
        # Those of Django's TestCase, within which what has to be outermost may be: it is so for a test, too.
        atomics = TestCase._enter_atomics()
        yield
        TestCase._rollback_atomics(atomics)


def open_division() -> Division:
    return Division.objects.create(name="Division", psp=Psp.objects.create(name="PSP"))


@pytest.fixture
def division(db: None) -> Division:
    return open_division()


@pytest.fixture
def shop(division: Division) -> Shop:
    """The merchant of the test."""
    return open_shop(division, "Shop")


@pytest.fixture
def stranger(division: Division) -> Shop:
    """Another merchant, who must see nothing of the first."""
    return open_shop(division, "Stranger")


@pytest.fixture
def api(shop: Shop) -> Api:
    return shop.api


@pytest.fixture
def committed(transactional_db: None) -> Iterator[Shop]:
    """A merchant whose rows are committed, so that threads with connections of their own see them."""
    yield open_shop(open_division(), "Committed shop")
    connection.close()


@pytest.fixture(scope="session")
def live_server(live_server: Any) -> Any:
    """pytest-django's server, whose requests are waited for before what a test committed is deleted."""
    server = live_server.thread.httpd
    server.set_app(open_requests.counting(server.get_app()))
    return live_server


@pytest.fixture
def live() -> Iterator[None]:
    """The live environment."""
    with override_settings(IS_LIVE=True, GATEWAY_ENVIRONMENT="live", GATEWAY_BASE_URL="https://testserver"):
        yield


@pytest.fixture
def same_connection() -> Iterator[None]:
    """For tests that call the WSGI application itself: a request would close the connection that holds the test's
    transaction, as Django's own test client knows."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)
