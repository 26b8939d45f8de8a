"""All routes: the API below /v1/, the back office, pages, health."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from django.views.i18n import set_language

from checkout import theming
from checkout.widget_docs import widget_guide_view
from gateway.api import health
from gateway.api.metrics_view import serve_metrics
from gateway.api.urls import schedule_urlpatterns, v3_urlpatterns
from gateway.backoffice.sign_in import sign_in_views
from reporting.urls import legacy_report_urlpatterns

urlpatterns = [
    path("v1/", include("gateway.api.urls")),
    path("v1/", include("checkout.urls")),
    path("scheduling/v1/", include(schedule_urlpatterns)),
    path("v1/", include("reporting.urls")),
    path("v3/", include(v3_urlpatterns)),
    path("reports/", include(legacy_report_urlpatterns)),
    path("health/live", health.check_liveness),
    path("health/ready", health.check_readiness),
    path("metrics", serve_metrics),
    path("connectors/alerts/", include("chargebacks.urls")),
    path("connectors/", include("gateway.processor_events.urls")),
    path("shopper/", include("gateway.shopper.urls")),
    path("simulator/", include("gateway.connectors.simulator.urls")),
    path("admin", RedirectView.as_view(url="/admin/")),
    path("admin/language", set_language, name="set_language"),
    path("admin/", include(sign_in_views.build_sign_in_urls())),
    path("admin/", include("gateway.portal.run_urls")),
    path("admin/", admin.site.urls),
    path("pay/", include("checkout.page_urls")),
    path("demo", RedirectView.as_view(url="/demo/")),
    path("demo/", include("checkout.demo.urls")),
    path("docs/widget", widget_guide_view, name="widget-guide"),
    path("docs/theming", theming.theming_guide_view, name="theming"),
    path("docs/theming/preview", theming.theme_preview_view),
    path("docs/theming/preview.css", theming.theme_style_view),
    path("docs/theming/preview.js", theming.theme_script_view),
    path("", include("gateway.portal.urls")),
]
handler400 = "gateway.api.error_views.bad_request"
handler403 = "gateway.api.error_views.forbidden"
handler404 = "gateway.api.error_views.not_found"
handler500 = "gateway.api.error_views.server_error"
