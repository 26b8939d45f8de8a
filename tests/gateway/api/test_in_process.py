"""Calls of this gateway's own API within the process: the request is the one that a client would send.

Source: docs/decisions/0050 and the demo shop, whose calls these are.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse
from django.test import override_settings

from gateway.api import in_process
from gateway.core.secret import Secret
from gateway.models import RequestLog
from tests.support.client import payment
from tests.support.fixtures import Shop


class Route:
    """A view that keeps the request it was asked with, and its address's arguments."""

    def __init__(self, response: HttpResponse) -> None:
        self.response, self.args, self.kwargs = response, ("one",), {"target": "two"}
        self.request: WSGIRequest | None = None
        self.called: tuple[Any, ...] = ()

    def func(self, request: WSGIRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        self.request, self.called = request, (args, kwargs)
        return self.response


@pytest.fixture
def route(monkeypatch: pytest.MonkeyPatch) -> Route:
    made = Route(HttpResponse(b'{"id": "7"}', status=202))
    monkeypatch.setattr(in_process, "resolve", lambda path: {"/v1/things": made}[path])
    return made


def asked(route: Route, method: str, **more: Any) -> WSGIRequest:
    answer = in_process.call_own_api(
        method, "/v1/things", {"entityId": "e", "a": "b&c ü"}, **{"token": Secret("t0ken")} | more
    )
    assert (answer.status, answer.body) == (202, {"id": "7"})
    assert route.called == (("one",), {"target": "two"})
    assert route.request is not None
    assert route.request.resolver_match is route
    return route.request


def test_a_post_has_its_fields_in_the_body_and_none_in_its_address(route: Route) -> None:
    request = asked(route, "POST")
    assert (request.method, request.path, request.META["QUERY_STRING"]) == ("POST", "/v1/things", "")
    assert request.content_type == "application/x-www-form-urlencoded"
    assert int(request.META["CONTENT_LENGTH"]) == len(request.body)
    assert request.body == b"entityId=e&a=b%26c+%C3%BC"
    assert request.POST.dict() == {"entityId": "e", "a": "b&c ü"}


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_another_request_has_them_in_its_address_and_no_body(route: Route, method: str) -> None:
    request = asked(route, method)
    assert (request.method, request.GET.dict()) == (method, {"entityId": "e", "a": "b&c ü"})
    assert (request.body, request.META["CONTENT_LENGTH"], request.META["CONTENT_TYPE"]) == (b"", "0", "")


@pytest.mark.parametrize(
    ("base", "host", "port", "secure"),
    [
        ("https://pay.shop.example", "pay.shop.example", "80", True),
        ("http://127.0.0.1:8123", "127.0.0.1:8123", "8123", False),
    ],
)
def test_the_host_is_the_gateways_own(route: Route, base: str, host: str, port: str, secure: bool) -> None:
    with override_settings(GATEWAY_BASE_URL=base, ALLOWED_HOSTS=["*"]):
        request = asked(route, "GET")
        assert (request.get_host(), request.META["SERVER_PORT"], request.is_secure()) == (host, port, secure)


def test_headers_token_and_address_are_those_that_were_given(route: Route) -> None:
    request = asked(route, "GET", headers={"Idempotency-Key": "k"}, ip="198.51.100.7")
    assert request.headers["Idempotency-Key"] == "k"
    assert request.META["HTTP_IDEMPOTENCY_KEY"] == "k", "views read it there"
    assert request.headers["Authorization"] == "Bearer t0ken"
    assert request.META["REMOTE_ADDR"] == "198.51.100.7"


def test_without_a_token_there_is_no_header_and_without_an_address_this_machines(route: Route) -> None:
    request = asked(route, "GET", token=None)
    assert "Authorization" not in request.headers
    assert request.META["REMOTE_ADDR"] == "127.0.0.1"


@pytest.mark.django_db
def test_a_call_is_answered_as_one_from_outside(shop: Shop) -> None:
    """Answers of two kinds: those that are rendered at their end, and those that are text already."""
    fields = {"entityId": shop.api.entity or "", **payment()}
    token = Secret(shop.api.token or "")
    paid = in_process.call_own_api("POST", "/v1/payments", fields, token=token)
    assert (paid.status, paid.body["result"]["code"]) == (200, "000.100.110")
    path = f"/v1/payments/{paid.body['id']}"
    read = in_process.call_own_api("GET", path, {"entityId": shop.api.entity or ""}, token=token)
    assert (read.status, read.body["id"], read.body["amount"]) == (200, paid.body["id"], "92.00")
    refused = in_process.call_own_api("POST", "/v1/payments", {**fields, "amount": "x"}, token=token, ip="198.51.100.7")
    assert refused.status == 400
    assert RequestLog.objects.latest("at").ip == "198.51.100.7"
    assert in_process.call_own_api("POST", "/v1/payments", fields, token=None).status == 401
