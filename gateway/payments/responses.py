"""Renders the response to a request that made a payment: the only place that does.

A response is made of the payment, the envelope, and remarks about the request (parameterErrors, ignoredParameters).
With an idempotency key it is rendered before the statement that completes the payment, which stores it, and replayed
byte for byte; without one it is rendered afterwards.

Stored is only what cannot be rebuilt from the payment's row. A final payment's row no longer changes, so its response
can be rebuilt byte for byte from the row, the timestamp, the build number and the remarks. A response that is not final
is stored whole, because its payment will change. Source: ruling D20; goals P4; docs/decisions/0058.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings

from gateway.catalogue.parse import Parameters
from gateway.connectors.capabilities import SENDS_EVERYTHING, SentParameters, list_unsent
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock, identifiers, result_codes
from gateway.core.brands import is_card_brand
from gateway.core.compact_json import encode_json
from gateway.models import Payment
from gateway.payments.rendering import render_payment, resolve_result_code
from gateway.payments.states import FINAL_STATUSES

_COMPLETE_PREFIX: Final = "{"
"""First character of a response that is stored whole, a JSON object; compact ones are a JSON list."""


PaymentRenderer = Callable[[Payment], dict[str, Any]]
"""Renders a payment as one endpoint answers it, without the envelope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFormat:
    """What the response to one request has besides its payment. ``ndc``: of the request; ``docs_url``: reference page
    of its endpoint; ``parameters``: as they were parsed; ``renderer``: how its endpoint shows a payment."""

    ndc: str
    docs_url: str
    parameters: Parameters
    renderer: PaymentRenderer = render_payment


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedResponse:
    """A response. ``status``: HTTP; ``text``: the body as it is sent; ``stored_text``: as an idempotency
    key stores it."""

    status: int
    text: str
    stored_text: str = ""


def resolve_http_status(payment: Payment) -> int:
    """The HTTP status of a payment's response: 200 or 400 by the family of its result code."""
    return result_codes.http_status(resolve_result_code(payment))


def render_response(payment: Payment, form: ResponseFormat) -> RenderedResponse:
    """The response to a request without an idempotency key."""
    body = render_response_body(payment, build_envelope_fields(form.ndc), _render_remarks(payment, form), form.renderer)
    return RenderedResponse(status=resolve_http_status(payment), text=encode_json(body).decode())


def render_stored_response(payment: Payment, form: ResponseFormat) -> RenderedResponse:
    """The response to a request with an idempotency key. Its member names are in the order of PostgreSQL's jsonb, which
    is the order of a replay; the payment's JSON columns are put into it, too."""
    payment.request, payment.answer = sort_like_jsonb(payment.request), sort_like_jsonb(payment.answer)
    shared, remarks = build_envelope_fields(form.ndc), _render_remarks(payment, form)
    text = encode_json(render_response_body(payment, shared, remarks, form.renderer)).decode()
    # Only payments can be rebuilt from their row: a registration or a job may change later.
    stored_text = compact_response(payment, shared, remarks, text) if form.renderer is render_payment else text
    return RenderedResponse(status=resolve_http_status(payment), text=text, stored_text=stored_text)


def render_response_body(
    payment: Payment,
    shared: Mapping[str, Any],
    remarks: Mapping[str, Any],
    renderer: PaymentRenderer = render_payment,
) -> dict[str, Any]:
    """The body of a response: the payment as ``renderer`` renders it; ``remarks``: parameterErrors (put into the
    result) and ignoredParameters; ``shared``: the envelope's buildNumber, timestamp and ndc."""
    body = renderer(payment)
    if "parameterErrors" in remarks:
        body["result"]["parameterErrors"] = remarks["parameterErrors"]
    if "ignoredParameters" in remarks:
        body["ignoredParameters"] = remarks["ignoredParameters"]
    return body | {name: shared[name] for name in ("buildNumber", "timestamp", "ndc")}


def build_envelope_fields(ndc: str) -> dict[str, str]:
    """buildNumber, timestamp (of the response, real time) and ndc."""
    return {
        "buildNumber": settings.GATEWAY_BUILD_NUMBER,
        "timestamp": clock.format_timestamp(clock.real_now()),
        "ndc": ndc,
    }


def render_ignored_parameters(parameters: Parameters) -> dict[str, Any]:
    """``ignoredParameters`` of a response, the sent names that were ignored; empty without any."""
    return {"ignoredParameters": list(parameters.ignored)} if parameters.ignored else {}


def _render_remarks(payment: Payment, form: ResponseFormat) -> dict[str, Any]:
    """Remarks about the request that are not in the payment: parameterErrors and ignoredParameters."""
    remarks: dict[str, Any] = {}
    refusals = payment.refusals or form.parameters.refusals
    if refusals and payment.result_code == refusals[0].code:
        remarks["parameterErrors"] = [error.as_json(form.docs_url) for error in refusals]
    ignored = (*form.parameters.ignored, *(() if refusals else _list_unsent_parameters(payment, form.parameters)))
    return remarks | ({"ignoredParameters": list(ignored)} if ignored else {})


def _list_unsent_parameters(payment: Payment, parameters: Parameters) -> tuple[str, ...]:
    """The descriptive parameters that the payment's acquirer is not sent: docs/decisions/0070. Of the account that took
    it in the end: a failover may have changed it."""
    connector = CONNECTORS.get(payment.connector)  # a change of a registration has none
    if connector is None or connector.sends is SENDS_EVERYTHING:
        return ()
    sent: SentParameters = {**parameters.secrets, **parameters.values}
    brand = payment.brand if is_card_brand(payment.brand) else ""
    return list_unsent(connector.sends, brand, payment.payment_type, sent)


def sort_like_jsonb(value: Any) -> Any:
    """A JSON value with its object keys in PostgreSQL's jsonb order: shorter keys first, then bytewise."""
    if isinstance(value, dict):
        # UTF-8 sorts as its characters do; the second sort keeps the order of names of the same length.
        names = sorted(sorted(value), key=len if "".join(value).isascii() else _count_octets)
        return {
            name: sort_like_jsonb(found) if (found := value[name]).__class__ is not str else found for name in names
        }
    if isinstance(value, list):
        return [sort_like_jsonb(item) for item in value]
    return value


def _count_octets(name: str) -> int:
    return len(name.encode())


def compact_response(payment: Payment, shared: Mapping[str, Any], remarks: Mapping[str, Any], text: str) -> str:
    """The response ``text`` in its stored form; :func:`restore_response` is the inverse."""
    if payment.status not in FINAL_STATUSES:
        return text
    ndc = "" if shared["ndc"] == _build_ndc(payment) else shared["ndc"]
    facts = [shared["timestamp"], shared["buildNumber"], ndc, *([dict(remarks)] if remarks else [])]
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))


def is_complete_response(stored_text: str) -> bool:
    """Whether a response is stored whole."""
    return stored_text.startswith(_COMPLETE_PREFIX)


def restore_response(payment: Payment, stored_text: str) -> dict[str, Any]:
    """Rebuild the response body from the payment and what :func:`compact_response` stored."""
    timestamp, build, ndc, *rest = json.loads(stored_text)
    shared = {"buildNumber": build, "timestamp": timestamp, "ndc": ndc or _build_ndc(payment)}
    return render_response_body(payment, shared, rest[0] if rest else {})


def _build_ndc(payment: Payment) -> str:
    return identifiers.format_ndc(payment.request_id, payment.channel_id.hex)
