"""Point of service of stored payments: what a follow-up or a reversal repeats of the payment that it is about.

Read from columns and the echo of the request, so nothing is stored for it. Source: docs/decisions/0067.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.db.models.fields.json import KeyTransform
from django.db.models.functions import JSONObject

from gateway.connectors.acquirer_message import flatten_body
from gateway.connectors.means import TokenAccount
from gateway.connectors.point_of_service import (
    REPEATED_PARAMETERS,
    PointOfService,
    build_point_of_service,
    continue_point_of_service,
)
from gateway.models import Payment
from gateway.payments.chain_amounts import REAUTHORIZATION, Chain
from gateway.payments.network_brands import resolve_network_brand
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE
from gateway.payments.stored_answer import read_transaction_link, was_sent_with_token

_READ: Final = (
    "standingInstruction", "threeDSecure", "transactionCategory", "createRegistration",
    *dict.fromkeys(name.partition(".")[0] for name in REPEATED_PARAMETERS),
)  # fmt: skip
SERVICE_PARAMETERS: Final = JSONObject(**{name: KeyTransform(name, "request") for name in _READ})
"""Annotation ``sent_service`` for payments that are read without their ``request``."""
_OF_AUTHENTICATION: Final = ("eci", "authenticationStatus", "challengeIndicator", "exemptionFlag")
_REPEATING: Final = frozenset({"PA", "RB"})
"""Follow-ups that authorize anew; the others repeat what their payment said."""
_AUTHORIZED: Final = frozenset({"PA", "RF"})
"""Follow-ups with an authorization of their own, of which Mastercard tells a transaction link: the reversal of a
refund names the refund's."""


def find_point_of_service(chain: Chain, payment: Payment) -> PointOfService:
    """The point of service of a payment whose predecessors are in ``chain``."""
    sent, link = _read_parameters(payment), read_transaction_link(payment.answer)
    if payment.referenced is None:
        stores = payment.payment_type == REGISTRATION_PAYMENT_TYPE or sent.get("createRegistration") == "true"
        stored = payment.registration is not None and not stores
        token = payment.means == TokenAccount.kind or was_sent_with_token(payment.answer)
        brand = resolve_network_brand(payment.brand, payment.answer)
        return replace(build_point_of_service(sent, stored=stored, stores=stores, token=token, brand=brand), link=link)
    # A renewal names the first authorization, whichever member of the chain its path does.
    followed = chain.first if payment.practice == REAUTHORIZATION else chain.find(payment.referenced)
    assert followed is not None  # a chain is read whole
    if payment.payment_type in ("CP", "RV") and followed.payment_type == "PA":
        # They name the authorization as it stood when they began (docs/decisions/0147).
        followed = chain.authorization.find_current(before=chain.find(payment.id))
    original = find_point_of_service(chain, followed)
    if payment.payment_type == "RB":  # a payment of its own, which Mastercard relates to the one before
        point = continue_point_of_service(original, payment.practice, sent)
        return replace(point, link=link, related_link=original.link)
    if payment.payment_type in _AUTHORIZED:
        original = replace(original, link=link or original.link)
    if payment.payment_type not in _REPEATING:
        return replace(original, related_link="")
    return continue_point_of_service(original, payment.practice, sent)


def _read_parameters(payment: Payment) -> Mapping[str, str]:
    """The parameters that a point of service is made from, with what our own authentication added."""
    sent: Mapping[str, Any] | None = getattr(payment, "sent_service", None)
    body = payment.request if sent is None else sent
    found = flatten_body({name: body[name] for name in _READ if body.get(name) is not None})
    facts = payment.answer.get("facts", {}).get("threeDSecure", {})
    return found | {f"threeDSecure.{name}": facts[name] for name in _OF_AUTHENTICATION if facts.get(name)}
