"""The routes of reports: below /v1/, and below /reports/ for clients that know them there (D7)."""

from __future__ import annotations

from django.urls import path

from reporting.approvals import api as approvals
from reporting.reports import api

urlpatterns = [
    path("reports/approvals", approvals.ApprovalRatesView.as_view()),
    path("reports/approvals/waterfall", approvals.ApprovalWaterfallView.as_view()),
    path("reports/approvals/gains", approvals.ApprovalGainsView.as_view()),
    path("reports/reconciliations", api.SettlementListView.as_view()),
    path("reports/reconciliations/<str:target>", api.SettlementDetailView.as_view()),
]
legacy_report_urlpatterns = [
    path("v1/reconciliations/aggregations", api.AggregationListView.as_view()),
    path("v1/reconciliations/aggregations/<str:target>", api.AggregationDetailView.as_view()),
    path("v2/reconciliations/aggregations", api.PagedAggregationListView.as_view()),
    path("v2/reconciliations/aggregations/<str:target>", api.PagedAggregationDetailView.as_view()),
]
