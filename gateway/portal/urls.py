"""The routes of the portal and of the OpenAPI document."""

from __future__ import annotations

from typing import Final

from django.urls import path
from django.views.generic import RedirectView

from gateway.portal import guides, machine_texts, views

MOVED_PAGES: Final = {"3d-secure": "three-d-secure", "queries": "reporting"}
"""Pages whose address has changed: old and new name. The browser keeps the anchor."""

urlpatterns = [
    path("", views.start_page_view, name="start"),
    path("docs", views.document_view),
    path("docs/", views.document_view, name="docs"),
    path("docs/search", views.search_view, name="docs-search"),
    path("docs/search.json", views.search_json_view),
    path("docs/result", views.result_view, name="docs-result"),
    path("docs/migrating", guides.migration_guide_view, name="migrating"),
    path("docs/status", guides.status_view, name="status"),
    path("docs/status.json", guides.status_json_view),
    path("docs/collection.json", machine_texts.collection_view, name="collection"),
    path("docs/result-codes.json", machine_texts.result_code_view),
    path("docs/result-codes", views.result_codes_view, name="result-codes"),
    path("docs/reference", RedirectView.as_view(url="/docs/reference/payment")),
    path("docs/reference/<slug:name>", views.endpoint_view, name="reference"),
    path("docs/clients/<str:file>", views.client_package_view, name="client-package"),
    path("docs/samples/<slug:name>.<slug:language>", views.sample_code_view, name="sample-code"),
    *(
        path(f"docs/{old}", RedirectView.as_view(url=f"/docs/{new}", permanent=True))
        for old, new in MOVED_PAGES.items()
    ),
    path("docs/<path:name>.md", machine_texts.document_text_view),
    path("llms.txt", machine_texts.llms_view),
    path("docs/<path:name>", views.document_view, name="document"),
    path("testdata", views.testdata_view, name="testdata"),
    path("testdata.json", views.testdata_json_view),
    path("v1/openapi.json", views.openapi_view, name="openapi"),
]
