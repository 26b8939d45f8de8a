"""HTTP API of approval rates: GET /v1/reports/approvals, …/waterfall and …/gains.

Source: docs/approval.md; docs/decisions/0153.
"""

from __future__ import annotations

from datetime import UTC, date
from typing import Any, ClassVar

from django.conf import settings
from django.http import HttpResponse
from django.utils import translation
from rest_framework.request import Request

from gateway.access.permissions import AccessScope
from gateway.api.base_view import ApiView
from gateway.api.envelope import JSON_CONTENT_TYPE, build_envelope
from gateway.backoffice.kit.time_limit import SearchTooBroadError, limit_search_time
from gateway.catalogue.endpoints import (
    APPROVAL_GAINS_ENDPOINT,
    APPROVAL_WATERFALL_ENDPOINT,
    APPROVALS_ENDPOINT,
    Endpoint,
)
from gateway.catalogue.errors import ParameterError
from gateway.catalogue.parse import InvalidParametersError, Parameters
from gateway.core import clock
from gateway.core.compact_json import encode_object
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
from reporting.approvals.gains import Gain, read_gains
from reporting.approvals.waterfall import Waterfall, compute_waterfalls
from reporting.reports.api import REPORT_SUCCESS_CODE


class ApprovalReportView(ApiView):
    """A report of a period's payments, of the merchant or of the channel that entityId names."""

    def get(self, request: Request) -> HttpResponse:
        context = self.admit_request(request)
        merchant, channel = context.admission.merchant, context.admission.channel
        parameters = self.parse(context, channel, build_condition_facts(channel, clock.merchant_now(merchant)))
        scope = (
            AccessScope(channels=frozenset({channel.pk}))
            if channel
            else AccessScope(merchants=frozenset({merchant.pk}))
        )
        first, last = (date.fromisoformat(parameters[name]) for name in ("date.from", "date.to"))
        since, until = clock.bound_days(first, last, UTC)
        period = ApprovalPeriod(scope=scope, since=since, until=until, currency=parameters.get("currency") or "")

        def read() -> dict[str, Any]:
            # Its words are English, whatever language a browser would want.
            with limit_search_time(), translation.override("en"):
                return self.render_report(period, parameters) | {
                    "complete": count_chosen(period) < MAX_APPROVAL_PAYMENTS
                }

        try:
            report, as_of = read_elsewhere(read)
        except SearchTooBroadError:
            message = "the period has too many payments to be counted in time: ask for a shorter one"
            raise InvalidParametersError(
                [ParameterError(name="date.to", value=parameters["date.to"], message=message)]
            ) from None
        body = build_envelope(REPORT_SUCCESS_CODE, context.trace.ndc, **report, **render_ignored_parameters(parameters))
        context.headers.update(build_as_of_header(as_of))
        return HttpResponse(encode_object(body), content_type=JSON_CONTENT_TYPE, headers=dict(context.headers))

    def render_report(self, period: ApprovalPeriod, parameters: Parameters) -> dict[str, Any]:
        """The members of the answer; an iterator is a long list, whose items are rendered as they are written."""
        raise NotImplementedError


class ApprovalRatesView(ApprovalReportView):
    """GET /v1/reports/approvals: rates, as a whole or divided."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": APPROVALS_ENDPOINT}

    def render_report(self, period: ApprovalPeriod, parameters: Parameters) -> dict[str, Any]:
        by = parameters.get("groupBy") or "all"
        return {"groupBy": by, "approvals": (render_segment(one) for one in compute_figures(period, by))}


class ApprovalWaterfallView(ApprovalReportView):
    """GET /v1/reports/approvals/waterfall: from what shoppers wanted to pay to what is settled."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": APPROVAL_WATERFALL_ENDPOINT}

    def render_report(self, period: ApprovalPeriod, parameters: Parameters) -> dict[str, Any]:
        return {"waterfalls": [_render_waterfall(one) for one in compute_waterfalls(period)]}


class ApprovalGainsView(ApprovalReportView):
    """GET /v1/reports/approvals/gains: what would bring most."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": APPROVAL_GAINS_ENDPOINT}

    def render_report(self, period: ApprovalPeriod, parameters: Parameters) -> dict[str, Any]:
        return {"gains": [_render_gain(one) for one in read_gains(period)]}


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


def _render_waterfall(one: Waterfall) -> dict[str, Any]:
    return {
        "currency": one.currency,
        "checkouts": one.checkouts,
        "steps": [
            {
                "step": row.step,
                "description": row.name,
                "lost": row.lost,
                "purchases": row.count,
                "amount": format_amount(row.money),
                "share": f"{row.share:.2f}",
            }
            for row in one.rows
        ],
    }


def _render_gain(one: Gain) -> dict[str, Any]:
    """A gain as the API shows it. What it may bring is left out where nothing comparable was counted."""
    may_bring = (
        {"mayBring": {"low": format_amount(one.low), "high": format_amount(one.high)}}
        if one.low is not None and one.high is not None
        else {}
    )
    return {
        "way": one.way,
        "title": one.title,
        "currency": one.currency,
        "lost": format_amount(one.money),
        **may_bring,
        "evidence": one.evidence,
        "switch": {"name": one.switch, "page": settings.GATEWAY_BASE_URL + one.link},
    }
