"""The shopper's stored payment means that a checkout offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from checkout.form_parameters import list_offered_registration_ids
from checkout.models import Checkout
from gateway.core import brands, clock, identifiers
from gateway.core.brands import CardBrand
from gateway.core.card_number import is_card_expired
from gateway.models import Registration

MAX_OFFERED_REGISTRATIONS: Final = 30
"""Stored means shown on one form."""


def list_offered_registrations(row: Checkout, prepared: Mapping[str, str]) -> list[dict[str, Any]]:
    """The offered registrations for the form, in the merchant's order, without those that cannot be paid with."""
    wanted = [
        found
        for text in list_offered_registration_ids(prepared)[:MAX_OFFERED_REGISTRATIONS]
        if (found := identifiers.parse_id(text)) is not None
    ]
    if not wanted or row.kind == Checkout.Kind.REGISTRATION:
        return []
    rows = Registration.objects.filter(
        pk__in=wanted, merchant=row.merchant_id, channel=row.channel_id, status=Registration.Status.ACTIVE
    ).defer("means_sealed", "request")
    now = clock.merchant_now(row.merchant)
    there = {one.id: one for one in rows if one.retain_until is None or now <= one.retain_until}
    return [_render_registration(row, there[ident]) for ident in wanted if ident in there]


def _render_registration(row: Checkout, stored: Registration) -> dict[str, Any]:
    brand = brands.PAYMENT_BRANDS[stored.brand]
    card = stored.details.get("card", {})
    account = stored.details.get("bankAccount", {})
    digits = card.get("last4Digits") or str(account.get("iban") or account.get("number") or "")[-4:]
    month, year = card.get("expiryMonth"), card.get("expiryYear")
    return {
        "id": stored.id.hex,
        "brand": stored.brand,
        "label": brand.label,
        "kind": "card" if stored.means == "card" else "bank" if stored.means == "bankAccount" else "virtual",
        "last4": digits,
        "expiryMonth": month,
        "expiryYear": year,
        "holder": card.get("holder") or account.get("holder") or "",
        "expired": is_card_expired(month, year, clock.merchant_now(row.merchant)),
        "cvvRequired": row.channel.cvv_required and isinstance(brand, CardBrand) and 0 not in brand.cvv_lengths,
        "cvv": sorted(brand.cvv_lengths - {0}) if isinstance(brand, CardBrand) else [],
    }
