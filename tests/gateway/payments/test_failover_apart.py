"""When a payment goes on to the next acquirer of its route, and what is kept of those that were tried: each condition
by itself. No database."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.port import AcquirerReply
from gateway.models import Payment
from gateway.payments import failover
from gateway.payments.failover import is_time_over, next_route

AT = datetime(2033, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
OUT = AcquirerReply(
    code="900.100.600", sent={"a": 1}, received={"unreachable": "no line", "then": "x"}, retryable_elsewhere=True
)
SECOND, THIRD = ["second", "at second", "The second"], ["third", "at third", "The third"]
ROUTE = {"name": "The first", "rule": "all", "next": [SECOND, THIRD]}
FAILED = {
    "name": "The first", "connector": "first", "account": "at first", "code": "900.100.600",
    "why": "unreachable: no line", "at": "2033-05-06T07:08:09+00:00", "sent": True,
}  # fmt: skip
EARLIER, DECLINED = {"connector": "zero"}, {"connector": "zero", "declined": True}
CONNECTORS = {name: SimpleNamespace(name=name) for name in ("first", "second", "third")}


class Plan:
    """The schemes' retry rules: whether they forbid one more attempt."""

    forbids = False

    def forbids_failover(self, refusal: AcquirerReply) -> bool:
        assert refusal.retryable_elsewhere
        return self.forbids


PLAN: Any = Plan()
"""What screening planned: handed on as it is."""


class Moves:
    """Where payments were moved to. ``succeeds``: whether recovery has left them alone."""

    def __init__(self, patch: pytest.MonkeyPatch, settings: Any) -> None:
        self.calls: list[Any] = []
        self.counted: list[Any] = []
        self.succeeds = True
        settings.GATEWAY_FAILOVER_MOST, settings.GATEWAY_FAILOVER_WITHIN_S = 2, 10.0
        patch.setattr(failover, "list_acquirers", lambda: CONNECTORS)
        patch.setattr(failover.time, "perf_counter", lambda: 1_000.0)
        patch.setattr(failover.store, "reroute_payment", self.reroute)
        patch.setattr(failover.metrics, "count_failover", lambda *call: self.counted.append(call))

    def reroute(self, payment: Payment, reply: AcquirerReply, **names: Any) -> bool:
        self.calls.append((payment, reply, names))
        if self.succeeds:
            payment.connector = names["connector"]
        return self.succeeds


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Moves:
    return Moves(monkeypatch, settings)


def payment(**values: Any) -> Payment:
    return Payment(**{
        "id": UUID(int=1), "status": "STARTED", "connector": "first", "acquirer_merchant_id": "at first",
        "route": ROUTE, **values,
    })  # fmt: skip


def go_on(row: Payment, reply: AcquirerReply = OUT, since: float = 995.0) -> Any:
    return next_route(row, reply, PLAN, since=since, at=AT, duration_ms=17)


def test_a_payment_goes_to_the_next_account_with_what_is_left_of_its_route(moves: Moves) -> None:
    row = payment()
    assert go_on(row) is CONNECTORS["second"]
    route = {"name": "The second", "rule": "all", "tried": [FAILED], "next": [THIRD]}
    names = {"connector": "second", "account": "at second", "route": route, "at": AT, "duration_ms": 17, "plan": PLAN}
    assert moves.calls == [(row, OUT, names)]
    assert moves.counted == [("first", "second")]
    assert ROUTE == {"name": "The first", "rule": "all", "next": [SECOND, THIRD]}, "the stored one stays"


def test_the_last_account_leaves_none_and_follows_those_before(moves: Moves) -> None:
    row = payment(route={**ROUTE, "tried": [EARLIER], "next": [THIRD]})
    assert go_on(row) is CONNECTORS["third"]
    assert moves.calls[0][2]["route"] == {"name": "The third", "rule": "all", "tried": [EARLIER, FAILED]}


@pytest.mark.parametrize(
    "values",
    [
        {"route": None},
        {"referenced": UUID(int=2)},
    ],
    ids=str,
)
def test_what_has_no_route_or_follows_a_payment_stays(moves: Moves, values: dict[str, Any]) -> None:
    row = payment(**values)
    assert go_on(row) is None
    assert (moves.calls, row.route) == ([], values.get("route", ROUTE))


def test_what_an_acquirer_judged_stays(moves: Moves) -> None:
    row = payment()
    assert go_on(row, AcquirerReply(code="800.100.155", sent={"a": 1})) is None
    assert (moves.calls, row.route) == ([], ROUTE)


@pytest.mark.parametrize(
    ("values", "since"),
    [
        ({"route": {"name": "The first"}}, 995.0),
        ({"route": {**ROUTE, "next": [["gone", "at gone", "Gone"]]}}, 995.0),
        ({"status": "IN_DOUBT"}, 995.0),
        ({"status": "DECLINED"}, 995.0),
        ({"status": "APPROVED"}, 995.0),
        ({"route": {**ROUTE, "tried": [EARLIER, EARLIER]}}, 995.0),
        ({}, 990.0),
    ],
    ids=["no other", "gone", "in doubt", "declined", "approved", "most", "time"],
)
def test_where_it_ends_the_last_attempt_is_kept_with_those_before(
    moves: Moves, values: dict[str, Any], since: float
) -> None:
    row = payment(**values)
    before = row.route or {}
    assert go_on(row, since=since) is None
    assert moves.calls == moves.counted == []
    assert row.route is not None
    assert row.route["tried"] == [*before.get("tried", []), FAILED]
    assert row.route["name"] == "The first"
    left = [one for one in before.get("next", []) if one[0] in CONNECTORS]
    assert row.route.get("next") == (left or None)
    assert ("next" in row.route) is bool(left)


@pytest.mark.parametrize(
    ("tried", "goes_on"),
    [([], True), ([EARLIER], True), ([EARLIER, EARLIER], False), ([EARLIER, DECLINED], True), ([DECLINED] * 5, True)],
)
def test_attempts_that_nobody_took_are_counted_and_declines_are_not(
    moves: Moves, tried: list[Any], goes_on: bool
) -> None:
    """With GATEWAY_FAILOVER_MOST of 2."""
    assert (go_on(payment(route={**ROUTE, "tried": tried})) is not None) is goes_on


def test_an_account_whose_connector_is_gone_is_passed_by(moves: Moves) -> None:
    gone = ["gone", "at gone", "Gone"]
    assert go_on(payment(route={**ROUTE, "next": [gone, THIRD, gone]})) is CONNECTORS["third"]
    assert moves.calls[0][2]["route"] == {"name": "The third", "rule": "all", "tried": [FAILED]}


def test_a_payment_that_recovery_has_by_now_goes_nowhere(moves: Moves, caplog: pytest.LogCaptureFixture) -> None:
    moves.succeeds = False
    row = payment()
    assert go_on(row) is None
    assert (moves.counted, row.connector) == ([], "first")
    assert row.route == {"name": "The first", "rule": "all", "tried": [FAILED], "next": [SECOND, THIRD]}
    assert "failover_overtaken" in caplog.text


@pytest.mark.parametrize(("since", "over"), [(990.01, False), (990.0, True), (989.0, True), (1_000.0, False)])
def test_no_further_acquirer_is_called_for_a_client_that_would_not_wait(moves: Moves, since: float, over: bool) -> None:
    assert is_time_over(since) is over


@pytest.mark.parametrize(
    ("values", "reply", "changed"),
    [
        ({"route": {"next": [SECOND]}}, OUT, {"name": "at first"}),
        ({}, AcquirerReply(code="900.100.601", retryable_elsewhere=True),
         {"code": "900.100.601", "why": "900.100.601", "sent": False}),
    ],
    ids=["no name", "nothing said"],
)  # fmt: skip
def test_an_attempt_is_kept_with_its_account_its_code_and_its_reason(
    moves: Moves, values: dict[str, Any], reply: AcquirerReply, changed: dict[str, Any]
) -> None:
    go_on(payment(**values), reply)
    [tried] = moves.calls[0][2]["route"]["tried"]
    assert tried == {**FAILED, **changed}


def test_no_other_account_is_asked_where_the_networks_limit_is_reached(
    moves: Moves, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PLAN, "forbids", True)
    row = payment()
    assert go_on(row) is None
    assert (moves.calls, row.connector) == ([], "first")
    assert next_route(row, OUT, None, since=995.0, at=AT, duration_ms=17) is CONNECTORS["second"]
