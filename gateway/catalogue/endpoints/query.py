"""Queries of transactions. Source: Part B, Query; ruling D6."""

from __future__ import annotations

from dataclasses import replace

from gateway.catalogue import structures as s
from gateway.catalogue.endpoints.endpoint import REQUIRED_ENTITY, Endpoint
from gateway.catalogue.structure import ALWAYS, NEVER, structure

_NARROWS = "Narrows the linked transactions; the one with this id is always there."
_LINKED = structure(
    "Query", "Part B", "",
    *(replace(s.QUERY.names[name], note=_NARROWS) for name in ("paymentTypes", "paymentMethods")),
    s.QUERY.names["includeLinkedTransactions"],
    demand=NEVER,
)  # fmt: skip

QUERY_ENDPOINT = Endpoint(
    name="query",
    method="GET",
    path="/v1/query",
    title="List transactions",
    about="Transactions of the entity, the newest first. Every parameter narrows the list; dates are UTC, both ends "
    "included.",
    operation="query",
    scope="read",
    structures=(REQUIRED_ENTITY, s.QUERY.demanding(ALWAYS)),
    answers=(200, 400, 401, 403, 429),
)
QUERY_ONE_ENDPOINT = Endpoint(
    name="query-one",
    method="GET",
    path="/v1/query/{id}",
    title="Look a transaction up",
    about="One payment, or a registration, by its id. A declined payment answers 200 here: the query found it.",
    operation="query",
    scope="read",
    structures=(REQUIRED_ENTITY, _LINKED),
)
QUERY_RECORDS_ENDPOINT = Endpoint(
    name="query-records",
    method="GET",
    path="/v3/query",
    title="List transactions, page by page",
    about="The same as /v1/query, with records instead of payments, and pages where pageNo is sent.",
    operation="query",
    scope="read",
    structures=(REQUIRED_ENTITY, s.QUERY.demanding(ALWAYS), s.PAGING),
    answers=(200, 400, 401, 403, 429),
)
QUERY_RECORD_ENDPOINT = Endpoint(
    name="query-record",
    method="GET",
    path="/v3/query/{id}",
    title="Look a transaction up, as a record",
    about="The same as /v1/query/{id}, as a list of records.",
    operation="query",
    scope="read",
    structures=(REQUIRED_ENTITY, _LINKED),
)
