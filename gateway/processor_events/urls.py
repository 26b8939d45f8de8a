"""URL patterns of processor webhooks, under /connectors/."""

from __future__ import annotations

from django.urls import path

from gateway.processor_events import threeds_results, views

urlpatterns = [
    path("stripe/<uuid:account>", views.receive_card_api_event),
    path("threeds/results", threeds_results.receive_threeds_result),
]
