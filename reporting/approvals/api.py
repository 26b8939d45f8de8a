"""HTTP API of approval rates: GET /v1/reports/approvals. Source: docs/approval.md."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from gateway.access.permissions import AccessScope
from gateway.api.base_view import ApiView
from gateway.api.envelope import build_envelope
from gateway.backoffice.kit.time_limit import SearchTooBroadError, limit_search_time
from gateway.catalogue.endpoints import REPORTS, Endpoint
from gateway.catalogue.errors import ParameterError
from gateway.catalogue.parse import InvalidParametersError
from gateway.core import clock
from gateway.core.intervals import ShareInterval
from gateway.core.money import format_amount
from gateway.db.standby import build_as_of_header, read_elsewhere
from gateway.payments.request_builder import build_condition_facts
from gateway.payments.responses import render_ignored_parameters
from reporting.approvals.figures import (
    MAX_APPROVAL_PAYMENTS,
    ApprovalPeriod,
    SegmentFigures,
    compute_figures,
    count_chosen,
)
from reporting.reports.api import REPORT_SUCCESS_CODE


class ApprovalRatesView(ApiView):
    """GET /v1/reports/approvals: of the merchant, or of the channel that entityId names."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": REPORTS[-1]}

    def get(self, request: Request) -> Response:
        context = self.admit_request(request)
        merchant, channel = context.admission.merchant, context.admission.channel
        parameters = self.parse(context, channel, build_condition_facts(channel, clock.merchant_now(merchant)))
        scope = (
            AccessScope(channels=frozenset({channel.pk}))
            if channel
            else AccessScope(merchants=frozenset({merchant.pk}))
        )
        period = ApprovalPeriod(
            scope=scope,
            since=_begin_day(date.fromisoformat(parameters["date.from"])),
            until=_begin_day(date.fromisoformat(parameters["date.to"]) + timedelta(days=1)),
            currency=parameters.get("currency") or "",
        )
        by = parameters.get("groupBy") or "all"
        try:
            (found, counted), as_of = read_elsewhere(lambda: _compute_rates(period, by))
        except SearchTooBroadError:
            message = "the period has too many payments to be counted in time: ask for a shorter one"
            raise InvalidParametersError(
                [ParameterError(name="date.to", value=parameters["date.to"], message=message)]
            ) from None
        body = build_envelope(
            REPORT_SUCCESS_CODE,
            context.trace.ndc,
            groupBy=by,
            approvals=[render_segment(one) for one in found],
            complete=counted < MAX_APPROVAL_PAYMENTS,
            **render_ignored_parameters(parameters),
        )
        context.headers.update(build_as_of_header(as_of))
        return Response(body, headers=context.headers)


def _compute_rates(period: ApprovalPeriod, by: str) -> tuple[list[SegmentFigures], int]:
    with limit_search_time():
        return compute_figures(period, by), count_chosen(period)


def _begin_day(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def render_segment(one: SegmentFigures) -> dict[str, Any]:
    """A segment as the API shows it. Rates of nothing are left out."""
    rates = {"attemptRate": one.attempt_rate, "purchaseRate": one.purchase_rate}
    return {
        "segment": one.name,
        "attempts": one.attempts,
        "approvedAttempts": one.approved,
        "purchases": one.purchases,
        "approvedPurchases": one.approved_purchases,
        **{name: _render_rate(rate) for name, rate in rates.items() if rate is not None},
        "amounts": [
            {
                "currency": currency,
                "asked": format_amount(money.asked),
                "approved": format_amount(money.approved),
            }
            for currency, money in sorted(one.money.items())
        ],
    }


def _render_rate(rate: ShareInterval) -> dict[str, str]:
    return {"rate": f"{rate.rate:.2f}", "low": f"{rate.low:.2f}", "high": f"{rate.high:.2f}"}
