"""A server that has become a standby refuses what writes: its connection is closed, and the answer is not an internal
error. Source: docs/decisions/0124."""

from __future__ import annotations

import environ
import pytest
from django.db import InternalError, OperationalError, connection
from django.test import Client, RequestFactory
from psycopg.errors import ReadOnlySqlTransaction

from gateway.api import error_views, health, payments, token_admission
from gateway.db.availability import is_database_away
from tests.support.fixtures import Shop

BROWSER = "text/html,application/xhtml+xml;q=0.9"


def become_a_standby() -> None:
    """This connection's server refuses writes from now on; a new connection is to one that takes them."""
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")


def refused_write() -> InternalError:
    fault = InternalError("cannot execute INSERT in a read-only transaction")
    fault.__cause__ = ReadOnlySqlTransaction()
    return fault


def test_a_payment_that_meets_a_standby_is_made_on_the_primary_when_it_is_repeated(committed: Shop) -> None:
    become_a_standby()
    answers = [committed.api.pay() for _ in range(2)]
    assert [(answer.status, answer.code) for answer in answers] == [(503, "999.999.999"), (200, "000.100.110")]
    assert answers[0].headers["Retry-After"] == "2"


def test_a_request_whose_first_statement_is_refused_asks_the_primary_by_itself(committed: Shop) -> None:
    become_a_standby()
    channel = committed.channel.pk
    counted = {"entity": channel, "operation": "payments", "window_s": 1, "window": 1}
    assert token_admission._execute_with_reconnect(token_admission._COUNT, counted) == [(1,)]


FAULTS = {"standby": refused_write(), "lost": OperationalError("the connection is lost")}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_write_that_is_refused_in_the_middle_is_a_503_to_be_repeated(
    fault: Exception, committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(payments, "process_payment", refuse)
    answer = committed.api.pay()
    assert (answer.status, answer.code) == (503, "999.999.999")
    assert answer.headers["Retry-After"] == "2"


@pytest.mark.django_db(transaction=True)
def test_a_node_on_a_standby_is_ready_as_soon_as_it_has_found_the_primary(monkeypatch: pytest.MonkeyPatch) -> None:
    become_a_standby()
    assert health._check_database_once() == "takes no writes"
    become_a_standby()
    assert Client().get("/health/ready").status_code == 200
    monkeypatch.setattr(connection, "close", lambda: None)
    become_a_standby()
    answer = Client().get("/health/ready")
    monkeypatch.undo()
    connection.close()
    assert (answer.status_code, answer.json()["checks"]) == (503, {"database": "takes no writes", "vault": "ok"})


@pytest.mark.parametrize("accept", [BROWSER, "application/json"])
def test_a_page_that_finds_no_primary_is_a_503(accept: str) -> None:
    request = RequestFactory().get("/", headers={"accept": accept})
    try:
        raise OperationalError("the connection is lost")
    except OperationalError:
        answer = error_views.server_error(request)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    try:
        raise ValueError("ours")
    except ValueError:
        answer = error_views.server_error(request)
    assert (answer.status_code, "Retry-After" in answer.headers) == (500, False)


@pytest.mark.django_db(transaction=True)
def test_the_connection_to_a_standby_is_closed_and_one_with_another_fault_is_kept() -> None:
    connection.ensure_connection()
    assert not is_database_away(InternalError("corrupted"))
    assert not is_database_away(None)
    assert connection.connection is not None
    assert is_database_away(refused_write())
    assert connection.connection is None


def test_connections_are_made_to_a_server_that_takes_writes_unless_the_address_says_otherwise() -> None:
    """docs/running.md, PostgreSQL: a standby behind a name that a fail-over has not moved yet is refused."""
    assert connection.get_connection_params()["target_session_attrs"] == "read-write"
    own = environ.Env.db_url_config("postgresql://u:p@h/d?target_session_attrs=any")
    assert own["OPTIONS"]["target_session_attrs"] == "any"
