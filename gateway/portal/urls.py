"""The routes of the portal and of the OpenAPI document."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from gateway.portal import views

urlpatterns = [
    path("", views.start_page_view, name="start"),
    path("docs", views.guide_view),
    path("docs/", views.guide_view, name="docs"),
    path("docs/search", views.search_view, name="docs-search"),
    path("docs/search.json", views.search_json_view),
    path("docs/result-codes", views.result_codes_view, name="result-codes"),
    path("docs/reference", RedirectView.as_view(url="/docs/reference/payment")),
    path("docs/reference/<slug:name>", views.endpoint_view, name="reference"),
    path("docs/clients/<str:file>", views.client_file_view, name="client"),
    path("docs/<slug:name>", views.guide_view, name="guide"),
    path("testdata", views.testdata_view, name="testdata"),
    path("testdata.json", views.testdata_json_view),
    path("v1/openapi.json", views.openapi_view, name="openapi"),
]
