"""Facts of a card before it is paid with. Source: docs/card-facts.md; decision 0127."""

from __future__ import annotations

from gateway.catalogue import structures as s
from gateway.catalogue.endpoints.endpoint import REQUIRED_ENTITY, Endpoint

CARD_FACTS_ENDPOINT = Endpoint(
    name="card-facts",
    method="GET",
    path="/v1/cardFacts",
    title="Read a card's facts",
    about="Brands, issuer, country, kind and level of the cards that begin with six to eight digits.",
    operation="query",
    scope="read",
    structures=(REQUIRED_ENTITY, s.CARD_FACTS),
    answers=(200, 400, 401, 403, 429),
)
