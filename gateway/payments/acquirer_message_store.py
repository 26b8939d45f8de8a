"""What was said to an acquirer, kept beside a payment that says most of it already.

A message in our own words (gateway.connectors.acquirer_message.mask_request) repeats the payment. What is kept of it is
how it differs from what the payment's row tells, as a JSON merge patch (RFC 7396): a null leaves a name out. Other
messages, a processor's own form or one of ISO 8583, are kept as they are.
Source: goals, P4; decision 0044.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.models import AcquirerExchange, Payment

PATCH_KEY: Final = "differs"
"""The one name of a message that is kept as a patch."""
AS_REQUESTED_KEY: Final = "asRequested"
"""In rows of earlier releases: names of structures that went on word for word, and stand in the payment alone."""
_FROM_COLUMNS: Final = frozenset({"paymentType", "paymentBrand", "amount", "currency", "testMode"})


def compact_message(sent: Mapping[str, Any], payment: Payment) -> dict[str, Any]:
    """What to keep of the masked message ``sent``; :func:`restore_message` makes it of that again."""
    if sent.get("transaction") != payment.id.hex:
        return dict(sent)
    told = _base_message(payment)
    patch = _build_patch(told, sent)
    # A null of the message's own would be read as one that leaves a name out.
    return {PATCH_KEY: patch} if _apply_patch(told, patch) == sent else dict(sent)


def restore_message(exchange: AcquirerExchange, payment: Payment) -> dict[str, Any]:
    """What was sent, whole; ``payment`` is the one that the exchange is about."""
    sent: Mapping[str, Any] = exchange.sent
    if sent.keys() == {PATCH_KEY}:
        return _apply_patch(_base_message(payment), sent[PATCH_KEY])
    own = {name: value for name, value in sent.items() if name != AS_REQUESTED_KEY}
    return own | {name: payment.request[name] for name in sent.get(AS_REQUESTED_KEY, [])}


def _base_message(payment: Payment) -> dict[str, Any]:
    """The message that the payment's row would give; nothing in it ever changes."""
    own = {name: value for name, value in payment.request.items() if name not in _FROM_COLUMNS}
    return own | {
        "operation": payment.payment_type,
        "amount": payment.money.text(),
        "currency": payment.currency,
        "brand": payment.brand,
        "transaction": payment.id.hex,
    }


def _build_patch(told: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """What makes ``sent`` out of ``told``."""
    patch: dict[str, Any] = {name: None for name in told if name not in sent}
    for name, value in sent.items():
        before = told.get(name)
        if value == before:
            continue
        both = isinstance(value, Mapping) and isinstance(before, Mapping)
        patch[name] = _build_patch(before, value) if both else value  # type: ignore[arg-type]
    return patch


def _apply_patch(told: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """``told`` with ``patch`` applied, as RFC 7396 says."""
    found = dict(told)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, Mapping):
            before = found.get(name)
            found[name] = _apply_patch(before if isinstance(before, Mapping) else {}, value)
        else:
            found[name] = value
    return found
