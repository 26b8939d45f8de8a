"""The routes of the pages, and of the OpenAPI document."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from gateway.pages import views

urlpatterns = [
    path("", views.start, name="start"),
    path("docs", views.guide),
    path("docs/", views.guide, name="docs"),
    path("docs/search", views.find, name="docs-search"),
    path("docs/search.json", views.find_json),
    path("docs/result-codes", views.result_codes, name="result-codes"),
    path("docs/reference", RedirectView.as_view(url="/docs/reference/payment")),
    path("docs/reference/<slug:name>", views.endpoint, name="reference"),
    path("docs/clients/<str:file>", views.client_file, name="client"),
    path("docs/<slug:name>", views.guide, name="guide"),
    path("testdata", views.test_data, name="testdata"),
    path("testdata.json", views.test_data_json),
    path("v1/openapi.json", views.openapi, name="openapi"),
]
