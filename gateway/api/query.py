"""Queries over HTTP: lists of transactions, and one by its id. Source: Part B, Query; rulings D6, D12."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from rest_framework.request import Request
from rest_framework.response import Response

from gateway import identifiers
from gateway.api.door import Door, Visit
from gateway.api.envelope import envelope, shared_part
from gateway.api.payments import NOT_FOUND, ignored
from gateway.catalogue.endpoints import QUERY, QUERY_ONE, QUERY_RECORD, QUERY_RECORDS, Endpoint
from gateway.catalogue.parse import Parameters
from gateway.payments import query
from gateway.payments.refusal import Refused

FOUND: Final = "000.000.100"


class ListView(Door):
    """GET /v1/query."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": QUERY}
    listed: ClassVar[str] = "payments"

    def get(self, request: Request) -> Response:
        visit = self.enter(request)
        admission = visit.admission
        parameters = self.parse(visit, admission.channel)
        found = query.find(query.query_of(parameters, admission.merchant, admission.channel))
        # A page after the last one lists nothing; how many there are is told all the same.
        if not found.payments and not found.pages:
            raise Refused(NOT_FOUND)
        pages = {} if found.pages is None else {"pages": found.pages}
        listed = [query.told(payment) for payment in found.payments]
        return _answer(visit, parameters, **{self.listed: listed}, **pages)


class RecordsView(ListView):
    """GET /v3/query."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": QUERY_RECORDS}
    listed: ClassVar[str] = "records"


class OneView(Door):
    """GET /v1/query/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": QUERY_ONE}

    def get(self, request: Request, target: str) -> Response:
        visit = self.enter(request, target, reads=True)
        parameters = self.parse(visit, visit.admission.channel)
        one, linked = _looked_up(visit, target, parameters)
        more: dict[str, Any] = {"payments": linked} if parameters.get("includeLinkedTransactions") == "true" else {}
        return Response(one | more | ignored(parameters) | shared_part(visit.trace.ndc), headers=visit.headers)


class RecordView(Door):
    """GET /v3/query/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": QUERY_RECORD}

    def get(self, request: Request, target: str) -> Response:
        visit = self.enter(request, target, reads=True)
        parameters = self.parse(visit, visit.admission.channel)
        _, records = _looked_up(visit, target, parameters)
        return _answer(visit, parameters, records=records)


def _looked_up(visit: Visit, target: str, parameters: Parameters) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What has the id ``target``, and the list with it: its chain, where that is asked for, or those transactions of
    it that the filters take. Raises Refused."""
    admission = visit.admission
    payment = admission.payment
    if payment is None:
        found = query.registration_of(identifiers.parse_id(target), admission.merchant, admission.channel)
        if found is None:
            raise Refused(NOT_FOUND, status=404)
        one = query.told_registration(found)
        return one, [one]
    one = query.told(payment)
    if parameters.get("includeLinkedTransactions") != "true":
        return one, [one]
    linked = query.linked_to(
        payment, admission.channel, types=query.codes(parameters.get("paymentTypes")),
        methods=query.codes(parameters.get("paymentMethods")),
    )  # fmt: skip
    return one, [query.told(member) for member in linked]


def _answer(visit: Visit, parameters: Parameters, **fields: Any) -> Response:
    return Response(envelope(FOUND, visit.trace.ndc, **fields, **ignored(parameters)), headers=visit.headers)
