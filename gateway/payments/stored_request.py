"""The JSON column ``Payment.request``: the echo of what was sent, without what the row's columns say.

Amount, currency and payment type are stored once, as columns. Source: ruling D17; docs/decisions/0058.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.catalogue.parse import Parameters
from gateway.connectors.acquirer_message import flatten_body
from gateway.models import Payment

_STORED_AS_COLUMNS: Final = frozenset({"amount", "currency", "paymentType"})


def build_stored_request(parameters: Parameters) -> dict[str, Any]:
    """``Payment.request`` of a payment that is made by ``parameters``."""
    return drop_stored_columns(parameters.echo())


def drop_stored_columns(request: Mapping[str, Any]) -> dict[str, Any]:
    """``request``, an echo, without amount, currency and payment type: a payment and a job have columns for them."""
    return {name: value for name, value in request.items() if name not in _STORED_AS_COLUMNS}


def restore_sent_parameters(payment: Payment) -> dict[str, str]:
    """The parameters that ``payment`` was made by, by full name, as far as they are stored."""
    money = {"amount": payment.money.text(), "currency": payment.currency}
    return {**flatten_body(payment.request), **money, "paymentType": payment.payment_type}
