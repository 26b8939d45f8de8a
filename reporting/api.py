"""Reports over HTTP: sums of settlements, and the records of one.

Source: Part B, Reporting parameters; ruling D7.
"""

from __future__ import annotations

from datetime import date
from typing import Any, ClassVar, Final

from rest_framework.request import Request
from rest_framework.response import Response

from gateway import clock, identifiers
from gateway.api.door import Door, Visit
from gateway.api.envelope import envelope
from gateway.api.payments import NOT_FOUND, ignored
from gateway.catalogue.endpoints import REPORTS, Endpoint
from gateway.catalogue.parse import Parameters
from gateway.payments.intake import facts_of
from gateway.payments.refusal import Refused
from reporting import made_up, reconciliation
from reporting.lines import Line, names_of
from reporting.reports import PAGE, Scope, Summary, Wanted, records, scope_of, summaries, told

FOUND: Final = "000.000.100"
SETTLEMENTS, SETTLEMENT, AGGREGATIONS, AGGREGATION, AGGREGATIONS_PAGE, AGGREGATION_PAGE = REPORTS


def _wanted(parameters: Parameters, *, paged: bool) -> Wanted:
    start, end = parameters.get("date.from"), parameters.get("date.to")
    sorts = "sortValue" in parameters or "sortOrder" in parameters
    return Wanted(
        start=date.fromisoformat(start) if start else None,
        end=date.fromisoformat(end) if end else None,
        currency=parameters.get("currency") or "",
        record_type=parameters.get("reconciliationType") or "",
        order=(parameters.get("sortOrder") or "ASC").upper() if sorts else "",
        page=int(parameters.get("pageNo") or 1) if paged else None,
    )


def _pages(total: int, wanted: Wanted) -> dict[str, int]:
    return {} if wanted.page is None else {"pages": -(-total // PAGE)}


class ReportDoor(Door):
    """What the reports share: parsing, and whether records are made up or real."""

    paged: ClassVar[bool] = False

    def ask(self, request: Request) -> tuple[Visit, Parameters, Wanted, Scope]:
        visit = self.enter(request)
        admission = visit.admission
        facts = facts_of(admission.channel, clock.now(admission.merchant))
        parameters = self.parse(visit, admission.channel, facts)
        scope = scope_of(admission.merchant, admission.channel)
        return visit, parameters, _wanted(parameters, paged=self.paged), scope

    def answer(self, visit: Visit, parameters: Parameters, **fields: Any) -> Response:
        return Response(envelope(FOUND, visit.trace.ndc, **fields, **ignored(parameters)), headers=visit.headers)


class SettlementsView(ReportDoor):
    """GET /v1/reports/reconciliations."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": SETTLEMENTS}

    def get(self, request: Request) -> Response:
        visit, parameters, wanted, scope = self.ask(request)
        if parameters.get("testMode") == "INTERNAL":
            found, total = made_up.summaries(scope, wanted)
        else:
            found, total = summaries(scope, wanted)
        names = names_of(scope.merchant)
        told_all = [told(summary, names) for summary in found]
        return self.answer(visit, parameters, aggregations=told_all, **_pages(total, wanted))


class AggregationsView(SettlementsView):
    """GET /reports/v1/reconciliations/aggregations."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": AGGREGATIONS}


class AggregationsPageView(SettlementsView):
    """GET /reports/v2/reconciliations/aggregations."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": AGGREGATIONS_PAGE}
    paged = True


class SettlementView(ReportDoor):
    """GET /v1/reports/reconciliations/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": SETTLEMENT}

    def get(self, request: Request, target: str) -> Response:
        visit, parameters, wanted, scope = self.ask(request)
        key = identifiers.parse_id(target)
        summary: Summary | None = None
        lines: list[Line] = []
        total = 0
        if key is not None and parameters.get("testMode") == "INTERNAL":
            summary, lines, total = made_up.one(scope, key, wanted)
        elif key is not None:
            found, _ = summaries(scope, Wanted(start=wanted.start, end=wanted.end), key)
            if found:
                summary = found[0]
                lines, total = records(scope, summary, wanted)
        if summary is None:
            raise Refused(NOT_FOUND, status=404)
        return self.answer(
            visit, parameters, id=summary.id.hex, aggregation=told(summary, names_of(scope.merchant)),
            reconciliations=[reconciliation.record(line) for line in lines], **_pages(total, wanted),
        )  # fmt: skip


class AggregationView(SettlementView):
    """GET /reports/v1/reconciliations/aggregations/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": AGGREGATION}


class AggregationPageView(SettlementView):
    """GET /reports/v2/reconciliations/aggregations/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": AGGREGATION_PAGE}
    paged = True
