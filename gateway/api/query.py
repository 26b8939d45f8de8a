"""The query endpoints: lists of transactions, and one by its id. Source: Part B, Query; rulings D6, D12."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from django.http import HttpResponse
from rest_framework.request import Request

from gateway.api.base_view import ApiView, RequestContext
from gateway.api.envelope import JSON_CONTENT_TYPE, build_envelope
from gateway.catalogue.endpoints import (
    QUERY_ENDPOINT,
    QUERY_ONE_ENDPOINT,
    QUERY_RECORD_ENDPOINT,
    QUERY_RECORDS_ENDPOINT,
    Endpoint,
)
from gateway.catalogue.parse import InvalidParametersError, ParameterError, Parameters
from gateway.core import identifiers
from gateway.core.compact_json import TextTooLongError, encode_object
from gateway.core.result_codes import PAYMENT_NOT_FOUND_CODE
from gateway.db.standby import build_as_of_header, find_elsewhere
from gateway.payments import transaction_query
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.responses import build_envelope_fields, render_ignored_parameters

QUERY_OK_CODE: Final = "000.000.100"
MAX_LIST_BYTES: Final = 24 * 1024 * 1024
"""The text of one list. A payment with the longest request that is taken is a sixth of it."""


class QueryView(ApiView):
    """GET /v1/query."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": QUERY_ENDPOINT}
    listed: ClassVar[str] = "payments"

    def get(self, request: Request) -> HttpResponse:
        context = self.admit_request(request)
        admission = context.admission
        parameters = self.parse(context, admission.channel)
        query = transaction_query.query_from_parameters(parameters, admission.merchant, admission.channel)

        def encode_found() -> bytes | None:
            page = transaction_query.find_transactions(query)
            # A page after the last one is empty, but still shows the number of pages.
            if not page.payments and not page.pages:
                return None
            pages = {} if page.pages is None else {"pages": page.pages}
            listed = transaction_query.render_page(page)
            return _encode_query(context, parameters, **{self.listed: listed}, **pages)

        # The payments are read while they are written.
        body, as_of = (encode_found(), None) if query.finds_one else find_elsewhere(encode_found)
        context.headers.update(build_as_of_header(as_of))
        if body is None:
            raise RequestRefusedError(PAYMENT_NOT_FOUND_CODE)
        return _build_list_response(context, body)


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
        return _build_list_response(context, _encode_list(body, parameters))


class TransactionRecordsView(ApiView):
    """GET /v3/query/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": QUERY_RECORD_ENDPOINT}

    def get(self, request: Request, target: str) -> HttpResponse:
        context = self.admit_request(request, target, reads=True)
        parameters = self.parse(context, context.admission.channel)
        _, records = _find_queried(context, target, parameters)
        return _build_list_response(context, _encode_query(context, parameters, records=records))


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
    return one, transaction_query.render_page(linked)


def _encode_query(context: RequestContext, parameters: Parameters, **fields: Any) -> bytes:
    body = build_envelope(QUERY_OK_CODE, context.trace.ndc, **fields, **render_ignored_parameters(parameters))
    return _encode_list(body, parameters)


def _encode_list(body: Mapping[str, Any], parameters: Parameters) -> bytes:
    """Raises InvalidParametersError for a list that is longer than MAX_LIST_BYTES."""
    try:
        return encode_object(body, max_bytes=MAX_LIST_BYTES)
    except TextTooLongError:
        name = "includeLinkedTransactions" if parameters.get("includeLinkedTransactions") == "true" else "limit"
        message = f"would list more than {MAX_LIST_BYTES // (1024 * 1024)} MiB: narrow the query"
        error = ParameterError(name=name, value=parameters.get(name), message=message)
        raise InvalidParametersError([error]) from None


def _build_list_response(context: RequestContext, body: bytes) -> HttpResponse:
    return HttpResponse(body, content_type=JSON_CONTENT_TYPE, headers=dict(context.headers))
