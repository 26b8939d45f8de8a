"""From parameters to a PaymentRequest: what every door that takes a first payment shares.

The API, one-click payments, checkouts and jobs differ in who asks and where the means comes from; what is refused
before a payment exists, the brand and the money are found the same way. Source: Part A, Endpoints; rulings D30, D32.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.conf import settings

from gateway import identifiers
from gateway.catalogue.parse import Parameters
from gateway.connectors.means import Means
from gateway.models import Channel, Merchant
from gateway.money import Money
from gateway.payments.means import means_of
from gateway.payments.refusal import brand_of, refuse_currency, refuse_type, refuse_what_is_not_built
from gateway.payments.request import Idempotency, PaymentRequest, Trace
from gateway.payments.wallet import unwrap


def facts_of(channel: Channel | None, now: datetime) -> frozenset[str]:
    """What conditions may ask about who pays where and when (gateway.catalogue.endpoints)."""
    facts = {f"today:{now:%Y-%m}"}
    if settings.IS_LIVE:
        facts.add("live")
    if channel is not None and channel.three_d_secure:
        facts.add("threeds")
    if channel is not None and channel.cvv_required:
        facts.add("cvv")
    return frozenset(facts)


def first_payment(
    parameters: Parameters,
    *,
    merchant: Merchant,
    channel: Channel,
    now: datetime,
    trace: Trace,
    idempotency: Idempotency | None = None,
    means: Means | None = None,
    registration: UUID | None = None,
    resource_path: str = "",
) -> PaymentRequest:
    """The request of a first payment. ``means``: a stored one that ``registration`` names; else it is in the
    parameters. Raises Refused for what this channel or this gateway does not offer."""
    token = unwrap(parameters, channel, facts_of(channel, now)) if means is None else None
    refuse_what_is_not_built(parameters, channel)
    refuse_currency(parameters, channel)
    brand, detected = brand_of(parameters, channel)
    refuse_type(parameters, brand)
    return PaymentRequest(
        payment=identifiers.row_id(),
        merchant=merchant,
        channel=channel,
        payment_type=parameters["paymentType"],
        money=Money.parse(parameters["amount"], parameters["currency"]),
        brand=brand,
        detected=detected,
        means=means or means_of(parameters.values),
        parameters=parameters,
        test_mode="" if settings.IS_LIVE else parameters.get("testMode") or "INTERNAL",
        now=now,
        trace=trace,
        idempotency=idempotency,
        registration=registration,
        wallet_token=token,
        resource_path=resource_path,
    )
