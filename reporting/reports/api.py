"""HTTP API of reports: the list of settlements with their sums, and the records of one.

Source: Part B, Reporting parameters; ruling D7.
"""

from __future__ import annotations

from datetime import date
from typing import Any, ClassVar, Final
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from gateway.api.base_view import ApiView, RequestContext
from gateway.api.envelope import build_envelope
from gateway.catalogue.endpoints import REPORTS, Endpoint
from gateway.catalogue.parse import Parameters
from gateway.core import clock, identifiers
from gateway.core.result_codes import PAYMENT_NOT_FOUND_CODE
from gateway.db.standby import build_as_of_header, read_elsewhere
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.request_builder import build_condition_facts
from gateway.payments.responses import render_ignored_parameters
from reporting.reconciliation import file_columns
from reporting.reports import sample_settlements
from reporting.reports.settlement_reports import (
    REPORT_PAGE_SIZE,
    ReportQuery,
    ReportScope,
    SettlementSummary,
    list_settlement_lines,
    list_settlement_summaries,
    render_settlement,
    resolve_report_scope,
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


def _count_pages(total: int, wanted: ReportQuery) -> dict[str, int]:
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


def _find_settlement(
    scope: ReportScope, wanted: ReportQuery, key: UUID
) -> tuple[SettlementSummary | None, list[SettlementLine], int]:
    """The settlement with its lines and their number; (None, [], 0) if there is none."""
    found, _ = list_settlement_summaries(scope, ReportQuery(start=wanted.start, end=wanted.end), key)
    return (found[0], *list_settlement_lines(scope, found[0], wanted)) if found else (None, [], 0)


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

    def get(self, request: Request, target: str) -> Response:
        context, parameters, wanted, scope = self.resolve_query(request)
        key = identifiers.parse_id(target)
        summary: SettlementSummary | None = None
        lines: list[SettlementLine] = []
        total = 0
        if key is not None and parameters.get("testMode") == "INTERNAL":
            summary, lines, total = sample_settlements.build_sample_settlement(scope, key, wanted)
        elif key is not None:
            (summary, lines, total), as_of = read_elsewhere(lambda: _find_settlement(scope, wanted, key))
            if as_of is not None and summary is None:
                # A standby never answers "not found": it may lack a settlement of this moment.
                (summary, lines, total), as_of = _find_settlement(scope, wanted, key), None
            context.headers.update(build_as_of_header(as_of))
        if summary is None:
            raise RequestRefusedError(PAYMENT_NOT_FOUND_CODE, status=404)
        return self.answer(
            context,
            parameters,
            id=summary.id.hex,
            aggregation=render_settlement(summary, load_display_names(scope.merchant)),
            reconciliations=[file_columns.render_record(line) for line in lines],
            **_count_pages(total, wanted),
        )


class AggregationDetailView(SettlementDetailView):
    """GET /reports/v1/reconciliations/aggregations/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": AGGREGATION}


class PagedAggregationDetailView(SettlementDetailView):
    """GET /reports/v2/reconciliations/aggregations/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": AGGREGATION_PAGE}
    paged = True
