"""Facts about the shopper and the order of a disputed payment, for its page and its packet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from gateway.backoffice.kit.formatting import format_labelled
from gateway.backoffice.payments.explanation import AVS_RESULT_TEXTS, CVV_RESULT_TEXTS
from gateway.core.compact_json import get_json_object
from gateway.core.masking import mask_text
from gateway.models import Payment
from gateway.threeds.authentications import find_authentication_of_payment

MAX_TRACKING_NUMBERS: Final = 10
"""Tracking numbers of cart items that are listed."""
_ADDRESS: Final = ("street1", "street2", "postcode", "city", "state", "country")


def describe_disputed_payment(disputed: Payment) -> list[tuple[str, str]]:
    """Names and values for display. Authentication and AVS/CVV results are taken from the chain's first payment: a
    capture has neither."""
    first = disputed if disputed.chain == disputed.id else Payment.objects.get(pk=disputed.chain)
    return [
        *_authentication_rows(first),
        *_avs_cvv_rows(first),
        *_shopper_rows(first.request),
        *_delivery_rows(first.request),
    ]


def _authentication_rows(first: Payment) -> list[tuple[str, str]]:
    proof = find_authentication_of_payment(first.id)
    if proof is not None:
        named = (
            (_("3-D Secure"), proof.version),
            (_("Result"), proof.trans_status),
            (_("Flow"), proof.flow),
            ("ECI", proof.eci),
            (_("Directory's id"), proof.ds_transaction),
        )
        return [(name, value) for name, value in named if value]
    if sent := first.request.get("threeDSecure"):
        return [(_("3-D Secure"), _("by another provider, ECI %s") % sent.get("eci", "–"))]
    return [(_("3-D Secure"), _("not asked for this payment"))]


def _avs_cvv_rows(first: Payment) -> list[tuple[str, str]]:
    return [
        (_("Address check (AVS)"), _describe_code(AVS_RESULT_TEXTS, first.answer.get("avs"))),
        (_("Security code (CVV)"), _describe_code(CVV_RESULT_TEXTS, first.answer.get("cvv"))),
    ]


def _describe_code(table: Mapping[str, str], code: str | None) -> str:
    """A bank's letter code with its meaning: clerks do not know the codes, acquirers ask for them."""
    if not code:
        return _("not told")
    return format_labelled(code, _(table[code])) if code in table else code


def _shopper_rows(request: Mapping[str, Any]) -> list[tuple[str, str]]:
    customer = get_json_object(request, "customer")
    name = " ".join(str(customer[key]) for key in ("givenName", "surname") if customer.get(key))
    named = (
        (_("Shopper"), name),
        (_("E-mail"), customer.get("email")),
        (_("IP address"), customer.get("ip")),
        (_("Billing address"), _format_address(get_json_object(request, "billing"))),
    )
    return [(what, mask_text(str(value))) for what, value in named if value]


def _delivery_rows(request: Mapping[str, Any]) -> list[tuple[str, str]]:
    shipping = get_json_object(request, "shipping")
    items = get_json_object(request, "cart").get("items") or []
    numbers = [str(shipping.get("trackingNumber") or "")]
    numbers += [str(item.get("shippingTrackingNumber") or "") for item in items if isinstance(item, dict)]
    named = (
        (_("Delivery address"), _format_address(shipping)),
        (_("Delivery"), shipping.get("method")),
        (_("Carrier"), shipping.get("logisticsProvider")),
        (_("Expected on"), shipping.get("expectedDate")),
        (_("Tracking numbers"), ", ".join(filter(None, numbers[:MAX_TRACKING_NUMBERS]))),
    )
    return [(what, mask_text(str(value))) for what, value in named if value]


def _format_address(group: Mapping[str, Any]) -> str:
    return ", ".join(str(group[name]) for name in _ADDRESS if group.get(name))
