"""URL patterns of disputes outside the back office, under /connectors/alerts/."""

from __future__ import annotations

from django.urls import path

from chargebacks import alert_views

urlpatterns = [path("<slug:provider>", alert_views.receive_provider_alert)]
