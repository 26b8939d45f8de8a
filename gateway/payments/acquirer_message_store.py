"""Stores acquirer messages as a JSON merge patch (RFC 7396) against the payment row, to save space.

Our own message format (gateway.connectors.acquirer_message.mask_request) mostly repeats the payment, so only the
difference to the row is stored; in the patch, null removes a name. Messages in other formats (a processor's own, or
ISO 8583) are stored as they are. Source: goals, P4; decision 0044.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.models import AcquirerExchange, Payment
from gateway.payments.rendering import COLUMN_PARAMETERS

PATCH_KEY: Final = "differs"
"""The only key of a message that is stored as a patch."""


def compact_message(sent: Mapping[str, Any], payment: Payment) -> dict[str, Any]:
    """The masked message ``sent`` in its stored form; :func:`restore_message` is the inverse."""
    # The stub acquirer's name for the transaction is "key"; its inquiries have that alone and repeat nothing.
    own = sent.get("transaction") or ("operation" in sent and sent.get("key"))
    if own != payment.id.hex:
        return dict(sent)
    base = _build_base_message(payment)
    patch = _build_patch(base, sent)
    # A null in the message itself would be read as a removal: such a message is stored whole.
    return {PATCH_KEY: patch} if _apply_patch(base, patch) == sent else dict(sent)


def restore_message(exchange: AcquirerExchange, payment: Payment) -> dict[str, Any]:
    """The complete message of a stored exchange of ``payment``."""
    sent: Mapping[str, Any] = exchange.sent
    if sent.keys() == {PATCH_KEY}:
        return _apply_patch(_build_base_message(payment), sent[PATCH_KEY])
    return dict(sent)


def _build_base_message(payment: Payment) -> dict[str, Any]:
    """The message as the payment's row alone would give it, from columns that never change."""
    own = {name: value for name, value in payment.request.items() if name not in COLUMN_PARAMETERS}
    return own | {
        "operation": payment.payment_type,
        "amount": payment.money.text(),
        "currency": payment.currency,
        "brand": payment.brand,
        "transaction": payment.id.hex,
    }


def _build_patch(base: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that turns ``base`` into ``message``."""
    patch: dict[str, Any] = {name: None for name in base if name not in message}
    for name, value in message.items():
        before = base.get(name)
        if value == before:
            continue
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            patch[name] = _build_patch(before, value)
        else:
            patch[name] = value
    return patch


def _apply_patch(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``patch`` applied (RFC 7396, section 2)."""
    message = dict(base)
    for name, value in patch.items():
        if value is None:
            message.pop(name, None)
        elif isinstance(value, Mapping):
            before = message.get(name)
            message[name] = _apply_patch(before if isinstance(before, Mapping) else {}, value)
        else:
            message[name] = value
    return message
