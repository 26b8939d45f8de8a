"""Compact storage of responses under an idempotency key: only what cannot be rebuilt from the payment's row.

A final payment's row no longer changes, so its response can be rebuilt byte for byte from the row, the timestamp, the
build number and the remarks about the request. A response that is not final is stored whole, because its payment will
change. Source: ruling D20; goals P4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.core import identifiers
from gateway.models import Payment
from gateway.payments.rendering import render_payment
from gateway.payments.states import FINAL_STATUSES

_COMPLETE_PREFIX: Final = "{"
"""First character of a response that is stored whole, a JSON object; compact ones are a JSON list."""


PaymentRenderer = Callable[[Payment], dict[str, Any]]
"""Renders a payment as one endpoint answers it, without the envelope."""


def render_response_body(
    payment: Payment, shared: Mapping[str, Any], more: Mapping[str, Any], tell: PaymentRenderer = render_payment
) -> dict[str, Any]:
    """The body of a response: the payment as ``tell`` renders it; ``more``: parameterErrors (put into the result) and
    ignoredParameters; ``shared``: the envelope's buildNumber, timestamp and ndc."""
    body = tell(payment)
    if "parameterErrors" in more:
        body["result"]["parameterErrors"] = more["parameterErrors"]
    if "ignoredParameters" in more:
        body["ignoredParameters"] = more["ignoredParameters"]
    return body | {name: shared[name] for name in ("buildNumber", "timestamp", "ndc")}


def sort_like_jsonb(value: Any) -> Any:
    """A JSON value with its object keys in PostgreSQL's jsonb order: shorter keys first, then bytewise."""
    if isinstance(value, dict):
        return {name: sort_like_jsonb(value[name]) for name in sorted(value, key=_jsonb_sort_key)}
    if isinstance(value, list):
        return [sort_like_jsonb(item) for item in value]
    return value


def _jsonb_sort_key(name: str) -> tuple[int, bytes]:
    octets = name.encode()
    return len(octets), octets


def compact_response(payment: Payment, shared: Mapping[str, Any], more: Mapping[str, Any], text: str) -> str:
    """The response ``text`` in its stored form; :func:`restore_response` is the inverse."""
    if payment.status not in FINAL_STATUSES:
        return text
    ndc = "" if shared["ndc"] == _build_ndc(payment) else shared["ndc"]
    facts = [shared["timestamp"], shared["buildNumber"], ndc, *([dict(more)] if more else [])]
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))


def is_complete_response(kept: str) -> bool:
    """Whether a response is stored whole."""
    return kept.startswith(_COMPLETE_PREFIX)


def restore_response(payment: Payment, kept: str) -> dict[str, Any]:
    """Rebuild the response body from the payment and what :func:`compact_response` stored."""
    timestamp, build, ndc, *rest = json.loads(kept)
    shared = {"buildNumber": build, "timestamp": timestamp, "ndc": ndc or _build_ndc(payment)}
    return render_response_body(payment, shared, rest[0] if rest else {})


def _build_ndc(payment: Payment) -> str:
    return identifiers.format_ndc(payment.request_id, payment.channel_id.hex)
