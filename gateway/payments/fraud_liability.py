"""Who carries the loss if the shopper denies a card payment: the issuer, or the merchant.

An authentication, or its attempt, moves the liability for fraud to the issuer, also one that the merchant made without
the shopper (3RI); an exemption, another payment without the shopper and one without an authentication leave it with the
merchant. Decided by the ECI that the acquirer was sent, so
a proof of the merchant's own 3DS server counts as ours does. Source: docs/decisions/0013, 0067; the networks' ECI in
gateway.threeds_protocol.networks.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from gateway.connectors.acquirer_message import flatten_body
from gateway.connectors.means import Card
from gateway.connectors.point_of_service import build_point_of_service
from gateway.models import Payment, Status
from gateway.payments.nested_values import deep_merge
from gateway.payments.network_brands import find_network_brand
from gateway.payments.stored_answer import get_shown_facts
from gateway.threeds_protocol.messages import REQUESTOR_CHANNEL, resolve_device_channel
from gateway.threeds_protocol.networks import RECURRING, ThreeDSNetwork, find_threeds_network

_SHIFTING_STATUSES = ("Y", "A")


class FraudLiability(enum.StrEnum):
    """The party that carries a loss by fraud, and why."""

    ISSUER = "issuer"
    MERCHANT_EXEMPTED = "merchant, exempted"
    MERCHANT_INITIATED = "merchant, initiated by the merchant"
    MERCHANT_ORDER = "merchant, mail or telephone order"
    MERCHANT_UNAUTHENTICATED = "merchant, not authenticated"


def resolve_fraud_liability(payment: Payment) -> FraudLiability | None:
    """The liability of an approved first card payment, of a wallet's by the network of the card in it; None for other
    payments, and for networks without 3-D Secure."""
    brand = find_network_brand(payment)
    network = find_threeds_network(brand)
    if (
        network is None
        or payment.referenced is not None
        or payment.means != Card.kind
        or payment.status != Status.APPROVED
        or payment.payment_type not in ("PA", "DB")
    ):
        return None
    shown = deep_merge(payment.request, {"threeDSecure": get_shown_facts(payment).get("threeDSecure", {})})
    sent = flatten_body(shown)
    point = build_point_of_service(sent, brand=brand)
    # The networks ended the first protocol in 2022: no proof of it moves a liability.
    statuses = (*_SHIFTING_STATUSES, RECURRING) if _belongs_to_agreement(sent) else _SHIFTING_STATUSES
    version = sent.get("threeDSecure.version", "")
    is_shifted = _is_shifting(network, point.eci, statuses) and not version.startswith("1.")
    # I is no authentication (an exemption, or data shared only): the merchant stays liable, whatever the ECI says.
    is_shifted = is_shifted and sent.get("threeDSecure.authenticationStatus") != "I"
    if is_shifted and point.merchant_initiated and resolve_device_channel(sent) == REQUESTOR_CHANNEL:
        return FraudLiability.ISSUER
    if point.merchant_initiated:
        return FraudLiability.MERCHANT_INITIATED
    if point.order:
        return FraudLiability.MERCHANT_ORDER
    if is_shifted:
        return FraudLiability.ISSUER
    return FraudLiability.MERCHANT_EXEMPTED if point.exemption else FraudLiability.MERCHANT_UNAUTHENTICATED


def _is_shifting(network: ThreeDSNetwork, eci: str, statuses: Iterable[str]) -> bool:
    """Whether the network gives this ECI to one of the ``statuses``."""
    return bool(eci) and eci in (network.eci.get(status) for status in statuses)


def _belongs_to_agreement(sent: Mapping[str, str]) -> bool:
    return "standingInstruction.mode" in sent or resolve_device_channel(sent) == REQUESTOR_CHANNEL
