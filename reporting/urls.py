"""The routes of reports: below /v1/, and below /reports/ for clients that know them there (D7)."""

from __future__ import annotations

from django.urls import path

from reporting import api

urlpatterns = [
    path("reports/reconciliations", api.SettlementsView.as_view()),
    path("reports/reconciliations/<str:target>", api.SettlementView.as_view()),
]
reports = [
    path("v1/reconciliations/aggregations", api.AggregationsView.as_view()),
    path("v1/reconciliations/aggregations/<str:target>", api.AggregationView.as_view()),
    path("v2/reconciliations/aggregations", api.AggregationsPageView.as_view()),
    path("v2/reconciliations/aggregations/<str:target>", api.AggregationPageView.as_view()),
]
