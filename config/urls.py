"""All routes: the API below /v1/, the back office, pages, health."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language

from checkout.pages import widget_guide
from gateway.admin import signing
from gateway.api import health
from gateway.api.figures import figures
from gateway.api.urls import scheduling, version_3
from reporting.urls import reports

urlpatterns = [
    path("v1/", include("gateway.api.urls")),
    path("v1/", include("checkout.urls")),
    path("scheduling/v1/", include(scheduling)),
    path("v1/", include("reporting.urls")),
    path("v3/", include(version_3)),
    path("reports/", include(reports)),
    path("health/live", health.live),
    path("health/ready", health.ready),
    path("metrics", figures),
    path("connectors/", include("gateway.processor_events.urls")),
    path("shopper/", include("gateway.shopper.urls")),
    path("simulator/", include("gateway.simulator.urls")),
    path("admin", RedirectView.as_view(url="/admin/")),
    path("admin/language", set_language, name="set_language"),
    path("admin/", include(signing.urls())),
    path("admin/", admin.site.urls),
    path("demo", RedirectView.as_view(url="/demo/")),
    path("demo/", include("checkout.demo.urls")),
    path("docs/widget", widget_guide, name="widget-guide"),
    path("", include("gateway.pages.urls")),
]
handler400 = "gateway.api.missing.bad_request"
handler403 = "gateway.api.missing.forbidden"
handler404 = "gateway.api.missing.not_found"
handler500 = "gateway.api.missing.server_error"
