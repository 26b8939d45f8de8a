"""The query endpoints: lists of transactions, and one by its id. Source: Part B, Query; rulings D6, D12."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from django.http import HttpResponse
from rest_framework.request import Request

from gateway.api.base_view import ApiView, RequestContext
from gateway.api.envelope import build_envelope, build_list_response
from gateway.catalogue.endpoints import (
    QUERY_ENDPOINT,
    QUERY_ONE_ENDPOINT,
    QUERY_RECORD_ENDPOINT,
    QUERY_RECORDS_ENDPOINT,
    Endpoint,
)
from gateway.catalogue.parse import Parameters
from gateway.core import identifiers
from gateway.core.result_codes import PAYMENT_NOT_FOUND_CODE
from gateway.db.standby import build_as_of_header, read_elsewhere
from gateway.payments import transaction_query
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.responses import build_envelope_fields, render_ignored_parameters

QUERY_OK_CODE: Final = "000.000.100"


class QueryView(ApiView):
    """GET /v1/query."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": QUERY_ENDPOINT}
    listed: ClassVar[str] = "payments"

    def get(self, request: Request) -> HttpResponse:
        context = self.admit_request(request)
        admission = context.admission
        parameters = self.parse(context, admission.channel)
        query = transaction_query.query_from_parameters(parameters, admission.merchant, admission.channel)
        if query.finds_one:
            page, as_of = transaction_query.find_transactions(query), None
        else:
            page, as_of = read_elsewhere(lambda: transaction_query.find_transactions(query))
            if as_of is not None and not page.payments and not page.pages:
                # A standby never answers "not found": it may lack a payment of this moment.
                page, as_of = transaction_query.find_transactions(query), None
        context.headers.update(build_as_of_header(as_of))
        # A page after the last one is empty, but still shows the number of pages.
        if not page.payments and not page.pages:
            raise RequestRefusedError(PAYMENT_NOT_FOUND_CODE)
        pages = {} if page.pages is None else {"pages": page.pages}
        listed = (transaction_query.render_transaction(payment) for payment in page.payments)
        return _build_query_response(context, parameters, **{self.listed: listed}, **pages)


class QueryRecordsView(QueryView):
    """GET /v3/query."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": QUERY_RECORDS_ENDPOINT}
    listed: ClassVar[str] = "records"


class TransactionView(ApiView):
    """GET /v1/query/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": QUERY_ONE_ENDPOINT}

    def get(self, request: Request, target: str) -> HttpResponse:
        context = self.admit_request(request, target, reads=True)
        parameters = self.parse(context, context.admission.channel)
        one, linked = _find_queried(context, target, parameters)
        more: dict[str, Any] = {"payments": linked} if parameters.get("includeLinkedTransactions") == "true" else {}
        body = one | more | render_ignored_parameters(parameters) | build_envelope_fields(context.trace.ndc)
        return build_list_response(body, context.headers)


class TransactionRecordsView(ApiView):
    """GET /v3/query/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": QUERY_RECORD_ENDPOINT}

    def get(self, request: Request, target: str) -> HttpResponse:
        context = self.admit_request(request, target, reads=True)
        parameters = self.parse(context, context.admission.channel)
        _, records = _find_queried(context, target, parameters)
        return _build_query_response(context, parameters, records=records)


def _find_queried(
    context: RequestContext, target: str, parameters: Parameters
) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Returns (transaction, list) for the id ``target``; the list is its chain, filtered, with
    includeLinkedTransactions=true, else the transaction alone. Raises RequestRefusedError (404)."""
    admission = context.admission
    payment = admission.payment
    if payment is None:
        found = transaction_query.find_queried_registration(
            identifiers.parse_id(target), admission.merchant, admission.channel
        )
        if found is None:
            raise RequestRefusedError(PAYMENT_NOT_FOUND_CODE, status=404)
        one = transaction_query.render_queried_registration(found)
        return one, iter([one])
    one = transaction_query.render_transaction(payment)
    if parameters.get("includeLinkedTransactions") != "true":
        return one, iter([one])
    linked = transaction_query.list_linked_transactions(
        payment,
        admission.channel,
        types=transaction_query.parse_code_list(parameters.get("paymentTypes")),
        methods=transaction_query.parse_code_list(parameters.get("paymentMethods")),
    )
    return one, (transaction_query.render_transaction(member) for member in linked)


def _build_query_response(context: RequestContext, parameters: Parameters, **fields: Any) -> HttpResponse:
    body = build_envelope(QUERY_OK_CODE, context.trace.ndc, **fields, **render_ignored_parameters(parameters))
    return build_list_response(body, context.headers)
