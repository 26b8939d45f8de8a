"""Earlier undisputed payments of the same card, which move the liability of a fraud dispute back to the issuer.

Visa asks for two payments, 120 to 365 days before the dispute, that were never disputed, and that share with the
disputed one two of: IP address, device, shopper's e-mail or account, delivery address; one of them IP or device.
Source: Visa, "Compelling Evidence 3.0 Merchant Readiness", condition 10.4. Decision: docs/decisions/0065.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q

from chargebacks.models import Chargeback
from gateway.core.compact_json import get_json_object
from gateway.models import Payment, Status

EARLIEST, LATEST = timedelta(days=365), timedelta(days=120)
FRAUD_REASON: Final = "000.100.220"
MAX_EARLIER_PAYMENTS: Final = 5
"""Earlier payments that are listed; the scheme asks for two."""
MAX_EARLIER_PAYMENTS_READ: Final = 500
_STRONG: Final = frozenset({"IP address", "device"})
_ADDRESS: Final = ("street1", "postcode", "city", "country")


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierPayment:
    """An earlier payment and what it shares with the disputed one, in words."""

    payment: Payment
    shared: tuple[str, ...]


def find_earlier_payments(case: Chargeback) -> list[EarlierPayment]:
    """The newest undisputed payments that prove the cardholder's own use; empty unless fraud is claimed."""
    first = Payment.objects.get(pk=case.chain)
    if case.reason_code != FRAUD_REASON or first.means_fingerprint is None or first.last4_key is None:
        return []
    own = _read_traits(first.request)
    disputed = Chargeback.objects.filter(chain=OuterRef("chain"))
    captured = Payment.objects.filter(chain=OuterRef("chain"), payment_type="CP", status=Status.APPROVED)
    found = (
        Payment.objects.filter(
            ~Exists(disputed),
            # An authorization alone is no transaction of the cardholder's.
            Q(payment_type="DB") | Exists(captured),
            last4_key=first.last4_key,
            merchant=case.merchant_id,
            means_fingerprint=bytes(first.means_fingerprint),
            payment_type__in=("DB", "PA"),
            status=Status.APPROVED,
            created_at__gte=case.opened_at - EARLIEST,
            created_at__lte=case.opened_at - LATEST,
        )
        .exclude(pk=first.pk)
        .order_by("-created_at")[:MAX_EARLIER_PAYMENTS_READ]
    )
    proofs = (EarlierPayment(payment=one, shared=_list_shared(own, _read_traits(one.request))) for one in found)
    return [one for one in proofs if len(one.shared) > 1 and _STRONG & set(one.shared)][:MAX_EARLIER_PAYMENTS]


def _list_shared(own: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name, value in own.items() if value and other.get(name) == value)


def _read_traits(request: Mapping[str, Any]) -> dict[str, str]:
    """What identifies a shopper in a payment's request, by name."""
    customer, shipping = get_json_object(request, "customer"), get_json_object(request, "shipping")
    browser, app = get_json_object(customer, "browser"), get_json_object(customer, "app")
    return {
        "IP address": str(customer.get("ip") or ""),
        "device": str(browser.get("deviceId") or app.get("deviceId") or ""),
        "e-mail": str(customer.get("email") or "").lower(),
        "delivery address": " ".join(str(shipping.get(name) or "") for name in _ADDRESS).strip().lower(),
    }
