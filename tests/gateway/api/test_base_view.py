"""How a request is read before its endpoint: its body by its headers and length, its entity, its trace and its log.

Source: docs/decisions/0050; rulings D11, D13.
"""

from __future__ import annotations

import gc
import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.http import HttpRequest
from django.test import RequestFactory

from gateway.api import base_view
from gateway.api.base_view import MAX_PREREAD_BYTES, ApiView
from gateway.api.errors import ApiError
from gateway.api.wsgi_handler import build_wsgi_application
from gateway.catalogue.endpoints import PAYMENT_ENDPOINT, STATUS_ENDPOINT
from gateway.catalogue.parse import InvalidParametersError
from gateway.core.secret import reveal_text
from gateway.models import RequestLog
from tests.support.client import Api, form, payment
from tests.support.fixtures import Shop

FORM = "application/x-www-form-urlencoded"


# --- the body, without a database ---------------------------------------------------------------------------------


def read(
    body: bytes, *, limit: int = 100, kind: str = FORM, length: str | None = None, **meta: Any
) -> tuple[bytes, str]:
    """What :meth:`ApiView.read_body` makes of it: the body, and the words of its refusal."""
    request = RequestFactory().generic("POST", "/v1/payments", body, kind)
    if length is not None:
        request.META["CONTENT_LENGTH"] = length
    request.META |= meta
    found, fault = ApiView().read_body(request, limit)
    if fault is None:
        return found, ""
    assert isinstance(fault, ApiError)
    assert (fault.status, fault.code, found) == (400, "200.300.404", b"")
    return found, fault.more


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (b"a=b", b"a=b"),
        (b"", b""),
        (b"a=b\n", b"a=b"),
        (b"a=b\r\n", b"a=b"),
        (b"a=b\n\r\n\n", b"a=b"),
        # A line's end alone is a value's own: no file ends so.
        (b"a=b\r", b"a=b\r"),
        (b"\n", b""),
        (b"a=\nb", b"a=\nb"),
    ],
)
def test_a_body_is_read_as_it_is_without_the_ends_of_lines_after_it(body: bytes, kept: bytes) -> None:
    assert read(body) == (kept, "")


@pytest.mark.parametrize(("length", "taken"), [(99, True), (100, True), (101, False), (200, False)])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_has_at_most_its_limit_whatever_was_announced(length: int, taken: bool, chunked: bool) -> None:
    body = b"x" * length
    meta = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True, "wsgi.input": io.BytesIO(body)}
    found = read(body, length="" if chunked else None, **(meta if chunked else {}))
    assert found == ((body, "") if taken else (b"", "the body is larger than 100 bytes"))


def test_a_body_that_says_it_is_too_long_is_not_read() -> None:
    class Unread(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise AssertionError("read")

    assert read(b"x", length="101", **{"wsgi.input": Unread(b"x")})[1] == "the body is larger than 100 bytes"


def test_a_body_without_a_length_that_no_server_ends_is_none() -> None:
    """What follows on the connection is another request."""
    meta = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input": io.BytesIO(b"GET /")}
    assert read(b"", length="", **meta) == (b"", "")


@pytest.mark.parametrize(
    ("announced", "words"),
    [
        ("3", ""),
        ("4", "the body ended after 3 of 4 bytes"),
        ("2", ""),
        ("x", ""),
        ("-1", ""),
        ("9" * 20, ""),
        ("9" * 19, "the body is larger than 5,000 bytes"),
        ("2000", "the body ended after 3 of 2,000 bytes"),
    ],
)
def test_a_body_that_ends_before_its_length_is_no_shorter_form(announced: str, words: str) -> None:
    """A form that was cut off is a valid one with another amount."""
    request = RequestFactory().generic("POST", "/v1/payments", b"a=b", FORM)
    request.META["CONTENT_LENGTH"] = announced
    request._read_started = False
    request._stream = io.BytesIO(b"a=b")
    found, fault = ApiView().read_body(request, 5_000)
    assert (found, getattr(fault, "more", "")) == (b"" if words else b"a=b", words)


def test_a_body_that_breaks_off_while_it_is_read_is_told_so() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError("reset")

    meta = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True, "wsgi.input": Broken()}
    assert read(b"", length="", **meta)[1] == "the body could not be read: it is broken or ended early"


@pytest.mark.parametrize(
    ("coding", "refused"), [("gzip", "gzip"), ("identity", ""), (" Identity ", ""), ("br, gzip", "br, gzip")]
)
def test_a_body_is_sent_as_it_is(coding: str, refused: str) -> None:
    words = f"send the body as it is, without Content-Encoding {refused}" if refused else ""
    assert read(b"a=b", HTTP_CONTENT_ENCODING=coding) == (b"" if refused else b"a=b", words)


@pytest.mark.parametrize(
    ("kind", "body", "refused"),
    [
        (FORM, b"a=b", ""),
        (f"{FORM}; charset=UTF-8", b"a=b", ""),
        (FORM.upper(), b"a=b", ""),
        ("text/plain", b"a=b", ""),
        ("", b"a=b", ""),
        ("application/json", b"a=b", "application/json"),
        ("multipart/form-data", b"a=b", "multipart/form-data"),
        ("text/html", b"a=b", "text/html"),
        # JSON without a Content-Type is refused as such; in a form a brace is part of a parameter's name.
        ("text/plain", b'{"a": 1}', "JSON"),
        ("", b"[1]", "JSON"),
        ("", b"<a/>", "JSON"),
        (FORM, b"{a=b", ""),
        (FORM, b"[a=b", ""),
    ],
)
def test_a_body_is_a_form(kind: str, body: bytes, refused: str) -> None:
    words = f"send form parameters with Content-Type {FORM}, not {refused}" if refused else ""
    assert read(body, kind=kind) == (b"" if refused else body, words)


def test_a_request_that_names_no_type_and_no_length_is_read() -> None:
    http = HttpRequest()
    assert base_view._find_header_fault(http, 0) is None
    assert base_view._get_content_length(http) == 0
    assert ApiView().read_body(RequestFactory().generic("POST", "/", b"", ""), 0) == (b"", None)


def test_what_was_sent_for_a_type_is_told_briefly_and_masked() -> None:
    assert "4200000000000000" not in read(b"a", kind="x/4200000000000000")[1]
    assert len(read(b"a", kind="x/" + "y" * 500)[1]) <= 200
    assert len(read(b"a", HTTP_CONTENT_ENCODING="y" * 500)[1]) <= 200


@pytest.mark.parametrize(
    ("method", "query", "length", "body", "words"),
    [
        ("POST", "a=b", 0, b"", "send a POST's parameters in its body, not in its address"),
        ("POST", "a=b", 3, b"a=b", ""),
        ("POST", "", 0, b"", ""),
        ("GET", "", 3, b"", "send a GET's parameters in its address, not in its body: ?entityId=…"),
        ("DELETE", "", 3, b"", "send a DELETE's parameters in its address, not in its body: ?entityId=…"),
        ("GET", "a=b", 3, b"a=b", ""),
        ("GET", "", 0, b"", ""),
        # A length that is none announces nothing.
        ("GET", "", "nonsense", b"", ""),
        ("GET", "", "-3", b"", ""),
        ("GET", "", "", b"", ""),
        ("GET", "", "3" * 20, b"", ""),
    ],
)
def test_parameters_in_the_other_place_alone_are_told_where_they_belong(
    method: str, query: str, length: int | str, body: bytes, words: str
) -> None:
    http = HttpRequest()
    http.method = method
    http.META = {"QUERY_STRING": query, "CONTENT_LENGTH": str(length)}
    fault = base_view._find_misplaced_parameters_fault(http, body)
    assert getattr(fault, "more", "") == words
    assert fault is None or (fault.status, fault.code) == (400, "200.300.404")  # type: ignore[attr-defined]


def test_a_form_is_decoded_with_its_card_data_as_secrets() -> None:
    found = dict(base_view.decode_form(b"card.number=4200+0000&amount=9%2E00&a="))
    assert {name: reveal_text(value) for name, value in found.items()} == {
        "card.number": "4200 0000", "amount": "9.00", "a": "",
    }  # fmt: skip
    assert "4200" not in repr(found)


def test_bytes_that_are_no_text_are_told_by_their_name_and_masked() -> None:
    with pytest.raises(InvalidParametersError) as caught:
        base_view.decode_form(b"amount=1&customer.givenName=%FF")
    (error,) = caught.value.errors
    assert error.name == "customer.givenName"
    with pytest.raises(InvalidParametersError) as caught:
        base_view.decode_form(b"4200000000000000=%FF")
    assert "4200000000000000" not in caught.value.errors[0].name
    with pytest.raises(ApiError) as refused:
        base_view.decode_form(b"&" * 100_000)
    assert (refused.value.status, refused.value.code) == (400, "200.300.404")
    assert refused.value.more


# --- methods ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoints", "allowed"),
    [({"POST": 1}, ["POST"]), ({"GET": 1, "POST": 1}, ["GET", "HEAD", "POST"]), ({"GET": 1}, ["GET", "HEAD"])],
)
def test_who_is_answered_is_answered_without_a_body_too(endpoints: dict[str, Any], allowed: list[str]) -> None:
    view = ApiView()
    view.endpoints = endpoints  # type: ignore[misc]
    assert view.allowed_methods == allowed
    assert view.default_response_headers == {}


@pytest.mark.django_db
@pytest.mark.parametrize(("token", "status"), [(True, 405), (False, 401)])
@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "/v1/payments"), ("GET", "/v1/payments"), ("HEAD", "/v1/payments")]
)
def test_a_wrong_method_is_told_to_whoever_has_a_token(
    api: Api, method: str, path: str, token: bool, status: int
) -> None:
    """Also one that the view's parents have."""
    answer = (api if token else api.with_token(None)).call(method, path)
    assert answer.status == status


@pytest.mark.django_db
def test_head_is_a_read(api: Api) -> None:
    ident = api.pay().id
    answer = api.call("HEAD", f"/v1/payments/{ident}", {"entityId": api.entity or ""})
    assert answer.status == 200
    assert api.call("HEAD", f"/v1/payments/{'0' * 32}", {"entityId": api.entity or ""}).status == 404


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("method", "known", "status"), [("GET", "readPayment", 200), ("HEAD", "readPayment", 200), ("PUT", "other", 405)]
)
def test_a_request_is_traced_and_counted_by_its_endpoint(
    api: Api, monkeypatch: pytest.MonkeyPatch, method: str, known: str, status: int
) -> None:
    """By how much each is used and how long it takes: what a wrong method costs is no endpoint's."""
    traced: list[Any] = []
    counted: list[Any] = []

    @contextmanager
    def trace(name: str, **facts: Any) -> Iterator[Any]:
        yield SimpleNamespace(set=lambda **more: traced.append((name, facts["operation"], facts["ndc"](), more)))

    ident = api.pay().id
    monkeypatch.setattr(base_view.tracing, "trace_span", trace)
    monkeypatch.setattr(base_view.metrics, "count_request", lambda *given: counted.append(given))
    answer = api.call(method, f"/v1/payments/{ident}", {"entityId": api.entity or ""})
    ((span, operation, ndc, outcome),) = traced
    ((name, code, seconds),) = counted
    assert operation == name == (STATUS_ENDPOINT.name if known == "readPayment" else known)
    assert (span, outcome, code, answer.status) == (f"request {operation}", {"status": status}, status, status)
    assert ndc
    assert 0 <= seconds < 60


# --- admission ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("entityId", True),
        ("authentication.entityId", True),
        ("authentication%2EentityId", True),
        ("authentication%2eentityId", True),
        ("my.entityId", False),
        ("entityIds", False),
        ("authenticationXentityId", False),
    ],
)
@pytest.mark.parametrize("before", ["", "a=b&"])
@pytest.mark.parametrize("after", ["", "&a=b"])
def test_the_entity_is_found_in_a_form_that_is_not_decoded(name: str, found: bool, before: str, after: str) -> None:
    ident = "0123456789abcdef" * 2
    match = base_view._ENTITY.search(f"{before}{name}={ident}{after}".encode())
    assert (match[1].decode() if match else None) == (ident if found else None)
    for other in (ident[:-1], f"{ident}0", ident.upper(), f"{ident}%20"):
        assert base_view._ENTITY.search(f"{before}{name}={other}{after}".encode()) is None


@pytest.mark.django_db
def test_a_request_is_counted_by_its_operation_and_told_what_is_left(shop: Shop) -> None:
    limits = {
        endpoint.operation: {"limit": most, "window_s": 1_000_000}
        for endpoint, most in ((PAYMENT_ENDPOINT, 5), (STATUS_ENDPOINT, 9))
    }
    api = shop.api_of(shop.open_channel(limits=limits))
    paid = api.pay()
    for answer, most in ((paid, 5), (api.read(paid.id), 9)):
        assert answer.headers["RateLimit-Limit"] == str(most)
        assert answer.headers["RateLimit-Remaining"] == str(most - 1)


@pytest.mark.django_db
@pytest.mark.parametrize(("size", "admitted"), [(MAX_PREREAD_BYTES, 1), (MAX_PREREAD_BYTES + 1, 2)])
def test_a_long_body_is_read_after_its_token_was_checked(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, size: int, admitted: int
) -> None:
    calls: list[tuple[UUID | None, str, Any]] = []
    admit = base_view.token_admission.admit_token

    def counted(token: str, entity: UUID | None, scope: str, **more: Any) -> Any:
        calls.append((entity, scope, more["ip"]))
        return admit(token, entity, scope, **more)

    monkeypatch.setattr(base_view.token_admission, "admit_token", counted)
    body = form({"entityId": shop.api.entity or "", **payment()}.items())
    body += b"&" * (size - len(body))
    assert shop.api.send("/v1/payments", body).status in (200, 400)
    assert calls == [(None, "payments", "127.0.0.1")] * (admitted - 1) + [(shop.channel.pk, "payments", "127.0.0.1")]


@pytest.mark.django_db
def test_a_refused_request_is_logged_with_who_sent_it_and_a_read_is_not(shop: Shop) -> None:
    refused = shop.api.pay(amount="x", card__cvv="737")
    row = RequestLog.objects.get()
    assert (row.method, row.path, row.status, row.result_code) == ("POST", "/v1/payments", 400, "200.300.404")
    assert (row.entity_id, row.token, row.ip, row.payment) == (shop.channel.pk, shop.token.pk, "127.0.0.1", None)
    assert refused.body["ndc"] == f"{shop.channel.entity_id}-{row.id.hex}"
    assert "4200000000000000" not in str(row.parameters)
    assert "737" not in str(row.parameters)
    assert shop.api.get(f"/v1/payments/{'0' * 32}").status == 404
    assert RequestLog.objects.count() == 1


@pytest.mark.django_db
def test_a_request_has_taken_as_long_as_since_its_beginning(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its token's check, too, which a slow database makes long."""
    admit, ticks = base_view.token_admission.admit_token, time.perf_counter

    def slow(*given: Any, **more: Any) -> Any:
        monkeypatch.setattr(time, "perf_counter", lambda: ticks() + 3_600)
        return admit(*given, **more)

    monkeypatch.setattr(base_view.token_admission, "admit_token", slow)
    assert shop.api.pay(amount="x").status == 400
    assert 3_600_000 <= RequestLog.objects.get().duration_ms < 7_200_000


@pytest.mark.parametrize(("operation", "later"), [("checkout", True), ("payment", False)])
def test_a_checkout_is_held_to_its_tokens_limits_as_what_is_paid_later(
    monkeypatch: pytest.MonkeyPatch, operation: str, later: bool
) -> None:
    """A payout is prepared without a day's limit, and paid without the token."""
    asked: list[Any] = []
    monkeypatch.setattr(
        base_view.token_limits, "check_token_limits", lambda *given, **more: asked.append((given, more))
    )
    monkeypatch.setattr(base_view, "add_warning_header", lambda *given: asked.append(given))
    parsed = SimpleNamespace(values={"amount": "1.00"})
    told: list[Any] = []
    catalogue = SimpleNamespace(parse=lambda pairs, **more: (told.append((pairs, more)), parsed)[1])
    view = ApiView()
    view.endpoints = {"POST": SimpleNamespace(catalogue=catalogue, operation=operation)}  # type: ignore[misc, dict-item]
    context: Any = SimpleNamespace(
        trace=SimpleNamespace(method="POST"), pairs=[("a", "b")], admission=SimpleNamespace(limits="limits")
    )
    facts = frozenset({"threeds"})
    channel: Any = SimpleNamespace(parameters="strict", mask_card_data=False)
    assert view.parse(context, channel, facts) is parsed
    assert view.parse(context, None) is parsed
    masking: Any = SimpleNamespace(parameters="lenient", mask_card_data=True)
    assert view.parse(context, masking) is parsed
    assert told.pop() == ([("a", "b")], {"facts": frozenset(), "policy": "lenient", "masks": True})
    assert asked[:2] == [(("limits", {"amount": "1.00"}), {"pays_later": later}), (context, parsed, facts)]
    assert told == [
        ([("a", "b")], {"facts": facts, "policy": "strict", "masks": False}),
        ([("a", "b")], {"facts": frozenset(), "policy": base_view.UnknownNamePolicy.NORMAL, "masks": True}),
    ]


@pytest.mark.django_db
def test_a_refused_request_is_answered_with_its_rate_headers(shop: Shop) -> None:
    channel = shop.open_channel(limits={"*": {"limit": 7, "window_s": 1_000_000}})
    answer = shop.api_of(channel).pay(amount="x")
    assert (answer.status, answer.headers["RateLimit-Limit"], answer.headers["RateLimit-Remaining"]) == (400, "7", "6")


@pytest.mark.django_db
def test_a_request_without_an_entity_is_counted_for_its_tokens_merchant(shop: Shop) -> None:
    answer = shop.api.as_entity(None).pay()
    assert answer.status == 400
    assert int(answer.headers["RateLimit-Remaining"]) == int(answer.headers["RateLimit-Limit"]) - 1
    assert "entityId" in answer.errors


@pytest.mark.django_db
def test_an_answer_is_kept_by_nobody(api: Api) -> None:
    for answer in (api.pay(), api.pay(amount="x"), api.call("PUT", "/v1/payments")):
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Vary" not in answer.headers


@pytest.mark.django_db
@pytest.mark.usefixtures("same_connection")
@pytest.mark.parametrize(
    ("method", "path", "changes", "status"),
    [("POST", "", {}, 200), ("POST", "", {"amount": "x"}, 400), ("GET", f"/{'0' * 32}", {}, 404), ("PUT", "", {}, 405)],
)
def test_nothing_of_an_answered_request_waits_for_the_garbage_collector(
    shop: Shop, method: str, path: str, changes: dict[str, str], status: int
) -> None:
    """While it looks for cycles no thread of the web process works: 7 to 30 ms for what some hundred requests left."""
    application, answered = build_wsgi_application(), []
    fields = form({"entityId": shop.api.entity, **payment(**changes)}.items())
    query, body = ("", fields) if method == "POST" else (f"?entityId={shop.api.entity}", b"")
    headers = {"Authorization": f"Bearer {shop.api.token}"}

    def send() -> None:
        request = RequestFactory().generic(method, f"/v1/payments{path}{query}", body, FORM, headers=headers)
        application(request.environ, lambda line, _headers, _fault=None: answered.append(line[:3])).close()

    send()  # what is loaded or kept from the first request on
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        send()
        gc.collect()
        left = [type(each).__name__ for each in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert answered == [str(status)] * 2
    assert not left


# --- parameters ---------------------------------------------------------------------------------------------------


def test_a_warning_is_a_header_and_without_one_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(headers={"RateLimit-Limit": "1"})
    asked: list[Any] = []

    def build(parameters: Any, facts: Any) -> str:
        asked.append((parameters, facts))
        return "299 x" if facts else ""

    monkeypatch.setattr(base_view, "build_warning_header", build)
    parameters: Any = object()
    base_view.add_warning_header(context, parameters)  # type: ignore[arg-type]
    assert context.headers == {"RateLimit-Limit": "1"}
    base_view.add_warning_header(context, parameters, frozenset({"threeds"}))  # type: ignore[arg-type]
    assert context.headers == {"RateLimit-Limit": "1", "Warning": "299 x"}
    assert asked == [(parameters, frozenset()), (parameters, frozenset({"threeds"}))]
