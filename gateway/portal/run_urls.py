"""The routes of the docs for who is signed in. Below /admin/, where the rules for sessions of the back office hold."""

from __future__ import annotations

from django.urls import path

from gateway.portal import go_live, sample_runs

urlpatterns = [
    path("docs/reader", sample_runs.docs_reader_view),
    path("docs/go-live", go_live.go_live_view),
    path("docs/run", sample_runs.run_sample_view),
]
