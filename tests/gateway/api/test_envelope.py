"""What every answer has, whatever its status.

Source: Part A, What the service does, 4; Part B, Payment response; rulings D1, D11, D13, D19.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import RequestFactory

from gateway.api.wsgi_handler import GatewayHandler
from gateway.catalogue.endpoints import ENDPOINTS
from gateway.core import result_codes
from gateway.models import Channel
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

BUILD = re.compile(r"[0-9a-f]{40}@[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} \+0000")
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\+0000")
NDC = re.compile(r"[A-Za-z0-9-]{1,69}")


def _throttled(api: Api) -> Answer:
    Channel.objects.update(limits={"*": {"limit": 1, "window_s": 1_000_000}})
    api.pay()
    return api.pay()


STORED = {"card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034"}
CASES: dict[str, tuple[int, Callable[[Api], Answer]]] = {
    "a payment": (200, lambda api: api.pay()),
    "a read": (200, lambda api: api.read(api.pay().id)),
    "a follow-up": (200, lambda api: api.follow(api.pay().id, "RF", "1.00")),
    "a decline": (400, lambda api: api.pay(card__number="4000015500000005")),
    "a refused value": (400, lambda api: api.pay(card__number="4444444444444444")),
    "a read of a decline": (400, lambda api: api.read(api.pay(card__number="4000015500000005").id)),
    "a validation error": (400, lambda api: api.pay(amount="92.1")),
    "a registration": (200, lambda api: api.post("/v1/registrations", STORED)),
    "a registration that is read": (
        200,
        lambda api: api.get(f"/v1/registrations/{api.pay(createRegistration='true').body['registrationId']}"),
    ),
    "a registration of nothing": (404, lambda api: api.get(f"/v1/registrations/{'0' * 32}")),
    "a form that cannot be read": (400, lambda api: api.send("/v1/payments", b"entityId=%ff")),
    "another content type": (400, lambda api: api.send("/v1/payments", b"{}", content_type="application/json")),
    "no token": (401, lambda api: api.with_token(None).pay()),
    "a wrong token": (403, lambda api: api.with_token("x").pay()),
    "a foreign entity": (403, lambda api: api.as_entity("0" * 32).pay()),
    "an unknown payment": (404, lambda api: api.read("0" * 32)),
    "a follow-up of nothing": (404, lambda api: api.follow("0" * 32, "CP", "1.00")),
    "an unknown path": (404, lambda api: api.get("/v1/nothing")),
    "an unknown version": (404, lambda api: api.get("/v9/payments")),
    "a wrong method": (405, lambda api: api.call("PUT", "/v1/payments")),
    "too many requests": (429, _throttled),
    "the result codes": (200, lambda api: api.with_token(None).get("/v1/resultcodes")),
    "the clock": (200, lambda api: api.get("/v1/test/clock")),
    "the acquirer's messages": (200, lambda api: api.get("/v1/test/acquirer/messages", {"id": api.pay().id})),
}


@pytest.mark.parametrize("case", CASES)
def test_every_answer_is_an_envelope_in_json(api: Api, case: str) -> None:
    """A30.7, B18.2, B18.3, A4.1, D13, D19."""
    status, ask = CASES[case]
    answer = ask(api)
    assert answer.status == status, answer
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Length"] == str(len(answer.http.content))
    assert "Vary" not in answer.headers
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert "Set-Cookie" not in answer.headers
    body = answer.body
    assert BUILD.fullmatch(body["buildNumber"])
    assert TIME.fullmatch(body["timestamp"])
    assert NDC.fullmatch(body["ndc"])
    assert body["result"]["code"] in result_codes.RESULT_CODES
    assert 1 <= len(body["result"]["description"]) <= 255


def test_each_answer_has_an_ndc_of_its_own(api: Api) -> None:
    """B18.4; D3, D13."""
    paid = api.pay()
    seen = {paid.body["ndc"], api.read(paid.id).body["ndc"], api.read(paid.id).body["ndc"], api.pay().body["ndc"]}
    assert len(seen) == 4


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "*/*", "image/png", "application/json;q=0", ",,;;"])
def test_json_is_answered_whatever_the_client_accepts(api: Api, accept: str) -> None:
    """A4.1."""
    answer = api.send("/v1/payments", b"", Accept=accept)
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert api.call("GET", "/v1/nothing", Accept=accept).code == "200.300.404"


def test_text_is_utf_8_and_not_escaped(api: Api) -> None:
    """A3.1, D19."""
    answer = api.pay(customer__givenName="Zoë Łukasz 李", customer__surname="O'Neil")
    assert "Zoë Łukasz 李".encode() in answer.http.content


def test_a_validation_error_has_no_id_and_a_decline_has_one(api: Api) -> None:
    """D13."""
    assert "id" not in api.pay(amount="92.1").body
    assert re.fullmatch("[0-9a-f]{32}", api.pay(card__number="4000015500000005").id)


def test_a_wrong_method_is_told_which_are_right(api: Api) -> None:
    """RFC 9110, 15.5.6."""
    assert api.call("DELETE", "/v1/payments").headers["Allow"] == "POST"
    assert api.call("PUT", f"/v1/payments/{'0' * 32}").headers["Allow"] == "GET, HEAD, POST"
    assert api.call("POST", "/v1/resultcodes").headers["Allow"] == "GET, HEAD"
    for method in ("PATCH", "DELETE", "OPTIONS", "TRACE", "HEAD", "NONSENSE"):
        assert api.call(method, "/v1/payments").status == 405, method


def test_no_path_takes_a_method_that_is_no_endpoints(api: Api) -> None:
    """Also where a view shares its verbs with one that takes more."""
    taken: dict[str, set[str]] = {}
    for endpoint in ENDPOINTS:
        methods = {"GET", "HEAD"} if endpoint.method == "GET" else {endpoint.method}
        taken.setdefault(endpoint.path.replace("{id}", "0" * 32), set()).update(methods)
    for path, methods in taken.items():
        for method in {"GET", "HEAD", "POST", "PUT", "DELETE"} - methods:
            answer = api.call(method, path)
            assert (answer.status, answer.headers["Allow"]) == (405, ", ".join(sorted(methods))), (method, path)


def test_head_is_answered_as_get_without_a_body(api: Api) -> None:
    """RFC 9110, 9.3.2; docs/decisions/0146. Programs that watch an address, and `curl -I`, send it."""
    path = f"/v1/payments/{api.pay().id}"
    named = {"entityId": str(api.entity)}
    read, head = api.call("GET", path, named), api.call("HEAD", path, named)
    assert (read.status, head.status, head.http.content) == (200, 200, b"")
    assert head.headers["Content-Length"] == str(len(read.http.content))
    assert {*head.headers} == {*read.headers}
    assert api.call("HEAD", "/v1/resultcodes").status == 200
    assert api.call("HEAD", path).status == 400, "as GET without an entityId"
    assert api.call("HEAD", path, named, Authorization="Bearer nonsense").status in (401, 403)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/",
        "/v1",
        "/v1/payment",
        "/v1/paymets",
        "/v1/payments/",
        "/v1/payments/a/b",
        "/v2/payments",
        "/v0/payments",
        "/v1/Payments",
        "/v1//payments",
        "/v1/payments/a/",
        "/v1/payments%00",
    ],
)
def test_an_unknown_path_or_version_is_404_in_json(api: Api, path: str) -> None:
    """A30.6, A32.1; D1."""
    for method in ("GET", "POST"):
        answer = api.call(method, path, Accept="text/html")
        assert (answer.status, answer.code) == (404, "200.300.404")


@pytest.mark.parametrize(
    "path",
    [
        "/payments",
        f"/payments/{'0' * 32}",
        "/checkouts",
        f"/checkouts/{'0' * 32}/payment",
        "/registrations",
        "/query",
        "/reports/reconciliations",
        "/fastcheckout/integrity",
        "/resultcodes",
        "/test/clock?entityId=1&x=%C3%AB",
    ],
)
def test_a_bare_path_leads_to_the_version(api: Api, path: str) -> None:
    """A27.12, A30.2; D1: 307 keeps method and body."""
    for method in ("GET", "POST"):
        answer = api.call(method, path)
        assert (answer.status, answer.headers["Location"]) == (307, f"/v1{path}")


def test_a_bare_path_never_leads_off_the_host(api: Api) -> None:
    """D1: a location starts with our own version."""
    for path in ("//evil.example/payments", "/\\evil.example/payments", "/payments//evil.example"):
        location = api.call("GET", path).headers.get("Location", "/v1")
        assert location.startswith("/v1"), path


def test_result_codes_are_public_and_carry_their_family() -> None:
    """D9."""
    answer = Api(token=None, entity=None).get("/v1/resultcodes")
    codes = {row["code"]: row for row in answer.body["resultCodes"]}
    assert set(codes) == set(result_codes.RESULT_CODES)
    assert set(codes["000.100.110"]) == {"code", "description", "family"}


def test_result_codes_tell_nothing_of_anybody_for_a_wrong_token(api: Api) -> None:
    """D9."""
    assert api.with_token("nonsense").get("/v1/resultcodes").status == 200


def test_an_answer_parses_as_strict_json(api: Api) -> None:
    """A4.1: no NaN, no repeated names."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert len(pairs) == len(dict(pairs))
        return dict(pairs)

    text = api.pay().text
    json.loads(text, parse_constant=refuse, object_pairs_hook=once)


def test_amounts_are_strings_with_two_decimals(api: Api) -> None:
    """D13, D26."""
    assert api.pay(amount="92").body["amount"] == "92.00"
    assert api.pay(amount="92", currency="JPY").body["amount"] == "92.00"


def test_the_ndc_of_an_entity_starts_with_the_entity(shop: Shop) -> None:
    """Part B, Payment response: the identifier of the session."""
    assert shop.api.pay().body["ndc"].startswith(f"{shop.channel.entity_id}-")


def test_the_web_server_is_given_no_body_for_head() -> None:
    """It would leave it out, and log a warning for each."""
    started: list[Any] = []
    handler = GatewayHandler()
    environ = RequestFactory().head("/v1/resultcodes").environ
    assert list(handler(environ, lambda status, headers, *_: started.append((status, dict(headers))))) == []
    [(status, headers)] = started
    assert status.startswith("200")
    assert int(headers["Content-Length"]) > 0
