"""HTTP API of reports: the list of settlements with their sums, and the records of one.

Source: Part B, Reporting parameters; ruling D7.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any, ClassVar, Final
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.api.base_view import ApiView, RequestContext
from gateway.api.envelope import JSON_CONTENT_TYPE, build_envelope
from gateway.catalogue.endpoints import REPORTS, Endpoint
from gateway.catalogue.parse import Parameters
from gateway.core import clock, identifiers
from gateway.core.compact_json import encode_object
from gateway.core.result_codes import PAYMENT_NOT_FOUND_CODE
from gateway.db.standby import build_as_of_header, find_elsewhere, read_elsewhere
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.request_builder import build_condition_facts
from gateway.payments.responses import render_ignored_parameters
from reporting.reconciliation import file_columns
from reporting.reports import sample_settlements
from reporting.reports.settlement_reports import (
    REPORT_PAGE_SIZE,
    ReportQuery,
    ReportScope,
    list_settlement_summaries,
    render_settlement,
    resolve_report_scope,
    stream_settlement_lines,
)
from reporting.settlement.record_queries import SettlementLine, load_display_names

REPORT_SUCCESS_CODE: Final = "000.000.100"
SETTLEMENTS, SETTLEMENT, AGGREGATIONS, AGGREGATION, AGGREGATIONS_PAGE, AGGREGATION_PAGE, *_APPROVALS = REPORTS


def _build_query(parameters: Parameters, *, paged: bool) -> ReportQuery:
    start, end = parameters.get("date.from"), parameters.get("date.to")
    sorts = "sortValue" in parameters or "sortOrder" in parameters
    return ReportQuery(
        start=date.fromisoformat(start) if start else None,
        end=date.fromisoformat(end) if end else None,
        currency=parameters.get("currency") or "",
        record_type=parameters.get("reconciliationType") or "",
        order=(parameters.get("sortOrder") or "ASC").upper() if sorts else "",
        page=int(parameters.get("pageNo") or 1) if paged else None,
    )


def _count_pages(total: int, wanted: ReportQuery) -> dict[str, Any]:
    return {} if wanted.page is None else {"pages": -(-total // REPORT_PAGE_SIZE)}


class ReportView(ApiView):
    """Shared by the reports: parsing, and the choice between real and sample settlements (testMode=INTERNAL)."""

    paged: ClassVar[bool] = False

    def resolve_query(self, request: Request) -> tuple[RequestContext, Parameters, ReportQuery, ReportScope]:
        context = self.admit_request(request)
        admission = context.admission
        facts = build_condition_facts(admission.channel, clock.merchant_now(admission.merchant))
        parameters = self.parse(context, admission.channel, facts)
        scope = resolve_report_scope(admission.merchant, admission.channel)
        return context, parameters, _build_query(parameters, paged=self.paged), scope

    def answer(self, context: RequestContext, parameters: Parameters, **fields: Any) -> Response:
        return Response(
            build_envelope(REPORT_SUCCESS_CODE, context.trace.ndc, **fields, **render_ignored_parameters(parameters)),
            headers=context.headers,
        )


class SettlementListView(ReportView):
    """GET /v1/reports/reconciliations."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": SETTLEMENTS}

    def get(self, request: Request) -> Response:
        context, parameters, wanted, scope = self.resolve_query(request)
        if parameters.get("testMode") == "INTERNAL":
            found, total = sample_settlements.build_sample_summaries(scope, wanted)
        else:
            (found, total), as_of = read_elsewhere(lambda: list_settlement_summaries(scope, wanted))
            context.headers.update(build_as_of_header(as_of))
        names = load_display_names(scope.merchant)
        aggregations = [render_settlement(summary, names) for summary in found]
        return self.answer(context, parameters, aggregations=aggregations, **_count_pages(total, wanted))


class AggregationListView(SettlementListView):
    """GET /reports/v1/reconciliations/aggregations."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": AGGREGATIONS}


class PagedAggregationListView(SettlementListView):
    """GET /reports/v2/reconciliations/aggregations."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": AGGREGATIONS_PAGE}
    paged = True


class SettlementDetailView(ReportView):
    """GET /v1/reports/reconciliations/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": SETTLEMENT}

    def get(self, request: Request, target: str) -> HttpResponse:
        context, parameters, wanted, scope = self.resolve_query(request)
        key = identifiers.parse_id(target)
        body: bytes | None = None
        if key is not None and parameters.get("testMode") == "INTERNAL":
            summary, lines, total = sample_settlements.build_sample_settlement(scope, key, wanted)
            names = load_display_names(scope.merchant)
            body = _encode_settlement(
                context, parameters, render_settlement(summary, names), iter(lines), total, wanted
            )
        elif key is not None:

            def encode_found() -> bytes | None:
                return _encode_found(context, parameters, wanted, scope, key)

            body, as_of = find_elsewhere(encode_found)
            context.headers.update(build_as_of_header(as_of))
        if body is None:
            raise RequestRefusedError(PAYMENT_NOT_FOUND_CODE, status=404)
        return HttpResponse(body, content_type=JSON_CONTENT_TYPE, headers=context.headers)


def _encode_found(
    context: RequestContext, parameters: Parameters, wanted: ReportQuery, scope: ReportScope, key: UUID
) -> bytes | None:
    """The answer with a settlement and its records; None if there is none. Its records are read while it is written."""
    found, _ = list_settlement_summaries(scope, ReportQuery(start=wanted.start, end=wanted.end), key)
    if not found:
        return None
    names = load_display_names(scope.merchant)
    lines, total = stream_settlement_lines(scope, found[0], wanted, names)
    return _encode_settlement(context, parameters, render_settlement(found[0], names), lines, total, wanted)


def _encode_settlement(
    context: RequestContext,
    parameters: Parameters,
    aggregation: dict[str, Any],
    lines: Iterator[SettlementLine],
    total: int,
    wanted: ReportQuery,
) -> bytes:
    body = build_envelope(
        REPORT_SUCCESS_CODE,
        context.trace.ndc,
        id=aggregation["id"],
        aggregation=aggregation,
        reconciliations=(file_columns.render_record(line) for line in lines),
        **_count_pages(total, wanted),
        **render_ignored_parameters(parameters),
    )
    return encode_object(body)


class AggregationDetailView(SettlementDetailView):
    """GET /reports/v1/reconciliations/aggregations/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": AGGREGATION}


class PagedAggregationDetailView(SettlementDetailView):
    """GET /reports/v2/reconciliations/aggregations/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": AGGREGATION_PAGE}
    paged = True
