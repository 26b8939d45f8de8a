"""What an idempotency key keeps of an answer: only what the payment's row does not know.

A final payment's row changes no more, so its answer can be told again, byte for byte: kept are the time, the build,
and what was said about the request itself. An answer that is not final is kept whole: its payment will move on.
Source: ruling D20; goals P4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.core import identifiers
from gateway.models import Payment, Status
from gateway.payments.rendering import render_payment

_FINAL: Final = (Status.APPROVED, Status.DECLINED)
_COMPLETE_PREFIX: Final = "{"
"""How an answer that is kept whole begins; the others are a JSON list."""


PaymentRenderer = Callable[[Payment], dict[str, Any]]
"""How an endpoint tells of a payment, envelope apart."""


def render_response_body(
    payment: Payment, shared: Mapping[str, Any], more: Mapping[str, Any], tell: PaymentRenderer = render_payment
) -> dict[str, Any]:
    """The body of an answer: the payment; ``more``, which is parameterErrors (in the result) and ignoredParameters;
    and ``shared``, the envelope's buildNumber, timestamp and ndc."""
    body = tell(payment)
    if "parameterErrors" in more:
        body["result"]["parameterErrors"] = more["parameterErrors"]
    if "ignoredParameters" in more:
        body["ignoredParameters"] = more["ignoredParameters"]
    return body | {name: shared[name] for name in ("buildNumber", "timestamp", "ndc")}


def sort_like_jsonb(value: Any) -> Any:
    """A JSON value with its names in the order in which PostgreSQL keeps them (jsonb): shorter ones first."""
    if isinstance(value, dict):
        return {name: sort_like_jsonb(value[name]) for name in sorted(value, key=_jsonb_sort_key)}
    if isinstance(value, list):
        return [sort_like_jsonb(one) for one in value]
    return value


def _jsonb_sort_key(name: str) -> tuple[int, bytes]:
    octets = name.encode()
    return len(octets), octets


def compact_response(payment: Payment, shared: Mapping[str, Any], more: Mapping[str, Any], text: str) -> str:
    """What to keep of the answer ``text``. :func:`restore_response` makes it of that."""
    if payment.status not in _FINAL:
        return text
    ndc = "" if shared["ndc"] == _ndc(payment) else shared["ndc"]
    facts = [shared["timestamp"], shared["buildNumber"], ndc, *([dict(more)] if more else [])]
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))


def is_complete_response(kept: str) -> bool:
    """Whether an answer was kept as it was sent."""
    return kept.startswith(_COMPLETE_PREFIX)


def restore_response(payment: Payment, kept: str) -> dict[str, Any]:
    """The body that was answered, out of the payment and what :func:`compact_response` kept."""
    timestamp, build, ndc, *rest = json.loads(kept)
    shared = {"buildNumber": build, "timestamp": timestamp, "ndc": ndc or _ndc(payment)}
    return render_response_body(payment, shared, rest[0] if rest else {})


def _ndc(payment: Payment) -> str:
    return identifiers.format_ndc(payment.request_id, payment.channel_id.hex)
