"""Which answer an exception becomes: status, code, headers, what is told of it, and nothing of a fault of ours.

Source: rulings D10, D11.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from django.db import OperationalError
from django.http import Http404
from rest_framework.exceptions import MethodNotAllowed, ParseError

from gateway.api.errors import ApiError, handle_api_exception
from gateway.catalogue.endpoints import PAYMENT_ENDPOINT
from gateway.catalogue.parse import InvalidParametersError, ParameterError
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.token_limits import TokenLimitError

NDC = "0123456789abcdef0123456789abcdef-0123456789abcdef0123456789abcdef"
KNOWN = ParameterError(name="amount", message="must be more", value="0", known=True)


def answered(fault: Exception, method: str = "POST") -> Any:
    view = SimpleNamespace(
        trace=SimpleNamespace(ndc=NDC, method=method, ip="198.51.100.7"),
        endpoints={"POST": PAYMENT_ENDPOINT},
        allowed_methods=["GET", "POST"],
    )
    response = handle_api_exception(fault, {"view": view})
    assert response.data["ndc"] == NDC
    assert {"buildNumber", "timestamp"} <= response.data.keys()
    return response


@pytest.mark.parametrize(
    ("fault", "status", "code", "words"),
    [
        (ApiError(429, "800.120.100", "slow down"), 429, "800.120.100", ": slow down"),
        (ApiError(403, "800.900.300"), 403, "800.900.300", ""),
        (TokenLimitError("at most 5.00"), 403, "800.900.300", ": at most 5.00"),
        (InvalidParametersError([KNOWN]), 400, "200.300.404", ""),
        (RequestRefusedError("100.400.319", [KNOWN]), 400, "100.400.319", ""),
        (RequestRefusedError("700.400.580", status=404), 404, "700.400.580", ""),
        (MethodNotAllowed("PUT"), 405, "200.300.403", ": this path takes GET, POST"),
        (Http404("a secret"), 404, "200.300.404", ": no such path"),
        (RuntimeError("a secret"), 500, "999.999.999", ""),
        (ParseError("a secret"), 500, "999.999.999", ""),
        (OperationalError("connection failed"), 503, "999.999.999", ""),
    ],
    ids=repr,
)
def test_every_fault_is_an_envelope_with_its_status_and_code(
    fault: Exception, status: int, code: str, words: str
) -> None:
    response = answered(fault)
    assert (response.status_code, response.data["result"]["code"]) == (status, code)
    plain = answered(RequestRefusedError(code)).data["result"]["description"]
    assert response.data["result"]["description"] == plain + words
    assert "secret" not in str(response.data)


@pytest.mark.parametrize(
    "fault", [InvalidParametersError([KNOWN]), RequestRefusedError("100.400.319", [KNOWN])], ids=repr
)
def test_a_parameter_at_fault_is_told_with_a_link_to_the_endpoints_reference(fault: Exception) -> None:
    (error,) = answered(fault).data["result"]["parameterErrors"]
    assert (error["name"], error["value"], error["message"]) == ("amount", "0", "must be more")
    assert error["link"].endswith(f"/docs/reference/{PAYMENT_ENDPOINT.name}#amount")
    (elsewhere,) = answered(fault, "PUT").data["result"]["parameterErrors"]
    assert "link" not in elsewhere


def test_what_a_refusal_brings_along_is_in_its_headers_and_its_body() -> None:
    response = answered(ApiError(429, "800.120.100", headers={"Retry-After": "7"}, fields={"id": "x"}))
    assert (response.headers["Retry-After"], response.data["id"]) == ("7", "x")
    assert "Retry-After" not in answered(ApiError(403, "800.900.300")).headers


def test_a_wrong_method_is_told_which_are_right_in_the_header_too() -> None:
    assert answered(MethodNotAllowed("PUT")).headers["Allow"] == "GET, POST"


def test_only_a_database_that_is_away_is_asked_again_soon() -> None:
    assert answered(OperationalError("connection failed")).headers["Retry-After"] == "2"
    assert "Retry-After" not in answered(RuntimeError()).headers


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (
            ApiError(429, "800.120.100", "slow down"),
            ("request_refused", "info", {"status": 429, "code": "800.120.100", "ip": "198.51.100.7"}),
        ),
        (TokenLimitError("at most 5.00"), ("token_limit_exceeded", "info", {"why": "at most 5.00"})),
        (InvalidParametersError([KNOWN]), None),
        (RequestRefusedError("100.400.319"), None),
        (Http404(), None),
    ],
    ids=repr,
)
def test_a_refusal_of_a_token_is_in_the_log_with_what_is_needed_to_find_it(
    fault: Exception, expected: tuple[str, str, dict[str, Any]] | None
) -> None:
    with structlog.testing.capture_logs() as logged:
        answered(fault)
    if expected is None:
        assert logged == []
    else:
        event, level, fields = expected
        assert logged == [{"event": event, "log_level": level, "ndc": NDC, **fields}]


def test_a_fault_of_ours_is_in_the_log_with_itself() -> None:
    fault = RuntimeError("a secret")
    with structlog.testing.capture_logs() as logged:
        answered(fault)
    assert logged == [{"event": "unexpected_error", "log_level": "error", "ndc": NDC, "exc_info": fault}]
