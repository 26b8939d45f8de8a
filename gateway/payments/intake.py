"""From parameters to a PaymentRequest: what every door that takes a first payment shares.

The API, one-click payments, checkouts and jobs differ in who asks and where the means comes from; what is refused
before a payment exists, the brand and the money are found the same way. Source: Part A, Endpoints; rulings D30, D32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from gateway import identifiers
from gateway.catalogue.parse import Parameters
from gateway.connectors.means import Card, Means
from gateway.models import Agreement, Channel, Merchant
from gateway.money import Money
from gateway.payments.agreements import drawing_on, standing_of
from gateway.payments.endings import REGISTER
from gateway.payments.means import means_of
from gateway.payments.planning import refuse_job
from gateway.payments.refusal import brand_of, refuse_currency, refuse_type, refuse_what_begins_nothing
from gateway.payments.request import Idempotency, PaymentRequest, Trace
from gateway.payments.wallet import unwrap

_ANY_CURRENCY: Final = "EUR"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A stored means that a payment is made with. ``details``: what is no secret of it."""

    registration: UUID
    brand: str
    means: Means
    details: Mapping[str, Any]


def first_payment(
    parameters: Parameters,
    *,
    merchant: Merchant,
    channel: Channel,
    now: datetime,
    trace: Trace,
    idempotency: Idempotency | None = None,
    stored: Stored | None = None,
    resource_path: str = "",
    agreement: Agreement | None = None,
) -> PaymentRequest:
    """The request of a first payment, or of a registration where no paymentType is sent. ``stored``: the means, when
    it is not in the parameters; ``agreement``: what it draws on, where the door knows. Raises Refused for what this
    channel or this gateway does not offer."""
    payment_type = parameters.get("paymentType") or REGISTER
    token = unwrap(parameters, channel, facts_of(channel, now)) if stored is None else None
    refuse_what_begins_nothing(payment_type, stored=stored is not None)
    refuse_currency(parameters, channel)
    if any(name.startswith("job.") for name in parameters.values):
        storable = stored is not None or parameters.get("createRegistration") == "true"
        refuse_job(parameters, channel, now, storable=storable)
    brand, detected = (stored.brand, False) if stored is not None else brand_of(parameters, channel)
    refuse_type(payment_type, brand)
    registration = stored.registration if stored is not None else None
    return PaymentRequest(
        payment=identifiers.row_id(),
        merchant=merchant,
        channel=channel,
        payment_type=payment_type,
        money=_no_money(parameters, channel)
        if payment_type == REGISTER
        else Money.parse(parameters["amount"], parameters["currency"]),
        brand=brand,
        detected=detected,
        means=_with_code(stored.means, parameters) if stored is not None else means_of(parameters),
        parameters=parameters,
        test_mode=test_mode_of(parameters),
        now=now,
        trace=trace,
        idempotency=idempotency,
        registration=registration,
        stored=stored.details if stored is not None else {},
        wallet_token=token,
        standing=standing_of(parameters, payment_type, channel, registration)
        if agreement is None
        else drawing_on(agreement, parameters, channel),
        resource_path=resource_path,
    )


def test_mode_of(parameters: Parameters) -> str:
    """INTERNAL or EXTERNAL; empty in the live environment."""
    return "" if settings.IS_LIVE else parameters.get("testMode") or "INTERNAL"


def _no_money(parameters: Parameters, channel: Channel) -> Money:
    """A registration moves nothing; the row of its payment has a currency all the same."""
    return Money.zero(parameters.get("currency") or next(iter(channel.currencies), _ANY_CURRENCY))


def _with_code(means: Means, parameters: Parameters) -> Means:
    """A stored card with the security code that was sent beside it."""
    cvv = parameters.secret("card.cvv")
    return replace(means, cvv=cvv) if cvv is not None and isinstance(means, Card) else means
