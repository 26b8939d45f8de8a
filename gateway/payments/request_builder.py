"""Builds a PaymentRequest from parsed parameters, for every caller that makes first payments.

The API, one-click payments, checkouts and subscription runs differ in the caller and in where the means comes from;
refusals before the payment exists, brand, amount and agreement are resolved here for all of them.
Source: Part A, Endpoints; rulings D30, D32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from gateway.catalogue.conditions.request_facts import is_merchant_initiated
from gateway.catalogue.parse import INVALID_PARAMETER_CODE, ParameterError, Parameters, UnknownNamePolicy
from gateway.catalogue.rules import RuleInput
from gateway.connectors.means import Card, Means, resolve_means_brand
from gateway.core import identifiers
from gateway.core.money import Money
from gateway.models import Agreement, Channel, Merchant
from gateway.payments.agreements import (
    drop_references_of_other_network,
    resolve_agreement,
    use_agreement,
)
from gateway.payments.job_hooks import JOB_HOOKS, JOB_PREFIX
from gateway.payments.payment_means import means_from_parameters
from gateway.payments.payment_request import IdempotencyContext, PaymentRequest, RequestTrace
from gateway.payments.refusal import (
    RequestRefusedError,
    check_brand_takes_type,
    check_currency,
    check_first_payment_type,
    resolve_brand,
)
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE
from gateway.payments.wallet_tokens import unwrap_wallet_token

_ANY_CURRENCY: Final = "EUR"
_SECURITY_CODES: Final = ("card.cvv", "tokenAccount.dtvc")


def build_condition_facts(channel: Channel | None, now: datetime) -> frozenset[str]:
    """The facts that catalogue conditions may test: date, environment, and switches of the channel."""
    facts = {f"today:{now:%Y-%m}"}
    if settings.IS_LIVE:
        facts.add("live")
    if channel is not None and channel.three_d_secure:
        facts.add("threeds")
    if channel is not None and channel.cvv_required:
        facts.add("cvv")
    return frozenset(facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMeans:
    """A stored means that a payment is made with. ``details``: its public part, by structure. ``renewed``: with an
    expiry date that is not the stored one."""

    registration: UUID
    brand: str
    means: Means
    details: Mapping[str, Any]
    renewed: bool = False


def build_payment_request(
    parameters: Parameters,
    *,
    merchant: Merchant,
    channel: Channel,
    now: datetime,
    trace: RequestTrace,
    idempotency: IdempotencyContext | None = None,
    stored: StoredMeans | None = None,
    resource_path: str = "",
    agreement: Agreement | None = None,
) -> PaymentRequest:
    """Build the request of a first payment, or of a registration if no paymentType is sent. ``stored``: the means, if
    it is not in the parameters; ``agreement``: the agreement, if the caller knows it. Raises RequestRefusedError for
    what the channel or the gateway does not offer."""
    payment_type = parameters.get("paymentType") or REGISTRATION_PAYMENT_TYPE
    build_facts = partial(build_condition_facts, channel, now)
    token = unwrap_wallet_token(parameters, channel, build_facts) if stored is None else None
    check_first_payment_type(payment_type, stored=stored is not None)
    check_currency(parameters, channel)
    if any(name.startswith(JOB_PREFIX) for name in parameters.values):
        storable = stored is not None or parameters.get("createRegistration") == "true"
        JOB_HOOKS.get().check_parameters(parameters, channel, now, storable=storable)
    brand, detected = (stored.brand, False) if stored is not None else resolve_brand(parameters, channel)
    check_brand_takes_type(payment_type, brand)
    # What only follow-ups use: FINAL ends a chain, this payment begins one. Only an authorization is captured.
    parameters.ignore("sequence", "chargebackResultCode", *(() if payment_type == "PA" else ("numberOfCaptures",)))
    _drop_security_codes(parameters, channel)
    registration = stored.registration if stored is not None else None
    agreement_use = (
        resolve_agreement(parameters, payment_type, channel, registration)
        if agreement is None
        else use_agreement(agreement, parameters)
    )
    means = _add_cvv(stored.means, parameters) if stored is not None else means_from_parameters(parameters)
    return PaymentRequest(
        payment=identifiers.row_id(),
        merchant=merchant,
        channel=channel,
        payment_type=payment_type,
        money=_build_zero_amount(parameters, channel)
        if payment_type == REGISTRATION_PAYMENT_TYPE
        else Money.parse(parameters["amount"], parameters["currency"]),
        brand=brand,
        detected=detected,
        means=means,
        parameters=parameters,
        test_mode=resolve_test_mode(parameters),
        now=now,
        trace=trace,
        idempotency=idempotency,
        registration=registration,
        stored=stored.details if stored is not None else {},
        renews_card=stored is not None and stored.renewed,
        wallet_token=token,
        agreement_use=drop_references_of_other_network(agreement_use, resolve_means_brand(brand, means)),
        resource_path=resource_path,
    )


def _drop_security_codes(parameters: Parameters, channel: Channel) -> None:
    """Drop the security code of a payment that the merchant initiates, and report it as ignored. Raises
    RequestRefusedError on a strict channel. Source: PCI DSS 4.0, 3.3.1: none may be kept after authorization."""
    if not is_merchant_initiated(RuleInput(parameters.values)):
        return
    dropped = [name for name in _SECURITY_CODES if parameters.ignore_secret(name)]
    if dropped and channel.parameters == UnknownNamePolicy.STRICT:
        message = "is not allowed in a payment that the merchant initiates: a security code cannot have been kept"
        raise RequestRefusedError(
            INVALID_PARAMETER_CODE, [ParameterError(name=name, message=message, known=True) for name in dropped]
        )


def resolve_test_mode(parameters: Parameters) -> str:
    """INTERNAL or EXTERNAL; empty in the live environment."""
    return "" if settings.IS_LIVE else parameters.get("testMode") or "INTERNAL"


def _build_zero_amount(parameters: Parameters, channel: Channel) -> Money:
    """The amount 0 of a registration; its payment row needs a currency all the same."""
    return Money.zero(parameters.get("currency") or next(iter(channel.currencies), _ANY_CURRENCY))


def _add_cvv(means: Means, parameters: Parameters) -> Means:
    """A stored card with the security code that was sent with the request."""
    cvv = parameters.secret("card.cvv")
    return replace(means, cvv=cvv) if cvv is not None and isinstance(means, Card) else means
