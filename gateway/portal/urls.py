"""The routes of the portal and of the OpenAPI document."""

from __future__ import annotations

from typing import Final

from django.urls import path
from django.views.generic import RedirectView

from gateway.portal import views

MOVED_PAGES: Final = {"3d-secure": "three-d-secure", "queries": "reporting"}
"""Pages whose address has changed: old and new name. The browser keeps the anchor."""

urlpatterns = [
    path("", views.start_page_view, name="start"),
    path("docs", views.document_view),
    path("docs/", views.document_view, name="docs"),
    path("docs/search", views.search_view, name="docs-search"),
    path("docs/search.json", views.search_json_view),
    path("docs/result-codes", views.result_codes_view, name="result-codes"),
    path("docs/reference", RedirectView.as_view(url="/docs/reference/payment")),
    path("docs/reference/<slug:name>", views.endpoint_view, name="reference"),
    path("docs/clients/<str:file>", views.client_package_view, name="client-package"),
    path("docs/samples/<slug:name>.<slug:language>", views.sample_code_view, name="sample-code"),
    *(
        path(f"docs/{old}", RedirectView.as_view(url=f"/docs/{new}", permanent=True))
        for old, new in MOVED_PAGES.items()
    ),
    path("docs/<path:name>", views.document_view, name="document"),
    path("testdata", views.testdata_view, name="testdata"),
    path("testdata.json", views.testdata_json_view),
    path("v1/openapi.json", views.openapi_view, name="openapi"),
]
