"""The routes of checkouts and of the widget, below /v1/."""

from __future__ import annotations

from django.urls import path

from checkout import api, policy_reports, public, wallet_api

urlpatterns = [
    path("checkouts", api.CheckoutsView.as_view()),
    path("checkouts/<str:target>", api.CheckoutView.as_view()),
    path("checkouts/<str:target>/payment", api.CheckoutPaymentView.as_view()),
    path("checkouts/<str:target>/registration", api.CheckoutRegistrationView.as_view()),
    path("checkouts/<str:target>/config", api.ConfigView.as_view()),
    path("checkouts/<str:target>/state", api.StateView.as_view()),
    path("checkouts/<str:target>/wallet-session", wallet_api.WalletSessionView.as_view()),
    path("paymentWidgets.js", public.script),
    path("paymentWidgets/<str:digest>.js", public.build),
    path("fastcheckout/integrity", public.integrity),
    path("widget/texts/<str:locale>.json", public.texts),
    path("widget/brands.json", public.brand_table),
    path("widget/frame.html", public.frame),
    path("widget/policy-reports", policy_reports.receive),
]
