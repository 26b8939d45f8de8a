"""Where a request comes from: its row in the request log, and the response that its key stores. No database."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from gateway.core import identifiers
from gateway.core.secret import Secret
from gateway.models import Payment
from gateway.payments import payment_request
from gateway.payments.idempotency import IdempotencyClaim
from gateway.payments.payment_request import IdempotencyContext, RequestTrace
from gateway.payments.responses import RenderedResponse

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
REQUEST, ENTITY, TOKEN, PAYMENT = UUID(int=1), UUID(int=2), UUID(int=3), UUID(int=4)


def trace(**values: Any) -> RequestTrace:
    return RequestTrace(**{"request": REQUEST, "method": "POST", "path": "/v1/payments", "at": NOW} | values)


def test_a_log_row_says_who_asked_what_when_and_how_it_ended() -> None:
    row = trace(ip="192.0.2.1", entity=ENTITY, token=TOKEN).log_row(
        400, "700.400.200", payment=PAYMENT, parameters=[["amount", "1.00"]]
    )
    assert {name: value for name, value in row.items() if name != "duration_ms"} == {
        "id": REQUEST, "at": NOW, "method": "POST", "path": "/v1/payments", "status": 400, "result_code": "700.400.200",
        "entity_id": ENTITY, "token": TOKEN, "ip": "192.0.2.1", "payment": PAYMENT, "parameters": [["amount", "1.00"]],
    }  # fmt: skip
    bare = trace().log_row(200, "000.100.110")
    assert [bare[name] for name in ("entity_id", "token", "ip", "payment", "parameters")] == [None] * 5


@pytest.mark.parametrize(
    ("method", "path", "kept"),
    [
        ("A" * 8, "/" + "b" * 199, ("A" * 8, "/" + "b" * 199)),
        ("A" * 9, "/" + "b" * 200, ("A" * 8, "/" + "b" * 199)),
        ("GET", "/a\0b", ("GET", "/a\N{REPLACEMENT CHARACTER}b")),
    ],
)
def test_a_log_row_fits_its_columns_whatever_was_sent(method: str, path: str, kept: tuple[str, str]) -> None:
    row = trace(method=method, path=path).log_row(200, "")
    assert (row["method"], row["path"]) == kept


def test_a_log_row_has_the_milliseconds_since_the_request_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: 112.5)
    assert trace(started=100.0).log_row(200, "")["duration_ms"] == 12_500


@pytest.mark.parametrize(("entity", "named"), [(ENTITY, ENTITY.hex), (None, "")])
def test_a_request_is_named_by_itself_and_its_entity(entity: UUID | None, named: str) -> None:
    assert trace(entity=entity).ndc == identifiers.format_ndc(REQUEST, named)


def test_a_clerks_form_stores_no_response_but_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = IdempotencyClaim(token=TOKEN, method="POST", path="/x", key="k", body=Secret(""))
    assert IdempotencyContext(claim=claim).render_response(Payment()) == RenderedResponse(status=200, text="")
    asked: list[Any] = []
    rendered = RenderedResponse(status=400, text="x", stored_text="y")
    monkeypatch.setattr(payment_request, "render_stored_response", lambda *each: (asked.append(each), rendered)[1])
    payment = Payment()
    form: Any = object()
    assert IdempotencyContext(claim=claim, format=form).render_response(payment) is rendered
    assert asked == [(payment, form)]
