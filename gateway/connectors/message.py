"""What every connector does to a request before it leaves: the rules of the specification about what goes onwards.

Source: Part A, Basic payment (descriptor, merchantInvoiceId), Billing address (houseNumber1), Shipping address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.catalogue.endpoints import PAYMENTS
from gateway.catalogue.parse import nest
from gateway.connectors.port import AcquirerRequest
from gateway.masking import mask_pan

_ADDRESSES = ("billing", "shipping", "merchant.billing", "merchant.shipping")


def onwards(values: Mapping[str, str]) -> dict[str, str]:
    """The parameters that may leave the house: no secrets, no merchantInvoiceId, no merchantMemo; ``street2`` is
    ignored beside a ``houseNumber1``; ``merchant.name`` overrides the descriptor."""
    found: dict[str, str] = {}
    for name, value in values.items():
        row = PAYMENTS.catalogue.find(name)
        if row is not None and row[0].param.onwards and not row[0].param.secret and not row[0].param.private:
            found[name] = value
    for address in _ADDRESSES:
        if f"{address}.houseNumber1" in found:
            found.pop(f"{address}.street2", None)
    if "merchant.name" in found:
        found["descriptor"] = found["merchant.name"]
    return found


def flat(body: Mapping[str, Any]) -> dict[str, str]:
    """A nested echo as parameters by full name again: what :func:`nest` does, undone."""
    return dict(_flat(body, ""))


def _flat(node: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, Mapping):
        for key, child in node.items():
            in_map = f"{name}[{key}]"
            is_map = bool(name) and PAYMENTS.catalogue.find(in_map) is not None
            yield from _flat(child, in_map if is_map else f"{name}.{key}" if name else key)
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from _flat(child, f"{name}[{index}]")
    elif isinstance(node, str):
        yield name, node


def masked_message(request: AcquirerRequest) -> dict[str, Any]:
    """The question as the exchange keeps it: nested, the card number masked, the CVV only said to be there."""
    entries = []
    for name, value in request.parameters.items():
        found = PAYMENTS.catalogue.find(name)
        if found is not None:
            row, indexes, key = found
            entries.append((row.path, indexes, key, value))
    body = nest(entries)
    for name in ("paymentType", "amount", "currency", "paymentBrand"):
        body.pop(name, None)
    message: dict[str, Any] = {
        "operation": request.operation,
        "amount": request.money.text(),
        "currency": request.money.currency,
        "brand": request.brand,
        "transaction": request.payment.hex,
    }
    if request.reference:
        message["reference"] = request.reference
    card = body.pop("card", {})
    if request.card is not None:
        message["card"] = {
            **card,
            "number": mask_pan(request.card.number.reveal()),
            "expiryMonth": request.card.expiry_month,
            "expiryYear": request.card.expiry_year,
            "cvvPresent": request.card.cvv is not None,
        }
    return message | body
