"""What may stand between the beginning of a payment and its acquirer: a halt, and the authentication.

Screening (gateway.payments.screening) and authenticating may halt the payment: with a code that declines it, or with a
deadline until which its shopper is waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings

from gateway.connectors.means import Card
from gateway.connectors.message import CRYPTOGRAM
from gateway.connectors.port import Precondition, Redirect
from gateway.models import Payment
from gateway.payments import capability
from gateway.payments.request import PaymentRequest
from gateway.payments.values import merged
from gateway.secret import Secret
from gateway.threeds import authentications, server
from gateway.threeds.outcome import Proceed, Rejected, Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """The payment goes no further now. Without a ``deadline`` it is declined with ``code``; with one (the merchant's
    clock) it waits for its shopper, who is sent to ``redirect``. ``facts`` go into the answer."""

    code: str = ""
    deadline: datetime | None = None
    redirect: Redirect | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def authenticate(payment: Payment, request: PaymentRequest) -> Halt | Mapping[str, str | Secret]:
    """The proof of an authentication, as ``threeDSecure.*`` parameters by full name (empty: none is needed)."""
    card, channel = request.means, request.channel
    if not channel.three_d_secure or not isinstance(card, Card) or card.number_type == "DPAN":
        return {}
    values = request.parameters.values
    # A wallet's brand names no network; its card does.
    brand = request.brand if not card.wallet else card.facts.brand or request.brand
    proved = CRYPTOGRAM in request.parameters
    if not server.is_wanted(values, proved=proved, brand=brand, operation=request.payment_type):
        return {}
    outcome = server.begin(
        server.Begin(
            payment=payment.id,
            merchant=request.merchant,
            channel=channel,
            brand=brand,
            number=card.number,
            expiry=(card.expiry_month, card.expiry_year),
            holder=card.holder,
            money=request.money,
            parameters=values,
            test_mode=request.test_mode,
            now=request.now,
            request=request.trace.request,
            account=payment.account,
        )
    )[1]
    match outcome:
        case Proceed(proof=proof, facts=facts):
            payment.answer["facts"] = merged(payment.answer.get("facts", {}), facts)
            return proof
        case Rejected(code=code, facts=facts):
            return Halt(code=code, facts=facts)
        case Waiting(deadline=deadline, facts=facts):
            return Halt(deadline=deadline, redirect=step_of(payment.id, outcome), facts=facts)


def step_of(ident: UUID, waiting: Waiting) -> Redirect | None:
    """Where the shopper is sent to, with what the browser may load before; None where no shopper is there (3RI)."""
    if not waiting.shopper:
        return None
    step = capability.step_of(ident)
    if waiting.step != "method":
        return step
    data = (("threeDSMethodData", authentications.method_data(waiting.authentication)),)
    page = Precondition(
        origin="iframe#hidden", url=f"{settings.GATEWAY_BASE_URL}/shopper/method", method="POST", parameters=data
    )
    return replace(step, preconditions=(page,))
