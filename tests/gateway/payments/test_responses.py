"""The body of a response, its remarks, and the form in which a key stores it. No database."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings

from gateway.catalogue.errors import ParameterError
from gateway.catalogue.parameters import Parameters
from gateway.connectors.capabilities import SENDS_EVERYTHING
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock, identifiers
from gateway.core.secret import Secret
from gateway.models import Channel, Merchant, Payment, Status
from gateway.payments import responses
from gateway.payments.rendering import render_payment
from gateway.payments.responses import (
    ResponseFormat,
    build_envelope_fields,
    compact_response,
    is_complete_response,
    render_ignored_parameters,
    render_response,
    render_response_body,
    render_stored_response,
    resolve_http_status,
    restore_response,
    sort_like_jsonb,
)

IDENT, CHANNEL, REQUEST = UUID(int=5), UUID(int=2), UUID(int=7)
DOCS = "https://docs.example/payments"
FAULT = ParameterError(name="card.expiryYear", message="has expired", code="100.100.303", known=True)
OWN_NDC = identifiers.format_ndc(REQUEST, CHANNEL.hex)


def row(**values: Any) -> Payment:
    base: dict[str, Any] = {
        "id": IDENT, "chain": IDENT, "merchant": Merchant(name="Shop"), "channel": Channel(id=CHANNEL),
        "payment_type": "DB", "brand": "VISA", "method": "CC", "amount": Decimal("92.00"), "currency": "EUR",
        "status": Status.APPROVED, "result_code": "000.100.110", "answer": {"descriptor": "Shop"},
        "connector": "simulator", "request_id": REQUEST,
    }  # fmt: skip
    return Payment(**base | values)


def form(*, ndc: str = OWN_NDC, renderer: Any = render_payment, **parameters: Any) -> ResponseFormat:
    return ResponseFormat(ndc=ndc, docs_url=DOCS, parameters=Parameters(**parameters), renderer=renderer)


def test_a_response_is_its_payment_in_an_envelope() -> None:
    rendered = render_response(row(), form(ndc="of-request"))
    body = json.loads(rendered.text)
    assert (rendered.status, rendered.stored_text, body["ndc"]) == (200, "", "of-request")
    assert {name: body[name] for name in render_payment(row())} == json.loads(json.dumps(render_payment(row())))
    assert not {"ignoredParameters", "parameterErrors"} & (body.keys() | body["result"].keys())


def test_an_envelope_has_the_build_the_time_and_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "real_now", lambda: datetime(2026, 11, 29, 12, 0, tzinfo=UTC))
    with override_settings(GATEWAY_BUILD_NUMBER="build-1"):
        assert build_envelope_fields("n") == {
            "buildNumber": "build-1", "timestamp": "2026-11-29 12:00:00+0000", "ndc": "n",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "status"),
    [("000.100.110", 200), ("000.200.000", 200), ("800.100.155", 400), ("", 200), ("000.100.221", 200)],
)
def test_a_status_goes_by_the_code_of_the_payment(code: str, status: int) -> None:
    assert resolve_http_status(row(result_code=code)) == status
    assert render_response(row(result_code=code), form()).status == status
    assert render_stored_response(row(result_code=code), form()).status == status


def test_any_renderer_has_the_remarks_and_the_envelope() -> None:
    made = render_response_body(
        row(), {"buildNumber": "b", "timestamp": "t", "ndc": "n", "other": "x"},
        {"parameterErrors": [1], "ignoredParameters": ["a"]}, lambda payment: {"result": {"code": payment.result_code}},
    )  # fmt: skip
    assert made == {
        "result": {"code": "000.100.110", "parameterErrors": [1]}, "ignoredParameters": ["a"], "buildNumber": "b",
        "timestamp": "t", "ndc": "n",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "of_payment", "of_request", "told"),
    [
        ("100.100.303", (FAULT,), (), True),
        ("100.100.303", (), (FAULT,), True),
        ("100.100.303", (), (), False),
        # It was declined for another reason: what would have been refused is no remark.
        ("800.100.155", (FAULT,), (), False),
    ],
)
def test_a_payment_that_was_declined_for_a_parameter_names_it(
    code: str, of_payment: tuple[ParameterError, ...], of_request: tuple[ParameterError, ...], told: bool
) -> None:
    payment = row(status=Status.DECLINED, result_code=code)
    payment.refusals = of_payment
    result = json.loads(render_response(payment, form(refusals=of_request)).text)["result"]
    assert result.get("parameterErrors") == ([FAULT.as_json(DOCS)] if told else None)


CART = {"cart.items[0].name": "Shoes"}


@pytest.mark.parametrize(
    ("sends", "connector", "refused", "told"),
    [
        ((), "simulator", False, ["unknown", "cart.items[n].name"]),
        (SENDS_EVERYTHING, "simulator", False, ["unknown"]),
        ((), "", False, ["unknown"]),
        ((), "simulator", True, ["unknown"]),
    ],
)
def test_what_was_ignored_or_not_sent_on_is_told(
    sends: Any, connector: str, refused: bool, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CONNECTORS["simulator"], "sends", sends)
    payment = row(connector=connector)
    payment.refusals = (FAULT,) if refused else ()
    made = form(values=dict(CART), secrets={"card.number": Secret("4200000000000000")}, ignored=("unknown",))
    assert json.loads(render_response(payment, made).text)["ignoredParameters"] == told
    assert json.loads(render_stored_response(payment, made).text)["ignoredParameters"] == told


@pytest.mark.parametrize(("ignored", "shown"), [((), {}), (("a", "b"), {"ignoredParameters": ["a", "b"]})])
def test_ignored_names_are_shown_where_there_are_any(ignored: tuple[str, ...], shown: dict[str, Any]) -> None:
    assert render_ignored_parameters(Parameters(ignored=ignored)) == shown


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize(("ndc", "ignored"), [(OWN_NDC, ()), ("other-ndc", ("a",)), (OWN_NDC, ("a",))])
def test_what_is_stored_gives_the_same_response_again(status: Status, ndc: str, ignored: tuple[str, ...]) -> None:
    """Of a final payment that is what its row does not know; any other changes, so its response is stored whole."""
    payment = row(status=status, answer={"resultDetails": {"bb": "1", "a": "2"}, "descriptor": "Shop"})
    rendered = render_stored_response(payment, form(ndc=ndc, ignored=ignored))
    final = status in (Status.APPROVED, Status.DECLINED)
    assert is_complete_response(rendered.stored_text) is not final
    if not final:
        assert rendered.stored_text == rendered.text
        return
    assert list(payment.answer["resultDetails"]) == ["a", "bb"]
    kept = json.loads(rendered.stored_text)
    assert kept[2] == ("" if ndc == OWN_NDC else ndc)
    assert kept[3:] == [{"ignoredParameters": ["a"]}] * bool(ignored)
    again = restore_response(payment, rendered.stored_text)
    assert json.dumps(again, separators=(",", ":")) == rendered.text


def test_what_another_renderer_made_is_stored_whole() -> None:
    """A registration or a job may change later."""
    rendered = render_stored_response(row(), form(renderer=lambda payment: {"result": {}, "id": payment.id.hex}))
    assert rendered.stored_text == rendered.text
    assert is_complete_response(rendered.stored_text)


def test_a_compact_response_keeps_the_build_and_the_time_it_was_made_with() -> None:
    shared = {"buildNumber": "old", "timestamp": "then", "ndc": OWN_NDC}
    text = compact_response(row(), shared, {}, "whole")
    assert json.loads(text) == ["then", "old", ""]
    body = restore_response(row(), text)
    assert (body["buildNumber"], body["timestamp"], body["ndc"]) == ("old", "then", OWN_NDC)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ({"bb": 1, "a": 2, "ab": 3}, ["a", "ab", "bb"]),
        ({"é": 1, "zz": 2, "z": 3, "aaa": 4}, ["z", "zz", "é", "aaa"]),
        ({}, []),
    ],
)
def test_names_are_sorted_by_their_octets_shorter_ones_first(value: dict[str, int], names: list[str]) -> None:
    assert list(sort_like_jsonb(value)) == names
    assert list(sort_like_jsonb([{"x": value}])[0]["x"]) == names
    assert sort_like_jsonb(value) == value


@pytest.mark.parametrize(("brand", "asked_for"), [("VISA", "VISA"), ("DIRECTDEBIT_SEPA", ""), ("WALLET1", "")])
def test_what_was_not_sent_on_is_asked_of_the_account_that_took_the_payment(
    brand: str, asked_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a card's own brand: rows of a connector name card networks."""
    asked: list[Any] = []
    monkeypatch.setattr(CONNECTORS["simulator"], "sends", ())
    monkeypatch.setattr(responses, "list_unsent", lambda *each: (asked.append(each), ("unsent",))[1])
    made = form(values={"a": "1", "both": "plain"}, secrets={"b": Secret("2"), "both": Secret("3")})
    body = json.loads(render_response(row(brand=brand, payment_type="PA"), made).text)
    assert body["ignoredParameters"] == ["unsent"]
    assert asked == [((), asked_for, "PA", {"a": "1", "b": Secret("2"), "both": "plain"})]


def test_a_renderer_of_its_own_renders_the_response() -> None:
    made = form(ndc="n", renderer=lambda payment: {"result": {"code": "x"}, "own": payment.id.hex})
    for rendered in (render_response(row(), made), render_stored_response(row(), made)):
        body = json.loads(rendered.text)
        assert (body["own"], body["ndc"], body["result"]) == (IDENT.hex, "n", {"code": "x"})
        assert "amount" not in body


def test_columns_are_put_into_the_order_of_a_replay() -> None:
    payment = row(request={"bb": 1, "a": {"dd": 1, "c": 2}}, answer={"descriptor": "Shop", "avs": "A"})
    render_stored_response(payment, form())
    assert list(payment.request) == ["a", "bb"]
    assert list(payment.request["a"]) == ["c", "dd"]
    assert list(payment.answer) == ["avs", "descriptor"]
