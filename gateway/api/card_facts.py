"""HTTP API of card facts: GET /v1/cardFacts. Source: docs/card-facts.md; decision 0127."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from gateway.api.base_view import ApiView
from gateway.api.envelope import build_envelope
from gateway.api.query import QUERY_OK_CODE
from gateway.catalogue.endpoints import CARD_FACTS_ENDPOINT, Endpoint
from gateway.core.brands import detect_carried_brands, find_issuer, order_brands
from gateway.core.card_number import BIN6_DIGITS
from gateway.payments.rendering import render_issuer
from gateway.payments.responses import render_ignored_parameters


class CardFactsView(ApiView):
    """GET /v1/cardFacts: what the tables of BINs and of brands know of the cards that begin with some digits."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": CARD_FACTS_ENDPOINT}

    def get(self, request: Request) -> Response:
        context = self.admit_request(request)
        channel = context.admission.channel
        parameters = self.parse(context, channel)
        order = channel.accepted_brand_order if channel is not None else []
        body = build_envelope(
            QUERY_OK_CODE,
            context.trace.ndc,
            card=_render_facts(parameters["card.bin"], order),
            **render_ignored_parameters(parameters),
        )
        return Response(body, headers=context.headers)


def _render_facts(digits: str, order: list[str]) -> dict[str, Any]:
    """What a card that begins with ``digits`` is; what is not known is left out. ``order``: of brands."""
    issuer = find_issuer(digits)
    facts: dict[str, Any] = {
        "bin": digits[:BIN6_DIGITS],
        "brands": order_brands(detect_carried_brands(digits), order),
        **render_issuer(digits),
    }
    if issuer is not None and issuer.country:
        facts["issuerCountry"] = issuer.country
    return facts
