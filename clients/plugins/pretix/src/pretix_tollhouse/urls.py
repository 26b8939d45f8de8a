"""The shopper's return, and webhooks, below an event's address."""

from django.urls import include, path
from pretix.multidomain import event_path

from pretix_tollhouse.views import return_view, webhook_view

event_patterns = [
    path(
        "tollhouse/",
        include(
            [
                event_path("webhook/", webhook_view, name="webhook", require_live=False),
                event_path("return/<str:order>/<str:hash>/<int:payment>/", return_view, name="return"),
            ]
        ),
    ),
]
